/*
 * runtime.h - a runtime as the kit calls it, and one run of it.
 *
 * Owner    What is in a run lives for that run: inputs and preallocated
 *          outputs are the kit's, other outputs and handles the runtime's,
 *          until its function done.
 * Thread   the instance's, one run at a time.
 * Units    dims and elements as the tensor's, with the batch dimension; sizes
 *          in bytes.
 * Errors   An error of run is one of all the run's requests; CANCELLED: it was
 *          ended early, because all its clients have given up.
 * Route    batch -> [runtime] -> the backend's library
 */

#ifndef BK_RUNTIME_H
#define BK_RUNTIME_H

#include "batch_request.h"

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

#endif /* BK_RUNTIME_H */
