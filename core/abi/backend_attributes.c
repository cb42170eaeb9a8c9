#include "core/abi/backend_attributes.h"

#include <string.h>

#include "core/base/lock.h"

#define ATTRIBUTES_RANK 65

/* Getters of one request may run on several threads, but its arena must not. */
static inf_lock_t input_lock = {
    .mutex = PTHREAD_MUTEX_INITIALIZER, .rank = ATTRIBUTES_RANK
};

static inf_buffer_attributes_t *input_attributes_locked(inf_input_t *in,
    uint32_t index) INF_NEEDS(input_lock);
static void attributes_set(inf_buffer_attributes_t *a,
    const inf_buffer_t *buffer);

TRITONSERVER_Error *
TRITONBACKEND_InputBufferAttributes(TRITONBACKEND_Input *input,
    const uint32_t index, const void **buffer,
    TRITONSERVER_BufferAttributes **buffer_attributes)
{
    inf_input_t *in = inf_as_input(input);

    *buffer = NULL;
    *buffer_attributes = NULL;
    if (index >= in->buffer_count) {
        return NULL;                    /* not an error, as in InputBuffer   */
    }

    inf_lock(&input_lock);
    inf_buffer_attributes_t *a = input_attributes_locked(in, index);
    inf_unlock(&input_lock);
    if (a == NULL) {
        return inf_err_nomem();
    }

    *buffer = in->buffers[index].base;
    *buffer_attributes = inf_abi_as_attributes(a);
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_OutputBufferAttributes(TRITONBACKEND_Output *output,
    TRITONSERVER_BufferAttributes **buffer_attributes)
{
    inf_output_t *out = inf_as_output(output);

    if (out->abi.attributes == NULL) {
        out->abi.attributes = inf_arena_calloc(&out->response->arena, 1,
            sizeof(inf_buffer_attributes_t));
        if (out->abi.attributes == NULL) {
            return inf_err_nomem();
        }
    }

    inf_output_attributes_fill(out);
    *buffer_attributes = inf_abi_as_attributes(out->abi.attributes);
    return NULL;
}

void
inf_output_attributes_fill(inf_output_t *out)
{
    attributes_set(out->abi.attributes, &(inf_buffer_t) {
        .size = out->byte_size,
        .memory_type = out->memory_type,
        .memory_id = out->memory_id,
        .ipc_handle = out->has_ipc_handle ? out->ipc_handle : NULL
    });
}

/* Allocates in the arena only; a buffer always gets the same object. */
static inf_buffer_attributes_t *
input_attributes_locked(inf_input_t *in, uint32_t index)
{
    if (in->abi.attribute_count < in->buffer_count) {
        inf_buffer_attributes_t **all = inf_arena_calloc(in->arena,
            in->buffer_count, sizeof(*all));
        if (all == NULL) {
            return NULL;
        }
        if (in->abi.attribute_count > 0) {
            memcpy(all, in->abi.attributes,
                in->abi.attribute_count * sizeof(*all));
        }
        in->abi.attributes = all;
        in->abi.attribute_count = in->buffer_count;
    }

    if (in->abi.attributes[index] == NULL) {
        inf_buffer_attributes_t *a = inf_arena_calloc(in->arena, 1,
            sizeof(*a));
        if (a == NULL) {
            return NULL;
        }
        attributes_set(a, &in->buffers[index]);
        in->abi.attributes[index] = a;
    }
    return in->abi.attributes[index];
}

static void
attributes_set(inf_buffer_attributes_t *a, const inf_buffer_t *buffer)
{
    a->byte_size = buffer->size;
    a->memory_type = (TRITONSERVER_MemoryType) buffer->memory_type;
    a->memory_id = buffer->memory_id;
    a->has_ipc_handle = buffer->ipc_handle != NULL;
    if (buffer->ipc_handle != NULL) {
        memcpy(a->ipc_handle, buffer->ipc_handle, sizeof(a->ipc_handle));
    }
}
