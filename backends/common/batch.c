/* batch.c - see batch.h */

#include "batch.h"

#include "run_inputs.h"
#include "run_outputs.h"
#include "run_responses.h"

#include <stdlib.h>

static void batch_clear(bk_batch_t *b);
static void scratch_free(bk_scratch_t *list, uint32_t count);
static TRITONSERVER_Error *run(bk_batch_t *b, bk_batch_request_t *reqs,
    uint32_t count, bk_times_t *times);
static TRITONSERVER_Error *run_once(bk_batch_t *b, bk_times_t *times);
static void run_done(bk_batch_t *b);

TRITONSERVER_Error *
bk_batch_init(bk_batch_t *b, const bk_instance_config_t *config,
    const bk_runtime_t *runtime, void *self)
{
    size_t ins = (size_t) config->tensors->input_count + 1;
    size_t outs = (size_t) config->tensors->output_count + 1;

    *b = (bk_batch_t) {
        .config = config,
        .runtime = runtime,
        .self = self,
        .preallocates = !runtime->allocates_outputs,
        .in_scratch = calloc(ins, sizeof(*b->in_scratch)),
        .out_scratch = calloc(outs, sizeof(*b->out_scratch)),
        .run = {
            .inputs = calloc(ins, sizeof(*b->run.inputs)),
            .outputs = calloc(outs, sizeof(*b->run.outputs))
        },
        .cursors = calloc(outs, sizeof(*b->cursors))
    };

    if (b->in_scratch == NULL || b->out_scratch == NULL
        || b->run.inputs == NULL || b->run.outputs == NULL
        || b->cursors == NULL)
    {
        bk_batch_fini(b);
        return bk_err_nomem("tables of a batch");
    }

    return NULL;
}

void
bk_batch_fini(bk_batch_t *b)
{
    if (b->config != NULL) {
        scratch_free(b->in_scratch, b->config->tensors->input_count);
        scratch_free(b->out_scratch, b->config->tensors->output_count);
    }

    free(b->run.inputs);
    free(b->run.outputs);
    free(b->cursors);
    free(b->sources);
    *b = (bk_batch_t) { 0 };
}

TRITONSERVER_Error *
bk_batch_run(bk_batch_t *b, bk_batch_request_t *reqs, uint32_t count,
    bk_times_t *times)
{
    b->run.requests = reqs;
    b->run.request_count = count;
    b->run_failed = false;
    bk_run_outputs_choose(b, reqs, count);

    TRITONSERVER_Error *err = bk_run_inputs_make(b, reqs, count);
    if (err == NULL && b->preallocates) {
        err = bk_run_outputs_preallocate(b, reqs, count);
    }
    if (err == NULL) {
        err = run(b, reqs, count, times);
        b->run_failed = err != NULL;
        if (err == NULL) {
            err = bk_run_responses_fill(b, reqs, count);
        }
        run_done(b);
    }

    batch_clear(b);
    return err;
}

static void
batch_clear(bk_batch_t *b)
{
    b->run.input_count = 0;
    b->run.output_count = 0;
    b->run.requests = NULL;
    b->run.request_count = 0;
}

static void
scratch_free(bk_scratch_t *list, uint32_t count)
{
    for (uint32_t i = 0; list != NULL && i < count; i++) {
        bk_scratch_fini(&list[i]);
    }
    free(list);
}

/*
 * An output's shape may differ from what the model's file says.  Then the
 * runtime rejects the memory; the run is tried once more without, and if that
 * works outputs are copied from then on.
 */
static TRITONSERVER_Error *
run(bk_batch_t *b, bk_batch_request_t *reqs, uint32_t count, bk_times_t *times)
{
    bool any_preallocated = false;

    for (uint32_t i = 0; i < b->run.output_count; i++) {
        any_preallocated = any_preallocated || b->run.outputs[i].preallocated;
    }

    TRITONSERVER_Error *first = run_once(b, times);
    if (first == NULL || !any_preallocated || TRITONSERVER_ErrorCode(first)
        == TRITONSERVER_ERROR_CANCELLED)
    {
        return first;
    }

    run_done(b);
    bk_run_outputs_reset(b);
    if (count == 1) {
        bk_batch_request_restart(&reqs[0]);
        if (reqs[0].err != NULL) {
            return first;
        }
    }

    TRITONSERVER_Error *second = run_once(b, times);
    if (second == NULL) {
        b->preallocates = false;
        bk_log(TRITONSERVER_LOG_WARN, "outputs of this model are copied from "
            "now on: %s", TRITONSERVER_ErrorMessage(first));
    }

    bk_err_drop(first);
    return second;
}

static TRITONSERVER_Error *
run_once(bk_batch_t *b, bk_times_t *times)
{
    times->compute_start_ns = bk_now_ns();
    TRITONSERVER_Error *err = b->run.output_count == 0 ? NULL
        : b->runtime->run(b->self, &b->run);
    times->compute_end_ns = bk_now_ns();

    return err;
}

static void
run_done(bk_batch_t *b)
{
    if (b->runtime->done != NULL) {
        b->runtime->done(b->self, &b->run);
    }

    for (uint32_t i = 0; i < b->run.input_count; i++) {
        b->run.inputs[i].handle = NULL;
    }
    for (uint32_t i = 0; i < b->run.output_count; i++) {
        b->run.outputs[i].handle = NULL;
    }
}
