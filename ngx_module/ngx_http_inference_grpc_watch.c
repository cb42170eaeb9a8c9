/*
 * ngx_http_inference_grpc_watch.c - grpc.health.v1.Health/Watch: sends the
 *                                   readiness of the server at once and after
 *                                   each change.
 *
 * All watchers of a worker share one call to the core, which a timer repeats
 * while there are watchers, and one request to each inference_upstream of
 * theirs.
 */

#include "ngx_module/ngx_http_inference_ask.h"
#include "ngx_module/ngx_http_inference_error.h"
#include "ngx_module/ngx_http_inference_grpc.h"
#include "ngx_module/ngx_http_inference_leaving.h"
#include "ngx_module/ngx_http_inference_limits.h"
#include "ngx_module/ngx_http_inference_request.h"
#include "ngx_module/ngx_http_inference_store.h"
#include "ngx_module/ngx_http_inference_submission.h"

#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/proto/message.h"

#include "health.pb-c.h"


/* pause between two calls to the core, ms */
#define NGX_HTTP_INFERENCE_WATCH_PAUSE  1000

/* limit of pauses without an answer; the core itself waits 5 s for a model */
#define NGX_HTTP_INFERENCE_WATCH_HUNG   6

/* room for a HealthCheckResponse */
#define NGX_HTTP_INFERENCE_WATCH_SIZE   16

/* no status sent yet */
#define NGX_HTTP_INFERENCE_WATCH_NONE                                         \
    GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__UNKNOWN

#define NGX_HTTP_INFERENCE_WATCH_SERVING                                      \
    GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING

#define NGX_HTTP_INFERENCE_WATCH_NOT_SERVING                                  \
    GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__NOT_SERVING

#define NGX_HTTP_INFERENCE_WATCH_NO_SERVICE                                   \
    GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVICE_UNKNOWN


struct ngx_http_inference_watch_s {
    ngx_queue_t                  queue;         /* of the worker's watchers  */
    ngx_http_inference_leaver_t  leaver;
    ngx_http_inference_ctx_t    *ctx;
    ngx_http_inference_ready_t   upstream_ready;    /* its upstream is NULL:
                                                   none                      */
    ngx_uint_t                   sent;          /* status sent last          */
    ngx_chain_t                 *free;
    ngx_chain_t                 *busy;
    u_char                       frame[INF_GRPC_PREFIX
                                       + NGX_HTTP_INFERENCE_WATCH_SIZE];
    unsigned                     known:1;       /* the service exists        */
    unsigned                     answered:1;    /* the upstream has answered */
};


/* the status shared by all watchers of this worker */

typedef struct {
    ngx_queue_t                  watchers;
    ngx_uint_t                   status;        /* NONE: not known yet       */
    ngx_uint_t                   pauses;        /* since the last call       */
    ngx_event_t                  timer;
    ngx_connection_t             dummy;
    ngx_http_inference_submission_t  submission;
} ngx_http_inference_health_t;


static ngx_int_t ngx_http_inference_watch_service(
    ngx_http_inference_ctx_t *ctx, ngx_http_inference_watch_t *watch);
static void ngx_http_inference_watch_leave(void *data);
static void ngx_http_inference_others_ask(ngx_queue_t *first);
static void ngx_http_inference_watch_upstream_over(
    ngx_http_inference_ready_t *ready);
static void ngx_http_inference_watch_tell(ngx_http_inference_watch_t *watch);
static ngx_uint_t ngx_http_inference_watch_status(
    ngx_http_inference_watch_t *watch);
static ngx_int_t ngx_http_inference_watch_send(
    ngx_http_inference_watch_t *watch, ngx_uint_t status);
static ngx_int_t ngx_http_inference_watch_flush(
    ngx_http_inference_watch_t *watch, ngx_chain_t *out);
static void ngx_http_inference_health_ask(ngx_event_t *ev);
static ngx_int_t ngx_http_inference_health_submit(void);
static void ngx_http_inference_health_answer(
    ngx_http_inference_submission_t *submission, const inf_completion_t *c);
static void ngx_http_inference_health_set(ngx_uint_t status);


static ngx_http_inference_health_t  ngx_http_inference_health;


/* ---- a call -------------------------------------------------------------- */

