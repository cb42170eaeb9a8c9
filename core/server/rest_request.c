#include "core/server/rest_request.h"

#include <stdlib.h>
#include <string.h>

#include "core/include/channel.h"
#include "core/proto/base64.h"
#include "core/proto/json_doc.h"
#include "core/server/rest_members.h"
#include "core/server/rest_settings.h"
#include "grpc_service.pb-c.h"

#define PARSE_FAILED "failed to parse the request JSON buffer"

static inf_err_t *split(inf_slice_t record, inf_slice_t *body,
    inf_slice_t *name);
static inf_err_t *parse(inf_slice_t body, inf_json_doc_t *doc);
static inf_err_t *parse_error(inf_slice_t body, inf_err_t *err);
static inf_err_t *fill(uint16_t method, const json_t *root, inf_slice_t name,
    ProtobufCMessage *m);
static inf_err_t *fill_settings(uint16_t method, const json_t *root,
    inf_slice_t name, ProtobufCMessage *m);
static inf_err_t *parameters_of(const json_t *root,
    const json_t **parameters);
static inf_err_t *fill_load(Inference__RepositoryModelLoadRequest *q,
    const json_t *root, inf_slice_t name);
static inf_err_t *fill_unload(Inference__RepositoryModelUnloadRequest *q,
    const json_t *root, inf_slice_t name);
static inf_err_t *fill_system(
    Inference__SystemSharedMemoryRegisterRequest *q, const json_t *root,
    inf_slice_t name);
static inf_err_t *fill_cuda(Inference__CudaSharedMemoryRegisterRequest *q,
    const json_t *root, inf_slice_t name);
static inf_err_t *need_member(const json_t *root, const char *key);
static inf_err_t *set_handle(ProtobufCBinaryData *handle, const json_t *raw);
static inf_err_t *new_parameter(const char *key, char **key_copy,
    inf_repository_parameter_t **out);
static inf_err_t *set_parameter(inf_repository_parameter_t *p, const char *key,
    const json_t *value);

inf_err_t *
inf_rest_request(uint16_t method, const ProtobufCMessageDescriptor *desc,
    inf_slice_t record, ProtobufCMessage **out)
{
    inf_json_doc_t doc = { .root = NULL };
    inf_slice_t body = { 0 }, name = { 0 };
    ProtobufCMessage *m = NULL;

    inf_err_t *err = split(record, &body, &name);
    if (err == NULL) {
        err = parse(body, &doc);
    }
    if (err == NULL) {
        err = inf_message_new(desc, &m);
    }
    if (err == NULL) {
        err = fill(method, doc.root, name, m);
    }

    inf_json_doc_fini(&doc);
    if (err != NULL) {
        inf_message_free(m);
        return err;
    }

    *out = m;
    return NULL;
}

/* Splits a record; its fields are checked, since the worker may be broken. */
static inf_err_t *
split(inf_slice_t record, inf_slice_t *body, inf_slice_t *name)
{
    uint32_t len;

    if (record.len >= sizeof(len)) {
        memcpy(&len, record.data + record.len - sizeof(len), sizeof(len));
        if (len <= record.len - sizeof(len)) {
            size_t text = record.len - sizeof(len) - len;
            *body = inf_slice(record.data, text);
            *name = inf_slice(record.data + text, len);
            return NULL;
        }
    }

    return inf_err_new(INF_ERR_INVALID_ARG, "a REST call's record is broken");
}

/* Parses a body; an empty one is an empty object, and doc->root stays NULL. */
static inf_err_t *
parse(inf_slice_t body, inf_json_doc_t *doc)
{
    if (body.len == 0) {
        return NULL;
    }

    inf_err_t *err = inf_json_doc_parse(doc, body,
        INF_JSON_DOC_NO_DUPLICATES);
    if (err != NULL) {
        return parse_error(body, err);
    }

    return json_is_object(doc->root) ? NULL : inf_err_new(INF_ERR_INVALID_ARG,
        "the request's JSON must be an object");
}

/* Takes err. */
static inf_err_t *
parse_error(inf_slice_t body, inf_err_t *err)
{
    size_t at;
    const char *fault = inf_err_code(err) == INF_ERR_INVALID_ARG
        ? inf_json_doc_fault(body, &at) : NULL;

    if (fault == NULL) {
        return inf_err_add(err, PARSE_FAILED);
    }

    inf_err_free(err);
    return inf_err_new(INF_ERR_INVALID_ARG, PARSE_FAILED ": %s at %zu", fault,
        at);
}

