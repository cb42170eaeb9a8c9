/* outputs.c - see outputs.h */

#include "outputs.h"

#include "copies.h"
#include "wait.h"

#include <inttypes.h>
#include <string.h>

static TRITONSERVER_Error *take_output(gpu_batch_t *b, uint32_t i,
    gpu_slot_t *slot, gpu_ptr_t from);
static TRITONSERVER_Error *await_kernels(gpu_batch_t *b);
static TRITONSERVER_Error *ask_for_buffer(const gpu_batch_t *b, uint32_t i,
    gpu_slot_t *slot, gpu_memory_t *m);

TRITONSERVER_Error *
gpu_outputs_take(gpu_batch_t *b, gpu_slot_t *slots, uint32_t count)
{
    uint32_t inputs = b->program->input_count;

    for (uint32_t i = inputs; i < b->program->tensor_count; i++) {
        gpu_ptr_t from = b->places[i];

        for (uint32_t k = 0; k < count; k++) {
            TRITONSERVER_Error *err = slots[k].err == NULL
                && slots[k].wanted[i - inputs]
                ? take_output(b, i, &slots[k], from) : NULL;
            if (err != NULL) {
                return bk_err_add(err, "output \"%s\"",
                    b->program->tensors[i].name);
            }
            from += (uint64_t) (b->shapes[i].bytes / b->rows * slots[k].rows);
        }
    }

    return NULL;
}

static TRITONSERVER_Error *
take_output(gpu_batch_t *b, uint32_t i, gpu_slot_t *slot, gpu_ptr_t from)
{
    gpu_memory_t m = {
        .len = (uint64_t) (b->shapes[i].bytes / b->rows * slot->rows),
        .type = TRITONSERVER_MEMORY_GPU, .id = b->device->ordinal
    };

    slot->err = ask_for_buffer(b, i, slot, &m);
    if (slot->err != NULL) {
        return NULL;
    }

    TRITONSERVER_Error *err = m.type == TRITONSERVER_MEMORY_CPU
        ? await_kernels(b) : NULL;
    return err != NULL || b->late ? err
        : gpu_copy_out(b->device, &m, from, b->stream);
}

/* The driver's copy to memory that is not pinned returns when it is done: a
   kernel that does not end would hold the thread there, beyond any timeout. */
static TRITONSERVER_Error *
await_kernels(gpu_batch_t *b)
{
    bool ended;

    if (b->computed) {
        return NULL;
    }

    b->computed = true;
    TRITONSERVER_Error *err = gpu_wait(b->device, b->stream, b->end,
        b->program->timeout_ms, &ended);
    b->late = !ended;
    return err;
}

static TRITONSERVER_Error *
ask_for_buffer(const gpu_batch_t *b, uint32_t i, gpu_slot_t *slot,
    gpu_memory_t *m)
{
    const gpu_tensor_t *t = &b->program->tensors[i];
    bool batching = b->program->rows_most > 0;
    int64_t shape[GPU_DIMS_MAX + 1] = { slot->rows };
    TRITONBACKEND_Output *output;

    memcpy(shape + batching, b->shapes[i].dims,
        t->dims_count * sizeof(*shape));
    TRITONSERVER_Error *err = TRITONBACKEND_ResponseOutput(slot->response,
        &output, t->name, t->datatype, shape, t->dims_count + batching);
    if (err == NULL) {
        err = TRITONBACKEND_OutputBuffer(output, &m->base, m->len, &m->type,
            &m->id);
    }
    if (err == NULL && m->len != 0 && m->base == NULL) {
        err = bk_err_new(TRITONSERVER_ERROR_UNAVAILABLE, "output \"%s\" was"
            " given no memory for its %" PRIu64 " bytes", t->name, m->len);
    }
    return err;
}
