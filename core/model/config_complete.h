/*
 * config_complete.h - what a backend adds to its model's configuration.
 *
 * Owner    c stays the caller's and is changed in place; from stays the
 *          caller's too.
 * Thread   the loader's, before the model is published.
 * Units    none.
 * Errors   INTERNAL: the backend changed or dropped a configured scheduler.
 *          On error c is as it was.
 * Route    reader -> backend's initialize -> [completion] -> validate
 *
 * Taken: max_batch_size, all inputs, all outputs, a scheduler if none was
 * configured, model_transaction_policy.decoupled if that message is there.
 */

#ifndef INF_MODEL_CONFIG_COMPLETE_H
#define INF_MODEL_CONFIG_COMPLETE_H

#include "core/base/error.h"
#include "core/model/model_config.h"

/* Takes over (see above) from a message that stays the caller's. */
INF_CHECK inf_err_t *inf_model_config_merge(inf_model_config_t *c,
    const Inference__ModelConfig *from_backend);

/* From the text that a backend hands over (JSON, strict). */
INF_CHECK inf_err_t *inf_model_config_merge_json(inf_model_config_t *c,
    const char *json, size_t len);

#endif /* INF_MODEL_CONFIG_COMPLETE_H */
