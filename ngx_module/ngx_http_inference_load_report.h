/*
 * ngx_http_inference_load_report.h - the load of model and core, in the head of
 *                                    a response.
 *
 * Owner    The load is part of the context.
 * Thread   the worker's event loop.
 * Units    utilization is a share (1: full); max_tokens counts tokens.
 * Errors   NGX_ERROR: out of memory.
 * Route    request's head -> [asked]; reply -> [header] -> response's head.
 */

#ifndef NGX_HTTP_INFERENCE_LOAD_REPORT_H
#define NGX_HTTP_INFERENCE_LOAD_REPORT_H

#include "ngx_module/ngx_http_inference.h"


/* the load report that a client of generate has asked for */

typedef enum {
    NGX_HTTP_INFERENCE_LOAD_NONE = 0,
    NGX_HTTP_INFERENCE_LOAD_JSON,
    NGX_HTTP_INFERENCE_LOAD_TEXT_FORMAT
} ngx_http_inference_load_format_e;

typedef struct {
    ngx_http_inference_load_format_e  format;
    double                       utilization;   /* of the KV cache           */
    uint64_t                     max_tokens;
    unsigned                     reported:1;    /* utilization and max_tokens
                                                   are set                   */
} ngx_http_inference_load_t;


/* Sets the format of the load report that the client asks for, if it does. */
void ngx_http_inference_load_asked(ngx_http_inference_ctx_t *ctx);

/* Adds the load report to the head, if it is known. */
ngx_int_t ngx_http_inference_load_header(ngx_http_inference_ctx_t *ctx);

/* Adds the length of the queue to the head of a call's answer, if asked for. */
ngx_int_t ngx_http_inference_load_queue(ngx_http_inference_ctx_t *ctx);


#endif /* NGX_HTTP_INFERENCE_LOAD_REPORT_H */
