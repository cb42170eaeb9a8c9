/*
 * image_check.h - whether compiled code ends where it says it does.
 *
 * Owner    nobody: it reads the caller's bytes.
 * Thread   any.
 * Units    bytes.
 * Errors   INVALID_ARG: a cubin or fatbin of which a part is missing, a fatbin
 *          with a compressed cubin, or neither of them nor PTX.
 * Route    image -> [image check] -> driver, which is told no length
 */

#ifndef GPU_IMAGE_CHECK_H
#define GPU_IMAGE_CHECK_H

#include "common/error.h"

/* A zero follows the code, at which the driver's reading of text ends. */
BK_CHECK TRITONSERVER_Error *gpu_image_check(const char *code, size_t len);

#endif /* GPU_IMAGE_CHECK_H */
