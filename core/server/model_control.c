#include "core/server/model_control.h"

#include <stdio.h>
#include <string.h>

#include "core/include/channel.h"
#include "core/proto/message.h"
#include "core/server/archives.h"
#include "core/server/rest_request.h"

static int mode_of(const inf_server_t *server);
static const ProtobufCMessageDescriptor *request_of(uint16_t method);
static inf_err_t *start_load(inf_server_t *server, const ProtobufCMessage *m,
    bool again, inf_lifecycle_done_fn done, void *userp);
static inf_err_t *start_unload(inf_server_t *server,
    const ProtobufCMessage *m, inf_lifecycle_done_fn done, void *userp);
static inf_err_t *add_parameter(inf_override_t *o, const char *key,
    const inf_repository_parameter_t *value);
static inf_err_t *wrong_type(const char *key, const char *expected);

bool
inf_model_control_is_explicit(const inf_server_t *server)
{
    return mode_of(server) == NGINX_INFERENCE__MODEL_CONTROL__EXPLICIT;
}

inf_err_t *
inf_model_control_allowed(const inf_server_t *server)
{
    return inf_model_control_is_explicit(server) ? NULL
        : inf_err_new(INF_ERR_UNAVAILABLE, "explicit model load / unload is"
            " not allowed if polling is enabled%s",
            mode_of(server) == NGINX_INFERENCE__MODEL_CONTROL__POLL ? ""
            : "; inference_model_control is none, not explicit "
              "(inference-server: --model-control-mode=explicit)");
}

static int
mode_of(const inf_server_t *server)
{
    return (int) (atomic_load(&server->control) & ~INF_SERVER_ARCHIVES);
}

inf_err_t *
inf_model_control_name(const char *name)
{
    if (name[strspn(name, " \t\r\n\v\f")] == '\0') {
        return inf_err_new(INF_ERR_INVALID_ARG, "Model name cannot be empty."
            " Please enter a valid name to deploy.");
    }
    if (strcmp(name, "..") == 0 || strchr(name, '/') != NULL) {
        return inf_err_new(INF_ERR_INVALID_ARG, "invalid model name '%s', model"
            " name must not contain path traversal characters", name);
    }

    return NULL;
}

inf_err_t *
inf_model_control_override(const Inference__RepositoryModelLoadRequest *q,
    inf_override_t **out)
{
    inf_override_t *o;

    *out = NULL;
    if (q->n_parameters == 0) {
        return NULL;
    }

    inf_err_t *err = inf_override_new(&o);
    for (size_t i = 0; err == NULL && i < q->n_parameters; i++) {
        const inf_load_entry_t *e = q->parameters[i];
        err = add_parameter(o, e->key, e->value);
    }
    if (err != NULL) {
        inf_override_free(o);
        return err;
    }

    *out = o;
    return NULL;
}

bool
inf_model_control_parameter(const inf_override_t *override, size_t i,
    inf_repository_parameter_t *value, char **key)
{
    if (i == override->file_count) {
        *key = strdup("config");
        value->parameter_choice_case = INF_PARAMETER_CHOICE(STRING);
        value->string_param = override->config;
        return *key != NULL;
    }

    const inf_override_file_t *f = &override->files[i];
    value->parameter_choice_case = INF_PARAMETER_CHOICE(BYTES);
    value->bytes_param.data = (uint8_t *) f->data;
    value->bytes_param.len = f->len;
    if (asprintf(key, INF_FILE_PREFIX "%s", f->path) < 0) {
        *key = NULL;
    }
    return *key != NULL;
}

inf_err_t *
inf_model_control_repository(const char *name)
{
    return name[0] == '\0' ? NULL : inf_err_new(INF_ERR_UNSUPPORTED,
        "'repository_name' specification is not supported");
}

bool
inf_model_control_is_call(uint16_t method)
{
    return request_of(method) != NULL;
}

