/*
 * ngx_http_inference_fetch.h - one small exchange of HTTP/1 with a server.
 *
 * Owner    The caller's memory, valid until the exchange has ended.
 * Thread   the worker's event loop.
 * Units    ms, bytes.
 * Errors   `rc`, `why`, and the system's error; nothing is logged.
 * Route    balance_probe, ask -> fetch -> their `done`.
 */

#ifndef NGX_HTTP_INFERENCE_FETCH_H
#define NGX_HTTP_INFERENCE_FETCH_H

#include "ngx_module/ngx_http_inference.h"


typedef struct ngx_http_inference_fetch_s  ngx_http_inference_fetch_t;

struct ngx_http_inference_fetch_s {
    ngx_peer_connection_t       pc;             /* with the address          */
    ngx_log_t                   log;
    ngx_str_t                   request;
    ngx_msec_t                  timeout;        /* of the whole exchange     */
    u_char                     *answer;         /* buffer of size bytes      */
    size_t                      size;
    size_t                      sent;
    size_t                      received;
    ngx_int_t                   rc;             /* NGX_OK: complete,
                                                   NGX_DECLINED: the server
                                                   failed, NGX_ERROR: this
                                                   process failed            */
    ngx_err_t                   err;            /* of a failure              */
    const char                 *why;            /* NULL: complete            */

    /* whether the received bytes are enough for the caller */
    ngx_uint_t                (*enough)(ngx_http_inference_fetch_t *fetch);

    /* called at the end; the fetch may be started again */
    void                      (*done)(ngx_http_inference_fetch_t *fetch);
};


/* Sets the server; the log is that of the process. */
void ngx_http_inference_fetch_init(ngx_http_inference_fetch_t *fetch,
    struct sockaddr *sockaddr, socklen_t socklen, ngx_str_t *name);

/* Starts the exchange; `done` may be called at once. */
void ngx_http_inference_fetch_start(ngx_http_inference_fetch_t *fetch);

/* Whether the fetch was started and has not ended. */
ngx_uint_t ngx_http_inference_fetch_runs(ngx_http_inference_fetch_t *fetch);

/* Ends the exchange; `done` is not called. */
void ngx_http_inference_fetch_cancel(ngx_http_inference_fetch_t *fetch);


#endif /* NGX_HTTP_INFERENCE_FETCH_H */
