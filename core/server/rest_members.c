#include "core/server/rest_members.h"

#include <string.h>

#include "core/proto/message_utf8.h"

static inf_err_t *set_field(ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f, const json_t *root);
static bool is_name(const char *field);
static inf_err_t *set_text(char **field, const json_t *value,
    const char *key);

inf_err_t *
inf_rest_members(ProtobufCMessage *m, const json_t *root, inf_slice_t name)
{
    inf_err_t *err = NULL;

    for (unsigned i = 0; err == NULL && i < m->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &m->descriptor->fields[i];
        if (name.len > 0 && is_name(f->name)) {
            err = inf_rest_name((void *) ((char *) m + f->offset), name);
        } else {
            err = set_field(m, f, root);
        }
    }

    return err;
}

static inf_err_t *
set_field(ProtobufCMessage *m, const ProtobufCFieldDescriptor *f,
    const json_t *root)
{
    void *field = (char *) m + f->offset;
    const json_t *value = json_object_get(root, f->name);
    ProtobufCType type = f->label == PROTOBUF_C_LABEL_NONE ? f->type
        : PROTOBUF_C_TYPE_MESSAGE;

    switch (type) {
    case PROTOBUF_C_TYPE_STRING:
        return set_text(field, value, f->name);
    case PROTOBUF_C_TYPE_BOOL:
        return inf_rest_bool(field, value, f->name);
    case PROTOBUF_C_TYPE_UINT64:
        return inf_rest_uint64(field, value, f->name);
    default:
        return inf_err_new(INF_ERR_UNSUPPORTED,
            "'%s' cannot be set by a member of a REST body", f->name);
    }
}

static bool
is_name(const char *field)
{
    return strcmp(field, "name") == 0 || strcmp(field, "model_name") == 0;
}

static inf_err_t *
set_text(char **field, const json_t *value, const char *key)
{
    inf_slice_t text;

    if (!inf_json_doc_string(value, &text)
        || memchr(text.data, '\0', text.len) != NULL)
    {
        return inf_err_new(INF_ERR_INVALID_ARG, INF_NO_STRING
            "'%s' must be a string without a NUL character", key);
    }

    *field = strndup(text.data, text.len);
    return *field != NULL ? NULL : inf_err_nomem();
}

inf_err_t *
inf_rest_bool(protobuf_c_boolean *field, const json_t *value, const char *key)
{
    if (value == NULL) {
        return NULL;
    }
    if (!json_is_boolean(value)) {
        return inf_err_new(INF_ERR_INVALID_ARG, "attempt to access JSON"
            " non-boolean as boolean: '%s' must be a boolean", key);
    }

    *field = json_is_true(value);
    return NULL;
}

inf_err_t *
inf_rest_uint64(uint64_t *field, const json_t *value, const char *key)
{
    return value == NULL || inf_json_doc_uint64(value, field) ? NULL
        : inf_err_new(INF_ERR_INVALID_ARG, "attempt to access JSON"
            " non-unsigned-integer as unsigned-integer: '%s' must be an"
            " integer that is not negative", key);
}

inf_err_t *
inf_rest_name(char **field, inf_slice_t name)
{
    if (memchr(name.data, '\0', name.len) != NULL) {
        return inf_err_new(INF_ERR_INVALID_ARG, "a name holds a NUL"
            " character");
    }
    if (!inf_utf8_valid(name)) {
        return inf_err_new(INF_ERR_INVALID_ARG, "a name is not valid"
            " UTF-8");
    }

    char *copy = strndup(name.data, name.len);
    if (copy == NULL) {
        return inf_err_nomem();
    }

    *field = copy;
    return NULL;
}
