/*
 * ngx_http_inference_leaving.h - calls without a time limit in a worker that
 *                                begins to exit (leaving.c).
 *
 * Owner    An entry and its event belong to the request, which removes the
 *          entry.
 * Thread   The worker's event loop.
 * Units    None.
 * Errors   None.
 */

#ifndef NGX_HTTP_INFERENCE_LEAVING_H
#define NGX_HTTP_INFERENCE_LEAVING_H

#include "ngx_module/ngx_http_inference.h"


/* An entry for a call without a time limit; the memory is zeroed first. */
typedef struct {
    ngx_queue_t                 queue;
    ngx_event_t                *turn;           /* NULL: not listed          */
} ngx_http_inference_leaver_t;

/* Posts turn when the worker begins to exit, or at once if it is exiting. */
void ngx_http_inference_leaver_add(ngx_http_inference_leaver_t *leaver,
    ngx_event_t *turn);

/* Removes an entry; does nothing if it is not listed. */
void ngx_http_inference_leaver_remove(ngx_http_inference_leaver_t *leaver);

/* Called in the master when a configuration with inferences takes effect. */
void ngx_http_inference_leaving_number(void);

/* Whether the worker exits and no other worker replaces it (nginx stops). */
ngx_uint_t ngx_http_inference_stopping(void);

/* Initializes this file's state in a new worker. */
void ngx_http_inference_leaving_init(void);

/* Called when the worker begins to exit: posts all listed turns. */
void ngx_http_inference_leaving(void);

/* Posts turn for the next turn of the event loop.  An exiting worker stays
   until then. */
void ngx_http_inference_next_turn(ngx_event_t *turn);

/* Called for each new request.  In an exiting worker, closes a connection of
   HTTP/2 that has had no GOAWAY yet; its streams end as usual. */
void ngx_http_inference_leaving_request(ngx_http_request_t *r);

#endif /* NGX_HTTP_INFERENCE_LEAVING_H */