void
inf_model_control_call(inf_server_t *server, uint16_t method, bool rest,
    bool again, inf_slice_t request, inf_lifecycle_done_fn done, void *userp)
{
    ProtobufCMessage *m;

    inf_err_t *err = rest
        ? inf_rest_request(method, request_of(method), request, &m)
        : inf_message_unpack_request(request_of(method), request, &m);
    if (err != NULL) {
        done(userp, err);
        return;
    }

    switch (method) {
    case INF_METHOD_ARCHIVE_LOAD:
        inf_archive_load(server, (const void *) m, done, userp);
        break;
    case INF_METHOD_ARCHIVE_UNLOAD:
        inf_archive_unload(server, (const void *) m, done, userp);
        break;
    case INF_METHOD_REPOSITORY_MODEL_LOAD:
        err = start_load(server, m, again, done, userp);
        break;
    default:
        err = start_unload(server, m, done, userp);
    }
    inf_message_free(m);
    if (err != NULL) {
        done(userp, err);
    }
}

/* NULL: the method does not load or unload. */
static const ProtobufCMessageDescriptor *
request_of(uint16_t method)
{
    switch (method) {
    case INF_METHOD_REPOSITORY_MODEL_LOAD:
        return &inference__repository_model_load_request__descriptor;
    case INF_METHOD_REPOSITORY_MODEL_UNLOAD:
        return &inference__repository_model_unload_request__descriptor;
    case INF_METHOD_ARCHIVE_LOAD:
        return &nginx_inference__archive_load_request__descriptor;
    case INF_METHOD_ARCHIVE_UNLOAD:
        return &nginx_inference__archive_unload_request__descriptor;
    default:
        return NULL;
    }
}

/* NULL: done is called, now or later. */
static inf_err_t *
start_load(inf_server_t *server, const ProtobufCMessage *m, bool again,
    inf_lifecycle_done_fn done, void *userp)
{
    const Inference__RepositoryModelLoadRequest *q = (const void *) m;
    inf_override_t *override = NULL;

    inf_err_t *err = inf_model_control_repository(q->repository_name);
    if (err == NULL) {
        err = inf_model_control_allowed(server);
    }
    if (err == NULL) {
        err = inf_model_control_name(q->model_name);
    }
    if (err == NULL) {
        err = inf_model_control_override(q, &override);
    }
    if (err == NULL) {
        inf_lifecycle_load_async(server->lifecycle, q->model_name, override,
            again, done, userp);
    }
    return err;
}

static inf_err_t *
start_unload(inf_server_t *server, const ProtobufCMessage *m,
    inf_lifecycle_done_fn done, void *userp)
{
    const Inference__RepositoryModelUnloadRequest *q = (const void *) m;
    bool dependents = false;

    inf_err_t *err = inf_model_control_repository(q->repository_name);
    if (err == NULL) {
        err = inf_model_control_allowed(server);
    }
    for (size_t i = 0; err == NULL && i < q->n_parameters; i++) {
        const inf_unload_entry_t *e = q->parameters[i];
        if (strcmp(e->key, "unload_dependents") != 0) {
            continue;
        }
        if (e->value == NULL
            || e->value->parameter_choice_case != INF_PARAMETER_CHOICE(BOOL))
        {
            return inf_err_new(INF_ERR_INVALID_ARG, "invalid value type for"
                " '%s' parameter, expected bool_param.", e->key);
        }
        dependents = e->value->bool_param;
    }
    if (err == NULL) {
        inf_lifecycle_unload_async(server->lifecycle, q->model_name,
            dependents, done, userp);
    }
    return err;
}

static inf_err_t *
add_parameter(inf_override_t *o, const char *key,
    const inf_repository_parameter_t *value)
{
    int type = value != NULL ? (int) value->parameter_choice_case : 0;

    if (strcmp(key, "config") == 0) {
        return type == INF_PARAMETER_CHOICE(STRING)
            ? inf_override_set_config(o, inf_slice_str(value->string_param))
            : wrong_type(key, "string_param");
    }
    if (strncmp(key, INF_FILE_PREFIX, sizeof(INF_FILE_PREFIX) - 1) == 0) {
        return type == INF_PARAMETER_CHOICE(BYTES)
            ? inf_override_add_file(o, key + sizeof(INF_FILE_PREFIX) - 1,
                inf_slice((const char *) value->bytes_param.data,
                    value->bytes_param.len))
            : wrong_type(key, "bytes_param");
    }

    return inf_err_new(INF_ERR_INVALID_ARG, "unrecognized load parameter"
        " '%s'.", key);
}

static inf_err_t *
wrong_type(const char *key, const char *expected)
{
    return inf_err_new(INF_ERR_INVALID_ARG, "invalid value type for load"
        " parameter '%s', expected %s.", key, expected);
}
