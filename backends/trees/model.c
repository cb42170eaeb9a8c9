/* model.c - see model.h */

#include "model.h"

#include "common/auto_complete.h"
#include "common/config_check.h"
#include "common/model_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OUTPUT_NAME "output__0"
#define SHAP_NAME   "treeshap_output"

static TRITONSERVER_Error *model_setup(trees_model_t *m,
    TRITONBACKEND_Model *handle);
static TRITONSERVER_Error *find_file(const trees_model_t *m,
    TRITONBACKEND_Model *handle, trees_format_t *format, char **path);
static TRITONSERVER_Error *find_any_file(TRITONBACKEND_Model *handle,
    trees_format_t *format, char **path);
static const bk_tensor_config_t *configured(const trees_model_t *m,
    const char *name);
static void choose_answer(trees_model_t *m);
static TRITONSERVER_Error *list_tensors(trees_model_t *m);
static TRITONSERVER_Error *list_tensor(bk_tensor_t *t, const char *name,
    TRITONSERVER_DataType datatype, uint32_t rows, uint32_t columns);
static void squeeze_answer(trees_model_t *m);
static TRITONSERVER_Error *check_shap(const trees_model_t *m);
static TRITONSERVER_Error *complete(trees_model_t *m,
    TRITONBACKEND_Model *handle);

TRITONSERVER_Error *
trees_model_new(void **out, TRITONBACKEND_Model *handle, void *runtime)
{
    trees_model_t *m = calloc(1, sizeof(*m));
    if (m == NULL) {
        return bk_err_nomem("state of a trees model");
    }

    m->runtime = runtime;
    TRITONSERVER_Error *err = bk_model_config_init(&m->config, handle);
    if (err == NULL) {
        err = model_setup(m, handle);
    }
    if (err != NULL) {
        trees_model_free(m);
        return err;
    }

    *out = m;
    return NULL;
}

void
trees_model_free(void *model)
{
    trees_model_t *m = model;

    bk_tensors_fini(&m->tensors);
    trees_forest_free(m->forest);
    bk_model_config_fini(&m->config);
    free(m);
}

static TRITONSERVER_Error *
model_setup(trees_model_t *m, TRITONBACKEND_Model *handle)
{
    trees_format_t format;
    char *path = NULL;

    TRITONSERVER_Error *err = trees_options_read(&m->options, &m->config);
    if (err == NULL) {
        err = check_shap(m);
    }
    if (err == NULL) {
        err = find_file(m, handle, &format, &path);
    }
    if (err == NULL) {
        err = treelite_load(&m->runtime->treelite, path, format,
            m->options.unknown_fields, &m->forest);
        free(path);
    }
    if (err != NULL) {
        return err;
    }

    choose_answer(m);
    err = list_tensors(m);
    if (err == NULL) {
        err = complete(m, handle);
    }
    if (err == NULL) {
        err = bk_config_check(&m->config, &m->tensors);
    }
    if (err == NULL) {
        bk_tensors_apply_config(&m->tensors, &m->config);
        squeeze_answer(m);
    }
    return err;
}

static TRITONSERVER_Error *
find_file(const trees_model_t *m, TRITONBACKEND_Model *handle,
    trees_format_t *format, char **path)
{
    const char *name = bk_json_string(bk_json_member(m->config.root,
        "default_model_filename"), "");

    *format = m->options.format;
    if (!m->options.has_format && name[0] == '\0') {
        return find_any_file(handle, format, path);
    }
    if (!m->options.has_format && !trees_format_of_name(name, format)) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "the kind of file"
            " \"%s\" is unknown: parameter \"model_type\" says it", name);
    }

    return bk_model_file(handle, &m->config, trees_format_filename(*format),
        path);
}

/* Neither a type nor a name is configured: the first file that is there. */
static TRITONSERVER_Error *
find_any_file(TRITONBACKEND_Model *handle, trees_format_t *format,
    char **path)
{
    char names[256] = "";
    size_t len = 0;

    for (uint32_t i = 0; trees_format_at(i, format); i++) {
        const char *name = trees_format_filename(*format);

        TRITONSERVER_Error *err = bk_version_file(handle, name, path);
        if (err == NULL) {
            return NULL;
        }
        bk_err_drop(err);
        len += len < sizeof(names) ? (size_t) snprintf(names + len,
            sizeof(names) - len, "%s%s", len == 0 ? "" : ", ", name) : 0;
    }

    return bk_err_new(TRITONSERVER_ERROR_NOT_FOUND, "the version's directory"
        " has none of the files %s", names);
}

