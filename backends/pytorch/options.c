/* options.c - see options.h */

#include "options.h"

#define THREADS_MAX 1024

static TRITONSERVER_Error *read_switch(const bk_model_config_t *config,
    const char *key, pt_switch_t *value);
static TRITONSERVER_Error *read_not(const bk_model_config_t *config,
    const char *key, bool *value);
static const char *word_of(bool on);

TRITONSERVER_Error *
pt_options_read(pt_options_t *o, const bk_model_config_t *config)
{
    *o = (pt_options_t) {
        .optimized = true,
        .inference_mode = true,
        .cudnn = true,
        .intra_threads = 1
    };

    TRITONSERVER_Error *err = read_not(config, "DISABLE_OPTIMIZED_EXECUTION",
        &o->optimized);
    if (err == NULL) {
        err = read_not(config, "DISABLE_CUDNN", &o->cudnn);
    }
    if (err == NULL) {
        err = bk_model_config_parameter_bool(config, "INFERENCE_MODE",
            &o->inference_mode);
    }
    if (err == NULL) {
        err = bk_model_config_parameter_bool(config, "ENABLE_CACHE_CLEANING",
            &o->cache_cleaning);
    }
    if (err == NULL) {
        err = bk_model_config_parameter_bool(config, "ENABLE_WEIGHT_SHARING",
            &o->weight_sharing);
    }
    if (err == NULL) {
        err = read_switch(config, "ENABLE_JIT_EXECUTOR", &o->jit_executor);
    }
    if (err == NULL) {
        err = read_switch(config, "ENABLE_JIT_PROFILING", &o->jit_profiling);
    }
    if (err == NULL) {
        err = read_switch(config, "ENABLE_TENSOR_FUSER", &o->tensor_fuser);
    }
    if (err == NULL) {
        err = bk_model_config_parameter_int(config, "INTRA_OP_THREAD_COUNT",
            -1, THREADS_MAX, &o->intra_threads);
    }
    if (err == NULL) {
        err = bk_model_config_parameter_int(config, "INTER_OP_THREAD_COUNT",
            -1, THREADS_MAX, &o->inter_threads);
    }
    if (o->intra_threads < 1) {
        o->intra_threads = 1;
    }

    return err;
}

void
pt_options_log(const pt_options_t *o, const char *model)
{
    bk_log(TRITONSERVER_LOG_INFO, "Optimized execution is %s, Cache Cleaning "
        "is %s, Inference Mode is %s, cuDNN is %s, Weight sharing is %s for "
        "model instance '%s'", word_of(o->optimized),
        word_of(o->cache_cleaning), word_of(o->inference_mode),
        word_of(o->cudnn), word_of(o->weight_sharing), model);
}

static TRITONSERVER_Error *
read_switch(const bk_model_config_t *config, const char *key,
    pt_switch_t *value)
{
    bool on = false;

    if (bk_model_config_parameter(config, key) == NULL) {
        return NULL;
    }

    TRITONSERVER_Error *err = bk_model_config_parameter_bool(config, key,
        &on);
    *value = on ? PT_ON : PT_OFF;
    return err;
}

/* value is what the parameter's name denies */
static TRITONSERVER_Error *
read_not(const bk_model_config_t *config, const char *key, bool *value)
{
    bool off = !*value;

    TRITONSERVER_Error *err = bk_model_config_parameter_bool(config, key,
        &off);
    *value = !off;
    return err;
}

static const char *
word_of(bool on)
{
    return on ? "enabled" : "disabled";
}
