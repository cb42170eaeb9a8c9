/*
 * statistics.h - counters of one model version, as defined by the statistics
 *                extension.
 *
 * Owner    The model owns a set for each instance, and one for events without
 *          an instance.
 * Thread   any: every field is a relaxed atomic without ordering; a reader may
 *          see a request partly counted.
 * Units    ns; last_inference_ms is wall clock.
 * Errors   out of memory, more responses than can be counted.
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

/* Responses are counted by index: page p holds 64 << p of them. */
#define INF_STAT_RESPONSE_PAGES 14
#define INF_STAT_RESPONSES      (64u * ((1u << INF_STAT_RESPONSE_PAGES) - 1))

typedef struct {
    _Atomic uint64_t count;         /* relaxed, as ns: a sum may be partial  */
    _Atomic uint64_t ns;            /* relaxed                               */
} inf_duration_t;

typedef struct {
    _Atomic uint64_t batch_size;    /* relaxed; 0: free                      */
    inf_duration_t   compute_input;
    inf_duration_t   compute_infer;
    inf_duration_t   compute_output;
} inf_batch_stat_t;

/* A size uses the slot of its remainder in the first page where that slot has
   no other size: models of up to 64 rows need one page. */
typedef struct inf_batch_page_s {
    inf_batch_stat_t                   slots[INF_STAT_BATCH_SLOTS];
    _Atomic(struct inf_batch_page_s *) next; /* acquire; added by acq_rel     */
} inf_batch_page_t;

/* Responses of one index, of all requests. */
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

/* Reasons of failures, as in metrics. */
typedef enum {
    INF_FAILURE_REJECTED,           /* by its queue's policy                 */
    INF_FAILURE_CANCELED,           /* dropped by the core                   */
    INF_FAILURE_BACKEND,            /* Execute's error, or reported          */
    INF_FAILURE_OTHER,              /* any other end without execution       */
    INF_FAILURE_COUNT
} inf_failure_t;

typedef enum {
    INF_HISTOGRAM_REQUEST,          /* always counted                        */
    INF_HISTOGRAM_QUEUE,            /* this and the next only with histograms
                                       in metrics                            */
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
    _Atomic uint64_t  inference_count;              /* these four are relaxed
                                                       statistics            */
    _Atomic uint64_t  execution_count;              /* relaxed               */
    _Atomic uint64_t  last_inference_ms;            /* relaxed               */
    _Atomic uint64_t  failures[INF_FAILURE_COUNT];  /* relaxed; of
                                                       fail.count            */
    inf_histogram_t   histograms[INF_HISTOGRAM_COUNT];
    inf_batch_page_t  batches;
    _Atomic uint32_t  response_count;   /* relaxed: number of indexes        */
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

/* Counts a request answered by a backend; stamps are exec start, compute start,
   compute end, exec end. */
void inf_statistics_success(inf_statistics_t *s, uint32_t rows,
    uint64_t request_start_ns, uint64_t queue_start_ns,
    const uint64_t stamps[4], uint64_t now_ns);

/* Counts a request answered by the response cache; its lookup began at
   lookup_start_ns and took lookup_ns. */
void inf_statistics_cache_hit(inf_statistics_t *s, uint64_t request_start_ns,
    uint64_t queue_start_ns, uint64_t lookup_start_ns, uint64_t lookup_ns,
    uint64_t now_ns);

/* The same two for the histograms of their parts. */
void inf_statistics_observe(inf_statistics_t *s, uint64_t queue_start_ns,
    const uint64_t stamps[4]);
void inf_statistics_observe_hit(inf_statistics_t *s, uint64_t queue_start_ns,
    uint64_t lookup_start_ns);

/* Count a failure for reason OTHER, or for a given one. */
void inf_statistics_failure(inf_statistics_t *s, uint64_t request_start_ns,
    uint64_t now_ns);
void inf_statistics_failure_for(inf_statistics_t *s, inf_failure_t reason,
    uint64_t request_start_ns, uint64_t now_ns);

/* The number of batch sizes; copies the first cap of them, ascending. */
size_t inf_statistics_batches(const inf_statistics_t *s,
    const inf_batch_stat_t **out, size_t cap);

/* Counts an execution of `rows` rows; without room for a new size only the
   total. */
void inf_statistics_batch(inf_statistics_t *s, uint64_t rows,
    const uint64_t stamps[4], uint64_t wall_ms);

/*
 * Counts the end of the response of that index in its request.  output_ns 0:
 * without outputs.  UNAVAILABLE: index is INF_STAT_RESPONSES or more.
 */
INF_CHECK inf_err_t *inf_statistics_response(inf_statistics_t *s,
    uint32_t index, inf_response_end_t end, uint64_t start_ns,
    uint64_t output_ns, uint64_t end_ns);

/* The live counters of an index, read only; NULL: none. */
const inf_response_stat_t *inf_statistics_find_response(
    const inf_statistics_t *s, uint32_t index);

/* Adds the counts of an index; false: none. */
bool inf_statistics_add_response(inf_response_stat_t *sum,
    const inf_statistics_t *from, uint32_t index);

/* Add from, which is no longer used, to into, which is: reserve allocates,
   absorb adds, responses as far as memory was available. */
INF_CHECK inf_err_t *inf_statistics_reserve(inf_statistics_t *into,
    const inf_statistics_t *from);
void inf_statistics_absorb(inf_statistics_t *into,
    const inf_statistics_t *from);

/* Adds from to into, which is the reader's own, without responses, whose number
   is hardly limited; they are read by index. */
void inf_statistics_fold(inf_statistics_t *into, const inf_statistics_t *from);

#endif /* INF_MODEL_STATISTICS_H */
