/*
 * run_outputs.h - the outputs of a run: which it has, and memory for those
 *                 whose shape is known beforehand.
 *
 * Owner    A single request's output is allocated in its response, those of
 *          several in the batch's scratch memory.
 * Thread   the instance's.
 * Units    bytes; rows of the batch dimension.
 * Errors   those of the core's buffers; UNAVAILABLE: no memory.
 * Route    batch -> [run_outputs] -> the runtime
 */

#ifndef BK_RUN_OUTPUTS_H
#define BK_RUN_OUTPUTS_H

#include "batch.h"

/* Adds to b->run the outputs that at least one request asks for, and states. */
void bk_run_outputs_choose(bk_batch_t *b, const bk_batch_request_t *reqs,
    uint32_t count);

/* Allocates those of known shape; the others stay as they are. */
BK_CHECK TRITONSERVER_Error *bk_run_outputs_preallocate(bk_batch_t *b,
    bk_batch_request_t *reqs, uint32_t count);

/* None is preallocated any more. */
void bk_run_outputs_reset(bk_batch_t *b);

#endif /* BK_RUN_OUTPUTS_H */
