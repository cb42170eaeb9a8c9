/*
 * run_outputs.h - chooses the outputs of a run, and allocates memory for those
 *                 whose shape is known before the run.
 *
 * Owner    The output of a single request is allocated in its response, outputs
 *          of several requests in the batch's scratch memory.
 * Thread   the instance's.
 * Units    bytes; rows of the batch dimension.
 * Errors   the core's errors for buffers; UNAVAILABLE: no memory.
 * Route    batch -> [run_outputs] -> the runtime
 */

#ifndef BK_RUN_OUTPUTS_H
#define BK_RUN_OUTPUTS_H

#include "batch.h"

/* Adds the outputs that any of the requests asks for, and states, to b->run. */
void bk_run_outputs_choose(bk_batch_t *b, const bk_batch_request_t *reqs,
    uint32_t count);

/* Allocates the outputs of known shape; others are not changed. */
BK_CHECK TRITONSERVER_Error *bk_run_outputs_preallocate(bk_batch_t *b,
    bk_batch_request_t *reqs, uint32_t count);

/* Marks all outputs as not preallocated. */
void bk_run_outputs_reset(bk_batch_t *b);

#endif /* BK_RUN_OUTPUTS_H */
