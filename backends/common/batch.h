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
 * One request's data is used where it lies; several are copied together.
 * An output whose shape is known beforehand is preallocated, a single request's
 * in the response itself; any other output is copied to the responses once.
 */

#ifndef BK_BATCH_H
#define BK_BATCH_H

#include "batch_request.h"
#include "scratch.h"

/* A tensor of one run. */
typedef struct {
    const bk_tensor_t *tensor;
    int64_t            dims[BK_MAX_DIMS];
    uint32_t           dims_count;
    uint64_t           elements;
    void              *data;        /* BYTES: as bytes.h has them            */
    uint64_t           len_bytes;
    bool               preallocated;    /* an output: the run writes
                                         * len_bytes to data, of the shape
                                         * that dims says                    */
    bool               on_device;   /* data lies on the instance's GPU       */
    void              *handle;      /* the runtime's own; NULL before it     */
} bk_value_t;

/* Inputs that requests left out are not there, nor are outputs that none of
 * them asked for. */
typedef struct {
    bk_value_t *inputs;
    uint32_t    input_count;
    bk_value_t *outputs;
    uint32_t    output_count;

    const bk_batch_request_t *requests; /* those that run together           */
    uint32_t                  request_count;
} bk_run_t;

/* For a runtime that can end a run early: all its clients have given up. */
bool bk_run_is_abandoned(const bk_run_t *run);

/* A runtime as functions; self is its own object, one an instance. */
typedef struct {
    /* Runs the model.  An output that is not preallocated gets dims,
     * dims_count and data, which stay until done; len_bytes too if it is
     * BYTES.  The data of inputs is not to be written to. */
    TRITONSERVER_Error *(*run)(void *self, bk_run_t *run);

    /* Frees what run has left in the handles, also after it has failed; may
     * be NULL. */
    void (*done)(void *self, bk_run_t *run);

    /* Outputs are the runtime's own: none is preallocated, each is copied
     * once. */
    bool allocates_outputs;

    /* Both NULL: data of a BYTES output is as bytes.h has it.  Otherwise they
     * give the size of some of its elements in that form, and write them. */
    TRITONSERVER_Error *(*text_size)(void *self, const bk_value_t *v,
        uint64_t first, uint64_t count, uint64_t *len_bytes);
    TRITONSERVER_Error *(*text_write)(void *self, const bk_value_t *v,
        uint64_t first, uint64_t count, void *to);
} bk_runtime_t;

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
