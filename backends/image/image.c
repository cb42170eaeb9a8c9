/*
 * image.c - the backend image: PNG files become tensors.
 *
 * Owner    an instance belongs to the core's instance object.
 * Thread   execute on the instance's thread.
 * Units    as picture.h.
 * Errors   a file that cannot be read fails its own request: requests run one
 *          by one.
 * Route    core -> common/entry -> [image] -> common/runner -> picture
 */

#include <inttypes.h>
#include <stdlib.h>

#include "common/bytes.h"
#include "common/entry.h"
#include "common/runner.h"
#include "model.h"

typedef struct {
    const image_model_t *model;
    bk_runner_t          runner;
    picture_t            picture;       /* the file at hand                  */
    bk_scratch_t         numbers;       /* of an output with open rows       */
} instance_t;

static TRITONSERVER_Error *instance_new(void **out,
    TRITONBACKEND_ModelInstance *handle, void *model);
static void instance_free(void *instance);
static TRITONSERVER_Error *execute(void *instance,
    TRITONBACKEND_Request **requests, uint32_t count);
static TRITONSERVER_Error *run(void *self, bk_run_t *run);
static TRITONSERVER_Error *output_reserve(instance_t *inst,
    const bk_value_t *in, bk_value_t *out);

static const char *const parameters[] = {
    "mean", "scale", "max_pixels", NULL
};

const bk_backend_t bk_backend = {
    .model_new = image_model_new,
    .model_free = image_model_free,
    .instance_new = instance_new,
    .instance_free = instance_free,
    .execute = execute,
    .parameters = parameters,
    .cpu_only = true
};

static const bk_runtime_t functions = { .run = run };

static TRITONSERVER_Error *
instance_new(void **out, TRITONBACKEND_ModelInstance *handle, void *model)
{
    instance_t *inst = calloc(1, sizeof(*inst));
    if (inst == NULL) {
        return bk_err_nomem("state of an instance");
    }

    inst->model = model;
    const bk_instance_config_t config = {
        .tensors = &inst->model->tensors,
        .device_id = BK_NO_DEVICE
    };
    TRITONSERVER_Error *err = bk_runner_init(&inst->runner, handle, &config,
        &functions, inst);
    if (err != NULL) {
        instance_free(inst);
        return err;
    }

    *out = inst;
    return NULL;
}

static void
instance_free(void *instance)
{
    instance_t *inst = instance;

    bk_runner_fini(&inst->runner);
    picture_fini(&inst->picture);
    bk_scratch_fini(&inst->numbers);
    free(inst);
}

static TRITONSERVER_Error *
execute(void *instance, TRITONBACKEND_Request **requests, uint32_t count)
{
    instance_t *inst = instance;

    return bk_runner_execute(&inst->runner, requests, count);
}

static TRITONSERVER_Error *
run(void *self, bk_run_t *r)
{
    instance_t *inst = self;
    const picture_form_t *form = &inst->model->form;
    const bk_value_t *in = &r->inputs[0];
    size_t each = (size_t) form->height * form->width * form->channels;
    bk_bytes_t files;

    if (r->output_count == 0) {
        return NULL;
    }

    TRITONSERVER_Error *err = output_reserve(inst, in, &r->outputs[0]);
    if (err == NULL) {
        err = bk_bytes_open(&files, "input", in->tensor->name, in->data,
            in->len_bytes, in->elements);
    }

    float *to = r->outputs[0].data;
    for (uint64_t i = 0; err == NULL && i < in->elements; i++) {
        const char *file;
        uint32_t len;

        err = bk_bytes_next(&files, &file, &len);
        if (err == NULL) {
            err = picture_read(&inst->picture, form, file, len,
                to + i * each);
            err = err == NULL ? NULL : bk_err_add(err, "input '%s', element %"
                PRIu64, in->tensor->name, i);
        }
    }

    return err;
}

/* The response's own memory, or the instance's where rows are open. */
static TRITONSERVER_Error *
output_reserve(instance_t *inst, const bk_value_t *in, bk_value_t *out)
{
    const bk_tensor_t *t = out->tensor;

    if (out->preallocated) {
        return NULL;
    }

    out->dims_count = t->dims_count;
    out->elements = in->elements;
    for (uint32_t i = 0; i < t->dims_count; i++) {
        out->dims[i] = t->dims[i] == -1 ? (int64_t) in->elements : t->dims[i];
    }

    if (!bk_elements(out->dims, out->dims_count, &out->elements)
        || out->elements > SIZE_MAX / sizeof(float))
    {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "output '%s' has more elements than can be counted", t->name);
    }

    TRITONSERVER_Error *err = bk_scratch_reserve(&inst->numbers,
        out->elements * sizeof(float), "output of a batch");
    out->data = inst->numbers.data;
    return err;
}
