/*
 * config_infer.h - infers name, backend, platform and model file from the
 *                  contents of the model's directory.
 *
 * Owner    The message stays the caller's; it is changed in place.
 * Thread   one at a time per message.
 * Units    none.
 * Errors   INVALID_ARG: nothing implies the backend.  INTERNAL: unreadable
 *          directory.
 * Route    reader: parse -> [infer] -> normalise -> validate
 *
 * The search is in the version directory whose name is first as text, so "10"
 * precedes "9"; other names are skipped.
 */

#ifndef INF_MODEL_CONFIG_INFER_H
#define INF_MODEL_CONFIG_INFER_H

#include "core/base/error.h"
#include "core/model/config_storage.h"
#include "model_config.pb-c.h"

/* Fills backend, platform and file names of msg as far as they are missing
   and the names of files in model_dir imply them. */
INF_CHECK inf_err_t *inf_config_infer(Inference__ModelConfig *msg,
    const inf_storage_t *st, const char *model_dir, const char *model_name);

#endif /* INF_MODEL_CONFIG_INFER_H */
