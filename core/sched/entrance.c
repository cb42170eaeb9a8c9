#include "core/sched/entrance.h"

#include "core/sched/ensemble.h"
#include "core/sched/rejection.h"
#include "core/sched/response_cache.h"
#include "core/sched/runtime.h"

static void reject_here(void *userp, inf_request_t *req);

inf_err_t *
inf_entrance_submit(inf_model_t *model, inf_request_t *req, uint64_t now_ns,
    bool haste, bool *queued)
{
    if (model->cached != NULL) {
        return inf_cached_submit(model->cached, req, now_ns, haste, queued);
    }

    *queued = model->ensemble == NULL;
    return inf_entrance_execute(model, req, now_ns);
}

inf_err_t *
inf_entrance_execute(inf_model_t *model, inf_request_t *req, uint64_t now_ns)
{
    return model->ensemble != NULL
        ? inf_ensemble_submit(model, req, now_ns)
        : inf_runner_submit(model->runner, req, now_ns);
}

bool
inf_entrance_cancel(inf_model_t *model, inf_request_t *req,
    const inf_rejecter_t *rejecter)
{
    if (model->cached != NULL && inf_cached_cancel(model->cached, req)) {
        return true;
    }
    if (model->ensemble == NULL) {
        return model->runner != NULL && inf_runner_cancel(model->runner, req);
    }

    inf_ensemble_cancel(model, req, rejecter != NULL ? rejecter->reject
        : reject_here, rejecter != NULL ? rejecter->userp : NULL);
    return false;
}

void
inf_entrance_close(inf_model_t *model)
{
    if (model->ensemble != NULL) {
        inf_ensemble_close(model->ensemble);
    } else {
        inf_runner_close_to_clients(model->runner);
    }
}

void
inf_entrance_open_door(inf_model_t *model)
{
    atomic_fetch_add_explicit(&model->doors, 1, memory_order_relaxed);
}

void
inf_entrance_close_door(inf_model_t *model)
{
    if (atomic_fetch_sub_explicit(&model->doors, 1, memory_order_acq_rel) == 1
        && model->runner != NULL)
    {
        inf_runner_leave(model->runner);
    }
}

static void
reject_here(void *userp, inf_request_t *req)
{
    (void) userp;
    inf_reject_cancelled(req);
}