static const bk_tensor_config_t *
configured(const trees_model_t *m, const char *name)
{
    for (uint32_t i = 0; i < m->config.output_count; i++) {
        if (strcmp(m->config.outputs[i].name, name) == 0) {
            return &m->config.outputs[i];
        }
    }

    return NULL;
}

/* A binary model has one column, unless its configuration asks for two. */
static void
choose_answer(trees_model_t *m)
{
    const bk_tensor_config_t *c = configured(m, OUTPUT_NAME);
    const trees_forest_t *f = m->forest;
    bool task_classes = f->task == TREES_BINARY
        || f->task == TREES_MULTICLASS;
    uint32_t last = c == NULL ? 0 : c->model_dims_count;

    m->answer = (trees_answer_t) {
        .classes = m->options.has_classes ? m->options.classes
            : task_classes,
        .probabilities = m->options.probabilities,
        .thresholded = m->options.has_threshold,
        .threshold = m->options.threshold
    };
    m->answer.both = m->answer.probabilities && f->columns == 1 && last > 0
        && c->model_dims[last - 1] == 2;
}

static TRITONSERVER_Error *
list_tensors(trees_model_t *m)
{
    const trees_forest_t *f = m->forest;
    bk_tensor_t *outputs;
    bool classes = m->answer.classes && !m->answer.probabilities;
    bool plane = f->targets > 1 && f->classes > 1;
    uint32_t rows = plane ? f->targets : 1;

    TRITONSERVER_Error *err = bk_tensors_init(&m->tensors, 1, 0,
        TREES_OUTPUT_COUNT);
    if (err != NULL) {
        return err;
    }

    outputs = m->tensors.outputs;
    err = list_tensor(&m->tensors.inputs[0], "input__0", TRITONSERVER_TYPE_FP32,
        1, f->features);
    if (err == NULL) {
        err = list_tensor(&outputs[TREES_OUTPUT], OUTPUT_NAME,
            TRITONSERVER_TYPE_FP32, classes ? 1 : rows,
            trees_answer_width(f, &m->answer) / (classes ? 1 : rows));
    }
    if (err == NULL) {
        err = list_tensor(&outputs[TREES_RAW], "raw", TRITONSERVER_TYPE_FP32,
            rows, f->columns / rows);
    }
    if (err == NULL) {
        err = list_tensor(&outputs[TREES_LEAF_IDS], "leaf_id",
            TRITONSERVER_TYPE_INT32, 1, f->tree_count);
    }
    if (err == NULL) {
        err = list_tensor(&outputs[TREES_SCORES], "score_per_tree",
            TRITONSERVER_TYPE_FP32, f->leaf_values > 1 ? f->tree_count : 1,
            f->leaf_values > 1 ? f->leaf_values : f->tree_count);
    }
    return err;
}

/* [batch, columns], or [batch, rows, columns] where there are several rows */
static TRITONSERVER_Error *
list_tensor(bk_tensor_t *t, const char *name, TRITONSERVER_DataType datatype,
    uint32_t rows, uint32_t columns)
{
    int64_t dims[3] = { -1, rows, columns };
    uint32_t count = 3;

    if (rows == 1) {
        dims[1] = columns;
        count = 2;
    }

    TRITONSERVER_Error *err = bk_tensor_set(t, name, datatype, dims, count);
    if (err != NULL) {
        return err;
    }

    t->symbol = strdup("batch");
    return t->symbol == NULL ? bk_err_nomem("names of tensors") : NULL;
}

/* Triton's backend answers [batch] where dims are [1]; the configuration has
 * been checked before. */
static void
squeeze_answer(trees_model_t *m)
{
    bk_tensor_t *t = &m->tensors.outputs[TREES_OUTPUT];

    if (m->runtime->fil && t->dims_count == 2 && t->dims[1] == 1) {
        t->dims_count = 1;
    }
}

static TRITONSERVER_Error *
check_shap(const trees_model_t *m)
{
    return configured(m, SHAP_NAME) == NULL ? NULL
        : bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED, "output \"" SHAP_NAME
        "\" is configured, and this backend computes no SHAP values: treelite"
        " has no function for them");
}

/* Of the outputs only the model's own answer is listed. */
static TRITONSERVER_Error *
complete(trees_model_t *m, TRITONBACKEND_Model *handle)
{
    bk_tensors_t tensors = m->tensors;
    bool may_complete = false;

    TRITONSERVER_Error *err = TRITONBACKEND_ModelAutoCompleteConfig(handle,
        &may_complete);
    if (err != NULL || !may_complete || bk_config_is_complete(&m->config)) {
        return err;
    }

    tensors.output_count = TREES_OUTPUT + 1;
    return bk_config_auto_complete(&m->config, &tensors,
        m->runtime->default_max_batch_size, handle);
}
