/*
 * device.h - tensors in the memory of the GPU that a session runs on.
 *
 * Owner    Memory of inputs and outputs is the core's; a session's binding
 *          holds no tensor between two runs.
 * Thread   the instance's.
 * Units    bytes; rows as in batch.h.
 * Errors   UNSUPPORTED: memory of another GPU, or in several pieces, or at an
 *          address that the element type does not allow: the core copies such
 *          inputs to the host before, by this backend's name.
 * Route    slot -> [device] -> batch -> the library
 *
 * For a session of the CPU nothing lies on a device: common/request rejects
 * such memory by name.
 */

#ifndef ORT_DEVICE_H
#define ORT_DEVICE_H

#include "slot.h"

/* Tensors of one run. */
typedef struct {
    const char **input_names;
    OrtValue   **inputs;
    uint32_t     input_count;
    const char **output_names;
    OrtValue   **outputs;               /* NULL: made by the run, on the CPU */
    uint32_t     output_count;
} ort_run_t;

/* The input's data, if it lies on the session's GPU as the library can read
 * it; NULL: it lies on the host. */
BK_CHECK TRITONSERVER_Error *ort_device_input(const ort_session_t *s,
    const bk_input_t *in, const void **data);

/* Whether the response is known to take that output on the session's GPU. */
bool ort_device_takes(const ort_session_t *s, TRITONBACKEND_Request *request,
    const char *output);

/* As bk_output_new, on the session's GPU if the response takes it there;
 * *memory says where it lies. */
BK_CHECK TRITONSERVER_Error *ort_device_output(const ort_session_t *s,
    TRITONBACKEND_Response *response, const ort_tensor_t *t,
    const int64_t *shape, uint32_t dims_count, uint64_t len_bytes,
    void **data, const OrtMemoryInfo **memory);

/* One run by the session's I/O binding; fills in outputs that were NULL. */
BK_CHECK TRITONSERVER_Error *ort_device_run(const ort_session_t *s,
    const ort_run_t *run);

#endif /* ORT_DEVICE_H */
