/* inputs.c - see inputs.h */

#include "inputs.h"

#include "copies.h"

#define ALIGNMENT 16            /* of the widest load of a kernel            */

static TRITONSERVER_Error *find_in_place(const gpu_batch_t *b,
    const bk_input_t *in, gpu_ptr_t *address);
static TRITONSERVER_Error *copy_input(gpu_batch_t *b, const bk_input_t *in,
    gpu_ptr_t to);
static TRITONSERVER_Error *buffer_of(const gpu_batch_t *b,
    const bk_input_t *in, uint32_t index, gpu_memory_t *m);

TRITONSERVER_Error *
gpu_inputs_find(gpu_batch_t *b, const gpu_batch_request_t *reqs, uint32_t count)
{
    for (uint32_t i = 0; i < b->program->input_count; i++) {
        b->addresses[i] = 0;
        if (b->shapes[i].absent || count > 1
            || b->program->writes_inputs)
        {
            continue;
        }

        TRITONSERVER_Error *err = find_in_place(b, &reqs[0].inputs[i],
            &b->addresses[i]);
        if (err != NULL) {
            return bk_err_add(err, "input \"%s\"",
                b->program->tensors[i].name);
        }
    }

    return NULL;
}

TRITONSERVER_Error *
gpu_inputs_copy(gpu_batch_t *b, const gpu_batch_request_t *reqs, uint32_t count)
{
    for (uint32_t i = 0; i < b->program->input_count; i++) {
        gpu_ptr_t to = b->addresses[i];

        for (uint32_t k = 0; k < count && b->needed[i] > 0; k++) {
            TRITONSERVER_Error *err = copy_input(b, &reqs[k].inputs[i], to);
            if (err != NULL) {
                return bk_err_add(err, "input \"%s\"",
                    b->program->tensors[i].name);
            }
            to += reqs[k].inputs[i].len_bytes;
        }
    }

    return NULL;
}

/* *address stays 0 where it cannot be used as it is. */
static TRITONSERVER_Error *
find_in_place(const gpu_batch_t *b, const bk_input_t *in, gpu_ptr_t *address)
{
    gpu_memory_t m;

    if (in->buffer_count != 1 || in->len_bytes == 0) {
        return NULL;
    }

    TRITONSERVER_Error *err = buffer_of(b, in, 0, &m);
    if (err == NULL && gpu_memory_is_on(&m, b->device)
        && m.len == in->len_bytes && (uintptr_t) m.base % ALIGNMENT == 0)
    {
        *address = (gpu_ptr_t) (uintptr_t) m.base;
    }
    return err;
}

static TRITONSERVER_Error *
copy_input(gpu_batch_t *b, const bk_input_t *in, gpu_ptr_t to)
{
    uint64_t left = in->len_bytes;

    for (uint32_t i = 0; i < in->buffer_count; i++) {
        gpu_memory_t m;

        TRITONSERVER_Error *err = buffer_of(b, in, i, &m);
        if (err == NULL && m.len > left) {
            err = bk_err_new(TRITONSERVER_ERROR_INTERNAL,
                "its buffers hold more than its bytes");
        }
        if (err == NULL) {
            err = gpu_copy_in(b->device, to, &m, b->stream);
        }
        if (err != NULL) {
            return err;
        }
        to += m.len;
        left -= m.len;
    }

    return left == 0 ? NULL : bk_err_new(TRITONSERVER_ERROR_INTERNAL,
        "its buffers hold less than its bytes");
}

/* The device's own memory is preferred. */
static TRITONSERVER_Error *
buffer_of(const gpu_batch_t *b, const bk_input_t *in, uint32_t index,
    gpu_memory_t *m)
{
    const void *base = NULL;

    *m = (gpu_memory_t) {
        .type = TRITONSERVER_MEMORY_GPU, .id = b->device->ordinal
    };
    TRITONSERVER_Error *err = TRITONBACKEND_InputBuffer(in->handle, index,
        &base, &m->len, &m->type, &m->id);
    m->base = (void *) base;
    return err;
}
