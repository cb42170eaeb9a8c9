/*
 * queue_limit.h - the limit of queued requests of a model without a scheduler;
 *                 others have queue policies.
 *
 * Owner    none.
 * Thread   any.
 * Units    requests; 0: no limit.
 * Errors   INVALID_ARG: the value is not a count, or has no effect.
 * Route    configuration's parameters -> [queue limit] -> default scheduler
 */

#ifndef INF_MODEL_QUEUE_LIMIT_H
#define INF_MODEL_QUEUE_LIMIT_H

#include <stdint.h>

#include "core/base/error.h"
#include "model_config.pb-c.h"

/* The parameter of the model. */
#define INF_QUEUE_LIMIT_KEY "INFERENCE_MAX_QUEUE_SIZE"

/* Reads the limit; *limit 0: no limit, or no parameter. */
INF_CHECK inf_err_t *inf_config_queue_limit(const Inference__ModelConfig *msg,
    uint32_t *limit);

#endif /* INF_MODEL_QUEUE_LIMIT_H */
