/* gpu_inputs.c - see gpu_inputs.h */

#include "gpu_inputs.h"

TRITONSERVER_Error *
py_input_copy(py_gpus_t *gpus, const bk_input_t *in, const bk_buffer_t *to)
{
    uint64_t done = 0;

    for (uint32_t i = 0; i < in->buffer_count; i++) {
        bk_buffer_t from;

        TRITONSERVER_Error *err = bk_input_buffer(in, i, &from);
        if (err == NULL && from.len_bytes > in->len_bytes - done) {
            err = bk_err_new(TRITONSERVER_ERROR_INTERNAL,
                "its buffers hold more than its size");
        }
        if (err == NULL && from.len_bytes > 0) {
            err = py_gpus_copy(gpus, &(bk_buffer_t) {
                .base = (char *) to->base + done, .len_bytes = from.len_bytes,
                .type = to->type, .id = to->id }, &from);
        }
        if (err != NULL) {
            return bk_err_add(err, "input \"%s\"", in->name);
        }
        done += from.len_bytes;
    }

    return done == in->len_bytes ? NULL
        : bk_err_new(TRITONSERVER_ERROR_INTERNAL,
            "the buffers of input \"%s\" hold less than its size", in->name);
}

TRITONSERVER_Error *
py_input_view(const bk_input_t *in, const void **data)
{
    bk_buffer_t buffer;

    *data = NULL;
    if (in->buffer_count != 1) {
        return NULL;
    }

    TRITONSERVER_Error *err = bk_input_buffer(in, 0, &buffer);
    if (err == NULL && buffer.type != TRITONSERVER_MEMORY_GPU) {
        err = bk_input_view(in, data);
    }
    return err;
}

TRITONSERVER_Error *
py_input_gpu(const bk_input_t *in, int64_t *gpu)
{
    TRITONSERVER_Error *err = NULL;

    *gpu = -1;
    for (uint32_t i = 0; i < in->buffer_count && err == NULL && *gpu < 0; i++)
    {
        bk_buffer_t buffer;

        err = bk_input_buffer(in, i, &buffer);
        if (err == NULL && buffer.len_bytes > 0
            && buffer.type == TRITONSERVER_MEMORY_GPU)
        {
            *gpu = buffer.id;
        }
    }
    return err;
}
