/* binding.c - see binding.h */

#include "binding.h"

#include <inttypes.h>

static TRITONSERVER_Error *bind_all(const ort_session_t *s,
    const ort_run_t *run);
static TRITONSERVER_Error *take_outputs(const ort_session_t *s,
    const ort_run_t *run);

TRITONSERVER_Error *
ort_binding_run(const ort_session_t *s, const ort_run_t *run)
{
    const OrtApi *api = s->rt->api;

    TRITONSERVER_Error *err = bind_all(s, run);
    if (err == NULL) {
        err = ort_err(s->rt, api->RunWithBinding(s->handle, s->run_options,
            s->binding), "execution failed");
    }
    if (err == NULL) {
        err = take_outputs(s, run);
    }

    /* the tensors are in memory of requests, which end before the next run */
    api->ClearBoundInputs(s->binding);
    api->ClearBoundOutputs(s->binding);
    return err;
}

static TRITONSERVER_Error *
bind_all(const ort_session_t *s, const ort_run_t *run)
{
    const OrtApi *api = s->rt->api;

    for (uint32_t i = 0; i < run->input_count; i++) {
        TRITONSERVER_Error *err = ort_err(s->rt, api->BindInput(s->binding,
            run->input_names[i], run->inputs[i]), "input \"%s\"",
            run->input_names[i]);
        if (err != NULL) {
            return err;
        }
    }

    for (uint32_t i = 0; i < run->output_count; i++) {
        OrtStatus *status = run->outputs[i] != NULL
            ? api->BindOutput(s->binding, run->output_names[i],
            run->outputs[i])
            : api->BindOutputToDevice(s->binding, run->output_names[i],
            s->rt->cpu);

        TRITONSERVER_Error *err = ort_err(s->rt, status, "output \"%s\"",
            run->output_names[i]);
        if (err != NULL) {
            return err;
        }
    }

    return NULL;
}

/* The library returns a value for each output, even for those that were bound
 * to memory of ours. */
static TRITONSERVER_Error *
take_outputs(const ort_session_t *s, const ort_run_t *run)
{
    const OrtApi *api = s->rt->api;
    OrtValue **values = NULL;
    size_t count = 0;

    TRITONSERVER_Error *err = ort_err(s->rt, api->GetBoundOutputValues(
        s->binding, s->rt->allocator, &values, &count), "outputs");
    if (err != NULL) {
        return err;
    }

    for (size_t i = 0; i < count; i++) {
        if (i < run->output_count && run->outputs[i] == NULL) {
            run->outputs[i] = values[i];
        } else {
            api->ReleaseValue(values[i]);
        }
    }

    s->rt->allocator->Free(s->rt->allocator, values);
    return count == run->output_count ? NULL
        : bk_err_new(TRITONSERVER_ERROR_INTERNAL, "%zu outputs in place of %"
        PRIu32, count, run->output_count);
}
