/*
 * request_trace.h - the trace of a worker's request, from its first byte to
 *                   the last of its answer.
 *
 * Owner    The request in flight holds a reference of the trace until its
 *          request and its factory have ended; the trace holds the record.
 * Thread   begin: the thread that submits the request.  The rest: as the
 *          request.
 * Units    ns on the monotonic clock.
 * Errors   A trace that cannot be made is logged; its request goes on.
 * Route    infer -> [request trace] -> trace record
 *
 * Triton's HTTP_SEND_END and GRPC_SEND_END are noted here when the worker has
 * released the answer's memory.  Answers of decoupled models have neither that
 * nor SEND_START.
 */

#ifndef INF_SERVICE_REQUEST_TRACE_H
#define INF_SERVICE_REQUEST_TRACE_H

#include "core/server/tracer.h"
#include "core/service/session.h"

/* Whether the parameter carries a trace header and is not the model's. */
bool inf_request_trace_is_header(inf_slice_t parameter);

/* Begins a trace for a request about to be submitted, if the tracer, which is
   on, selects it. */
void inf_request_trace_begin(inf_in_flight_t *in_flight, inf_tracer_t *tracer,
    uint64_t now_ns);

/* For a traced request: notes a response (NULL: flags alone) that is about to
   be published in region, which may be NULL; whether it notes the region's
   release, too. */
bool inf_request_trace_answer(inf_in_flight_t *in_flight,
    const inf_response_t *response, inf_channel_region_t *region);

/* For a traced request: notes its release to the worker. */
void inf_request_trace_released(inf_in_flight_t *in_flight);

#endif /* INF_SERVICE_REQUEST_TRACE_H */
