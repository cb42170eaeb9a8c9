#include "core/tensor/growable.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/base/log.h"

#define HOST_GRANULE (1u << 20)     /* a multiple of all page sizes          */

static inf_err_t *reserve(inf_growable_t *g);
static inf_err_t *back(inf_growable_t *g);
static void unback(inf_growable_t *g, uint64_t at);
static void unreserve(inf_growable_t *g);

struct inf_growable_s {
    inf_cuda_t *cuda;           /* NULL: host memory                         */
    int64_t     device;
    char       *base;
    uint64_t    range;          /* in whole granules, like the next          */
    uint64_t    backed;
    uint64_t    granule;
};

static uint64_t
round_up(uint64_t size, uint64_t granule)
{
    return size / granule * granule + (size % granule != 0 ? granule : 0);
}

inf_err_t *
inf_growable_new(inf_memory_t *memory, int64_t device, inf_growable_t **out)
{
    bool host = device == INF_GROWABLE_HOST;

    *out = NULL;
    if (!host && inf_memory_driver(memory) == NULL) {
        return inf_err_new(INF_ERR_UNSUPPORTED, "there is no memory that"
            " grows: there is no CUDA driver");
    }

    inf_growable_t *g = calloc(1, sizeof(*g));
    if (g == NULL) {
        return inf_err_nomem();
    }
    g->cuda = host ? NULL : inf_memory_driver(memory);
    g->device = device;
    g->granule = HOST_GRANULE;
    g->range = host ? INF_GROWABLE_HOST_RANGE
        : inf_memory_virtual_bytes(memory, device);

    inf_err_t *err = host ? NULL
        : inf_cuda_granule(g->cuda, device, &g->granule);
    if (err == NULL && (g->granule == 0 || g->range == 0
        || g->range > UINT64_MAX - g->granule))
    {
        err = inf_err_new(INF_ERR_UNAVAILABLE, "GPU %lld has no addresses for"
            " memory that grows", (long long) device);
    }
    if (err == NULL) {
        g->range = round_up(g->range, g->granule);
        err = reserve(g);
    }
    if (err != NULL) {
        free(g);
        return err;
    }

    *out = g;
    return NULL;
}

static inf_err_t *
reserve(inf_growable_t *g)
{
    void *base = NULL;

    if (g->cuda != NULL) {
        inf_err_t *err = inf_cuda_reserve(g->cuda, g->device, g->range, &base);
        g->base = base;
        return err;
    }

    base = mmap(NULL, g->range, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS
        | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
        return inf_err_new(INF_ERR_UNAVAILABLE, "no addresses for memory that"
            " grows: %s", strerror(errno));
    }
    g->base = base;
    return NULL;
}

/* Granules are mapped one by one and must be unmapped likewise. */
void
inf_growable_free(inf_growable_t *g)
{
    if (g == NULL) {
        return;
    }

    for (uint64_t at = 0; at < g->backed; at += g->granule) {
        unback(g, at);
    }
    unreserve(g);
    free(g);
}

/* Frees one granule; host memory is freed with its addresses. */
static void
unback(inf_growable_t *g, uint64_t at)
{
    if (g->cuda != NULL) {
        inf_err_log(inf_cuda_unback(g->cuda, g->device, g->base + at,
            g->granule));
    }
}

static void
unreserve(inf_growable_t *g)
{
    if (g->cuda != NULL) {
        inf_err_log(inf_cuda_unreserve(g->cuda, g->device, g->base,
            g->range));

    } else {
        munmap(g->base, g->range);
    }
}

inf_err_t *
inf_growable_fit(inf_growable_t *g, uint64_t size)
{
    if (size > g->range) {
        char where[32] = "";

        if (g->cuda != NULL) {
            snprintf(where, sizeof(where), " on GPU %lld",
                (long long) g->device);
        }
        return inf_err_new(INF_ERR_UNAVAILABLE, "%llu bytes are more than the"
            " %llu that memory%s may grow to", (unsigned long long) size,
            (unsigned long long) g->range, where);
    }

    while (g->backed < size) {
        inf_err_t *err = back(g);
        if (err != NULL) {
            return err;         /* granules already added are kept           */
        }
        g->backed += g->granule;
    }
    return NULL;
}

/* Adds one granule. */
static inf_err_t *
back(inf_growable_t *g)
{
    char *at = g->base + g->backed;

    if (g->cuda != NULL) {
        return inf_cuda_back(g->cuda, g->device, at, g->granule);
    }
    return mprotect(at, g->granule, PROT_READ | PROT_WRITE) == 0 ? NULL
        : inf_err_nomem();
}

void *
inf_growable_base(const inf_growable_t *g)
{
    return g->base;
}

inf_memory_type_t
inf_growable_type(const inf_growable_t *g)
{
    return g->cuda != NULL ? INF_MEMORY_GPU : INF_MEMORY_CPU;
}

int64_t
inf_growable_id(const inf_growable_t *g)
{
    return g->cuda != NULL ? g->device : 0;
}
