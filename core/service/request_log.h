/*
 * request_log.h - verbose lines about single requests.
 *
 * Owner    none.
 * Thread   taken: the thread that reads the request.  cancelled: the intake
 *          role.
 * Units    none.
 * Errors   none.
 * Route    infer, cancel -> [request log] -> log
 */

#ifndef INF_SERVICE_REQUEST_LOG_H
#define INF_SERVICE_REQUEST_LOG_H

#include "core/service/session.h"

/* A request whose record and id are read, and whose model is not yet found.  A
   generate request has its id in its JSON, which is read later. */
void inf_request_log_taken(const inf_in_flight_t *in_flight);

/* A cancelled request, which its own thread may still read until the model is
   found. */
void inf_request_log_cancelled(const inf_in_flight_t *in_flight);

#endif /* INF_SERVICE_REQUEST_LOG_H */
