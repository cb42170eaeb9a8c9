/*
 * ngx_http_inference_request.h - the life of one request in the worker.
 *
 * Owner    The context lives in r->pool; its pool cleanup gives back whatever
 *          the shared memory still holds for it, its request cleanup cancels
 *          what the core has not answered.
 * Thread   the worker's event loop.
 * Units    bytes, ms for timers, ns for deadlines and slices.
 * Errors   A step that fails has called ngx_http_inference_fail*() and
 *          returns NGX_ERROR; ngx_http_inference_reject() answers then.
 * Route    handler -> endpoint -> body (inflate) -> infer|control -> client
 *          -> infer|control -> response.
 */

#ifndef NGX_HTTP_INFERENCE_REQUEST_H
#define NGX_HTTP_INFERENCE_REQUEST_H

#include "ngx_module/ngx_http_inference.h"

#include "core/base/arena.h"
#include "core/base/buf.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/slice.h"
#include "core/proto/infer_data.h"
#include "core/proto/infer_record.h"
#include "core/proto/infer_request.h"
#include "core/proto/infer_response.h"


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

/* what is charged at a time */
#define NGX_HTTP_INFERENCE_STORE_STEP   ((uint64_t) 4096)

/* a call's body up to this has room when the arena is full */
#define NGX_HTTP_INFERENCE_CALL_SIZE    ((uint64_t) 16 * 1024)

/* a request in flight always owns a timer, or a worker that shuts down would
   leave before the answer */
#define NGX_HTTP_INFERENCE_NO_TIMEOUT   ((ngx_msec_t) 24 * 3600 * 1000)


typedef enum {
    NGX_HTTP_INFERENCE_SERVER_LIVE = 1,
    NGX_HTTP_INFERENCE_SERVER_READY,
    NGX_HTTP_INFERENCE_MODEL_READY,
    NGX_HTTP_INFERENCE_SERVER_METADATA,
    NGX_HTTP_INFERENCE_MODEL_METADATA,
    NGX_HTTP_INFERENCE_MODEL_CONFIG,
    NGX_HTTP_INFERENCE_MODEL_INFER,
    NGX_HTTP_INFERENCE_STATISTICS_READ,
    NGX_HTTP_INFERENCE_METRICS_TEXT,
    NGX_HTTP_INFERENCE_REPOSITORY_INDEX,
    NGX_HTTP_INFERENCE_REPOSITORY_LOAD,
    NGX_HTTP_INFERENCE_REPOSITORY_UNLOAD,
    NGX_HTTP_INFERENCE_REPOSITORY_NAMED,    /* never supported               */
    NGX_HTTP_INFERENCE_NOT_BUILT        /* known, but not served yet         */
} ngx_http_inference_verb_e;


/* a row of the endpoint table */
typedef struct {
    ngx_str_t                    pattern;
    ngx_uint_t                   methods;       /* NGX_HTTP_GET|...          */
    ngx_uint_t                   part;
    ngx_http_inference_verb_e    verb;
    ngx_str_t                    name;          /* $inference_verb           */
} ngx_http_inference_endpoint_t;


typedef enum {
    NGX_HTTP_INFERENCE_CONNECTING,      /* waits for a channel               */
    NGX_HTTP_INFERENCE_BORROWING,       /* main's body arrives               */
    NGX_HTTP_INFERENCE_RECEIVING,       /* the body arrives                  */
    NGX_HTTP_INFERENCE_READING,         /* it is here; inflated, read        */
    NGX_HTTP_INFERENCE_DECODING,        /* JSON numbers become typed bytes   */
    NGX_HTTP_INFERENCE_WAITING,         /* the core has it                   */
    NGX_HTTP_INFERENCE_PREPARING,       /* classification, lengths           */
    NGX_HTTP_INFERENCE_SENDING,         /* JSON is made as the socket drains */
    NGX_HTTP_INFERENCE_DONE             /* finalized, or about to be         */
} ngx_http_inference_state_e;


