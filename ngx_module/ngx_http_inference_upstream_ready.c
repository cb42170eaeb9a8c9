/*
 * ngx_http_inference_upstream_ready.c - the readiness of an upstream,
 *                                       requested once for all waiters of this
 *                                       worker.
 */

#include "ngx_module/ngx_http_inference_ask.h"
#include "ngx_module/ngx_http_inference_fetch.h"
#include "ngx_module/ngx_http_inference_limits.h"


static void ngx_http_inference_ready_over(ngx_http_inference_ask_t *ask);


void
ngx_http_inference_ready_wait(ngx_http_inference_ready_t *wait)
{
    if (!wait->pending) {
        ngx_queue_insert_tail(&wait->upstream->readiness->waiting,
                              &wait->queue);
        wait->pending = 1;
    }
}


/* Probes need no credentials: a worker uses one connection for all of them. */

void
ngx_http_inference_ready_ask(ngx_http_inference_upstream_t *upstream)
{
    ngx_http_inference_readiness_t  *readiness;

    readiness = upstream->readiness;

    if (ngx_queue_empty(&readiness->waiting)
        || ngx_http_inference_fetch_runs(&readiness->ask.fetch))
    {
        return;
    }

    readiness->ask.over = ngx_http_inference_ready_over;

    ngx_http_inference_ask_start(&readiness->ask,
                                 NGX_HTTP_INFERENCE_NO_TIMEOUT);
}


static void
ngx_http_inference_ready_over(ngx_http_inference_ask_t *ask)
{
    ngx_queue_t                     *q;
    ngx_http_inference_ready_t      *wait;
    ngx_http_inference_readiness_t  *readiness;

    readiness = (ngx_http_inference_readiness_t *) ask;

    while (!ngx_queue_empty(&readiness->waiting)) {
        q = ngx_queue_head(&readiness->waiting);
        ngx_queue_remove(q);

        wait = ngx_queue_data(q, ngx_http_inference_ready_t, queue);
        wait->pending = 0;
        wait->ready = ask->answered && ask->answer.status == NGX_HTTP_OK;
        wait->over(wait);
    }
}


/* The exchange is cancelled when its last waiter leaves. */

void
ngx_http_inference_ready_leave(ngx_http_inference_ready_t *wait)
{
    ngx_http_inference_readiness_t  *readiness;

    if (!wait->pending) {
        return;
    }

    readiness = wait->upstream->readiness;

    ngx_queue_remove(&wait->queue);
    wait->pending = 0;

    if (ngx_queue_empty(&readiness->waiting)) {
        ngx_http_inference_fetch_cancel(&readiness->ask.fetch);
    }
}
