/* options.c - see options.h */

#include "options.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define DEFAULT_DEVICE "CPU"

static TRITONSERVER_Error *read_count(const bk_model_config_t *config,
    const char *key, int64_t *value);
static TRITONSERVER_Error *read_yes(const bk_model_config_t *config,
    const char *key, bool *value);
static TRITONSERVER_Error *read_word(const bk_model_config_t *config,
    const char *key, const char *const *words, const char **value);
static TRITONSERVER_Error *read_streams(const bk_model_config_t *config,
    const char **value);
static bool is_count(const char *text);
static void add(vino_options_t *o, const char *key, const char *value);
static void add_count(vino_options_t *o, const char *key, int64_t value);
static void add_shares(vino_options_t *o, uint32_t instances);

TRITONSERVER_Error *
vino_options_read(vino_options_t *o, const bk_model_config_t *config)
{
    static const char *const hints[] = {
        "LATENCY", "THROUGHPUT", "CUMULATIVE_THROUGHPUT", NULL
    };
    static const char *const yes[] = { "YES", NULL };   /* "NO" is an error  */
    const char *bf16 = NULL;

    *o = (vino_options_t) {
        .device = bk_model_config_parameter(config, "TARGET_DEVICE"),
        .extension = bk_model_config_parameter(config, "CPU_EXTENSION_PATH"),
        .threads = -1,
        .compile_threads = -1
    };
    if (o->device == NULL || o->device[0] == '\0') {
        o->device = DEFAULT_DEVICE;
    }
    if (o->extension != NULL && o->extension[0] == '\0') {
        o->extension = NULL;
    }

    TRITONSERVER_Error *err = read_word(config, "PERFORMANCE_HINT", hints,
        &o->hint);
    if (err == NULL) {
        err = read_count(config, "INFERENCE_NUM_THREADS", &o->threads);
    }
    if (err == NULL) {
        err = read_count(config, "COMPILATION_NUM_THREADS",
            &o->compile_threads);
    }
    if (err == NULL) {
        err = read_word(config, "HINT_BF16", yes, &bf16);
        o->bf16 = bf16 != NULL;
    }
    if (err == NULL) {
        err = read_streams(config, &o->streams);
    }
    if (err == NULL) {
        err = read_yes(config, "SKIP_OV_DYNAMIC_BATCHSIZE", &o->fixed_batch);
    }
    if (err == NULL) {
        err = read_yes(config, "ENABLE_BATCH_PADDING", &o->padding);
    }
    if (err == NULL) {
        err = read_yes(config, "RESHAPE_IO_LAYERS", &o->reshape);
    }

    return err;
}

/*
 * By default each instance has one stream of one thread.  Where the hint or
 * the streams leave the choice to the library, it also chooses the threads.
 * Threads are not pinned: the library pins those of every model to the same
 * cores, and an instance's own thread, on which short inferences run, with
 * them.  Computing in bf16, which the library does unasked on processors that
 * can, would make answers differ by machine (docs/decisions/0085).
 */
void
vino_options_properties(vino_options_t *o, uint32_t instances)
{
    o->property_count = 0;

    if (o->hint != NULL) {
        add(o, "PERFORMANCE_HINT", o->hint);
    }
    if (strcmp(o->device, DEFAULT_DEVICE) == 0) {
        add(o, "INFERENCE_PRECISION_HINT", o->bf16 ? "bf16" : "f32");
        add(o, "ENABLE_CPU_PINNING", "NO");
        add_shares(o, instances);
        return;
    }

    if (o->bf16) {
        add(o, "INFERENCE_PRECISION_HINT", "bf16");
    }
    if (o->streams != NULL) {
        add(o, "NUM_STREAMS", o->streams);
    }
    if (o->threads >= 0) {
        add_count(o, "INFERENCE_NUM_THREADS", o->threads);
    }
    if (o->compile_threads >= 0) {
        add_count(o, "COMPILATION_NUM_THREADS", o->compile_threads);
    }
}