ngx_int_t
ngx_http_inference_watcher_open(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_cleanup_t             *cln;
    ngx_http_request_t             *r;
    ngx_http_inference_watch_t     *watch;
    ngx_http_inference_health_t    *health;
    ngx_http_inference_loc_conf_t  *ilcf;

    r = ctx->request;
    health = &ngx_http_inference_health;

    watch = ngx_pcalloc(r->pool, sizeof(ngx_http_inference_watch_t));
    cln = ngx_http_cleanup_add(r, 0);

    if (watch == NULL || cln == NULL) {
        return ngx_http_inference_fail(ctx, INF_ERR_INTERNAL, "out of memory");
    }

    if (ngx_http_inference_watch_service(ctx, watch) != NGX_OK) {
        return NGX_ERROR;
    }

    ngx_http_inference_stores_free(ctx);

    ilcf = ngx_http_get_module_loc_conf(r, ngx_http_inference_module);

    watch->upstream_ready.upstream = ilcf->upstream;
    watch->upstream_ready.over = ngx_http_inference_watch_upstream_over;
    watch->ctx = ctx;
    watch->sent = NGX_HTTP_INFERENCE_WATCH_NONE;
    ctx->watch = watch;

    cln->handler = ngx_http_inference_watch_leave;
    cln->data = watch;

    if (health->watchers.next == NULL) {
        ngx_queue_init(&health->watchers);
        health->dummy.fd = (ngx_socket_t) -1;
        health->timer.handler = ngx_http_inference_health_ask;
        health->timer.data = &health->dummy;
        health->timer.log = ngx_cycle->log;
        health->timer.cancelable = 1;
        health->submission.answer = ngx_http_inference_health_answer;
    }

    ngx_queue_insert_tail(&health->watchers, &watch->queue);
    ngx_http_inference_leaver_add(&watch->leaver, &ctx->turn);

    if (health->timer.timer_set) {
        ngx_http_inference_others_ask(&watch->queue);

    } else {
        /* the first watcher */
        ngx_http_inference_health_ask(&health->timer);
    }

    /* only the client limits the time of a watch */

    ctx->deadline_ns = ctx->client_deadline_ns;
    ngx_http_inference_arm_timer(ctx);

    r->write_event_handler = ctx->handlers->writable;

    return NGX_OK;
}


/* Parses the service asked for: the whole server, or one by name. */

static ngx_int_t
ngx_http_inference_watch_service(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_watch_t *watch)
{
    size_t                                 i;
    inf_err_t                             *err;
    ProtobufCMessage                      *m;
    Grpc__Health__V1__HealthCheckRequest  *request;

    static const char *const  services[] = {
        "", "inference.GRPCInferenceService", "grpc.health.v1.Health"
    };

    err = inf_message_unpack_request(
                     &grpc__health__v1__health_check_request__descriptor,
                     ngx_http_inference_slice(&ctx->body.text), &m);
    if (err) {
        return ngx_http_inference_fail_err(ctx, err);
    }

    request = (Grpc__Health__V1__HealthCheckRequest *) m;

    for (i = 0; i < sizeof(services) / sizeof(services[0]); i++) {

        if (ngx_strcmp(request->service, services[i]) == 0) {
            watch->known = 1;
        }
    }

    inf_message_free(m);

    return NGX_OK;
}


static void
ngx_http_inference_watch_leave(void *data)
{
    ngx_http_inference_watch_t *watch = data;

    ngx_http_inference_health_t  *health;

    health = &ngx_http_inference_health;

    ngx_http_inference_leaver_remove(&watch->leaver);
    ngx_http_inference_ready_leave(&watch->upstream_ready);
    ngx_queue_remove(&watch->queue);

    if (ngx_queue_empty(&health->watchers)) {

        health->status = NGX_HTTP_INFERENCE_WATCH_NONE;
        health->pauses = 0;

        if (health->timer.timer_set) {
            ngx_del_timer(&health->timer);
        }
    }
}


