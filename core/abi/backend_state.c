/* backend_state.c - functions of backends on a sequence's states. */

#include "core/abi/objects.h"

#include <stdlib.h>

#include "core/tensor/state.h"

INF_ABI_OBJECT(TRITONBACKEND_State, inf_state_t, as_state)

TRITONSERVER_Error *
TRITONBACKEND_StateNew(TRITONBACKEND_State **state,
    TRITONBACKEND_Request *request, const char *name,
    const TRITONSERVER_DataType datatype, const int64_t *shape,
    const uint32_t dims_count)
{
    const inf_request_t *r = inf_as_request(request);
    *state = NULL;

    if (r->states == NULL) {
        return inf_err_new(INF_ERR_INVALID_ARG, "unable to add state '%s'."
            " State configuration is missing for model '%s'.", name,
            r->model->name);
    }

    inf_state_t *found = inf_states_find(r->states, name);
    if (found == NULL) {
        return inf_err_new(INF_ERR_INVALID_ARG, "state '%s' is not a valid"
            " state name.", name);
    }

    inf_err_t *err = inf_state_describe(found, (inf_datatype_t) datatype,
        shape, dims_count);
    if (err == NULL) {
        *state = inf_abi_as_state(found);
    }
    return err;
}

TRITONSERVER_Error *
TRITONBACKEND_StateUpdate(TRITONBACKEND_State *state)
{
    return inf_state_commit(inf_as_state(state));
}

TRITONSERVER_Error *
TRITONBACKEND_StateBuffer(TRITONBACKEND_State *state, void **buffer,
    const uint64_t buffer_byte_size, TRITONSERVER_MemoryType *memory_type,
    int64_t *memory_type_id)
{
    inf_memory_type_t type = (inf_memory_type_t) *memory_type;

    *buffer = NULL;
    inf_err_t *err = inf_state_reserve(inf_as_state(state), buffer_byte_size,
        &type, memory_type_id, buffer);
    if (err == NULL) {
        *memory_type = (TRITONSERVER_MemoryType) type;
    }
    return err;
}

TRITONSERVER_Error *
TRITONBACKEND_StateBufferAttributes(TRITONBACKEND_State *state,
    TRITONSERVER_BufferAttributes **buffer_attributes)
{
    inf_state_t *s = inf_as_state(state);

    if (s->abi.attributes == NULL) {
        s->abi.attributes = calloc(1, sizeof(inf_buffer_attributes_t));
        if (s->abi.attributes == NULL) {
            return inf_err_nomem();
        }
    }

    const inf_state_buffer_t *b = s->same_buffer ? &s->input : &s->output;
    inf_buffer_attributes_t *a = s->abi.attributes;
    a->byte_size = b->size;
    a->memory_type = (TRITONSERVER_MemoryType) b->memory_type;
    a->memory_id = b->memory_id;
    *buffer_attributes = inf_abi_as_attributes(a);
    return NULL;
}
