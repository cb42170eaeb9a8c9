/*
 * ngx_http_inference_preread.c - the first bytes of an HTTP/2 body that is not
 *                                read yet.
 *
 * nginx keeps them in a buffer of the stream (http2_body_preread_size is its
 * size, and the client's window), without an event.  While requests of a
 * connection wait for more bytes, the connection's read handler is replaced:
 * ours restores nginx's handler, posts an event, and calls nginx's handler.
 * The event is handled after nginx has read the frames.
 */

#include "ngx_module/ngx_http_inference_peek.h"


#if (NGX_HTTP_V2)

#include <ngx_http_v2_module.h>


typedef struct {
    ngx_queue_t            waiters;
    ngx_event_handler_pt   handler;             /* nginx's handler, replaced by
                                                   ours                      */
    ngx_event_t            event;
} ngx_http_inference_preread_t;


static ngx_http_inference_preread_t *ngx_http_inference_preread_of(
    ngx_connection_t *c);
static void ngx_http_inference_preread_cleanup(void *data);
static void ngx_http_inference_preread_read(ngx_event_t *rev);
static void ngx_http_inference_preread_event(ngx_event_t *ev);


size_t
ngx_http_inference_preread_max(ngx_http_request_t *r)
{
    ngx_http_v2_srv_conf_t  *h2scf;

    if (r->stream == NULL || r->request_body) {
        return 0;
    }

    h2scf = ngx_http_get_module_srv_conf(r, ngx_http_v2_module);

    return h2scf->preread_size;
}


ngx_str_t
ngx_http_inference_preread(ngx_http_request_t *r)
{
    ngx_str_t   bytes;
    ngx_buf_t  *b;

    ngx_str_null(&bytes);

    b = r->stream->preread;

    if (b) {
        bytes.data = b->pos;
        bytes.len = b->last - b->pos;
    }

    return bytes;
}


ngx_uint_t
ngx_http_inference_preread_grows(ngx_http_request_t *r)
{
    return !r->stream->in_closed && !r->stream->skip_data;
}


/* The bytes left in the stream's window, and in the frame being received. */

size_t
ngx_http_inference_preread_room(ngx_http_request_t *r)
{
    size_t                     room;
    ngx_http_v2_stream_t      *stream;
    ngx_http_v2_connection_t  *h2c;

    stream = r->stream;
    h2c = stream->connection;

    room = stream->recv_window;

    if (h2c->state.stream == stream) {
        room += h2c->state.length;
    }

    return room;
}


ngx_int_t
ngx_http_inference_preread_wait(ngx_http_inference_waiter_t *waiter)
{
    ngx_event_t                   *rev;
    ngx_http_inference_preread_t  *preread;

    rev = waiter->request->stream->connection->connection->read;

    preread = ngx_http_inference_preread_of(rev->data);
    if (preread == NULL) {
        return NGX_ERROR;
    }

    if (rev->handler != ngx_http_inference_preread_read) {
        preread->handler = rev->handler;
        rev->handler = ngx_http_inference_preread_read;
    }

    /* frames may have been received together with the headers */

    if (!waiter->again && !preread->event.posted) {
        ngx_post_event(&preread->event, &ngx_posted_events);
    }

    ngx_queue_insert_tail(&preread->waiters, &waiter->queue);
    waiter->waiting = 1;
    waiter->again = 1;

    return NGX_OK;
}


void
ngx_http_inference_preread_stop(ngx_http_inference_waiter_t *waiter)
{
    if (waiter->waiting) {
        ngx_queue_remove(&waiter->queue);
        waiter->waiting = 0;
    }
}


static ngx_http_inference_preread_t *
ngx_http_inference_preread_of(ngx_connection_t *c)
{
    ngx_pool_cleanup_t            *cln;
    ngx_http_inference_preread_t  *preread;

    for (cln = c->pool->cleanup; cln; cln = cln->next) {
        if (cln->handler == ngx_http_inference_preread_cleanup) {
            return cln->data;
        }
    }

    cln = ngx_pool_cleanup_add(c->pool, sizeof(ngx_http_inference_preread_t));
    if (cln == NULL) {
        return NULL;
    }

    preread = cln->data;
    ngx_memzero(preread, sizeof(ngx_http_inference_preread_t));

    cln->handler = ngx_http_inference_preread_cleanup;

    ngx_queue_init(&preread->waiters);
    preread->event.handler = ngx_http_inference_preread_event;
    preread->event.data = c;
    preread->event.log = c->log;

    return preread;
}


static void
ngx_http_inference_preread_cleanup(void *data)
{
    ngx_http_inference_preread_t *preread = data;

    if (preread->event.posted) {
        ngx_delete_posted_event(&preread->event);
    }
}


static void
ngx_http_inference_preread_read(ngx_event_t *rev)
{
    ngx_http_inference_preread_t  *preread;

    preread = ngx_http_inference_preread_of(rev->data);

    rev->handler = preread->handler;

    if (!preread->event.posted) {
        ngx_post_event(&preread->event, &ngx_posted_events);
    }

    /* rev may be freed by the handler */

    rev->handler(rev);
}


/* A call of a waiter may remove any other waiter with its connection, and may
   add the same one again. */

static void
ngx_http_inference_preread_event(ngx_event_t *ev)
{
    ngx_queue_t                   *q, due;
    ngx_http_inference_waiter_t   *waiter;
    ngx_http_inference_preread_t  *preread;

    preread = (ngx_http_inference_preread_t *)
        ((u_char *) ev - offsetof(ngx_http_inference_preread_t, event));

    if (ngx_queue_empty(&preread->waiters)) {
        return;
    }

    ngx_queue_init(&due);
    ngx_queue_add(&due, &preread->waiters);
    ngx_queue_init(&preread->waiters);

    while (!ngx_queue_empty(&due)) {

        q = ngx_queue_head(&due);
        waiter = ngx_queue_data(q, ngx_http_inference_waiter_t, queue);

        ngx_http_inference_preread_stop(waiter);

        waiter->more(waiter);
    }
}


#else


size_t
ngx_http_inference_preread_max(ngx_http_request_t *r)
{
    return 0;
}


ngx_str_t
ngx_http_inference_preread(ngx_http_request_t *r)
{
    return (ngx_str_t) ngx_null_string;
}


ngx_uint_t
ngx_http_inference_preread_grows(ngx_http_request_t *r)
{
    return 0;
}


size_t
ngx_http_inference_preread_room(ngx_http_request_t *r)
{
    return 0;
}


ngx_int_t
ngx_http_inference_preread_wait(ngx_http_inference_waiter_t *waiter)
{
    return NGX_ERROR;
}


void
ngx_http_inference_preread_stop(ngx_http_inference_waiter_t *waiter)
{
    /* requests wait only in builds with HTTP/2 */
}


#endif
