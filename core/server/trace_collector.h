/*
 * trace_collector.h - posts traces to an OpenTelemetry collector: OTLP over
 *                     HTTP in JSON.
 *
 * Owner    The tracer owns it.
 * Thread   the tracer's thread.
 * Units    ns since 1970.
 * Errors   The first of consecutive failed posts is logged; its traces are
 *          lost.
 * Route    tracer -> [trace collector] -> http post
 *
 * Spans of a request: "InferRequest" from the first byte to the last; below it
 * one named after the model; below that "compute" and the composing models of
 * an ensemble.  A custom activity NAME_START opens a span that NAME_END
 * closes.  Source: OpenTelemetry protocol 1, Triton's user guide.
 */

#ifndef INF_SERVER_TRACE_COLLECTOR_H
#define INF_SERVER_TRACE_COLLECTOR_H

#include "core/base/buf.h"
#include "core/server/trace_record.h"

typedef struct inf_trace_collector_s inf_trace_collector_t;

/* Copies url and resources of config.  Headers of the posts and authorities of
   https:// come from OpenTelemetry's variables OTEL_EXPORTER_OTLP_HEADERS and
   OTEL_EXPORTER_OTLP_CERTIFICATE, or ..._OTLP_TRACES_... of them.  until_ns: on
   the monotonic clock, when a post ends in any case; it is valid until free. */
INF_CHECK inf_err_t *inf_trace_collector_new(
    const NginxInference__TraceSettings *config,
    const _Atomic uint64_t *until_ns, inf_trace_collector_t **out);

/* c may be NULL. */
void inf_trace_collector_free(inf_trace_collector_t *c);

/* Posts a list of count records; returns the number lost. */
uint32_t inf_trace_collector_send(inf_trace_collector_t *c,
    inf_link_t *records, uint32_t count);

/* Appends the spans of one record, separated by commas; false: none. */
bool inf_trace_collector_text(inf_trace_record_t *r, inf_buf_t *out);

#endif /* INF_SERVER_TRACE_COLLECTOR_H */
