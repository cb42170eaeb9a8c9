/* batch.c - see batch.h */

#include "batch.h"

#include "run_responses.h"
#include "device.h"

#include <stdlib.h>
#include <string.h>

#define TENSORS "tensors of a batch"    /* for errors: no memory for them    */

static void batch_clear(bk_batch_t *b);
static TRITONSERVER_Error *inputs_make(bk_batch_t *b,
    const bk_batch_request_t *reqs, uint32_t count);
static TRITONSERVER_Error *input_make(bk_batch_t *b, uint32_t i,
    const bk_batch_request_t *reqs, uint32_t count, bk_value_t *v);
static TRITONSERVER_Error *input_shape(const bk_batch_request_t *reqs,
    uint32_t i, uint32_t count, bk_value_t *v);
static TRITONSERVER_Error *input_generate(bk_batch_t *b, uint32_t i,
    const bk_batch_request_t *reqs, uint32_t count, bk_value_t *v);
static TRITONSERVER_Error *sources_read(bk_batch_t *b, uint32_t source,
    const bk_batch_request_t *reqs, uint32_t count);
static TRITONSERVER_Error *input_data(bk_batch_t *b, uint32_t i,
    const bk_batch_request_t *reqs, uint32_t count, bk_value_t *v);
static void scratch_free(bk_scratch_t *list, uint32_t count);
static void outputs_choose(bk_batch_t *b, const bk_batch_request_t *reqs,
    uint32_t count);
static TRITONSERVER_Error *outputs_preallocate(bk_batch_t *b,
    bk_batch_request_t *reqs, uint32_t count);
static TRITONSERVER_Error *output_preallocate(bk_batch_t *b, uint32_t i,
    bk_batch_request_t *reqs, uint32_t count, uint64_t rows);
static bool output_shape_known(const bk_batch_t *b, const bk_tensor_t *t,
    uint64_t rows, bk_value_t *v);
static bool symbol_is_batch(const bk_batch_t *b, const char *symbol);
static void outputs_reset(bk_batch_t *b);
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
    outputs_choose(b, reqs, count);

    TRITONSERVER_Error *err = inputs_make(b, reqs, count);
    if (err == NULL && b->preallocates) {
        err = outputs_preallocate(b, reqs, count);
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

bool
bk_run_is_abandoned(const bk_run_t *run)
{
    bool all = run->request_count > 0;

    for (uint32_t i = 0; all && i < run->request_count; i++) {
        TRITONSERVER_Error *err = bk_request_check_cancelled(
            run->requests[i].handle);

        all = err != NULL;
        bk_err_drop(err);
    }

    return all;
}

static void
batch_clear(bk_batch_t *b)
{
    b->run.input_count = 0;
    b->run.output_count = 0;
    b->run.requests = NULL;
    b->run.request_count = 0;
}

static TRITONSERVER_Error *
inputs_make(bk_batch_t *b, const bk_batch_request_t *reqs, uint32_t count)
{
    const bk_tensors_t *t = b->config->tensors;

    for (uint32_t i = 0; i < t->input_count; i++) {
        bk_value_t *v = &b->run.inputs[b->run.input_count];

        if (reqs[0].inputs[i].handle == NULL
            && t->inputs[i].batch_input == NULL)
        {
            continue;
        }

        v->tensor = &t->inputs[i];
        v->preallocated = false;
        v->on_device = false;
        v->handle = NULL;
        TRITONSERVER_Error *err = t->inputs[i].batch_input != NULL
            ? input_generate(b, i, reqs, count, v)
            : input_make(b, i, reqs, count, v);
        if (err != NULL) {
            return err;
        }

        b->run.input_count++;
    }

    return NULL;
}

static TRITONSERVER_Error *
input_make(bk_batch_t *b, uint32_t i, const bk_batch_request_t *reqs,
    uint32_t count, bk_value_t *v)
{
    TRITONSERVER_Error *err = input_shape(reqs, i, count, v);
    if (err == NULL) {
        err = input_data(b, i, reqs, count, v);
    }

    return err;
}

/* rows on top of each other; of a ragged input all elements in one line, of a
 * control one for each request */
static TRITONSERVER_Error *
input_shape(const bk_batch_request_t *reqs, uint32_t i, uint32_t count,
    bk_value_t *v)
{
    const bk_tensor_t *t = v->tensor;
    uint64_t sum = 0;
    bool countable = true;

    v->dims_count = t->dims_count;
    if (t->ragged) {
        for (uint32_t k = 0; countable && k < count; k++) {
            const bk_input_t *in = &reqs[k].inputs[i];
            uint64_t elements = 0;

            countable = bk_elements(in->shape, in->dims_count, &elements)
                && !__builtin_add_overflow(sum, elements, &sum)
                && sum <= INT64_MAX;
        }
        v->dims[0] = (int64_t) sum;

    } else if (t->control) {
        for (uint32_t d = 0; d < t->dims_count; d++) {
            v->dims[d] = d == 0 ? count : 1;
        }

    } else {
        memcpy(v->dims, reqs[0].inputs[i].shape,
            t->dims_count * sizeof(*v->dims));
        for (uint32_t k = 1; countable && k < count; k++) {
            countable = !__builtin_add_overflow(v->dims[0],
                reqs[k].inputs[i].shape[0], &v->dims[0]);
        }
    }

    if (!countable || !bk_elements(v->dims, v->dims_count, &v->elements)) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "input \"%s\" has more elements than can be counted", t->name);
    }

    return NULL;
}

