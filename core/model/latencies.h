/*
 * latencies.h - the distribution of a model's latencies: quantiles of requests
 *               and their parts, a histogram of first responses.
 *
 * Owner    The model, if its server wants them; one more for its instances on
 *          each GPU.
 * Thread   any: relaxed atomics.
 * Units    ns in; summaries hold us, the histogram whole ms.
 * Errors   out of memory.
 * Route    abi's statistics and responses, response cache -> [latencies] ->
 *          metrics text
 *
 * The statistics have the number and the sum of the values.
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
    _Atomic(struct inf_latencies_s *) next; /* of the next GPU; acquire, added
                                               by acq_rel                    */
    int32_t           device_id;        /* of this GPU; in the first -1      */
    bool              cached;           /* the model has a response cache    */
    inf_summary_t    *summary;          /* NULL: not wanted                  */
    bool              histogram;        /* the rest is used; first one only  */
    double           *bounds;           /* ascending                         */
    size_t            bound_count;
    _Atomic uint64_t *counts;           /* relaxed: one for each bound, and for
                                           larger values                     */
    _Atomic uint64_t  sum_ms;           /* relaxed                           */
} inf_latencies_t;

typedef struct {
    bool summaries;
    bool histogram;                     /* with the configuration's buckets  */
    bool cached;                        /* the model has a response cache    */
} inf_latencies_options_t;

/* Creates latencies; *out NULL: nothing is wanted. */
INF_CHECK inf_err_t *inf_latencies_new(const Inference__ModelConfig *msg,
    const inf_latencies_options_t *options, inf_latencies_t **out);

/* Frees l and those added to it. */
void inf_latencies_free(inf_latencies_t *l);

/* Adds a GPU, if it is new; one call at a time, also beside readers. */
INF_CHECK inf_err_t *inf_latencies_add_gpu(inf_latencies_t *l,
    int32_t device_id);

/* The latencies of a GPU's instances; l itself if the GPU has none. */
inf_latencies_t *inf_latencies_of_gpu(inf_latencies_t *l, int32_t device_id);

/* Whether the summary exists.  As in Triton, CACHE_* needs a response cache,
   and REQUEST exists only without. */
bool inf_latencies_has(const inf_latencies_t *l, inf_latency_t which);

/* Counts a request answered by a backend; stamps as in statistics.h. */
void inf_latencies_success(inf_latencies_t *l, uint64_t request_start_ns,
    uint64_t queue_start_ns, const uint64_t stamps[4], uint64_t now_ns);

/* hit: counts a request answered by the response cache.  miss: a failed
   lookup. */
void inf_latencies_hit(inf_latencies_t *l, uint64_t queue_start_ns,
    uint64_t lookup_start_ns, uint64_t took_ns, uint64_t now_ns);
void inf_latencies_miss(inf_latencies_t *l, uint64_t took_ns,
    uint64_t now_ns);

/* Counts the first response of a request, sent now. */
void inf_latencies_first_response(inf_latencies_t *l,
    uint64_t request_start_ns, uint64_t now_ns);

#endif /* INF_MODEL_LATENCIES_H */
