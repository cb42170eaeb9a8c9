#include "settings.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NS_PER_S            1000000000u
#define START_TIMEOUT_S     30
#define START_TIMEOUT_MAX_S 86400
#define ENVIRONMENT_BYTES   (UINT64_C(32) << 30)

/* Settings of Triton's backend that this one does not have. */
static const struct {
    const char *name;
    const char *why;
} without_effect[] = {
    { "shm-default-byte-size", "memory grows with the tensors in it" },
    { "shm-growth-byte-size", "memory grows with the tensors in it" },
    { "shm-region-prefix-name", "shared memory has no names" },
    { "shm_message_queue_size", "queues grow with their messages" },
    { "thread-pool-size", "responses need no threads of their own" }
};

/* Settings read by the core, or by this file. */
static const char *const known[] = {
    "interpreter", "stub-timeout-seconds", "environment-byte-size",
    "auto-complete-config", "backend-directory", "default-max-batch-size",
    "min-compute-capability"
};

static void log_settings(const bk_json_t *line);
static const char *why_without_effect(const char *name);
static bool is_known(const char *name);
static TRITONSERVER_Error *read_number(const bk_json_t *line,
    const char *name, uint64_t max, uint64_t *value);
static TRITONSERVER_Error *read_switch(const bk_model_config_t *config,
    const char *name, bool *value);

TRITONSERVER_Error *
py_settings_init(py_settings_t *s, const char *text, size_t len)
{
    uint64_t timeout_s = START_TIMEOUT_S;

    *s = (py_settings_t) { .environment_bytes = ENVIRONMENT_BYTES };
    TRITONSERVER_Error *err = bk_json_parse(text, len, &s->document);
    if (err != NULL) {
        return bk_err_add(err, "configuration of backend python");
    }

    const bk_json_t *line = bk_json_member(s->document, "cmdline");
    log_settings(line);
    s->interpreter = bk_json_string(bk_json_member(line, "interpreter"), NULL);
    if (s->interpreter != NULL && s->interpreter[0] == '\0') {
        s->interpreter = NULL;
    }
    err = read_number(line, "stub-timeout-seconds", START_TIMEOUT_MAX_S,
        &timeout_s);
    if (err == NULL) {
        err = read_number(line, "environment-byte-size", INT64_MAX,
            &s->environment_bytes);
    }
    s->start_timeout_ns = timeout_s * NS_PER_S;
    if (err != NULL) {
        py_settings_fini(s);
    }
    return err;
}

void
py_settings_fini(py_settings_t *s)
{
    bk_json_free(s->document);
    *s = (py_settings_t) { .document = NULL };
}

static void
log_settings(const bk_json_t *line)
{
    bk_json_iter_t it = { .object = (bk_json_t *) line };

    while (bk_json_next(&it)) {
        const char *why = why_without_effect(it.key);
        if (why != NULL) {
            bk_log(TRITONSERVER_LOG_INFO,
                "setting %s of backend python has no effect: %s", it.key, why);
        } else if (!is_known(it.key)) {
            bk_log(TRITONSERVER_LOG_WARN,
                "setting %s of backend python is not known", it.key);
        }
    }
}

static const char *
why_without_effect(const char *name)
{
    for (size_t i = 0;
         i < sizeof(without_effect) / sizeof(without_effect[0]); i++)
    {
        if (strcmp(name, without_effect[i].name) == 0) {
            return without_effect[i].why;
        }
    }
    return NULL;
}

static bool
is_known(const char *name)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(name, known[i]) == 0) {
            return true;
        }
    }
    return false;
}

static TRITONSERVER_Error *
read_number(const bk_json_t *line, const char *name, uint64_t max,
    uint64_t *value)
{
    const char *text = bk_json_string(bk_json_member(line, name), NULL);
    if (text == NULL) {
        return NULL;
    }

    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || number < 1
        || (uint64_t) number > max)
    {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "setting %s of "
            "backend python is \"%s\"; it must be a number from 1 to %"
            PRIu64, name, text, max);
    }
    *value = (uint64_t) number;
    return NULL;
}

TRITONSERVER_Error *
py_model_settings_read(py_model_settings_t *s, const bk_model_config_t *config)
{
    *s = (py_model_settings_t) {
        .environment = bk_model_config_parameter(config, "EXECUTION_ENV_PATH"),
        .cpu_inputs = true
    };
    if (s->environment != NULL && s->environment[0] == '\0') {
        s->environment = NULL;
    }
    TRITONSERVER_Error *err = read_switch(config,
        "FORCE_CPU_ONLY_INPUT_TENSORS", &s->cpu_inputs);
    if (err == NULL) {
        err = read_switch(config, "ZERO_COPY_INPUTS", &s->zero_copy);
    }
    return err;
}

static TRITONSERVER_Error *
read_switch(const bk_model_config_t *config, const char *name, bool *value)
{
    static const char *const words[] = { "yes", "no", "true", "false" };
    const char *text = bk_model_config_parameter(config, name);

    if (text == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcasecmp(text, words[i]) == 0) {
            *value = i % 2 == 0;
            return NULL;
        }
    }
    return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "Incorrect value "
        "for %s: '%s'; it must be 'yes' or 'no'", name, text);
}
