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
 * and calls only files that stand below its own here: nothing calls upwards.
 */

#ifndef NGX_HTTP_INFERENCE_REQUEST_H
#define NGX_HTTP_INFERENCE_REQUEST_H

#include "ngx_module/ngx_http_inference.h"

#include "core/base/arena.h"
#include "core/base/buf.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/slice.h"
#include "core/proto/infer_contents.h"
#include "core/proto/infer_data.h"
#include "core/proto/infer_request.h"
#include "core/proto/infer_response.h"
#include "core/wire/request_record.h"
#include "core/wire/response_record.h"


/* Limits of work on one request in one turn of the event loop: time, and steps
   of INF_CODEC_BUDGET bytes. */
#define NGX_HTTP_INFERENCE_SLICE_NS     1000000
#define NGX_HTTP_INFERENCE_SLICE_STEPS  16

/* JSON up to this size is parsed while it arrives, larger JSON in slices */
#define NGX_HTTP_INFERENCE_INLINE_TEXT  (256 * 1024)

/* bytes of a rejected body that are read to keep the connection */
#define NGX_HTTP_INFERENCE_SWALLOW      (1024 * 1024)

/* limit of an inflated body where inference_max_body is not set */
#define NGX_HTTP_INFERENCE_INFLATE_MAX  ((off_t) 64 * 1024 * 1024)

/* initial size of a store whose length is not known */
#define NGX_HTTP_INFERENCE_STORE_SIZE   ((uint64_t) 64 * 1024)

/* bytes compressed in one step */
#define NGX_HTTP_INFERENCE_DEFLATE_STEP ((size_t) 16 * 1024)

/* granularity of memory charged to a store */
#define NGX_HTTP_INFERENCE_STORE_STEP   ((uint64_t) 4096)

/* a call's body up to this size is accepted when the arena is full */
#define NGX_HTTP_INFERENCE_CALL_SIZE    ((uint64_t) 16 * 1024)

/* limit of a call's inflated body, except that of a load */
#define NGX_HTTP_INFERENCE_CALL_MAX     ((uint64_t) 64 * 1024)

/* A request in flight always has a timer: without one, an exiting worker would
   end before the answer. */
#define NGX_HTTP_INFERENCE_NO_TIMEOUT   ((ngx_msec_t) 24 * 3600 * 1000)


/* the kind of work that an endpoint asks for */

typedef enum {
    NGX_HTTP_INFERENCE_LIVE = 1,        /* by the worker                     */
    NGX_HTTP_INFERENCE_MODEL_INFER,
    NGX_HTTP_INFERENCE_GENERATE_ONE,    /* generate                          */
    NGX_HTTP_INFERENCE_GENERATE_ALL,    /* generate_stream                   */
    NGX_HTTP_INFERENCE_STREAM_INFER,    /* ModelStreamInfer of gRPC          */
    NGX_HTTP_INFERENCE_CALL,            /* of the core, without a body       */
    NGX_HTTP_INFERENCE_CALL_BODY,       /* of the core, which reads the body */
    NGX_HTTP_INFERENCE_HEALTH_CHECK,    /* CALL_BODY with the messages of
                                           grpc.health.v1                    */
    NGX_HTTP_INFERENCE_HEALTH_WATCH,    /* the same, answered at each change */
    NGX_HTTP_INFERENCE_NAMED            /* never supported                   */
} ngx_http_inference_verb_e;


/* fields of a gRPC message that hold model and version */

typedef enum {
    NGX_HTTP_INFERENCE_NAMES_NONE = 0,
    NGX_HTTP_INFERENCE_NAMES_BOTH,      /* fields 1 and 2                    */
    NGX_HTTP_INFERENCE_NAMES_SECOND     /* the model in field 2              */
} ngx_http_inference_names_e;


/* a row of the endpoint table */
struct ngx_http_inference_endpoint_s {
    ngx_str_t                    pattern;
    ngx_uint_t                   methods;       /* NGX_HTTP_GET|...          */
    ngx_uint_t                   part;
    ngx_http_inference_verb_e    verb;
    uint16_t                     call;          /* INF_METHOD_*              */
    ngx_str_t                    name;          /* $inference_verb           */
    ngx_http_inference_names_e   names;
};


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


/* the reader of the body from the connection */

typedef enum {
    NGX_HTTP_INFERENCE_BODY_OWN = 0,    /* the request itself, by a filter   */
    NGX_HTTP_INFERENCE_BODY_FOREIGN,    /* another handler has read it       */
    NGX_HTTP_INFERENCE_BODY_MAIN        /* main reads it for a subrequest    */
} ngx_http_inference_origin_e;


