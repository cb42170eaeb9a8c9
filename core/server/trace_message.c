#include "core/server/trace_message.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef Inference__TraceSettingRequest__SettingsEntry request_entry_t;
typedef Inference__TraceSettingRequest__SettingValue  request_value_t;
typedef Inference__TraceSettingResponse__SettingsEntry entry_t;
typedef Inference__TraceSettingResponse__SettingValue  value_t;

/* Settings of an answer, without resources. */
#define SETTINGS_MAX 10

/* State while an answer is built. */
typedef struct {
    inf_arena_t                     *arena;
    Inference__TraceSettingResponse *out;
    bool                             failed;
} answer_t;

static bool put_setting(Inference__TraceSettingRequest *q,
    inf_arena_t *arena, const char *key, const char *one, const char *other);
static const char *number_text(inf_arena_t *arena, int64_t number);
static inf_err_t *read_change(const Inference__TraceSettingRequest *q,
    inf_trace_change_t *c);
static inf_err_t *read_setting(const request_entry_t *e, inf_trace_change_t *c);
static inf_err_t *read_level(const request_value_t *v, inf_trace_change_t *c);
static inf_err_t *read_number(const request_entry_t *e, int64_t min,
    int64_t max, int64_t *out);
static void put_level(answer_t *a, uint32_t level);
static void put_number(answer_t *a, const char *key, int64_t number);
static void put_options(answer_t *a, const NginxInference__TraceSettings *c);
static void put_resource(answer_t *a, const char *text);
static void put(answer_t *a, const char *key, const char *text);
static value_t *put_value(answer_t *a, const char *key, size_t count);

inf_err_t *
inf_trace_message(inf_trace_settings_t *settings,
    const Inference__TraceSettingRequest *q, inf_arena_t *arena,
    Inference__TraceSettingResponse *out)
{
    const NginxInference__TraceSettings *config = settings->config;
    inf_trace_values_t v;
    inf_trace_change_t c = { 0 };

    inf_err_t *err = read_change(q, &c);
    if (err == NULL && (c.set | c.clear) != 0) {
        err = inf_trace_settings_change(settings, q->model_name, &c);
    }
    if (err != NULL) {
        return err;
    }

    answer_t a = { .arena = arena, .out = out };
    inference__trace_setting_response__init(out);
    out->settings = inf_arena_calloc(arena,
        SETTINGS_MAX + config->n_resources, sizeof(entry_t *));
    if (out->settings == NULL) {
        return inf_err_nomem();
    }

    inf_trace_settings_get(settings, q->model_name, &v);
    put_level(&a, v.level);
    put_number(&a, "trace_rate", v.rate);
    put_number(&a, "trace_count", v.count);
    if (!inf_trace_is_otel(settings)) {
        put_number(&a, "log_frequency", v.log_frequency);
        put(&a, "trace_file", config->file);
    }
    put(&a, "trace_mode", inf_trace_mode(settings));
    if (inf_trace_is_otel(settings)) {
        put_options(&a, config);
    }
    return a.failed ? inf_err_nomem() : NULL;
}

inf_err_t *
inf_trace_message_own(inf_trace_settings_t *settings, const char *model,
    inf_arena_t *arena, Inference__TraceSettingRequest *q)
{
    inf_trace_values_t v;
    uint32_t own = inf_trace_settings_own(settings, model, &v);
    const char *time = v.level & INF_TRACE_TIMESTAMPS ? "TIMESTAMPS" : NULL;
    const char *tensors = v.level & INF_TRACE_TENSORS ? "TENSORS" : NULL;

    inference__trace_setting_request__init(q);
    q->model_name = inf_arena_strdup(arena, model, strlen(model));
    q->settings = inf_arena_calloc(arena, 4, sizeof(request_entry_t *));
    if (q->model_name == NULL || q->settings == NULL
        || ((own & INF_TRACE_LEVEL) && !put_setting(q, arena, "trace_level",
            time == NULL && tensors == NULL ? "OFF" : time, tensors))
        || ((own & INF_TRACE_RATE) && !put_setting(q, arena, "trace_rate",
            number_text(arena, v.rate), NULL))
        || ((own & INF_TRACE_COUNT) && !put_setting(q, arena, "trace_count",
            number_text(arena, v.count), NULL))
        || ((own & INF_TRACE_FREQUENCY) && !put_setting(q, arena,
            "log_frequency", number_text(arena, v.log_frequency), NULL)))
    {
        return inf_err_nomem();
    }

    return NULL;
}

