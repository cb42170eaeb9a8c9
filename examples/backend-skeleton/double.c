/*
 * double.c - a backend to start from: every output is twice its input.
 *
 * Copy this directory, rename the library, put your own runtime where the
 * numbers are doubled. backends/common, the kit of our own backends, does the
 * rest: it reads and checks requests, batches those that are compatible, splits
 * the outputs, answers and counts. The functions of the server
 * (TRITONBACKEND_..., TRITONSERVER_...) are found in the process that loads
 * the library.
 *
 * A backend has three kinds of objects: the runtime's library (none here), a
 * model, and instances of it, each with a thread of its own. The table at the
 * end says how they are made and freed.
 *
 * Every function returns NULL when it has worked.
 */

#include "common/entry.h"
#include "common/config_check.h"
#include "common/runner.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    bk_model_config_t config;
    bk_tensors_t      tensors;      /* as the model's file would have them   */
} model_t;

typedef struct {
    bk_runner_t runner;
} instance_t;

static TRITONSERVER_Error *model_setup(model_t *m,
    TRITONBACKEND_Model *handle);
static TRITONSERVER_Error *tensors_describe(model_t *m);
static TRITONSERVER_Error *describe(bk_tensor_t *t,
    const bk_tensor_config_t *c, bool batching);
static TRITONSERVER_Error *numbers_double(void *model, bk_run_t *run);
static void numbers_free(void *model, bk_run_t *run);

static const bk_runtime_t functions = {
    .run = numbers_double, .done = numbers_free
};

static void
model_free(void *model)
{
    model_t *m = model;

    bk_tensors_fini(&m->tensors);
    bk_model_config_fini(&m->config);
    free(m);
}

static TRITONSERVER_Error *
model_new(void **out, TRITONBACKEND_Model *handle, void *runtime)
{
    (void) runtime;

    model_t *m = calloc(1, sizeof(*m));
    if (m == NULL) {
        return bk_err_nomem("a model");
    }

    TRITONSERVER_Error *err = model_setup(m, handle);
    if (err != NULL) {
        model_free(m);
        return err;
    }

    *out = m;
    return NULL;
}

/*
 * A backend with a file to load would do so here (bk_model_file says where it
 * is), describe its tensors, and complete a configuration that has none
 * (bk_config_auto_complete).
 */
static TRITONSERVER_Error *
model_setup(model_t *m, TRITONBACKEND_Model *handle)
{
    TRITONSERVER_Error *err = bk_model_config_init(&m->config, handle);
    if (err == NULL) {
        err = tensors_describe(m);
    }
    if (err == NULL) {
        err = bk_config_check(&m->config, &m->tensors);
    }
    if (err == NULL) {
        bk_tensors_apply_config(&m->tensors, &m->config);
    }

    return err;
}

/* There is no file: the tensors are the configured ones. */
static TRITONSERVER_Error *
tensors_describe(model_t *m)
{
    const bk_model_config_t *c = &m->config;
    bool batching = c->max_batch_size > 0;

    if (c->input_count == 0 || c->output_count != c->input_count) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "model \"%s\" needs an output for each input", c->name);
    }

    TRITONSERVER_Error *err = bk_tensors_init(&m->tensors, c->input_count, 0,
        c->output_count);
    for (uint32_t i = 0; err == NULL && i < c->input_count; i++) {
        err = describe(&m->tensors.inputs[i], &c->inputs[i], batching);
        if (err == NULL) {
            err = describe(&m->tensors.outputs[i], &c->outputs[i], batching);
        }
    }

    return err;
}

/* With a first dimension for the batch. Its name, the same in inputs and
 * outputs, says that an output has as many rows as the inputs. */
static TRITONSERVER_Error *
describe(bk_tensor_t *t, const bk_tensor_config_t *c, bool batching)
{
    if (c->datatype != TRITONSERVER_TYPE_FP32) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "\"%s\" is not FP32", c->name);
    }

    TRITONSERVER_Error *err = bk_tensor_set_configured(t, c, batching);
    if (err == NULL && batching) {
        t->symbol = strdup("rows");
        err = t->symbol == NULL ? bk_err_nomem("a tensor") : NULL;
    }

    return err;
}

static TRITONSERVER_Error *
instance_new(void **out, TRITONBACKEND_ModelInstance *handle, void *model)
{
    model_t *m = model;
    const bk_instance_config_t config = {
        .tensors = &m->tensors,
        .batching = m->config.max_batch_size > 0,
        .device_id = BK_NO_DEVICE
    };

    instance_t *inst = calloc(1, sizeof(*inst));
    if (inst == NULL) {
        return bk_err_nomem("an instance");
    }

    TRITONSERVER_Error *err = bk_runner_init(&inst->runner, handle, &config,
        &functions, m);
    if (err != NULL) {
        free(inst);
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
    free(inst);
}

static TRITONSERVER_Error *
execute(void *instance, TRITONBACKEND_Request **requests, uint32_t count)
{
    instance_t *inst = instance;

    return bk_runner_execute(&inst->runner, requests, count);
}

/*
 * The work, on the instance's thread: one call for a batch of any number of
 * requests. run->outputs are those that some request asked for. One whose
 * shape is known is preallocated; of the others we give data and shape, which
 * stay until numbers_free.
 */
static TRITONSERVER_Error *
numbers_double(void *model, bk_run_t *run)
{
    const model_t *m = model;

    for (uint32_t i = 0; i < run->output_count; i++) {
        bk_value_t *to = &run->outputs[i];
        const bk_value_t *from = &run->inputs[to->tensor
            - m->tensors.outputs];

        if (!to->preallocated) {
            to->handle = malloc(from->len_bytes + 1);
            if (to->handle == NULL) {
                return bk_err_nomem("an output");
            }
            to->data = to->handle;
            to->dims_count = from->dims_count;
            memcpy(to->dims, from->dims, from->dims_count * sizeof(*to->dims));

        } else if (to->len_bytes != from->len_bytes) {
            return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
                "output \"%s\" is not as large as input \"%s\"",
                to->tensor->name, from->tensor->name);
        }

        const float *x = from->data;
        float *y = to->data;
        for (uint64_t k = 0; k < from->elements; k++) {
            y[k] = 2 * x[k];
        }
    }

    return NULL;
}

static void
numbers_free(void *model, bk_run_t *run)
{
    (void) model;

    for (uint32_t i = 0; i < run->output_count; i++) {
        free(run->outputs[i].handle);
    }
}

const bk_backend_t bk_backend = {
    .model_new = model_new,
    .model_free = model_free,
    .instance_new = instance_new,
    .instance_free = instance_free,
    .execute = execute,
    .cpu_only = true
};
