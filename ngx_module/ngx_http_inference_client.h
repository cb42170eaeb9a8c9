/*
 * ngx_http_inference_client.h - what the files of a worker's channel share:
 *                               client (which one is there, who waits for
 *                               one), channel (one of them in the event loop)
 *                               and flight (requests on their way).
 *
 * Owner    The client owns the living channel and dead ones that are in use; a
 *          channel owns its flights.
 * Thread   The worker's event loop.
 * Units    ms.
 * Errors   As ngx_http_inference.h.
 * Route    infer|control -> [flight] -> core -> [channel's drain -> flight]
 *          -> answer
 */

#ifndef NGX_HTTP_INFERENCE_CLIENT_H
#define NGX_HTTP_INFERENCE_CLIENT_H

#include "ngx_module/ngx_http_inference.h"


typedef enum {
    ngx_http_inference_channel_greeting = 0,    /* the hello is to be sent   */
    ngx_http_inference_channel_waiting,         /* for the welcome           */
    ngx_http_inference_channel_up,
    ngx_http_inference_channel_broken,          /* to be ended by its drain  */
    ngx_http_inference_channel_dead             /* in use by somebody still  */
} ngx_http_inference_channel_state_e;


typedef struct ngx_http_inference_channel_s  ngx_http_inference_channel_t;


/* The client's own note about a slot in use. */

typedef struct {
    ngx_http_inference_channel_t        *channel;
    ngx_http_inference_ticket_t         *ticket;    /* NULL: abandoned       */
    inf_ticket_t                         name;
    inf_region_t                        *regions[NGX_HTTP_INFERENCE_REGIONS];
    ngx_uint_t                           nregions;  /* of an abandoned one   */
    unsigned                             taken:1;
    unsigned                             begun:1;   /* an execution          */
    unsigned                             final:1;
    unsigned                             released:1;
} ngx_http_inference_flight_t;


struct ngx_http_inference_channel_s {
    ngx_queue_t                          queue;     /* of dead ones          */
    ngx_http_inference_channel_state_e   state;
    uint64_t                             epoch;
    ngx_log_t                           *log;
    inf_client_t                        *client;
    ngx_socket_t                         socket;    /* to an external core   */

    ngx_connection_t                    *control;
    ngx_connection_t                    *bell;
    ngx_connection_t                    *core;
    ngx_event_t                          drain;

    ngx_http_inference_flight_t         *flights;   /* by slot               */
    ngx_uint_t                           held;      /* responses at the
                                                       request side          */
    unsigned                             answered:1;
};


/* ---- client.c ------------------------------------------------------------ */

/* The channel that is up; NULL: none is. */
ngx_http_inference_channel_t *ngx_http_inference_client_channel(void);

/* The living channel or a dead one; NULL: not known, or the worker leaves. */
ngx_http_inference_channel_t *ngx_http_inference_client_find(uint64_t epoch);

/* An event of no connection that does not keep a leaving worker. */
void ngx_http_inference_client_event(ngx_event_t *ev,
    ngx_event_handler_pt handler);

/* Of many tries in a row only the first one's failure is an error. */
ngx_uint_t ngx_http_inference_client_level(void);

/* The channel of this try, if any, is of no use; what (may be NULL) is
   logged.  It is freed. */
void ngx_http_inference_client_later(const char *what);

/* The registration socket is full: hello is called again soon. */
void ngx_http_inference_client_again(void);

/* The channel of this try is up. */
void ngx_http_inference_client_up(void);

/* It was up, and its core is gone: what was with it is answered. */
void ngx_http_inference_client_death(ngx_http_inference_channel_t *ch,
    const char *why);


/* ---- channel.c ----------------------------------------------------------- */

/* NULL: it was logged, or memory is out. */
ngx_http_inference_channel_t *ngx_http_inference_channel_new(
    ngx_http_inference_main_conf_t *imcf, uint64_t epoch, ngx_log_t *log);
void ngx_http_inference_channel_free(ngx_http_inference_channel_t *ch);

/* Registers it; what follows comes by events. */
void ngx_http_inference_channel_hello(ngx_http_inference_channel_t *ch);

/* Found broken in the middle of something: ended at the end of the turn. */
void ngx_http_inference_channel_break(ngx_http_inference_channel_t *ch);

/* Out of the event loop. */
void ngx_http_inference_channel_unlink(ngx_http_inference_channel_t *ch);

/* Nobody uses anything of it. */
ngx_uint_t ngx_http_inference_channel_idle(ngx_http_inference_channel_t *ch);


/* ---- flight.c ------------------------------------------------------------ */

/* userp: the flight. */
void ngx_http_inference_flight_completion(const inf_completion_t *c,
    void *userp);

/* The core is dead, nobody reads the requests' bytes any more.  Moves tickets
   without an answer to lost and returns how many they are. */
ngx_uint_t ngx_http_inference_flights_detach(ngx_http_inference_channel_t *ch,
    ngx_queue_t *lost);


#endif /* NGX_HTTP_INFERENCE_CLIENT_H */
