/* run_inputs.c - see run_inputs.h */

#include "run_inputs.h"

#include "device.h"

#include <stdlib.h>
#include <string.h>

#define TENSORS "tensors of a batch"    /* for errors: no memory for them    */

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

TRITONSERVER_Error *
bk_run_inputs_make(bk_batch_t *b, const bk_batch_request_t *reqs,
    uint32_t count)
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
