/* auto_complete.c - see auto_complete.h */

#include "auto_complete.h"

static bool can_batch(const bk_tensors_t *s);
static bool all_open(const bk_tensor_t *list, uint32_t count);
static TRITONSERVER_Error *complete_batching(bk_model_config_t *config,
    const bk_tensors_t *s, int64_t max_batch_size);
static TRITONSERVER_Error *complete_tensors(bk_model_config_t *config,
    const char *key, const bk_tensor_t *list, uint32_t count);
static TRITONSERVER_Error *tensor_to_json(const bk_model_config_t *config,
    const bk_tensor_t *t, bk_json_t **out);
static bool dims_to_json(const bk_model_config_t *config,
    const bk_tensor_t *t, bk_json_t *v);

bool
bk_config_is_complete(const bk_model_config_t *config)
{
    size_t inputs = config->input_count
        + bk_json_count(bk_json_member(config->root, "batch_input"));

    return inputs != 0 && config->output_count != 0;
}

TRITONSERVER_Error *
bk_config_auto_complete(bk_model_config_t *config, const bk_tensors_t *tensors,
    int64_t max_batch_size, TRITONBACKEND_Model *model)
{
    size_t inputs = config->input_count
        + bk_json_count(bk_json_member(config->root, "batch_input"));

    TRITONSERVER_Error *err = complete_batching(config, tensors,
        max_batch_size);
    if (err == NULL && inputs == 0) {
        err = complete_tensors(config, "input", tensors->inputs,
            tensors->required_count);
    }
    if (err == NULL && config->output_count == 0) {
        err = complete_tensors(config, "output", tensors->outputs,
            tensors->output_count);
    }
    if (err != NULL) {
        return err;
    }

    return bk_model_config_update(config, model);
}

static bool
can_batch(const bk_tensors_t *s)
{
    return all_open(s->inputs, s->required_count)
        && all_open(s->outputs, s->output_count);
}

static bool
all_open(const bk_tensor_t *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (list[i].dims_count == 0 || list[i].dims[0] != -1) {
            return false;
        }
    }

    return true;
}

static TRITONSERVER_Error *
complete_batching(bk_model_config_t *config, const bk_tensors_t *s,
    int64_t max_batch_size)
{
    int64_t size = config->max_batch_size;

    if (!can_batch(s)) {
        return size == 0 ? NULL : bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "autofill failed for model '%s': model does not support batching "
            "while non-zero max_batch_size is specified", config->name);
    }

    if (size == 0 && max_batch_size > 0) {
        size = max_batch_size;
        if (!bk_json_set(config->root, "max_batch_size",
            bk_json_new_int(size)))
        {
            return bk_err_nomem("max_batch_size");
        }
        config->max_batch_size = size;
    }

    bool scheduled = bk_json_member(config->root, "dynamic_batching") != NULL
        || bk_json_member(config->root, "sequence_batching") != NULL;
    if (size > 1 && !scheduled && !bk_json_set(config->root,
        "dynamic_batching", bk_json_new_object()))
    {
        return bk_err_nomem("dynamic_batching");
    }

    return NULL;
}

static TRITONSERVER_Error *
complete_tensors(bk_model_config_t *config, const char *key,
    const bk_tensor_t *list, uint32_t count)
{
    bk_json_t *all = bk_json_new_array();
    if (all == NULL || !bk_json_set(config->root, key, all)) {
        return bk_err_nomem(key);
    }

    /* the document owns the list now */
    for (uint32_t i = 0; i < count; i++) {
        bk_json_t *one = NULL;

        if (bk_sequence_has_input(&config->sequence, list[i].name)
            || bk_sequence_has_output(&config->sequence, list[i].name))
        {
            continue;
        }

        TRITONSERVER_Error *err = tensor_to_json(config, &list[i], &one);
        if (err != NULL) {
            return err;
        }

        if (!bk_json_append(all, one)) {
            return bk_err_nomem(key);
        }
    }

    return NULL;
}

static TRITONSERVER_Error *
tensor_to_json(const bk_model_config_t *config, const bk_tensor_t *t,
    bk_json_t **out)
{
    if (t->datatype == TRITONSERVER_TYPE_INVALID) {
        return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
            "cannot complete the configuration: \"%s\" of the model is not a "
            "tensor of a type that requests can carry; list the wanted "
            "outputs in the configuration", t->name);
    }

    bk_json_t *v = bk_json_new_object();
    if (v == NULL) {
        return bk_err_nomem("tensor configuration");
    }

    if (!bk_json_set(v, "name", bk_json_new_string(t->name))
        || !bk_json_set(v, "data_type", bk_json_new_string(
            bk_datatype_to_config(t->datatype)))
        || !dims_to_json(config, t, v))
    {
        bk_json_free(v);
        return bk_err_nomem("tensor configuration");
    }

    *out = v;
    return NULL;
}

/*
 * A configuration cannot say "no dimensions": such a tensor is one element
 * to clients, and with batching the backend sees it without that dimension.
 */
static bool
dims_to_json(const bk_model_config_t *config, const bk_tensor_t *t,
    bk_json_t *v)
{
    bool batching = config->max_batch_size > 0;
    uint32_t first = batching ? 1 : 0;

    bk_json_t *dims = bk_json_new_array();
    if (dims == NULL || !bk_json_set(v, "dims", dims)) {
        return false;
    }

    for (uint32_t i = first; i < t->dims_count; i++) {
        if (!bk_json_append(dims, bk_json_new_int(t->dims[i]))) {
            return false;
        }
    }

    if (t->dims_count > first) {
        return true;
    }

    if (!bk_json_append(dims, bk_json_new_int(1))) {
        return false;
    }

    if (!batching) {
        return true;
    }

    bk_json_t *reshape = bk_json_new_object();
    return reshape != NULL && bk_json_set(v, "reshape", reshape)
        && bk_json_set(reshape, "shape", bk_json_new_array());
}
