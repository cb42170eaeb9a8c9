/*
 * requirement.h - an equation that the shapes of inputs must satisfy.
 *
 * Owner    the caller's struct owns its expressions until
 *          gpu_requirement_fini; parameter and text are the configuration's.
 * Thread   read-only after reading.
 * Units    as expressions.
 * Errors   INVALID_ARG: the text is no requirement; or shapes do not satisfy
 *          it, with both numbers.
 * Route    program -> [requirement] -> shapes of a batch
 *
 *   requirement  sum == sum
 */

#ifndef GPU_REQUIREMENT_H
#define GPU_REQUIREMENT_H

#include "expression.h"

typedef struct {
    const char      *parameter;
    const char      *text;
    gpu_expression_t sides[2];
} gpu_requirement_t;

/* text NULL: the parameter is no text.  The caller calls gpu_requirement_fini
 * even after an error. */
BK_CHECK TRITONSERVER_Error *gpu_requirement_read(gpu_requirement_t *q,
    const char *parameter, const char *text, const gpu_names_t *inputs);
void gpu_requirement_fini(gpu_requirement_t *q);

/* As check, at load, for a requirement that depends on no request. */
BK_CHECK TRITONSERVER_Error *gpu_requirement_check_certain(
    const gpu_requirement_t *q, const gpu_names_t *inputs);

/* known has the batch and all inputs. */
BK_CHECK TRITONSERVER_Error *gpu_requirement_check(const gpu_requirement_t *q,
    const gpu_shapes_t *known);

#endif /* GPU_REQUIREMENT_H */