typedef enum {
    NGX_HTTP_INFERENCE_TEXT,            /* the JSON header                   */
    NGX_HTTP_INFERENCE_TENSOR,          /* each tensor at its aligned place  */
    NGX_HTTP_INFERENCE_FLAT,            /* tensors in one piece              */
    NGX_HTTP_INFERENCE_END              /* nothing more may come             */
} ngx_http_inference_place_e;


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

typedef struct {
    ngx_chain_t                 *in;            /* read by somebody before   */
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
    ngx_str_t                    encoding;
    ngx_http_inference_inflate_t  *inflate;     /* NULL: not compressed      */
    ngx_http_inference_store_t   packed;        /* compressed, as received   */
    ngx_http_inference_store_t   text;
    ngx_http_inference_store_t   data;          /* binary tensors, raw body  */
    ngx_http_inference_place_e   place;
    ngx_uint_t                   tensor;        /* input being received      */
    uint64_t                     filled;        /* of it                     */
    unsigned                     complete:1;    /* the last byte is here     */
    unsigned                     ended:1;       /* end of the plain bytes    */
    unsigned                     lagging:1;     /* text is read in slices    */
    unsigned                     rejected:1;    /* the rest is swallowed     */
    unsigned                     foreign:1;     /* somebody else received it */
    unsigned                     checked:1;     /* tail length is right      */
    unsigned                     inflated:1;    /* to the stream's end       */
    unsigned                     borrow:1;      /* main has yet to read it   */
    unsigned                     flat:1;        /* data is in one piece      */
} ngx_http_inference_body_t;


typedef struct {
    uint64_t                     epoch;
    uint64_t                     offset;        /* of the response region    */
    uint64_t                     len;
    uint32_t                     status;
    unsigned                     held:1;        /* to be released            */
} ngx_http_inference_reply_t;


typedef struct ngx_http_inference_ctx_s  ngx_http_inference_ctx_t;

struct ngx_http_inference_ctx_s {
    ngx_http_request_t          *request;
    ngx_http_inference_state_e   state;
    const ngx_http_inference_endpoint_t  *endpoint;

    ngx_str_t                    model;
    ngx_str_t                    version_text;
    int64_t                      version;       /* -1: by policy             */

    ngx_event_t                  timer;
    ngx_event_t                  turn;          /* posted: go on with it     */
    uint64_t                     slice_end_ns;
    ngx_uint_t                   slice_steps;
    uint64_t                     received_ns;
    uint64_t                     deadline_ns;   /* 0: none                   */

    ngx_http_inference_ticket_t  ticket;
    inf_client_t                *client;        /* valid while it has regions
                                                   of ours                   */
    uint64_t                     epoch;

    ngx_http_inference_body_t    body;
    ngx_http_event_handler_pt    main_read_handler;     /* while borrowing   */
    ngx_http_event_handler_pt    main_write_handler;

    inf_arena_t                  arena;         /* tables and texts          */
    inf_infer_reader_t          *reader;
    inf_infer_request_t          infer;
    inf_data_decoder_t           decoder;
    inf_region_t                *record;        /* and the decoded tensors   */
    size_t                       record_size;   /* without those             */
    uint64_t                    *offsets;       /* of each input's data, in
                                                   its region                */
    ngx_uint_t                   input;         /* being decoded             */

    ngx_http_inference_reply_t   reply;
    ngx_uint_t                   replies;
    inf_response_writer_t       *writer;
    uint64_t                     json_len;      /* of the answer, measured  */
    ngx_chain_t                 *free;
    ngx_chain_t                 *busy;
    uint64_t                     queue_ns;
    uint64_t                     compute_ns;
    uint32_t                     batch_size;
    ngx_str_t                    backend;
    ngx_str_t                    instance;

    ngx_uint_t                   status;        /* HTTP, once failed         */
    inf_err_code_t               code;
    inf_err_cause_t              cause;         /* set before it has failed  */
    ngx_str_t                    error;