/* a batch_input of the configuration: from the shapes of its source in all
 * requests */
static TRITONSERVER_Error *
input_generate(bk_batch_t *b, uint32_t i, const bk_batch_request_t *reqs,
    uint32_t count, bk_value_t *v)
{
    const bk_tensor_t *t = v->tensor;
    bk_scratch_t *scratch = &b->in_scratch[i];
    bool batching = b->config->batching;

    v->dims_count = t->dims_count;
    TRITONSERVER_Error *err = sources_read(b, t->source, reqs, count);
    if (err == NULL) {
        err = bk_batch_input_shape(t->batch_input, b->sources, count, batching,
            v->dims, &v->elements);
    }
    if (err == NULL) {
        v->len_bytes = v->elements * 4;
        err = bk_scratch_reserve(scratch, v->len_bytes, TENSORS);
    }
    if (err == NULL) {
        v->data = scratch->data;
        err = bk_batch_input_write(t->batch_input, b->sources, count, batching,
            v->data, v->elements);
    }

    return err;
}

static TRITONSERVER_Error *
sources_read(bk_batch_t *b, uint32_t source, const bk_batch_request_t *reqs,
    uint32_t count)
{
    if (count > b->source_cap) {
        bk_batch_source_t *wider = realloc(b->sources,
            count * sizeof(*wider));
        if (wider == NULL) {
            return bk_err_nomem("shapes of a batch");
        }
        b->sources = wider;
        b->source_cap = count;
    }

    for (uint32_t k = 0; k < count; k++) {
        const bk_input_t *in = &reqs[k].inputs[source];

        b->sources[k] = (bk_batch_source_t) {
            .shape = in->shape,
            .dims_count = in->dims_count,
            .rows = reqs[k].rows
        };
        if (in->handle == NULL || !bk_elements(in->shape, in->dims_count,
            &b->sources[k].elements))
        {
            return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
                "input \"%s\", which a batch tensor goes by, is not there",
                b->config->tensors->inputs[source].name);
        }
    }

    return NULL;
}

/* in place if it lies in one piece and as its type wants, else together */
static TRITONSERVER_Error *
input_data(bk_batch_t *b, uint32_t i, const bk_batch_request_t *reqs,
    uint32_t count, bk_value_t *v)
{
    uint32_t size = TRITONSERVER_DataTypeByteSize(v->tensor->datatype);
    bk_scratch_t *scratch = &b->in_scratch[i];
    const void *data = NULL;
    uint64_t sum = 0;

    if (count == 1) {
        const bk_input_t *in = &reqs[0].inputs[i];
        TRITONSERVER_Error *err = bk_device_input(in, b->config->device_id,
            &data);
        v->on_device = data != NULL;
        if (err == NULL && data == NULL) {
            err = bk_input_view(in, &data);
        }
        if (err != NULL) {
            return err;
        }

        v->data = (void *) (uintptr_t) data;
        v->len_bytes = in->len_bytes;
        if (data != NULL && (size == 0 || (uintptr_t) data % size == 0)) {
            return NULL;
        }
    }

    for (uint32_t k = 0; k < count; k++) {
        if (__builtin_add_overflow(sum, reqs[k].inputs[i].len_bytes, &sum)) {
            return bk_err_nomem("inputs of a batch");
        }
    }

    TRITONSERVER_Error *err = bk_scratch_reserve(scratch, sum, TENSORS);
    if (err != NULL) {
        return err;
    }

    char *to = scratch->data;
    for (uint32_t k = 0; k < count; k++) {
        err = bk_input_copy(&reqs[k].inputs[i], to);
        if (err != NULL) {
            return err;
        }
        to += reqs[k].inputs[i].len_bytes;
    }

    v->data = scratch->data;
    v->len_bytes = sum;
    return NULL;
}

