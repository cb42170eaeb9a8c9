/*
 * label.c - the backend label: scores become the name of the best class.
 *
 * Owner    a model owns its labels, an instance its texts; both belong to the
 *          core's objects.
 * Thread   labels are read-only after loading; execute on the instance's
 *          thread.
 * Units    none.
 * Errors   INVALID_ARG at load: tensors or labels do not fit.
 * Route    core -> common/entry -> [label] -> common/runner
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/bytes.h"
#include "common/entry.h"
#include "common/path.h"
#include "common/runner.h"

#define LABEL_MAX 65536u        /* bytes of one                              */

typedef struct {
    bk_model_config_t config;
    bk_tensors_t      tensors;      /* scores; label, perhaps score          */
    char            **labels;       /* one a class                           */
    uint64_t          classes;
    size_t            longest;      /* bytes of a label                      */
} model_t;

typedef struct {
    const model_t *model;
    bk_runner_t    runner;
    bk_scratch_t   texts;           /* of all rows, as bytes.h has them      */
    bk_scratch_t   scores;
} instance_t;

static TRITONSERVER_Error *model_new(void **out, TRITONBACKEND_Model *handle,
    void *runtime);
static void model_free(void *model);
static TRITONSERVER_Error *model_setup(model_t *m,
    TRITONBACKEND_Model *handle);
static TRITONSERVER_Error *tensors_check(const bk_model_config_t *c);
static TRITONSERVER_Error *tensors_make(model_t *m);
static TRITONSERVER_Error *labels_read(model_t *m,
    TRITONBACKEND_Model *handle);
static TRITONSERVER_Error *lines_read(model_t *m, FILE *f);
static TRITONSERVER_Error *instance_new(void **out,
    TRITONBACKEND_ModelInstance *handle, void *model);
static void instance_free(void *instance);
static TRITONSERVER_Error *execute(void *instance,
    TRITONBACKEND_Request **requests, uint32_t count);
static TRITONSERVER_Error *run(void *self, bk_run_t *run);
static TRITONSERVER_Error *rows_reserve(instance_t *inst, uint64_t rows);
static uint64_t best_of(const float *scores, uint64_t classes);
static void label_give(instance_t *inst, const float *scores, uint64_t rows,
    bk_value_t *out);
static void score_give(instance_t *inst, const float *scores, uint64_t rows,
    bk_value_t *out);

static const char *const parameters[] = {
    "labels", NULL
};

const bk_backend_t bk_backend = {
    .model_new = model_new,
    .model_free = model_free,
    .instance_new = instance_new,
    .instance_free = instance_free,
    .execute = execute,
    .parameters = parameters,
    .cpu_only = true
};

static const bk_runtime_t functions = { .run = run };

static TRITONSERVER_Error *
model_new(void **out, TRITONBACKEND_Model *handle, void *runtime)
{
    (void) runtime;
    model_t *m = calloc(1, sizeof(*m));
    if (m == NULL) {
        return bk_err_nomem("state of a label model");
    }

    TRITONSERVER_Error *err = model_setup(m, handle);
    if (err != NULL) {
        model_free(m);
        return err;
    }

    *out = m;
    return NULL;
}

static void
model_free(void *model)
{
    model_t *m = model;

    for (uint64_t i = 0; m->labels != NULL && i < m->classes; i++) {
        free(m->labels[i]);
    }
    free(m->labels);
    bk_tensors_fini(&m->tensors);
    bk_model_config_fini(&m->config);
    free(m);
}

static TRITONSERVER_Error *
model_setup(model_t *m, TRITONBACKEND_Model *handle)
{
    TRITONSERVER_Error *err = bk_model_config_init(&m->config, handle);
    if (err != NULL) {
        return err;
    }

    err = tensors_check(&m->config);
    if (err == NULL) {
        m->classes = (uint64_t) m->config.inputs[0].model_dims[0];
        err = labels_read(m, handle);
    }

    return err != NULL ? err : tensors_make(m);
}

static TRITONSERVER_Error *
tensors_check(const bk_model_config_t *c)
{
    if (c->input_count != 1
        || c->inputs[0].datatype != TRITONSERVER_TYPE_FP32
        || c->inputs[0].model_dims_count != 1
        || c->inputs[0].model_dims[0] < 1)
    {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "backend label has"
            " one input, TYPE_FP32 with dims [classes]");
    }

    for (uint32_t i = 0; i < c->output_count; i++) {
        const bk_tensor_config_t *out = &c->outputs[i];
        TRITONSERVER_DataType datatype = i == 0 ? TRITONSERVER_TYPE_BYTES
            : TRITONSERVER_TYPE_FP32;

        if (i > 1 || out->datatype != datatype || out->model_dims_count != 1
            || out->model_dims[0] != 1)
        {
            return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "output '%s':"
                " backend label has the outputs TYPE_STRING (the label) and,"
                " behind it if wanted, TYPE_FP32 (its score), both with dims"
                " [1]", out->name);
        }
    }

    return NULL;
}

static TRITONSERVER_Error *
tensors_make(model_t *m)
{
    const bk_model_config_t *c = &m->config;
    bool batching = c->max_batch_size > 0;

    TRITONSERVER_Error *err = bk_tensors_init(&m->tensors, 1, 0,
        c->output_count);
    if (err == NULL) {
        err = bk_tensor_set_configured(&m->tensors.inputs[0], &c->inputs[0],
            batching);
    }
    for (uint32_t i = 0; err == NULL && i < c->output_count; i++) {
        err = bk_tensor_set_configured(&m->tensors.outputs[i],
            &c->outputs[i], batching);
    }

    return err;
}

