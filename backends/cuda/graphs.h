/*
 * graphs.h - launches that come again are played back as one CUDA graph.
 *
 * Owner    the caller's struct owns graphs and keys until gpu_graphs_fini,
 *          which comes before the stream's end.
 * Thread   one instance's, its device entered.
 * Units    none.
 * Errors   as the driver's.  A capture that fails is no error: then, and from
 *          then on, kernels are launched one by one.
 * Route    batch -> [graphs] -> launch, driver
 *
 * The key of a graph is its launches, bytes by bytes: geometry, arguments and
 * addresses.  It is captured the second time that they come, and the one that
 * was not used for the longest time makes room.
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

BK_CHECK TRITONSERVER_Error *gpu_graphs_init(gpu_graphs_t *g,
    const gpu_program_t *program, const gpu_loaded_t *loaded);
void gpu_graphs_fini(gpu_graphs_t *g);

/* The same where the device cannot be entered: the driver's objects stay. */
void gpu_graphs_forget(gpu_graphs_t *g);

/* Puts the launches into the stream, by a graph or one by one. */
BK_CHECK TRITONSERVER_Error *gpu_graphs_run(gpu_graphs_t *g,
    const gpu_launch_t *launches, uint32_t count, gpu_stream_t stream);

#endif /* GPU_GRAPHS_H */
