/*
 * image_check.h - whether compiled code ends where it says it does.
 *
 * Owner    nobody: it reads the caller's bytes.
 * Thread   any.
 * Units    bytes.
 * Errors   INVALID_ARG: a cubin or fatbin of which a part is missing.
 * Route    image -> [image check] -> driver, which is told no length
 */

#ifndef GPU_IMAGE_CHECK_H
#define GPU_IMAGE_CHECK_H

#include "common/error.h"

/* Bytes that are neither cubin nor fatbin are text, and end with a zero. */
BK_CHECK TRITONSERVER_Error *gpu_image_check(const char *code, size_t len);

#endif /* GPU_IMAGE_CHECK_H */
