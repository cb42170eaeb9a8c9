/*
 * gpu_functions.h - opens the CUDA driver's library and finds its functions.
 *
 * Owner    The library stays in the process: threads of the driver run in it.
 * Thread   any.
 * Units    bytes.
 * Errors   A text: this file is also part of a module of the interpreter, which
 *          has no TRITONSERVER_Error.
 * Route    gpu_driver, the python backend's native/driver -> [gpu_functions]
 *
 * The library is INFERENCE_CUDA_DRIVER, or libcuda.so.1.
 */

#ifndef GPU_FUNCTIONS_H
#define GPU_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "gpu_driver_functions.h"

/* false: the reason is in why, of size bytes. */
bool gpu_functions_open(gpu_functions_t *f, char *why, size_t size);

#endif /* GPU_FUNCTIONS_H */
