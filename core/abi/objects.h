/*
 * objects.h - the core's object for each opaque ABI type.
 *
 * Owner    that of the object.
 * Thread   that of the object.
 * Units    none.
 * Errors   none: handles are not validated, as the ABI says.
 * Route    exported functions -> [objects] -> the core's functions
 */

#ifndef INF_ABI_OBJECTS_H
#define INF_ABI_OBJECTS_H

#define _COMPILING_TRITONSERVER 1

#include "core/model/model.h"
#include "core/tensor/memory.h"
#include "core/tensor/request.h"
#include "core/tensor/response.h"
#include "triton/core/tritonbackend.h"
#include "triton/core/tritonserver.h"

/* A JSON text, the object of TRITONSERVER_Message. */
typedef struct inf_json_text_s {
    char   *json;           /* NUL-terminated                                */
    size_t  len;
} inf_json_text_t;

/* new copies json; NULL: out of memory. */
inf_json_text_t *inf_json_text_new(const char *json, size_t len);
void inf_json_text_free(inf_json_text_t *message);

typedef struct inf_buffer_attributes_s {
    size_t                byte_size;
    TRITONSERVER_MemoryType memory_type;
    int64_t               memory_id;
    bool                  has_ipc_handle;
    uint8_t               ipc_handle[64];
} inf_buffer_attributes_t;

#define INF_ABI_OBJECT(abi, ours, name)                                      \
    static inline ours *                                                     \
    inf_##name(abi *p)                                                       \
    {                                                                        \
        return (ours *) (void *) p;                                          \
    }                                                                        \
    static inline abi *                                                      \
    inf_abi_##name(ours *p)                                                  \
    {                                                                        \
        return (abi *) (void *) p;                                           \
    }

INF_ABI_OBJECT(TRITONBACKEND_Backend, inf_backend_t, as_backend)
INF_ABI_OBJECT(TRITONBACKEND_MemoryManager, inf_memory_t, as_memory)
INF_ABI_OBJECT(TRITONBACKEND_Model, inf_model_t, as_model)
INF_ABI_OBJECT(TRITONBACKEND_ModelInstance, inf_instance_t, as_instance)
INF_ABI_OBJECT(TRITONBACKEND_Request, inf_request_t, as_request)
INF_ABI_OBJECT(TRITONBACKEND_Input, inf_input_t, as_input)
INF_ABI_OBJECT(TRITONBACKEND_Output, inf_output_t, as_output)
INF_ABI_OBJECT(TRITONBACKEND_Response, inf_response_t, as_response)
INF_ABI_OBJECT(TRITONBACKEND_ResponseFactory, inf_factory_t, as_factory)
INF_ABI_OBJECT(TRITONSERVER_Message, inf_json_text_t, as_message)
INF_ABI_OBJECT(TRITONSERVER_BufferAttributes, inf_buffer_attributes_t,
    as_attributes)
INF_ABI_OBJECT(TRITONSERVER_Parameter, inf_parameter_t, as_parameter)

#endif /* INF_ABI_OBJECTS_H */