static TRITONSERVER_Error *
read_count(const bk_model_config_t *config, const char *key, int64_t *value)
{
    const char *text = bk_model_config_parameter(config, key);

    if (text == NULL || text[0] == '\0') {
        return NULL;
    }
    if (!is_count(text)) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "expected the "
            "parameter '%s' to be a non-negative number, got %s", key, text);
    }

    *value = atoi(text);
    return NULL;
}

/* "YES" is yes; "NO" and nothing are no. */
static TRITONSERVER_Error *
read_yes(const bk_model_config_t *config, const char *key, bool *value)
{
    const char *text = bk_model_config_parameter(config, key);

    if (text == NULL || text[0] == '\0') {
        return NULL;
    }

    *value = strcasecmp(text, "YES") == 0;
    return *value || strcasecmp(text, "NO") == 0 ? NULL
        : bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "expected the parameter "
        "'%s' to be YES or NO, got %s", key, text);
}

static TRITONSERVER_Error *
read_word(const bk_model_config_t *config, const char *key,
    const char *const *words, const char **value)
{
    const char *text = bk_model_config_parameter(config, key);
    char list[128] = "";

    if (text == NULL || text[0] == '\0') {
        return NULL;
    }

    for (size_t i = 0; words[i] != NULL; i++) {
        size_t len = strlen(list);

        if (strcasecmp(text, words[i]) == 0) {
            *value = words[i];
            return NULL;
        }
        snprintf(list + len, sizeof(list) - len, "%s%s", i == 0 ? "" : "/",
            words[i]);
    }

    return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "expected the "
        "parameter '%s' to be %s, got %s", key, list, text);
}

static TRITONSERVER_Error *
read_streams(const bk_model_config_t *config, const char **value)
{
    const char *text = bk_model_config_parameter(config, "NUM_STREAMS");

    if (text == NULL || text[0] == '\0') {
        return NULL;
    }

    if (strcasecmp(text, "AUTO") == 0) {
        *value = "AUTO";

    } else if (strcasecmp(text, "NUMA") == 0) {
        *value = "NUMA";

    } else if (is_count(text)) {
        *value = text;

    } else {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "expected the "
            "parameter 'NUM_STREAMS' to be either AUTO/NUMA/<int_value>, got "
            "%s", text);
    }

    return NULL;
}

/* Digits of a number that an int holds. */
static bool
is_count(const char *text)
{
    size_t digits = strspn(text, "0123456789");

    return digits != 0 && text[digits] == '\0' && digits <= 9;
}

static void
add(vino_options_t *o, const char *key, const char *value)
{
    size_t i = o->property_count++;

    assert(i < VINO_PROPERTIES_MAX && strlen(value) < VINO_VALUE_MAX);
    snprintf(o->values[i], sizeof(o->values[i]), "%s", value);
    o->properties[i] = (ov_property_t) { key, o->values[i] };
}

static void
add_count(vino_options_t *o, const char *key, int64_t value)
{
    char text[VINO_VALUE_MAX];

    snprintf(text, sizeof(text), "%" PRId64, value);
    add(o, key, text);
}

static void
add_shares(vino_options_t *o, uint32_t instances)
{
    bool chosen = o->streams != NULL && is_count(o->streams);
    int64_t streams = chosen ? atoi(o->streams) : (int64_t) instances;

    if (o->streams != NULL) {
        add(o, "NUM_STREAMS", o->streams);

    } else if (o->hint == NULL) {
        add_count(o, "NUM_STREAMS", instances);
    }

    if (o->threads >= 0) {
        add_count(o, "INFERENCE_NUM_THREADS", o->threads);

    } else if (o->hint == NULL && (o->streams == NULL || chosen)) {
        add_count(o, "INFERENCE_NUM_THREADS",
            streams > instances ? streams : instances);
    }
}
