/*
 * tracer.h - writes trace records to a file or a collector on a thread of its
 *            own, and holds the trace settings.
 *
 * Owner    References: the server's and one for each record.  Records that end
 *          after stop are dropped.
 * Thread   any; only the tracer's thread waits for files and sockets.
 * Units    bytes, traces.
 * Errors   Records that cannot be written are dropped, counted, and summed up
 *          in the log.
 * Route    trace record -> [tracer] -> trace file, trace collector
 */

#ifndef INF_SERVER_TRACER_H
#define INF_SERVER_TRACER_H

#include "core/server/trace_record.h"
#include "core/server/trace_settings.h"

typedef struct inf_tracer_s inf_tracer_t;

/* config is valid until stop.  The thread starts if a file or collector is
   configured. */
INF_CHECK inf_err_t *inf_tracer_new(
    const NginxInference__TraceSettings *config, inf_tracer_t **out);

/* Writes the queued records, for two seconds at most, ends the thread and drops
   the server's reference; tracer may be NULL. */
void inf_tracer_stop(inf_tracer_t *tracer);

/* ref returns tracer; with the last reference it is freed. */
inf_tracer_t *inf_tracer_ref(inf_tracer_t *tracer);
void inf_tracer_unref(inf_tracer_t *tracer);

/* The tracer's settings, which live as long as the tracer. */
inf_trace_settings_t *inf_tracer_settings(inf_tracer_t *tracer);

/* Whether any request may be traced; checked for each request. */
bool inf_tracer_is_on(const inf_tracer_t *tracer);

/* Queues or drops a record that has ended. */
void inf_tracer_push(inf_trace_record_t *record);

/* Counts memory for a record's events; false: over the limit.  give is called
   in both cases. */
bool inf_tracer_take(inf_tracer_t *tracer, size_t bytes);
void inf_tracer_give(inf_tracer_t *tracer, uint64_t bytes);

/* Traces that were dropped so far. */
uint64_t inf_tracer_dropped(const inf_tracer_t *tracer);

#endif /* INF_SERVER_TRACER_H */
