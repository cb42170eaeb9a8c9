/*
 * response_write.h - writes a response as a record in the response arena.
 *
 * Owner    The record's region is the caller's; it holds the outputs' regions.
 * Thread   as the response's.
 * Units    bytes.
 * Errors   An error of the response becomes the record's.
 * Route    infer's sink -> [response write] -> record
 */

#ifndef INF_SERVICE_RESPONSE_WRITE_H
#define INF_SERVICE_RESPONSE_WRITE_H

#include "core/service/session.h"

/* Writes the record and sets *size; NULL: the arena is full, or out of memory,
   and the caller sends a status. */
inf_channel_region_t *inf_response_write(inf_in_flight_t *in_flight,
    inf_response_t *response, uint64_t *size);

/* Sets the fields of c, whose cause is set, that describe the execution, for
   logs. */
void inf_response_describe(const inf_in_flight_t *in_flight,
    const inf_response_t *response, inf_completion_t *c);

#endif /* INF_SERVICE_RESPONSE_WRITE_H */
