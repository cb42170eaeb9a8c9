/*
 * device_limit.h - limits the memory in use on a GPU after another instance was
 *                  made.
 *
 * Owner    none.
 * Thread   any.
 * Units    a fraction of the GPU's memory, 0 to 1.
 * Errors   UNAVAILABLE: more is in use.  INVALID_ARG: the setting is not a
 *          fraction.
 * Route    model load, after an instance is made -> [device limit]
 */

#ifndef INF_REPOSITORY_DEVICE_LIMIT_H
#define INF_REPOSITORY_DEVICE_LIMIT_H

#include "core/model/instance_groups.h"
#include "core_config.pb-c.h"

/* Prefix of the global backend setting, before the GPU's number. */
#define INF_DEVICE_LIMIT_KEY "model-load-gpu-limit-device-"

/* Checks the memory of the instance's GPU; succeeds without a GPU or a
   limit. */
INF_CHECK inf_err_t *inf_device_limit_check(
    const NginxInference__CoreConfig *config, const inf_instance_spec_t *spec);

#endif /* INF_REPOSITORY_DEVICE_LIMIT_H */