/* progress of the body, in this order */

typedef enum {
    NGX_HTTP_INFERENCE_BODY_UNREAD = 0,
    NGX_HTTP_INFERENCE_BODY_ARRIVING,
    NGX_HTTP_INFERENCE_BODY_DROPPED,    /* the end was received, bytes
                                           discarded                         */
    NGX_HTTP_INFERENCE_BODY_COMPLETE,   /* the last byte was received        */
    NGX_HTTP_INFERENCE_BODY_PLAIN,      /* and all plain bytes are placed    */
    NGX_HTTP_INFERENCE_BODY_CHECKED     /* and the length of the tail is
                                           right                             */
} ngx_http_inference_body_e;


/* destination of the next plain bytes */

typedef enum {
    NGX_HTTP_INFERENCE_TEXT = 0,        /* the JSON header                   */
    NGX_HTTP_INFERENCE_TENSOR,          /* each tensor, at its aligned place */
    NGX_HTTP_INFERENCE_TENSOR_END,      /* no more bytes allowed             */
    NGX_HTTP_INFERENCE_FLAT,            /* tensors in one piece              */
    NGX_HTTP_INFERENCE_FLAT_END         /* no more bytes allowed             */
} ngx_http_inference_place_e;


/* a header that goes with an error */

typedef enum {
    NGX_HTTP_INFERENCE_NO_HINT = 0,
    NGX_HTTP_INFERENCE_RETRY_AFTER,
    NGX_HTTP_INFERENCE_ACCEPT_ENCODING,
    NGX_HTTP_INFERENCE_GRPC_ENCODINGS
} ngx_http_inference_hint_e;


/* growing bytes in the request arena; they may move as they grow */
typedef struct {
    inf_region_t                *region;
    u_char                      *data;
    uint64_t                     len;
    inf_region_t                *old;           /* region of the first bytes,
                                                   which are not yet moved;
                                                   NULL: none                */
    uint64_t                     old_len;
    uint64_t                     moved;         /* bytes of old_len moved    */
} ngx_http_inference_store_t;


typedef struct ngx_http_inference_inflate_s  ngx_http_inference_inflate_t;
typedef struct ngx_http_inference_deflater_s  ngx_http_inference_deflater_t;
typedef struct ngx_http_inference_packer_s  ngx_http_inference_packer_t;

typedef struct {
    ngx_http_inference_origin_e  origin;
    ngx_http_inference_body_e    stage;
    ngx_http_inference_place_e   place;
    ngx_chain_t                 *arrived;       /* in the filter             */
    ngx_chain_t                 *in;            /* read by another handler   */
    off_t                        in_pos;        /* position in the link's
                                                   buffer, or in packed      */
    ngx_buf_t                   *piece;         /* part of a file, to
                                                   inflate                   */
    off_t                        declared;      /* Content-Length, or -1     */
    off_t                        received;      /* bytes received            */
    off_t                        plain;         /* bytes after inflating     */
    off_t                        header_len;    /* length of the JSON, -1: the
                                                   whole body                */
    off_t                        swallowed;
    off_t                        rated;         /* request_length at the start
                                                   of the rated period       */
    ngx_msec_t                   rated_since;   /* start of the rated period */
    ngx_str_t                    encoding;
    ngx_http_inference_inflate_t  *inflate;     /* NULL: not compressed      */
    ngx_http_inference_store_t   packed;        /* compressed, as received   */
    ngx_http_inference_store_t   text;
    ngx_http_inference_store_t   data;          /* binary tensors, raw body  */
    ngx_uint_t                   tensor;        /* index of the input received
                                                   now                       */
    uint64_t                     filled;        /* bytes of that input       */
    unsigned                     lagging:1;     /* text is parsed in slices  */
} ngx_http_inference_body_t;


typedef struct {
    uint64_t                     epoch;
    uint64_t                     offset;        /* of the response region    */
    uint64_t                     len;
    uint32_t                     status;
    unsigned                     held:1;        /* to be released            */
} ngx_http_inference_reply_t;


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


/* a reply that waits until earlier ones are sent */
typedef struct {
    ngx_queue_t                  queue;
    ngx_http_inference_reply_t   reply;
    inf_err_cause_t              cause;
    unsigned                     response:1;    /* a response, not flags
                                                   alone                     */
    unsigned                     queued:1;      /* set if the reply was
                                                   queued                    */
    unsigned                     final:1;
} ngx_http_inference_queued_reply_t;


