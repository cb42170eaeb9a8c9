/*
 * run_responses.h - the outputs of a run, distributed to the responses of its
 *                   requests, and to their sequences' states.
 *
 * Owner    Copies belong to the responses.
 * Thread   the instance's.
 * Units    elements; rows of the batch dimension.
 * Errors   INTERNAL: an output whose shape cannot be split, for all requests
 *          alike.  A response that cannot be filled costs its own request.
 * Route    the runtime -> batch -> [run_responses] -> batch_request
 */

#ifndef BK_RUN_RESPONSES_H
#define BK_RUN_RESPONSES_H

#include "batch.h"

/* After a successful run: each request gets its part of the outputs that it
 * asked for and that are not in its response yet. */
BK_CHECK TRITONSERVER_Error *bk_run_responses_fill(bk_batch_t *b,
    bk_batch_request_t *reqs, uint32_t count);

#endif /* BK_RUN_RESPONSES_H */
