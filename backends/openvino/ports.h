/*
 * ports.h - inputs and outputs of a model that the library has read.
 *
 * Owner    The caller owns tables and shapes.
 * Thread   the model's loader's.
 * Units    dims are elements, -1 where the model leaves them open.
 * Errors   UNSUPPORTED: a tensor that no request can fill, or without a name
 *          or a number of dimensions.  Otherwise the library's messages.
 * Route    network -> [ports] -> tensors
 */

#ifndef VINO_PORTS_H
#define VINO_PORTS_H

#include "runtime.h"

#include "common/tensors.h"

/* Creates the tables.  A tensor has that of its names that config uses; an open
 * number of dimensions is taken from config. */
BK_CHECK TRITONSERVER_Error *vino_ports_describe(const vino_runtime_t *rt,
    const ov_model_t *model, const bk_model_config_t *config,
    bk_tensors_t *tensors);

/* The caller ends it with ov_partial_shape_free. */
BK_CHECK TRITONSERVER_Error *vino_ports_input_shape(const vino_runtime_t *rt,
    const ov_model_t *model, uint32_t i, ov_partial_shape_t *shape);
BK_CHECK TRITONSERVER_Error *vino_ports_output_shape(
    const vino_runtime_t *rt, const ov_model_t *model, uint32_t i,
    ov_partial_shape_t *shape);

/* The configuration's entry of that name, or NULL. */
const bk_tensor_config_t *vino_ports_config(const bk_tensor_config_t *list,
    uint32_t count, const char *name);

/* In a model that batches: the input's first dimension is the batch. */
bool vino_ports_batched(const bk_model_config_t *config, const char *name);

#endif /* VINO_PORTS_H */