    unsigned                     failed:1;
    unsigned                     executed:1;    /* times are known           */
    unsigned                     raw:1;         /* raw binary mode           */
    unsigned                     read:1;        /* the JSON was read         */
    unsigned                     planned:1;     /* tensors have places       */
    unsigned                     decoding:1;    /* decoder is initialised    */
    unsigned                     retry_after:1;
    unsigned                     graced:1;      /* waits for the first
                                                   channel, not for long     */
    unsigned                     live:1;        /* answered by the worker    */
    unsigned                     accept_encoding:1;
    unsigned                     prepared:1;    /* the writer is             */
    unsigned                     measured:1;    /* json_len is known         */
    unsigned                     text_done:1;   /* JSON of the answer made   */
    unsigned                     sent:1;        /* to the core, once         */
    unsigned                     left:1;        /* by its client, unanswered */
    unsigned                     abandoned:1;   /* the ticket was            */
};


/* ---- handler.c ---------------------------------------------------------- */

/* The request's context, also after an internal redirect; NULL: none. */
ngx_http_inference_ctx_t *ngx_http_inference_ctx(ngx_http_request_t *r);

/* Whether nginx has redirected the request: the context is given up then. */
ngx_uint_t ngx_http_inference_disowned(ngx_http_inference_ctx_t *ctx);

/* The context that goes on when mr's body has been read for a subrequest, or
   NULL. */
ngx_http_inference_ctx_t *ngx_http_inference_borrower(ngx_http_request_t *mr);

/* Before the first region is taken from ctx->client; NGX_ERROR: failed. */
ngx_int_t ngx_http_inference_current(ngx_http_inference_ctx_t *ctx);

/* Waits for the client to leave, while the request waits for something. */
void ngx_http_inference_watch(ngx_http_inference_ctx_t *ctx);

/* Goes on in the next turn of the event loop. */
void ngx_http_inference_yield(ngx_http_inference_ctx_t *ctx);

/* Does what the state asks for, until it waits or the slice is over. */
void ngx_http_inference_step(ngx_http_inference_ctx_t *ctx);

/* A new slice begins; whether the current one is over, asked after each step
   of INF_CODEC_BUDGET bytes at most. */
void ngx_http_inference_slice(ngx_http_inference_ctx_t *ctx);
ngx_uint_t ngx_http_inference_slice_over(ngx_http_inference_ctx_t *ctx);

/* inference_timeout counts from now. */
void ngx_http_inference_set_deadline(ngx_http_inference_ctx_t *ctx);

/* Starts the timer and the deadline of the part that the core is in. */
void ngx_http_inference_start_timer(ngx_http_inference_ctx_t *ctx);

/* Ends the request; the context may be gone afterwards. */
void ngx_http_inference_finalize(ngx_http_inference_ctx_t *ctx, ngx_int_t rc);


/* ---- endpoint.c --------------------------------------------------------- */

/* Sets endpoint, model and version; NGX_ERROR: failed. */
ngx_int_t ngx_http_inference_find_endpoint(ngx_http_inference_ctx_t *ctx);

/* Whether it is a call of the core that comes with a body. */
ngx_uint_t ngx_http_inference_call_has_body(ngx_http_inference_ctx_t *ctx);


/* ---- body.c ------------------------------------------------------------- */

/* Looks at the request's headers, before anything is received. */
ngx_int_t ngx_http_inference_body_check(ngx_http_inference_ctx_t *ctx);

/* Receives it, or takes what was received before; may end the request.
   Returns what a content handler returns. */
ngx_int_t ngx_http_inference_body_read(ngx_http_inference_ctx_t *ctx);

/* The answer comes now, wherever the body is: discards or stops it. */
void ngx_http_inference_body_stop(ngx_http_inference_ctx_t *ctx);

/* Settles its stores; NGX_AGAIN: the slice is over. */
ngx_int_t ngx_http_inference_body_settle(ngx_http_inference_ctx_t *ctx);

void ngx_http_inference_body_free(ngx_http_inference_ctx_t *ctx);


/* ---- borrow.c ----------------------------------------------------------- */

