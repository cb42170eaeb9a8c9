/* model_config.c - see model_config.h */

#include "model_config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DIMS 64

static TRITONSERVER_Error *config_load(bk_model_config_t *c,
    TRITONBACKEND_Model *model);
static TRITONSERVER_Error *tensors_load(const bk_json_t *list,
    const char *what, bk_tensor_config_t **out, uint32_t *count);
static TRITONSERVER_Error *tensor_load(const bk_json_t *v, const char *what,
    bk_tensor_config_t *t);
static TRITONSERVER_Error *dims_load(const bk_json_t *list, const char *name,
    int64_t **out, uint32_t *count);
static void tensors_free(bk_tensor_config_t *list, uint32_t count);
static TRITONSERVER_Error *read_int(const char *what, const char *key,
    const char *text, int64_t min, int64_t max, int64_t *value);
static TRITONSERVER_Error *read_bool(const char *what, const char *key,
    const char *text, bool *value);

TRITONSERVER_Error *
bk_model_config_init(bk_model_config_t *c, TRITONBACKEND_Model *model)
{
    *c = (bk_model_config_t) { 0 };

    TRITONSERVER_Error *err = config_load(c, model);
    if (err != NULL) {
        bk_model_config_fini(c);
        return bk_err_add(err, "model configuration");
    }

    return NULL;
}

void
bk_model_config_fini(bk_model_config_t *c)
{
    tensors_free(c->inputs, c->input_count);
    tensors_free(c->outputs, c->output_count);
    bk_batch_tensors_fini(&c->batch);
    bk_sequence_tensors_fini(&c->sequence);
    if (c->root != NULL) {
        bk_json_free(c->root);
    }
    *c = (bk_model_config_t) { 0 };
}

TRITONSERVER_Error *
bk_model_config_update(bk_model_config_t *c, TRITONBACKEND_Model *model)
{
    TRITONSERVER_Message *message = NULL;

    char *text = bk_json_dump(c->root);
    if (text == NULL) {
        return bk_err_nomem("completed model configuration");
    }

    TRITONSERVER_Error *err = TRITONSERVER_MessageNewFromSerializedJson(
        &message, text, strlen(text));
    if (err == NULL) {
        err = TRITONBACKEND_ModelSetConfig(model, 1, message);
        bk_err_drop(TRITONSERVER_MessageDelete(message));
    }

    free(text);
    if (err != NULL) {
        return bk_err_add(err, "completed model configuration");
    }

    bk_model_config_fini(c);
    return bk_model_config_init(c, model);
}

TRITONSERVER_Error *
bk_backend_settings(TRITONBACKEND_Backend *backend, bk_json_t **root,
    const bk_json_t **settings)
{
    TRITONSERVER_Message *message;
    const char *text;
    size_t len;

    /* the core owns this message */
    TRITONSERVER_Error *err = TRITONBACKEND_BackendConfig(backend, &message);
    if (err == NULL) {
        err = TRITONSERVER_MessageSerializeToJson(message, &text, &len);
    }
    if (err != NULL) {
        return err;
    }

    err = bk_json_parse(text, len, root);
    if (err != NULL) {
        return bk_err_add(err, "backend settings");
    }

    *settings = bk_json_member(*root, "cmdline");
    return NULL;
}

TRITONSERVER_Error *
bk_backend_setting_int(const bk_json_t *settings, const char *key, int64_t min,
    int64_t max, int64_t *value)
{
    return read_int("backend setting", key, bk_json_string(
        bk_json_member(settings, key), NULL), min, max, value);
}

TRITONSERVER_Error *
bk_backend_setting_bool(const bk_json_t *settings, const char *key,
    bool *value)
{
    return read_bool("backend setting", key, bk_json_string(
        bk_json_member(settings, key), NULL), value);
}

const char *
bk_model_config_parameter(const bk_model_config_t *c, const char *key)
{
    const bk_json_t *all = bk_json_member(c->root, "parameters");
    const bk_json_t *one = bk_json_member(all, key);

    return bk_json_string(bk_json_member(one, "string_value"), NULL);
}

TRITONSERVER_Error *
bk_model_config_parameter_int(const bk_model_config_t *c, const char *key,
    int64_t min, int64_t max, int64_t *value)
{
    return read_int("parameter", key, bk_model_config_parameter(c, key), min,
        max, value);
}

/* Nothing where text is NULL. */
static TRITONSERVER_Error *
read_int(const char *what, const char *key, const char *text, int64_t min,
    int64_t max, int64_t *value)
{
    if (text == NULL) {
        return NULL;
    }

    char *end;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || n < min || n > max) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "%s \"%s\" is \"%s\"; it must be a whole number from %lld to %lld",
            what, key, text, (long long) min, (long long) max);
    }

    *value = n;
    return NULL;
}

TRITONSERVER_Error *
bk_model_config_parameter_bool(const bk_model_config_t *c, const char *key,
    bool *value)
{
    return read_bool("parameter", key, bk_model_config_parameter(c, key),
        value);
}

