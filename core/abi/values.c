/* values.c - versions, names of enums, parameters, buffer attributes. */

#include "core/abi/objects.h"

#include <stdlib.h>
#include <string.h>

TRITONSERVER_Error *
TRITONSERVER_ApiVersion(uint32_t *major, uint32_t *minor)
{
    *major = TRITONSERVER_API_VERSION_MAJOR;
    *minor = TRITONSERVER_API_VERSION_MINOR;
    return NULL;
}

const char *
TRITONSERVER_DataTypeString(TRITONSERVER_DataType datatype)
{
    return inf_datatype_name((uint32_t) datatype);
}

TRITONSERVER_DataType
TRITONSERVER_StringToDataType(const char *dtype)
{
    return (TRITONSERVER_DataType) inf_datatype_parse(dtype, strlen(dtype));
}

uint32_t
TRITONSERVER_DataTypeByteSize(TRITONSERVER_DataType datatype)
{
    return inf_datatype_size((uint32_t) datatype);
}

const char *
TRITONSERVER_MemoryTypeString(TRITONSERVER_MemoryType memtype)
{
    return inf_memory_type_name((inf_memory_type_t) memtype);
}

const char *
TRITONSERVER_ParameterTypeString(TRITONSERVER_ParameterType paramtype)
{
    switch (paramtype) {
    case TRITONSERVER_PARAMETER_STRING:
        return "STRING";
    case TRITONSERVER_PARAMETER_INT:
        return "INT";
    case TRITONSERVER_PARAMETER_BOOL:
        return "BOOL";
    case TRITONSERVER_PARAMETER_DOUBLE:
        return "DOUBLE";
    case TRITONSERVER_PARAMETER_BYTES:
        return "BYTES";
    }

    return "<invalid>";
}

const char *
TRITONSERVER_InstanceGroupKindString(TRITONSERVER_InstanceGroupKind kind)
{
    switch (kind) {
    case TRITONSERVER_INSTANCEGROUPKIND_AUTO:
        return "AUTO";
    case TRITONSERVER_INSTANCEGROUPKIND_CPU:
        return "CPU";
    case TRITONSERVER_INSTANCEGROUPKIND_GPU:
        return "GPU";
    case TRITONSERVER_INSTANCEGROUPKIND_MODEL:
        return "MODEL";
    }

    return "<invalid>";
}

TRITONSERVER_Parameter *
TRITONSERVER_ParameterNew(const char *name,
    const TRITONSERVER_ParameterType type, const void *value)
{
    inf_parameter_t p = { .type = (inf_parameter_type_t) type };
    const char *text = NULL;

    switch (type) {
    case TRITONSERVER_PARAMETER_STRING:
        text = value;
        break;
    case TRITONSERVER_PARAMETER_INT:
        p.i = *(const int64_t *) value;
        break;
    case TRITONSERVER_PARAMETER_BOOL:
        p.b = *(const bool *) value;
        break;
    case TRITONSERVER_PARAMETER_DOUBLE:
        p.d = *(const double *) value;
        break;
    case TRITONSERVER_PARAMETER_BYTES:
    default:
        return NULL;
    }

    size_t name_size = strlen(name) + 1;
    size_t text_size = text != NULL ? strlen(text) + 1 : 0;
    char *block = malloc(sizeof(p) + name_size + text_size);
    if (block == NULL) {
        return NULL;
    }

    p.name = memcpy(block + sizeof(p), name, name_size);
    if (text != NULL) {
        p.text = memcpy(block + sizeof(p) + name_size, text, text_size);
        p.text_len = text_size - 1;
    }
    memcpy(block, &p, sizeof(p));
    return (TRITONSERVER_Parameter *) (void *) block;
}

TRITONSERVER_Parameter *
TRITONSERVER_ParameterBytesNew(const char *name, const void *byte_ptr,
    const uint64_t size)
{
    size_t name_size = strlen(name) + 1;
    inf_parameter_t p = {
        .type = INF_PARAMETER_BYTES,
        .text = byte_ptr,
        .text_len = size
    };

    char *block = malloc(sizeof(p) + name_size);
    if (block == NULL) {
        return NULL;
    }

    p.name = memcpy(block + sizeof(p), name, name_size);
    memcpy(block, &p, sizeof(p));
    return (TRITONSERVER_Parameter *) (void *) block;
}

void
TRITONSERVER_ParameterDelete(TRITONSERVER_Parameter *parameter)
{
    free(parameter);
}

TRITONSERVER_Error *
TRITONSERVER_BufferAttributesNew(
    TRITONSERVER_BufferAttributes **buffer_attributes)
{
    inf_buffer_attributes_t *a = calloc(1, sizeof(*a));
    *buffer_attributes = inf_abi_as_attributes(a);
    return a != NULL ? NULL : inf_err_nomem();
}

TRITONSERVER_Error *
TRITONSERVER_BufferAttributesDelete(
    TRITONSERVER_BufferAttributes *buffer_attributes)
{
    free(buffer_attributes);
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_BufferAttributesSetMemoryTypeId(
    TRITONSERVER_BufferAttributes *buffer_attributes, int64_t memory_type_id)
{
    inf_as_attributes(buffer_attributes)->memory_id = memory_type_id;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_BufferAttributesSetMemoryType(
    TRITONSERVER_BufferAttributes *buffer_attributes,
    TRITONSERVER_MemoryType memory_type)
{
    inf_as_attributes(buffer_attributes)->memory_type = memory_type;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_BufferAttributesSetCudaIpcHandle(
    TRITONSERVER_BufferAttributes *buffer_attributes, void *cuda_ipc_handle)
{
    inf_buffer_attributes_t *a = inf_as_attributes(buffer_attributes);
    a->has_ipc_handle = cuda_ipc_handle != NULL;
    if (a->has_ipc_handle) {
        memcpy(a->ipc_handle, cuda_ipc_handle, sizeof(a->ipc_handle));
    }
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_BufferAttributesSetByteSize(
    TRITONSERVER_BufferAttributes *buffer_attributes, size_t byte_size)
{
    inf_as_attributes(buffer_attributes)->byte_size = byte_size;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_BufferAttributesMemoryTypeId(
    TRITONSERVER_BufferAttributes *buffer_attributes, int64_t *memory_type_id)
{
    *memory_type_id = inf_as_attributes(buffer_attributes)->memory_id;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_BufferAttributesMemoryType(
    TRITONSERVER_BufferAttributes *buffer_attributes,
    TRITONSERVER_MemoryType *memory_type)
{
    *memory_type = inf_as_attributes(buffer_attributes)->memory_type;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_BufferAttributesCudaIpcHandle(
    TRITONSERVER_BufferAttributes *buffer_attributes, void **cuda_ipc_handle)
{
    inf_buffer_attributes_t *a = inf_as_attributes(buffer_attributes);
    *cuda_ipc_handle = a->has_ipc_handle ? a->ipc_handle : NULL;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_BufferAttributesByteSize(
    TRITONSERVER_BufferAttributes *buffer_attributes, size_t *byte_size)
{
    *byte_size = inf_as_attributes(buffer_attributes)->byte_size;
    return NULL;
}
