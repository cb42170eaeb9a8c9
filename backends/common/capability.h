/*
 * capability.h - the compute capability of a GPU.
 *
 * Owner    the driver's library stays loaded, as the core has it already.
 * Thread   any.
 * Units    "major.minor", as configurations have it.
 * Errors   UNAVAILABLE: no driver, no such GPU, with the driver's number.
 * Route    model_file -> [capability] -> libcuda.so.1
 */

#ifndef BK_CAPABILITY_H
#define BK_CAPABILITY_H

#include "error.h"

#include <stddef.h>

/* Writes it to text.  The driver is INFERENCE_CUDA_DRIVER, or libcuda.so.1
 * where that is not set. */
BK_CHECK TRITONSERVER_Error *bk_capability(int32_t device_id, char *text,
    size_t size);

#endif /* BK_CAPABILITY_H */
