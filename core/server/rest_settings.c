#include "core/server/rest_settings.h"

#include <stdlib.h>
#include <string.h>

#include "core/proto/message.h"
#include "core/server/log_message.h"
#include "core/server/trace_message.h"

#define IS(kind)                                                             \
INFERENCE__LOG_SETTINGS_REQUEST__SETTING_VALUE__PARAMETER_CHOICE_##kind##_PARAM

typedef Inference__TraceSettingRequest__SettingsEntry trace_entry_t;
typedef Inference__TraceSettingRequest__SettingValue  trace_value_t;
typedef Inference__LogSettingsRequest__SettingsEntry  log_entry_t;
typedef Inference__LogSettingsRequest__SettingValue   log_value_t;

static inf_err_t *put_trace(Inference__TraceSettingRequest *q,
    const char *key, const json_t *value);
static inf_err_t *add_text(trace_value_t *to, const char *key,
    const json_t *text);
static inf_err_t *put_log(Inference__LogSettingsRequest *q, const char *key,
    const json_t *value);
static inf_err_t *set_log(log_value_t *to, const char *key,
    const json_t *value);
static inf_err_t *set_format(log_value_t *to, const char *key,
    const json_t *value);
static inf_err_t *new_entry(const ProtobufCMessageDescriptor *entries,
    const ProtobufCMessageDescriptor *values, const char *key,
    ProtobufCMessage **entry, char **name, ProtobufCMessage **value);
static inf_err_t *copy_text(const json_t *value, const char *key,
    char **out);
static inf_err_t *wrong_kind(const char *key, const char *kind);

inf_err_t *
inf_rest_trace(Inference__TraceSettingRequest *q, const json_t *root)
{
    static const char *const keys[] = {
        "trace_level", "trace_rate", "trace_count", "log_frequency"
    };
    const size_t count = sizeof(keys) / sizeof(keys[0]);

    if (json_object_get(root, "trace_file") != NULL) {
        return inf_err_new(INF_ERR_UNSUPPORTED, INF_TRACE_FILE_FIXED);
    }

    q->settings = calloc(count, sizeof(trace_entry_t *));
    if (q->settings == NULL) {
        return inf_err_nomem();
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_object_get(root, keys[i]);
        inf_err_t *err = value != NULL ? put_trace(q, keys[i], value) : NULL;
        if (err != NULL) {
            return err;
        }
    }
    return NULL;
}

/* Adds a trace setting; null is an empty list, which clears it.  An empty
   array of levels, like one of unknown levels, changes nothing. */
static inf_err_t *
put_trace(Inference__TraceSettingRequest *q, const char *key,
    const json_t *value)
{
    bool level = strcmp(key, "trace_level") == 0;
    ProtobufCMessage *m, *setting;
    char *name;

    if (level && json_is_array(value) && json_array_size(value) == 0) {
        return NULL;
    }

    inf_err_t *err = new_entry(
        &inference__trace_setting_request__settings_entry__descriptor,
        &inference__trace_setting_request__setting_value__descriptor, key, &m,
        &name, &setting);
    if (err != NULL) {
        return err;
    }

    trace_entry_t *entry = (void *) m;
    entry->key = name;
    entry->value = (void *) setting;
    q->settings[q->n_settings++] = entry;
    if (json_is_null(value)) {
        return NULL;
    }
    if (level && !json_is_array(value)) {
        return wrong_kind(key, "array");
    }

    size_t count = level ? json_array_size(value) : 1;
    entry->value->value = calloc(count + 1, sizeof(char *));
    if (entry->value->value == NULL) {
        return inf_err_nomem();
    }
    for (size_t i = 0; err == NULL && i < count; i++) {
        err = add_text(entry->value, key, level ? json_array_get(value, i)
            : value);
    }
    return err;
}

static inf_err_t *
add_text(trace_value_t *to, const char *key, const json_t *text)
{
    char *copy;

    inf_err_t *err = copy_text(text, key, &copy);
    if (err == NULL) {
        to->value[to->n_value++] = copy;
    }
    return err;
}

