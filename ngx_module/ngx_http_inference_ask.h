/*
 * ngx_http_inference_ask.h - the servers of an upstream, asked one after
 *                            another until one answers.
 *
 * Owner    The caller's memory, which stays until `over` or a cancel of fetch.
 * Thread   the worker's event loop.
 * Units    ms, bytes.
 * Errors   A server that does not answer is logged; if none does, `answered`
 *          is 0.
 * Route    join, missing, grpc_watch -> [ask] -> fetch -> `over`.
 */

#ifndef NGX_HTTP_INFERENCE_ASK_H
#define NGX_HTTP_INFERENCE_ASK_H

#include "ngx_module/ngx_http_inference_fetch.h"

#include "core/proto/node_answer.h"


typedef struct ngx_http_inference_ask_s  ngx_http_inference_ask_t;

struct ngx_http_inference_ask_s {
    ngx_http_inference_fetch_t      fetch;      /* first: it is the ask; the
                                                   request and the room for the
                                                   answer are the caller's   */
    ngx_http_inference_upstream_t  *upstream;
    ngx_log_t                      *log;
    const char                     *without;    /* for the log: the effect of a
                                                   server that does not answer */
    ngx_uint_t                      whole;      /* the answer ends where the
                                                   server closes; 0: the head is
                                                   enough                    */
    ngx_uint_t                      first;      /* of the addresses          */
    ngx_uint_t                      tried;
    ngx_msec_t                      until;
    ngx_uint_t                      answered;
    inf_node_answer_t               answer;     /* of the one that did       */

    void                          (*over)(ngx_http_inference_ask_t *ask);
};


/* The upstream's readiness, asked for once for all of this worker who wait for
   it. */
struct ngx_http_inference_readiness_s {
    ngx_http_inference_ask_t        ask;        /* first: it is the readiness */
    ngx_queue_t                     waiting;
    u_char                          answer[INF_NODE_ANSWER_MAX];
};


typedef struct ngx_http_inference_ready_s  ngx_http_inference_ready_t;

/* one who waits for it */
struct ngx_http_inference_ready_s {
    ngx_queue_t                     queue;      /* while pending             */
    ngx_http_inference_upstream_t  *upstream;
    ngx_uint_t                      pending;
    ngx_uint_t                      ready;      /* once it is not            */

    void                          (*over)(ngx_http_inference_ready_t *wait);
};


/* So long at most, and not longer than 2 s in all; `over` may be called at
   once. */
void ngx_http_inference_ask_start(ngx_http_inference_ask_t *ask,
    ngx_msec_t within);

/* Of the server that is asked. */
void ngx_http_inference_ask_log(ngx_http_inference_ask_t *ask, ngx_err_t err,
    const char *why);

/* Makes the request of a GET of an upstream, in pool. */
ngx_int_t ngx_http_inference_ask_get(ngx_http_inference_ask_t *ask,
    ngx_pool_t *pool, ngx_str_t *path);

/* Takes room for an answer in pool: for its head alone; or with its body, up to
   1 MiB, which is wanted then. */
ngx_int_t ngx_http_inference_ask_head(ngx_http_inference_ask_t *ask,
    ngx_pool_t *pool);
ngx_int_t ngx_http_inference_ask_whole(ngx_http_inference_ask_t *ask,
    ngx_pool_t *pool);

/* Of an answer that is whole. */
inf_slice_t ngx_http_inference_ask_body(ngx_http_inference_ask_t *ask);


/* ---- upstream_ready.c ---------------------------------------------------- */

/* Waits for the next answer; and: the upstream is asked, if somebody waits and
   it is not being asked.  `over` may be called at once. */
void ngx_http_inference_ready_wait(ngx_http_inference_ready_t *wait);
void ngx_http_inference_ready_ask(ngx_http_inference_upstream_t *upstream);

/* `over` is not called any more. */
void ngx_http_inference_ready_leave(ngx_http_inference_ready_t *wait);


#endif /* NGX_HTTP_INFERENCE_ASK_H */
