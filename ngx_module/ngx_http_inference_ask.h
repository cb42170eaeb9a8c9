/*
 * ngx_http_inference_ask.h - asks the servers of an upstream, one after
 *                            another until one answers.
 *
 * Owner    The caller's memory, valid until `over` or a cancel of fetch.
 * Thread   the worker's event loop.
 * Units    ms, bytes.
 * Errors   A server that does not answer is logged; if none answers,
 *          `answered` is 0.
 * Route    join, missing, grpc_watch -> [ask] -> fetch -> `over`.
 */

#ifndef NGX_HTTP_INFERENCE_ASK_H
#define NGX_HTTP_INFERENCE_ASK_H

#include "ngx_module/ngx_http_inference_fetch.h"

#include "core/proto/node_answer.h"


typedef struct ngx_http_inference_ask_s  ngx_http_inference_ask_t;

struct ngx_http_inference_ask_s {
    ngx_http_inference_fetch_t      fetch;      /* first member; request and
                                                   answer buffer are the
                                                   caller's                  */
    ngx_http_inference_upstream_t  *upstream;
    ngx_http_request_t             *request;    /* for the log; NULL: of all  */
    const char                     *without;    /* for the log: effect of a
                                                   missing answer            */
    ngx_uint_t                      whole;      /* the answer ends when the
                                                   server closes; 0: only the
                                                   head is needed            */
    ngx_uint_t                      first;      /* index of the first address */
    ngx_uint_t                      tried;
    ngx_msec_t                      until;
    ngx_uint_t                      answered;
    inf_node_answer_t               answer;     /* of the server that
                                                   answered                  */

    void                          (*over)(ngx_http_inference_ask_t *ask);
};


/* The upstream's readiness, requested once for all waiters of this worker. */
struct ngx_http_inference_readiness_s {
    ngx_http_inference_ask_t        ask;        /* first member               */
    ngx_queue_t                     waiting;
    u_char                          answer[INF_NODE_ANSWER_MAX];
};


typedef struct ngx_http_inference_ready_s  ngx_http_inference_ready_t;

/* a waiter for the readiness */
struct ngx_http_inference_ready_s {
    ngx_queue_t                     queue;      /* while pending             */
    ngx_http_inference_upstream_t  *upstream;
    ngx_uint_t                      pending;
    ngx_uint_t                      ready;      /* valid when not pending    */

    void                          (*over)(ngx_http_inference_ready_t *wait);
};


/* Starts asking, for at most `within` ms and at most 2 s; `over` may be called
   at once. */
void ngx_http_inference_ask_start(ngx_http_inference_ask_t *ask,
    ngx_msec_t within);

/* Logs a failure of the server being asked. */
void ngx_http_inference_ask_log(ngx_http_inference_ask_t *ask, ngx_err_t err,
    const char *why);

/* Makes a GET request to an upstream, in pool. */
ngx_int_t ngx_http_inference_ask_get(ngx_http_inference_ask_t *ask,
    ngx_pool_t *pool, ngx_str_t *path);

/* Allocates the answer buffer in pool: for the head alone; or with the body, up
   to 1 MiB, which sets whole. */
ngx_int_t ngx_http_inference_ask_head(ngx_http_inference_ask_t *ask,
    ngx_pool_t *pool);
ngx_int_t ngx_http_inference_ask_whole(ngx_http_inference_ask_t *ask,
    ngx_pool_t *pool);

/* The body of a complete answer. */
inf_slice_t ngx_http_inference_ask_body(ngx_http_inference_ask_t *ask);


/* ---- upstream_ready.c ---------------------------------------------------- */

/* wait: waits for the next answer; ask: asks the upstream if there are waiters
   and no request is running.  `over` may be called at once. */
void ngx_http_inference_ready_wait(ngx_http_inference_ready_t *wait);
void ngx_http_inference_ready_ask(ngx_http_inference_upstream_t *upstream);

/* Ends a wait; `over` is not called. */
void ngx_http_inference_ready_leave(ngx_http_inference_ready_t *wait);


#endif /* NGX_HTTP_INFERENCE_ASK_H */
