/*
 * device_limit.h - how full a GPU may be when another instance is made on it.
 *
 * Owner    nobody.
 * Thread   any.
 * Units    a fraction of the GPU's memory, 0 to 1.
 * Errors   UNAVAILABLE: it is fuller.  INVALID_ARG: the setting is no
 *          fraction.
 * Route    model load, after an instance is made -> [device limit]
 */

#ifndef INF_REPOSITORY_DEVICE_LIMIT_H
#define INF_REPOSITORY_DEVICE_LIMIT_H

#include "core/model/instance_groups.h"
#include "core_config.pb-c.h"

/* The global backend setting that says it, up to the GPU's number. */
#define INF_DEVICE_LIMIT_KEY "model-load-gpu-limit-device-"

/* Success for what is on no GPU, or on one without a limit. */
INF_CHECK inf_err_t *inf_device_limit_check(
    const NginxInference__CoreConfig *config, const inf_instance_spec_t *spec);

#endif /* INF_REPOSITORY_DEVICE_LIMIT_H */
