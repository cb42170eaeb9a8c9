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


/* work on one request in one turn of the event loop: so long, and no more than
   so many times INF_CODEC_BUDGET bytes */
#define NGX_HTTP_INFERENCE_SLICE_NS     1000000
#define NGX_HTTP_INFERENCE_SLICE_STEPS  16

/* JSON up to this size is read while it arrives, longer one in slices */
#define NGX_HTTP_INFERENCE_INLINE_TEXT  (256 * 1024)

/* of a rejected body this much is read to keep the connection */
#define NGX_HTTP_INFERENCE_SWALLOW      (1024 * 1024)

/* what a compressed body may inflate to where inference_max_body is not set */
#define NGX_HTTP_INFERENCE_INFLATE_MAX  ((off_t) 64 * 1024 * 1024)

/* what is reserved where a length is not known */
#define NGX_HTTP_INFERENCE_STORE_SIZE   ((uint64_t) 64 * 1024)

/* bytes that are compressed in one step */
#define NGX_HTTP_INFERENCE_DEFLATE_STEP ((size_t) 16 * 1024)

/* what is charged at a time */
#define NGX_HTTP_INFERENCE_STORE_STEP   ((uint64_t) 4096)

/* a call's body up to this has room when the arena is full */
#define NGX_HTTP_INFERENCE_CALL_SIZE    ((uint64_t) 16 * 1024)

/* a call's body, inflated, but that of a load */
#define NGX_HTTP_INFERENCE_CALL_MAX     ((uint64_t) 64 * 1024)

/* a request in flight always owns a timer, or a worker that shuts down would
   leave before the answer */
#define NGX_HTTP_INFERENCE_NO_TIMEOUT   ((ngx_msec_t) 24 * 3600 * 1000)


/* how a request to an endpoint is answered */

typedef enum {
    NGX_HTTP_INFERENCE_LIVE = 1,        /* by the worker                     */
    NGX_HTTP_INFERENCE_MODEL_INFER,
    NGX_HTTP_INFERENCE_GENERATE_ONE,    /* generate                          */
    NGX_HTTP_INFERENCE_GENERATE_ALL,    /* generate_stream                   */
    NGX_HTTP_INFERENCE_STREAM_INFER,    /* ModelStreamInfer of gRPC          */
    NGX_HTTP_INFERENCE_CALL,            /* of the core, without a body       */
    NGX_HTTP_INFERENCE_CALL_BODY,       /* of the core, which reads the body */
    NGX_HTTP_INFERENCE_HEALTH_CHECK,    /* the same, in words of
                                           grpc.health.v1                    */
    NGX_HTTP_INFERENCE_HEALTH_WATCH,    /* and as often as it changes        */
    NGX_HTTP_INFERENCE_NAMED            /* never supported                   */
} ngx_http_inference_verb_e;


/* the fields of a message of gRPC that name model and version */

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
    NGX_HTTP_INFERENCE_SWALLOWING,      /* failed; waits for the body's end  */
    NGX_HTTP_INFERENCE_READING,         /* the body is inflated, placed, read*/
    NGX_HTTP_INFERENCE_DECODING,        /* JSON numbers become typed bytes   */
    NGX_HTTP_INFERENCE_SUBMITTING,
    NGX_HTTP_INFERENCE_WAITING,         /* for the core's answer             */
    NGX_HTTP_INFERENCE_PAUSING,         /* the next core loads its model: asks
                                           again a little later              */
    NGX_HTTP_INFERENCE_RETRYING,        /* its core has ended: goes to the
                                           next one                          */
    NGX_HTTP_INFERENCE_PREPARING,       /* classification, lengths           */
    NGX_HTTP_INFERENCE_RESPONDING,      /* the head and what fits with it    */
    NGX_HTTP_INFERENCE_SENDING,         /* JSON is made as the socket drains */
    NGX_HTTP_INFERENCE_REJECTING,       /* failed; the error is sent         */
    NGX_HTTP_INFERENCE_DONE,            /* finalized, or about to be         */
    NGX_HTTP_INFERENCE_LEFT             /* by its client, unanswered         */
} ngx_http_inference_state_e;


/* what the driver was called for */

typedef enum {
    NGX_HTTP_INFERENCE_NO_EVENT = 0,    /* the state has only just begun     */
    NGX_HTTP_INFERENCE_CHANNEL,         /* it is up, or it can't come up     */
    NGX_HTTP_INFERENCE_BODY_BYTES,      /* in body.arrived                   */
    NGX_HTTP_INFERENCE_BODY_END,
    NGX_HTTP_INFERENCE_READ,            /* main has read some of its body, a
                                           stream can be read                */
    NGX_HTTP_INFERENCE_TURN,
    NGX_HTTP_INFERENCE_TIMER,
    NGX_HTTP_INFERENCE_REPLY,
    NGX_HTTP_INFERENCE_WRITABLE
} ngx_http_inference_event_e;


/* the reader of the body from the connection */

typedef enum {
    NGX_HTTP_INFERENCE_BODY_OWN = 0,    /* the request itself, by a filter   */
    NGX_HTTP_INFERENCE_BODY_FOREIGN,    /* another handler has               */
    NGX_HTTP_INFERENCE_BODY_MAIN        /* main has yet to, for a subrequest */
} ngx_http_inference_origin_e;


/* how far it has come, in this order */