/* A subrequest whose main has a body that nobody has read. */
ngx_uint_t ngx_http_inference_borrow_wanted(ngx_http_request_t *r);

/* Reads it; returns what a content handler returns. */
ngx_int_t ngx_http_inference_borrow(ngx_http_inference_ctx_t *ctx);

/* The handler of the timer while a body is borrowed. */
void ngx_http_inference_borrow_poll(ngx_http_inference_ctx_t *ctx);

/* The borrowed body is complete: continues as with a body read before. */
void ngx_http_inference_borrowed(ngx_http_inference_ctx_t *ctx);


/* ---- source.c ----------------------------------------------------------- */

/* Inflates and places what was received before; NGX_AGAIN: slice is over. */
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

/* The bytes from here on are kept in one piece. */
ngx_int_t ngx_http_inference_place_flat(ngx_http_inference_ctx_t *ctx);

/* No more plain bytes will come. */
ngx_int_t ngx_http_inference_place_end(ngx_http_inference_ctx_t *ctx);

/* Places for the binary tensors of ctx->infer. */
ngx_int_t ngx_http_inference_place_plan(ngx_http_inference_ctx_t *ctx);

/* Whether the binary tensors take the whole tail; after the end. */
ngx_int_t ngx_http_inference_place_check(ngx_http_inference_ctx_t *ctx);


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

/* While the body is received the timer is that of inference_min_body_rate;
   when it fires, NGX_OK: the body goes on; NGX_ERROR: it is too slow. */
void ngx_http_inference_start_rate(ngx_http_inference_ctx_t *ctx);
ngx_int_t ngx_http_inference_check_rate(ngx_http_inference_ctx_t *ctx);


/* ---- store.c ------------------------------------------------------------ */

ngx_int_t ngx_http_inference_store_open(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_store_t *store, uint64_t size);

/* Room behind the store's len, at most want (not 0) bytes of it. */
ngx_int_t ngx_http_inference_store_room(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_store_t *store, size_t want, u_char **p, size_t *n);

/* Room for n bytes in one piece behind the store's len. */
ngx_int_t ngx_http_inference_store_ensure(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_store_t *store, uint64_t n);

/*
 * A store's bytes may be read once it is settled: NGX_AGAIN: the slice is
 * over.  Or moves whatever is left at once.
 */
ngx_int_t ngx_http_inference_store_settle(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_store_t *store);
void ngx_http_inference_store_settle_now(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_store_t *store);

void ngx_http_inference_store_free(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_store_t *store);

/* The arena has no room for size more bytes; returns NGX_ERROR. */
ngx_int_t ngx_http_inference_arena_full(ngx_http_inference_ctx_t *ctx,
    uint64_t size);


/* ---- hand_on.c ---------------------------------------------------------- */

/* Whether another handler may want the body after us. */
ngx_uint_t ngx_http_inference_hand_on_wanted(ngx_http_inference_ctx_t *ctx);

/* Shows the body as r->request_body->bufs to whoever handles r next;
   NGX_DECLINED: it is not whole. */
ngx_int_t ngx_http_inference_hand_on(ngx_http_inference_ctx_t *ctx);


/* ---- inflate.c ---------------------------------------------------------- */

ngx_http_inference_inflate_t *ngx_http_inference_inflate_new(ngx_pool_t *pool);

/*
 * Inflates from *in (in_len bytes) to out; both counts are decreased by what
 * was used.  NGX_OK: go on; NGX_DONE: the stream has ended; NGX_ERROR: it is
 * corrupt, *reason says why.
 */
ngx_int_t ngx_http_inference_inflate(ngx_http_inference_inflate_t *inflate,
    const u_char **in, size_t *in_len, u_char **out, size_t *out_len,
    const char **reason);


/* ---- infer.c ------------------------------------------------------------ */

/* Prepares the reader (or raw mode). */
ngx_int_t ngx_http_inference_infer_init(ngx_http_inference_ctx_t *ctx);

/* Reads on in the JSON; NGX_OK: all is read; NGX_AGAIN: slice over or more
   bytes needed. */
