/* graphs.c - see graphs.h */

#include "graphs.h"

#include <stdlib.h>
#include <string.h>

#define LAUNCHES_LEAST 2        /* of one launch a graph is no faster        */

static gpu_graph_entry_t *find(gpu_graphs_t *g, const gpu_launch_t *launches,
    uint32_t count);
static void replace(gpu_graphs_t *g, const gpu_launch_t *launches,
    uint32_t count);
static bool capture(gpu_graphs_t *g, gpu_graph_entry_t *entry,
    gpu_stream_t stream);
static gpu_result_t instantiate(gpu_graphs_t *g, gpu_graph_entry_t *entry,
    gpu_stream_t stream);

TRITONSERVER_Error *
gpu_graphs_init(gpu_graphs_t *g, const gpu_program_t *program,
    const gpu_loaded_t *loaded)
{
    bool worth = program->kernel_count >= LAUNCHES_LEAST;

    *g = (gpu_graphs_t) {
        .program = program, .loaded = loaded,
        .most = worth ? (uint32_t) program->graphs_most : 0
    };
    g->entries = calloc((size_t) g->most + 1, sizeof(*g->entries));
    for (uint32_t i = 0; g->entries != NULL && i < g->most; i++) {
        g->entries[i].launches = calloc(program->kernel_count,
            sizeof(gpu_launch_t));
        if (g->entries[i].launches == NULL) {
            return bk_err_nomem("graphs of an instance");
        }
    }

    return g->entries != NULL ? NULL : bk_err_nomem("graphs of an instance");
}

void
gpu_graphs_fini(gpu_graphs_t *g)
{
    for (uint32_t i = 0; g->entries != NULL && i < g->most; i++) {
        if (g->entries[i].exec != NULL) {
            (void) g->loaded->device->f->graph_exec_destroy(
                g->entries[i].exec);
        }
        free(g->entries[i].launches);
    }
    free(g->entries);
    g->entries = NULL;
}

void
gpu_graphs_forget(gpu_graphs_t *g)
{
    for (uint32_t i = 0; g->entries != NULL && i < g->most; i++) {
        g->entries[i].exec = NULL;
    }
    gpu_graphs_fini(g);
}

TRITONSERVER_Error *
gpu_graphs_run(gpu_graphs_t *g, const gpu_launch_t *launches, uint32_t count,
    gpu_stream_t stream)
{
    if (g->most == 0 || count < LAUNCHES_LEAST) {
        return gpu_launches_run(launches, count, g->program, g->loaded,
            stream);
    }

    g->now++;
    gpu_graph_entry_t *entry = find(g, launches, count);
    if (entry == NULL) {
        replace(g, launches, count);
        return gpu_launches_run(launches, count, g->program, g->loaded,
            stream);
    }

    entry->used = g->now;
    if (entry->exec == NULL && !capture(g, entry, stream)) {
        return gpu_launches_run(launches, count, g->program, g->loaded,
            stream);
    }

    gpu_device_t *device = g->loaded->device;
    return gpu_check(device, device->f->graph_launch(entry->exec, stream),
        "cannot launch the kernels' graph");
}

static gpu_graph_entry_t *
find(gpu_graphs_t *g, const gpu_launch_t *launches, uint32_t count)
{
    for (uint32_t i = 0; i < g->most; i++) {
        gpu_graph_entry_t *e = &g->entries[i];

        if (e->count == count && memcmp(e->launches, launches,
            count * sizeof(*launches)) == 0)
        {
            return e;
        }
    }
    return NULL;
}

/* The graph is not running: its batch has been waited for. */
static void
replace(gpu_graphs_t *g, const gpu_launch_t *launches, uint32_t count)
{
    gpu_graph_entry_t *oldest = &g->entries[0];

    for (uint32_t i = 1; i < g->most; i++) {
        if (g->entries[i].used < oldest->used) {
            oldest = &g->entries[i];
        }
    }

    if (oldest->exec != NULL) {
        (void) g->loaded->device->f->graph_exec_destroy(oldest->exec);
    }
    oldest->exec = NULL;
    oldest->count = count;
    oldest->used = g->now;
    memcpy(oldest->launches, launches, count * sizeof(*launches));
}

/* On failure there are no graphs from now on. */
static bool
capture(gpu_graphs_t *g, gpu_graph_entry_t *entry, gpu_stream_t stream)
{
    gpu_device_t *device = g->loaded->device;

    TRITONSERVER_Error *err = gpu_check(device, instantiate(g, entry, stream),
        "no graph of the kernels is made, they are launched one by one");
    if (err == NULL) {
        return true;
    }

    bk_err_log(err, "CUDA graphs");
    entry->exec = NULL;
    gpu_graphs_fini(g);
    g->most = 0;
    return false;
}

static gpu_result_t
instantiate(gpu_graphs_t *g, gpu_graph_entry_t *entry, gpu_stream_t stream)
{
    const gpu_functions_t *f = g->loaded->device->f;
    gpu_graph_t graph = NULL;

    gpu_result_t rc = f->capture_begin(stream, GPU_CAPTURE_THREAD_LOCAL);
    if (rc != GPU_SUCCESS) {
        return rc;
    }

    TRITONSERVER_Error *err = gpu_launches_run(entry->launches, entry->count,
        g->program, g->loaded, stream);
    rc = f->capture_end(stream, &graph);
    if (err != NULL) {
        bk_err_log(err, "CUDA graphs");
        rc = rc != GPU_SUCCESS ? rc : GPU_INVALID_VALUE;
    }
    if (rc == GPU_SUCCESS) {
        rc = f->graph_instantiate(&entry->exec, graph, 0);
    }
    if (graph != NULL) {
        (void) f->graph_destroy(graph);
    }
    return rc;
}