typedef enum {
    NGX_HTTP_INFERENCE_BODY_UNREAD = 0,
    NGX_HTTP_INFERENCE_BODY_ARRIVING,
    NGX_HTTP_INFERENCE_BODY_DROPPED,    /* its end is here, not its bytes    */
    NGX_HTTP_INFERENCE_BODY_COMPLETE,   /* the last byte is here             */
    NGX_HTTP_INFERENCE_BODY_PLAIN,      /* and every plain one has a place   */
    NGX_HTTP_INFERENCE_BODY_CHECKED     /* the tail's length is right        */
} ngx_http_inference_body_e;


/* where its next plain bytes belong */

typedef enum {
    NGX_HTTP_INFERENCE_TEXT = 0,        /* the JSON header                   */
    NGX_HTTP_INFERENCE_TENSOR,          /* each tensor at its aligned place  */
    NGX_HTTP_INFERENCE_TENSOR_END,      /* nothing more may come             */
    NGX_HTTP_INFERENCE_FLAT,            /* tensors in one piece              */
    NGX_HTTP_INFERENCE_FLAT_END         /* nothing more may come             */
} ngx_http_inference_place_e;


/* a header that goes with an error */

typedef enum {
    NGX_HTTP_INFERENCE_NO_HINT = 0,
    NGX_HTTP_INFERENCE_RETRY_AFTER,
    NGX_HTTP_INFERENCE_ACCEPT_ENCODING,
    NGX_HTTP_INFERENCE_GRPC_ENCODINGS
} ngx_http_inference_hint_e;


/* bytes in the request arena that grow, and may move as they do */
typedef struct {
    inf_region_t                *region;
    u_char                      *data;
    uint64_t                     len;
    inf_region_t                *old;           /* where the first bytes still
                                                   are; NULL: all are here   */
    uint64_t                     old_len;
    uint64_t                     moved;         /* of old_len                */
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
    off_t                        in_pos;        /* in the link's buffer, or
                                                   in packed                 */
    ngx_buf_t                   *piece;         /* of a file, to inflate     */
    off_t                        declared;      /* Content-Length, or -1     */
    off_t                        received;      /* bytes of the wire         */
    off_t                        plain;         /* bytes after inflating     */
    off_t                        header_len;    /* of the JSON, -1: all      */
    off_t                        swallowed;
    off_t                        rated;         /* request_length when the
                                                   time began that is judged */
    ngx_msec_t                   rated_since;   /* which was then            */
    ngx_str_t                    encoding;
    ngx_http_inference_inflate_t  *inflate;     /* NULL: not compressed      */
    ngx_http_inference_store_t   packed;        /* compressed, as received   */
    ngx_http_inference_store_t   text;
    ngx_http_inference_store_t   data;          /* binary tensors, raw body  */
    ngx_uint_t                   tensor;        /* input being received      */
    uint64_t                     filled;        /* of it                     */
    unsigned                     lagging:1;     /* text is read in slices    */
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
    unsigned                     reported:1;    /* both are known            */
} ngx_http_inference_load_t;


/* one that waits until those before it were sent */
typedef struct {
    ngx_queue_t                  queue;
    ngx_http_inference_reply_t   reply;
    inf_err_cause_t              cause;
    unsigned                     response:1;    /* not flags alone           */
    unsigned                     queued:1;      /* it was no check before    */
    unsigned                     final:1;
} ngx_http_inference_queued_reply_t;


/* of one request or one call, in any number of queues */
typedef struct {
    ngx_pool_t                  *pool;
    ngx_queue_t                  spare;
    ngx_uint_t                   count;         /* in the queues             */
} ngx_http_inference_replies_t;


/* the events that a phase asks nginx for */
typedef struct {
    ngx_http_client_body_handler_pt  body_ready;
    ngx_http_event_handler_pt    main_read;     /* while borrowing           */
    ngx_http_client_body_handler_pt  main_ready;
    ngx_http_event_handler_pt    writable;
    ngx_http_event_handler_pt    stream_read;
} ngx_http_inference_handlers_t;


/* of the execution that answered, for logs: as inf_completion_t has them */

