#include "core/abi/objects.h"
#include "core/abi/trace.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/lock.h"
#include "core/base/refs.h"
#include "core/proto/json_doc.h"
#include "core/proto/message_json.h"
#include "core/server/trace_activity.h"

#define TRACE_RANK 60

struct TRITONSERVER_InferenceTrace {
    uint64_t         id;                /* set in new(), then constant       */
    uint64_t         parent_id;
    uint32_t         level;             /* TRITONSERVER_TRACE_LEVEL_* bits   */
    TRITONSERVER_InferenceTraceActivityFn_t activity;
    TRITONSERVER_InferenceTraceTensorActivityFn_t tensor_activity;
    TRITONSERVER_InferenceTraceReleaseFn_t release;
    void            *userp;
    const inf_trace_watch_t *watch;     /* NULL: none                        */

    char            *model;             /* set in take(), then constant      */
    int64_t          version;
    char            *request_id;
    _Atomic uint32_t refs;              /* 0: owned by its creator; up relaxed,
                                           down acq_rel                      */

    inf_lock_t       lock;              /* rank 60; guards context           */
    char            *context;
};

static TRITONSERVER_Error *trace_new(const inf_trace_t *like,
    inf_trace_t **out);
static void trace_free(inf_trace_t *trace);
static uint32_t level_bits(TRITONSERVER_InferenceTraceLevel level);
static TRITONSERVER_Error *context_with(const char *context,
    uint64_t timestamp, const char *name, char **out);
static TRITONSERVER_Error *check_object(const char *context);
static bool context_replace(inf_trace_t *trace, const char *from, char *to);

static _Atomic uint64_t last_id;        /* relaxed: unique ids, from 1 on    */

const char *
TRITONSERVER_InferenceTraceLevelString(TRITONSERVER_InferenceTraceLevel level)
{
    switch (level) {
    case TRITONSERVER_TRACE_LEVEL_DISABLED:
        return "DISABLED";
    case TRITONSERVER_TRACE_LEVEL_MIN:
        return "MIN";
    case TRITONSERVER_TRACE_LEVEL_MAX:
        return "MAX";
    case TRITONSERVER_TRACE_LEVEL_TIMESTAMPS:
        return "TIMESTAMPS";
    case TRITONSERVER_TRACE_LEVEL_TENSORS:
        return "TENSORS";
    }

    return "<unknown>";
}

const char *
TRITONSERVER_InferenceTraceActivityString(
    TRITONSERVER_InferenceTraceActivity activity)
{
    return inf_trace_activity_name(activity);
}

TRITONSERVER_Error *
TRITONSERVER_InferenceTraceNew(TRITONSERVER_InferenceTrace **trace,
    TRITONSERVER_InferenceTraceLevel level, uint64_t parent_id,
    TRITONSERVER_InferenceTraceActivityFn_t activity_fn,
    TRITONSERVER_InferenceTraceReleaseFn_t release_fn, void *trace_userp)
{
    return TRITONSERVER_InferenceTraceTensorNew(trace, level, parent_id,
        activity_fn, NULL, release_fn, trace_userp);
}

TRITONSERVER_Error *
TRITONSERVER_InferenceTraceTensorNew(TRITONSERVER_InferenceTrace **trace,
    TRITONSERVER_InferenceTraceLevel level, uint64_t parent_id,
    TRITONSERVER_InferenceTraceActivityFn_t activity_fn,
    TRITONSERVER_InferenceTraceTensorActivityFn_t tensor_activity_fn,
    TRITONSERVER_InferenceTraceReleaseFn_t release_fn, void *trace_userp)
{
    return trace_new(&(inf_trace_t) {
        .parent_id = parent_id,
        .level = level_bits(level),
        .activity = activity_fn,
        .tensor_activity = tensor_activity_fn,
        .release = release_fn,
        .userp = trace_userp
    }, trace);
}

/* A trace that is NULL, as RequestTrace gives for a request without one, is no
   error: backends report without a look. */
