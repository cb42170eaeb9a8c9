/*
 * device.h - tensors in the memory of the GPU that an instance runs on.
 *
 * Owner    The core owns the memory of inputs and outputs.
 * Thread   the instance's.
 * Units    bytes; device_id is a GPU's number, or BK_NO_DEVICE.
 * Errors   UNSUPPORTED: memory of another GPU, in several buffers, or at an
 *          address that the element type does not allow.  The core copies
 *          such inputs to the host first where it knows the backend's name.
 * Route    batch_request -> [device] -> batch -> the runtime
 *
 * Tensors of an instance on the CPU are never on a device: request.h rejects
 * such memory.
 */

#ifndef BK_DEVICE_H
#define BK_DEVICE_H

#include "request.h"

#define BK_NO_DEVICE (-1)

/* The input's data on the GPU device_id, in one piece that a runtime can read;
 * NULL: the input lies on the host. */
BK_CHECK TRITONSERVER_Error *bk_device_input(const bk_input_t *in,
    int32_t device_id, const void **data);

/* Whether the response is known to accept the output on the GPU device_id. */
bool bk_device_accepts(TRITONBACKEND_Request *request, const char *output,
    int32_t device_id);

/* As bk_output_new, but on the GPU device_id if the response accepts that;
 * *on_device: it did. */
BK_CHECK TRITONSERVER_Error *bk_device_output(
    TRITONBACKEND_Response *response, const char *name,
    TRITONSERVER_DataType datatype, const int64_t *shape, uint32_t dims_count,
    uint64_t len_bytes, int32_t device_id, void **data, bool *on_device);

#endif /* BK_DEVICE_H */