typedef struct {
    uint64_t                     queue_ns;
    uint64_t                     compute_ns;
    uint32_t                     batch_size;    /* 0: it was not executed    */
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
    ngx_http_inference_stream_t *stream;        /* of a call of many messages */
    ngx_http_inference_message_t  *message;     /* it is one of these, and ...*/
    ngx_http_inference_ctx_t    *owner;         /* ... this is the call's    */
    ngx_http_inference_watch_t  *watch;         /* of a call of Watch        */
    ngx_http_inference_events_t *events;        /* of generate_stream        */

    ngx_str_t                    model;
    ngx_str_t                    version_text;
    int64_t                      version;       /* -1: by policy             */

    ngx_event_t                  timer;
    ngx_event_t                  turn;          /* posted: go on with it     */
    uint64_t                     turn_ns;       /* when this one began       */
    ngx_uint_t                   steps;         /* done in it                */
    uint64_t                     received_ns;
    uint64_t                     deadline_ns;   /* 0: none                   */
    uint64_t                     client_deadline_ns;    /* 0: none           */

    ngx_http_inference_submission_t  submission;
    inf_client_t                *client;        /* valid while it has regions
                                                   of ours                   */
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
    inf_region_t                *record;        /* and the decoded tensors   */
    size_t                       record_size;   /* without those             */
    uint64_t                    *offsets;       /* of each input's data, in
                                                   its region; NULL: tensors
                                                   have no places yet        */
    uint64_t                    *absolute;      /* the same, in the arena, for
                                                   the record                */
    ngx_uint_t                   input;         /* being decoded             */

    ngx_http_inference_retry_t  *retry;         /* NULL: it had one core     */
    ngx_http_inference_load_t    load;
    ngx_http_inference_join_t   *join;          /* NULL: the core answers
                                                   alone                     */
    ngx_http_inference_missing_t  *missing;     /* NULL: as well if it does not
                                                   have the model            */
    ngx_http_inference_reply_t   reply;
    ngx_uint_t                   replies;
    inf_response_writer_t       *writer;
    off_t                        json_len;      /* of the answer, -1: it was
                                                   not measured              */
    ngx_http_inference_packer_t *packer;        /* compresses it, or NULL    */
    ngx_chain_t                 *free;
    ngx_chain_t                 *busy;
    ngx_http_inference_execution_t  execution;
    ngx_uint_t                   responses;     /* that the client gets      */
    uint64_t                     first_ns;      /* when the first of them was
                                                   here                      */
    ngx_str_t                    backend;
    ngx_str_t                    instance;

    ngx_int_t                    rc;            /* to finalize it with       */
    ngx_uint_t                   status;        /* HTTP; 0: has not failed   */
    inf_err_code_t               code;
    inf_err_cause_t              cause;         /* set before it has failed  */
    ngx_http_inference_hint_e    hint;
    ngx_str_t                    error;

    uint64_t                     handed_on;     /* bytes of the arena that
                                                   another handler has       */

    unsigned                     raw:1;         /* raw binary mode           */
    unsigned                     read:1;        /* the JSON was read         */
    unsigned                     text_done:1;   /* JSON of the answer made,
                                                   by a packer all of it     */
};


#define ngx_http_inference_is_generate(ctx)                                   \
    ((ctx)->endpoint->verb == NGX_HTTP_INFERENCE_GENERATE_ONE                 \
     || (ctx)->endpoint->verb == NGX_HTTP_INFERENCE_GENERATE_ALL)

/* a request to a model, in any form */
#define ngx_http_inference_is_infer(ctx)                                      \
    ((ctx)->endpoint->verb == NGX_HTTP_INFERENCE_MODEL_INFER                  \
     || ngx_http_inference_is_generate(ctx))

/* a call with a body, of the core or of the worker (LIVE over gRPC) */
#define ngx_http_inference_call_has_body(ctx)                                 \
    ((ctx)->endpoint->verb == NGX_HTTP_INFERENCE_CALL_BODY                    \
     || (ctx)->endpoint->verb == NGX_HTTP_INFERENCE_LIVE                      \
     || (ctx)->endpoint->verb == NGX_HTTP_INFERENCE_HEALTH_CHECK              \
     || (ctx)->endpoint->verb == NGX_HTTP_INFERENCE_HEALTH_WATCH)

/* a call that may bring the files of a model */
#define ngx_http_inference_is_load(ctx)                                       \
    (ngx_http_inference_call_has_body(ctx)                                    \
     && (ctx)->endpoint->call == INF_METHOD_REPOSITORY_MODEL_LOAD)

/* the tensors behind the JSON are in one piece, as they came */
#define ngx_http_inference_is_flat(body)                                      \
    ((body)->place >= NGX_HTTP_INFERENCE_FLAT)

/* nothing more is done for it */
#define ngx_http_inference_is_over(ctx)                                       \
    ((ctx)->state >= NGX_HTTP_INFERENCE_DONE)


/* ---- driver.c ----------------------------------------------------------- */

/* Runs it for ctx->event; it may be gone afterwards. */
void ngx_http_inference_run(ngx_http_inference_ctx_t *ctx);


/* ---- reject.c ----------------------------------------------------------- */

/* The phase of a request that has failed; NGX_OK: ctx->rc. */
ngx_int_t ngx_http_inference_reject(ngx_http_inference_ctx_t *ctx);


/* ---- context.c ---------------------------------------------------------- */

/* Hangs it off r, which may be NULL: out of memory. */
ngx_http_inference_ctx_t *ngx_http_inference_create_ctx(ngx_http_request_t *r);

/* Of a request that is a part of r: zeroed memory, in this state. */
void ngx_http_inference_init_ctx(ngx_http_inference_ctx_t *ctx,
    ngx_http_request_t *r, ngx_http_inference_state_e state);

/* Its answer is not wanted any more; and: nothing uses what it holds. */
void ngx_http_inference_leave_ctx(ngx_http_inference_ctx_t *ctx);
void ngx_http_inference_free_ctx(ngx_http_inference_ctx_t *ctx);

/* To the state that follows, by what the phase has returned: NGX_OK,
   NGX_DECLINED or NGX_ERROR. */
void ngx_http_inference_move(ngx_http_inference_ctx_t *ctx, ngx_int_t rc);

/* The request is about to be finalized, in any state: no event follows. */
void ngx_http_inference_over(ngx_http_inference_ctx_t *ctx);

/* While it waited: RETRYING is its state now, or PAUSING. */
void ngx_http_inference_lose_core(ngx_http_inference_ctx_t *ctx);
void ngx_http_inference_await_model(ngx_http_inference_ctx_t *ctx);

/* The request's context, also after an internal redirect; NULL: none. */
ngx_http_inference_ctx_t *ngx_http_inference_ctx(ngx_http_request_t *r);

/* Whether nginx has redirected the request: the context is given up then. */
ngx_uint_t ngx_http_inference_disowned(ngx_http_inference_ctx_t *ctx);

/* The context that goes on when mr's body has been read for a subrequest, or
   NULL. */