inf_err_t *
inf_trace_message_restore(inf_trace_settings_t *settings,
    const Inference__TraceSettingRequest *q)
{
    inf_trace_change_t c = { 0 };

    inf_err_t *err = read_change(q, &c);
    return err != NULL ? err : inf_trace_settings_restore(settings,
        q->model_name, &c);
}

/* Adds a setting with the texts that are not NULL; false: out of memory. */
static bool
put_setting(Inference__TraceSettingRequest *q, inf_arena_t *arena,
    const char *key, const char *one, const char *other)
{
    request_entry_t *entry = inf_arena_alloc(arena, sizeof(*entry));
    request_value_t *value = inf_arena_alloc(arena, sizeof(*value));
    char **texts = inf_arena_calloc(arena, 2, sizeof(*texts));
    if (entry == NULL || value == NULL || texts == NULL
        || (one == NULL && other == NULL))
    {
        return false;
    }

    inference__trace_setting_request__settings_entry__init(entry);
    inference__trace_setting_request__setting_value__init(value);
    value->value = texts;
    if (one != NULL) {
        texts[value->n_value++] = (char *) (uintptr_t) one;
    }
    if (other != NULL) {
        texts[value->n_value++] = (char *) (uintptr_t) other;
    }
    entry->key = (char *) (uintptr_t) key;
    entry->value = value;
    q->settings[q->n_settings++] = entry;
    return true;
}

/* Formats a number in the arena; NULL: out of memory. */
static const char *
number_text(inf_arena_t *arena, int64_t number)
{
    char text[24];
    int n = snprintf(text, sizeof(text), "%lld", (long long) number);

    return inf_arena_strdup(arena, text, (size_t) n);
}

static inf_err_t *
read_change(const Inference__TraceSettingRequest *q, inf_trace_change_t *c)
{
    inf_err_t *err = NULL;

    for (size_t i = 0; i < q->n_settings && err == NULL; i++) {
        err = read_setting(q->settings[i], c);
    }

    return err;
}

/* Reads one setting; unknown settings are ignored. */
static inf_err_t *
read_setting(const request_entry_t *e, inf_trace_change_t *c)
{
    static const struct {
        const char *key;
        uint32_t    bit;
        int64_t     min;
        int64_t     max;
    } numbers[] = {
        { "trace_rate", INF_TRACE_RATE, 0, UINT32_MAX },
        { "trace_count", INF_TRACE_COUNT, -1, INT32_MAX },
        { "log_frequency", INF_TRACE_FREQUENCY, 0, UINT32_MAX }
    };

    if (strcmp(e->key, "trace_file") == 0) {
        return inf_err_new(INF_ERR_UNSUPPORTED, INF_TRACE_FILE_FIXED);
    }
    if (strcmp(e->key, "trace_level") == 0) {
        return read_level(e->value, c);
    }

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (strcmp(e->key, numbers[i].key) != 0) {
            continue;
        }
        if (e->value == NULL || e->value->n_value == 0) {
            c->clear |= numbers[i].bit;
            return NULL;
        }

        int64_t n = 0;
        inf_err_t *err = read_number(e, numbers[i].min, numbers[i].max, &n);
        if (err != NULL) {
            return err;
        }
        c->set |= numbers[i].bit;
        if (numbers[i].bit == INF_TRACE_RATE) {
            c->values.rate = (uint32_t) n;
        } else if (numbers[i].bit == INF_TRACE_COUNT) {
            c->values.count = (int32_t) n;
        } else {
            c->values.log_frequency = (uint32_t) n;
        }
    }
    return NULL;
}

/* Reads the level; unknown words are ignored. */
static inf_err_t *
read_level(const request_value_t *v, inf_trace_change_t *c)
{
    if (v == NULL || v->n_value == 0) {
        c->clear |= INF_TRACE_LEVEL;
        return NULL;
    }

    for (size_t i = 0; i < v->n_value; i++) {
        if (strcmp(v->value[i], "TIMESTAMPS") == 0) {
            c->values.level |= INF_TRACE_TIMESTAMPS;
        } else if (strcmp(v->value[i], "TENSORS") == 0) {
            c->values.level |= INF_TRACE_TENSORS;
        } else if (strcmp(v->value[i], "OFF") != 0) {
            continue;
        } else if (v->n_value != 1) {
            return inf_err_new(INF_ERR_INVALID_ARG,
                "Expect only one trace level 'OFF' is specified");
        }
        c->set |= INF_TRACE_LEVEL;
    }
    return NULL;
}

