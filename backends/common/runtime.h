/*
 * runtime.h - the functions of a runtime that the kit calls, and one run.
 *
 * Owner    The kit owns inputs and preallocated outputs of a run; the runtime
 *          owns other outputs and handles, until its function done.
 * Thread   the instance's, one run at a time.
 * Units    dims and elements as the tensor's, with the batch dimension; sizes
 *          in bytes.
 * Errors   An error of run is for all requests of the run.  CANCELLED: the run
 *          ended early, as all its requests have been cancelled.
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
    void              *data;        /* BYTES: in the form of bytes.h         */
    uint64_t           len_bytes;
    bool               preallocated;    /* an output of known shape dims: the
                                         * run writes len_bytes to data      */
    bool               on_device;   /* data lies on the instance's GPU       */
    void              *handle;      /* the runtime's; NULL before the run    */
} bk_value_t;

/* A run has no inputs that the requests lack, and no outputs that none of them
 * asks for. */
typedef struct {
    bk_value_t *inputs;
    uint32_t    input_count;
    bk_value_t *outputs;
    uint32_t    output_count;

    const bk_batch_request_t *requests; /* of this run                       */
    uint32_t                  request_count;
} bk_run_t;

/* Whether all requests have been cancelled, for a runtime that can end a run
 * early. */
bool bk_run_is_abandoned(const bk_run_t *run);

/* The functions of a runtime; self is its object of an instance. */
typedef struct {
    /* Runs the model, without writing to the data of inputs.  Sets dims,
     * dims_count and data of each output that is not preallocated, and
     * len_bytes of a BYTES output; the data lives until done. */
    TRITONSERVER_Error *(*run)(void *self, bk_run_t *run);

    /* Frees the handles of a run, also of a failed one; may be NULL. */
    void (*done)(void *self, bk_run_t *run);

    /* The runtime allocates all outputs: none is preallocated. */
    bool allocates_outputs;

    /* Compute the size of some elements of a BYTES output in the form of
     * bytes.h, and write them.  Both NULL: data has that form. */
    TRITONSERVER_Error *(*text_size)(void *self, const bk_value_t *v,
        uint64_t first, uint64_t count, uint64_t *len_bytes);
    TRITONSERVER_Error *(*text_write)(void *self, const bk_value_t *v,
        uint64_t first, uint64_t count, void *to);
} bk_runtime_t;

#endif /* BK_RUNTIME_H */
