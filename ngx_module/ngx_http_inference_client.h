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

#include "ngx_module/ngx_http_inference_submission.h"


typedef enum {
    ngx_http_inference_channel_greeting = 0,    /* the hello is to be sent   */
    ngx_http_inference_channel_waiting,         /* for the core's welcome    */
    ngx_http_inference_channel_up,
    ngx_http_inference_channel_broken,          /* its drain event will end
                                                   it                        */
    ngx_http_inference_channel_dead             /* memory still in use       */
} ngx_http_inference_channel_state_e;


typedef struct ngx_http_inference_channel_s  ngx_http_inference_channel_t;


/* callbacks of a channel, set by its client */

typedef struct {
    void                (*up)(ngx_http_inference_channel_t *ch);

    /* the registration socket is full: hello() is to be called again soon */
    void                (*again)(ngx_http_inference_channel_t *ch);

    /* the core rejects the worker or cannot be reached; why: the reason */
    void                (*rejected)(const char *why);

    /* the channel cannot come up and may be freed; what is the text to log, or
       NULL */
    void                (*useless)(ngx_http_inference_channel_t *ch,
                                   const char *what);

    /* the core of a channel that was up has exited */
    void                (*dead)(ngx_http_inference_channel_t *ch,
                                const char *why);

    /* log level of an error: only the first of successive failures is logged as
       an error */
    ngx_uint_t          (*level)(void);

    inf_client_handler_fn  completion;
} ngx_http_inference_channel_handlers_t;


/* the client's record of a slot in use */

typedef struct {
    ngx_http_inference_channel_t          *channel;
    ngx_http_inference_submission_t       *submission; /* NULL: abandoned    */
    inf_slot_id_t                          name;
    inf_region_t                          *regions[NGX_HTTP_INFERENCE_REGIONS];
    ngx_uint_t                             nregions; /* of an abandoned
                                                        request              */
    ngx_http_inference_submission_state_e  state;   /* never QUEUED          */
    unsigned                               begun:1; /* an execution          */
    unsigned                               cancelled:1;
} ngx_http_inference_in_flight_t;


struct ngx_http_inference_channel_s {
    ngx_queue_t                          queue;     /* of dead channels      */
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
    ngx_uint_t                           held;      /* responses not
                                                       released              */
    unsigned                             answered:1;
};


/* ---- channel.c ----------------------------------------------------------- */

/* Creates a channel.  NULL: failed, logged unless out of memory. */
ngx_http_inference_channel_t *ngx_http_inference_channel_new(
    ngx_http_inference_main_conf_t *imcf, uint64_t epoch,
    const ngx_http_inference_channel_handlers_t *handlers, ngx_log_t *log);
void ngx_http_inference_channel_free(ngx_http_inference_channel_t *ch);

/* Registers the channel with the core; the rest follows by events. */
void ngx_http_inference_channel_hello(ngx_http_inference_channel_t *ch);

/* Marks a channel broken; its drain event ends it. */
void ngx_http_inference_channel_break(ngx_http_inference_channel_t *ch);

/* Takes the remaining completions after the core's exit. */
void ngx_http_inference_channel_drain_last(ngx_http_inference_channel_t *ch);

/* Removes the channel from the event loop. */
void ngx_http_inference_channel_unlink(ngx_http_inference_channel_t *ch);

/* Whether no memory of the channel is in use. */
ngx_uint_t ngx_http_inference_channel_idle(ngx_http_inference_channel_t *ch);


/* ---- in_flight.c --------------------------------------------------------- */

/* As ngx_http_inference_submit() (the channel is up) and
   ngx_http_inference_abandon() (of the channel submitted to). */
ngx_int_t ngx_http_inference_in_flight_submit(ngx_http_inference_channel_t *ch,
    ngx_http_inference_submission_t *submission, inf_submission_t *s,
    inf_region_t *const *regions, ngx_uint_t count);
void ngx_http_inference_in_flight_abandon(ngx_http_inference_channel_t *ch,
    ngx_http_inference_submission_t *submission);

/* As ngx_http_inference_cancel(), of the channel submitted to. */
void ngx_http_inference_in_flight_cancel(ngx_http_inference_channel_t *ch,
    ngx_http_inference_submission_t *submission);

/* As ngx_http_inference_forget(), of the channel submitted to. */
void ngx_http_inference_in_flight_forget(ngx_http_inference_channel_t *ch,
    ngx_http_inference_submission_t *submission);

/* Handles a completion; userp is its in-flight request. */
void ngx_http_inference_in_flight_completion(const inf_completion_t *c,
    void *userp);

/* Frees the requests' regions after the core's exit.  Moves submissions without
   an answer to lost, and returns their number. */
ngx_uint_t ngx_http_inference_in_flight_detach(ngx_http_inference_channel_t *ch,
    ngx_queue_t *lost);


#endif /* NGX_HTTP_INFERENCE_CLIENT_H */