/* the queued replies of one request or one call, in any number of queues */
typedef struct {
    ngx_pool_t                  *pool;
    ngx_queue_t                  spare;
    ngx_uint_t                   count;         /* in the queues             */
} ngx_http_inference_replies_t;


/* handlers for the events that a phase asks nginx for */
typedef struct {
    ngx_http_client_body_handler_pt  body_ready;
    ngx_http_event_handler_pt    main_read;     /* while borrowing           */
    ngx_http_client_body_handler_pt  main_ready;
    ngx_http_event_handler_pt    writable;
    ngx_http_event_handler_pt    stream_read;
} ngx_http_inference_handlers_t;


/* the execution that answered, for logs; values as in inf_completion_t */

typedef struct {
    uint64_t                     queue_ns;
    uint64_t                     compute_ns;
    uint32_t                     batch_size;    /* 0: not executed           */
    uint32_t                     device;
    uint32_t                     input_us;
    uint32_t                     output_us;
    ngx_uint_t                   lookup;        /* inf_lookup_t              */
} ngx_http_inference_execution_t;


typedef struct ngx_http_inference_retry_s  ngx_http_inference_retry_t;
typedef struct ngx_http_inference_grpc_s  ngx_http_inference_grpc_t;
typedef struct ngx_http_inference_stream_s  ngx_http_inference_stream_t;
typedef struct ngx_http_inference_message_s  ngx_http_inference_message_t;
typedef struct ngx_http_inference_watch_s  ngx_http_inference_watch_t;
typedef struct ngx_http_inference_events_s  ngx_http_inference_events_t;
typedef struct ngx_http_inference_join_s  ngx_http_inference_join_t;
typedef struct ngx_http_inference_missing_s  ngx_http_inference_missing_t;
typedef struct ngx_http_inference_ctx_s  ngx_http_inference_ctx_t;

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

    ngx_str_t                    model;
    ngx_str_t                    version_text;
    int64_t                      version;       /* -1: chosen by policy      */

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


#define ngx_http_inference_is_generate(ctx)                                   \
    ((ctx)->endpoint->verb == NGX_HTTP_INFERENCE_GENERATE_ONE                 \
     || (ctx)->endpoint->verb == NGX_HTTP_INFERENCE_GENERATE_ALL)

/* whether it is an inference in any form */
#define ngx_http_inference_is_infer(ctx)                                      \
    ((ctx)->endpoint->verb == NGX_HTTP_INFERENCE_MODEL_INFER                  \
     || ngx_http_inference_is_generate(ctx))

/* whether it is a call with a body (of the core, or LIVE over gRPC) */
#define ngx_http_inference_call_has_body(ctx)                                 \
    ((ctx)->endpoint->verb == NGX_HTTP_INFERENCE_CALL_BODY                    \
     || (ctx)->endpoint->verb == NGX_HTTP_INFERENCE_LIVE                      \
     || (ctx)->endpoint->verb == NGX_HTTP_INFERENCE_HEALTH_CHECK              \
     || (ctx)->endpoint->verb == NGX_HTTP_INFERENCE_HEALTH_WATCH)

/* whether it is a call that may carry files of a model */
#define ngx_http_inference_is_load(ctx)                                       \
    (ngx_http_inference_call_has_body(ctx)                                    \
     && (ctx)->endpoint->call == INF_METHOD_REPOSITORY_MODEL_LOAD)

/* whether the tensors behind the JSON are kept in one piece */
#define ngx_http_inference_is_flat(body)                                      \
    ((body)->place >= NGX_HTTP_INFERENCE_FLAT)

/* whether the request has ended */
#define ngx_http_inference_is_over(ctx)                                       \
    ((ctx)->state >= NGX_HTTP_INFERENCE_DONE)


/* ---- driver.c ----------------------------------------------------------- */

/* Runs the phases for ctx->event.  ctx may be freed afterwards. */
void ngx_http_inference_run(ngx_http_inference_ctx_t *ctx);


/* ---- reject.c ----------------------------------------------------------- */

/* The phase of a failed request.  NGX_OK: ctx->rc is set. */
ngx_int_t ngx_http_inference_reject(ngx_http_inference_ctx_t *ctx);


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


/* ---- endpoint.c --------------------------------------------------------- */

/* Sets endpoint, model and version.  NGX_ERROR: the request has failed. */
ngx_int_t ngx_http_inference_find_endpoint(ngx_http_inference_ctx_t *ctx);

