/*
 * trace_context.h - the header "traceparent": which trace a client's request
 *                   belongs to.
 *
 * Owner    The caller's memory.
 * Thread   any.
 * Units    bytes.
 * Errors   A text that is none is no error: it says nothing.
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

/* A header's length: longer ones are of a later version and cut there. */
#define INF_TRACEPARENT_LEN 55u

/* The longest tracestate that is carried. */
#define INF_TRACESTATE_MAX  512u

/* How the two headers cross to the core: as parameters of these names, which
   no client can give to a request. */
#define INF_TRACEPARENT_PARAMETER "triton_traceparent"
#define INF_TRACESTATE_PARAMETER  "triton_tracestate"

typedef struct {
    uint8_t trace_id[INF_TRACE_ID];     /* not all zero                      */
    uint8_t span_id[INF_SPAN_ID];       /* the client's; not all zero        */
    bool    sampled;                    /* the client traces it itself       */
} inf_trace_context_t;

/* false: text is no context of a version that is known. */
bool inf_trace_context_read(inf_slice_t text, inf_trace_context_t *out);

/* Whether text may be a tracestate: printable, not empty, not too long. */
bool inf_trace_state_valid(inf_slice_t text);

/* Writes 2 n digits and a NUL. */
void inf_trace_hex(const uint8_t *bytes, unsigned n, char *out);

#endif /* INF_PROTO_TRACE_CONTEXT_H */
