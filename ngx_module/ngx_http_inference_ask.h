/*
 * ngx_http_inference_ask.h - the servers of an upstream, asked one after
 *                            another until one answers.
 *
 * Owner    The caller's memory, which stays until `over` or a cancel of fetch.
 * Thread   the worker's event loop.
 * Units    ms, bytes.
 * Errors   A server that does not answer is logged; if none does, `answered`
 *          is 0.
 * Route    join -> [ask] -> fetch -> `over`.
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


/* The upstream's readiness, asked for once for all requests of this worker that
   wait for it. */
struct ngx_http_inference_readiness_s {
    ngx_http_inference_ask_t        ask;        /* first: it is the readiness */
    ngx_queue_t                     waiting;
    u_char                          answer[INF_NODE_ANSWER_MAX];
};


/* So long at most, and not longer than 2 s in all; `over` may be called at
   once. */
void ngx_http_inference_ask_start(ngx_http_inference_ask_t *ask,
    ngx_msec_t within);

/* Of the server that is asked. */
void ngx_http_inference_ask_log(ngx_http_inference_ask_t *ask, ngx_err_t err,
    const char *why);


#endif /* NGX_HTTP_INFERENCE_ASK_H */