inf_err_t *
inf_rest_log(Inference__LogSettingsRequest *q, const json_t *root)
{
    static const char *const keys[] = {
        "log_info", "log_warning", "log_error", "log_verbose_level",
        "log_format"
    };
    const size_t count = sizeof(keys) / sizeof(keys[0]);
    const json_t *file = json_object_get(root, "log_file");

    if (file != NULL && !json_is_null(file)) {
        return inf_err_new(INF_ERR_UNSUPPORTED, INF_LOG_FILE_FIXED);
    }

    q->settings = calloc(count, sizeof(log_entry_t *));
    if (q->settings == NULL) {
        return inf_err_nomem();
    }
    for (size_t i = 0; i < count; i++) {
        const json_t *value = json_object_get(root, keys[i]);
        inf_err_t *err = value != NULL && !json_is_null(value)
            ? put_log(q, keys[i], value) : NULL;
        if (err != NULL) {
            return err;
        }
    }
    return NULL;
}

static inf_err_t *
put_log(Inference__LogSettingsRequest *q, const char *key,
    const json_t *value)
{
    ProtobufCMessage *m, *setting;
    char *name;

    inf_err_t *err = new_entry(
        &inference__log_settings_request__settings_entry__descriptor,
        &inference__log_settings_request__setting_value__descriptor, key, &m,
        &name, &setting);
    if (err != NULL) {
        return err;
    }

    log_entry_t *entry = (void *) m;
    entry->key = name;
    entry->value = (void *) setting;
    q->settings[q->n_settings++] = entry;
    return set_log(entry->value, key, value);
}

static inf_err_t *
set_log(log_value_t *to, const char *key, const json_t *value)
{
    uint64_t level;

    if (strcmp(key, "log_format") == 0) {
        return set_format(to, key, value);
    }
    if (strcmp(key, "log_verbose_level") != 0) {
        if (!json_is_boolean(value)) {
            return wrong_kind(key, "boolean");
        }
        to->parameter_choice_case = IS(BOOL);
        to->bool_param = json_is_true(value);
        return NULL;
    }

    if (!inf_json_doc_uint64(value, &level) || level > INT32_MAX) {
        return wrong_kind(key, "unsigned-integer");
    }
    to->parameter_choice_case = IS(UINT32);
    to->uint32_param = (uint32_t) level;
    return NULL;
}

static inf_err_t *
set_format(log_value_t *to, const char *key, const json_t *value)
{
    char *copy;

    inf_err_t *err = copy_text(value, key, &copy);
    if (err != NULL) {
        return err;
    }
    if (strcmp(copy, "default") != 0 && strcmp(copy, "ISO8601") != 0) {
        err = inf_err_new(INF_ERR_UNAVAILABLE,
            "invalid argument for --log_format, got: %s", copy);
        free(copy);
        return err;
    }

    to->parameter_choice_case = IS(STRING);
    to->string_param = copy;
    return NULL;
}

/* Creates the three parts of an entry, which the caller joins in the entry's
   type. */
static inf_err_t *
new_entry(const ProtobufCMessageDescriptor *entries,
    const ProtobufCMessageDescriptor *values, const char *key,
    ProtobufCMessage **entry, char **name, ProtobufCMessage **value)
{
    inf_err_t *err = inf_message_new(entries, entry);
    if (err != NULL) {
        return err;
    }

    *name = strdup(key);
    err = *name == NULL ? inf_err_nomem() : inf_message_new(values, value);
    if (err != NULL) {
        free(*name);
        inf_message_free(*entry);
    }
    return err;
}

static inf_err_t *
copy_text(const json_t *value, const char *key, char **out)
{
    inf_slice_t text;

    if (!inf_json_doc_string(value, &text)) {
        return wrong_kind(key, "string");
    }
    if (memchr(text.data, '\0', text.len) != NULL) {
        return inf_err_new(INF_ERR_INVALID_ARG, "setting '%s' holds a NUL"
            " character", key);
    }

    *out = strndup(text.data, text.len);
    return *out != NULL ? NULL : inf_err_nomem();
}

static inf_err_t *
wrong_kind(const char *key, const char *kind)
{
    return inf_err_new(INF_ERR_INTERNAL, "attempt to access JSON non-%s as %s:"
        " setting '%s'", kind, kind, key);
}
