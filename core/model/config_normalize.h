/*
 * config_normalize.h - sets the defaults that readers rely on.
 *
 * Owner    The message stays the caller's; it is changed in place.
 * Thread   one at a time per message.
 * Units    none.
 * Errors   out of memory.
 * Route    reader: infer -> [normalise] -> validate; again after a backend
 *          has completed the configuration.
 *
 * Instance groups are normalized in their own file, because they need the
 * backend's preferred groups.
 */

#ifndef INF_MODEL_CONFIG_NORMALIZE_H
#define INF_MODEL_CONFIG_NORMALIZE_H

#include "core/base/error.h"
#include "model_config.pb-c.h"

/* Sets the defaults; a second call changes nothing. */
INF_CHECK inf_err_t *inf_config_normalize(Inference__ModelConfig *msg);

#endif /* INF_MODEL_CONFIG_NORMALIZE_H */
