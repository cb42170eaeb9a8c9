/* unused_fields.c - see unused_fields.h */

#include "unused_fields.h"

#include <stdio.h>
#include <string.h>

#define NAMES_MAX 512

/* A value by which a field is as if it were not set. */
typedef struct {
    const char *name;
    const char *usual;                  /* NULL: zero, false or empty        */
} field_t;

static const field_t fields[] = {
    { BK_FIELD_GRAPH, NULL },
    { BK_FIELD_PRIORITY, "PRIORITY_DEFAULT" },
    { BK_FIELD_CUDA, NULL },
    { BK_FIELD_ACCELERATORS, NULL },
    { "optimization.gather_kernel_buffer_threshold", NULL },
    { "optimization.eager_batching", NULL },
    { BK_FIELD_CC_FILENAMES, NULL },
    { BK_FIELD_OPERATIONS, NULL },
    { BK_FIELD_PROFILE, NULL },
    { BK_FIELD_SECONDARY, NULL },
    { BK_FIELD_STATE, NULL }
};

/* Those of all backends that the core reads. */
static const char *const core_parameters[] = {
    "INFERENCE_MAX_QUEUE_SIZE", "INFERENCE_WRITABLE_INPUTS", NULL
};

/* A library that is a model's own, and may read any parameter. */
#define OWN_LIBRARY "TRITON_BATCH_STRATEGY_PATH"

static bool is_known(const char *key, const char *const *known);
static bool is_used(const char *name, const char *const *used);
static bool is_set(const bk_json_t *v, const char *path, const char *usual);
static bool has_value(const bk_json_t *v, const char *usual);
static bool is_off(const bk_model_config_t *config, const char *path);
static size_t put_name(char *names, size_t len, const char *name);

void
bk_config_log_unused(const bk_model_config_t *config,
    const char *const *used)
{
    static const char *const pinned[] = {
        "optimization.input_pinned_memory", "optimization.output_pinned_memory"
    };

    char names[NAMES_MAX] = "";
    size_t len = 0;

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        if (!is_used(fields[i].name, used)
            && is_set(config->root, fields[i].name, fields[i].usual))
        {
            len = put_name(names, len, fields[i].name);
        }
    }
    for (size_t i = 0; i < sizeof(pinned) / sizeof(pinned[0]); i++) {
        if (is_off(config, pinned[i])) {
            len = put_name(names, len, pinned[i]);
        }
    }

    if (len != 0) {
        bk_log(TRITONSERVER_LOG_WARN, "model \"%s\": its backend does not "
            "act on %s of the configuration", config->name, names);
    }
}

void
bk_config_log_unknown(const bk_model_config_t *config,
    const char *const *known)
{
    bk_json_iter_t it = {
        .object = bk_json_member(config->root, "parameters")
    };
    char names[NAMES_MAX] = "";
    size_t len = 0;

    if (known == NULL || bk_model_config_parameter(config, OWN_LIBRARY) != NULL)
    {
        return;
    }

    while (it.object != NULL && bk_json_next(&it)) {
        if (!is_known(it.key, known) && !is_known(it.key, core_parameters)) {
            len = put_name(names, len, it.key);
        }
    }

    if (len != 0) {
        bk_log(TRITONSERVER_LOG_WARN, "model \"%s\": neither its backend nor "
            "the server knows these parameters: %s", config->name, names);
    }
}

static bool
is_known(const char *key, const char *const *known)
{
    for ( ; *known != NULL; known++) {
        size_t len = strlen(*known);
        if ((*known)[len - 1] == '*' ? strncmp(key, *known, len - 1) == 0
            : strcmp(key, *known) == 0)
        {
            return true;
        }
    }
    return false;
}

static bool
is_used(const char *name, const char *const *used)
{
    while (used != NULL && *used != NULL && strcmp(*used, name) != 0) {
        used++;
    }

    return used != NULL && *used != NULL;
}

/* path: members of objects, and of all elements of lists. */
static bool
is_set(const bk_json_t *v, const char *path, const char *usual)
{
    const char *dot = strchr(path, '.');
    size_t n = dot != NULL ? (size_t) (dot - path) : strlen(path);
    char key[64];

    snprintf(key, sizeof(key), "%.*s", (int) n, path);
    const bk_json_t *found = bk_json_member(v, key);
    if (dot == NULL) {
        return has_value(found, usual);
    }

    bool set = is_set(found, dot + 1, usual);
    for (size_t i = 0; !set && bk_json_at(found, i) != NULL; i++) {
        set = is_set(bk_json_at(found, i), dot + 1, usual);
    }

    return set;
}

static bool
has_value(const bk_json_t *v, const char *usual)
{
    const char *text = bk_json_string(v, "");

    if (text[0] != '\0') {
        return usual == NULL || strcmp(text, usual) != 0;
    }

    bool set = bk_json_bool(v, false) || bk_json_int(v, 0) != 0
        || bk_json_at(v, 0) != NULL;
    bk_json_iter_t it = { .object = (bk_json_t *) (uintptr_t) v };
    while (v != NULL && !set && bk_json_next(&it)) {
        set = has_value(it.value, usual);
    }

    return set;
}

/* Memory that the configuration does not want pinned. */
static bool
is_off(const bk_model_config_t *config, const char *path)
{
    const bk_json_t *v = bk_json_member(bk_json_member(config->root,
        "optimization"), strchr(path, '.') + 1);

    return v != NULL && !bk_json_bool(bk_json_member(v, "enable"), false);
}

static size_t
put_name(char *names, size_t len, const char *name)
{
    size_t left = NAMES_MAX - len;
    int n = snprintf(names + len, left, "%s%s", len == 0 ? "" : ", ", name);

    return n < 0 ? len : (size_t) n < left ? len + (size_t) n : NAMES_MAX - 1;
}
