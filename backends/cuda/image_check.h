/*
 * image_check.h - checks that compiled code is not truncated.
 *
 * Owner    nothing is kept.
 * Thread   any.
 * Units    bytes.
 * Errors   INVALID_ARG: a truncated cubin or fatbin, a fatbin with a compressed
 *          cubin, or none of cubin, fatbin and PTX.
 * Route    image -> [image check] -> driver, which gets no length
 */

#ifndef GPU_IMAGE_CHECK_H
#define GPU_IMAGE_CHECK_H

#include "common/error.h"

/* The code must be followed by a zero, where the driver stops reading text. */
BK_CHECK TRITONSERVER_Error *gpu_image_check(const char *code, size_t len);

#endif /* GPU_IMAGE_CHECK_H */
