#include "core/model/wrong_inputs.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"

static inf_err_t *describe(const inf_model_t *model, const char *const *names,
    uint32_t count);
static int by_name(const void *a, const void *b);
static bool is_among(const char *name, const char *const *names,
    uint32_t count);
static void put_name(inf_buf_t *b, const char *name);

inf_err_t *
inf_model_unknown_input(const inf_model_t *model, const inf_request_t *req,
    const char *name)
{
    const inf_config_tensors_t *tensors = model->tensors;

    if (req->input_count < inf_config_tensors_required_count(tensors)
        || req->input_count > inf_config_tensors_input_count(tensors))
    {
        return inf_model_wrong_inputs(model, req);
    }
    return inf_err_because(inf_err_new(INF_ERR_INVALID_ARG, "unexpected"
        " inference input '%s' for model '%s'", name, model->name),
        INF_CAUSE_UNNAMED);
}

inf_err_t *
inf_model_wrong_inputs(const inf_model_t *model, const inf_request_t *req)
{
    const char **names = calloc(req->input_count + (size_t) 1, sizeof(*names));
    if (names == NULL) {
        return inf_err_nomem();
    }

    for (uint32_t i = 0; i < req->input_count; i++) {
        names[i] = req->inputs[i].name;
    }
    qsort(names, req->input_count, sizeof(*names), by_name);
    inf_err_t *err = describe(model, names, req->input_count);
    free(names);
    return err;
}

static inf_err_t *
describe(const inf_model_t *model, const char *const *names, uint32_t count)
{
    const inf_config_tensors_t *tensors = model->tensors;
    uint32_t need = inf_config_tensors_required_count(tensors);
    uint32_t most = inf_config_tensors_input_count(tensors);
    inf_buf_t got, missing, unknown;

    inf_buf_init(&got);
    inf_buf_init(&missing);
    inf_buf_init(&unknown);

    for (uint32_t i = 0; i < count; i++) {
        put_name(&got, names[i]);
        if (inf_config_tensors_find_input(tensors, inf_slice_str(names[i]))
            == NULL)
        {
            put_name(&unknown, names[i]);
        }
    }
    for (uint32_t i = 0; i < most; i++) {
        const inf_config_tensor_t *t = inf_config_tensors_input(tensors, i);
        if (!t->optional && !is_among(t->name.data, names, count)) {
            put_name(&missing, t->name.data);
        }
    }

    char expected[64];
    if (need == most) {
        snprintf(expected, sizeof(expected), "%u inputs", need);
    } else {
        snprintf(expected, sizeof(expected), "number of inputs between %u and"
            " %u", need, most);
    }

    inf_err_t *err = inf_err_new(INF_ERR_INVALID_ARG,
        "expected %s but got %u inputs for model '%s'. Got input(s)"
        " [%s], but missing required input(s) [%s]. Please provide all"
        " required input(s).%s%s%s", expected, count, model->name,
        inf_buf_slice(&got).data, inf_buf_slice(&missing).data,
        unknown.len > 0 ? " The model has no input(s) [" : "",
        inf_buf_slice(&unknown).data, unknown.len > 0 ? "]." : "");

    inf_buf_fini(&got);
    inf_buf_fini(&missing);
    inf_buf_fini(&unknown);
    return err;
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *) a, *(const char *const *) b);
}

static bool
is_among(const char *name, const char *const *names, uint32_t count)
{
    return bsearch(&name, names, count, sizeof(*names), by_name) != NULL;
}

static void
put_name(inf_buf_t *b, const char *name)
{
    inf_buf_printf(b, "%s'%s'", b->len > 0 ? "," : "", name);
}