ngx_http_inference_ctx_t *ngx_http_inference_borrower(ngx_http_request_t *mr);


/* ---- endpoint.c --------------------------------------------------------- */

/* Sets endpoint, model and version; NGX_ERROR: failed. */
ngx_int_t ngx_http_inference_find_endpoint(ngx_http_inference_ctx_t *ctx);

/* In a location of one model: sets model and version. */
ngx_int_t ngx_http_inference_model_of_location(ngx_http_inference_ctx_t *ctx);

/* version_text becomes version. */
ngx_int_t ngx_http_inference_parse_version(ngx_http_inference_ctx_t *ctx);


/* ---- endpoints.c -------------------------------------------------------- */

/* The row that a path names among the parts, with model and version as texts;
   NULL: none. */
const ngx_http_inference_endpoint_t *ngx_http_inference_match_endpoint(
    ngx_http_inference_ctx_t *ctx, ngx_str_t *path, ngx_uint_t parts);


/* ---- borrow.c ----------------------------------------------------------- */

/* Main's body is going to be read: puts its handlers aside. */
void ngx_http_inference_borrow_begin(ngx_http_inference_ctx_t *ctx);

/* The borrowed region is being read. */
void ngx_http_inference_borrow_begun(ngx_http_inference_ctx_t *ctx);

/* The phase; NGX_OK: main has its body; NGX_DECLINED: main was answered. */
ngx_int_t ngx_http_inference_borrow(ngx_http_inference_ctx_t *ctx);


/* ---- headers.c ---------------------------------------------------------- */

/* Sets what they say of the body: whose, how long, how compressed it is. */
ngx_int_t ngx_http_inference_headers_check(ngx_http_inference_ctx_t *ctx);


/* ---- body.c ------------------------------------------------------------- */

/* Gets ready to receive it; NGX_DECLINED: main has to read it before. */
ngx_int_t ngx_http_inference_body_open(ngx_http_inference_ctx_t *ctx);

/* Receives it; NGX_OK: its end is here; NGX_DECLINED: the request has failed,
   and what is left of the body is to be swallowed. */
ngx_int_t ngx_http_inference_body_receive(ngx_http_inference_ctx_t *ctx);

/* Reads what is left of a failed request's body; NGX_ERROR: enough. */
ngx_int_t ngx_http_inference_body_swallow(ngx_http_inference_ctx_t *ctx);

/* Inflates and places it, reads its JSON; NGX_DECLINED: it is a call's. */
ngx_int_t ngx_http_inference_body_read(ngx_http_inference_ctx_t *ctx);

/* The answer comes now, wherever the body is: discards or stops it. */
void ngx_http_inference_body_stop(ngx_http_inference_ctx_t *ctx);


/* ---- source.c ----------------------------------------------------------- */

/* Inflates and places what was received before. */
ngx_int_t ngx_http_inference_source(ngx_http_inference_ctx_t *ctx);


/* ---- place.c ------------------------------------------------------------ */

/* Copies n plain bytes to where they belong. */
ngx_int_t ngx_http_inference_place(ngx_http_inference_ctx_t *ctx,
    const u_char *p, size_t n);

/* Where the next bytes go, and how many at most; want is not 0. */
ngx_int_t ngx_http_inference_place_window(ngx_http_inference_ctx_t *ctx,
    size_t want, u_char **p, size_t *n);

/* n bytes were written to that window. */
ngx_int_t ngx_http_inference_place_commit(ngx_http_inference_ctx_t *ctx,
    size_t n);

/* Whether no byte more may come. */
ngx_uint_t ngx_http_inference_place_is_full(ngx_http_inference_ctx_t *ctx);

/* The bytes from here on are kept in one piece. */
ngx_int_t ngx_http_inference_place_flat(ngx_http_inference_ctx_t *ctx);

/* No more plain bytes will come. */
ngx_int_t ngx_http_inference_place_end(ngx_http_inference_ctx_t *ctx);

/* Places for the binary tensors of ctx->infer. */
ngx_int_t ngx_http_inference_place_plan(ngx_http_inference_ctx_t *ctx);

/* Whether the binary tensors take the whole tail; after the end. */
ngx_int_t ngx_http_inference_place_check(ngx_http_inference_ctx_t *ctx);


/* ---- inflate.c ---------------------------------------------------------- */

/* A decoder in memory of the pool; NULL: out of memory. */
ngx_http_inference_inflate_t *ngx_http_inference_inflate_new(ngx_pool_t *pool);

/*
 * Inflates from *in (in_len bytes) to out; both counts are decreased by what
 * was used.  NGX_OK: go on; NGX_DONE: the stream has ended; NGX_ERROR: it is
 * corrupt, *reason says why.
 */
ngx_int_t ngx_http_inference_inflate(ngx_http_inference_inflate_t *inflate,
    const u_char **in, size_t *in_len, u_char **out, size_t *out_len,
    const char **reason);

/* Whether the stream has ended. */
ngx_uint_t ngx_http_inference_inflate_ended(
    ngx_http_inference_inflate_t *inflate);


/* ---- deflate.c ---------------------------------------------------------- */

/* Of zlib's format, or gzip's; the arena's, but for what free frees.  NULL: out
   of memory. */
ngx_http_inference_deflater_t *ngx_http_inference_deflater_new(
    inf_arena_t *arena, ngx_uint_t gzip);

/* May be NULL. */
void ngx_http_inference_deflater_free(ngx_http_inference_deflater_t *deflater);

