/*
 * infer_parts.h - shared by infer.c, infer_generate.c, infer_cancel.c and
 *                 request_regions.c.
 *
 * Owner    see infer.h.
 * Thread   queue: the intake role or a control thread; the rest: any.
 * Units    ns.
 * Errors   of the request; the caller rejects it.
 * Route    see infer.h.
 */

#ifndef INF_SERVICE_INFER_PARTS_H
#define INF_SERVICE_INFER_PARTS_H

#include "core/service/infer.h"

/* Converts the JSON of generate to the request's tensors and parameters. */
INF_CHECK inf_err_t *inf_infer_generate(inf_in_flight_t *in_flight);

/* Submits the complete request to its model, which queues, runs or rejects it.
   On error the request is still the caller's. */
INF_CHECK inf_err_t *inf_infer_queue(inf_in_flight_t *in_flight,
    uint64_t now_ns, bool nonblocking, inf_infer_fed_t *fed);

/* The number of the record's inputs to read.  The client sets their count: of
   many more than the model has, the first ones suffice for the error that
   normalize makes of them. */
uint32_t inf_infer_input_count(const inf_in_flight_t *in_flight);

/* Answers a request that is in no queue with err, which is taken. */
void inf_infer_reject(inf_in_flight_t *in_flight, inf_err_t *err);

/* Rejects a cancelled request if it is still queued.  The caller holds a
   reference of the factory. */
void inf_infer_unqueue(inf_in_flight_t *in_flight);

#endif /* INF_SERVICE_INFER_PARTS_H */
