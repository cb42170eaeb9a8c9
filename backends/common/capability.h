/*
 * capability.h - the compute capability of a GPU.
 *
 * Owner    The driver's library stays loaded; the core uses it, too.
 * Thread   any.
 * Units    "major.minor", the form of configurations.
 * Errors   UNAVAILABLE: no driver, no such GPU, with the driver's number.
 * Route    model_file -> [capability] -> libcuda.so.1
 */

#ifndef BK_CAPABILITY_H
#define BK_CAPABILITY_H

#include "error.h"

#include <stddef.h>

/* Writes the capability to text.  The driver's library is
 * INFERENCE_CUDA_DRIVER, or libcuda.so.1 if that is not set. */
BK_CHECK TRITONSERVER_Error *bk_capability(int32_t device_id, char *text,
    size_t size);

#endif /* BK_CAPABILITY_H */
