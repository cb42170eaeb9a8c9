/*
 * fit.h - does the configuration fit the model file?
 *
 * Owner    nothing is kept.
 * Thread   any.
 * Units    none.
 * Errors   INVALID_ARG naming the tensor and both sides of the mismatch;
 *          UNSUPPORTED: a tensor that no request can carry.
 * Route    tensors -> [fit] -> instance ready
 */

#ifndef BK_FIT_H
#define BK_FIT_H

#include "tensors.h"

/* Every configured tensor is in the model, and every required one of the
 * model in the configuration, with the same datatype and dims. */
BK_CHECK TRITONSERVER_Error *bk_config_fits(const bk_model_config_t *config,
    const bk_tensors_t *tensors);

/* Marks the tensors that are ragged, made for a batch or of sequences; config
 * fits, and must outlive tensors, which point into it afterwards. */
void bk_config_apply(const bk_model_config_t *config, bk_tensors_t *tensors);

#endif /* BK_FIT_H */
