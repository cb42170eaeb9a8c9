/*
 * trace_activity.h - Triton's activities of a trace: names, and the span of
 *                    each.
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
    INF_ACTIVITY_MODEL,         /* span of a model's request                 */
    INF_ACTIVITY_COMPUTE,       /* span of its execution                     */
    INF_ACTIVITY_TENSOR,        /* no span: a tensor                         */
    INF_ACTIVITY_CUSTOM         /* named by a backend                        */
} inf_activity_part_t;

/* "<unknown>" for an invalid number. */
const char *inf_trace_activity_name(
    TRITONSERVER_InferenceTraceActivity activity);

/* CUSTOM for any name that is not Triton's. */
inf_activity_part_t inf_trace_activity_part(const char *name);

#endif /* INF_SERVER_TRACE_ACTIVITY_H */