ngx_int_t ngx_http_inference_infer_read(ngx_http_inference_ctx_t *ctx);

/* NGX_OK: all is decoded; NGX_AGAIN: slice over. */
ngx_int_t ngx_http_inference_infer_decode(ngx_http_inference_ctx_t *ctx);

ngx_int_t ngx_http_inference_infer_submit(ngx_http_inference_ctx_t *ctx);


/* ---- control.c, repository.c -------------------------------------------- */

/* A call of the core; as a content handler. */
ngx_int_t ngx_http_inference_control(ngx_http_inference_ctx_t *ctx);

/* A call whose body is here; NGX_ERROR: failed. */
ngx_int_t ngx_http_inference_control_submit(ngx_http_inference_ctx_t *ctx);

/* Room for what makes a record of the body's text. */
ngx_int_t ngx_http_inference_repository_room(ngx_http_inference_ctx_t *ctx);

/* Makes a record of the body's text: what is to be submitted. */
ngx_int_t ngx_http_inference_repository_pack(ngx_http_inference_ctx_t *ctx,
    inf_submission_t *s);


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

/* inference_timeout is over. */
ngx_int_t ngx_http_inference_fail_timeout(ngx_http_inference_ctx_t *ctx);

/* No core can be reached: 503. */
ngx_int_t ngx_http_inference_fail_no_core(ngx_http_inference_ctx_t *ctx);

/* Answers a failed request before it has gone asynchronous; returns what a
   content handler returns. */
ngx_int_t ngx_http_inference_reject_early(ngx_http_inference_ctx_t *ctx);

/* Answers a failed request and finalizes it. */
void ngx_http_inference_reject(ngx_http_inference_ctx_t *ctx);

/* Sends a short JSON body, of which it makes a copy, or an empty one. */
ngx_int_t ngx_http_inference_send(ngx_http_request_t *r, ngx_uint_t status,
    ngx_str_t *body);

/* The same of another media type. */
ngx_int_t ngx_http_inference_send_as(ngx_http_request_t *r, ngx_uint_t status,
    ngx_str_t *type, ngx_str_t *body);

/* The same of buffers, none of them empty; NULL: an empty body. */
ngx_int_t ngx_http_inference_send_chain(ngx_http_request_t *r,
    ngx_uint_t status, ngx_str_t *type, ngx_chain_t *out);

/* Every head goes through here. */
ngx_int_t ngx_http_inference_send_header(ngx_http_request_t *r);

/* Both texts are borrowed. */
ngx_int_t ngx_http_inference_add_header(ngx_http_request_t *r, char *key,
    char *value);


/* ---- reply.c ------------------------------------------------------------ */

/*
 * Takes the core's completion of a ticket: the first response is held, others
 * are counted and released.  NGX_AGAIN: more will come; NGX_OK: that was the
 * last, or the request failed.
 */
ngx_int_t ngx_http_inference_take_reply(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_ticket_t *ticket, const inf_completion_t *c);

/* The held reply, copied and checked.  NGX_ERROR: failed. */
ngx_int_t ngx_http_inference_open_reply(ngx_http_inference_ctx_t *ctx);

/* NGX_OK: sending may begin; NGX_AGAIN: slice over. */
ngx_int_t ngx_http_inference_prepare(ngx_http_inference_ctx_t *ctx);


/* ---- variables.c -------------------------------------------------------- */

/*
 * Makes a text that a client has chosen fit for headers and logs: control
 * characters become \xHH, and its end is cut off beyond a bound.
 */
ngx_int_t ngx_http_inference_one_line(ngx_pool_t *pool, ngx_str_t *value);


/* ---- response.c --------------------------------------------------------- */

/* Begins the response, goes on with it; may finalize the request. */
void ngx_http_inference_respond(ngx_http_inference_ctx_t *ctx);
void ngx_http_inference_respond_more(ngx_http_inference_ctx_t *ctx);


#endif /* NGX_HTTP_INFERENCE_REQUEST_H */
