#include "core/abi/cached_outputs.h"

#include "core/abi/api_request.h"
#include "core/sched/ensemble.h"

static bool is_cached(const inf_model_t *model);

bool
inf_outputs_are_cached(TRITONSERVER_InferenceRequest *request)
{
    return is_cached(inf_as_client_request(request)->model);
}

/* Checks composing models too, since outputs of an ensemble's steps may be its
   own. */
static bool
is_cached(const inf_model_t *model)
{
    const inf_model_t *composing;
    bool cached = model->sched.gate != NULL;

    for (uint32_t i = 0; !cached && model->sched.ensemble != NULL
        && (composing = inf_ensemble_composing_model(model->sched.ensemble,
            i)) != NULL; i++)
    {
        cached = is_cached(composing);
    }
    return cached;
}