/* Sets model and version in a location of one model. */
ngx_int_t ngx_http_inference_model_of_location(ngx_http_inference_ctx_t *ctx);

/* Parses version_text into version. */
ngx_int_t ngx_http_inference_parse_version(ngx_http_inference_ctx_t *ctx);


/* ---- endpoints.c -------------------------------------------------------- */

/* Finds the row for a path among parts, and sets model and version as texts.
   NULL: none. */
const ngx_http_inference_endpoint_t *ngx_http_inference_match_endpoint(
    ngx_http_inference_ctx_t *ctx, ngx_str_t *path, ngx_uint_t parts);


/* ---- borrow.c ----------------------------------------------------------- */

/* Saves main's handlers before its body is read. */
void ngx_http_inference_borrow_begin(ngx_http_inference_ctx_t *ctx);

/* Called when nginx has begun to read main's body. */
void ngx_http_inference_borrow_begun(ngx_http_inference_ctx_t *ctx);

/* The phase BORROWING.  NGX_OK: main has its body.  NGX_DECLINED: main was
   answered. */
ngx_int_t ngx_http_inference_borrow(ngx_http_inference_ctx_t *ctx);


/* ---- headers.c ---------------------------------------------------------- */

/* Sets the body's origin, length and encoding from the headers. */
ngx_int_t ngx_http_inference_headers_check(ngx_http_inference_ctx_t *ctx);


/* ---- body.c ------------------------------------------------------------- */

/* Prepares to receive the body.  NGX_DECLINED: main has to read it first. */
ngx_int_t ngx_http_inference_body_open(ngx_http_inference_ctx_t *ctx);

/* Receives the body.  NGX_OK: the end was received.  NGX_DECLINED: the request
   has failed, and the rest of the body is to be swallowed. */
ngx_int_t ngx_http_inference_body_receive(ngx_http_inference_ctx_t *ctx);

/* Reads the rest of a failed request's body.  NGX_ERROR: the limit is
   reached. */
ngx_int_t ngx_http_inference_body_swallow(ngx_http_inference_ctx_t *ctx);

/* Inflates and places the body, parses its JSON.  NGX_DECLINED: it is a call's
   body. */
ngx_int_t ngx_http_inference_body_read(ngx_http_inference_ctx_t *ctx);

/* Stops or discards the body before the answer, at any stage. */
void ngx_http_inference_body_stop(ngx_http_inference_ctx_t *ctx);


/* ---- source.c ----------------------------------------------------------- */

/* Inflates and places bytes that were received before. */
ngx_int_t ngx_http_inference_source(ngx_http_inference_ctx_t *ctx);


/* ---- place.c ------------------------------------------------------------ */

/* Copies n plain bytes to their places. */
ngx_int_t ngx_http_inference_place(ngx_http_inference_ctx_t *ctx,
    const u_char *p, size_t n);

/* The place of the next bytes, and its size of at most want (not 0) bytes. */
ngx_int_t ngx_http_inference_place_window(ngx_http_inference_ctx_t *ctx,
    size_t want, u_char **p, size_t *n);

/* Counts n bytes written to that window. */
ngx_int_t ngx_http_inference_place_commit(ngx_http_inference_ctx_t *ctx,
    size_t n);

/* Whether no more bytes are allowed. */
ngx_uint_t ngx_http_inference_place_is_full(ngx_http_inference_ctx_t *ctx);

/* Keeps all further bytes in one piece. */
ngx_int_t ngx_http_inference_place_flat(ngx_http_inference_ctx_t *ctx);

/* Called at the end of the plain bytes. */
ngx_int_t ngx_http_inference_place_end(ngx_http_inference_ctx_t *ctx);

/* Allocates the places of the binary tensors of ctx->infer. */
ngx_int_t ngx_http_inference_place_plan(ngx_http_inference_ctx_t *ctx);

/* Checks, after the end, that the binary tensors fill the tail. */
ngx_int_t ngx_http_inference_place_check(ngx_http_inference_ctx_t *ctx);


/* ---- inflate.c ---------------------------------------------------------- */

/* A decoder in memory of the pool; NULL: out of memory. */
ngx_http_inference_inflate_t *ngx_http_inference_inflate_new(ngx_pool_t *pool);

/*
 * Inflates from *in (in_len bytes) to out, and decreases both counts by the
 * bytes used.  NGX_OK: call again; NGX_DONE: the stream has ended; NGX_ERROR:
 * the stream is corrupt, *reason says why.
 */
