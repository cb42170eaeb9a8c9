#include "core/server/log_message.h"

#include <string.h>

#include "core/base/log_stream.h"

#define SETTINGS 6

#define ASKED(kind)                                                          \
INFERENCE__LOG_SETTINGS_REQUEST__SETTING_VALUE__PARAMETER_CHOICE_##kind##_PARAM
#define GIVEN(kind)                                                          \
INFERENCE__LOG_SETTINGS_RESPONSE__SETTING_VALUE__PARAMETER_CHOICE_##kind##_PARAM

typedef Inference__LogSettingsRequest__SettingsEntry  request_entry_t;
typedef Inference__LogSettingsRequest__SettingValue   request_value_t;
typedef Inference__LogSettingsResponse__SettingsEntry entry_t;
typedef Inference__LogSettingsResponse__SettingValue  value_t;

typedef struct {
    bool             info;
    bool             warn;
    bool             error;
    uint32_t         verbose;
    inf_log_format_t format;
} settings_t;

static request_value_t *ask(Inference__LogSettingsRequest *out,
    inf_arena_t *arena, const char *key, int kind);
static char *format_name(inf_log_format_t format);
static settings_t current(void);
static inf_err_t *read_setting(const request_entry_t *e, settings_t *s);
static inf_err_t *read_bool(const request_entry_t *e, bool *out);
static inf_err_t *read_verbose(const request_entry_t *e, uint32_t *out);
static inf_err_t *read_format(const request_entry_t *e,
    inf_log_format_t *out);
static bool is(const request_entry_t *e, int kind);
static value_t *put(Inference__LogSettingsResponse *out, inf_arena_t *arena,
    const char *key);
static bool put_bool(Inference__LogSettingsResponse *out, inf_arena_t *arena,
    const char *key, bool b);
static bool put_text(Inference__LogSettingsResponse *out, inf_arena_t *arena,
    const char *key, const char *text);

inf_err_t *
inf_log_message(const Inference__LogSettingsRequest *q, inf_arena_t *arena,
    Inference__LogSettingsResponse *out)
{
    settings_t s = current();

    for (size_t i = 0; i < q->n_settings; i++) {
        inf_err_t *err = read_setting(q->settings[i], &s);
        if (err != NULL) {
            return err;
        }
    }
    if (q->n_settings > 0) {
        inf_log_set_levels(s.info, s.warn, s.error, (int) s.verbose);
        inf_log_stream_set_format(s.format);
    }

    inference__log_settings_response__init(out);
    out->settings = inf_arena_calloc(arena, SETTINGS, sizeof(entry_t *));
    if (out->settings == NULL
        /* the destination of the core's log is set by nginx or the embedding
           program */
        || !put_text(out, arena, "log_file", "")
        || !put_bool(out, arena, "log_info", s.info)
        || !put_bool(out, arena, "log_warning", s.warn)
        || !put_bool(out, arena, "log_error", s.error))
    {
        return inf_err_nomem();
    }

    value_t *verbose = put(out, arena, "log_verbose_level");
    if (verbose == NULL || !put_text(out, arena, "log_format",
            format_name(s.format)))
    {
        return inf_err_nomem();
    }
    verbose->parameter_choice_case = GIVEN(UINT32);
    verbose->uint32_param = s.verbose;
    return NULL;
}

inf_err_t *
inf_log_message_now(inf_arena_t *arena, Inference__LogSettingsRequest *out)
{
    const settings_t s = current();
    const struct {
        const char *key;
        bool        value;
    } bools[] = {
        { "log_info", s.info }, { "log_warning", s.warn },
        { "log_error", s.error }
    };
    request_value_t *value;

    inference__log_settings_request__init(out);
    out->settings = inf_arena_calloc(arena, SETTINGS,
        sizeof(request_entry_t *));
    if (out->settings == NULL) {
        return inf_err_nomem();
    }

    for (size_t i = 0; i < sizeof(bools) / sizeof(bools[0]); i++) {
        value = ask(out, arena, bools[i].key, ASKED(BOOL));
        if (value == NULL) {
            return inf_err_nomem();
        }
        value->bool_param = bools[i].value;
    }

    value = ask(out, arena, "log_verbose_level", ASKED(UINT32));
    if (value == NULL) {
        return inf_err_nomem();
    }
    value->uint32_param = s.verbose;

    value = ask(out, arena, "log_format", ASKED(STRING));
    if (value == NULL) {
        return inf_err_nomem();
    }
    value->string_param = format_name(s.format);
    return NULL;
}

