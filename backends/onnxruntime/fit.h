/*
 * fit.h - does the configuration fit the model file?
 *
 * Owner    nothing is kept.
 * Thread   any.
 * Units    none.
 * Errors   INVALID_ARG naming the tensor and both sides of the mismatch;
 *          UNSUPPORTED naming the configured feature.
 * Route    session -> [fit] -> instance ready
 */

#ifndef ORT_FIT_H
#define ORT_FIT_H

#include "session.h"

BK_CHECK TRITONSERVER_Error *ort_config_fits(const bk_model_config_t *config,
    const ort_session_t *session);

/* Writes into session which tensors are ragged or made for a batch; it fits. */
void ort_config_apply(const bk_model_config_t *config, ort_session_t *session);

/* The name is a control tensor of sequence_batching: part of the model but
 * not of the configuration's input list. */
bool ort_config_names_elsewhere(const bk_model_config_t *config,
    const char *name);

/* A request's shape (batch dimension included) against the model's. */
bool ort_shape_fits(const ort_tensor_t *t, const int64_t *shape,
    uint32_t dims_count);

#endif /* ORT_FIT_H */
