#include "core/tensor/growable.h"

#include <stdlib.h>

#include "core/base/log.h"

struct inf_growable_s {
    inf_cuda_t *cuda;
    int64_t     device;
    char       *base;
    uint64_t    range;          /* whole granules, like the next             */
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
    uint64_t range = inf_memory_virtual_bytes(memory, device);
    void *base = NULL;
    *out = NULL;

    if (inf_memory_driver(memory) == NULL) {
        return inf_err_new(INF_ERR_UNSUPPORTED, "there is no memory that"
            " grows: there is no CUDA driver");
    }

    inf_growable_t *g = calloc(1, sizeof(*g));
    if (g == NULL) {
        return inf_err_nomem();
    }
    g->cuda = inf_memory_driver(memory);
    g->device = device;

    inf_err_t *err = inf_cuda_granule(g->cuda, device, &g->granule);
    if (err == NULL && (g->granule == 0 || range == 0
        || range > UINT64_MAX - g->granule))
    {
        err = inf_err_new(INF_ERR_UNAVAILABLE, "GPU %lld has no addresses for"
            " memory that grows", (long long) device);
    }
    if (err == NULL) {
        g->range = round_up(range, g->granule);
        err = inf_cuda_reserve(g->cuda, device, g->range, &base);
    }
    if (err != NULL) {
        free(g);
        return err;
    }

    g->base = base;
    *out = g;
    return NULL;
}

/* What was put there piece by piece is taken away so: a driver unmaps no part
   of several. */
void
inf_growable_free(inf_growable_t *g)
{
    if (g == NULL) {
        return;
    }

    for (uint64_t at = 0; at < g->backed; at += g->granule) {
        inf_err_log(inf_cuda_unback(g->cuda, g->device, g->base + at,
            g->granule));
    }
    inf_err_log(inf_cuda_unreserve(g->cuda, g->device, g->base, g->range));
    free(g);
}

inf_err_t *
inf_growable_fit(inf_growable_t *g, uint64_t size)
{
    if (size > g->range) {
        return inf_err_new(INF_ERR_UNAVAILABLE, "%llu bytes are more than the"
            " %llu that memory on GPU %lld may grow to",
            (unsigned long long) size, (unsigned long long) g->range,
            (long long) g->device);
    }

    while (g->backed < size) {
        inf_err_t *err = inf_cuda_back(g->cuda, g->device,
            g->base + g->backed, g->granule);
        if (err != NULL) {
            return err;         /* what is there already serves next time    */
        }
        g->backed += g->granule;
    }
    return NULL;
}

void *
inf_growable_base(const inf_growable_t *g)
{
    return g->base;
}

int64_t
inf_growable_device(const inf_growable_t *g)
{
    return g->device;
}