/*
 * One step: takes bytes off in, puts some to *out, which moves on by at most
 * out_len.  last: nothing follows in.  NGX_OK: go on, with more room if there
 * is none; NGX_DONE: that was all; NGX_ERROR: out of memory.
 */
ngx_int_t ngx_http_inference_deflater_run(
    ngx_http_inference_deflater_t *deflater, inf_slice_t *in, u_char **out,
    size_t out_len, ngx_uint_t last);


/* ---- pack.c ------------------------------------------------------------- */

/* Sets ctx->packer if client and location want deflate; NGX_ERROR: failed. */
ngx_int_t ngx_http_inference_pack_open(ngx_http_inference_ctx_t *ctx);

/* Says in the head that the answer is compressed. */
ngx_int_t ngx_http_inference_pack_header(ngx_http_request_t *r);

/* One step of compressing ctx->writer's JSON and tensors to *p; NGX_DONE: that
   was all. */
ngx_int_t ngx_http_inference_pack(ngx_http_inference_ctx_t *ctx, u_char **p,
    size_t len);

/* packer may be NULL. */
void ngx_http_inference_pack_close(ngx_http_inference_packer_t *packer);


/* ---- forward.c ---------------------------------------------------------- */

/* Headers that are to be forwarded become parameters of ctx->infer. */
ngx_int_t ngx_http_inference_forward(ngx_http_inference_ctx_t *ctx);


/* ---- trace_context.c ---------------------------------------------------- */

/* Where traces go to a collector, the client's context goes with the request,
   as parameters of ctx->infer that the core takes out again. */
ngx_int_t ngx_http_inference_trace_headers(ngx_http_inference_ctx_t *ctx);


/* ---- infer.c ------------------------------------------------------------ */

/* Prepares the reader (or raw mode). */
ngx_int_t ngx_http_inference_infer_init(ngx_http_inference_ctx_t *ctx);

/* Reads on in the JSON; NGX_OK: all is read; NGX_AGAIN: slice over or more
   bytes needed. */
ngx_int_t ngx_http_inference_infer_read(ngx_http_inference_ctx_t *ctx);

/* NGX_OK, or the error: the location does not list "shared_memory". */
ngx_int_t ngx_http_inference_regions_allowed(ngx_http_inference_ctx_t *ctx);

/* Numbers in JSON become tensors. */
ngx_int_t ngx_http_inference_infer_decode(ngx_http_inference_ctx_t *ctx);

/* The core gets it; NGX_DECLINED: that core has ended, another may get it. */
ngx_int_t ngx_http_inference_infer_submit(ngx_http_inference_ctx_t *ctx);


/* ---- retry.c ------------------------------------------------------------ */

/*
 * Whether it goes to the next core: its own has ended (c is NULL) before a
 * response of it came, no sequence has been lost with it, and it has been
 * executed less often than inference_tries, or is a call that may be carried
 * out twice; or that next core does not have its model yet.  Counts one that
 * has used all its tries.
 */
ngx_uint_t ngx_http_inference_retry_wanted(ngx_http_inference_ctx_t *ctx,
    const inf_completion_t *c);

/* Begins the retry; NGX_ERROR: out of memory. */
ngx_int_t ngx_http_inference_retry_begin(ngx_http_inference_ctx_t *ctx,
    const inf_completion_t *c);

/* Until that core is to be asked again for the model that it loads. */
ngx_int_t ngx_http_inference_retry_pause(ngx_http_inference_ctx_t *ctx);

/* Waits for that core, and copies the bytes into its channel's arena. */
ngx_int_t ngx_http_inference_retry(ngx_http_inference_ctx_t *ctx);

/* Copies that were not finished. */
void ngx_http_inference_retry_free(ngx_http_inference_ctx_t *ctx);


/* ---- control.c ---------------------------------------------------------- */

/* Room behind the body's text for what makes a record of it. */
ngx_int_t ngx_http_inference_control_room(ngx_http_inference_ctx_t *ctx);

/* The core gets it; NGX_DECLINED: that core has ended, another may get it. */
ngx_int_t ngx_http_inference_control_submit(ngx_http_inference_ctx_t *ctx);

/* The answer is about this moment: none comes of a core that is to start. */
ngx_uint_t ngx_http_inference_control_asks_now(ngx_http_inference_ctx_t *ctx);

/* Sends what the core has answered; NGX_OK: ctx->rc. */
ngx_int_t ngx_http_inference_control_respond(ngx_http_inference_ctx_t *ctx);


/* ---- status.c ----------------------------------------------------------- */

/* Whether it is a browser that asks for the status, or its words say so. */
ngx_uint_t ngx_http_inference_status_wants_page(ngx_http_inference_ctx_t *ctx);
ngx_int_t ngx_http_inference_status_page(ngx_http_request_t *r);

/* answer is the core's, not empty, and stays. */
ngx_int_t ngx_http_inference_status_json(ngx_http_request_t *r,
    ngx_str_t *answer);


/* ---- digest.c ----------------------------------------------------------- */

/* $inference_digest */
ngx_int_t ngx_http_inference_variable_digest(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data);


/* ---- missing.c ---------------------------------------------------------- */

/* Before a call is submitted: inference_upstream may be asked later. */
ngx_int_t ngx_http_inference_missing_begin(ngx_http_inference_ctx_t *ctx);

/* NGX_DECLINED: what the core has answered counts; NGX_OK: body is the answer,
   of a model that the upstream has; NGX_AGAIN: as join_end. */
