#include "core/repository/device_limit.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/proto/core_config.h"
#include "core/tensor/memory.h"

static const char *limit_of(const NginxInference__CoreConfig *config,
    int32_t device);

inf_err_t *
inf_device_limit_check(const NginxInference__CoreConfig *config,
    const inf_instance_spec_t *spec)
{
    const char *text = spec->kind == INF_INSTANCE_GPU
        ? limit_of(config, spec->device_id) : NULL;
    double fill = 0;
    char *end;

    if (text == NULL) {
        return NULL;
    }

    double limit = strtod(text, &end);
    if (end == text || *end != '\0' || !(limit >= 0.0 && limit <= 1.0)) {
        return inf_err_new(INF_ERR_INVALID_ARG, "backend setting %s%d expects"
            " limit fraction to be in range [0.0, 1.0], got \"%s\"",
            INF_DEVICE_LIMIT_KEY, (int) spec->device_id, text);
    }

    inf_err_t *err = inf_memory_gpu_fill(inf_memory_shared(), spec->device_id,
        &fill);
    if (err == NULL && fill > limit) {
        err = inf_err_new(INF_ERR_UNAVAILABLE, "can not create model '%s':"
            " memory limit set for GPU %d has exceeded, model loading is"
            " rejected.", spec->name, (int) spec->device_id);
    }
    return err;
}

static const char *
limit_of(const NginxInference__CoreConfig *config, int32_t device)
{
    char key[sizeof(INF_DEVICE_LIMIT_KEY) + 16];

    snprintf(key, sizeof(key), "%s%d", INF_DEVICE_LIMIT_KEY, (int) device);
    return inf_core_config_setting(config, "", key);
}