static void
scratch_free(bk_scratch_t *list, uint32_t count)
{
    for (uint32_t i = 0; list != NULL && i < count; i++) {
        bk_scratch_fini(&list[i]);
    }
    free(list);
}

/* those that at least one request asks for, and states */
static void
outputs_choose(bk_batch_t *b, const bk_batch_request_t *reqs, uint32_t count)
{
    const bk_tensors_t *t = b->config->tensors;

    for (uint32_t i = 0; i < t->output_count; i++) {
        bk_value_t *v = &b->run.outputs[b->run.output_count];
        bool wanted = t->outputs[i].state;

        for (uint32_t k = 0; k < count && !wanted; k++) {
            wanted = reqs[k].wanted[i];
        }

        if (wanted) {
            v->tensor = &t->outputs[i];
            v->data = NULL;
            v->len_bytes = 0;
            v->preallocated = false;
            v->on_device = false;
            v->handle = NULL;
            b->cursors[b->run.output_count] = (bk_output_cursor_t) {
                .index = i
            };
            b->run.output_count++;
        }
    }
}

static TRITONSERVER_Error *
outputs_preallocate(bk_batch_t *b, bk_batch_request_t *reqs, uint32_t count)
{
    uint64_t rows = 0;

    for (uint32_t k = 0; k < count; k++) {
        rows += reqs[k].rows;
    }
    for (uint32_t i = 0; i < b->run.output_count; i++) {
        TRITONSERVER_Error *err = output_preallocate(b, i, reqs, count, rows);
        if (err != NULL) {
            return err;
        }
    }

    return NULL;
}

static TRITONSERVER_Error *
output_preallocate(bk_batch_t *b, uint32_t i, bk_batch_request_t *reqs,
    uint32_t count, uint64_t rows)
{
    static const int64_t one = 1;

    bk_value_t *v = &b->run.outputs[i];
    const bk_tensor_t *t = v->tensor;
    uint32_t size = TRITONSERVER_DataTypeByteSize(t->datatype);
    bk_scratch_t *scratch = &b->out_scratch[b->cursors[i].index];
    TRITONSERVER_Error *err;

    if (size == 0 || t->batch_output != NULL || t->passthrough
        || !output_shape_known(b, t, rows, v)
        || __builtin_mul_overflow(v->elements, size, &v->len_bytes)
        || v->len_bytes == 0)
    {
        return NULL;
    }

    /* the CPU copies a state from its output, which must not lie on a GPU */
    if (count == 1 && reqs[0].wanted[b->cursors[i].index]
        && !(t->state && b->config->device_id != BK_NO_DEVICE))
    {
        bool scalar = v->dims_count == 0;

        err = bk_device_output(reqs[0].response, t->name, t->datatype,
            scalar ? &one : v->dims, scalar ? 1 : v->dims_count,
            v->len_bytes, b->config->device_id, &v->data, &v->on_device);
        b->cursors[i].in_response = err == NULL;

    } else {
        err = bk_scratch_reserve(scratch, v->len_bytes, TENSORS);
        v->data = scratch->data;
    }

    v->preallocated = err == NULL;
    return err;
}

/*
 * An open first dimension is the batch only if the model calls it by the same
 * name as an input's; "-1" alone says nothing.
 */
static bool
output_shape_known(const bk_batch_t *b, const bk_tensor_t *t, uint64_t rows,
    bk_value_t *v)
{
    for (uint32_t i = 0; i < t->dims_count; i++) {
        v->dims[i] = t->dims[i];
        if (t->dims[i] != -1) {
            continue;
        }

        if (i != 0 || !b->config->batching || !symbol_is_batch(b, t->symbol)) {
            return false;
        }
        v->dims[i] = (int64_t) rows;
    }

    v->dims_count = t->dims_count;
    return bk_elements(v->dims, v->dims_count, &v->elements);
}

static bool
symbol_is_batch(const bk_batch_t *b, const char *symbol)
{
    const bk_tensors_t *t = b->config->tensors;

    for (uint32_t i = 0; i < t->required_count; i++) {
        const char *other = t->inputs[i].symbol;
        if (symbol != NULL && other != NULL && strcmp(symbol, other) == 0) {
            return true;
        }
    }

    return false;
}

static void
outputs_reset(bk_batch_t *b)
{
    for (uint32_t i = 0; i < b->run.output_count; i++) {
        bk_value_t *v = &b->run.outputs[i];

        v->data = NULL;
        v->len_bytes = 0;
        v->preallocated = false;
        v->on_device = false;
        b->cursors[i].in_response = false;
    }
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
    outputs_reset(b);
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
