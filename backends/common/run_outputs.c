/* run_outputs.c - see run_outputs.h */

#include "run_outputs.h"

#include "device.h"

#include <string.h>

static TRITONSERVER_Error *output_preallocate(bk_batch_t *b, uint32_t i,
    bk_batch_request_t *reqs, uint32_t count, uint64_t rows);
static bool output_shape_known(const bk_batch_t *b, const bk_tensor_t *t,
    uint64_t rows, bk_value_t *v);
static bool symbol_is_batch(const bk_batch_t *b, const char *symbol);

void
bk_run_outputs_choose(bk_batch_t *b, const bk_batch_request_t *reqs,
    uint32_t count)
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

TRITONSERVER_Error *
bk_run_outputs_preallocate(bk_batch_t *b, bk_batch_request_t *reqs,
    uint32_t count)
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

void
bk_run_outputs_reset(bk_batch_t *b)
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

static TRITONSERVER_Error *
output_preallocate(bk_batch_t *b, uint32_t i, bk_batch_request_t *reqs,
    uint32_t count, uint64_t rows)
{
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
        uint32_t dims_count = v->dims_count;
        const int64_t *dims = dims_count == 0
            ? bk_scalar_shape(t, &dims_count) : v->dims;

        err = bk_device_output(reqs[0].response, t->name, t->datatype, dims,
            dims_count, v->len_bytes, b->config->device_id, &v->data,
            &v->on_device);
        b->cursors[i].in_response = err == NULL;

    } else {
        err = bk_scratch_reserve(scratch, v->len_bytes, "tensors of a batch");
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
