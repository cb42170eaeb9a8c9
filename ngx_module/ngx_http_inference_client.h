/*
 * ngx_http_inference_client.h - what the files of a worker's channel share:
 *                               client.c (which channel is there, which
 *                               requests wait for one), in_flight.c (requests
 *                               on their way) and channel.c (one channel in
 *                               the event loop).
 *
 * Owner    The client owns the living channel and dead ones that are in use; a
 *          channel owns its in-flight requests.
 * Thread   The worker's event loop.
 * Units    ms.
 * Errors   As ngx_http_inference.h.
 * Route    infer|control -> [client -> in-flight request]
 *          -> core -> [channel's drain -> in-flight request] -> answer
 */

#ifndef NGX_HTTP_INFERENCE_CLIENT_H
#define NGX_HTTP_INFERENCE_CLIENT_H

#include "ngx_module/ngx_http_inference.h"


typedef enum {
    ngx_http_inference_channel_greeting = 0,    /* the hello is to be sent   */
    ngx_http_inference_channel_waiting,         /* for the welcome           */
    ngx_http_inference_channel_up,
    ngx_http_inference_channel_broken,          /* to be ended by its drain  */
    ngx_http_inference_channel_dead             /* something of it is in use */
} ngx_http_inference_channel_state_e;


typedef struct ngx_http_inference_channel_s  ngx_http_inference_channel_t;


/* what a channel calls its client for */

typedef struct {
    void                (*up)(ngx_http_inference_channel_t *ch);

    /* the registration socket is full: hello is to be called again soon */
    void                (*again)(ngx_http_inference_channel_t *ch);

    /* why the core does not welcome the worker, or cannot be reached */
    void                (*rejected)(const char *why);

    /* it can't come up; what (may be NULL) is to be logged, and it is freed */
    void                (*useless)(ngx_http_inference_channel_t *ch,
                                   const char *what);

    /* it was up, and its core is gone: what was with it is answered */
    void                (*dead)(ngx_http_inference_channel_t *ch,
                                const char *why);

    /* of an error: of many tries in a row only the first one's is one */
    ngx_uint_t          (*level)(void);

    inf_client_handler_fn  completion;
} ngx_http_inference_channel_handlers_t;


/* The client's own note about a slot in use. */

typedef struct {
    ngx_http_inference_channel_t          *channel;
    ngx_http_inference_submission_t       *submission; /* NULL: abandoned    */
    inf_slot_id_t                          name;
    inf_region_t                          *regions[NGX_HTTP_INFERENCE_REGIONS];
    ngx_uint_t                             nregions; /* of an abandoned one  */
    ngx_http_inference_submission_state_e  state;   /* never QUEUED          */
    unsigned                               begun:1; /* an execution          */
    unsigned                               cancelled:1;
} ngx_http_inference_in_flight_t;


struct ngx_http_inference_channel_s {
    ngx_queue_t                          queue;     /* of dead ones          */
    ngx_http_inference_channel_state_e   state;
    uint64_t                             epoch;
    const ngx_http_inference_channel_handlers_t  *handlers;
    ngx_log_t                           *log;
    inf_client_t                        *client;
    ngx_socket_t                         socket;    /* to an external core   */

    ngx_connection_t                    *control;
    ngx_connection_t                    *eventfd;
    ngx_connection_t                    *core;
    ngx_event_t                          drain;

    ngx_http_inference_in_flight_t      *in_flight; /* by slot               */
    ngx_uint_t                           held;      /* responses at the
                                                       request side          */
    unsigned                             answered:1;
};


/* ---- channel.c ----------------------------------------------------------- */

/* NULL: it was logged, or memory is out. */
ngx_http_inference_channel_t *ngx_http_inference_channel_new(
    ngx_http_inference_main_conf_t *imcf, uint64_t epoch,
    const ngx_http_inference_channel_handlers_t *handlers, ngx_log_t *log);
void ngx_http_inference_channel_free(ngx_http_inference_channel_t *ch);

/* Registers it; what follows comes by events. */
void ngx_http_inference_channel_hello(ngx_http_inference_channel_t *ch);

/* Found broken in the middle of something: ended at the end of the turn. */
void ngx_http_inference_channel_break(ngx_http_inference_channel_t *ch);

/* The core of ch is gone: takes the completions that are left. */
void ngx_http_inference_channel_drain_last(ngx_http_inference_channel_t *ch);

/* Out of the event loop. */
void ngx_http_inference_channel_unlink(ngx_http_inference_channel_t *ch);

/* Nobody uses anything of it. */
ngx_uint_t ngx_http_inference_channel_idle(ngx_http_inference_channel_t *ch);


/* ---- in_flight.c --------------------------------------------------------- */

/* As ngx_http_inference_submit() and ngx_http_inference_abandon(), of a channel
   that is up, or of one that the submission was submitted to. */
ngx_int_t ngx_http_inference_in_flight_submit(ngx_http_inference_channel_t *ch,
    ngx_http_inference_submission_t *submission, inf_submission_t *s,
    inf_region_t *const *regions, ngx_uint_t count);
void ngx_http_inference_in_flight_abandon(ngx_http_inference_channel_t *ch,
    ngx_http_inference_submission_t *submission);

/* As ngx_http_inference_cancel(), of one that was submitted to it, and ... */
void ngx_http_inference_in_flight_cancel(ngx_http_inference_channel_t *ch,
    ngx_http_inference_submission_t *submission);

/* ... as ngx_http_inference_forget(). */
void ngx_http_inference_in_flight_forget(ngx_http_inference_channel_t *ch,
    ngx_http_inference_submission_t *submission);

/* userp: the in-flight request. */
void ngx_http_inference_in_flight_completion(const inf_completion_t *c,
    void *userp);

/* The core is dead and reads the requests' bytes no more.  Moves submissions
   without an answer to lost and returns how many they are. */
ngx_uint_t ngx_http_inference_in_flight_detach(ngx_http_inference_channel_t *ch,
    ngx_queue_t *lost);


#endif /* NGX_HTTP_INFERENCE_CLIENT_H */
