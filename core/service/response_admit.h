/*
 * response_admit.h - responses of a request whose client may be slower than the
 *                    backend: those that have to wait, and those that end it.
 *
 * Owner    admit takes the response and returns what is sent for it.
 * Thread   any.
 * Units    bytes.
 * Errors   UNAVAILABLE, with INF_CAUSE_UNTAKEN: the client has not taken its
 *          responses for the time of inference_response_wait.
 * Route    infer's sink -> [response admit] -> response flow
 */

#ifndef INF_SERVICE_RESPONSE_ADMIT_H
#define INF_SERVICE_RESPONSE_ADMIT_H

#include "core/service/session.h"

/* May wait for the client.  The result is the response, the error that ends the
   request, or NULL: dropped, as after that error.  *admitted: bytes for
   inf_response_sent. */
inf_response_t *inf_response_admit(inf_in_flight_t *in_flight,
    inf_response_t *response, uint32_t flags, uint64_t *admitted);

/* Notes what is about to be sent: the record of size bytes in region, or a bare
   completion (NULL). */
void inf_response_sent(inf_in_flight_t *in_flight,
    const inf_response_t *response, uint64_t admitted,
    inf_channel_region_t *region, uint64_t size, bool final);

#endif /* INF_SERVICE_RESPONSE_ADMIT_H */
