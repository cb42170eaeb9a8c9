/*
 * run_responses.h - distributes the outputs of a run to the responses of its
 *                   requests and to states of their sequences.
 *
 * Owner    The responses own the copies.
 * Thread   the instance's.
 * Units    elements; rows of the batch dimension.
 * Errors   INTERNAL: the shape of an output cannot be split; for all requests.
 *          An error of one response is kept in the err of its request.
 * Route    the runtime -> batch -> [run_responses] -> batch_request
 */

#ifndef BK_RUN_RESPONSES_H
#define BK_RUN_RESPONSES_H

#include "batch.h"

/* Called after a successful run.  Adds to each response the request's part of
 * the outputs that it has asked for, unless the run wrote into the response. */
BK_CHECK TRITONSERVER_Error *bk_run_responses_fill(bk_batch_t *b,
    bk_batch_request_t *reqs, uint32_t count);

#endif /* BK_RUN_RESPONSES_H */
