/*
 * latencies.h - how a model's latencies are spread: quantiles of requests and
 *               their parts, a histogram of first responses.
 *
 * Owner    The model, if its server was asked for them; one more for its
 *          instances on each GPU.
 * Thread   any: relaxed atomics.
 * Units    ns in; summaries hold us, the histogram whole ms.
 * Errors   out of memory.
 * Route    abi's statistics and responses, response cache -> [latencies] ->
 *          metrics text
 *
 * How many values there were, and their sum, is in the statistics.
 */

#ifndef INF_MODEL_LATENCIES_H
#define INF_MODEL_LATENCIES_H

#include <stdatomic.h>
#include <stdbool.h>

#include "core/base/error.h"
#include "core/model/summary.h"
#include "model_config.pb-c.h"

#define INF_LATENCY_FIRST_RESPONSE "nv_inference_first_response_histogram_ms"

typedef enum {
    INF_LATENCY_REQUEST,
    INF_LATENCY_QUEUE,
    INF_LATENCY_COMPUTE_INPUT,
    INF_LATENCY_COMPUTE_INFER,
    INF_LATENCY_COMPUTE_OUTPUT,
    INF_LATENCY_CACHE_HIT,
    INF_LATENCY_CACHE_MISS,
    INF_LATENCY_COUNT
} inf_latency_t;

typedef struct inf_latencies_s {
    _Atomic(struct inf_latencies_s *) next; /* of the next GPU; acquire,
                                               added by acq_rel              */
    int32_t           device_id;        /* of this GPU; the first: -1        */
    bool              cached;           /* the model has a response cache    */
    inf_summary_t    *summary;          /* NULL: not asked for               */
    bool              histogram;        /* the rest is used, of the first    */
    double           *bounds;           /* rising                            */
    size_t            bound_count;
    _Atomic uint64_t *counts;           /* relaxed: one a bound, then beyond
                                           them                              */
    _Atomic uint64_t  sum_ms;           /* relaxed                           */
} inf_latencies_t;

typedef struct {
    bool summaries;
    bool histogram;                     /* with the configuration's buckets  */
    bool cached;                        /* the model has a response cache    */
} inf_latencies_options_t;

/* *out is NULL if nothing is wanted. */
INF_CHECK inf_err_t *inf_latencies_new(const Inference__ModelConfig *msg,
    const inf_latencies_options_t *options, inf_latencies_t **out);

/* l and all that were added to it. */
void inf_latencies_free(inf_latencies_t *l);

/* One at a time, also while others look; that GPU may be known already. */
INF_CHECK inf_err_t *inf_latencies_add_gpu(inf_latencies_t *l,
    int32_t device_id);

/* The latencies of a GPU's instances; l itself where that GPU has none. */
inf_latencies_t *inf_latencies_of_gpu(inf_latencies_t *l, int32_t device_id);

/* Whether there is such a summary: none of CACHE_* without a response cache,
   none of REQUEST with one, as in Triton. */
bool inf_latencies_has(const inf_latencies_t *l, inf_latency_t which);

/* One request answered by a backend; stamps as in statistics.h. */
void inf_latencies_success(inf_latencies_t *l, uint64_t request_start_ns,
    uint64_t queue_start_ns, const uint64_t stamps[4], uint64_t now_ns);

/* One answered by the response cache; one that it did not know. */
void inf_latencies_hit(inf_latencies_t *l, uint64_t queue_start_ns,
    uint64_t lookup_start_ns, uint64_t took_ns, uint64_t now_ns);
void inf_latencies_miss(inf_latencies_t *l, uint64_t took_ns,
    uint64_t now_ns);

/* The first response of a request leaves now. */
void inf_latencies_first_response(inf_latencies_t *l,
    uint64_t request_start_ns, uint64_t now_ns);

#endif /* INF_MODEL_LATENCIES_H */