ngx_int_t
ngx_http_inference_watcher(ngx_http_inference_ctx_t *ctx)
{
    ngx_uint_t                   status;
    ngx_http_inference_watch_t  *watch;

    watch = ctx->watch;

    if (ngx_exiting) {
        return ngx_http_inference_grpc_fail(ctx, INF_GRPC_UNAVAILABLE,
                                            "the worker of this call is "
                                            "leaving");
    }

    if (watch->busy && ngx_http_inference_watch_flush(watch, NULL) != NGX_OK) {
        ctx->rc = NGX_ERROR;
        return NGX_DECLINED;
    }

    status = ngx_http_inference_watch_status(watch);

    /* a slow client gets the latest status once it reads */

    if (status != watch->sent && watch->busy == NULL
        && status != NGX_HTTP_INFERENCE_WATCH_NONE
        && ngx_http_inference_watch_send(watch, status) != NGX_OK)
    {
        ctx->rc = NGX_ERROR;
        return NGX_DECLINED;
    }

    return NGX_DONE;
}


static ngx_uint_t
ngx_http_inference_watch_status(ngx_http_inference_watch_t *watch)
{
    ngx_uint_t  status;

    if (!watch->known) {
        return NGX_HTTP_INFERENCE_WATCH_NO_SERVICE;
    }

    status = ngx_http_inference_health.status;

    if (status != NGX_HTTP_INFERENCE_WATCH_SERVING
        || watch->upstream_ready.upstream == NULL
        || watch->upstream_ready.ready)
    {
        return status;
    }

    return watch->answered ? NGX_HTTP_INFERENCE_WATCH_NOT_SERVING
                           : NGX_HTTP_INFERENCE_WATCH_NONE;
}


static ngx_int_t
ngx_http_inference_watch_send(ngx_http_inference_watch_t *watch,
    ngx_uint_t status)
{
    ngx_int_t            rc;
    ngx_buf_t           *b;
    ngx_chain_t         *out;
    ngx_http_request_t  *r;
    inf_grpc_prefix_t    prefix;

    Grpc__Health__V1__HealthCheckResponse  response
        = GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__INIT;

    r = watch->ctx->request;

    if (!r->header_sent) {

        if (ngx_http_inference_grpc_head(watch->ctx) != NGX_OK) {
            return NGX_ERROR;
        }

        rc = ngx_http_inference_send_header(r);

        if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
            return NGX_ERROR;
        }
    }

    out = ngx_chain_get_free_buf(r->pool, &watch->free);
    if (out == NULL) {
        return NGX_ERROR;
    }

    response.status = status;

    prefix.compressed = 0;
    prefix.len = grpc__health__v1__health_check_response__pack(&response,
                                             watch->frame + INF_GRPC_PREFIX);

    inf_grpc_put_prefix(watch->frame, &prefix);

    b = out->buf;

    ngx_memzero(b, sizeof(ngx_buf_t));

    b->memory = 1;
    b->flush = 1;
    b->start = watch->frame;
    b->pos = b->start;
    b->last = b->pos + INF_GRPC_PREFIX + prefix.len;
    b->end = b->last;
    b->tag = (ngx_buf_tag_t) &ngx_http_inference_module;

    watch->sent = status;

    return ngx_http_inference_watch_flush(watch, out);
}


static ngx_int_t
ngx_http_inference_watch_flush(ngx_http_inference_watch_t *watch,
    ngx_chain_t *out)
{
    ngx_int_t            rc;
    ngx_http_request_t  *r;

    r = watch->ctx->request;

    rc = ngx_http_output_filter(r, out);

    ngx_chain_update_chains(r->pool, &watch->free, &watch->busy, &out,
                            (ngx_buf_tag_t) &ngx_http_inference_module);

    return (rc == NGX_ERROR) ? NGX_ERROR : NGX_OK;
}


/* ---- the upstream -------------------------------------------------------- */

/* Asks the upstreams of the watchers from the first one on.  All are marked as
   waiting before the first request, which may fail at once. */

static void
ngx_http_inference_others_ask(ngx_queue_t *first)
{
    ngx_queue_t                 *q, *end;
    ngx_http_inference_watch_t  *watch;

    end = ngx_queue_sentinel(&ngx_http_inference_health.watchers);

    for (q = first; q != end; q = ngx_queue_next(q)) {
        watch = ngx_queue_data(q, ngx_http_inference_watch_t, queue);

        if (watch->known && watch->upstream_ready.upstream) {
            ngx_http_inference_ready_wait(&watch->upstream_ready);
        }
    }

    for (q = first; q != end; q = ngx_queue_next(q)) {
        watch = ngx_queue_data(q, ngx_http_inference_watch_t, queue);

        if (watch->upstream_ready.upstream) {
            ngx_http_inference_ready_ask(watch->upstream_ready.upstream);
        }
    }
}


