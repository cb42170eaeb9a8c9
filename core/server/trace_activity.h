/*
 * trace_activity.h - Triton's activities of a trace: the name of each, and the
 *                    span that it belongs to.
 *
 * Owner    none; constant.
 * Thread   any.
 * Units    none.
 * Errors   none.
 * Route    abi -> [activities] -> trace record, collector
 */

#ifndef INF_SERVER_TRACE_ACTIVITY_H
#define INF_SERVER_TRACE_ACTIVITY_H

#include "core/include/triton/core/tritonserver.h"

typedef enum {
    INF_ACTIVITY_MODEL,         /* the span of a model's request             */
    INF_ACTIVITY_COMPUTE,       /* its execution                             */
    INF_ACTIVITY_TENSOR,        /* no span: a tensor is noted                */
    INF_ACTIVITY_CUSTOM         /* of a backend's own name                   */
} inf_activity_part_t;

/* "<unknown>" for a number that is none. */
const char *inf_trace_activity_name(
    TRITONSERVER_InferenceTraceActivity activity);

/* CUSTOM also for any name that is none of Triton's. */
inf_activity_part_t inf_trace_activity_part(const char *name);

#endif /* INF_SERVER_TRACE_ACTIVITY_H */
