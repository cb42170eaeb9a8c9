/*
 * run_inputs.h - the inputs of a run, from those of its requests.
 *
 * Owner    A single request's data stays where it is, in the core's memory;
 *          that of several is gathered in the batch's scratch memory.
 * Thread   the instance's.
 * Units    elements; rows of the batch dimension.
 * Errors   INVALID_ARG: a batch_input without its source, or whose value its
 *          datatype cannot hold; UNAVAILABLE: no memory.  For all requests of
 *          the run alike.
 * Route    batch -> [run_inputs] -> the runtime
 */

#ifndef BK_RUN_INPUTS_H
#define BK_RUN_INPUTS_H

#include "batch.h"

/* Adds to b->run what the compatible requests have, and the batch_inputs of
 * the configuration.  Inputs that the requests left out are not there. */
BK_CHECK TRITONSERVER_Error *bk_run_inputs_make(bk_batch_t *b,
    const bk_batch_request_t *reqs, uint32_t count);

#endif /* BK_RUN_INPUTS_H */