ngx_int_t ngx_http_inference_inflate(ngx_http_inference_inflate_t *inflate,
    const u_char **in, size_t *in_len, u_char **out, size_t *out_len,
    const char **reason);

/* Whether the stream has ended. */
ngx_uint_t ngx_http_inference_inflate_ended(
    ngx_http_inference_inflate_t *inflate);


/* ---- deflate.c ---------------------------------------------------------- */

/* A compressor for the zlib or gzip format.  Its memory is the arena's, except
   for what free() frees.  NULL: out of memory. */
ngx_http_inference_deflater_t *ngx_http_inference_deflater_new(
    inf_arena_t *arena, ngx_uint_t gzip);

/* deflater may be NULL. */
void ngx_http_inference_deflater_free(ngx_http_inference_deflater_t *deflater);

/*
 * One step: consumes bytes of in and writes at most out_len bytes at *out,
 * which is advanced.  last: in holds the last bytes.  NGX_OK: call again (with
 * room at *out); NGX_DONE: all is written; NGX_ERROR: out of memory.
 */
ngx_int_t ngx_http_inference_deflater_run(
    ngx_http_inference_deflater_t *deflater, inf_slice_t *in, u_char **out,
    size_t out_len, ngx_uint_t last);


/* ---- pack.c ------------------------------------------------------------- */

/* Sets ctx->packer if client and location want compression.  NGX_ERROR:
   failed. */
ngx_int_t ngx_http_inference_pack_open(ngx_http_inference_ctx_t *ctx);

/* Adds Content-Encoding to the head. */
ngx_int_t ngx_http_inference_pack_header(ngx_http_request_t *r);

/* Compresses a step of ctx->writer's JSON and tensors to *p.  NGX_DONE: all is
   written. */
ngx_int_t ngx_http_inference_pack(ngx_http_inference_ctx_t *ctx, u_char **p,
    size_t len);

/* packer may be NULL. */
void ngx_http_inference_pack_close(ngx_http_inference_packer_t *packer);


/* ---- forward.c ---------------------------------------------------------- */

/* Adds headers of inference_forward to ctx->infer as parameters. */
ngx_int_t ngx_http_inference_forward(ngx_http_inference_ctx_t *ctx);


/* ---- trace_context.c ---------------------------------------------------- */

/* If traces go to a collector, adds the client's trace context to ctx->infer as
   parameters, which the core removes. */
ngx_int_t ngx_http_inference_trace_headers(ngx_http_inference_ctx_t *ctx);


/* ---- infer.c ------------------------------------------------------------ */

/* Prepares the reader, or raw mode. */
ngx_int_t ngx_http_inference_infer_init(ngx_http_inference_ctx_t *ctx);

/* Parses more JSON.  NGX_OK: all is parsed.  NGX_AGAIN: the slice is over, or
   bytes are missing. */
ngx_int_t ngx_http_inference_infer_read(ngx_http_inference_ctx_t *ctx);

/* Fails if the location does not list "shared_memory". */
ngx_int_t ngx_http_inference_regions_allowed(ngx_http_inference_ctx_t *ctx);

/* Converts numbers in JSON to tensors. */
ngx_int_t ngx_http_inference_infer_decode(ngx_http_inference_ctx_t *ctx);

/* Submits the request.  NGX_DECLINED: the core has exited, another may take
   it. */
ngx_int_t ngx_http_inference_infer_submit(ngx_http_inference_ctx_t *ctx);


/* ---- retry.c ------------------------------------------------------------ */

/*
 * Whether the request goes to the next core.  Its core has exited (c is NULL)
 * before a response, no sequence was lost, and either the executions are fewer
 * than inference_tries or the call may be carried out twice; or the core has
 * not loaded the model yet.  Counts requests that have used all tries.
 */
ngx_uint_t ngx_http_inference_retry_wanted(ngx_http_inference_ctx_t *ctx,
    const inf_completion_t *c);

/* Begins the retry.  NGX_ERROR: out of memory. */
ngx_int_t ngx_http_inference_retry_begin(ngx_http_inference_ctx_t *ctx,
    const inf_completion_t *c);

/* The phase PAUSING: waits before the core is asked again. */
ngx_int_t ngx_http_inference_retry_pause(ngx_http_inference_ctx_t *ctx);

/* The phase RETRYING: waits for the new core and copies the bytes into its
   arena. */
ngx_int_t ngx_http_inference_retry(ngx_http_inference_ctx_t *ctx);

/* Frees unfinished copies. */
void ngx_http_inference_retry_free(ngx_http_inference_ctx_t *ctx);


/* ---- control.c ---------------------------------------------------------- */

