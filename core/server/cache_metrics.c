#include "core/server/cache_metrics.h"

#include "core/server/metric_registry.h"

/* Running totals are gauges here, as in Triton. */
typedef struct {
    const char *name;
    const char *help;
    double    (*value)(const inf_cache_counts_t *c);
} family_t;

static double
util(const inf_cache_counts_t *c)
{
    return (double) c->used / (double) c->limit;
}

static double
entries(const inf_cache_counts_t *c)
{
    return (double) c->entries;
}

static double
hits(const inf_cache_counts_t *c)
{
    return (double) c->hits;
}

static double
misses(const inf_cache_counts_t *c)
{
    return (double) c->misses;
}

static double
lookups(const inf_cache_counts_t *c)
{
    return (double) (c->hits + c->misses);
}

static double
evictions(const inf_cache_counts_t *c)
{
    return (double) c->evictions;
}

static double
lookup_us(const inf_cache_counts_t *c)
{
    return (double) (c->lookup_ns / 1000);
}

static double
insertion_us(const inf_cache_counts_t *c)
{
    return (double) (c->insertion_ns / 1000);
}

static const family_t families[] = {
    { "nv_cache_util", "share of the cache in use", util },
    { "nv_cache_num_entries", "entries now", entries },
    { "nv_cache_num_hits", "lookups that hit", hits },
    { "nv_cache_num_misses", "lookups that missed", misses },
    { "nv_cache_num_lookups", "lookups", lookups },
    { "nv_cache_num_evictions", "entries given up for others", evictions },
    { "nv_cache_lookup_duration", "time of lookups in us", lookup_us },
    { "nv_cache_insertion_duration", "time of insertions in us", insertion_us }
};

void
inf_cache_metrics_text(const inf_server_cache_t *cache, inf_buf_t *out)
{
    inf_cache_counts_t c;
    if (cache->cache == NULL || !inf_response_cache_counts(cache->cache, &c)) {
        return;
    }

    for (size_t f = 0; f < sizeof(families) / sizeof(families[0]); f++) {
        inf_metric_put_one(out, families[f].name, families[f].help, "gauge",
            families[f].value(&c));
    }
}
