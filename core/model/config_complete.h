/*
 * config_complete.h - takes a backend's additions to its model's configuration.
 *
 * Owner    c and from stay the caller's; c is changed in place.
 * Thread   the loader's, before the model is published.
 * Units    none.
 * Errors   INTERNAL: the backend changed or dropped a configured scheduler.  On
 *          error c is unchanged.
 * Route    reader -> backend's initialize -> [completion] -> validate
 *
 * Taken: max_batch_size, all inputs, all outputs, a scheduler if none was
 * configured, and model_transaction_policy.decoupled if that message is set.
 */

#ifndef INF_MODEL_CONFIG_COMPLETE_H
#define INF_MODEL_CONFIG_COMPLETE_H

#include "core/base/error.h"
#include "core/model/model_config.h"

/* Takes the fields listed above from a backend's text (strict JSON). */
INF_CHECK inf_err_t *inf_model_config_merge_json(inf_model_config_t *c,
    const char *json, size_t len);

#endif /* INF_MODEL_CONFIG_COMPLETE_H */
