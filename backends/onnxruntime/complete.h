/*
 * complete.h - fills in what a configuration leaves out, from the model file.
 *
 * Owner    config stays the caller's; its document is edited and read again.
 * Thread   ModelInitialize's.
 * Units    none.
 * Errors   INVALID_ARG: batching is asked of a model that cannot batch.
 * Route    session -> [complete] -> TRITONBACKEND_ModelSetConfig
 */

#ifndef ORT_COMPLETE_H
#define ORT_COMPLETE_H

#include "session.h"

#include "common/model_config.h"

/* Inputs and outputs are both there: nothing to complete. */
bool ort_config_is_complete(const bk_model_config_t *config);

BK_CHECK TRITONSERVER_Error *ort_config_complete(bk_model_config_t *config,
    const ort_session_t *session, TRITONBACKEND_Model *model);

#endif /* ORT_COMPLETE_H */
