/*
 * batch.h - requests that run together, and an instance's memory for them.
 *
 * Owner    The instance owns it.  It owns a stream, memory on the device for
 *          each tensor and buffer, and the graphs.
 * Thread   init and fini: a loader's; run: the instance's.
 * Units    bytes, rows.
 * Errors   What is wrong with one output stays in its request; everything else
 *          is an error of the whole batch.
 * Route    instance -> [batch] -> inputs, graphs, outputs, wait
 */

#ifndef GPU_BATCH_H
#define GPU_BATCH_H

#include "graphs.h"
#include "library.h"
#include "batch_request.h"

/* Memory on the device that grows and is kept. */
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
    uint64_t            *needed;        /* of this batch, bytes; 0: none     */
    uint64_t             memory_most;   /* of all allocations, bytes         */
    gpu_ptr_t           *addresses;     /* of this batch, likewise           */
    gpu_shape_t         *shapes;        /* of this batch                     */
    int64_t              rows;          /* of this batch                     */
    bool                 queued;        /* the device has work of this batch */
    bool                 computed;      /* this batch was waited for once,   */
    bool                 late;          /* in vain                           */
    gpu_launch_t        *launches;
    gpu_graphs_t         graphs;
    gpu_model_tensor_t  *library_tensors;   /* a library's arguments         */
    int64_t             *library_shapes;
} gpu_batch_t;

/* Takes memory for the largest batch, where the configuration tells its
 * size, and checks its launches.  On error the caller still calls fini. */
BK_CHECK TRITONSERVER_Error *gpu_batch_init(gpu_batch_t *b,
    gpu_device_t *device, const gpu_program_t *program,
    const gpu_loaded_t *loaded);
void gpu_batch_fini(gpu_batch_t *b);

/* Runs the requests, which join.  After an error with b->queued false nothing
 * was begun, and a part of them may run.  *stuck: the kernels did not end in
 * time; the memory of requests and responses may yet be read and written. */
BK_CHECK TRITONSERVER_Error *gpu_batch_run(gpu_batch_t *b,
    gpu_batch_request_t *reqs, uint32_t count, bk_times_t *times, bool *stuck);

/* Whether nothing in the stream touches memory any more, by which *stuck
 * ends: it is empty, or the device has failed. */
bool gpu_batch_is_done(gpu_batch_t *b);

#endif /* GPU_BATCH_H */
