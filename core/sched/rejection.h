/*
 * rejection.h - the answer to a request that will not run.
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

/* Counts req, answers CANCELLED and releases it. */
void inf_reject_cancelled(inf_request_t *req);

/* Counts req, answers that it has waited too long and releases it. */
void inf_reject_timed_out(inf_request_t *req);

/* Counts req, which was to run, answers err (taken) and releases it. */
void inf_reject_failed(inf_request_t *req, inf_err_t *err);

/* Answers err (taken) and releases req, whose inputs are malformed, without
   counting: it counts as rejected on arrival. */
void inf_reject_malformed(inf_request_t *req, inf_err_t *err);

/* The error of req, the first of a sequence without START. */
INF_CHECK inf_err_t *inf_rejection_no_start(const inf_request_t *req,
    const char *model);

/* Answers each request in gone by the reason in its factory. */
void inf_reject_gone(inf_link_t *gone);

#endif /* INF_SCHED_REJECTION_H */
