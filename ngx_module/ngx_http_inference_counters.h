/*
 * ngx_http_inference_counters.h - counters in the shared zone, and the gauges
 *                                 of each worker (zone.c).
 *
 * Owner    The zone belongs to nginx and survives reloads.
 * Thread   Any process; a worker alone writes its gauges.
 * Units    bytes, ns.
 * Errors   A count cannot fail; nginx return codes.
 */

#ifndef NGX_HTTP_INFERENCE_COUNTERS_H
#define NGX_HTTP_INFERENCE_COUNTERS_H

#include "ngx_module/ngx_http_inference.h"

#include "core/base/buf.h"


/* Gauges of one worker, written by that worker alone. */

typedef struct {
    ngx_atomic_t                pid;            /* of the worker             */
    ngx_atomic_t                used;           /* bytes of its request arena */
    ngx_atomic_t                reserved;       /* bytes announced for the
                                                   arena                     */
    ngx_atomic_t                slots;          /* taken in its channel      */
} ngx_http_inference_gauges_t;


typedef struct {
    ngx_atomic_t                requests;
    ngx_atomic_t                failed;
    ngx_atomic_t                cancelled;
    ngx_atomic_t                retried;
    ngx_atomic_t                arena_full;
    ngx_atomic_t                ring_full;
    ngx_atomic_t                core_starts;
    ngx_atomic_t                core_deaths;
    ngx_atomic_t                core_failed;    /* 1 + wait status of a core
                                                   that ended before it had
                                                   answered; 0: none         */
    ngx_atomic_t                log_dropped;
    ngx_atomic_t                answered;       /* pid of the core that last
                                                   answered a worker         */
    ngx_http_inference_gauges_t  gauges[NGX_MAX_PROCESSES];
                                                /* by ngx_process_slot       */
    ngx_atomic_t                slices;         /* ended slices with work left
                                                   for a later turn          */
    ngx_atomic_t                longest_ns;     /* longest turn for one
                                                   request                   */
    ngx_atomic_t                core_hangs;
    ngx_atomic_t                suspects;
    ngx_atomic_t                out_of_tries;
    ngx_atomic_t                configurations; /* read by the master        */
    ngx_atomic_t                stopped;        /* configuration with which the
                                                   master stops; 0: it runs  */
} ngx_http_inference_counters_t;

/* Returns the counters, never NULL.  Without a zone the counts are
   discarded. */
ngx_http_inference_counters_t *ngx_http_inference_counters(void);

/* Sets the gauges of this worker: bytes of its request arena, and slots. */
void ngx_http_inference_set_gauges(uint64_t used, uint64_t reserved,
    uint32_t slots);
void ngx_http_inference_set_slots(uint32_t slots);

/* Sums the gauges of all workers for the answer to a call of the core.  The
   slots are those of the other workers. */
void ngx_http_inference_sum_gauges(ngx_http_inference_gauges_t *sum);

/*
 * Called at the begin and end of an event handler of a request; the counters
 * keep the longest turn.  When nginx calls a handler from inside another one
 * (the content handler receives the first bytes of a body), the inner call
 * belongs to the outer turn and gets 0.  Times are ns.
 */
uint64_t ngx_http_inference_turn_begin(void);
void ngx_http_inference_turn_end(uint64_t began_ns);

/* Appends the counters in the text format of metrics. */
void ngx_http_inference_counters_text(inf_buf_t *out);

/* Appends the counters as a JSON object. */
void ngx_http_inference_counters_json(inf_buf_t *out);

/* Adds the shared zone of the counters to this configuration. */
ngx_int_t ngx_http_inference_add_zone(ngx_conf_t *cf,
    ngx_http_inference_main_conf_t *imcf);

#endif /* NGX_HTTP_INFERENCE_COUNTERS_H */
