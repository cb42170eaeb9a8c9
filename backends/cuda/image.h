/*
 * image.h - the code of a model as a device's driver takes it.
 *
 * Owner    the code is the caller's, for free().
 * Thread   any; compiling takes up to seconds.
 * Units    bytes.
 * Errors   as the compiler's, with the model's file in front.
 * Route    loaded -> [image] -> compiler, cache, files
 */

#ifndef GPU_IMAGE_H
#define GPU_IMAGE_H

#include "model_file.h"
#include "runtime.h"

/* Reads the file, compiles it where it is a source.  Files *.cuh, *.h and
 * *.hpp of its directory may be included.  A zero follows the code, which the
 * caller frees on error, too. */
BK_CHECK TRITONSERVER_Error *gpu_image_make(gpu_runtime_t *rt,
    const gpu_model_file_t *file, const char *options,
    const gpu_device_t *device, char **code);

#endif /* GPU_IMAGE_H */
