/*
 * request_regions.h - the shared-memory regions that a request names for its
 *                     inputs and outputs.
 *
 * Owner    The request in flight holds a reference of each region; the list is
 *          in the request's arena.
 * Thread   find, input: the thread that reads the request; the rest: any.
 * Units    bytes.
 * Errors   INVALID_ARG: no such region, or the range is outside of it.
 *          INTERNAL: too small for the output.
 * Route    infer -> [request regions] -> request; infer's sink -> [request
 *          regions] -> the client's memory
 */

#ifndef INF_SERVICE_REQUEST_REGIONS_H
#define INF_SERVICE_REQUEST_REGIONS_H

#include "core/service/session.h"

/* References the regions of inputs, then those of outputs. */
INF_CHECK inf_err_t *inf_request_regions_find(inf_in_flight_t *in_flight);

/* The bytes of the input with region number nth, from 0. */
inf_buffer_t inf_request_regions_input(const inf_in_flight_t *in_flight,
    uint32_t nth, const inf_record_input_t *in);

/* The part of a region for the output; NULL: it goes to the response arena. */
const inf_in_flight_place_t *inf_request_regions_place(
    const inf_in_flight_t *in_flight, const char *name);

/* Makes place the output's memory.  sink_userp stays NULL, as the request in
   flight holds the reference.  base stays NULL if place is on a GPU and the
   backend prefers the host: the output then gets other memory, which fill
   copies. */
INF_CHECK inf_err_t *inf_request_regions_alloc(
    const inf_in_flight_place_t *place, inf_memory_type_t preferred,
    inf_output_t *out, size_t size);

/* Copies outputs to their places, unless they are there. */
INF_CHECK inf_err_t *inf_request_regions_fill(
    const inf_in_flight_t *in_flight, const inf_response_t *response);

/* Fails if a region is broken: its bytes are not the client's. */
INF_CHECK inf_err_t *inf_request_regions_check(
    const inf_in_flight_t *in_flight);

#endif /* INF_SERVICE_REQUEST_REGIONS_H */
