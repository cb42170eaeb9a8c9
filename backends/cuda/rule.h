/*
 * rule.h - how the shape of an output follows from those of the inputs.
 *
 * Owner    the caller's struct owns its expressions until gpu_rule_fini.
 * Thread   read-only after reading.
 * Units    elements, without the batch dimension.
 * Errors   INVALID_ARG: an output with open dimensions has no rule, or a rule
 *          does not fit the output, or gives an impossible dimension.
 * Route    program -> [rule] -> shapes of a batch
 *
 *   rule     like INPUT | sum {, sum}        a sum for each dimension
 */

#ifndef GPU_RULE_H
#define GPU_RULE_H

#include "expression.h"

typedef struct {
    gpu_expression_t dims[GPU_DIMS_MAX];
    uint32_t         count;         /* 0: all are in the configuration       */
} gpu_rule_t;

/* text NULL: there is no rule.  The caller calls gpu_rule_fini even after an
 * error. */
BK_CHECK TRITONSERVER_Error *gpu_rule_read(gpu_rule_t *rule,
    const gpu_tensor_t *output, const char *parameter, const char *text,
    const gpu_names_t *inputs);
void gpu_rule_fini(gpu_rule_t *rule);

/* Fills in the output's dims; known has the batch and all inputs. */
BK_CHECK TRITONSERVER_Error *gpu_rule_apply(const gpu_rule_t *rule,
    const gpu_tensor_t *output, const gpu_shapes_t *known, gpu_shape_t *out);

#endif /* GPU_RULE_H */
