/* cuda_graphs.c - what a stream captures, and launches of it.  The arguments of
   kernels are those of the capture; copies read the memory of the moment. */

#include "inside.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A stream captures for its thread, for all (mode 0) or forbids nothing (2). */
bool
forbidden_locked(const char *function)
{
    bool found = false;

    for (stream_t *s = fake.streams; s != NULL; s = s->next) {
        bool concerns = s->mode == 0 || (s->mode == GPU_CAPTURE_THREAD_LOCAL
            && pthread_equal(s->thread, pthread_self()));
        if (s->capture != CAPTURE_NONE && concerns) {
            s->capture = CAPTURE_INVALID;
            found = true;
        }
    }
    if (found) {
        wrong_locked(function, "a stream captures", 0);
    }
    return found;
}

result_t
cuStreamBeginCapture_v2(gpu_stream_t stream, int mode)
{
    BEGIN();
    stream_t *s = stream;

    if (rc == INF_CU_SUCCESS && (s == NULL || mode < 0 || mode > 2
        || s->capture != CAPTURE_NONE))
    {
        rc = wrong_locked(__func__, "no stream, mode, or it captures already",
            INF_CU_INVALID_VALUE);
    }
    if (rc == INF_CU_SUCCESS) {
        s->capture = CAPTURE_ACTIVE;
        s->mode = mode;
        s->thread = pthread_self();
    }
    return end(rc);
}

static graph_t *
new_graph_locked(int device)
{
    graph_t *g = calloc(1, sizeof(*g));

    assert(g != NULL);
    g->device = device;
    fake.objects++;
    return g;
}

result_t
cuStreamEndCapture(gpu_stream_t stream, gpu_graph_t *graph)
{
    BEGIN();
    stream_t *s = stream;

    *graph = NULL;
    if (s == NULL || s->capture == CAPTURE_NONE) {
        return end(wrong_locked(__func__, "it does not capture",
            CAPTURE_UNMATCHED));
    }
    if (s->mode != 2 && !pthread_equal(s->thread, pthread_self())) {
        return end(wrong_locked(__func__, "another thread began",
            CAPTURE_WRONG_THREAD));
    }

    if (rc == INF_CU_SUCCESS && s->capture == CAPTURE_INVALID) {
        rc = CAPTURE_INVALIDATED;
    }
    s->capture = CAPTURE_NONE;
    if (rc != INF_CU_SUCCESS) {
        free_works_locked(&s->captured);
        return end(rc);
    }

    graph_t *g = new_graph_locked(s->device);
    g->works = s->captured;
    s->captured = (works_t) { NULL, NULL };
    *graph = g;
    return end(rc);
}

/* Pointers to arguments go to the copy's own values. */
static launch_t *
copy_launch_locked(const launch_t *from)
{
    launch_t *l = malloc(sizeof(*l));

    assert(l != NULL);
    *l = *from;
    for (size_t i = 0; i < l->count; i++) {
        l->arguments[i] = l->values + l->offsets[i];
    }
    l->shape.arguments = l->arguments;
    l->module->queued++;
    return l;
}

static work_t
copy_work_locked(const work_t *from)
{
    work_t w = *from;

    w.next = NULL;
    if (w.launch != NULL) {
        w.launch = copy_launch_locked(w.launch);
    }
    return w;
}

result_t
cuGraphInstantiateWithFlags(gpu_graph_exec_t *exec, gpu_graph_t graph,
    unsigned long long flags)
{
    BEGIN();
    const graph_t *g = graph;

    if (rc == INF_CU_SUCCESS && (g == NULL || flags != 0)) {
        rc = wrong_locked(__func__, "no graph, or flags",
            INF_CU_INVALID_VALUE);
    }
    if (rc == INF_CU_SUCCESS) {
        graph_t *e = new_graph_locked(g->device);
        for (const work_t *w = g->works.first; w != NULL; w = w->next) {
            work_t *copy = malloc(sizeof(*copy));
            assert(copy != NULL);
            *copy = copy_work_locked(w);
            append(&e->works, copy);
        }
        *exec = e;
    }
    return end(rc);
}

result_t
cuGraphLaunch(gpu_graph_exec_t exec, gpu_stream_t stream)
{
    BEGIN();
    const graph_t *e = exec;
    stream_t *s = stream_locked(stream);

    if (rc == INF_CU_SUCCESS && (e == NULL || s == NULL || current() == NULL
        || s->device != number_of(current()) || e->device != s->device))
    {
        rc = wrong_locked(__func__, "no graph, or another device's",
            INF_CU_INVALID_VALUE);
    }
    if (rc != INF_CU_SUCCESS) {
        return end(rc);
    }
    for (const work_t *w = e->works.first;
        rc == INF_CU_SUCCESS && w != NULL; w = w->next)
    {
        work_t copy = copy_work_locked(w);
        rc = queue_locked(__func__, s, copy);
        if (rc != INF_CU_SUCCESS && copy.launch != NULL) {
            copy.launch->module->queued--;
            free(copy.launch);
        }
    }
    return end(rc);
}

static result_t
destroy_locked(graph_t *g)
{
    free_works_locked(&g->works);
    free(g);
    fake.objects--;
    fake.report = true;
    return INF_CU_SUCCESS;
}

result_t
cuGraphDestroy(gpu_graph_t graph)
{
    BEGIN();
    destroy_locked(graph);
    return end(rc);
}

result_t
cuGraphExecDestroy(gpu_graph_exec_t exec)
{
    BEGIN();
    destroy_locked(exec);
    return end(rc);
}
