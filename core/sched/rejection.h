/*
 * rejection.h - the answer to a request that will not run any more.
 *
 * Owner    Takes the request.
 * Thread   any, no lock held.
 * Units    none.
 * Errors   none: the request is answered and released in any case.
 * Route    runner, canceller -> [rejection] -> sink.
 */

#ifndef INF_SCHED_REJECTION_H
#define INF_SCHED_REJECTION_H

#include "core/tensor/request.h"

/* Counts, answers CANCELLED and releases req. */
void inf_reject_cancelled(inf_request_t *req);

/* Counts, answers that it has waited too long and releases req. */
void inf_reject_timed_out(inf_request_t *req);

/* Counts, answers that the rest of its sequence isn't awaited any longer and
   releases req. */
void inf_reject_sequence_timed_out(inf_request_t *req);

/* Counts, answers err, which it takes, and releases req, which was to run. */
void inf_reject_failed(inf_request_t *req, inf_err_t *err);

/* Answers err, which it takes, and releases req, whose inputs are malformed:
   nothing is counted, as of what is rejected when it comes. */
void inf_reject_malformed(inf_request_t *req, inf_err_t *err);

/* Why req, which is the first of its sequence but lacks START, is none. */
INF_CHECK inf_err_t *inf_rejection_no_start(const inf_request_t *req,
    const char *model);

/* Each of the requests on gone, as its factory says which it is. */
void inf_reject_gone(inf_link_t *gone);

#endif /* INF_SCHED_REJECTION_H */
