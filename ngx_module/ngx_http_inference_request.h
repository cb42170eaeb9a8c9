/*
 * ngx_http_inference_request.h - the life of one request in the worker.
 *
 * Owner    The context lives in r->pool; its pool cleanup gives back what
 *          the shared memory still holds for it, its request cleanup cancels
 *          what the core has not answered.
 * Thread   the worker's event loop.
 * Units    bytes, ms for timers, ns for deadlines and slices.
 * Errors   A phase that fails has called ngx_http_inference_fail*() and
 *          returns NGX_ERROR; the driver answers then.
 * Route    events (handler.c) -> driver -> endpoint -> body -> infer|control
 *          -> client -> core -> reply -> response.
 *
 * The driver calls the phases: functions of the other files that do what one
 * state asks for.  A phase returns
 *
 *     NGX_OK        done, the next state begins
 *     NGX_AGAIN     the slice is over: another turn of the event loop
 *     NGX_DONE      waits for an event
 *     NGX_DECLINED  done, the other state begins that its prototype names
 *     NGX_ERROR     the request has failed
 *
 * and calls only files that README.md names after its own: nothing calls
 * upwards.  Each header beside this one has the functions of one concept.
 */

#ifndef NGX_HTTP_INFERENCE_REQUEST_H
#define NGX_HTTP_INFERENCE_REQUEST_H

#include "ngx_module/ngx_http_inference_body.h"
#include "ngx_module/ngx_http_inference_endpoint.h"
#include "ngx_module/ngx_http_inference_error.h"
#include "ngx_module/ngx_http_inference_load_report.h"
#include "ngx_module/ngx_http_inference_reply.h"
#include "ngx_module/ngx_http_inference_submission.h"

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/proto/infer_contents.h"
#include "core/proto/infer_data.h"
#include "core/proto/infer_request.h"
#include "core/proto/infer_response.h"
#include "core/wire/client.h"


typedef enum {
    NGX_HTTP_INFERENCE_CHECKING = 0,    /* endpoint and headers              */
    NGX_HTTP_INFERENCE_CONNECTING,      /* waits for a channel               */
    NGX_HTTP_INFERENCE_OPENING,         /* nginx is about to read the body   */
    NGX_HTTP_INFERENCE_BORROWING,       /* waits for main's body             */
    NGX_HTTP_INFERENCE_RECEIVING,       /* waits for the body's bytes        */
    NGX_HTTP_INFERENCE_SWALLOWING,      /* failed; reads the body to its end */
    NGX_HTTP_INFERENCE_READING,         /* inflates, places and parses the
                                           body                              */
    NGX_HTTP_INFERENCE_DECODING,        /* converts JSON numbers to typed
                                           bytes                             */
    NGX_HTTP_INFERENCE_SUBMITTING,
    NGX_HTTP_INFERENCE_WAITING,         /* waits for the core's answer       */
    NGX_HTTP_INFERENCE_PAUSING,         /* waits before the next try while the
                                           new core loads the model          */
    NGX_HTTP_INFERENCE_RETRYING,        /* its core exited; copies the bytes
                                           for the new core                  */
    NGX_HTTP_INFERENCE_PREPARING,       /* computes classification and
                                           lengths                           */
    NGX_HTTP_INFERENCE_RESPONDING,      /* sends the head and the first
                                           bytes                             */
    NGX_HTTP_INFERENCE_SENDING,         /* sends the rest as the socket
                                           drains                            */
    NGX_HTTP_INFERENCE_REJECTING,       /* failed; sends the error           */
    NGX_HTTP_INFERENCE_DONE,            /* finalized, or about to be         */
    NGX_HTTP_INFERENCE_LEFT             /* ended by the client, unanswered   */
} ngx_http_inference_state_e;


/* the event that the driver is called for */