TRITONSERVER_Error *
TRITONSERVER_InferenceTraceReportActivity(TRITONSERVER_InferenceTrace *trace,
    uint64_t timestamp, const char *activity_name)
{
    bool done = trace == NULL;

    while (!done) {                     /* repeat if another thread was first */
        char *from = inf_trace_context_copy(trace);
        char *to = NULL;
        inf_err_t *err = from == NULL ? inf_err_nomem()
            : context_with(from, timestamp, activity_name, &to);
        if (err != NULL) {
            free(from);
            return inf_err_add(err, "cannot report activity '%s'",
                activity_name);
        }

        done = context_replace(trace, from, to);
        free(from);
    }

    inf_trace_report(trace, TRITONSERVER_TRACE_CUSTOM_ACTIVITY, timestamp);
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceTraceDelete(TRITONSERVER_InferenceTrace *trace)
{
    trace_free(trace);
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceTraceId(TRITONSERVER_InferenceTrace *trace, uint64_t *id)
{
    *id = trace->id;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceTraceParentId(TRITONSERVER_InferenceTrace *trace,
    uint64_t *parent_id)
{
    *parent_id = trace->parent_id;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceTraceModelName(TRITONSERVER_InferenceTrace *trace,
    const char **model_name)
{
    *model_name = trace->model != NULL ? trace->model : "";
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceTraceModelVersion(TRITONSERVER_InferenceTrace *trace,
    int64_t *model_version)
{
    *model_version = trace->version;
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceTraceRequestId(TRITONSERVER_InferenceTrace *trace,
    const char **request_id)
{
    *request_id = trace->request_id != NULL ? trace->request_id : "";
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceTraceSpawnChildTrace(TRITONSERVER_InferenceTrace *trace,
    TRITONSERVER_InferenceTrace **child_trace)
{
    *child_trace = NULL;
    if (trace == NULL) {
        return NULL;
    }

    inf_err_t *err = trace_new(&(inf_trace_t) {
        .parent_id = trace->id,
        .level = trace->level,
        .activity = trace->activity,
        .tensor_activity = trace->tensor_activity,
        .release = trace->release,
        .userp = trace->userp,
        .watch = trace->watch
    }, child_trace);
    if (err == NULL && trace->watch != NULL) {
        trace->watch->made(trace->userp);
    }
    return err;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceTraceSetContext(TRITONSERVER_InferenceTrace *trace,
    const char *trace_context)
{
    char *copy = strdup(trace_context != NULL ? trace_context : "");
    if (copy == NULL) {
        return inf_err_nomem();
    }

    context_replace(trace, NULL, copy);
    return NULL;
}

TRITONSERVER_Error *
TRITONSERVER_InferenceTraceContext(TRITONSERVER_InferenceTrace *trace,
    const char **trace_context)
{
    inf_lock(&trace->lock);
    *trace_context = trace->context;
    inf_unlock(&trace->lock);
    return NULL;
}

void
inf_trace_set_watch(inf_trace_t *trace, const inf_trace_watch_t *watch)
{
    trace->watch = watch;
}

inf_err_t *
inf_trace_take(inf_trace_t *trace, const char *model, int64_t version,
    const char *request_id)
{
    char *name = strdup(model);
    char *id = strdup(request_id);
    if (name == NULL || id == NULL) {
        free(name);
        free(id);
        return inf_err_nomem();
    }

    free(trace->model);
    free(trace->request_id);
    trace->model = name;
    trace->version = version;
    trace->request_id = id;
    atomic_store_explicit(&trace->refs, 1, memory_order_relaxed);
    return NULL;
}

void
inf_trace_ref(inf_trace_t *trace)
{
    if (trace != NULL) {
        atomic_fetch_add_explicit(&trace->refs, 1, memory_order_relaxed);
    }
}

void
inf_trace_unref(inf_trace_t *trace)
{
    if (trace == NULL || !inf_refs_drop(&trace->refs)) {
        return;
    }

    if (trace->release != NULL) {
        trace->release(trace, trace->userp);
    } else {
        trace_free(trace);
    }
}

void
inf_trace_report(inf_trace_t *trace,
    TRITONSERVER_InferenceTraceActivity activity, uint64_t timestamp_ns)
{
    if (trace != NULL && trace->activity != NULL
        && (trace->level & TRITONSERVER_TRACE_LEVEL_TIMESTAMPS))
    {
        trace->activity(trace, activity, timestamp_ns, trace->userp);
    }
}

void
inf_trace_report_compute(inf_trace_t *trace, const uint64_t stamps[4])
{
    static const TRITONSERVER_InferenceTraceActivity activities[4] = {
        TRITONSERVER_TRACE_COMPUTE_START,
        TRITONSERVER_TRACE_COMPUTE_INPUT_END,
        TRITONSERVER_TRACE_COMPUTE_OUTPUT_START,
        TRITONSERVER_TRACE_COMPUTE_END
    };

    for (int i = 0; i < 4; i++) {
        inf_trace_report(trace, activities[i], stamps[i]);
    }
}

void
inf_trace_report_tensor(inf_trace_t *trace,
    TRITONSERVER_InferenceTraceActivity activity,
    const inf_trace_tensor_t *t)
{
    if (trace != NULL && trace->tensor_activity != NULL
        && (trace->level & TRITONSERVER_TRACE_LEVEL_TENSORS))
    {
        trace->tensor_activity(trace, activity, t->name, t->datatype, t->base,
            t->byte_size, t->shape, t->dim_count, t->memory_type,
            t->memory_id, trace->userp);
    }
}

/* Creates a trace with a new id; level, parent and callbacks are those of
   like. */
static TRITONSERVER_Error *
trace_new(const inf_trace_t *like, inf_trace_t **out)
{
    inf_trace_t *trace = calloc(1, sizeof(*trace));
    char *context = strdup("");
    if (trace == NULL || context == NULL) {
        free(trace);
        free(context);
        return inf_err_nomem();
    }

    trace->id = atomic_fetch_add_explicit(&last_id, 1,
        memory_order_relaxed) + 1;
    trace->parent_id = like->parent_id;
    trace->level = like->level;
    trace->activity = like->activity;
    trace->tensor_activity = like->tensor_activity;
    trace->release = like->release;
    trace->userp = like->userp;
    trace->watch = like->watch;
    trace->version = -1;
    trace->context = context;
    inf_lock_init(&trace->lock, TRACE_RANK);
    *out = trace;
    return NULL;
}

static void
trace_free(inf_trace_t *trace)
{
    if (trace == NULL) {
        return;
    }

    if (trace->watch != NULL) {
        trace->watch->freed(trace->userp);
    }
    inf_lock_fini(&trace->lock);
    free(trace->model);
    free(trace->request_id);
    free(trace->context);
    free(trace);
}

/* The bits of a level; the obsolete MIN and MAX mean TIMESTAMPS. */
static uint32_t
level_bits(TRITONSERVER_InferenceTraceLevel level)
{
    uint32_t old = TRITONSERVER_TRACE_LEVEL_MIN | TRITONSERVER_TRACE_LEVEL_MAX;
    uint32_t bits = (uint32_t) level;

    return (bits & old) == 0 ? bits
        : (bits & ~old) | TRITONSERVER_TRACE_LEVEL_TIMESTAMPS;
}

/* Returns a malloc'ed copy of context with one more member
   "<timestamp>":"<name>". */
static TRITONSERVER_Error *
context_with(const char *context, uint64_t timestamp, const char *name,
    char **out)
{
    size_t len = strlen(context);
    bool first = true;

    if (len > 0) {
        inf_err_t *err = check_object(context);
        if (err != NULL) {
            return err;
        }
        len = (size_t) (strrchr(context, '}') - context);
        while (len > 0 && strchr(" \t\r\n", context[len - 1]) != NULL) {
            len--;
        }
        first = context[len - 1] == '{';
    }

    inf_buf_t text;
    inf_buf_init(&text);
    inf_buf_put(&text, len > 0 ? context : "{", len > 0 ? len : 1);
    inf_buf_printf(&text, "%s\"%llu\":", first ? "" : ",",
        (unsigned long long) timestamp);
    inf_json_put_string(&text, inf_slice_str(name));
    inf_buf_putc(&text, '}');

    inf_err_t *err = inf_buf_status(&text);
    if (err == NULL) {
        *out = inf_buf_give(&text, &len);
        err = *out != NULL ? NULL : inf_err_nomem();
    }
    inf_buf_fini(&text);
    return err;
}

static TRITONSERVER_Error *
check_object(const char *context)
{
    inf_json_doc_t doc = { 0 };
    inf_err_t *err = inf_json_doc_parse(&doc, inf_slice_str(context), 0);
    if (err == NULL && !json_is_object(doc.root)) {
        err = inf_err_new(INF_ERR_INVALID_ARG, "it is another JSON value");
    }

    inf_json_doc_fini(&doc);
    return err == NULL ? NULL
        : inf_err_add(err, "the trace's context is no JSON object");
}

/* Copies the context without allocating under the lock: measures, allocates,
   and repeats if it has grown. */
char *
inf_trace_context_copy(inf_trace_t *trace)
{
    size_t room = 0;
    char *copy = NULL;

    for ( ;; ) {
        inf_lock(&trace->lock);
        size_t need = strlen(trace->context) + 1;
        if (need <= room) {
            memcpy(copy, trace->context, need);
        }
        inf_unlock(&trace->lock);

        if (need <= room) {
            return copy;
        }
        free(copy);
        copy = malloc(need);
        if (copy == NULL) {
            return NULL;
        }
        room = need;
    }
}

/* Replaces the context by to, if it is still from (NULL: always); takes to.  On
   false to is freed. */
static bool
context_replace(inf_trace_t *trace, const char *from, char *to)
{
    inf_lock(&trace->lock);

    bool same = from == NULL || strcmp(trace->context, from) == 0;
    char *old = same ? trace->context : to;
    if (same) {
        trace->context = to;
    }

    inf_unlock(&trace->lock);

    free(old);
    return same;
}