static inf_err_t *
fill(uint16_t method, const json_t *root, inf_slice_t name,
    ProtobufCMessage *m)
{
    switch (method) {
    case INF_METHOD_REPOSITORY_INDEX:
        return inf_rest_bool(
            &((Inference__RepositoryIndexRequest *) (void *) m)->ready,
            json_object_get(root, "ready"), "ready");
    case INF_METHOD_REPOSITORY_MODEL_LOAD:
        return fill_load((void *) m, root, name);
    case INF_METHOD_REPOSITORY_MODEL_UNLOAD:
        return fill_unload((void *) m, root, name);
    case INF_METHOD_TRACE_SETTING:
    case INF_METHOD_LOG_SETTINGS:
        return fill_settings(method, root, name, m);
    case INF_METHOD_SYSTEM_SHM_REGISTER:
        return fill_system((void *) m, root, name);
    case INF_METHOD_CUDA_SHM_REGISTER:
        return fill_cuda((void *) m, root, name);
    case INF_METHOD_SYSTEM_SHM_UNREGISTER:
        return inf_rest_name(
            &((Inference__SystemSharedMemoryUnregisterRequest *)
              (void *) m)->name, name);
    case INF_METHOD_CUDA_SHM_UNREGISTER:
        return inf_rest_name(
            &((Inference__CudaSharedMemoryUnregisterRequest *)
              (void *) m)->name, name);
    default:
        return inf_rest_members(m, root, name);
    }
}

/* Fills settings.  Unlike an empty object an empty body is an error. */
static inf_err_t *
fill_settings(uint16_t method, const json_t *root, inf_slice_t name,
    ProtobufCMessage *m)
{
    if (root == NULL) {
        return inf_err_new(INF_ERR_INTERNAL, "failed to parse the request JSON"
            " buffer: The document is empty. at 0");
    }
    if (method == INF_METHOD_LOG_SETTINGS) {
        return inf_rest_log((void *) m, root);
    }

    Inference__TraceSettingRequest *q = (void *) m;
    inf_err_t *err = inf_rest_name(&q->model_name, name);
    return err != NULL ? err : inf_rest_trace(q, root);
}

/* *parameters is NULL without any. */
static inf_err_t *
parameters_of(const json_t *root, const json_t **parameters)
{
    *parameters = json_object_get(root, "parameters");
    return *parameters == NULL || json_is_object(*parameters) ? NULL
        : inf_err_new(INF_ERR_INVALID_ARG, "attempt to get members for"
            " non-object: 'parameters' must be an object");
}

static inf_err_t *
fill_load(Inference__RepositoryModelLoadRequest *q, const json_t *root,
    inf_slice_t name)
{
    const json_t *parameters;
    const char *key;
    json_t *value;

    inf_err_t *err = inf_rest_name(&q->model_name, name);
    if (err == NULL) {
        err = parameters_of(root, &parameters);
    }
    if (err != NULL) {
        return err;
    }

    size_t count = json_object_size(parameters);
    q->parameters = calloc(count + 1, sizeof(inf_load_entry_t *));
    if (q->parameters == NULL) {
        return inf_err_nomem();
    }

    json_object_foreach((json_t *) (uintptr_t) parameters, key, value) {
        ProtobufCMessage *m;
        err = inf_message_new(
    &inference__repository_model_load_request__parameters_entry__descriptor,
            &m);
        if (err != NULL) {
            return err;
        }

        inf_load_entry_t *entry = (void *) m;
        q->parameters[q->n_parameters++] = entry;
        err = new_parameter(key, &entry->key, &entry->value);
        if (err == NULL) {
            err = set_parameter(entry->value, key, value);
        }
        if (err != NULL) {
            return err;
        }
    }

    return NULL;
}

static inf_err_t *
fill_unload(Inference__RepositoryModelUnloadRequest *q, const json_t *root,
    inf_slice_t name)
{
    static const char key[] = "unload_dependents";
    const json_t *parameters = NULL;
    protobuf_c_boolean dependents;
    ProtobufCMessage *m;

    inf_err_t *err = inf_rest_name(&q->model_name, name);
    if (err == NULL) {
        err = parameters_of(root, &parameters);
    }
    const json_t *value = json_object_get(parameters, key);
    if (err == NULL) {
        err = inf_rest_bool(&dependents, value, key);
    }
    if (err != NULL || value == NULL) {
        return err;
    }

    q->parameters = calloc(1, sizeof(inf_unload_entry_t *));
    err = q->parameters == NULL ? inf_err_nomem() : inf_message_new(
    &inference__repository_model_unload_request__parameters_entry__descriptor,
            &m);
    if (err != NULL) {
        return err;
    }

    inf_unload_entry_t *entry = (void *) m;
    q->parameters[q->n_parameters++] = entry;
    err = new_parameter(key, &entry->key, &entry->value);
    if (err == NULL) {
        entry->value->parameter_choice_case = INF_PARAMETER_CHOICE(BOOL);
        entry->value->bool_param = dependents;
    }
    return err;
}

