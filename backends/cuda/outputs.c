/* outputs.c - see outputs.h */

#include "outputs.h"

#include "copies.h"
#include "wait.h"

#include <inttypes.h>
#include <string.h>

static TRITONSERVER_Error *take_part(gpu_batch_t *b, uint32_t i,
    gpu_batch_request_t *req, gpu_ptr_t from);
static TRITONSERVER_Error *copy_part(gpu_batch_t *b, const gpu_memory_t *m,
    gpu_ptr_t from);
static TRITONSERVER_Error *await_kernels(gpu_batch_t *b);
static gpu_memory_t wanted_memory(const gpu_batch_t *b, uint32_t i,
    const gpu_batch_request_t *req);
static TRITONSERVER_Error *ask_for_buffer(const gpu_batch_t *b, uint32_t i,
    gpu_batch_request_t *req, gpu_memory_t *m);
static TRITONSERVER_Error *ask_for_state(const gpu_batch_t *b, uint32_t i,
    gpu_batch_request_t *req, gpu_memory_t *m);
static uint32_t shape_of(const gpu_batch_t *b, uint32_t i,
    const gpu_batch_request_t *req, int64_t *shape);
static TRITONSERVER_Error *check_memory(const gpu_memory_t *m,
    const gpu_tensor_t *t);

TRITONSERVER_Error *
gpu_outputs_take(gpu_batch_t *b, gpu_batch_request_t *reqs, uint32_t count)
{
    for (uint32_t i = b->program->input_count; i < b->program->tensor_count;
        i++)
    {
        gpu_ptr_t from = b->addresses[i];

        for (uint32_t k = 0; k < count; k++) {
            TRITONSERVER_Error *err = take_part(b, i, &reqs[k], from);
            if (err != NULL) {
                return bk_err_add(err, "output \"%s\"",
                    b->program->tensors[i].name);
            }
            from += (uint64_t) (b->shapes[i].bytes / b->rows * reqs[k].rows);
        }
    }

    return NULL;
}

/* A state goes to the memory that the core keeps, and to the response where the
   client wants to see it. */
static TRITONSERVER_Error *
take_part(gpu_batch_t *b, uint32_t i, gpu_batch_request_t *req, gpu_ptr_t from)
{
    gpu_memory_t m = wanted_memory(b, i, req);
    TRITONSERVER_Error *err = NULL;

    if (req->err == NULL && req->wanted[i - b->program->input_count]) {
        req->err = ask_for_buffer(b, i, req, &m);
        err = req->err == NULL ? copy_part(b, &m, from) : NULL;
    }

    m = wanted_memory(b, i, req);
    if (err == NULL && req->err == NULL && b->program->tensors[i].state) {
        req->err = ask_for_state(b, i, req, &m);
        err = req->err == NULL
            && req->states[i - b->program->input_count] != NULL
            ? copy_part(b, &m, from) : NULL;
    }
    return err;
}

static TRITONSERVER_Error *
copy_part(gpu_batch_t *b, const gpu_memory_t *m, gpu_ptr_t from)
{
    TRITONSERVER_Error *err = m->type == TRITONSERVER_MEMORY_CPU
        ? await_kernels(b) : NULL;

    return err != NULL || b->late ? err
        : gpu_copy_out(b->device, m, from, b->stream);
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

/* On the device, if it can be had there. */
static gpu_memory_t
wanted_memory(const gpu_batch_t *b, uint32_t i, const gpu_batch_request_t *req)
{
    return (gpu_memory_t) {
        .len = (uint64_t) (b->shapes[i].bytes / b->rows * req->rows),
        .type = TRITONSERVER_MEMORY_GPU, .id = b->device->ordinal
    };
}

static TRITONSERVER_Error *
ask_for_buffer(const gpu_batch_t *b, uint32_t i, gpu_batch_request_t *req,
    gpu_memory_t *m)
{
    const gpu_tensor_t *t = &b->program->tensors[i];
    int64_t shape[GPU_DIMS_MAX + 1];
    uint32_t dims_count = shape_of(b, i, req, shape);
    TRITONBACKEND_Output *output;

    TRITONSERVER_Error *err = TRITONBACKEND_ResponseOutput(req->response,
        &output, t->name, t->datatype, shape, dims_count);
    if (err == NULL) {
        err = TRITONBACKEND_OutputBuffer(output, &m->base, m->len, &m->type,
            &m->id);
    }
    return err != NULL ? err : check_memory(m, t);
}

/* None for a request that is in no sequence. */
static TRITONSERVER_Error *
ask_for_state(const gpu_batch_t *b, uint32_t i, gpu_batch_request_t *req,
    gpu_memory_t *m)
{
    const gpu_tensor_t *t = &b->program->tensors[i];
    TRITONBACKEND_State **state = &req->states[i - b->program->input_count];
    int64_t shape[GPU_DIMS_MAX + 1];
    uint32_t dims_count = shape_of(b, i, req, shape);

    TRITONSERVER_Error *err = TRITONBACKEND_StateNew(state, req->handle,
        t->name, t->datatype, shape, dims_count);
    if (err != NULL && !bk_request_in_sequence(req->handle)) {
        *state = NULL;
        bk_err_drop(err);
        return NULL;
    }
    if (err == NULL) {
        err = TRITONBACKEND_StateBuffer(*state, &m->base, m->len, &m->type,
            &m->id);
    }
    return err != NULL ? err : check_memory(m, t);
}

/* Of the request's part; returns the number of dims. */
static uint32_t
shape_of(const gpu_batch_t *b, uint32_t i, const gpu_batch_request_t *req,
    int64_t *shape)
{
    const gpu_tensor_t *t = &b->program->tensors[i];
    bool batching = b->program->rows_most > 0;

    shape[0] = req->rows;
    memcpy(shape + batching, b->shapes[i].dims,
        t->dims_count * sizeof(*shape));
    return t->dims_count + batching;
}

static TRITONSERVER_Error *
check_memory(const gpu_memory_t *m, const gpu_tensor_t *t)
{
    return m->len == 0 || m->base != NULL ? NULL
        : bk_err_new(TRITONSERVER_ERROR_UNAVAILABLE, "output \"%s\" was"
            " given no memory for its %" PRIu64 " bytes", t->name, m->len);
}
