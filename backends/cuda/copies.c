/* copies.c - see copies.h */

#include "copies.h"

static TRITONSERVER_Error *between(gpu_device_t *to_device, gpu_ptr_t to,
    gpu_device_t *from_device, gpu_ptr_t from, const gpu_memory_t *m,
    gpu_stream_t stream, gpu_device_t *device);

TRITONSERVER_Error *
gpu_copy_in(gpu_device_t *device, gpu_ptr_t to, const gpu_memory_t *from,
    gpu_stream_t stream)
{
    gpu_device_t *other = device;

    if (from->len == 0) {
        return NULL;
    }
    if (from->type != TRITONSERVER_MEMORY_GPU) {
        return gpu_check(device, device->f->copy_to_device(to, from->base,
            from->len, stream), "cannot copy an input to GPU %d",
            device->ordinal);
    }

    TRITONSERVER_Error *err = gpu_device_get(device->driver, from->id,
        &other);
    return err != NULL ? err : between(device, to, other,
        (gpu_ptr_t) (uintptr_t) from->base, from, stream, device);
}

TRITONSERVER_Error *
gpu_copy_out(gpu_device_t *device, const gpu_memory_t *to, gpu_ptr_t from,
    gpu_stream_t stream)
{
    gpu_device_t *other = device;

    if (to->len == 0) {
        return NULL;
    }
    if (to->type != TRITONSERVER_MEMORY_GPU) {
        return gpu_check(device, device->f->copy_to_host(to->base, from,
            to->len, stream), "cannot copy an output from GPU %d",
            device->ordinal);
    }

    TRITONSERVER_Error *err = gpu_device_get(device->driver, to->id, &other);
    return err != NULL ? err : between(other, (gpu_ptr_t) (uintptr_t) to->base,
        device, from, to, stream, device);
}

bool
gpu_memory_is_on(const gpu_memory_t *m, const gpu_device_t *device)
{
    return m->type == TRITONSERVER_MEMORY_GPU && m->id == device->ordinal;
}

static TRITONSERVER_Error *
between(gpu_device_t *to_device, gpu_ptr_t to, gpu_device_t *from_device,
    gpu_ptr_t from, const gpu_memory_t *m, gpu_stream_t stream,
    gpu_device_t *device)
{
    gpu_result_t rc = to_device == from_device
        ? device->f->copy_on_device(to, from, m->len, stream)
        : device->f->copy_to_peer(to, to_device->context, from,
            from_device->context, m->len, stream);

    return gpu_check(device, rc, "cannot copy from GPU %d to GPU %d",
        from_device->ordinal, to_device->ordinal);
}
