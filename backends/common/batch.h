/*
 * batch.h - one run of a runtime for one or more requests.
 *
 * Owner    bk_batch_t belongs to its instance; its tables live as long, the
 *          values in it for one run.
 * Thread   its instance's.
 * Units    rows of the batch dimension, times in ns.
 * Errors   bk_batch_run fails for all its requests alike; a request whose own
 *          outputs cannot be allocated keeps its own error.
 * Route    batch_request -> [batch] -> the runtime -> [batch] -> batch_request
 *
 * One request's data is used in place; that of several is gathered.  An output
 * whose shape is known beforehand is preallocated, a single request's in the
 * response itself; any other output is copied to the responses once.
 */

#ifndef BK_BATCH_H
#define BK_BATCH_H

#include "runtime.h"
#include "scratch.h"

/* How much of an output the responses have. */
typedef struct {
    uint32_t index;                     /* into the model's outputs          */
    bool     in_response;               /* written there by the run itself   */
    uint64_t text_index;                /* a BYTES output: element and byte  */
    uint64_t text_offset;               /* at which the next part begins     */
} bk_output_cursor_t;

typedef struct {
    const bk_instance_config_t *config;
    const bk_runtime_t         *runtime;
    void                       *self;
    bool                        preallocates;   /* outputs; false once a shape
                                                 * was not the file's        */
    bool                        run_failed;     /* the last one: a runtime's
                                                 * error                     */
    bk_scratch_t               *in_scratch;     /* one per input, per output */
    bk_scratch_t               *out_scratch;
    bk_run_t                    run;
    bk_output_cursor_t         *cursors;        /* as the run's outputs      */
    bk_batch_source_t          *sources;        /* shapes that batch inputs
                                                 * count                     */
    uint32_t                    source_cap;
} bk_batch_t;

/* Reserves the tables for as many tensors as the model has. */
BK_CHECK TRITONSERVER_Error *bk_batch_init(bk_batch_t *b,
    const bk_instance_config_t *config, const bk_runtime_t *runtime,
    void *self);
void bk_batch_fini(bk_batch_t *b);

/* Fills the responses of count compatible requests; notes the times between. */
BK_CHECK TRITONSERVER_Error *bk_batch_run(bk_batch_t *b,
    bk_batch_request_t *reqs, uint32_t count, bk_times_t *times);

#endif /* BK_BATCH_H */