static inf_err_t *
fill_system(Inference__SystemSharedMemoryRegisterRequest *q,
    const json_t *root, inf_slice_t name)
{
    if (name.len == 0) {
        return NULL;                /* the call rejects an empty name        */
    }

    inf_err_t *err = need_member(root, "key");
    if (err == NULL) {
        err = need_member(root, "byte_size");
    }
    return err != NULL ? err : inf_rest_members(&q->base, root, name);
}

static inf_err_t *
fill_cuda(Inference__CudaSharedMemoryRegisterRequest *q, const json_t *root,
    inf_slice_t name)
{
    uint64_t device = 0;

    if (name.len == 0) {
        return NULL;                /* the call rejects an empty name        */
    }

    inf_err_t *err = inf_rest_name(&q->name, name);
    if (err == NULL) {
        err = need_member(root, "raw_handle");
    }
    if (err == NULL) {
        err = set_handle(&q->raw_handle, json_object_get(root, "raw_handle"));
    }
    if (err == NULL) {
        err = need_member(root, "device_id");
    }
    if (err == NULL) {
        err = inf_rest_uint64(&device, json_object_get(root, "device_id"),
            "device_id");
        q->device_id = (int64_t) device;
    }
    if (err == NULL) {
        err = need_member(root, "byte_size");
    }
    return err != NULL ? err : inf_rest_uint64(&q->byte_size,
        json_object_get(root, "byte_size"), "byte_size");
}

static inf_err_t *
need_member(const json_t *root, const char *key)
{
    return json_object_get(root, key) != NULL ? NULL
        : inf_err_new(INF_ERR_INVALID_ARG, "Shared memory register request"
            " has no '%s' field", key);
}

static inf_err_t *
set_handle(ProtobufCBinaryData *handle, const json_t *raw)
{
    inf_slice_t text;

    if (!inf_json_doc_string(json_object_get(raw, "b64"), &text)) {
        return inf_err_new(INF_ERR_INVALID_ARG, "attempt to access"
            " non-existing object member 'b64': 'raw_handle' must be an"
            " object with a string 'b64'");
    }

    handle->data = malloc(inf_base64_room(text.len) + 1);
    if (handle->data == NULL) {
        return inf_err_nomem();
    }
    return inf_base64_decode(text, handle->data, &handle->len) ? NULL
        : inf_err_new(INF_ERR_INVALID_ARG, "'raw_handle' must be a valid"
            " base64 encoded cudaIpcMemHandle_t: its 'b64' is not base64");
}

static inf_err_t *
new_parameter(const char *key, char **key_copy,
    inf_repository_parameter_t **out)
{
    ProtobufCMessage *m;
    char *copy = strdup(key);
    if (copy == NULL) {
        return inf_err_nomem();
    }

    *key_copy = copy;
    inf_err_t *err = inf_message_new(
        &inference__model_repository_parameter__descriptor, &m);
    if (err == NULL) {
        *out = (void *) m;
    }
    return err;
}

/* Sets a parameter; "config" and unknown keys are text, "file:PATH" is
   base64. */
static inf_err_t *
set_parameter(inf_repository_parameter_t *p, const char *key,
    const json_t *value)
{
    inf_slice_t text;

    if (!inf_json_doc_string(value, &text)) {
        return inf_err_new(INF_ERR_INVALID_ARG, INF_NO_STRING
            "load parameter '%s' must be a string", key);
    }

    if (strncmp(key, INF_FILE_PREFIX, sizeof(INF_FILE_PREFIX) - 1) != 0) {
        if (memchr(text.data, '\0', text.len) != NULL) {
            return inf_err_new(INF_ERR_INVALID_ARG,
                "load parameter '%s' holds a NUL character", key);
        }
        char *copy = strndup(text.data, text.len);
        if (copy == NULL) {
            return inf_err_nomem();
        }
        p->parameter_choice_case = INF_PARAMETER_CHOICE(STRING);
        p->string_param = copy;
        return NULL;
    }

    uint8_t *bytes = malloc(inf_base64_room(text.len));
    size_t len;
    if (bytes == NULL) {
        return inf_err_nomem();
    }
    if (!inf_base64_decode(text, bytes, &len)) {
        free(bytes);
        return inf_err_new(INF_ERR_INVALID_ARG,
            "load parameter '%s' is not base64", key);
    }

    p->parameter_choice_case = INF_PARAMETER_CHOICE(BYTES);
    p->bytes_param.data = bytes;
    p->bytes_param.len = len;
    return NULL;
}