/* A line a class, in the model's directory. */
static TRITONSERVER_Error *
labels_read(model_t *m, TRITONBACKEND_Model *handle)
{
    const char *name = bk_model_config_parameter(&m->config, "labels");
    TRITONBACKEND_ArtifactType type;
    const char *directory;
    char *path;

    name = name == NULL ? "labels.txt" : name;
    if (!bk_path_is_inner(name, strlen(name))) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "parameter"
            " \"labels\" is \"%s\"; it must name a file in the model's"
            " directory", name);
    }

    TRITONSERVER_Error *err = TRITONBACKEND_ModelRepository(handle, &type,
        &directory);
    if (err != NULL) {
        return err;
    }
    if (asprintf(&path, "%s/%s", directory, name) < 0) {
        return bk_err_nomem("path of labels");
    }

    FILE *f = fopen(path, "re");
    if (f == NULL) {
        err = bk_err_new(TRITONSERVER_ERROR_NOT_FOUND,
            "cannot open labels: %s", path);
    } else {
        err = lines_read(m, f);
        err = err == NULL ? NULL : bk_err_add(err, "%s", path);
        (void) fclose(f);
    }

    free(path);
    return err;
}

static TRITONSERVER_Error *
lines_read(model_t *m, FILE *f)
{
    char *line = NULL;
    size_t cap = 0;
    uint64_t count = 0;
    ssize_t len;
    TRITONSERVER_Error *err = NULL;

    m->labels = calloc(m->classes, sizeof(*m->labels));
    if (m->labels == NULL) {
        return bk_err_nomem("labels");
    }

    while (err == NULL && (len = getline(&line, &cap, f)) >= 0) {
        len -= len > 0 && line[len - 1] == '\n';
        len -= len > 0 && line[len - 1] == '\r';
        if (count < m->classes) {
            m->labels[count] = strndup(line, (size_t) len);
            err = m->labels[count] == NULL ? bk_err_nomem("labels") : NULL;
        }
        if (len > (ssize_t) LABEL_MAX) {
            err = bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
                "line %" PRIu64 " is longer than %u bytes", count + 1,
                LABEL_MAX);
        }
        m->longest = (size_t) len > m->longest ? (size_t) len : m->longest;
        count++;
    }

    if (err == NULL && count != m->classes) {
        err = bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "%" PRIu64 " lines"
            " for the %" PRIu64 " classes of input '%s'", count, m->classes,
            m->config.inputs[0].name);
    }

    free(line);
    return err;
}

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
        .batching = inst->model->config.max_batch_size > 0,
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
    bk_scratch_fini(&inst->texts);
    bk_scratch_fini(&inst->scores);
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
    const bk_value_t *in = &r->inputs[0];
    uint64_t rows = in->elements / inst->model->classes;

    TRITONSERVER_Error *err = rows_reserve(inst, rows);
    for (uint32_t i = 0; err == NULL && i < r->output_count; i++) {
        bk_value_t *out = &r->outputs[i];

        if (!out->preallocated) {
            out->dims_count = out->tensor->dims_count;
            out->dims[0] = (int64_t) rows;
            out->dims[1] = 1;
        }

        if (out->tensor->datatype == TRITONSERVER_TYPE_BYTES) {
            label_give(inst, in->data, rows, out);
        } else {
            score_give(inst, in->data, rows, out);
        }
    }

    return err;
}

static TRITONSERVER_Error *
rows_reserve(instance_t *inst, uint64_t rows)
{
    size_t each = BK_BYTES_PREFIX + inst->model->longest;

    if (rows > SIZE_MAX / each) {
        return bk_err_nomem("outputs of a batch");
    }

    TRITONSERVER_Error *err = bk_scratch_reserve(&inst->texts, rows * each,
        "outputs of a batch");

    return err != NULL ? err : bk_scratch_reserve(&inst->scores,
        rows * sizeof(float), "outputs of a batch");
}

/* The first of the largest; NaN is no score. */
static uint64_t
best_of(const float *scores, uint64_t classes)
{
    uint64_t best = 0;

    for (uint64_t i = 1; i < classes; i++) {
        if (scores[i] > scores[best] || scores[best] != scores[best]) {
            best = i;
        }
    }

    return best;
}

static void
label_give(instance_t *inst, const float *scores, uint64_t rows,
    bk_value_t *out)
{
    const model_t *m = inst->model;
    char *to = inst->texts.data;

    for (uint64_t i = 0; i < rows; i++) {
        const char *label = m->labels[best_of(scores + i * m->classes,
            m->classes)];
        size_t len = strlen(label);

        bk_bytes_put_len(to, (uint32_t) len);
        memcpy(to + BK_BYTES_PREFIX, label, len);
        to += BK_BYTES_PREFIX + len;
    }

    out->data = inst->texts.data;
    out->len_bytes = (uint64_t) (to - (char *) inst->texts.data);
}

/* To the response's own memory where there is some. */
static void
score_give(instance_t *inst, const float *scores, uint64_t rows,
    bk_value_t *out)
{
    uint64_t classes = inst->model->classes;

    if (!out->preallocated) {
        out->data = inst->scores.data;
    }

    float *to = out->data;
    for (uint64_t i = 0; i < rows; i++) {
        to[i] = scores[i * classes + best_of(scores + i * classes, classes)];
    }
}