/* Reserves room behind the body's text for the record. */
ngx_int_t ngx_http_inference_control_room(ngx_http_inference_ctx_t *ctx);

/* Submits the call.  NGX_DECLINED: the core has exited, another may take it. */
ngx_int_t ngx_http_inference_control_submit(ngx_http_inference_ctx_t *ctx);

/* Whether the call asks for the present state, so that it does not wait for a
   core to start. */
ngx_uint_t ngx_http_inference_control_asks_now(ngx_http_inference_ctx_t *ctx);

/* Sends the core's answer.  NGX_OK: ctx->rc is set. */
ngx_int_t ngx_http_inference_control_respond(ngx_http_inference_ctx_t *ctx);


/* ---- status.c ----------------------------------------------------------- */

/* Whether the status is wanted as a page: by a browser, or by an argument. */
ngx_uint_t ngx_http_inference_status_wants_page(ngx_http_inference_ctx_t *ctx);
ngx_int_t ngx_http_inference_status_page(ngx_http_request_t *r);

/* Sends the status as JSON; answer is the core's, not empty, and stays
   valid. */
ngx_int_t ngx_http_inference_status_json(ngx_http_request_t *r,
    ngx_str_t *answer);


/* ---- digest.c ----------------------------------------------------------- */

/* $inference_digest */
ngx_int_t ngx_http_inference_variable_digest(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);


/* ---- missing.c ---------------------------------------------------------- */

/* Called before the submission; notes that inference_upstream may be asked. */
ngx_int_t ngx_http_inference_missing_begin(ngx_http_inference_ctx_t *ctx);

/* NGX_DECLINED: the core's answer is valid.  NGX_OK: body is the answer of the
   upstream, which has the model.  NGX_AGAIN: as join_end. */
ngx_int_t ngx_http_inference_missing(ngx_http_inference_ctx_t *ctx,
    ngx_str_t *body);


/* ---- join.c ------------------------------------------------------------- */

/* Starts the request to the upstream of inference_upstream, if there is one. */
ngx_int_t ngx_http_inference_join_begin(ngx_http_inference_ctx_t *ctx);

/* Whether the core is to answer in REST's form, even for a gRPC call. */
ngx_uint_t ngx_http_inference_join_wants_text(ngx_http_inference_ctx_t *ctx);

/* Whether the core has answered, and only the upstream's answer is missing. */
ngx_uint_t ngx_http_inference_join_waits(ngx_http_inference_ctx_t *ctx);

/* Joins the upstream's answer with body, the core's, which is kept.  NGX_AGAIN:
   the upstream has not answered; a turn is posted when it does. */
ngx_int_t ngx_http_inference_join_end(ngx_http_inference_ctx_t *ctx,
    ngx_str_t *body);

/* Converts a REST answer to the client's: for gRPC, the message of the call. */
ngx_int_t ngx_http_inference_join_text(ngx_http_inference_ctx_t *ctx,
    inf_slice_t text, ngx_str_t *body);


/* ---- load_report.c ------------------------------------------------------ */

/* Sets the format of the load report that the client asks for, if it does. */
void ngx_http_inference_load_asked(ngx_http_inference_ctx_t *ctx);

/* Adds the load report to the head, if it is known. */
ngx_int_t ngx_http_inference_load_header(ngx_http_inference_ctx_t *ctx);

/* Adds the length of the queue to the head of a call's answer, if asked for. */
ngx_int_t ngx_http_inference_load_queue(ngx_http_inference_ctx_t *ctx);


/* ---- replies.c ---------------------------------------------------------- */

/* Initializes replies without entries; memory comes from pool. */
void ngx_http_inference_replies_init(ngx_http_inference_replies_t *replies,
    ngx_pool_t *pool);

/* Appends the reply of a completion to a queue.  NGX_ERROR: ctx has failed (too
   many replies, or out of memory). */
ngx_int_t ngx_http_inference_replies_push(
    ngx_http_inference_replies_t *replies, ngx_queue_t *to,
    ngx_http_inference_ctx_t *ctx, const inf_completion_t *c);

/* Removes the first of a non-empty queue; valid until the next push. */
ngx_http_inference_queued_reply_t *ngx_http_inference_replies_pop(
    ngx_http_inference_replies_t *replies, ngx_queue_t *from);

/* Drops all replies of a queue. */
void ngx_http_inference_replies_drop(ngx_http_inference_replies_t *replies,
    ngx_queue_t *from);

/* Gives the reply's memory back to the core. */
void ngx_http_inference_reply_release(ngx_http_inference_reply_t *reply);