ngx_int_t ngx_http_inference_missing(ngx_http_inference_ctx_t *ctx,
    ngx_str_t *body);


/* ---- join.c ------------------------------------------------------------- */

/* Asks the upstream of inference_upstream, if the location has one. */
ngx_int_t ngx_http_inference_join_begin(ngx_http_inference_ctx_t *ctx);

/* Whether the core is to answer as to REST, also a call of gRPC. */
ngx_uint_t ngx_http_inference_join_wants_text(ngx_http_inference_ctx_t *ctx);

/* Whether the core has answered, and only the upstream's answer is missing. */
ngx_uint_t ngx_http_inference_join_waits(ngx_http_inference_ctx_t *ctx);

/* Joins the upstream's answer with body, the core's, which is kept; NGX_AGAIN:
   the upstream has not answered yet, and a turn is posted when it has. */
ngx_int_t ngx_http_inference_join_end(ngx_http_inference_ctx_t *ctx,
    ngx_str_t *body);

/* The answer of REST becomes the client's: for gRPC the message of the call. */
ngx_int_t ngx_http_inference_join_text(ngx_http_inference_ctx_t *ctx,
    inf_slice_t text, ngx_str_t *body);


/* ---- load_report.c ------------------------------------------------------ */

/* Whether the client asks for one, and how it is to be written. */
void ngx_http_inference_load_asked(ngx_http_inference_ctx_t *ctx);

/* Adds it to the head, if there is one. */
ngx_int_t ngx_http_inference_load_header(ngx_http_inference_ctx_t *ctx);

/* Adds the queue's length to the head of a call's answer, if it is asked. */
ngx_int_t ngx_http_inference_load_queue(ngx_http_inference_ctx_t *ctx);


/* ---- replies.c ---------------------------------------------------------- */

/* No queue has any; memory is pool's. */
void ngx_http_inference_replies_init(ngx_http_inference_replies_t *replies,
    ngx_pool_t *pool);

/* Puts what a completion of ctx brings at the end of a queue; NGX_ERROR: ctx
   has failed, there are too many or no memory. */
ngx_int_t ngx_http_inference_replies_push(
    ngx_http_inference_replies_t *replies, ngx_queue_t *to,
    ngx_http_inference_ctx_t *ctx, const inf_completion_t *c);

/* The first of a queue that is not empty; valid until the next push. */
ngx_http_inference_queued_reply_t *ngx_http_inference_replies_pop(
    ngx_http_inference_replies_t *replies, ngx_queue_t *from);

/* Nobody is going to send them. */
void ngx_http_inference_replies_drop(ngx_http_inference_replies_t *replies,
    ngx_queue_t *from);

/* The core gets its memory back. */
void ngx_http_inference_reply_release(ngx_http_inference_reply_t *reply);


/* ---- reply.c ------------------------------------------------------------ */

/*
 * Takes the core's completion of a submission: the first response is held,
 * others are counted and released.  NGX_AGAIN: more will come; NGX_OK: that was
 * the last, or the request failed.
 */
ngx_int_t ngx_http_inference_take_reply(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_submission_t *submission, const inf_completion_t *c);

/* The held reply, copied and checked, as what is to be written. */
ngx_int_t ngx_http_inference_open_reply(ngx_http_inference_ctx_t *ctx);

/* A writer of the JSON of ctx->reply's record, in ctx->writer. */
ngx_int_t ngx_http_inference_open_record(ngx_http_inference_ctx_t *ctx,
    const inf_response_record_t *record, inf_response_form_t form,
    inf_arena_t *arena);

/* Notes what it says of the execution. */
void ngx_http_inference_note_execution(ngx_http_inference_ctx_t *ctx,
    const inf_completion_t *c);

/* A response is about to be written for the client. */
void ngx_http_inference_note_response(ngx_http_inference_ctx_t *ctx);

/* Notes what the first record says beside the response: who ran it, as views
   into the record, which stays, and how large the load is. */
void ngx_http_inference_note_record(ngx_http_inference_ctx_t *ctx,
    const inf_response_record_t *record);

/* The record of a reply, copied to arena and checked. */
ngx_int_t ngx_http_inference_copy_reply(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_reply_t *reply, inf_arena_t *arena,
    inf_response_record_t **record);

/* Fails by a status without a text; for it has not had one response. */
ngx_int_t ngx_http_inference_fail_bare(ngx_http_inference_ctx_t *ctx,
    uint32_t status);
ngx_int_t ngx_http_inference_fail_count(ngx_http_inference_ctx_t *ctx);

/* Releases what a completion has brought and nobody wants. */
void ngx_http_inference_drop_response(
    const ngx_http_inference_submission_t *submission,
    const inf_completion_t *c);

/* Classification and lengths; NGX_OK: sending may begin. */
ngx_int_t ngx_http_inference_prepare(ngx_http_inference_ctx_t *ctx);


/* ---- response.c --------------------------------------------------------- */

/* Sends the head and what there is; NGX_OK: that is all, ctx->rc;
   NGX_DECLINED: the rest follows as the socket drains. */
ngx_int_t ngx_http_inference_respond(ngx_http_inference_ctx_t *ctx);

/* Goes on with it; NGX_OK: that is all, ctx->rc. */
ngx_int_t ngx_http_inference_respond_more(ngx_http_inference_ctx_t *ctx);

/* Gives out to nginx, with ctx->free and ctx->busy; NGX_ERROR: so is ctx->rc. */
ngx_int_t ngx_http_inference_output(ngx_http_inference_ctx_t *ctx,
    ngx_chain_t *out);

