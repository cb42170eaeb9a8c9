/*
 * kit_backend.c - a backend on backends/common without a runtime, for kit.c:
 *                 TEXT is the input WORDS as it is, COUNT how many words each
 *                 row has, and the parameter "wrong" spoils what run says.
 */

#include "common/auto_complete.h"
#include "common/entry.h"
#include "common/config_check.h"
#include "common/model_file.h"
#include "common/runner.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    bk_model_config_t config;
    bk_tensors_t      tensors;
    const char       *wrong;
} model_t;

typedef struct {
    const model_t *model;
    bk_runner_t    runner;
} instance_t;

static TRITONSERVER_Error *
tensors_describe(bk_tensors_t *t)
{
    static const int64_t words[] = { -1, -1 }, count[] = { -1, 1 };

    TRITONSERVER_Error *err = bk_tensors_init(t, 1, 0, 2);
    if (err == NULL) {
        err = bk_tensor_set(&t->inputs[0], "WORDS", TRITONSERVER_TYPE_BYTES,
            words, 2);
    }
    if (err == NULL) {
        err = bk_tensor_set(&t->outputs[0], "TEXT", TRITONSERVER_TYPE_BYTES,
            words, 2);
    }
    if (err == NULL) {
        err = bk_tensor_set(&t->outputs[1], "COUNT", TRITONSERVER_TYPE_INT32,
            count, 2);
    }
    if (err == NULL) {
        t->inputs[0].symbol = strdup("n");
        t->outputs[1].symbol = strdup("n");
    }
    return err;
}

static void
model_free(void *model)
{
    model_t *m = model;

    bk_tensors_fini(&m->tensors);
    bk_model_config_fini(&m->config);
    free(m);
}

static TRITONSERVER_Error *
model_setup(model_t *m, TRITONBACKEND_Model *handle)
{
    bool may_complete = false;

    TRITONSERVER_Error *err = bk_model_config_init(&m->config, handle);
    if (err == NULL) {
        err = tensors_describe(&m->tensors);
    }
    if (err == NULL) {
        err = TRITONBACKEND_ModelAutoCompleteConfig(handle, &may_complete);
    }
    if (err == NULL && may_complete && !bk_config_is_complete(&m->config)) {
        err = bk_config_auto_complete(&m->config, &m->tensors, 8, handle);
    }
    if (err == NULL) {
        err = bk_config_check(&m->config, &m->tensors);
    }
    if (err == NULL) {
        bk_tensors_apply_config(&m->tensors, &m->config);
        m->wrong = bk_model_config_parameter(&m->config, "wrong");
        m->wrong = m->wrong != NULL ? m->wrong : "";
    }
    return err;
}

static TRITONSERVER_Error *
model_new(void **out, TRITONBACKEND_Model *handle, void *runtime)
{
    (void) runtime;
    model_t *m = calloc(1, sizeof(*m));

    TRITONSERVER_Error *err = model_setup(m, handle);
    if (err != NULL) {
        model_free(m);
        return err;
    }
    *out = m;
    return NULL;
}

static TRITONSERVER_Error *
run_text(const instance_t *inst, bk_value_t *to, const bk_value_t *from)
{
    const char *wrong = inst->model->wrong;

    to->data = from->data;
    to->len_bytes = from->len_bytes;
    to->dims_count = 2;
    to->dims[0] = from->dims[0];
    to->dims[1] = from->dims[1];
    if (strcmp(wrong, "rows") == 0) {
        to->dims[0]++;

    } else if (strcmp(wrong, "words") == 0) {
        to->dims[1] += 9;

    } else if (strcmp(wrong, "rank") == 0) {
        to->dims_count = BK_MAX_DIMS + 1;

    } else if (strcmp(wrong, "negative") == 0) {
        to->dims[1] = -1;

    } else if (strcmp(wrong, "short") == 0) {
        to->len_bytes--;
    }
    return NULL;
}

static TRITONSERVER_Error *
run_model(void *self, bk_run_t *run)
{
    const instance_t *inst = self;
    const bk_value_t *from = &run->inputs[0];

    if (strcmp(inst->model->wrong, "run") == 0) {
        return bk_err_new(TRITONSERVER_ERROR_UNAVAILABLE, "no run today");
    }
    if (strcmp(inst->model->wrong, "letter") == 0
        && memchr(from->data, 'z', from->len_bytes) != NULL)
    {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "a \"z\"");
    }

    for (uint32_t i = 0; i < run->output_count; i++) {
        bk_value_t *to = &run->outputs[i];

        if (strcmp(to->tensor->name, "TEXT") == 0) {
            TRITONSERVER_Error *err = run_text(inst, to, from);
            if (err != NULL) {
                return err;
            }
            continue;
        }

        /* it is always preallocated, but after a failed run */
        if (!to->preallocated) {
            return bk_err_new(TRITONSERVER_ERROR_INTERNAL, "not preallocated");
        }
        for (int64_t k = 0; k < to->dims[0]; k++) {
            ((int32_t *) to->data)[k] = (int32_t) from->dims[1];
        }
    }
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
instance_new(void **out, TRITONBACKEND_ModelInstance *handle, void *model)
{
    static const bk_runtime_t functions = { .run = run_model };
    model_t *m = model;

    instance_t *inst = calloc(1, sizeof(*inst));
    inst->model = m;
    TRITONSERVER_Error *err = bk_runner_init(&inst->runner, handle,
        &(bk_instance_config_t) { .tensors = &m->tensors,
            .batching = m->config.max_batch_size > 0,
            .device_id = BK_NO_DEVICE }, &functions, inst);
    if (err != NULL) {
        free(inst);
        return err;
    }
    *out = inst;
    return NULL;
}

static TRITONSERVER_Error *
execute(void *instance, TRITONBACKEND_Request **requests, uint32_t count)
{
    instance_t *inst = instance;

    return bk_runner_execute(&inst->runner, requests, count);
}

static TRITONSERVER_Error *
ready(void *instance)
{
    const instance_t *inst = instance;

    return strcmp(inst->model->wrong, "ready") != 0 ? NULL
        : bk_err_new(TRITONSERVER_ERROR_UNAVAILABLE, "not ready");
}

const bk_backend_t bk_backend = {
    .model_new = model_new,
    .model_free = model_free,
    .instance_new = instance_new,
    .instance_free = instance_free,
    .execute = execute,
    .ready = ready,
    .cpu_only = true
};