/* ---- reply.c ------------------------------------------------------------ */

/*
 * Takes the core's completion of a submission: holds the first response, counts
 * and releases others.  NGX_AGAIN: more follow.  NGX_OK: that was the last, or
 * the request has failed.
 */
ngx_int_t ngx_http_inference_take_reply(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_submission_t *submission, const inf_completion_t *c);

/* Copies and checks the held reply, and opens its writer. */
ngx_int_t ngx_http_inference_open_reply(ngx_http_inference_ctx_t *ctx);

/* Sets ctx->writer to a writer of the JSON of record, which is ctx->reply's. */
ngx_int_t ngx_http_inference_open_record(ngx_http_inference_ctx_t *ctx,
    const inf_response_record_t *record, inf_response_form_t form,
    inf_arena_t *arena);

/* Stores the completion's values of the execution. */
void ngx_http_inference_note_execution(ngx_http_inference_ctx_t *ctx,
    const inf_completion_t *c);

/* Counts a response that is about to be written for the client. */
void ngx_http_inference_note_response(ngx_http_inference_ctx_t *ctx);

/* Stores backend, instance and load of the first record; the texts are views
   into the record, which stays. */
void ngx_http_inference_note_record(ngx_http_inference_ctx_t *ctx,
    const inf_response_record_t *record);

/* Copies the record of a reply to arena and checks it. */
ngx_int_t ngx_http_inference_copy_reply(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_reply_t *reply, inf_arena_t *arena,
    inf_response_record_t **record);

/* fail_bare: fails by a status without a text.  fail_count: fails because the
   model did not send exactly one response. */
ngx_int_t ngx_http_inference_fail_bare(ngx_http_inference_ctx_t *ctx,
    uint32_t status);
ngx_int_t ngx_http_inference_fail_count(ngx_http_inference_ctx_t *ctx);

/* Releases the response of a completion that nothing uses. */
void ngx_http_inference_drop_response(
    const ngx_http_inference_submission_t *submission,
    const inf_completion_t *c);

/* Computes classification and lengths.  NGX_OK: sending may begin. */
ngx_int_t ngx_http_inference_prepare(ngx_http_inference_ctx_t *ctx);


/* ---- response.c --------------------------------------------------------- */

/* Sends the head and the bytes available.  NGX_OK: all is sent, ctx->rc is set.
   NGX_DECLINED: the rest follows as the socket drains. */
ngx_int_t ngx_http_inference_respond(ngx_http_inference_ctx_t *ctx);

/* Sends more.  NGX_OK: all is sent, ctx->rc is set. */
ngx_int_t ngx_http_inference_respond_more(ngx_http_inference_ctx_t *ctx);

/* Passes out to nginx's filters with ctx->free and ctx->busy.  NGX_ERROR:
   ctx->rc is NGX_ERROR, too. */
ngx_int_t ngx_http_inference_output(ngx_http_inference_ctx_t *ctx,
    ngx_chain_t *out);

/* Checks for room in the socket.  NGX_DECLINED: there is room.  Else as a
   phase. */
ngx_int_t ngx_http_inference_drained(ngx_http_inference_ctx_t *ctx);

/* Whether bytes passed to nginx are not sent yet. */
ngx_uint_t ngx_http_inference_is_blocked(ngx_http_inference_ctx_t *ctx);

/* Waits for the socket.  NGX_OK: it cannot, ctx->rc is set. */
ngx_int_t ngx_http_inference_wait_writable(ngx_http_inference_ctx_t *ctx);

/* A link with the mark of the response's last byte; NULL: out of memory. */
ngx_chain_t *ngx_http_inference_end_link(ngx_http_request_t *r);


/* ---- events.c ----------------------------------------------------------- */

/* Prepares server-sent events of generate_stream, before the submission. */
ngx_int_t ngx_http_inference_events_open(ngx_http_inference_ctx_t *ctx);

/* Frees what events holds. */
void ngx_http_inference_events_free(ngx_http_inference_events_t *events);

/* Whether a response has come or was sent. */
ngx_uint_t ngx_http_inference_events_begun(ngx_http_inference_ctx_t *ctx);

/* Takes a completion; c NULL: the core has exited. */
void ngx_http_inference_events_completed(ngx_http_inference_ctx_t *ctx,
    const inf_completion_t *c);

/* Takes the next response.  NGX_OK: it is to be prepared.  NGX_DECLINED: no
   more come. */
ngx_int_t ngx_http_inference_events_next(ngx_http_inference_ctx_t *ctx);

