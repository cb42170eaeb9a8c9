/*
 * trace_collector.h - posts traces to an OpenTelemetry collector: OTLP over
 *                     HTTP, in its JSON form.
 *
 * Owner    The tracer owns it.
 * Thread   the tracer's.
 * Units    ns since 1970.
 * Errors   A post that fails is logged once until one succeeds; its traces
 *          are lost.
 * Route    tracer -> [trace collector] -> http post
 *
 * Spans of a request: "InferRequest" from the first byte to the last, below it
 * one named after the model, below that "compute" and the models that an
 * ensemble runs.  A custom activity NAME_START opens a span that NAME_END
 * closes.  Source: OpenTelemetry protocol 1, Triton's user guide.
 */

#ifndef INF_SERVER_TRACE_COLLECTOR_H
#define INF_SERVER_TRACE_COLLECTOR_H

#include "core/base/buf.h"
#include "core/server/trace_record.h"

typedef struct inf_trace_collector_s inf_trace_collector_t;

/* config's url and resources are copied. */
INF_CHECK inf_err_t *inf_trace_collector_new(
    const NginxInference__TraceSettings *config,
    inf_trace_collector_t **out);

/* c may be NULL. */
void inf_trace_collector_free(inf_trace_collector_t *c);

/* Posts a list of count records; how many of them are lost. */
uint32_t inf_trace_collector_send(inf_trace_collector_t *c,
    inf_link_t *records, uint32_t count);

/* Appends the spans of one record, with commas between them; none: false. */
bool inf_trace_collector_text(inf_trace_record_t *r, inf_buf_t *out);

#endif /* INF_SERVER_TRACE_COLLECTOR_H */
