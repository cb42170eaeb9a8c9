/* options.c - see options.h */

#include "options.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static TRITONSERVER_Error *read_format(trees_options_t *o,
    const bk_model_config_t *config);
static TRITONSERVER_Error *read_threshold(trees_options_t *o,
    const bk_model_config_t *config);
static void log_without_effect(const bk_model_config_t *config);

static const struct {
    const char *type;
    const char *filename;
    const char *extension;
} formats[] = {
    [TREES_XGBOOST] = { "xgboost", "xgboost.model", ".model" },
    [TREES_XGBOOST_JSON] = { "xgboost_json", "xgboost.json", ".json" },
    [TREES_XGBOOST_UBJ] = { "xgboost_ubj", "xgboost.ubj", ".ubj" },
    [TREES_LIGHTGBM] = { "lightgbm", "model.txt", ".txt" },
    [TREES_CHECKPOINT] = { "treelite_checkpoint", "checkpoint.tl", ".tl" }
};

#define FORMAT_COUNT (sizeof(formats) / sizeof(formats[0]))

TRITONSERVER_Error *
trees_options_read(trees_options_t *out, const bk_model_config_t *config)
{
    *out = (trees_options_t) { .threshold = 0.5f };
    out->has_classes = bk_model_config_parameter(config, "output_class")
        != NULL;

    TRITONSERVER_Error *err = read_format(out, config);
    if (err == NULL) {
        err = bk_model_config_parameter_bool(config,
            "xgboost_allow_unknown_field", &out->unknown_fields);
    }
    if (err == NULL) {
        err = bk_model_config_parameter_bool(config, "output_class",
            &out->classes);
    }
    if (err == NULL) {
        err = bk_model_config_parameter_bool(config, "predict_proba",
            &out->probabilities);
    }
    if (err == NULL) {
        err = read_threshold(out, config);
    }
    if (err == NULL) {
        err = bk_model_config_parameter_int(config, "transfer_threshold", 0,
            INT32_MAX, &out->transfer_threshold);
    }
    if (err == NULL) {
        log_without_effect(config);
    }
    return err;
}

const char *
trees_format_filename(trees_format_t format)
{
    return formats[format].filename;
}

bool
trees_format_at(uint32_t i, trees_format_t *out)
{
    *out = (trees_format_t) i;
    return i < FORMAT_COUNT;
}

bool
trees_format_of_name(const char *name, trees_format_t *out)
{
    const char *dot = strrchr(name, '.');

    for (size_t i = 0; dot != NULL && i < FORMAT_COUNT; i++) {
        if (strcmp(dot, formats[i].extension) == 0) {
            *out = (trees_format_t) i;
            return true;
        }
    }

    return false;
}

static TRITONSERVER_Error *
read_format(trees_options_t *o, const bk_model_config_t *config)
{
    const char *type = bk_model_config_parameter(config, "model_type");

    for (size_t i = 0; type != NULL && i < FORMAT_COUNT; i++) {
        if (strcmp(type, formats[i].type) == 0) {
            o->has_format = true;
            o->format = (trees_format_t) i;
        }
    }

    return type == NULL || o->has_format ? NULL
        : bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED, "%s not recognized as a"
        " valid serialization format. Parameter \"model_type\" must be xgboost,"
        " xgboost_json, xgboost_ubj, lightgbm or treelite_checkpoint", type);
}

static TRITONSERVER_Error *
read_threshold(trees_options_t *o, const bk_model_config_t *config)
{
    const char *text = bk_model_config_parameter(config, "threshold");
    char *end = NULL;

    if (text == NULL) {
        return NULL;
    }

    o->has_threshold = true;
    o->threshold = strtof(text, &end);
    return end != text && *end == '\0' && isfinite(o->threshold) ? NULL
        : bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
        "parameter \"threshold\" is \"%s\"; it must be a number", text);
}

static void
log_without_effect(const bk_model_config_t *config)
{
    static const char *const names[] = {
        "use_experimental_optimizations", "storage_type", "algo",
        "threads_per_tree", "blocks_per_sm", "cpu_nthread", "layout",
        "chunk_size"
    };
    char text[256] = "";
    size_t len = 0;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (bk_model_config_parameter(config, names[i]) != NULL
            && len < sizeof(text))
        {
            len += (size_t) snprintf(text + len, sizeof(text) - len, "%s%s",
                len == 0 ? "" : ", ", names[i]);
        }
    }

    if (len != 0) {
        bk_log(TRITONSERVER_LOG_INFO, "model \"%s\": without effect in this"
            " backend: %s", config->name, text);
    }
}
