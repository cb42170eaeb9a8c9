/*
 * trace.h - one request's trace: who it is, and whom it tells what happened
 *           when.
 *
 * Owner    Its maker, until a submit succeeds: inf_trace_take.  From then on
 *          the request, its factory and its responses hold it; the last one's
 *          inf_trace_unref gives it to the release callback, which deletes it.
 * Thread   any; the texts of model and request are set before it is shared.
 * Units    ns on the monotonic clock.
 * Errors   out of memory; INVALID_ARG: a context that is no JSON object.
 * Route    submit -> [trace] -> activity callbacks -> release callback.
 *
 * The reports and their callers (levels are filtered here):
 *
 *     submit             take, REQUEST_START, QUEUE_START
 *     ReportStatistics   the four COMPUTE activities (backend_model.c)
 *     response sent      TENSOR_BACKEND_OUTPUT of each output
 *     request released   REQUEST_END, before the submitter has it again
 *
 * TENSOR_QUEUE_INPUT of each input comes at the submit of a program's request
 * and of an ensemble's step (api_trace.c), and at the release of a worker's
 * (service/request_trace.c), which also notes what happens outside of the core.
 */

#ifndef INF_ABI_TRACE_H
#define INF_ABI_TRACE_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "triton/core/tritonserver.h"

typedef struct TRITONSERVER_InferenceTrace inf_trace_t;

/* One tensor as a tensor activity shows it. */
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

/* For memory that lives as long as a trace and all that were spawned of it. */
typedef struct {
    void (*made)(void *userp);      /* a child was made                      */
    void (*freed)(void *userp);     /* one of them is gone                   */
} inf_trace_watch_t;

/* Of a new trace, and of its children then; userp is that of its
   callbacks. */
void inf_trace_set_watch(inf_trace_t *trace, const inf_trace_watch_t *watch);

/* The context as it is now, malloc'ed; NULL: out of memory. */
char *inf_trace_context_copy(inf_trace_t *trace);

/* Names what is traced (copies) and holds the first reference.  On error the
   trace is still its maker's. */
INF_CHECK inf_err_t *inf_trace_take(inf_trace_t *trace, const char *model,
    int64_t version, const char *request_id);

/* Each may be called with NULL and then does nothing. */
void inf_trace_ref(inf_trace_t *trace);
void inf_trace_unref(inf_trace_t *trace);

/* Calls the client's function if its level asks for this activity. */
void inf_trace_report(inf_trace_t *trace,
    TRITONSERVER_InferenceTraceActivity activity, uint64_t timestamp_ns);

/* stamps is exec start, compute start, compute end, exec end. */
void inf_trace_report_compute(inf_trace_t *trace, const uint64_t stamps[4]);

/* The same for a tensor; the client may read it during the call only. */
void inf_trace_report_tensor(inf_trace_t *trace,
    TRITONSERVER_InferenceTraceActivity activity,
    const inf_trace_tensor_t *tensor);

#endif /* INF_ABI_TRACE_H */
