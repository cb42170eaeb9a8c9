/*
 * conversions.h - converts inputs and outputs of a model from and to other
 *                 datatypes than those of its file.
 *
 * Owner    the caller's, between open and close.
 * Thread   the model's loader's.
 * Units    none.
 * Errors   the library's messages, with the tensor's name.
 * Route    network -> [conversions] -> the library
 */

#ifndef VINO_CONVERSIONS_H
#define VINO_CONVERSIONS_H

#include "runtime.h"

#include "common/tensors.h"

typedef struct {
    const vino_runtime_t             *rt;
    ov_preprocess_prepostprocessor_t *handle;
    bool                              any;
} vino_conversions_t;

/* Begins without a conversion. */
BK_CHECK TRITONSERVER_Error *vino_conversions_open(vino_conversions_t *c,
    const vino_runtime_t *rt, const ov_model_t *model);
void vino_conversions_close(vino_conversions_t *c);

/* Adds a conversion, unless entry is NULL or has the file's datatype.  Strings
 * and tensors that no request can carry are not converted. */
BK_CHECK TRITONSERVER_Error *vino_conversions_add(vino_conversions_t *c,
    const bk_tensor_config_t *entry, const bk_tensor_t *t, uint32_t index,
    bool input);

/* Replaces the model if anything was added. */
BK_CHECK TRITONSERVER_Error *vino_conversions_apply(vino_conversions_t *c,
    ov_model_t **model);

#endif /* VINO_CONVERSIONS_H */
