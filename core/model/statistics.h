/*
 * statistics.h - counters of one model version, as the statistics extension
 *                defines them.
 *
 * Owner    The model owns one set per instance and one for what happens
 *          before an instance is known.
 * Thread   any: every field is a relaxed atomic, nothing waits for it; a
 *          reader may see a request's fields half counted.
 * Units    ns; last_inference_ms is wall clock.
 * Errors   out of memory, more responses than are counted.
 * Route    abi's ReportStatistics -> [statistics] -> calls, metrics.
 */

#ifndef INF_MODEL_STATISTICS_H
#define INF_MODEL_STATISTICS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/model/histogram.h"

#define INF_STAT_BATCH_SLOTS 64     /* of a page                             */
#define INF_STAT_BATCH_PAGES 1024u

/* Responses are counted by their index: page p holds 64 << p of them. */
#define INF_STAT_RESPONSE_PAGES 14
#define INF_STAT_RESPONSES      (64u * ((1u << INF_STAT_RESPONSE_PAGES) - 1))

typedef struct {
    _Atomic uint64_t count;         /* relaxed, like ns: a sum may miss a
                                       part                                  */
    _Atomic uint64_t ns;            /* relaxed                               */
} inf_duration_t;

typedef struct {
    _Atomic uint64_t batch_size;    /* relaxed; 0: slot is free              */
    inf_duration_t   compute_input;
    inf_duration_t   compute_infer;
    inf_duration_t   compute_output;
} inf_batch_stat_t;

/* A size is counted at its remainder, in the first page where no other size
   was counted there before: models of up to 64 rows have one page. */
typedef struct inf_batch_page_s {
    inf_batch_stat_t                   slots[INF_STAT_BATCH_SLOTS];
    _Atomic(struct inf_batch_page_s *) next; /* acquire; added by acq_rel     */
} inf_batch_page_t;

/* The responses of one index, over all requests. */
typedef struct {
    inf_duration_t  compute_infer;
    inf_duration_t  compute_output;
    inf_duration_t  success;
    inf_duration_t  fail;
    inf_duration_t  empty_response;
    inf_duration_t  cancel;
} inf_response_stat_t;

typedef enum {
    INF_RESPONSE_SUCCESS,
    INF_RESPONSE_FAIL,
    INF_RESPONSE_EMPTY,             /* without outputs                       */
    INF_RESPONSE_CANCEL
} inf_response_end_t;

/* Why a request failed, as the metrics count it. */
typedef enum {
    INF_FAILURE_REJECTED,           /* its queue's policy rejected it        */
    INF_FAILURE_CANCELED,           /* dropped by the core                   */
    INF_FAILURE_BACKEND,            /* Execute's error, or as it reported    */
    INF_FAILURE_OTHER,              /* any other end without an execution    */
    INF_FAILURE_COUNT
} inf_failure_t;

typedef enum {
    INF_HISTOGRAM_REQUEST,          /* always counted                        */
    INF_HISTOGRAM_QUEUE,            /* like the next one where metrics have
                                       histograms                            */
    INF_HISTOGRAM_COMPUTE,          /* input, infer and output               */
    INF_HISTOGRAM_COUNT
} inf_histogram_name_t;

typedef struct {
    inf_duration_t    success;
    inf_duration_t    fail;
    inf_duration_t    queue;
    inf_duration_t    compute_input;
    inf_duration_t    compute_infer;
    inf_duration_t    compute_output;
    inf_duration_t    cache_hit;
    inf_duration_t    cache_miss;
    _Atomic uint64_t  inference_count;              /* relaxed statistics,
                                                       these four            */
    _Atomic uint64_t  execution_count;              /* relaxed               */
    _Atomic uint64_t  last_inference_ms;            /* relaxed               */
    _Atomic uint64_t  failures[INF_FAILURE_COUNT];  /* relaxed; of
                                                       fail.count            */
    inf_histogram_t   histograms[INF_HISTOGRAM_COUNT];
    inf_batch_page_t  batches;
    _Atomic uint32_t  response_count;   /* relaxed: indexes seen             */
    /* acquire; each page is added once, by acq_rel */
    _Atomic(inf_response_stat_t *) responses[INF_STAT_RESPONSE_PAGES];
} inf_statistics_t;

/* Frees the pages; zeroed memory needs no init. */
void inf_statistics_fini(inf_statistics_t *s);

static inline void
inf_duration_add(inf_duration_t *d, uint64_t ns)
{
    atomic_fetch_add_explicit(&d->count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&d->ns, ns, memory_order_relaxed);
}

/* One request answered by a backend; stamps is exec start, compute start,
   compute end, exec end. */
void inf_statistics_success(inf_statistics_t *s, uint32_t rows,
    uint64_t request_start_ns, uint64_t queue_start_ns,
    const uint64_t stamps[4], uint64_t now_ns);

/* One request answered by the response cache, whose lookup began at
   lookup_start_ns and took lookup_ns. */
void inf_statistics_cache_hit(inf_statistics_t *s, uint64_t request_start_ns,
    uint64_t queue_start_ns, uint64_t lookup_start_ns, uint64_t lookup_ns,
    uint64_t now_ns);

/* The same two once more, for who wants histograms of their parts. */
void inf_statistics_observe(inf_statistics_t *s, uint64_t queue_start_ns,
    const uint64_t stamps[4]);
void inf_statistics_observe_hit(inf_statistics_t *s, uint64_t queue_start_ns,
    uint64_t lookup_start_ns);

/* For the reason OTHER, and for one that is known. */
void inf_statistics_failure(inf_statistics_t *s, uint64_t request_start_ns,
    uint64_t now_ns);
void inf_statistics_failure_for(inf_statistics_t *s, inf_failure_t reason,
    uint64_t request_start_ns, uint64_t now_ns);

/* How many batch sizes were counted, and the first cap of them, ascending. */
size_t inf_statistics_batches(const inf_statistics_t *s,
    const inf_batch_stat_t **out, size_t cap);

/* One execution of `rows` rows; without room for a new size only the execution
   counts. */
void inf_statistics_batch(inf_statistics_t *s, uint64_t rows,
    const uint64_t stamps[4], uint64_t wall_ms);

/*
 * The response of that index in its request ended so.  output_ns 0: it has no
 * outputs.  UNAVAILABLE: index is INF_STAT_RESPONSES or more.
 */
INF_CHECK inf_err_t *inf_statistics_response(inf_statistics_t *s,
    uint32_t index, inf_response_end_t end, uint64_t start_ns,
    uint64_t output_ns, uint64_t end_ns);

/* NULL: nothing counted at that index; live, read only. */
const inf_response_stat_t *inf_statistics_find_response(
    const inf_statistics_t *s, uint32_t index);

/* Adds what was counted at that index; false: nothing was. */
bool inf_statistics_add_response(inf_response_stat_t *sum,
    const inf_statistics_t *from, uint32_t index);

/* Adds from, which nobody counts in any more, to into, which others do:
   responses, too, as far as there was memory for them. */
INF_CHECK inf_err_t *inf_statistics_reserve(inf_statistics_t *into,
    const inf_statistics_t *from);
void inf_statistics_absorb(inf_statistics_t *into,
    const inf_statistics_t *from);

/* Adds from to into (into is the reader's own); responses, whose number has
   no bound to speak of, are read by index instead. */
void inf_statistics_fold(inf_statistics_t *into, const inf_statistics_t *from);

#endif /* INF_MODEL_STATISTICS_H */
