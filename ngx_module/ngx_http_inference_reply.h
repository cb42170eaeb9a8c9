/*
 * ngx_http_inference_reply.h - replies of the core: taken, queued, checked and
 *                              released.
 *
 * Owner    A held reply owns its region of the response arena until
 *          ngx_http_inference_reply_release().  A writer is its arena's.
 * Thread   the worker's event loop.
 * Units    bytes; ns and us for times.
 * Errors   NGX_ERROR: the request has failed.
 * Route    client -> [take -> open -> prepare] -> response.
 */

#ifndef NGX_HTTP_INFERENCE_REPLY_H
#define NGX_HTTP_INFERENCE_REPLY_H

#include "ngx_module/ngx_http_inference_submission.h"

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/proto/infer_response.h"
#include "core/wire/response_record.h"


typedef struct {
    uint64_t                     epoch;
    uint64_t                     offset;        /* of the response region    */
    uint64_t                     len;
    uint32_t                     status;
    unsigned                     held:1;        /* to be released            */
    unsigned                     traced:1;      /* and the core notified     */
} ngx_http_inference_reply_t;


/* a reply that waits until earlier ones are sent */
typedef struct {
    ngx_queue_t                  queue;
    ngx_http_inference_reply_t   reply;
    inf_err_cause_t              cause;
    unsigned                     response:1;    /* a response, not flags
                                                   alone                     */
    unsigned                     queued:1;      /* set if the request was in
                                                   its model's queue         */
    unsigned                     final:1;
} ngx_http_inference_queued_reply_t;


/* the queued replies of one request or one call, in any number of queues */
typedef struct {
    ngx_pool_t                  *pool;
    ngx_queue_t                  spare;
    ngx_uint_t                   count;         /* in the queues             */
} ngx_http_inference_replies_t;


/* the execution that answered, for logs; values as in inf_completion_t */

typedef struct {
    uint64_t                     queue_ns;
    uint64_t                     compute_ns;
    uint32_t                     batch_size;    /* 0: not executed           */
    uint32_t                     device;
    uint32_t                     input_us;
    uint32_t                     output_us;
    ngx_uint_t                   lookup;        /* inf_lookup_t              */
} ngx_http_inference_execution_t;


/* ---- replies.c ---------------------------------------------------------- */

/* Initializes replies without entries; memory comes from pool. */
void ngx_http_inference_replies_init(ngx_http_inference_replies_t *replies,
    ngx_pool_t *pool);

/* Appends the reply of a completion to a queue.  NGX_ERROR: ctx has failed (too
   many replies, or out of memory). */
ngx_int_t ngx_http_inference_replies_push(
    ngx_http_inference_replies_t *replies, ngx_queue_t *to,
    ngx_http_inference_ctx_t *ctx, const inf_completion_t *c);

/* Removes the first of a non-empty queue; valid until the next push. */
ngx_http_inference_queued_reply_t *ngx_http_inference_replies_pop(
    ngx_http_inference_replies_t *replies, ngx_queue_t *from);

/* Drops all replies of a queue. */
void ngx_http_inference_replies_drop(ngx_http_inference_replies_t *replies,
    ngx_queue_t *from);

/* Gives the reply's memory back to the core. */
void ngx_http_inference_reply_release(ngx_http_inference_reply_t *reply);


/* ---- reply.c ------------------------------------------------------------ */

/*
 * Takes the core's completion of a submission: holds the first response, counts
 * and releases others.  NGX_AGAIN: more follow.  NGX_OK: that was the last, or
 * the request has failed.
 */
ngx_int_t ngx_http_inference_take_reply(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_submission_t *submission, const inf_completion_t *c);

/* Copies and checks the held reply, and opens its writer. */
ngx_int_t ngx_http_inference_open_reply(ngx_http_inference_ctx_t *ctx);

/* Sets ctx->writer to a writer of the JSON of record, which is ctx->reply's. */
ngx_int_t ngx_http_inference_open_record(ngx_http_inference_ctx_t *ctx,
    const inf_response_record_t *record, inf_response_form_t form,
    inf_arena_t *arena);

/* Stores the completion's values of the execution. */
void ngx_http_inference_note_execution(ngx_http_inference_ctx_t *ctx,
    const inf_completion_t *c);

/* Counts a response that is about to be written for the client. */
void ngx_http_inference_note_response(ngx_http_inference_ctx_t *ctx);

/* Stores backend, instance and load of the first record; the texts are views
   into the record, which stays. */
void ngx_http_inference_note_record(ngx_http_inference_ctx_t *ctx,
    const inf_response_record_t *record);

/* Copies the record of a reply to arena and checks it. */
ngx_int_t ngx_http_inference_copy_reply(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_reply_t *reply, inf_arena_t *arena,
    inf_response_record_t **record);

/* fail_bare: fails by a status without a text.  fail_count: fails because the
   model did not send exactly one response. */
ngx_int_t ngx_http_inference_fail_bare(ngx_http_inference_ctx_t *ctx,
    uint32_t status);
ngx_int_t ngx_http_inference_fail_count(ngx_http_inference_ctx_t *ctx);

/* Releases the response of a completion that nothing uses. */
void ngx_http_inference_drop_response(
    const ngx_http_inference_submission_t *submission,
    const inf_completion_t *c);

/* Computes classification and lengths.  NGX_OK: sending may begin. */
ngx_int_t ngx_http_inference_prepare(ngx_http_inference_ctx_t *ctx);


#endif /* NGX_HTTP_INFERENCE_REPLY_H */
