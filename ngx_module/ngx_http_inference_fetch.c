/*
 * ngx_http_inference_fetch.c - connects, sends a request, and receives until
 *                              the caller has enough or the server closes.
 */

#include "ngx_module/ngx_http_inference_fetch.h"


static void ngx_http_inference_fetch_write(ngx_event_t *wev);
static void ngx_http_inference_fetch_read(ngx_event_t *rev);
static void ngx_http_inference_fetch_fail(ngx_http_inference_fetch_t *fetch,
    ngx_err_t err, const char *why);
static void ngx_http_inference_fetch_give_up(
    ngx_http_inference_fetch_t *fetch);
static void ngx_http_inference_fetch_end(ngx_http_inference_fetch_t *fetch,
    ngx_int_t rc, ngx_err_t err, const char *why);


void
ngx_http_inference_fetch_init(ngx_http_inference_fetch_t *fetch,
    struct sockaddr *sockaddr, socklen_t socklen, ngx_str_t *name)
{
    /* the caller logs failures, nginx would log each attempt */

    fetch->log = *ngx_cycle->log;
    fetch->log.log_level = NGX_LOG_ALERT;

    fetch->pc.sockaddr = sockaddr;
    fetch->pc.socklen = socklen;
    fetch->pc.name = name;
    fetch->pc.get = ngx_event_get_peer;
    fetch->pc.log = &fetch->log;
    fetch->pc.log_error = NGX_ERROR_IGNORE_ECONNRESET;
    fetch->pc.connection = NULL;
}


void
ngx_http_inference_fetch_start(ngx_http_inference_fetch_t *fetch)
{
    ngx_int_t          rc;
    ngx_err_t          err;
    ngx_connection_t  *c;

    fetch->sent = 0;
    fetch->received = 0;

    rc = ngx_event_connect_peer(&fetch->pc);
    err = ngx_socket_errno;

    /* nginx also declines if this machine has no free port */

    if (rc == NGX_DECLINED && err != EADDRNOTAVAIL) {
        ngx_http_inference_fetch_fail(fetch, err, "cannot be connected to");
        return;
    }

    if (rc != NGX_OK && rc != NGX_AGAIN) {
        ngx_http_inference_fetch_give_up(fetch);
        return;
    }

    c = fetch->pc.connection;
    c->data = fetch;
    c->write->handler = ngx_http_inference_fetch_write;
    c->read->handler = ngx_http_inference_fetch_read;

    ngx_add_timer(c->read, fetch->timeout);

    if (rc == NGX_OK) {
        ngx_http_inference_fetch_write(c->write);
    }
}


static void
ngx_http_inference_fetch_write(ngx_event_t *wev)
{
    ssize_t                      n;
    ngx_connection_t            *c;
    ngx_http_inference_fetch_t  *fetch;

    c = wev->data;
    fetch = c->data;

    while (fetch->sent < fetch->request.len) {

        n = c->send(c, fetch->request.data + fetch->sent,
                    fetch->request.len - fetch->sent);

        if (n == NGX_AGAIN) {
            if (ngx_handle_write_event(wev, 0) != NGX_OK) {
                ngx_http_inference_fetch_give_up(fetch);
            }

            return;
        }

        if (n <= 0) {
            ngx_http_inference_fetch_fail(fetch, ngx_socket_errno,
                                          "cannot be connected to");
            return;
        }

        fetch->sent += n;
    }
}


static void
ngx_http_inference_fetch_read(ngx_event_t *rev)
{
    ssize_t                      n;
    ngx_connection_t            *c;
    ngx_http_inference_fetch_t  *fetch;

    c = rev->data;
    fetch = c->data;

    if (c->close) {
        /* the process exits */
        ngx_http_inference_fetch_give_up(fetch);
        return;
    }

    if (rev->timedout) {
        ngx_http_inference_fetch_fail(fetch, 0, "does not answer");
        return;
    }

    while (fetch->received < fetch->size) {

        n = c->recv(c, fetch->answer + fetch->received,
                    fetch->size - fetch->received);

        if (n == NGX_AGAIN) {
            if (ngx_handle_read_event(rev, 0) != NGX_OK) {
                ngx_http_inference_fetch_give_up(fetch);
            }

            return;
        }

        if (n < 0) {
            ngx_http_inference_fetch_fail(fetch, ngx_socket_errno,
                                          "cannot be connected to");
            return;
        }

        if (n == 0 && fetch->received == 0) {
            ngx_http_inference_fetch_fail(fetch, 0, "closes the connection");
            return;
        }

        fetch->received += n;

        if (n == 0 || fetch->enough(fetch)) {
            break;
        }
    }

    ngx_http_inference_fetch_end(fetch, NGX_OK, 0, NULL);
}


static void
ngx_http_inference_fetch_fail(ngx_http_inference_fetch_t *fetch, ngx_err_t err,
    const char *why)
{
    ngx_http_inference_fetch_end(fetch, NGX_DECLINED, err, why);
}


/* Ends without blaming the server; nginx has logged the cause. */

static void
ngx_http_inference_fetch_give_up(ngx_http_inference_fetch_t *fetch)
{
    ngx_http_inference_fetch_end(fetch, NGX_ERROR, 0, "cannot be asked: this "
                                 "process lacks connections or ends");
}


static void
ngx_http_inference_fetch_end(ngx_http_inference_fetch_t *fetch, ngx_int_t rc,
    ngx_err_t err, const char *why)
{
    ngx_http_inference_fetch_cancel(fetch);

    fetch->rc = rc;
    fetch->err = err;
    fetch->why = why;
    fetch->done(fetch);
}


ngx_uint_t
ngx_http_inference_fetch_runs(ngx_http_inference_fetch_t *fetch)
{
    return fetch->pc.connection != NULL;
}


void
ngx_http_inference_fetch_cancel(ngx_http_inference_fetch_t *fetch)
{
    if (fetch->pc.connection) {
        ngx_close_connection(fetch->pc.connection);
        fetch->pc.connection = NULL;
    }
}