/* Reads one decimal number between min and max. */
static inf_err_t *
read_number(const request_entry_t *e, int64_t min, int64_t max, int64_t *out)
{
    if (e->value->n_value != 1) {
        return inf_err_new(INF_ERR_INVALID_ARG, "expect only 1 value for"
            " '%s'", e->key);
    }

    const char *text = e->value->value[0];
    const char *digits = text + (text[0] == '-');
    if (digits[0] == '\0'
        || digits[strspn(digits, "0123456789")] != '\0')
    {
        return inf_err_new(INF_ERR_INVALID_ARG, "Unable to parse '%s', got:"
            " %s", e->key, text);
    }

    errno = 0;
    long long n = strtoll(text, NULL, 10);
    if (errno == 0 && n < min && min == -1) {
        return inf_err_new(INF_ERR_INVALID_ARG, "Unable to parse '%s'."
            " Expecting value >= -1, got:%s", e->key, text);
    }
    if (errno != 0 || n < min || n > max) {
        return inf_err_new(INF_ERR_INVALID_ARG, "Unable to parse '%s', value"
            " is out of range [ %lld, %lld ], got: %s", e->key,
            (long long) min, (long long) max, text);
    }

    *out = n;
    return NULL;
}

static void
put_level(answer_t *a, uint32_t level)
{
    value_t *v = put_value(a, "trace_level", 2);
    if (v == NULL) {
        return;
    }

    if (level == INF_TRACE_OFF) {
        v->value[v->n_value++] = (char *) "OFF";
    }
    if (level & INF_TRACE_TIMESTAMPS) {
        v->value[v->n_value++] = (char *) "TIMESTAMPS";
    }
    if (level & INF_TRACE_TENSORS) {
        v->value[v->n_value++] = (char *) "TENSORS";
    }
}

static void
put_number(answer_t *a, const char *key, int64_t number)
{
    const char *copy = number_text(a->arena, number);

    a->failed |= copy == NULL;
    put(a, key, copy);
}

/* Adds the options of the collector, those that are not configured with their
   defaults. */
static void
put_options(answer_t *a, const NginxInference__TraceSettings *c)
{
    put(a, "url", c->url);
    for (size_t i = 0; i < c->n_resources; i++) {
        put_resource(a, c->resources[i]);
    }
    put_number(a, "bsp_max_queue_size", c->bsp_max_queue_size);
    put_number(a, "bsp_schedule_delay", c->bsp_schedule_delay_ms);
    put_number(a, "bsp_max_export_batch_size", c->bsp_max_export_batch_size);
}

/* Adds "key=value" under its key. */
static void
put_resource(answer_t *a, const char *text)
{
    const char *equals = strchr(text, '=');
    if (equals == NULL) {
        return;
    }

    char *key = inf_arena_strdup(a->arena, text, (size_t) (equals - text));
    if (key == NULL) {
        a->failed = true;
        return;
    }
    put(a, key, equals + 1);
}

static void
put(answer_t *a, const char *key, const char *text)
{
    value_t *v = put_value(a, key, 1);

    if (v != NULL) {
        v->value[v->n_value++] = (char *) (uintptr_t) text;
    }
}

/* Adds a setting with room for count texts; NULL: out of memory. */
static value_t *
put_value(answer_t *a, const char *key, size_t count)
{
    entry_t *entry = inf_arena_alloc(a->arena, sizeof(*entry));
    value_t *value = inf_arena_alloc(a->arena, sizeof(*value));
    char **texts = inf_arena_calloc(a->arena, count, sizeof(*texts));
    if (a->failed || entry == NULL || value == NULL || texts == NULL) {
        a->failed = true;
        return NULL;
    }

    inference__trace_setting_response__settings_entry__init(entry);
    inference__trace_setting_response__setting_value__init(value);
    value->value = texts;
    entry->key = (char *) (uintptr_t) key;
    entry->value = value;
    a->out->settings[a->out->n_settings++] = entry;
    return value;
}
