/*
 * run_inputs.h - makes the inputs of a run from those of its requests.
 *
 * Owner    The data of a single request stays in the core's memory; data of
 *          several requests is gathered in the batch's scratch memory.
 * Thread   the instance's.
 * Units    elements; rows of the batch dimension.
 * Errors   INVALID_ARG: a batch_input lacks its source, or its datatype cannot
 *          hold the value.  UNAVAILABLE: no memory.  An error is for all
 *          requests of the run.
 * Route    batch -> [run_inputs] -> the runtime
 */

#ifndef BK_RUN_INPUTS_H
#define BK_RUN_INPUTS_H

#include "batch.h"

/* Adds the inputs of the compatible requests, and the batch_inputs of the
 * configuration, to b->run. */
BK_CHECK TRITONSERVER_Error *bk_run_inputs_make(bk_batch_t *b,
    const bk_batch_request_t *reqs, uint32_t count);

#endif /* BK_RUN_INPUTS_H */