/* The socket may be ready for more: NGX_DECLINED: it is.  Else as a phase. */
ngx_int_t ngx_http_inference_drained(ngx_http_inference_ctx_t *ctx);

/* Whether bytes that were given to nginx have not been sent yet. */
ngx_uint_t ngx_http_inference_is_blocked(ngx_http_inference_ctx_t *ctx);

/* Waits for the socket; NGX_OK: that is not possible, ctx->rc. */
ngx_int_t ngx_http_inference_wait_writable(ngx_http_inference_ctx_t *ctx);

/* The mark behind all bytes of a response; NULL: out of memory. */
ngx_chain_t *ngx_http_inference_end_link(ngx_http_request_t *r);


/* ---- events.c ----------------------------------------------------------- */

/* Responses of generate_stream as server-sent events; before the request is
   submitted. */
ngx_int_t ngx_http_inference_events_open(ngx_http_inference_ctx_t *ctx);

/* Gives back what it holds. */
void ngx_http_inference_events_free(ngx_http_inference_events_t *events);

/* Whether a response has come, or has been sent. */
ngx_uint_t ngx_http_inference_events_begun(ngx_http_inference_ctx_t *ctx);

/* A completion of the core, or NULL: the core has ended. */
void ngx_http_inference_events_completed(ngx_http_inference_ctx_t *ctx,
    const inf_completion_t *c);

/* The next response; NGX_OK: it is to be prepared; NGX_DECLINED: there is none
   any more. */
ngx_int_t ngx_http_inference_events_next(ngx_http_inference_ctx_t *ctx);

/* The head, once; NGX_DECLINED: events follow. */
ngx_int_t ngx_http_inference_events_respond(ngx_http_inference_ctx_t *ctx);

/* NGX_OK: that is all, ctx->rc; NGX_DECLINED: another response is to be
   prepared. */
ngx_int_t ngx_http_inference_events_send(ngx_http_inference_ctx_t *ctx);

/* The request fails after its head was sent: the last event says so. */
void ngx_http_inference_events_reject(ngx_http_inference_ctx_t *ctx);


/* ---- hand_on.c ---------------------------------------------------------- */

/* Whether another handler may want the body after us. */
ngx_uint_t ngx_http_inference_hand_on_wanted(ngx_http_inference_ctx_t *ctx);

/* Shows the body as r->request_body->bufs to the next handler of r;
   NGX_DECLINED: it is not whole, or other handlers have too many bytes. */
ngx_int_t ngx_http_inference_hand_on(ngx_http_inference_ctx_t *ctx);

/* The body is not the next handler's any more. */
void ngx_http_inference_hand_on_end(ngx_http_inference_ctx_t *ctx);


/* ---- store.c ------------------------------------------------------------ */

/* Before the first region is taken from ctx->client; NGX_ERROR: failed. */
ngx_int_t ngx_http_inference_current(ngx_http_inference_ctx_t *ctx);

/* An empty store that is about to get size bytes, or more. */
ngx_int_t ngx_http_inference_store_open(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_store_t *store, uint64_t size);

/* Room behind the store's len, at most want (not 0) bytes of it. */
ngx_int_t ngx_http_inference_store_room(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_store_t *store, size_t want, u_char **p, size_t *n);

/* Appends n bytes. */
ngx_int_t ngx_http_inference_store_put(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_store_t *store, const void *data, size_t n);

/* Room for n bytes in one piece behind the store's len. */
ngx_int_t ngx_http_inference_store_ensure(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_store_t *store, uint64_t n);

/*
 * A store's bytes may be read once it is settled: NGX_AGAIN: the slice is
 * over.  Or moves the rest at once.
 */
ngx_int_t ngx_http_inference_store_settle(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_store_t *store);
void ngx_http_inference_store_settle_now(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_store_t *store);

/* Frees its regions, if it has any; it may be opened again. */
void ngx_http_inference_store_free(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_store_t *store);

/* All three of the body. */
ngx_int_t ngx_http_inference_stores_settle(ngx_http_inference_ctx_t *ctx);
void ngx_http_inference_stores_free(ngx_http_inference_ctx_t *ctx);

/* Bytes of the arena that hold the body, without the record. */
uint64_t ngx_http_inference_stores_size(ngx_http_inference_ctx_t *ctx);

/* Frees the record and the decoded tensors behind it, unless the core may read
   them. */
void ngx_http_inference_record_free(ngx_http_inference_ctx_t *ctx);

/* The arena has no room for size more bytes; returns NGX_ERROR. */
ngx_int_t ngx_http_inference_arena_full(ngx_http_inference_ctx_t *ctx,
    uint64_t size);


/* ---- limits.c ----------------------------------------------------------- */

/* Bytes of a body, as received and without what inflating adds. */
off_t ngx_http_inference_max_body(ngx_http_inference_ctx_t *ctx);
off_t ngx_http_inference_location_max_body(ngx_http_request_t *r);
ngx_int_t ngx_http_inference_body_long(ngx_http_inference_ctx_t *ctx,
    const char *what);

/* The bytes that a compressed one may inflate to. */
off_t ngx_http_inference_max_inflated(ngx_http_inference_ctx_t *ctx);
ngx_int_t ngx_http_inference_inflated_long(ngx_http_inference_ctx_t *ctx);

/* How long its JSON may be. */
uint64_t ngx_http_inference_max_text(ngx_http_inference_ctx_t *ctx);
ngx_int_t ngx_http_inference_text_long(ngx_http_inference_ctx_t *ctx);

