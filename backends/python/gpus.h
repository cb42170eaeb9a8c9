/*
 * gpus.h - the GPUs whose memory tensors are in: opens the driver, copies.
 *
 * Owner    Reference counted: by the backend, and by each link, which may
 *          outlive it.  The driver is opened for the first tensor on a GPU.
 * Thread   any.
 * Units    bytes.
 * Errors   Errors of the driver.
 * Route    gpu_inputs, gpu_blocks, messages, link -> [gpus] -> driver
 */

#ifndef PY_GPUS_H
#define PY_GPUS_H

#include "../common/gpu_driver.h"
#include "../common/request.h"

typedef struct py_gpus_s py_gpus_t;

/* One reference. */
BK_CHECK TRITONSERVER_Error *py_gpus_new(py_gpus_t **out);
py_gpus_t *py_gpus_ref(py_gpus_t *gpus);
void py_gpus_unref(py_gpus_t *gpus);        /* NULL does nothing             */

/* Finds the device of a GPU; opens the driver at the first call. */
BK_CHECK TRITONSERVER_Error *py_gpus_device(py_gpus_t *gpus, int64_t id,
    gpu_device_t **device);

/* Copies to->len_bytes from memory of any kind to memory of any kind, and
   waits. */
BK_CHECK TRITONSERVER_Error *py_gpus_copy(py_gpus_t *gpus,
    const bk_buffer_t *to, const bk_buffer_t *from);

#endif /* PY_GPUS_H */
