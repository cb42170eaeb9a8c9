/* model.c - see model.h */

#include "model.h"

#include <math.h>
#include <stdlib.h>

#define MAX_SIDE       16384        /* of an output, pixels                */
#define DEFAULT_PIXELS 16777216     /* of a file: max_pixels               */
#define MAX_PIXELS     268435456    /* that it may say                     */

static TRITONSERVER_Error *model_setup(image_model_t *m,
    TRITONBACKEND_Model *handle);
static TRITONSERVER_Error *form_read(image_model_t *m);
static bool layout_read(picture_form_t *form, const int64_t *dims,
    uint32_t count);
static TRITONSERVER_Error *numbers_read(const bk_model_config_t *c,
    const char *key, uint32_t count, float numbers[3]);
static TRITONSERVER_Error *tensors_make(image_model_t *m);

TRITONSERVER_Error *
image_model_new(void **out, TRITONBACKEND_Model *handle, void *runtime)
{
    (void) runtime;
    image_model_t *m = calloc(1, sizeof(*m));
    if (m == NULL) {
        return bk_err_nomem("state of an image model");
    }

    TRITONSERVER_Error *err = model_setup(m, handle);
    if (err != NULL) {
        image_model_free(m);
        return err;
    }

    *out = m;
    return NULL;
}

void
image_model_free(void *model)
{
    image_model_t *m = model;

    bk_tensors_fini(&m->tensors);
    bk_model_config_fini(&m->config);
    free(m);
}

static TRITONSERVER_Error *
model_setup(image_model_t *m, TRITONBACKEND_Model *handle)
{
    TRITONSERVER_Error *err = bk_model_config_init(&m->config, handle);
    if (err == NULL) {
        err = form_read(m);
    }

    return err != NULL ? err : tensors_make(m);
}

static TRITONSERVER_Error *
form_read(image_model_t *m)
{
    const bk_model_config_t *c = &m->config;
    picture_form_t *form = &m->form;
    int64_t max_pixels = DEFAULT_PIXELS;

    if (c->input_count != 1 || c->output_count != 1) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "backend image has"
            " one input and one output, not %u and %u", c->input_count,
            c->output_count);
    }

    const bk_tensor_config_t *in = &c->inputs[0];
    if (in->datatype != TRITONSERVER_TYPE_BYTES || in->model_dims_count != 1
        || in->model_dims[0] != 1)
    {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "input '%s' must be"
            " TYPE_STRING with dims [1]: a PNG file", in->name);
    }

    const bk_tensor_config_t *out = &c->outputs[0];
    if (out->datatype != TRITONSERVER_TYPE_FP32
        || !layout_read(form, out->model_dims, out->model_dims_count))
    {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "output '%s' must"
            " be TYPE_FP32 with dims [height, width], [channels, height,"
            " width] or [height, width, channels], 1 or 3 channels and at most"
            " %d pixels high and wide", out->name, MAX_SIDE);
    }

    TRITONSERVER_Error *err = bk_model_config_parameter_int(c, "max_pixels",
        1, MAX_PIXELS, &max_pixels);
    form->max_pixels = (uint64_t) max_pixels;
    for (int i = 0; i < 3; i++) {
        form->scale[i] = 1;
    }
    if (err == NULL) {
        err = numbers_read(c, "mean", form->channels, form->mean);
    }
    if (err == NULL) {
        err = numbers_read(c, "scale", form->channels, form->scale);
    }

    return err;
}

static bool
layout_read(picture_form_t *form, const int64_t *dims, uint32_t count)
{
    form->planar = true;
    form->channels = 1;

    if (count == 3 && (dims[0] == 1 || dims[0] == 3)) {
        form->channels = (uint32_t) *dims++;
    } else if (count == 3 && (dims[2] == 1 || dims[2] == 3)) {
        form->channels = (uint32_t) dims[2];
        form->planar = false;
    } else if (count != 2) {
        return false;
    }

    if (dims[0] < 1 || dims[0] > MAX_SIDE || dims[1] < 1
        || dims[1] > MAX_SIDE)
    {
        return false;
    }

    form->height = (uint32_t) dims[0];
    form->width = (uint32_t) dims[1];
    return true;
}

/* One number for all channels, or one for each, with commas between. */
static TRITONSERVER_Error *
numbers_read(const bk_model_config_t *c, const char *key, uint32_t count,
    float numbers[3])
{
    const char *text = bk_model_config_parameter(c, key);
    const char *at = text;
    uint32_t n = 0;

    while (at != NULL && n < 3) {
        char *end;

        numbers[n] = strtof(at, &end);
        if (end == at || !isfinite(numbers[n])
            || (*end != '\0' && *end != ','))
        {
            break;
        }
        n++;
        at = *end == ',' ? end + 1 : NULL;
    }

    if (at != NULL || (text != NULL && n != 1 && n != count)) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "parameter \"%s\" is"
            " \"%s\"; it must be one number, or %u with commas between them",
            key, text, count);
    }

    for (uint32_t i = n; n == 1 && i < 3; i++) {
        numbers[i] = numbers[0];
    }

    return NULL;
}

static TRITONSERVER_Error *
tensors_make(image_model_t *m)
{
    bool batching = m->config.max_batch_size > 0;

    TRITONSERVER_Error *err = bk_tensors_init(&m->tensors, 1, 0, 1);
    if (err == NULL) {
        err = bk_tensor_set_configured(&m->tensors.inputs[0],
            &m->config.inputs[0], batching);
    }
    if (err == NULL) {
        err = bk_tensor_set_configured(&m->tensors.outputs[0],
            &m->config.outputs[0], batching);
    }

    return err;
}