/* Adds a setting to a request; NULL: out of memory. */
static request_value_t *
ask(Inference__LogSettingsRequest *out, inf_arena_t *arena, const char *key,
    int kind)
{
    request_entry_t *entry = inf_arena_alloc(arena, sizeof(*entry));
    request_value_t *value = inf_arena_alloc(arena, sizeof(*value));
    if (entry == NULL || value == NULL) {
        return NULL;
    }

    inference__log_settings_request__settings_entry__init(entry);
    inference__log_settings_request__setting_value__init(value);
    entry->key = (char *) (uintptr_t) key;
    entry->value = value;
    value->parameter_choice_case = kind;
    out->settings[out->n_settings++] = entry;
    return value;
}

static char *
format_name(inf_log_format_t format)
{
    return (char *) (format == INF_LOG_ISO8601 ? "ISO8601" : "default");
}

static settings_t
current(void)
{
    return (settings_t) {
        .info = inf_log_enabled(INF_LOG_INFO),
        .warn = inf_log_enabled(INF_LOG_WARN),
        .error = inf_log_enabled(INF_LOG_ERROR),
        .verbose = (uint32_t) inf_log_verbose_level(),
        .format = inf_log_stream_format()
    };
}

/* Reads one setting; unknown settings are ignored. */
static inf_err_t *
read_setting(const request_entry_t *e, settings_t *s)
{
    if (strcmp(e->key, "log_file") == 0) {
        return inf_err_new(INF_ERR_UNSUPPORTED, INF_LOG_FILE_FIXED);
    }
    if (strcmp(e->key, "log_info") == 0) {
        return read_bool(e, &s->info);
    }
    if (strcmp(e->key, "log_warning") == 0) {
        return read_bool(e, &s->warn);
    }
    if (strcmp(e->key, "log_error") == 0) {
        return read_bool(e, &s->error);
    }
    if (strcmp(e->key, "log_verbose_level") == 0) {
        return read_verbose(e, &s->verbose);
    }

    return strcmp(e->key, "log_format") == 0 ? read_format(e, &s->format)
        : NULL;
}

static inf_err_t *
read_bool(const request_entry_t *e, bool *out)
{
    if (!is(e, ASKED(BOOL))) {
        return inf_err_new(INF_ERR_INVALID_ARG, "expect boolean for '%s'",
            e->key);
    }

    *out = e->value->bool_param;
    return NULL;
}

static inf_err_t *
read_verbose(const request_entry_t *e, uint32_t *out)
{
    if (!is(e, ASKED(UINT32)) || e->value->uint32_param > INT32_MAX) {
        return inf_err_new(INF_ERR_INVALID_ARG, "expect int32 for '%s'",
            e->key);
    }

    *out = e->value->uint32_param;
    return NULL;
}

static inf_err_t *
read_format(const request_entry_t *e, inf_log_format_t *out)
{
    if (!is(e, ASKED(STRING))) {
        return inf_err_new(INF_ERR_INVALID_ARG, "expect string for '%s'",
            e->key);
    }

    const char *text = e->value->string_param;
    if (strcmp(text, "default") != 0 && strcmp(text, "ISO8601") != 0) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "invalid argument for log_format, got: %s", text);
    }

    *out = strcmp(text, "ISO8601") == 0 ? INF_LOG_ISO8601 : INF_LOG_DEFAULT;
    return NULL;
}

static bool
is(const request_entry_t *e, int kind)
{
    return e->value != NULL && (int) e->value->parameter_choice_case == kind;
}

/* Adds a setting to the answer; NULL: out of memory. */
static value_t *
put(Inference__LogSettingsResponse *out, inf_arena_t *arena, const char *key)
{
    entry_t *entry = inf_arena_alloc(arena, sizeof(*entry));
    value_t *value = inf_arena_alloc(arena, sizeof(*value));
    if (entry == NULL || value == NULL) {
        return NULL;
    }

    inference__log_settings_response__settings_entry__init(entry);
    inference__log_settings_response__setting_value__init(value);
    entry->key = (char *) (uintptr_t) key;
    entry->value = value;
    out->settings[out->n_settings++] = entry;
    return value;
}

static bool
put_bool(Inference__LogSettingsResponse *out, inf_arena_t *arena,
    const char *key, bool b)
{
    value_t *value = put(out, arena, key);
    if (value == NULL) {
        return false;
    }

    value->parameter_choice_case = GIVEN(BOOL);
    value->bool_param = b;
    return true;
}

static bool
put_text(Inference__LogSettingsResponse *out, inf_arena_t *arena,
    const char *key, const char *text)
{
    value_t *value = put(out, arena, key);
    if (value == NULL) {
        return false;
    }

    value->parameter_choice_case = GIVEN(STRING);
    value->string_param = (char *) (uintptr_t) text;
    return true;
}
