/*
 * batch.h - runs a batch of requests, in the memory that an instance keeps.
 *
 * Owner    The instance owns the batch, which owns a stream, memory on the
 *          device for each tensor and buffer, and the graphs.
 * Thread   init and fini: a loader's; run: the instance's.
 * Units    bytes, rows.
 * Errors   An error of one output is kept in its request; all other errors
 *          are of the whole batch.
 * Route    instance -> [batch] -> inputs, graphs, outputs, wait
 */

#ifndef GPU_BATCH_H
#define GPU_BATCH_H

#include "graphs.h"
#include "library.h"
#include "batch_request.h"

/* Memory on the device, kept from batch to batch; it only grows. */
typedef struct {
    gpu_ptr_t base;
    uint64_t  size;
} gpu_allocation_t;

typedef struct {
    gpu_device_t        *device;
    const gpu_program_t *program;
    const gpu_loaded_t  *loaded;
    const gpu_library_t *library;       /* NULL: kernels                     */
    void                *library_state;
    gpu_stream_t         stream;
    gpu_event_t          end;           /* of a batch without a timeout      */
    gpu_allocation_t    *allocations;   /* of tensors, then of buffers       */
    uint64_t            *needed;        /* bytes for this batch; 0: none     */
    uint64_t             memory_most;   /* of all allocations, bytes         */
    gpu_ptr_t           *addresses;     /* of this batch, likewise           */
    gpu_shape_t         *shapes;        /* of this batch                     */
    int64_t              rows;          /* of this batch                     */
    bool                 queued;        /* the device has work of this batch */
    bool                 computed;      /* a wait for this batch has ended   */
    bool                 late;          /* a wait for it has timed out       */
    gpu_launch_t        *launches;
    gpu_graphs_t         graphs;
    gpu_model_tensor_t  *library_tensors;   /* a library's arguments         */
    int64_t             *library_shapes;
} gpu_batch_t;

/* Allocates memory for the largest batch, if its size follows from the
 * configuration, and checks its launches.  The caller calls fini even after an
 * error. */
BK_CHECK TRITONSERVER_Error *gpu_batch_init(gpu_batch_t *b,
    gpu_device_t *device, const gpu_program_t *program,
    const gpu_loaded_t *loaded);
void gpu_batch_fini(gpu_batch_t *b);

/* Runs compatible requests.  After an error with b->queued false nothing has
 * begun, and the caller may run a part of them.  *stuck: the kernels have not
 * ended in time, and may still access memory of requests and responses. */
BK_CHECK TRITONSERVER_Error *gpu_batch_run(gpu_batch_t *b,
    gpu_batch_request_t *reqs, uint32_t count, bk_times_t *times, bool *stuck);

/* Whether work in the stream accesses no memory any more, which ends *stuck:
 * the stream is empty, or the device has failed. */
bool gpu_batch_is_done(gpu_batch_t *b);

#endif /* GPU_BATCH_H */
