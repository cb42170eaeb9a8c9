/*
 * ngx_http_inference_limits.h - bounds of a request: size, memory, shared
 *                               memory and time.
 *
 * Owner    The timer and the deadlines are the context's.
 * Thread   the worker's event loop.
 * Units    bytes; ms for timers; ns for deadlines and slices.
 * Errors   NGX_ERROR: a limit is exceeded, and the request has failed.
 * Route    driver, body, store, infer, control -> [limits] -> error.
 */

#ifndef NGX_HTTP_INFERENCE_LIMITS_H
#define NGX_HTTP_INFERENCE_LIMITS_H

#include "ngx_module/ngx_http_inference.h"


/* Limits of work on one request in one turn of the event loop: time, and steps
   of INF_CODEC_BUDGET bytes. */
#define NGX_HTTP_INFERENCE_SLICE_NS     1000000
#define NGX_HTTP_INFERENCE_SLICE_STEPS  16


/* A request in flight always has a timer: without one, an exiting worker would
   end before the answer. */
#define NGX_HTTP_INFERENCE_NO_TIMEOUT   ((ngx_msec_t) 24 * 3600 * 1000)


/* The limit of a body as received, and the error of one that exceeds it. */
off_t ngx_http_inference_max_body(ngx_http_inference_ctx_t *ctx);
off_t ngx_http_inference_location_max_body(ngx_http_request_t *r);
ngx_int_t ngx_http_inference_body_long(ngx_http_inference_ctx_t *ctx,
    const char *what);

/* The limit of an inflated body, and the error of one that exceeds it. */
off_t ngx_http_inference_max_inflated(ngx_http_inference_ctx_t *ctx);
ngx_int_t ngx_http_inference_inflated_long(ngx_http_inference_ctx_t *ctx);

/* The limit of the body's JSON, or of a gRPC message; the error of JSON that
   exceeds it. */
uint64_t ngx_http_inference_max_text(ngx_http_inference_ctx_t *ctx);
ngx_int_t ngx_http_inference_text_long(ngx_http_inference_ctx_t *ctx);

/* Checks that the request may hold `decoded` more bytes of decoded tensors. */
ngx_int_t ngx_http_inference_check_share(ngx_http_inference_ctx_t *ctx,
    uint64_t decoded);

/* regions_allowed fails if the location does not list "shared_memory";
   check_regions, if the inference names such a region all the same. */
ngx_int_t ngx_http_inference_regions_allowed(ngx_http_inference_ctx_t *ctx);
ngx_int_t ngx_http_inference_check_regions(ngx_http_inference_ctx_t *ctx);

/* start_rate starts the timer of inference_min_body_rate, or of the client's
   deadline, for the time of the body.  check_rate handles that timer; NGX_OK:
   the body goes on; NGX_ERROR: it is too slow. */
void ngx_http_inference_start_rate(ngx_http_inference_ctx_t *ctx);
ngx_int_t ngx_http_inference_check_rate(ngx_http_inference_ctx_t *ctx);

/* Starts the timer of ctx->deadline_ns, or of NO_TIMEOUT without a deadline. */
void ngx_http_inference_arm_timer(ngx_http_inference_ctx_t *ctx);

/* The same, but after `within` ms at the latest. */
void ngx_http_inference_arm_timer_within(ngx_http_inference_ctx_t *ctx,
    ngx_msec_t within);

/* Starts inference_timeout with this turn: as the core's deadline, and as the
   timer. */
void ngx_http_inference_set_deadline(ngx_http_inference_ctx_t *ctx);
void ngx_http_inference_start_timer(ngx_http_inference_ctx_t *ctx);

/* Time from this turn to the deadline, in ms; rounded up. */
ngx_msec_t ngx_http_inference_time_left(ngx_http_inference_ctx_t *ctx);

/* Handles that timer.  NGX_OK: there is no limit, the timer was started
   again. */
ngx_int_t ngx_http_inference_check_timer(ngx_http_inference_ctx_t *ctx);

/* Whether the slice is over; called after each step of at most INF_CODEC_BUDGET
   bytes. */
ngx_uint_t ngx_http_inference_slice_over(ngx_http_inference_ctx_t *ctx);


#endif /* NGX_HTTP_INFERENCE_LIMITS_H */
