/*
 * trace_record.h - events of one traced request and of the requests made for
 *                  it: names, times and tensors.
 *
 * Owner    References: one for each trace that adds events, one for each part
 *          of the answer being sent.  The last unref passes it to the tracer.
 * Thread   any: events are pushed without a lock.
 * Units    ns on the monotonic clock, bytes.
 * Errors   A record out of memory or over the memory limit is incomplete, and
 *          dropped when it ends.
 * Route    request trace -> [trace record] -> tracer -> file, collector
 */

#ifndef INF_SERVER_TRACE_RECORD_H
#define INF_SERVER_TRACE_RECORD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/queue.h"
#include "core/proto/trace_context.h"
#include "core/server/trace_settings.h"

struct inf_tracer_s;

typedef enum {
    INF_TRACE_WHO,              /* a trace begins                            */
    INF_TRACE_TIME,             /* a time of the trace                       */
    INF_TRACE_FRONT,            /* a time in the worker or on the way from and
                                   to it                                     */
    INF_TRACE_TENSOR
} inf_trace_kind_t;

/* Texts and arrays follow it in the same memory. */
typedef struct inf_trace_event_s {
    struct inf_trace_event_s *next;
    inf_trace_kind_t  kind;
    uint64_t          id;           /* of the trace                          */
    uint64_t          parent_id;    /* WHO: 0: none                          */
    uint32_t          span;         /* WHO: number of the trace's span       */
    int64_t           version;      /* WHO: of the model                     */
    uint64_t          ns;           /* TIME, FRONT                           */
    const char       *name;         /* WHO: model; else the activity         */
    const char       *request_id;   /* WHO: "" without one                   */
    const char       *tensor;       /* TENSOR: its name                      */
    int               datatype;     /* TENSOR: an inf_datatype_t             */
    uint64_t          dim_count;
    const int64_t    *shape;
    const void       *data;
    size_t            size;
} inf_trace_event_t;

typedef struct inf_trace_record_s {
    inf_link_t            link;         /* in the tracer's queue             */
    struct inf_tracer_s  *tracer;       /* a reference                       */
    inf_trace_setting_t  *setting;      /* likewise                          */
    _Atomic uint32_t      refs;         /* up relaxed, down acq_rel          */
    _Atomic(inf_trace_event_t *) events;    /* newest first; release push    */
    _Atomic uint64_t      bytes;        /* relaxed: of events                */
    _Atomic uint32_t      traces;       /* relaxed: that have begun          */
    _Atomic bool          incomplete;   /* relaxed                           */
    uint64_t              id;           /* of the whole request's trace      */
    bool                  tensors;      /* set in new(), from the level      */
    bool                  timestamps;
    uint64_t              wall_ns;      /* realtime minus monotonic clock    */
    bool                  has_parent;   /* the client's span is known        */
    inf_trace_context_t   context;      /* always has the trace's id         */
    uint64_t              spans;        /* base of the ids of spans          */
    char                 *state;        /* client's tracestate, or NULL      */
} inf_trace_record_t;

/* Takes setting on success.  parent and state (len 0: none) may be NULL. */
INF_CHECK inf_err_t *inf_trace_record_new(struct inf_tracer_s *tracer,
    inf_trace_setting_t *setting, const inf_trace_context_t *parent,
    inf_slice_t state, inf_trace_record_t **out);

/* References, one for each thread that adds events; unref: r may be NULL. */
void inf_trace_record_ref(inf_trace_record_t *r);
void inf_trace_record_unref(inf_trace_record_t *r);

/* Frees a record that unref passed to the tracer. */
void inf_trace_record_free(inf_trace_record_t *r);

/* Copies the event's data except its name, unless copy_name is set. */
void inf_trace_record_note(inf_trace_record_t *r,
    const inf_trace_event_t *event, bool copy_name);

/* Returns the number of the span of a trace that begins, from 1. */
uint32_t inf_trace_record_next_span(inf_trace_record_t *r);

/* Returns all events, oldest first.  Called once, after the last note. */
inf_trace_event_t *inf_trace_record_events(inf_trace_record_t *r);

/* The id of the record's span number n; 0 is the whole request's. */
void inf_trace_record_span(const inf_trace_record_t *r, uint32_t n,
    uint8_t id[INF_SPAN_ID]);

#endif /* INF_SERVER_TRACE_RECORD_H */
