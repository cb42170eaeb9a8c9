/*
 * batch.h - one run of a runtime for one or more requests.
 *
 * Owner    The instance owns bk_batch_t and its tables; values in the tables
 *          live for one run.
 * Thread   its instance's.
 * Units    rows of the batch dimension, times in ns.
 * Errors   An error of bk_batch_run is for all its requests.  A request whose
 *          outputs cannot be allocated has an error of its own.
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

/* How much of an output has been distributed to responses. */
typedef struct {
    uint32_t index;                     /* into the model's outputs          */
    bool     in_response;               /* the run writes into the response  */
    uint64_t text_index;                /* BYTES output: the element, and    */
    uint64_t text_offset;               /* the byte, of the next part        */
} bk_output_cursor_t;

typedef struct {
    const bk_instance_config_t *config;
    const bk_runtime_t         *runtime;
    void                       *self;
    bool                        preallocates;   /* outputs; false once a shape
                                                 * was not the file's        */
    bool                        run_failed;     /* the last run ended with an
                                                 * error of the runtime      */
    bk_scratch_t               *in_scratch;     /* one per input, per output */
    bk_scratch_t               *out_scratch;
    bk_run_t                    run;
    bk_output_cursor_t         *cursors;        /* by output of the run      */
    bk_batch_source_t          *sources;        /* source shapes of a batch
                                                 * input                     */
    uint32_t                    source_cap;
} bk_batch_t;

/* Allocates the tables, for all tensors of the model. */
BK_CHECK TRITONSERVER_Error *bk_batch_init(bk_batch_t *b,
    const bk_instance_config_t *config, const bk_runtime_t *runtime,
    void *self);
void bk_batch_fini(bk_batch_t *b);

/* Runs count compatible requests, fills their responses and sets the compute
 * times. */
BK_CHECK TRITONSERVER_Error *bk_batch_run(bk_batch_t *b,
    bk_batch_request_t *reqs, uint32_t count, bk_times_t *times);

#endif /* BK_BATCH_H */