typedef enum {
    NGX_HTTP_INFERENCE_NO_EVENT = 0,    /* none: the state has just begun    */
    NGX_HTTP_INFERENCE_CHANNEL,         /* the channel is up, or cannot come
                                           up                                */
    NGX_HTTP_INFERENCE_BODY_BYTES,      /* in body.arrived                   */
    NGX_HTTP_INFERENCE_BODY_END,
    NGX_HTTP_INFERENCE_READ,            /* main has received body bytes, or a
                                           stream is readable                */
    NGX_HTTP_INFERENCE_TURN,
    NGX_HTTP_INFERENCE_TIMER,
    NGX_HTTP_INFERENCE_REPLY,
    NGX_HTTP_INFERENCE_WRITABLE
} ngx_http_inference_event_e;


/* handlers for the events that a phase asks nginx for */
typedef struct {
    ngx_http_client_body_handler_pt  body_ready;
    ngx_http_event_handler_pt    main_read;     /* while borrowing           */
    ngx_http_client_body_handler_pt  main_ready;
    ngx_http_event_handler_pt    writable;
    ngx_http_event_handler_pt    stream_read;
} ngx_http_inference_handlers_t;


typedef struct ngx_http_inference_retry_s  ngx_http_inference_retry_t;
typedef struct ngx_http_inference_grpc_s  ngx_http_inference_grpc_t;
typedef struct ngx_http_inference_stream_s  ngx_http_inference_stream_t;
typedef struct ngx_http_inference_message_s  ngx_http_inference_message_t;
typedef struct ngx_http_inference_watch_s  ngx_http_inference_watch_t;
typedef struct ngx_http_inference_events_s  ngx_http_inference_events_t;
typedef struct ngx_http_inference_join_s  ngx_http_inference_join_t;
typedef struct ngx_http_inference_missing_s  ngx_http_inference_missing_t;
typedef struct ngx_http_inference_packer_s  ngx_http_inference_packer_t;


struct ngx_http_inference_ctx_s {
    ngx_http_request_t          *request;
    ngx_http_inference_state_e   state;         /* only context.c sets it    */
    ngx_http_inference_event_e   event;
    const ngx_http_inference_handlers_t  *handlers;
    const ngx_http_inference_endpoint_t  *endpoint;
    ngx_http_inference_grpc_t   *grpc;          /* NULL: a request of REST   */
    ngx_http_inference_stream_t *stream;        /* a call of many messages    */
    ngx_http_inference_message_t  *message;     /* set in a message of a call;
                                                   then ...                   */
    ngx_http_inference_ctx_t    *owner;         /* ... the context of the
                                                   call                      */
    ngx_http_inference_watch_t  *watch;         /* of a call of Watch        */
    ngx_http_inference_events_t *events;        /* of generate_stream        */

    ngx_http_inference_names_t   names;
    int64_t                      version;       /* of names; -1: chosen by
                                                   policy                    */

    ngx_event_t                  timer;
    ngx_event_t                  turn;          /* posted to run it again    */
    uint64_t                     turn_ns;       /* start of the current turn */
    ngx_uint_t                   steps;         /* steps in this turn        */
    uint64_t                     received_ns;
    uint64_t                     deadline_ns;   /* 0: none                   */
    uint64_t                     client_deadline_ns;    /* 0: none           */

    ngx_http_inference_submission_t  submission;
    inf_client_t                *client;        /* valid while regions of ours
                                                   are in it                 */
    uint64_t                     epoch;

    ngx_http_inference_body_t    body;
    ngx_http_event_handler_pt    main_read_handler;     /* while borrowing   */
    ngx_http_event_handler_pt    main_write_handler;

    inf_arena_t                  arena;         /* tables and texts          */
    inf_infer_reader_t          *reader;
    inf_infer_request_t          infer;
    union {
        inf_data_decoder_t       json;
        inf_contents_decoder_t   contents;
    } decoder;                                  /* of ctx->input             */
    inf_region_t                *record;        /* record and decoded
                                                   tensors                   */
    size_t                       record_size;   /* size of the record alone  */
    uint64_t                    *offsets;       /* of each input's data in its
                                                   region; NULL: tensors have
                                                   no places yet             */
    uint64_t                    *absolute;      /* the same from the arena's
                                                   start, for the record     */
    ngx_uint_t                   input;         /* index of the input being
                                                   decoded                   */

