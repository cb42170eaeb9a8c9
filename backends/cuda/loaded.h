/*
 * loaded.h - a model's code and weights on one device.
 *
 * Owner    The caller frees the object from gpu_loaded_new.
 * Thread   new and free: one; then read by the instances of the device.
 * Units    bytes, threads.
 * Errors   INVALID_ARG: no such kernel, or its parameters differ from the
 *          configuration's.  UNSUPPORTED: code that this device or driver
 *          cannot run.  UNAVAILABLE: no memory left.
 * Route    model -> [loaded] -> launch
 */

#ifndef GPU_LOADED_H
#define GPU_LOADED_H

#include "image.h"
#include "program.h"

typedef struct {
    gpu_function_t handle;
    int            threads_most;        /* in a block                        */
    int            shared_most;         /* dynamic, for a launch             */
} gpu_loaded_kernel_t;

typedef struct {
    gpu_device_t        *device;
    gpu_module_t         module;
    gpu_loaded_kernel_t *kernels;       /* by kernel of the program          */
    gpu_ptr_t           *weights;       /* by buffer; 0: scratch memory      */
    uint32_t             buffer_count;
} gpu_loaded_t;

/* Loads the code, and copies the weights to the device.  free(NULL) does
 * nothing. */
BK_CHECK TRITONSERVER_Error *gpu_loaded_new(gpu_loaded_t **out,
    gpu_runtime_t *rt, gpu_device_t *device, const gpu_model_file_t *file,
    const gpu_program_t *program);
void gpu_loaded_free(gpu_loaded_t *l);

#endif /* GPU_LOADED_H */
