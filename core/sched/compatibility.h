/*
 * compatibility.h - whether two requests of a model may share a batch, as far
 *                   as their inputs go.
 *
 * Owner    nobody; the tensor table is the model's.
 * Thread   any.
 * Units    none.
 * Errors   none.
 * Route    dynamic batcher -> [compatibility].
 *
 * Compared are the shapes, without the batch dimension, of inputs whose size
 * each request sets, except ragged ones; shape tensors with their contents;
 * and, if any input is optional, which inputs there are.  Parameters and
 * wanted outputs may differ.
 */

#ifndef INF_SCHED_COMPATIBILITY_H
#define INF_SCHED_COMPATIBILITY_H

#include <stdbool.h>

#include "core/model/config_tensors.h"
#include "core/tensor/request.h"

/* Whether there is anything to compare at all. */
bool inf_compatibility_matters(const inf_config_tensors_t *tensors);

/* Whether a and b can be in one batch: the same shapes, but for ragged
   inputs and the batch dimension, and equal shape tensors. */
bool inf_compatible(const inf_config_tensors_t *tensors,
    const inf_request_t *a, const inf_request_t *b);

#endif /* INF_SCHED_COMPATIBILITY_H */
