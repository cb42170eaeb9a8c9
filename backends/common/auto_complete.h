/*
 * auto_complete.h - fills in what a configuration leaves out, from the
 *                   model's file.
 *
 * Owner    config stays the caller's; its document is edited and read again.
 * Thread   ModelInitialize's.
 * Units    none.
 * Errors   INVALID_ARG: batching is asked of a model that cannot batch.
 * Route    tensors -> [auto_complete] -> TRITONBACKEND_ModelSetConfig
 */

#ifndef BK_AUTO_COMPLETE_H
#define BK_AUTO_COMPLETE_H

#include "tensors.h"

/* Inputs and outputs are both there: nothing to complete. */
bool bk_config_is_complete(const bk_model_config_t *config);

/* max_batch_size: for a model that can batch where none is configured, 0: it
 * stays without. */
BK_CHECK TRITONSERVER_Error *bk_config_auto_complete(bk_model_config_t *config,
    const bk_tensors_t *tensors, int64_t max_batch_size,
    TRITONBACKEND_Model *model);

#endif /* BK_AUTO_COMPLETE_H */
