/*
 * fit.h - does the configuration fit the model file?
 *
 * Owner    nothing is kept.
 * Thread   any.
 * Units    none.
 * Errors   INVALID_ARG naming the tensor and both sides of the mismatch;
 *          UNSUPPORTED naming the configured feature.
 * Route    tensors -> [fit] -> instance ready
 */

#ifndef BK_FIT_H
#define BK_FIT_H

#include "tensors.h"

/* Every configured tensor is in the model, and every required one of the
 * model in the configuration, with the same datatype and dims. */
BK_CHECK TRITONSERVER_Error *bk_config_fits(const bk_model_config_t *config,
    const bk_tensors_t *tensors);

/* Marks the tensors that are ragged or made for a batch; config fits. */
void bk_config_apply(const bk_model_config_t *config, bk_tensors_t *tensors);

/* The name is a control tensor of sequence_batching: part of the model but
 * not of the configuration's input list. */
bool bk_config_names_elsewhere(const bk_model_config_t *config,
    const char *name);

#endif /* BK_FIT_H */
