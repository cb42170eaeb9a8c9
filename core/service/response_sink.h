/*
 * response_sink.h - responses to a worker's request: memory for outputs, flow
 *                   control, completions.
 *
 * Owner    The sink frees each response.  Outputs are regions of the response
 *          arena; the worker frees them.
 * Thread   any; userp is the request in flight.
 * Units    bytes; ns on the monotonic clock.
 * Errors   UNAVAILABLE: the response arena is full.
 * Route    backend -> [response sink] -> response write -> channel
 */

#ifndef INF_SERVICE_RESPONSE_SINK_H
#define INF_SERVICE_RESPONSE_SINK_H

#include "core/service/session.h"

/* For inf_factory_start; userp is an inf_in_flight_t. */
extern const inf_sink_ops_t inf_response_sink;

#endif /* INF_SERVICE_RESPONSE_SINK_H */
