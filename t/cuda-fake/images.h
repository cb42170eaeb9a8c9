/*
 * images.h - text and binaries that modules are made of.
 *
 * Owner    the caller.
 * Thread   any.
 * Units    bytes.
 * Errors   those of the driver; log says more, as its compiler does.
 * Route    cuda_modules.c -> [images]
 */

#ifndef INF_T_FAKE_CUDA_IMAGES_H
#define INF_T_FAKE_CUDA_IMAGES_H

#include "inside.h"

typedef struct {
    const unsigned char *bytes;
    size_t               size;      /* found in them                         */
    char                 log[256];
} image_t;

/* Whether the device takes it. */
result_t read_image(image_t *image, const device_t *device);

/* Fills in the limits and arguments of f, whose name is set; false: the image
   has no such function. */
bool describe(const module_t *m, function_t *f);

#endif /* INF_T_FAKE_CUDA_IMAGES_H */
