/*
 * latencies.h - how a model's latencies are spread: quantiles of requests and
 *               their parts, a histogram of first responses.
 *
 * Owner    The model, if its server was asked for them.
 * Thread   any: relaxed atomics.
 * Units    ns in; summaries hold us, the histogram whole ms.
 * Errors   out of memory.
 * Route    abi's statistics and responses -> [latencies] -> metrics text
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
    INF_LATENCY_COUNT
} inf_latency_t;

typedef struct {
    inf_summary_t    *summaries[INF_LATENCY_COUNT];     /* all or none       */
    bool              histogram;        /* the rest is used                  */
    double           *bounds;           /* rising                            */
    size_t            bound_count;
    _Atomic uint64_t *counts;           /* one a bound, then beyond them     */
    _Atomic uint64_t  sum_ms;
} inf_latencies_t;

/* The histogram's buckets are the configuration's.  *out is NULL if nothing
   is wanted. */
INF_CHECK inf_err_t *inf_latencies_new(const Inference__ModelConfig *msg,
    bool summaries, bool histogram, inf_latencies_t **out);
void inf_latencies_free(inf_latencies_t *l);

/* One request answered by a backend; stamps as in statistics.h. */
void inf_latencies_success(inf_latencies_t *l, uint64_t request_start_ns,
    uint64_t queue_start_ns, const uint64_t stamps[4], uint64_t now_ns);

/* The first response of a request leaves now. */
void inf_latencies_first_response(inf_latencies_t *l,
    uint64_t request_start_ns, uint64_t now_ns);

#endif /* INF_MODEL_LATENCIES_H */
