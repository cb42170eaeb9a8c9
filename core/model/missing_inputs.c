#include "core/model/missing_inputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"

static int by_name(const void *a, const void *b);

inf_err_t *
inf_model_missing_inputs(const inf_model_t *model, const inf_request_t *req,
    const bool *given)
{
    inf_buf_t got, missing;
    const char **names = calloc(req->input_count + (size_t) 1, sizeof(*names));
    if (names == NULL) {
        return inf_err_nomem();
    }

    inf_buf_init(&got);
    inf_buf_init(&missing);

    for (uint32_t i = 0; i < req->input_count; i++) {
        names[i] = req->inputs[i].name;
    }
    qsort(names, req->input_count, sizeof(*names), by_name);
    for (uint32_t i = 0; i < req->input_count; i++) {
        inf_buf_printf(&got, "%s'%s'", i > 0 ? "," : "", names[i]);
    }
    free(names);

    uint32_t count = inf_config_tensors_input_count(model->tensors);
    for (uint32_t i = 0; i < count; i++) {
        const inf_config_tensor_t *t =
            inf_config_tensors_input(model->tensors, i);
        if (!t->optional && !given[i]) {
            inf_buf_printf(&missing, "%s'%s'", missing.len > 0 ? "," : "",
                t->name.data);
        }
    }

    uint32_t need = inf_config_tensors_required_count(model->tensors);
    char expected[64];
    if (need == count) {
        snprintf(expected, sizeof(expected), "%u", need);
    } else {
        snprintf(expected, sizeof(expected), "number of inputs between %u and"
            " %u", need, count);
    }

    inf_err_t *err = inf_err_new(INF_ERR_INVALID_ARG,
        "expected %s%s but got %u inputs for model '%s'. Got input(s)"
        " [%s], but missing required input(s) [%s]. Please provide all"
        " required input(s).", expected, need == count ? " inputs" : "",
        req->input_count, model->name, inf_buf_slice(&got).data,
        inf_buf_slice(&missing).data);

    inf_buf_fini(&got);
    inf_buf_fini(&missing);
    return err;
}

static int
by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *) a, *(const char *const *) b);
}