    ngx_http_inference_retry_t  *retry;         /* NULL: no retry so far     */
    ngx_http_inference_load_t    load;
    ngx_http_inference_join_t   *join;          /* NULL: no upstream is
                                                   asked                     */
    ngx_http_inference_missing_t  *missing;     /* NULL: nor for a missing
                                                   model                     */
    ngx_http_inference_reply_t   reply;
    ngx_uint_t                   replies;
    inf_response_writer_t       *writer;
    off_t                        json_len;      /* length of the JSON; -1: not
                                                   measured                  */
    ngx_http_inference_packer_t *packer;        /* compresses it, or NULL    */
    ngx_chain_t                 *free;
    ngx_chain_t                 *busy;
    ngx_http_inference_execution_t  execution;
    ngx_uint_t                   responses;     /* responses for the client  */
    uint64_t                     first_ns;      /* arrival of the first
                                                   response                  */
    ngx_str_t                    backend;
    ngx_str_t                    instance;

    ngx_int_t                    rc;            /* to finalize with          */
    ngx_uint_t                   status;        /* HTTP status; 0: not
                                                   failed                    */
    inf_err_code_t               code;
    inf_err_cause_t              cause;         /* may be set before the
                                                   failure                   */
    ngx_http_inference_hint_e    hint;
    ngx_str_t                    error;

    uint64_t                     handed_on;     /* arena bytes that another
                                                   handler holds             */

    unsigned                     raw:1;         /* raw binary mode           */
    unsigned                     read:1;        /* the JSON was parsed       */
    unsigned                     text_done:1;   /* all JSON is written; with a
                                                   packer, everything is
                                                   compressed                */
};


/* whether the request has ended */
#define ngx_http_inference_is_over(ctx)                                       \
    ((ctx)->state >= NGX_HTTP_INFERENCE_DONE)


/* ---- driver.c ----------------------------------------------------------- */

/* Runs the phases for ctx->event.  ctx may be freed afterwards. */
void ngx_http_inference_run(ngx_http_inference_ctx_t *ctx);


/* ---- context.c ---------------------------------------------------------- */

/* Creates the context and attaches it to r; NULL: out of memory. */
ngx_http_inference_ctx_t *ngx_http_inference_create_ctx(ngx_http_request_t *r);

/* Initializes the zeroed context of a message of r, in this state. */
void ngx_http_inference_init_ctx(ngx_http_inference_ctx_t *ctx,
    ngx_http_request_t *r, ngx_http_inference_state_e state);

/* leave: cancels the answer.  free: frees what the context holds, once nothing
   uses it. */
void ngx_http_inference_leave_ctx(ngx_http_inference_ctx_t *ctx);
void ngx_http_inference_free_ctx(ngx_http_inference_ctx_t *ctx);

/* Moves to the next state by the return code of the phase: NGX_OK, NGX_DECLINED
   or NGX_ERROR. */
void ngx_http_inference_move(ngx_http_inference_ctx_t *ctx, ngx_int_t rc);

/* Called before the request is finalized, in any state; no event follows. */
void ngx_http_inference_over(ngx_http_inference_ctx_t *ctx);

/* From WAITING to RETRYING, or to PAUSING. */
void ngx_http_inference_lose_core(ngx_http_inference_ctx_t *ctx);
void ngx_http_inference_await_model(ngx_http_inference_ctx_t *ctx);

/* The request's context, also after an internal redirect, or NULL. */
ngx_http_inference_ctx_t *ngx_http_inference_ctx(ngx_http_request_t *r);

/* Whether nginx has redirected the request, so that the context is unused. */
ngx_uint_t ngx_http_inference_disowned(ngx_http_inference_ctx_t *ctx);

/* The context of the subrequest that waits for mr's body, or NULL. */
ngx_http_inference_ctx_t *ngx_http_inference_borrower(ngx_http_request_t *mr);

/* Watches for the client's disconnect while the request waits. */
void ngx_http_inference_test_reading(ngx_http_inference_ctx_t *ctx);


#endif /* NGX_HTTP_INFERENCE_REQUEST_H */
