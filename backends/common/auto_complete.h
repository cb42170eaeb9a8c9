/*
 * auto_complete.h - completes a configuration from the model's file.
 *
 * Owner    The caller owns config, whose document is edited and read again.
 * Thread   the one that calls ModelInitialize.
 * Units    none.
 * Errors   INVALID_ARG: batching is configured for a model that cannot batch.
 * Route    tensors -> [auto_complete] -> TRITONBACKEND_ModelSetConfig
 */

#ifndef BK_AUTO_COMPLETE_H
#define BK_AUTO_COMPLETE_H

#include "tensors.h"

/* Whether the configuration has inputs and outputs: nothing to complete. */
bool bk_config_is_complete(const bk_model_config_t *config);

/* max_batch_size is set if none is configured and the model can batch; 0:
 * none is set. */
BK_CHECK TRITONSERVER_Error *bk_config_auto_complete(bk_model_config_t *config,
    const bk_tensors_t *tensors, int64_t max_batch_size,
    TRITONBACKEND_Model *model);

#endif /* BK_AUTO_COMPLETE_H */