/* Whether the request may hold so many bytes of decoded tensors, too. */
ngx_int_t ngx_http_inference_check_share(ngx_http_inference_ctx_t *ctx,
    uint64_t decoded);

/* While the body is received the timer is that of inference_min_body_rate, or
   of the client's deadline; when it fires, NGX_OK: the body goes on; NGX_ERROR:
   it is too slow. */
void ngx_http_inference_start_rate(ngx_http_inference_ctx_t *ctx);
ngx_int_t ngx_http_inference_check_rate(ngx_http_inference_ctx_t *ctx);

/* The timer of ctx->deadline_ns; a request in flight has one in any case. */
void ngx_http_inference_arm_timer(ngx_http_inference_ctx_t *ctx);

/* The same, or earlier: after `within` ms. */
void ngx_http_inference_arm_timer_within(ngx_http_inference_ctx_t *ctx,
    ngx_msec_t within);

/* inference_timeout counts from this turn on: for the core, and as a timer. */
void ngx_http_inference_set_deadline(ngx_http_inference_ctx_t *ctx);
void ngx_http_inference_start_timer(ngx_http_inference_ctx_t *ctx);

/* From this turn to the deadline, and not before it: ms. */
ngx_msec_t ngx_http_inference_time_left(ngx_http_inference_ctx_t *ctx);

/* That timer has fired; NGX_OK: there is no limit, it was started again. */
ngx_int_t ngx_http_inference_check_timer(ngx_http_inference_ctx_t *ctx);

/* Whether the slice is over, asked after each step of INF_CODEC_BUDGET bytes
   at most. */
ngx_uint_t ngx_http_inference_slice_over(ngx_http_inference_ctx_t *ctx);


/* ---- error.c ------------------------------------------------------------ */

/* Records why the request fails; the first one stays.  They return
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

/* inference_timeout is over, or the client's own; with Retry-After where it has
   waited for its model. */
ngx_int_t ngx_http_inference_fail_timeout(ngx_http_inference_ctx_t *ctx);

/* It has waited for its model for so long, with Retry-After. */
ngx_int_t ngx_http_inference_fail_loading(ngx_http_inference_ctx_t *ctx,
    ngx_msec_t ms);

/* No core can be reached: 503. */
ngx_int_t ngx_http_inference_fail_no_core(ngx_http_inference_ctx_t *ctx);

/* A line of error_log with the text of an error that the client is told. */
void ngx_http_inference_log_error(ngx_http_inference_ctx_t *ctx,
    ngx_str_t error);

/* The line itself: that a request or response of the model has failed, and
   why. */
void ngx_http_inference_log_failed(ngx_http_inference_ctx_t *ctx,
    const char *what, const char *how, ngx_str_t why);

/* A line at level info: another handler answers, because of this error. */
void ngx_http_inference_log_handed_on(ngx_http_inference_ctx_t *ctx);

/* The status of HTTP that stands for a code, by the request's location. */
ngx_uint_t ngx_http_inference_status(ngx_http_inference_ctx_t *ctx,
    inf_err_code_t code);

/* Whether error_page names a status of errors; and: the row that names that of
   the failed request, or any; NULL: none. */
ngx_uint_t ngx_http_inference_may_intercept(ngx_http_request_t *r);
ngx_http_err_page_t *ngx_http_inference_intercepted(
    ngx_http_inference_ctx_t *ctx);
ngx_http_err_page_t *ngx_http_inference_page_of(ngx_http_inference_ctx_t *ctx,
    ngx_uint_t status);

/* Sends it; returns what the request is to be finalized with. */
ngx_int_t ngx_http_inference_send_error(ngx_http_inference_ctx_t *ctx);

/* Sends buffers, none of them empty; NULL: an empty body. */
ngx_int_t ngx_http_inference_send_chain(ngx_http_request_t *r,
    ngx_uint_t status, ngx_str_t *type, ngx_chain_t *out);

/* Every head goes through here, and each body that is whole. */
ngx_int_t ngx_http_inference_send_header(ngx_http_request_t *r);
ngx_int_t ngx_http_inference_send_body(ngx_http_request_t *r,
    ngx_chain_t *out);

/* Both texts are borrowed; list is that of headers or of trailers. */
ngx_int_t ngx_http_inference_add_header(ngx_http_request_t *r, char *key,
    char *value);
ngx_int_t ngx_http_inference_add_field(ngx_list_t *list, const char *key,
    const u_char *value, size_t len);

/* The next field of a list of headers, NULL: there is none; part is the list's
   first part and i 0 before the first. */
ngx_table_elt_t *ngx_http_inference_next_field(ngx_list_part_t **part,
    ngx_uint_t *i);

/* A buffer over n bytes that stay the caller's, and its link; n 0: a buffer
   without bytes, for a mark.  NULL: out of memory. */
ngx_chain_t *ngx_http_inference_link(ngx_pool_t *pool, const void *p,
    size_t n);

/*
 * Makes a text that a client has chosen fit for headers and logs: control
 * characters become \xHH, and its end is cut off beyond a bound.
 */
ngx_int_t ngx_http_inference_one_line(ngx_pool_t *pool, ngx_str_t *value);

/* Shortens a text of UTF-8 to len bytes, not in the midst of a character. */
void ngx_http_inference_cut(ngx_str_t *value, size_t len);


#endif /* NGX_HTTP_INFERENCE_REQUEST_H */
