/*
 * graphs.h - replays repeated launches as one CUDA graph.
 *
 * Owner    the caller's struct owns graphs and keys until gpu_graphs_fini,
 *          which comes before the stream's end.
 * Thread   one instance's, its device entered.
 * Units    none.
 * Errors   The driver's.  After a failed capture, which is no error, kernels
 *          are launched one by one for good.
 * Route    batch -> [graphs] -> launch, driver
 *
 * The key of a graph is the bytes of its launches: geometry, arguments and
 * addresses.  Launches are captured when they come for the second time; the
 * least recently used graph makes room.
 */

#ifndef GPU_GRAPHS_H
#define GPU_GRAPHS_H

#include "launch.h"

typedef struct {
    gpu_launch_t    *launches;
    uint32_t         count;             /* 0: the entry is free              */
    gpu_graph_exec_t exec;              /* NULL: seen once                   */
    uint64_t         used;              /* time, in batches                  */
} gpu_graph_entry_t;

typedef struct {
    const gpu_program_t *program;
    const gpu_loaded_t  *loaded;
    gpu_graph_entry_t   *entries;
    uint32_t             most;          /* 0: no graphs                      */
    uint64_t             now;
} gpu_graphs_t;

/* Starts without graphs; fini destroys those that there are. */
BK_CHECK TRITONSERVER_Error *gpu_graphs_init(gpu_graphs_t *g,
    const gpu_program_t *program, const gpu_loaded_t *loaded);
void gpu_graphs_fini(gpu_graphs_t *g);

/* As fini, when the device cannot be entered: leaks the driver's objects. */
void gpu_graphs_forget(gpu_graphs_t *g);

/* Queues the launches in the stream, by a graph or one by one. */
BK_CHECK TRITONSERVER_Error *gpu_graphs_run(gpu_graphs_t *g,
    const gpu_launch_t *launches, uint32_t count, gpu_stream_t stream);

#endif /* GPU_GRAPHS_H */
