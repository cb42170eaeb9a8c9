/*
 * ngx_http_inference_submission.h - submissions on this worker's channel to the
 *                                   core (client.c).
 *
 * Owner    A submission is embedded in its request's context; regions are the
 *          client's from submit() on.
 * Thread   The worker's event loop.
 * Units    ms, bytes.
 * Errors   nginx return codes.
 */

#ifndef NGX_HTTP_INFERENCE_SUBMISSION_H
#define NGX_HTTP_INFERENCE_SUBMISSION_H

#include "ngx_module/ngx_http_inference.h"

#include "core/include/channel.h"
#include "core/wire/client.h"


typedef struct ngx_http_inference_submission_s  ngx_http_inference_submission_t;

/*
 * Called for each completion.  c is NULL when the core exited before its
 * answer; no further call follows.  The caller does not touch the submission
 * afterwards: the callback may free it.
 */
typedef void (*ngx_http_inference_answer_pt)(
    ngx_http_inference_submission_t *submission, const inf_completion_t *c);

/* called when the channel is up (rc NGX_OK) or cannot come up (NGX_ERROR) */
typedef void (*ngx_http_inference_ready_pt)(
    ngx_http_inference_submission_t *submission, ngx_int_t rc);

#define NGX_HTTP_INFERENCE_REGIONS  4


/* RELEASED: the core no longer reads the regions.  FINAL: the last answer has
   come. */

typedef enum {
    NGX_HTTP_INFERENCE_SUBMISSION_FREE = 0, /* not used, or finished         */
    NGX_HTTP_INFERENCE_SUBMISSION_QUEUED,   /* waits for a channel, or for the
                                               end of its own one            */
    NGX_HTTP_INFERENCE_SUBMISSION_SUBMITTED,
    NGX_HTTP_INFERENCE_SUBMISSION_RELEASED, /* FINAL is to come              */
    NGX_HTTP_INFERENCE_SUBMISSION_FINAL     /* RELEASED is to come           */
} ngx_http_inference_submission_state_e;


/*
 * One submission, embedded in the request's context and zeroed first.  The slot
 * is busy from submit() until both FINAL and RELEASED have come.
 * ngx_http_inference_abandon() detaches the request at any time: the client
 * then cancels, waits for RELEASED and frees the regions.
 *
 * With `keep` set before submit() the regions outlive RELEASED and the core;
 * forget() or abandon() frees them, and the request's cleanup always calls
 * abandon().  `keep` is for a request that another core may get, and for a body
 * that another handler may get.
 */
struct ngx_http_inference_submission_s {
    ngx_queue_t                   queue;        /* while it is QUEUED        */
    ngx_http_inference_submission_state_e  state;
    void                         *data;         /* the request's context     */
    ngx_http_inference_answer_pt  answer;
    ngx_http_inference_ready_pt   ready;

    uint32_t                      slot;         /* in_flight.c only          */
    uint32_t                      generation;
    uint64_t                      epoch;        /* of the channel            */
    inf_region_t                 *regions[NGX_HTTP_INFERENCE_REGIONS];
    ngx_uint_t                    nregions;     /* still to be freed         */
    ngx_uint_t                    begun;        /* executions begun, as far as
                                                   known                     */
    ngx_uint_t                    excused;      /* executions during which a
                                                   suspect ran when the core
                                                   exited                    */
    ngx_uint_t                    exits;        /* number of cores that exited
                                                   with it                   */
    unsigned                      keep:1;       /* set by the request        */
    unsigned                      sequence:1;   /* its core exited, and its
                                                   sequence is lost          */
    unsigned                      taken:1;      /* a core took it and has
                                                   exited                    */
};

/* whether it is queued, or the core has not answered it */
#define ngx_http_inference_unanswered(submission)                             \
    ((submission)->state != NGX_HTTP_INFERENCE_SUBMISSION_FREE                \
     && (submission)->state != NGX_HTTP_INFERENCE_SUBMISSION_FINAL)

/* NGX_OK: the channel is up.  NGX_AGAIN: submission->ready will be called.
   NGX_ERROR: no core is configured, or the core was out of reach for too
   long. */
ngx_int_t ngx_http_inference_wait_ready(
    ngx_http_inference_submission_t *submission);

/* Time left for the first channel of a new worker, ms; 0: the worker is not
   new. */
ngx_msec_t ngx_http_inference_grace(void);

/* Why there is no channel: empty, or a text that begins with a colon, to be
   appended to a sentence.  Valid until the next call. */
ngx_str_t *ngx_http_inference_why_no_channel(void);

/* Last words of the core that exited last, to be appended likewise, or empty.
   Valid until the next core exits. */
ngx_str_t *ngx_http_inference_last_crash(void);

/*
 * Returns the channel, or NULL while it is down; after an exit of the core it
 * is a new one.  A dead channel stays valid (mapped; inf_client_free_region()
 * on the same pointer frees its regions) while a region of its request arena is
 * in use or a response is not released.
 */
inf_client_t *ngx_http_inference_channel(uint64_t *epoch);

/* Returns the channel, or the last one while it is down, whose memory takes
   bytes received meanwhile.  NULL: there has been none. */
inf_client_t *ngx_http_inference_last_channel(uint64_t *epoch);

/*
 * Submits s.  The caller sets op, method, flags, offset, length, deadline and
 * received time; slot and generation are filled in.  `regions` (count of them,
 * at most NGX_HTTP_INFERENCE_REGIONS) were allocated on the channel of `epoch`;
 * the client frees them after RELEASED, however the request ends.  On error
 * they stay the caller's.  NGX_OK; NGX_BUSY: no slot, or the ring is full;
 * NGX_ERROR: that channel is down (a newer one may be up).
 */
ngx_int_t ngx_http_inference_submit(ngx_http_inference_submission_t *submission,
    uint64_t epoch, inf_submission_t *s, inf_region_t *const *regions,
    ngx_uint_t count);

/* The request ends: cancels what is queued and detaches the submission.  Does
   nothing for a submission that is unused or done. */
void ngx_http_inference_abandon(ngx_http_inference_submission_t *submission);

/* Cancels the answer.  Regions of a submission with `keep` stay until
   abandon(). */
void ngx_http_inference_cancel(ngx_http_inference_submission_t *submission);

/* Frees the regions of a submission with `keep`. */
void ngx_http_inference_forget(ngx_http_inference_submission_t *submission);

/* Releases a response region that was sent or is not wanted; notify: the core
   learns of it now, not with the next entry or within a second. */
void ngx_http_inference_release(uint64_t epoch, uint64_t offset,
    ngx_uint_t notify);

/* Response bytes on the channel of epoch, as inf_client_response(). */
const void *ngx_http_inference_response(uint64_t epoch, uint64_t offset,
    uint64_t len);

/* Starts the timer that trims the arena and updates its gauges. */
void ngx_http_inference_client_plan_sweep(void);

/* In init_process and exit_process. */
ngx_int_t ngx_http_inference_client_init(ngx_cycle_t *cycle);
void ngx_http_inference_client_exit(ngx_cycle_t *cycle);

#endif /* NGX_HTTP_INFERENCE_SUBMISSION_H */
