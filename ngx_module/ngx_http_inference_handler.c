/*
 * ngx_http_inference_handler.c - the content handler and the life of its
 *                                context.
 */

#include "ngx_module/ngx_http_inference_request.h"


static ngx_int_t ngx_http_inference_handle(ngx_http_request_t *r);
static ngx_http_inference_ctx_t *ngx_http_inference_create_ctx(
    ngx_http_request_t *r);
static ngx_int_t ngx_http_inference_live(ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_connect(ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_begin(ngx_http_inference_ctx_t *ctx);
static void ngx_http_inference_ready(ngx_http_inference_ticket_t *ticket,
    ngx_int_t rc);
static ngx_int_t ngx_http_inference_run(ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_run_call(ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_run_source(ngx_http_inference_ctx_t *ctx);
static ngx_int_t ngx_http_inference_run_reading(ngx_http_inference_ctx_t *ctx);
static void ngx_http_inference_turn_handler(ngx_event_t *ev);
static void ngx_http_inference_timer_handler(ngx_event_t *ev);
static void ngx_http_inference_leave(void *data);
static void ngx_http_inference_cleanup(void *data);


#define ngx_http_inference_event_ctx(ev, field)                               \
    (ngx_http_inference_ctx_t *)                                              \
        ((u_char *) (ev) - offsetof(ngx_http_inference_ctx_t, field))


ngx_int_t
ngx_http_inference_handler(ngx_http_request_t *r)
{
    uint64_t   began_ns;
    ngx_int_t  rc;

    began_ns = inf_clock_ns();

    rc = ngx_http_inference_handle(r);

    ngx_http_inference_turn_ended(began_ns);

    return rc;
}


static ngx_int_t
ngx_http_inference_handle(ngx_http_request_t *r)
{
    ngx_http_inference_ctx_t  *ctx;

    ctx = ngx_http_inference_create_ctx(r);
    if (ctx == NULL) {
        return NGX_HTTP_INTERNAL_SERVER_ERROR;
    }

    if (ngx_http_inference_find_endpoint(ctx) != NGX_OK) {
        return ngx_http_inference_reject_early(ctx);
    }

    switch (ctx->endpoint->verb) {

    case NGX_HTTP_INFERENCE_NOT_BUILT:
        (void) ngx_http_inference_fail(ctx, INF_ERR_UNSUPPORTED,
                                       "the %V endpoint is not available in "
                                       "this version of the server",
                                       &ctx->endpoint->name);
        return ngx_http_inference_reject_early(ctx);

    case NGX_HTTP_INFERENCE_REPOSITORY_NAMED:
        (void) ngx_http_inference_fail(ctx, INF_ERR_UNSUPPORTED,
                                       "'repository_name' specification is "
                                       "not supported");
        return ngx_http_inference_reject_early(ctx);

    case NGX_HTTP_INFERENCE_SERVER_LIVE:
        return ngx_http_inference_live(ctx);

    case NGX_HTTP_INFERENCE_MODEL_INFER:
    case NGX_HTTP_INFERENCE_REPOSITORY_INDEX:
    case NGX_HTTP_INFERENCE_REPOSITORY_LOAD:
    case NGX_HTTP_INFERENCE_REPOSITORY_UNLOAD:

        if (ngx_http_inference_body_check(ctx) != NGX_OK) {
            return ngx_http_inference_reject_early(ctx);
        }

        break;

    default:
        break;
    }

    return ngx_http_inference_connect(ctx);
}


static ngx_http_inference_ctx_t *
ngx_http_inference_create_ctx(ngx_http_request_t *r)
{
    ngx_http_cleanup_t        *leave;
    ngx_pool_cleanup_t        *cln;
    ngx_http_inference_ctx_t  *ctx;

    ctx = ngx_pcalloc(r->pool, sizeof(ngx_http_inference_ctx_t));
    cln = ngx_pool_cleanup_add(r->pool, 0);
    leave = ngx_http_cleanup_add(r, 0);

    if (ctx == NULL || cln == NULL || leave == NULL) {
        return NULL;
    }

    ctx->request = r;
    ctx->version = -1;
    ctx->received_ns = inf_clock_ns();

    ctx->timer.handler = ngx_http_inference_timer_handler;
    ctx->timer.data = r->connection;
    ctx->timer.log = r->connection->log;

    ctx->turn.handler = ngx_http_inference_turn_handler;
    ctx->turn.data = r->connection;
    ctx->turn.log = r->connection->log;

    inf_arena_init(&ctx->arena);

    cln->handler = ngx_http_inference_cleanup;
    cln->data = ctx;

    leave->handler = ngx_http_inference_leave;
    leave->data = ctx;

    ngx_http_set_ctx(r, ctx, ngx_http_inference_module);

    return ctx;
}


/* A redirect forgets the context, the pool doesn't. */

ngx_http_inference_ctx_t *
ngx_http_inference_ctx(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t        *cln;
    ngx_http_inference_ctx_t  *ctx;

    ctx = ngx_http_get_module_ctx(r, ngx_http_inference_module);

    if (ctx) {
        return ctx;
    }

    if (!r->internal && !r->filter_finalize) {
        return NULL;
    }

    for (cln = r->pool->cleanup; cln; cln = cln->next) {

        if (cln->handler == ngx_http_inference_cleanup) {
            ctx = cln->data;

            if (ctx->request == r) {
                return ctx;
            }
        }
    }

    return NULL;
}


ngx_http_inference_ctx_t *
ngx_http_inference_borrower(ngx_http_request_t *mr)
{
    ngx_pool_cleanup_t        *cln;
    ngx_http_inference_ctx_t  *ctx;

    for (cln = mr->pool->cleanup; cln; cln = cln->next) {

        if (cln->handler == ngx_http_inference_cleanup) {
            ctx = cln->data;

            if (ctx->request->main == mr
                && ctx->state == NGX_HTTP_INFERENCE_BORROWING)
            {
                return ctx;
            }
        }
    }

    return NULL;
}


/*
 * nginx may redirect a request while events of its context are still to come:
 * by an error of the body's reading or a post_action.  Then it is another
 * handler's, and what is left of the context is given up.
 */

ngx_uint_t
ngx_http_inference_disowned(ngx_http_inference_ctx_t *ctx)
{
    if (ngx_http_get_module_ctx(ctx->request, ngx_http_inference_module)
        == ctx)
    {
        return 0;
    }

    if (ctx->state != NGX_HTTP_INFERENCE_DONE) {
        ngx_http_inference_leave(ctx);
    }

    return 1;
}


/*
 * A worker that answers is live, however busy it is and whatever the core
 * does: restarting it would not help.
 */

static ngx_int_t
ngx_http_inference_live(ngx_http_inference_ctx_t *ctx)
{
    ngx_str_t  empty;

    ngx_str_null(&empty);

    ngx_http_inference_body_stop(ctx);

    ctx->live = 1;
    ctx->state = NGX_HTTP_INFERENCE_DONE;

    return ngx_http_inference_send(ctx->request, NGX_HTTP_OK, &empty);
}


/* ---- the channel -------------------------------------------------------- */

static ngx_int_t
ngx_http_inference_connect(ngx_http_inference_ctx_t *ctx)
{
    ngx_int_t   rc;
    ngx_msec_t  grace;

    ctx->client = ngx_http_inference_channel(&ctx->epoch);

    if (ctx->client) {
        return ngx_http_inference_begin(ctx);
    }

    grace = 0;

    if (ctx->endpoint->verb == NGX_HTTP_INFERENCE_SERVER_READY) {
        /*
         * who asks wants to know about now, of the server and not of a worker
         * that has only just come
         */

        grace = ngx_http_inference_grace();

        if (grace == 0) {
            (void) ngx_http_inference_fail_no_core(ctx);
            return ngx_http_inference_reject_early(ctx);
        }

        ctx->graced = 1;
    }

    ctx->ticket.data = ctx;
    ctx->ticket.ready = ngx_http_inference_ready;

    rc = ngx_http_inference_wait_ready(&ctx->ticket);

    if (rc == NGX_OK) {
        ctx->client = ngx_http_inference_channel(&ctx->epoch);

        if (ctx->client) {
            return ngx_http_inference_begin(ctx);
        }
    }

    if (rc != NGX_AGAIN) {
        (void) ngx_http_inference_fail_no_core(ctx);
        return ngx_http_inference_reject_early(ctx);
    }

    ctx->state = NGX_HTTP_INFERENCE_CONNECTING;
    ctx->request->main->count++;

    if (ctx->graced) {
        ngx_add_timer(&ctx->timer, grace);

    } else {
        ngx_http_inference_start_timer(ctx);
    }

    ngx_http_inference_watch(ctx);

    return NGX_DONE;
}


/*
 * A dead core's channel goes when nothing of it is held: whoever takes a first
 * region must ask which channel there is.
 */

ngx_int_t
ngx_http_inference_current(ngx_http_inference_ctx_t *ctx)
{
    if (ctx->record || ctx->body.packed.region || ctx->body.text.region
        || ctx->body.data.region)
    {
        return NGX_OK;
    }

    ctx->client = ngx_http_inference_channel(&ctx->epoch);

    if (ctx->client) {
        return NGX_OK;
    }

    ctx->retry_after = 1;

    return ngx_http_inference_fail(ctx, INF_ERR_UNAVAILABLE,
                                   "the inference core ended while the "
                                   "request was being received");
}


static ngx_int_t
ngx_http_inference_begin(ngx_http_inference_ctx_t *ctx)
{
    if (ctx->endpoint->verb == NGX_HTTP_INFERENCE_MODEL_INFER
        || ngx_http_inference_call_has_body(ctx))
    {
        return ngx_http_inference_body_read(ctx);
    }

    return ngx_http_inference_control(ctx);
}


static void
ngx_http_inference_ready(ngx_http_inference_ticket_t *ticket, ngx_int_t rc)
{
    ngx_connection_t          *c;
    ngx_http_request_t        *r;
    ngx_http_inference_ctx_t  *ctx;

    ctx = ticket->data;
    r = ctx->request;
    c = r->connection;

    if (ctx->state != NGX_HTTP_INFERENCE_CONNECTING
        || ngx_http_inference_disowned(ctx))
    {
        return;
    }

    if (ctx->timer.timer_set) {
        ngx_del_timer(&ctx->timer);
    }

    ctx->client = (rc == NGX_OK) ? ngx_http_inference_channel(&ctx->epoch)
                                 : NULL;

    if (ctx->client == NULL) {
        (void) ngx_http_inference_fail_no_core(ctx);
        ngx_http_inference_reject(ctx);

    } else {
        /* the count taken while waiting goes with this */
        ngx_http_finalize_request(r, ngx_http_inference_begin(ctx));
    }

    ngx_http_run_posted_requests(c);
}


/* ---- turns -------------------------------------------------------------- */

void
ngx_http_inference_slice(ngx_http_inference_ctx_t *ctx)
{
    ctx->slice_end_ns = inf_clock_ns() + NGX_HTTP_INFERENCE_SLICE_NS;
    ctx->slice_steps = 0;
}


ngx_uint_t
ngx_http_inference_slice_over(ngx_http_inference_ctx_t *ctx)
{
    return ++ctx->slice_steps >= NGX_HTTP_INFERENCE_SLICE_STEPS
           || inf_clock_ns() >= ctx->slice_end_ns;
}


void
ngx_http_inference_yield(ngx_http_inference_ctx_t *ctx)
{
    (void) ngx_atomic_fetch_add(&ngx_http_inference_counters()->slices, 1);

    ngx_post_event(&ctx->turn, &ngx_posted_next_events);
}


static void
ngx_http_inference_turn_handler(ngx_event_t *ev)
{
    uint64_t                   began_ns;
    ngx_connection_t          *c;
    ngx_http_inference_ctx_t  *ctx;

    began_ns = inf_clock_ns();
    ctx = ngx_http_inference_event_ctx(ev, turn);
    c = ctx->request->connection;

    if (ngx_http_inference_disowned(ctx)) {
        return;
    }

    ngx_http_inference_slice(ctx);
    ngx_http_inference_step(ctx);

    ngx_http_inference_turn_ended(began_ns);

    ngx_http_run_posted_requests(c);
}


void
ngx_http_inference_step(ngx_http_inference_ctx_t *ctx)
{
    ngx_int_t  rc;

    if (ctx->state == NGX_HTTP_INFERENCE_SENDING) {
        ngx_http_inference_respond_more(ctx);
        return;
    }

    if (ctx->state == NGX_HTTP_INFERENCE_BORROWING) {
        ngx_http_inference_borrowed(ctx);
        return;
    }

    rc = ctx->failed ? NGX_ERROR : ngx_http_inference_run(ctx);

    if (rc == NGX_AGAIN) {
        ngx_http_inference_yield(ctx);

    } else if (rc == NGX_ERROR && ctx->state != NGX_HTTP_INFERENCE_DONE) {
        ngx_http_inference_reject(ctx);
    }
}


/* NGX_AGAIN: the slice is over; NGX_DONE: something else calls again. */

static ngx_int_t
ngx_http_inference_run(ngx_http_inference_ctx_t *ctx)
{
    ngx_int_t  rc;

    switch (ctx->state) {

    case NGX_HTTP_INFERENCE_RECEIVING:

        if (ngx_http_inference_call_has_body(ctx)) {
            return NGX_DONE;
        }

        if (ngx_http_inference_store_settle(ctx, &ctx->body.text) != NGX_OK) {
            return NGX_AGAIN;
        }

        rc = ngx_http_inference_infer_read(ctx);

        if (rc == NGX_AGAIN && !ngx_http_inference_slice_over(ctx)) {
            /* more bytes will come */
            return NGX_DONE;
        }

        return (rc == NGX_OK) ? NGX_DONE : rc;

    case NGX_HTTP_INFERENCE_READING:

        if (ngx_http_inference_call_has_body(ctx)) {
            rc = ngx_http_inference_run_call(ctx);

            return (rc == NGX_OK) ? ngx_http_inference_control_submit(ctx)
                                  : rc;
        }

        rc = ngx_http_inference_run_reading(ctx);

        if (rc != NGX_OK) {
            return rc;
        }

        ctx->state = NGX_HTTP_INFERENCE_DECODING;

        /* fall through */

    case NGX_HTTP_INFERENCE_DECODING:

        rc = ngx_http_inference_infer_decode(ctx);

        if (rc != NGX_OK) {
            return rc;
        }

        return ngx_http_inference_infer_submit(ctx);

    case NGX_HTTP_INFERENCE_PREPARING:

        rc = ngx_http_inference_prepare(ctx);

        if (rc != NGX_OK) {
            return rc;
        }

        ngx_http_inference_respond(ctx);

        return NGX_DONE;

    case NGX_HTTP_INFERENCE_CONNECTING:
    case NGX_HTTP_INFERENCE_BORROWING:
    case NGX_HTTP_INFERENCE_WAITING:
    case NGX_HTTP_INFERENCE_SENDING:
    case NGX_HTTP_INFERENCE_DONE:
        break;
    }

    return NGX_DONE;
}


static ngx_int_t
ngx_http_inference_run_call(ngx_http_inference_ctx_t *ctx)
{
    ngx_int_t  rc;

    rc = ngx_http_inference_run_source(ctx);

    if (rc != NGX_OK) {
        return rc;
    }

    rc = ngx_http_inference_repository_room(ctx);

    if (rc != NGX_OK) {
        return rc;
    }

    return ngx_http_inference_body_settle(ctx);
}


static ngx_int_t
ngx_http_inference_run_source(ngx_http_inference_ctx_t *ctx)
{
    ngx_int_t  rc;

    /* what it reads, and what it has written */

    rc = ngx_http_inference_body_settle(ctx);

    if (rc != NGX_OK) {
        return rc;
    }

    rc = ngx_http_inference_source(ctx);

    if (rc != NGX_OK) {
        return rc;
    }

    return ngx_http_inference_body_settle(ctx);
}


static ngx_int_t
ngx_http_inference_run_reading(ngx_http_inference_ctx_t *ctx)
{
    ngx_int_t  rc;

    rc = ngx_http_inference_run_source(ctx);

    if (rc != NGX_OK) {
        return rc;
    }

    rc = ngx_http_inference_infer_read(ctx);

    if (rc != NGX_OK) {
        return rc;
    }

    if (!ctx->planned && ngx_http_inference_place_plan(ctx) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_inference_place_check(ctx);
}


/* ---- time and clients that leave ---------------------------------------- */

void
ngx_http_inference_set_deadline(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_inference_loc_conf_t  *ilcf;

    ilcf = ngx_http_get_module_loc_conf(ctx->request,
                                        ngx_http_inference_module);

    if (ilcf->timeout) {
        ctx->deadline_ns = inf_clock_ns()
                           + (uint64_t) ilcf->timeout * 1000000;
    }
}


void
ngx_http_inference_start_timer(ngx_http_inference_ctx_t *ctx)
{
    ngx_http_inference_loc_conf_t  *ilcf;

    ilcf = ngx_http_get_module_loc_conf(ctx->request,
                                        ngx_http_inference_module);

    ngx_http_inference_set_deadline(ctx);

    ngx_add_timer(&ctx->timer, ilcf->timeout ? ilcf->timeout
                                             : NGX_HTTP_INFERENCE_NO_TIMEOUT);
}


static void
ngx_http_inference_timer_handler(ngx_event_t *ev)
{
    ngx_connection_t               *c;
    ngx_http_inference_ctx_t       *ctx;
    ngx_http_inference_loc_conf_t  *ilcf;

    ctx = ngx_http_inference_event_ctx(ev, timer);
    c = ctx->request->connection;

    if (ngx_http_inference_disowned(ctx)) {
        return;
    }

    ilcf = ngx_http_get_module_loc_conf(ctx->request,
                                        ngx_http_inference_module);

    if (ctx->state == NGX_HTTP_INFERENCE_BORROWING) {
        ngx_http_inference_borrow_poll(ctx);
        ngx_http_run_posted_requests(c);
        return;
    }

    if (ctx->graced && ctx->state == NGX_HTTP_INFERENCE_CONNECTING) {
        (void) ngx_http_inference_fail_no_core(ctx);
        ngx_http_inference_reject(ctx);
        ngx_http_run_posted_requests(c);
        return;
    }

    if (ctx->state == NGX_HTTP_INFERENCE_RECEIVING) {

        if (ngx_http_inference_check_rate(ctx) != NGX_OK) {
            ngx_http_inference_reject(ctx);
            ngx_http_run_posted_requests(c);
        }

        return;
    }

    if (ilcf->timeout == 0) {
        ngx_add_timer(&ctx->timer, NGX_HTTP_INFERENCE_NO_TIMEOUT);
        return;
    }

    (void) ngx_http_inference_fail_timeout(ctx);
    ngx_http_inference_reject(ctx);
    ngx_http_run_posted_requests(c);
}


void
ngx_http_inference_watch(ngx_http_inference_ctx_t *ctx)
{
    ngx_connection_t    *c;
    ngx_http_request_t  *r;

    r = ctx->request;
    c = r->connection;

    if (r != r->main) {
        return;
    }

    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = ngx_http_request_empty_handler;

    if (c->read->ready) {
        /* an end that came with the request makes no event of its own */
        ngx_post_event(c->read, &ngx_posted_events);
    }
}


void
ngx_http_inference_finalize(ngx_http_inference_ctx_t *ctx, ngx_int_t rc)
{
    ctx->state = NGX_HTTP_INFERENCE_DONE;

    if (ctx->timer.timer_set) {
        ngx_del_timer(&ctx->timer);
    }

    if (ctx->turn.posted) {
        ngx_delete_posted_event(&ctx->turn);
    }

    ngx_http_finalize_request(ctx->request, rc);
}


/* The request ends: nobody waits for the core any more. */

static void
ngx_http_inference_leave(void *data)
{
    ngx_http_inference_ctx_t *ctx = data;

    if (ctx->timer.timer_set) {
        ngx_del_timer(&ctx->timer);
    }

    if (ctx->turn.posted) {
        ngx_delete_posted_event(&ctx->turn);
    }

    ctx->left = (ctx->state != NGX_HTTP_INFERENCE_DONE
                 && ctx->state != NGX_HTTP_INFERENCE_SENDING);

    if (ctx->ticket.waiting
        || (ctx->ticket.submitted && !ctx->ticket.final))
    {
        ngx_http_inference_abandon(&ctx->ticket);
        ctx->abandoned = 1;
    }

    ctx->state = NGX_HTTP_INFERENCE_DONE;
}


/* Nothing reads the arenas for it any more, not even an h2 frame. */

static void
ngx_http_inference_cleanup(void *data)
{
    ngx_http_inference_ctx_t *ctx = data;

    if (!ctx->abandoned) {
        ngx_http_inference_abandon(&ctx->ticket);
    }

    if (ctx->reply.held) {
        ngx_http_inference_release(ctx->reply.epoch, ctx->reply.offset);
    }

    if (ctx->record) {
        inf_client_free_region(ctx->client, ctx->record);
    }

    ngx_http_inference_body_free(ctx);

    inf_infer_reader_free(ctx->reader);
    inf_arena_fini(&ctx->arena);
}