/* Likewise. */
static TRITONSERVER_Error *
read_bool(const char *what, const char *key, const char *text, bool *value)
{
    if (text == NULL) {
        return NULL;
    }

    if (strcasecmp(text, "true") == 0 || strcasecmp(text, "on") == 0
        || strcmp(text, "1") == 0)
    {
        *value = true;

    } else if (strcasecmp(text, "false") == 0 || strcasecmp(text, "off") == 0
        || strcmp(text, "0") == 0)
    {
        *value = false;

    } else {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "%s \"%s\" is \"%s\"; it must be true or false", what, key, text);
    }

    return NULL;
}

static TRITONSERVER_Error *
config_load(bk_model_config_t *c, TRITONBACKEND_Model *model)
{
    TRITONSERVER_Message *message = NULL;
    const char *text;
    size_t len;

    TRITONSERVER_Error *err = TRITONBACKEND_ModelConfig(model, 1, &message);
    if (err != NULL) {
        return err;
    }

    err = TRITONSERVER_MessageSerializeToJson(message, &text, &len);
    if (err == NULL) {
        err = bk_json_parse(text, len, &c->root);
    }

    bk_err_drop(TRITONSERVER_MessageDelete(message));
    if (err != NULL) {
        return err;
    }

    c->name = bk_json_string(bk_json_member(c->root, "name"), "");
    c->max_batch_size = bk_json_int(
        bk_json_member(c->root, "max_batch_size"), 0);
    err = tensors_load(bk_json_member(c->root, "input"), "input", &c->inputs,
        &c->input_count);
    if (err != NULL) {
        return err;
    }

    err = tensors_load(bk_json_member(c->root, "output"), "output",
        &c->outputs, &c->output_count);
    if (err == NULL) {
        err = bk_batch_tensors_load(&c->batch, c->root);
    }
    return err != NULL ? err
        : bk_sequence_tensors_load(&c->sequence, c->root);
}

static TRITONSERVER_Error *
tensors_load(const bk_json_t *list, const char *what,
    bk_tensor_config_t **out, uint32_t *count)
{
    size_t n = bk_json_count(list);
    if (n == 0) {
        return NULL;
    }

    bk_tensor_config_t *all = n > UINT32_MAX ? NULL : calloc(n, sizeof(*all));
    if (all == NULL) {
        return bk_err_nomem("tensor configuration");
    }

    *out = all;
    *count = (uint32_t) n;
    for (size_t i = 0; i < n; i++) {
        TRITONSERVER_Error *err = tensor_load(bk_json_at(list, i), what,
            &all[i]);
        if (err != NULL) {
            return err;
        }
    }

    return NULL;
}

static TRITONSERVER_Error *
tensor_load(const bk_json_t *v, const char *what, bk_tensor_config_t *t)
{
    t->name = bk_json_string(bk_json_member(v, "name"), NULL);
    if (t->name == NULL || t->name[0] == '\0') {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "an %s has no name", what);
    }

    const char *type = bk_json_string(bk_json_member(v, "data_type"), "");
    t->datatype = bk_datatype_of_config(type);
    /* a model may complete TYPE_INVALID; the server rejects what is left */
    if (t->datatype == TRITONSERVER_TYPE_INVALID
        && strcmp(type, "TYPE_INVALID") != 0)
    {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "%s \"%s\" has data_type \"%s\"", what, t->name, type);
    }

    TRITONSERVER_Error *err = dims_load(bk_json_member(v, "dims"), t->name,
        &t->dims, &t->dims_count);
    if (err != NULL) {
        return err;
    }

    const bk_json_t *reshape = bk_json_member(v, "reshape");
    const bk_json_t *seen = reshape != NULL ? bk_json_member(reshape, "shape")
        : bk_json_member(v, "dims");
    t->optional = bk_json_bool(bk_json_member(v, "optional"), false);
    t->ragged = bk_json_bool(bk_json_member(v, "allow_ragged_batch"), false);

    return dims_load(seen, t->name, &t->model_dims, &t->model_dims_count);
}

static TRITONSERVER_Error *
dims_load(const bk_json_t *list, const char *name, int64_t **out,
    uint32_t *count)
{
    size_t n = bk_json_count(list);
    if (n > MAX_DIMS) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "tensor \"%s\" has %zu dimensions, more than %d", name, n,
            MAX_DIMS);
    }

    int64_t *dims = calloc(n + 1, sizeof(*dims));
    if (dims == NULL) {
        return bk_err_nomem("tensor dimensions");
    }

    for (size_t i = 0; i < n; i++) {
        dims[i] = bk_json_int(bk_json_at(list, i), 0);
    }

    *out = dims;
    *count = (uint32_t) n;
    return NULL;
}

static void
tensors_free(bk_tensor_config_t *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        free(list[i].dims);
        free(list[i].model_dims);
    }
    free(list);
}
