/*
 * compatibility.h - whether the inputs of two requests permit a common batch.
 *
 * Owner    none; the tensor table is the model's.
 * Thread   any.
 * Units    none.
 * Errors   none.
 * Route    dynamic batcher -> [compatibility].
 *
 * The comparison covers the shapes, without the batch dimension, of inputs with
 * variable dimensions, except ragged ones; shape tensors with their contents;
 * and, if an input is optional, the set of inputs.  Parameters and wanted
 * outputs may differ.
 */

#ifndef INF_SCHED_COMPATIBILITY_H
#define INF_SCHED_COMPATIBILITY_H

#include <stdbool.h>

#include "core/model/config_tensors.h"
#include "core/tensor/request.h"

/* Whether requests of the model need a comparison at all. */
bool inf_compatibility_matters(const inf_config_tensors_t *tensors);

/* Whether a and b may share a batch: equal shapes, except ragged inputs and the
   batch dimension, and equal shape tensors. */
bool inf_compatible(const inf_config_tensors_t *tensors,
    const inf_request_t *a, const inf_request_t *b);

#endif /* INF_SCHED_COMPATIBILITY_H */
