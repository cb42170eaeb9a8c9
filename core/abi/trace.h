/*
 * trace.h - one request's trace: its names, and the callbacks for its
 *           activities.
 *
 * Owner    The creator, until inf_trace_take in a successful submit.  From
 *          then on the request, its factory and its responses have references;
 *          the last inf_trace_unref passes it to the release callback, which
 *          deletes it.
 * Thread   any; the texts of model and request are set before it is shared.
 * Units    ns on the monotonic clock.
 * Errors   out of memory; INVALID_ARG: a context that is not a JSON object.
 * Route    submit -> [trace] -> activity callbacks -> release callback.
 *
 * The reports and their callers (levels are filtered here):
 *
 *     TENSOR_QUEUE_INPUT of each input is reported at the submit of a
 *     program's request and of an ensemble's step (api_trace.c), and at the
 *     release of a worker's request (service/request_trace.c), which also
 *     notes activities outside the core.
 *
 * TENSOR_QUEUE_INPUT of each input comes at the submit of a program's request
 * and of an ensemble's step (api_trace.c), and at the release of a worker's
 * (service/request_trace.c), which also notes what happens outside of the
 * core.
 */

#ifndef INF_ABI_TRACE_H
#define INF_ABI_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "triton/core/tritonserver.h"

typedef struct TRITONSERVER_InferenceTrace inf_trace_t;

/* One tensor of a tensor activity. */
typedef struct {
    const char              *name;
    TRITONSERVER_DataType    datatype;
    const int64_t           *shape;
    uint64_t                 dim_count;
    const void              *base;
    size_t                   byte_size;
    TRITONSERVER_MemoryType  memory_type;
    int64_t                  memory_id;
} inf_trace_tensor_t;

/* Callbacks for memory that lives as long as a trace and all its children. */
typedef struct {
    void (*made)(void *userp);      /* a child was created                   */
    void (*freed)(void *userp);     /* the trace or a child is freed         */
} inf_trace_watch_t;

/* Sets the watch of a new trace and its future children; userp is that of its
   callbacks. */
void inf_trace_set_watch(inf_trace_t *trace, const inf_trace_watch_t *watch);

/* A malloc'ed copy of the current context; NULL: out of memory. */
char *inf_trace_context_copy(inf_trace_t *trace);

/* Names the traced request (copies) and takes the first reference.  On error
   the trace still belongs to its creator. */
INF_CHECK inf_err_t *inf_trace_take(inf_trace_t *trace, const char *model,
    int64_t version, const char *request_id);

/* trace may be NULL. */
void inf_trace_ref(inf_trace_t *trace);
void inf_trace_unref(inf_trace_t *trace);

/* Calls the client's function if its level asks for this activity. */
void inf_trace_report(inf_trace_t *trace,
    TRITONSERVER_InferenceTraceActivity activity, uint64_t timestamp_ns);

/* stamps: exec start, compute start, compute end, exec end. */
void inf_trace_report_compute(inf_trace_t *trace, const uint64_t stamps[4]);

/* Reports a tensor; the client may read it only during the call. */
void inf_trace_report_tensor(inf_trace_t *trace,
    TRITONSERVER_InferenceTraceActivity activity,
    const inf_trace_tensor_t *tensor);

#endif /* INF_ABI_TRACE_H */
