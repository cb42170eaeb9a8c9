/*
 * trace_context.h - the header "traceparent": the trace of a client's request.
 *
 * Owner    The caller's memory.
 * Thread   any.
 * Units    bytes.
 * Errors   An invalid text is ignored, without an error.
 * Route    header -> worker -> request record -> [trace context] -> collector
 *
 * Source: W3C Trace Context.
 */

#ifndef INF_PROTO_TRACE_CONTEXT_H
#define INF_PROTO_TRACE_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/slice.h"

#define INF_TRACE_ID   16u
#define INF_SPAN_ID    8u

/* The length used of a header: longer ones belong to a later version. */
#define INF_TRACEPARENT_LEN 55u

/* The longest accepted tracestate. */
#define INF_TRACESTATE_MAX  512u

/* Names of the parameters that pass the two headers to the core; clients cannot
   set parameters of these names. */
#define INF_TRACEPARENT_PARAMETER "triton_traceparent"
#define INF_TRACESTATE_PARAMETER  "triton_tracestate"

typedef struct {
    uint8_t trace_id[INF_TRACE_ID];     /* not all zero                      */
    uint8_t span_id[INF_SPAN_ID];       /* of the client's span; not all zero */
    bool    sampled;                    /* the client samples the trace      */
} inf_trace_context_t;

/* Reads a header; false: invalid or of an unknown version. */
bool inf_trace_context_read(inf_slice_t text, inf_trace_context_t *out);

/* Whether text may be a tracestate: printable, not empty, not too long. */
bool inf_trace_state_valid(inf_slice_t text);

/* Writes 2 n digits and a NUL. */
void inf_trace_hex(const uint8_t *bytes, unsigned n, char *out);

#endif /* INF_PROTO_TRACE_CONTEXT_H */
