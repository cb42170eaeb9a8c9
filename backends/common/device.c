/* device.c - see device.h */

#include "device.h"

#include <inttypes.h>

TRITONSERVER_Error *
bk_device_input(const bk_input_t *in, int32_t device_id, const void **data)
{
    uint32_t size = TRITONSERVER_DataTypeByteSize(in->datatype);

    *data = NULL;
    if (device_id == BK_NO_DEVICE) {
        return NULL;
    }

    for (uint32_t i = 0; i < in->buffer_count; i++) {
        bk_buffer_t buffer;

        TRITONSERVER_Error *err = bk_input_buffer(in, i, &buffer);
        if (err != NULL) {
            return err;
        }
        if (buffer.type != TRITONSERVER_MEMORY_GPU || buffer.len_bytes == 0) {
            continue;
        }

        if (buffer.id != device_id) {
            return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
                "input \"%s\" lies in memory of GPU %" PRId64 ", the model's "
                "instance runs on GPU %" PRId32, in->name, buffer.id,
                device_id);
        }
        if (in->buffer_count != 1 || buffer.len_bytes != in->len_bytes
            || size == 0)
        {
            return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
                "input \"%s\" lies in GPU memory in %" PRIu32 " pieces; this "
                "backend reads a whole tensor there", in->name,
                in->buffer_count);
        }
        if ((uintptr_t) buffer.base % size != 0) {
            return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
                "input \"%s\" lies in GPU memory at an address that is no "
                "multiple of the %" PRIu32 " bytes of an element", in->name,
                size);
        }
        *data = buffer.base;
    }

    return NULL;
}

bool
bk_device_accepts(TRITONBACKEND_Request *request, const char *output,
    int32_t device_id)
{
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_GPU;
    int64_t id = device_id;

    if (device_id == BK_NO_DEVICE) {
        return false;
    }

    TRITONSERVER_Error *err = TRITONBACKEND_RequestOutputBufferProperties(
        request, output, NULL, &type, &id);
    if (err != NULL) {                  /* nobody knows: the CPU, most often */
        bk_err_drop(err);
        return false;
    }

    return type == TRITONSERVER_MEMORY_GPU && id == device_id;
}

TRITONSERVER_Error *
bk_device_output(TRITONBACKEND_Response *response, const char *name,
    TRITONSERVER_DataType datatype, const int64_t *shape, uint32_t dims_count,
    uint64_t len_bytes, int32_t device_id, void **data, bool *on_device)
{
    bk_buffer_t buffer = {
        .len_bytes = len_bytes, .type = TRITONSERVER_MEMORY_GPU,
        .id = device_id
    };

    *on_device = false;
    if (device_id == BK_NO_DEVICE) {
        return bk_output_new(response, name, datatype, shape, dims_count,
            len_bytes, data);
    }

    TRITONSERVER_Error *err = bk_output_buffer(response, name, datatype, shape,
        dims_count, &buffer);
    if (err != NULL) {
        return err;
    }

    *data = buffer.base;
    if (buffer.type != TRITONSERVER_MEMORY_GPU) {
        return NULL;
    }

    if (buffer.id != device_id) {
        return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
            "output \"%s\" was given memory of GPU %" PRId64 ", the model's "
            "instance runs on GPU %" PRId32, name, buffer.id, device_id);
    }

    *on_device = true;
    return NULL;
}
