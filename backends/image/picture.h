/*
 * picture.h - a PNG file in memory becomes a tensor of numbers.
 *
 * Owner    The pixels of a picture_t are its own until picture_fini; it is used
 *          again for picture after picture and grows to the largest.
 * Thread   one picture_t, one thread.
 * Units    pixels; numbers are (colour - mean) * scale, colour from 0 to 1.
 * Errors   INVALID_ARG: not a PNG file, a broken one, or more pixels than the
 *          form allows.
 * Route    a request's element -> [picture] -> the output tensor
 */

#ifndef IMAGE_PICTURE_H
#define IMAGE_PICTURE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

/* The form of the model's output. */
typedef struct {
    uint32_t height;
    uint32_t width;
    uint32_t channels;          /* 1: grey, 3: red, green, blue              */
    bool     planar;            /* each channel in a plane of its own        */
    float    mean[3];
    float    scale[3];
    uint64_t max_pixels;        /* of a file                                 */
} picture_form_t;

typedef struct {
    unsigned char *pixels;
    size_t         cap;
} picture_t;

/* Decodes file and writes height * width * channels numbers.  A picture of
 * another size is resized: each number is the mean of the area under it.
 * Transparent pixels lie on white. */
BK_CHECK TRITONSERVER_Error *picture_read(picture_t *p,
    const picture_form_t *form, const void *file, size_t len, float *to);
void picture_fini(picture_t *p);

#endif /* IMAGE_PICTURE_H */
