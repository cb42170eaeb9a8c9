/*
 * queue_limit.h - how many requests may wait for a model that chose no
 *                 scheduler; others say it in their queue policies.
 *
 * Owner    nobody.
 * Thread   any.
 * Units    requests; 0: any number.
 * Errors   INVALID_ARG: what stands there is no count, or has no meaning.
 * Route    configuration's parameters -> [queue limit] -> default scheduler
 */

#ifndef INF_MODEL_QUEUE_LIMIT_H
#define INF_MODEL_QUEUE_LIMIT_H

#include <stdint.h>

#include "core/base/error.h"
#include "model_config.pb-c.h"

/* The model's parameter that says it. */
#define INF_QUEUE_LIMIT_KEY "INFERENCE_MAX_QUEUE_SIZE"

/* *limit 0: no limit, or the parameter is not there. */
INF_CHECK inf_err_t *inf_config_queue_limit(const Inference__ModelConfig *msg,
    uint32_t *limit);

#endif /* INF_MODEL_QUEUE_LIMIT_H */
