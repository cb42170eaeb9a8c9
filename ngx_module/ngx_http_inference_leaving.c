/*
 * ngx_http_inference_leaving.c - the exit of a worker: wakes idle calls without
 *                                a time limit, says whether other workers
 *                                follow, and keeps the worker for turns posted
 *                                to the next iteration.
 */

#include "ngx_module/ngx_http_inference_counters.h"
#include "ngx_module/ngx_http_inference_leaving.h"


#if (NGX_HTTP_V2)
static void ngx_http_inference_close_idle(ngx_event_t *ev);
#endif
static void ngx_http_inference_stay_over(ngx_event_t *ev);


#if (NGX_HTTP_V2)
static ngx_event_t        ngx_http_inference_close;
#endif
static ngx_event_t        ngx_http_inference_stay;
static ngx_connection_t   ngx_http_inference_stay_dummy;
static ngx_queue_t        ngx_http_inference_leavers;
static ngx_atomic_uint_t  ngx_http_inference_number;    /* of this process's
                                                           configuration     */


/* Numbers the configuration; workers inherit the number. */

void
ngx_http_inference_leaving_number(void)
{
    ngx_atomic_t  *last;

    last = &ngx_http_inference_counters()->configurations;

    ngx_http_inference_number = ngx_atomic_fetch_add(last, 1) + 1;
}


/*
 * The master counts a new configuration before it tells old workers to exit,
 * and a stop tells the workers of the last one, which record it for others.
 * While two binaries run, the other binary may serve on: nginx has renamed the
 * older one's pid file.
 */

ngx_uint_t
ngx_http_inference_stopping(void)
{
    ngx_atomic_uint_t               last;
    ngx_file_info_t                 fi;
    ngx_core_conf_t                *ccf;
    ngx_http_inference_counters_t  *counters;

    counters = ngx_http_inference_counters();
    last = counters->configurations;

    if (!ngx_exiting
        || (ngx_http_inference_number != last && counters->stopped != last))
    {
        return 0;
    }

    ccf = (ngx_core_conf_t *) ngx_get_conf(ngx_cycle->conf_ctx,
                                           ngx_core_module);

    return ngx_file_info(ccf->oldpid.data, &fi) == NGX_FILE_ERROR;
}


void
ngx_http_inference_leaving_init(void)
{
    ngx_event_t  *ev;

    ngx_queue_init(&ngx_http_inference_leavers);

    ngx_http_inference_stay_dummy.fd = (ngx_socket_t) -1;

    ev = &ngx_http_inference_stay;
    ngx_memzero(ev, sizeof(ngx_event_t));

    ev->handler = ngx_http_inference_stay_over;
    ev->data = &ngx_http_inference_stay_dummy;
    ev->log = ngx_cycle->log;

#if (NGX_HTTP_V2)
    ev = &ngx_http_inference_close;
    ngx_memzero(ev, sizeof(ngx_event_t));

    ev->handler = ngx_http_inference_close_idle;
    ev->log = ngx_cycle->log;
#endif
}


/* A timer keeps an exiting worker, which posted events do not. */

void
ngx_http_inference_next_turn(ngx_event_t *turn)
{
    ngx_post_event(turn, &ngx_posted_next_events);

    if (!ngx_http_inference_stay.timer_set) {
        ngx_add_timer(&ngx_http_inference_stay, 1);
    }
}


/* Keeps the timer while turns are posted. */

static void
ngx_http_inference_stay_over(ngx_event_t *ev)
{
    if (!ngx_queue_empty(&ngx_posted_next_events)) {
        ngx_add_timer(ev, 1);
    }
}


void
ngx_http_inference_leaver_add(ngx_http_inference_leaver_t *leaver,
    ngx_event_t *turn)
{
    leaver->turn = turn;
    ngx_queue_insert_tail(&ngx_http_inference_leavers, &leaver->queue);

    if (ngx_exiting && !turn->posted) {
        ngx_post_event(turn, &ngx_posted_events);
    }
}


void
ngx_http_inference_leaver_remove(ngx_http_inference_leaver_t *leaver)
{
    if (leaver->turn) {
        ngx_queue_remove(&leaver->queue);
        leaver->turn = NULL;
    }
}


void
ngx_http_inference_leaving(void)
{
    ngx_queue_t                  *q;
    ngx_http_inference_leaver_t  *leaver;

    if (ngx_http_inference_stopping()) {
        ngx_http_inference_counters()->stopped
            = ngx_http_inference_counters()->configurations;
    }

    for (q = ngx_queue_head(&ngx_http_inference_leavers);
         q != ngx_queue_sentinel(&ngx_http_inference_leavers);
         q = ngx_queue_next(q))
    {
        leaver = ngx_queue_data(q, ngx_http_inference_leaver_t, queue);

        if (!leaver->turn->posted) {
            ngx_post_event(leaver->turn, &ngx_posted_events);
        }
    }
}


/*
 * nginx closes idle connections when the worker begins to exit: HTTP/2 sends
 * GOAWAY.  A connection that was accepted and had no request is not idle then,
 * and its client would keep the worker without a limit.  They are closed again
 * after this turn of the event loop: the streams that this connection's
 * handler begins meanwhile would take c->close for their own, and nginx would
 * end them.
 */

void
ngx_http_inference_leaving_request(ngx_http_request_t *r)
{
#if (NGX_HTTP_V2)
    if (ngx_exiting && r->stream && !r->stream->connection->goaway
        && !ngx_http_inference_close.posted)
    {
        ngx_post_event(&ngx_http_inference_close, &ngx_posted_events);
    }
#endif
}


#if (NGX_HTTP_V2)

static void
ngx_http_inference_close_idle(ngx_event_t *ev)
{
    ngx_close_idle_connections((ngx_cycle_t *) ngx_cycle);
}

#endif
