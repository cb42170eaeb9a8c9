/*
 * ngx_http_inference_leaving.c - calls that may be idle as long as they like
 *                                learn that their worker begins to leave, and
 *                                whether others come after it; requests that
 *                                go on in the next turn keep their worker.
 */

#include "ngx_module/ngx_http_inference_client.h"


#if (NGX_HTTP_V2)
static void ngx_http_inference_leaving_close(ngx_connection_t *c);
#endif
static void ngx_http_inference_stay_over(ngx_event_t *ev);


static ngx_event_t        ngx_http_inference_stay;
static ngx_connection_t   ngx_http_inference_stay_dummy;
static ngx_queue_t        ngx_http_inference_leavers;
static ngx_atomic_uint_t  ngx_http_inference_number;    /* of this process's
                                                           configuration     */


/* Workers inherit the number. */

void
ngx_http_inference_leaving_number(void)
{
    ngx_atomic_t  *last;

    last = &ngx_http_inference_counters()->configurations;

    ngx_http_inference_number = ngx_atomic_fetch_add(last, 1) + 1;
}


/*
 * The master has a new configuration before it tells the workers of the old one
 * to leave, and a stop it tells those of the last one alone: these leave word
 * for the others.  While two binaries run, either may leave to the other: nginx
 * has given the older one's pid file another name then.
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
}


/* A worker that leaves ends when no timer is set, with turns posted or not. */

void
ngx_http_inference_next_turn(ngx_event_t *turn)
{
    ngx_post_event(turn, &ngx_posted_next_events);

    if (!ngx_http_inference_stay.timer_set) {
        ngx_add_timer(&ngx_http_inference_stay, 1);
    }
}


/* A turn that was posted while the timer was set relies on it. */

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
 * nginx sends GOAWAY to its connections when the worker begins to leave.  One
 * that had been accepted, but had sent nothing by then, is not among them: its
 * client would keep the worker as long as it likes.
 */

void
ngx_http_inference_leaving_request(ngx_http_request_t *r)
{
#if (NGX_HTTP_V2)
    if (ngx_exiting && r->stream && !r->stream->connection->goaway) {
        ngx_http_inference_leaving_close(r->stream->connection->connection);
    }
#endif
}


#if (NGX_HTTP_V2)

/* As nginx asks a connection of HTTP/2 to end when its streams have ended. */

static void
ngx_http_inference_leaving_close(ngx_connection_t *c)
{
    c->close = 1;

    if (!c->read->posted) {
        ngx_post_event(c->read, &ngx_posted_events);
    }
}

#endif
