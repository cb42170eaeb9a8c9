/*
 * config_check.h - compares the configuration with the model's file.
 *
 * Owner    nothing is kept.
 * Thread   any.
 * Units    none.
 * Errors   INVALID_ARG naming the tensor and both sides of the mismatch;
 *          UNSUPPORTED: a tensor that no request can carry.
 * Route    tensors -> [config_check] -> instance ready
 */

#ifndef BK_CONFIG_CHECK_H
#define BK_CONFIG_CHECK_H

#include "tensors.h"

/* Every configured tensor is in the model, and every required one of the
 * model in the configuration, with the same datatype and dims; likewise
 * controls, states, batch inputs and batch outputs. */
BK_CHECK TRITONSERVER_Error *bk_config_check(const bk_model_config_t *config,
    const bk_tensors_t *tensors);

#endif /* BK_CONFIG_CHECK_H */
