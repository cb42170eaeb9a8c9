/*
 * ngx_http_inference_error.h - why a request has failed, and what is sent
 *                              then.
 *
 * Owner    Texts are the pool's, constant, or borrowed where a prototype
 *          says so.
 * Thread   the worker's event loop.
 * Units    bytes; ms for Retry-After.
 * Errors   ngx_http_inference_fail*() return NGX_ERROR.
 * Route    phase -> [fail] -> driver -> [reject -> send] -> filters.
 */

#ifndef NGX_HTTP_INFERENCE_ERROR_H
#define NGX_HTTP_INFERENCE_ERROR_H

#include "ngx_module/ngx_http_inference.h"

#include "core/base/error.h"


/* a header that goes with an error */

typedef enum {
    NGX_HTTP_INFERENCE_NO_HINT = 0,
    NGX_HTTP_INFERENCE_RETRY_AFTER,
    NGX_HTTP_INFERENCE_ACCEPT_ENCODING,
    NGX_HTTP_INFERENCE_GRPC_ENCODINGS
} ngx_http_inference_hint_e;


/* ---- reject.c ----------------------------------------------------------- */

/* The phase of a failed request.  NGX_OK: ctx->rc is set. */
ngx_int_t ngx_http_inference_reject(ngx_http_inference_ctx_t *ctx);


/* ---- error.c ------------------------------------------------------------ */

/* Record the cause of a failure; later calls do not change it.  Return
   NGX_ERROR. */
ngx_int_t ngx_http_inference_fail(ngx_http_inference_ctx_t *ctx,
    inf_err_code_t code, const char *fmt, ...);
ngx_int_t ngx_http_inference_fail_status(ngx_http_inference_ctx_t *ctx,
    ngx_uint_t status, const char *fmt, ...);
ngx_int_t ngx_http_inference_fail_text(ngx_http_inference_ctx_t *ctx,
    inf_err_code_t code, const void *text, size_t len);

/* Takes err. */
ngx_int_t ngx_http_inference_fail_err(ngx_http_inference_ctx_t *ctx,
    inf_err_t *err);

/* Fails because inference_timeout or the client's timeout is over; with
   Retry-After if the request waited for its model. */
ngx_int_t ngx_http_inference_fail_timeout(ngx_http_inference_ctx_t *ctx);

/* Fails because the request waited ms for its model, with Retry-After. */
ngx_int_t ngx_http_inference_fail_loading(ngx_http_inference_ctx_t *ctx,
    ngx_msec_t ms);

/* Fails because no core can be reached: 503. */
ngx_int_t ngx_http_inference_fail_no_core(ngx_http_inference_ctx_t *ctx);

/* Logs the text of an error that is sent to the client; at level info if it is
   the answer that a model is not ready. */
void ngx_http_inference_log_error(ngx_http_inference_ctx_t *ctx,
    ngx_str_t error);

/* Logs that a request or response of the model has failed, and why. */
void ngx_http_inference_log_failed(ngx_http_inference_ctx_t *ctx,
    const char *what, const char *how, ngx_str_t why);

/* Logs at level info that another handler answers, because of this error. */
void ngx_http_inference_log_handed_on(ngx_http_inference_ctx_t *ctx);

/* The HTTP status for a code in the request's location. */
ngx_uint_t ngx_http_inference_status(ngx_http_inference_ctx_t *ctx,
    inf_err_code_t code);

/* Whether error_page has a status of errors. */
ngx_uint_t ngx_http_inference_may_intercept(ngx_http_request_t *r);

/* The row of error_page for the status of the failed request, or for a status
   that it may fail with.  NULL: none. */
ngx_http_err_page_t *ngx_http_inference_intercepted(
    ngx_http_inference_ctx_t *ctx);
ngx_http_err_page_t *ngx_http_inference_page_of(ngx_http_inference_ctx_t *ctx,
    ngx_uint_t status);

/* Sends the error; returns the code to finalize the request with. */
ngx_int_t ngx_http_inference_send_error(ngx_http_inference_ctx_t *ctx);

/* Sends buffers, none of them empty; NULL: an empty body. */
ngx_int_t ngx_http_inference_send_chain(ngx_http_request_t *r,
    ngx_uint_t status, ngx_str_t *type, ngx_chain_t *out);

/* Keeps nginx's gzip from the answer; call it before the head. */
void ngx_http_inference_keep_plain(ngx_http_request_t *r);

/* Send a head, and a complete body; used for all of them. */
ngx_int_t ngx_http_inference_send_header(ngx_http_request_t *r);
ngx_int_t ngx_http_inference_send_body(ngx_http_request_t *r,
    ngx_chain_t *out);

/* Both texts are borrowed; list: headers or trailers. */
ngx_int_t ngx_http_inference_add_header(ngx_http_request_t *r, char *key,
    char *value);
ngx_int_t ngx_http_inference_add_field(ngx_list_t *list, const char *key,
    const u_char *value, size_t len);

/* The next field of a list of headers, NULL: none; initially part is the list's
   first part and i is 0. */
ngx_table_elt_t *ngx_http_inference_next_field(ngx_list_part_t **part,
    ngx_uint_t *i);

/* Whether a field of the request has that name, which is in lower case. */
#define ngx_http_inference_field_is(h, name)                                  \
    ((h)->key.len == sizeof(name) - 1                                         \
     && ngx_memcmp((h)->lowcase_key, name, sizeof(name) - 1) == 0)

/* A link with a buffer for n bytes that stay the caller's; n 0: a buffer
   without bytes, for a mark.  NULL: out of memory. */
ngx_chain_t *ngx_http_inference_link(ngx_pool_t *pool, const void *p,
    size_t n);

/*
 * Makes a text chosen by a client safe for headers and logs: control
 * characters become \xHH, and the text is truncated to a limit.
 */
ngx_int_t ngx_http_inference_one_line(ngx_pool_t *pool, ngx_str_t *value);

/* Truncates UTF-8 text to at most len bytes, at the end of a character. */
void ngx_http_inference_cut(ngx_str_t *value, size_t len);


#endif /* NGX_HTTP_INFERENCE_ERROR_H */