static void
ngx_http_inference_watch_upstream_over(ngx_http_inference_ready_t *ready)
{
    ngx_http_inference_watch_t  *watch;

    watch = (ngx_http_inference_watch_t *)
            ((u_char *) ready
             - offsetof(ngx_http_inference_watch_t, upstream_ready));

    watch->answered = 1;

    ngx_http_inference_watch_tell(watch);
}


/* ---- the reported status ------------------------------------------------- */

static void
ngx_http_inference_watch_tell(ngx_http_inference_watch_t *watch)
{
    if (ngx_http_inference_watch_status(watch) != watch->sent
        && !watch->ctx->turn.posted)
    {
        ngx_post_event(&watch->ctx->turn, &ngx_posted_events);
    }
}


static void
ngx_http_inference_health_ask(ngx_event_t *ev)
{
    ngx_http_inference_health_t  *health;

    health = &ngx_http_inference_health;

    ngx_http_inference_others_ask(ngx_queue_head(&health->watchers));

    if (ngx_http_inference_unanswered(&health->submission)) {
        health->pauses++;

    } else {
        health->pauses = 0;

        if (ngx_http_inference_health_submit() == NGX_DECLINED) {
            health->pauses = NGX_HTTP_INFERENCE_WATCH_HUNG;
        }
    }

    if (health->pauses >= NGX_HTTP_INFERENCE_WATCH_HUNG) {
        ngx_http_inference_health_set(NGX_HTTP_INFERENCE_WATCH_NOT_SERVING);
    }

    ngx_add_timer(&health->timer, NGX_HTTP_INFERENCE_WATCH_PAUSE);
}


/* Asks the core.  NGX_DECLINED: no core.  NGX_BUSY: asked the next time. */

static ngx_int_t
ngx_http_inference_health_submit(void)
{
    uint64_t                      epoch;
    ngx_int_t                     rc;
    inf_client_t                 *client;
    inf_region_t                 *region;
    inf_submission_t              s;
    ngx_http_inference_health_t  *health;

    health = &ngx_http_inference_health;
    client = ngx_http_inference_channel(&epoch);

    if (client == NULL) {
        return NGX_DECLINED;
    }

    if (health->submission.state != NGX_HTTP_INFERENCE_SUBMISSION_FREE) {
        /* the core may still read the last record */
        return NGX_BUSY;
    }

    region = inf_client_alloc_call(client, 0);
    if (region == NULL) {
        return NGX_BUSY;
    }

    ngx_memzero(&s, sizeof(inf_submission_t));

    s.op = INF_SUBMIT_CALL;
    s.method = INF_METHOD_SERVER_READY;
    s.offset = region->offset;
    s.received_ns = inf_clock_ns();

    rc = ngx_http_inference_submit(&health->submission, epoch, &s, &region, 1);

    if (rc != NGX_OK) {
        inf_client_free_region(client, region);
    }

    return (rc == NGX_ERROR) ? NGX_DECLINED : rc;
}


/* Takes the answer: "ready: true" has bytes, "ready: false" has none. */

static void
ngx_http_inference_health_answer(ngx_http_inference_submission_t *submission,
    const inf_completion_t *c)
{
    ngx_uint_t  ready;

    ready = 0;

    if (c && (c->flags & INF_COMPLETE_RESPONSE) && c->length) {
        ready = (c->status == INF_OK);
        ngx_http_inference_release(submission->epoch, c->offset, 0);
    }

    if (c == NULL || (c->flags & INF_COMPLETE_FINAL)) {
        ngx_http_inference_health_set(
                                ready ? NGX_HTTP_INFERENCE_WATCH_SERVING
                                      : NGX_HTTP_INFERENCE_WATCH_NOT_SERVING);
    }
}


static void
ngx_http_inference_health_set(ngx_uint_t status)
{
    ngx_queue_t                  *q;
    ngx_http_inference_health_t  *health;

    health = &ngx_http_inference_health;

    if (ngx_queue_empty(&health->watchers)) {
        return;
    }

    health->status = status;

    for (q = ngx_queue_head(&health->watchers);
         q != ngx_queue_sentinel(&health->watchers);
         q = ngx_queue_next(q))
    {
        ngx_http_inference_watch_tell(
                   ngx_queue_data(q, ngx_http_inference_watch_t, queue));
    }
}
