/*
 * driver.h - the CUDA driver in the interpreter's process.
 *
 * Owner    the process; the model's libraries have the same driver open.
 * Thread   open: with the interpreter's lock.  The rest: any; those that wait,
 *          without it.
 * Units    bytes; GPUs by their numbers.
 * Errors   the driver's own numbers.
 * Route    device -> [driver] -> libcuda.so.1
 */

#ifndef PY_NATIVE_DRIVER_H
#define PY_NATIVE_DRIVER_H

#include <stdint.h>

#include "../../common/gpu_driver_functions.h"

#define PY_GPUS 64

/* Opens the driver (INFERENCE_CUDA_DRIVER, else libcuda.so.1) and the GPU's
   context, once; NULL: it can be used. */
const char *py_driver_open(int64_t gpu);

/* All these are for a GPU that was opened.  wait: for the stream of work here;
   wait_all: for all that the process does there. */
gpu_result_t py_driver_wait(int gpu);
gpu_result_t py_driver_wait_all(int gpu);

/* Copies within the GPU, or to the CPU, and waits. */
gpu_result_t py_driver_copy(int gpu, gpu_ptr_t to, gpu_ptr_t from,
    uint64_t size);
gpu_result_t py_driver_read(int gpu, void *to, gpu_ptr_t from, uint64_t size);

/* Memory of another process. */
gpu_result_t py_driver_map(int gpu, const uint8_t *handle, gpu_ptr_t *base);
void py_driver_unmap(int gpu, gpu_ptr_t base);

/* The driver's name of an error. */
const char *py_driver_error(gpu_result_t rc);

#endif /* PY_NATIVE_DRIVER_H */
