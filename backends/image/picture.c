/* picture.c - see picture.h */

#include "picture.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>

/* The part of a line of source pixels that lies under one result pixel. */
typedef struct {
    uint32_t first;
    uint32_t last;
    double   first_part;        /* of the pixel at either end, from 0 to 1   */
    double   last_part;
} span_t;

static TRITONSERVER_Error *decode(picture_t *p, const picture_form_t *form,
    png_image *image, const void *file, size_t len);
static TRITONSERVER_Error *reject(const png_image *image);
static void resize(const picture_t *p, const picture_form_t *form,
    const png_image *image, float *to);
static span_t span_of(uint32_t at, uint32_t count, uint32_t source);
static double part_of(const span_t *s, uint32_t at);
static void area_mean(const unsigned char *pixels, uint32_t width,
    uint32_t channels, const span_t *rows, const span_t *columns,
    double mean[3]);

TRITONSERVER_Error *
picture_read(picture_t *p, const picture_form_t *form, const void *file,
    size_t len, float *to)
{
    png_image image = { .version = PNG_IMAGE_VERSION };

    TRITONSERVER_Error *err = decode(p, form, &image, file, len);
    if (err == NULL) {
        resize(p, form, &image, to);
    }

    png_image_free(&image);
    return err;
}

void
picture_fini(picture_t *p)
{
    free(p->pixels);
    *p = (picture_t) { 0 };
}

static TRITONSERVER_Error *
decode(picture_t *p, const picture_form_t *form, png_image *image,
    const void *file, size_t len)
{
    const png_color white = { 255, 255, 255 };

    if (!png_image_begin_read_from_memory(image, file, len)) {
        return reject(image);
    }

    if ((uint64_t) image->width * image->height > form->max_pixels) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "a picture of %"
            PRIu32 " by %" PRIu32 " pixels; max_pixels is %" PRIu64,
            image->width, image->height, form->max_pixels);
    }

    image->format = form->channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
    size_t size = PNG_IMAGE_SIZE(*image);
    if (size > p->cap) {
        unsigned char *pixels = realloc(p->pixels, size);
        if (pixels == NULL) {
            return bk_err_nomem("pixels of a picture");
        }
        p->pixels = pixels;
        p->cap = size;
    }

    if (!png_image_finish_read(image, &white, p->pixels, 0, NULL)) {
        return reject(image);
    }

    return NULL;
}

static TRITONSERVER_Error *
reject(const png_image *image)
{
    return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
        "it cannot be read as a PNG file: %s", image->message);
}

static void
resize(const picture_t *p, const picture_form_t *form, const png_image *image,
    float *to)
{
    size_t plane = (size_t) form->height * form->width;
    size_t step = form->planar ? 1 : form->channels;
    size_t channel_step = form->planar ? plane : 1;

    for (uint32_t y = 0; y < form->height; y++) {
        span_t rows = span_of(y, form->height, image->height);

        for (uint32_t x = 0; x < form->width; x++) {
            span_t columns = span_of(x, form->width, image->width);
            float *number = to + ((size_t) y * form->width + x) * step;
            double mean[3];

            area_mean(p->pixels, image->width, form->channels, &rows,
                &columns, mean);
            for (uint32_t c = 0; c < form->channels; c++) {
                number[c * channel_step] = ((float) (mean[c] / 255)
                    - form->mean[c]) * form->scale[c];
            }
        }
    }
}

/* Under number at of count lie source / count pixels, parts included. */
static span_t
span_of(uint32_t at, uint32_t count, uint32_t source)
{
    double begin = (double) at * source / count;
    double end = (double) (at + 1.0) * source / count;
    uint32_t first = (uint32_t) begin;
    uint32_t last = (uint32_t) ceil(end);

    last = last > source ? source : last;
    last = last > first ? last - 1 : first;
    if (first == last) {
        return (span_t) { first, last, 1, 1 };
    }

    return (span_t) { first, last, first + 1.0 - begin, end - last };
}

static double
part_of(const span_t *s, uint32_t at)
{
    return at == s->first ? s->first_part : at == s->last ? s->last_part : 1;
}

static void
area_mean(const unsigned char *pixels, uint32_t width, uint32_t channels,
    const span_t *rows, const span_t *columns, double mean[3])
{
    double area = 0;

    memset(mean, 0, 3 * sizeof(*mean));
    for (uint32_t y = rows->first; y <= rows->last; y++) {
        const unsigned char *row = pixels + (size_t) y * width * channels;

        for (uint32_t x = columns->first; x <= columns->last; x++) {
            double part = part_of(rows, y) * part_of(columns, x);

            area += part;
            for (uint32_t c = 0; c < channels; c++) {
                mean[c] += part * row[(size_t) x * channels + c];
            }
        }
    }

    for (uint32_t c = 0; c < channels; c++) {
        mean[c] /= area;
    }
}