/* Sends the head once.  NGX_DECLINED: events follow. */
ngx_int_t ngx_http_inference_events_respond(ngx_http_inference_ctx_t *ctx);

/* Sends events.  NGX_OK: all is sent, ctx->rc is set.  NGX_DECLINED: another
   response is to be prepared. */
ngx_int_t ngx_http_inference_events_send(ngx_http_inference_ctx_t *ctx);

/* Sends a failure after the head as the last event. */
void ngx_http_inference_events_reject(ngx_http_inference_ctx_t *ctx);


/* ---- hand_on.c ---------------------------------------------------------- */

/* Whether another handler may use the body afterwards. */
ngx_uint_t ngx_http_inference_hand_on_wanted(ngx_http_inference_ctx_t *ctx);

/* Passes the body as r->request_body->bufs to the next handler of r;
   NGX_DECLINED: it is incomplete, or other handlers hold too many bytes. */
ngx_int_t ngx_http_inference_hand_on(ngx_http_inference_ctx_t *ctx);

/* Ends the next handler's use of the body. */
void ngx_http_inference_hand_on_end(ngx_http_inference_ctx_t *ctx);


/* ---- store.c ------------------------------------------------------------ */

/* Called before the first region is allocated on ctx->client.  NGX_ERROR: the
   request has failed. */
ngx_int_t ngx_http_inference_current(ngx_http_inference_ctx_t *ctx);

/* Opens an empty store for size or more bytes. */
ngx_int_t ngx_http_inference_store_open(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_store_t *store, uint64_t size);

/* Room behind the store's len: *n bytes at *p, at most want (not 0). */
ngx_int_t ngx_http_inference_store_room(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_store_t *store, size_t want, u_char **p, size_t *n);

/* Appends n bytes. */
ngx_int_t ngx_http_inference_store_put(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_store_t *store, const void *data, size_t n);

/* Ensures room for n bytes in one piece behind the store's len. */
ngx_int_t ngx_http_inference_store_ensure(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_store_t *store, uint64_t n);

/*
 * Moves the remaining bytes of a store, which may be read afterwards.  settle
 * works in slices (NGX_AGAIN: the slice is over), settle_now in one go.
 */
ngx_int_t ngx_http_inference_store_settle(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_store_t *store);
void ngx_http_inference_store_settle_now(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_store_t *store);

/* Frees the store's regions, if any; the store may be opened again. */
void ngx_http_inference_store_free(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_store_t *store);

/* The same for all three stores of the body. */
ngx_int_t ngx_http_inference_stores_settle(ngx_http_inference_ctx_t *ctx);
void ngx_http_inference_stores_free(ngx_http_inference_ctx_t *ctx);

/* Arena bytes of the body, without the record. */
uint64_t ngx_http_inference_stores_size(ngx_http_inference_ctx_t *ctx);

/* Frees the record and the decoded tensors behind it, unless the core may read
   them. */
void ngx_http_inference_record_free(ngx_http_inference_ctx_t *ctx);

/* Fails because the arena has no room for size more bytes; returns
   NGX_ERROR. */
ngx_int_t ngx_http_inference_arena_full(ngx_http_inference_ctx_t *ctx,
    uint64_t size);


/* ---- limits.c ----------------------------------------------------------- */

/* The limit of a body as received, and the error of one that exceeds it. */
off_t ngx_http_inference_max_body(ngx_http_inference_ctx_t *ctx);
off_t ngx_http_inference_location_max_body(ngx_http_request_t *r);
ngx_int_t ngx_http_inference_body_long(ngx_http_inference_ctx_t *ctx,
    const char *what);

/* The limit of an inflated body, and the error of one that exceeds it. */
off_t ngx_http_inference_max_inflated(ngx_http_inference_ctx_t *ctx);
ngx_int_t ngx_http_inference_inflated_long(ngx_http_inference_ctx_t *ctx);

/* The limit of the body's JSON, and the error of JSON that exceeds it. */
uint64_t ngx_http_inference_max_text(ngx_http_inference_ctx_t *ctx);
ngx_int_t ngx_http_inference_text_long(ngx_http_inference_ctx_t *ctx);

/* Checks that the request may hold `decoded` more bytes of decoded tensors. */
ngx_int_t ngx_http_inference_check_share(ngx_http_inference_ctx_t *ctx,
    uint64_t decoded);

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

/* Logs the text of an error that is sent to the client. */
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


#endif /* NGX_HTTP_INFERENCE_REQUEST_H */
