/*
 * image.h - the code of a model in a form that a device's driver loads.
 *
 * Owner    The caller frees the code with free().
 * Thread   any; compiling can take seconds.
 * Units    bytes.
 * Errors   The compiler's messages, preceded by the model's file name.
 * Route    loaded -> [image] -> compiler, cache, files
 */

#ifndef GPU_IMAGE_H
#define GPU_IMAGE_H

#include "model_file.h"
#include "runtime.h"

/* Reads the file, and compiles a source file, which may include the *.cuh, *.h
 * and *.hpp files of its directory.  The code is followed by a zero byte.  The
 * caller frees the code even after an error. */
BK_CHECK TRITONSERVER_Error *gpu_image_make(gpu_runtime_t *rt,
    const gpu_model_file_t *file, const char *options,
    const gpu_device_t *device, char **code);

#endif /* GPU_IMAGE_H */
