/*
 * ngx_http_inference_grpc.h - the part of a request that only gRPC has.
 *
 * Owner    The call lives in the context's pool; its pieces are freed with the
 *          context.
 * Thread   the worker's event loop.
 * Units    bytes; ns for deadlines.
 * Errors   As ngx_http_inference_request.h; the status of gRPC follows from
 *          what ngx_http_inference_fail*() has recorded.
 * Route    endpoint -> [method, metadata] -> body -> [frames, message] ->
 *          infer|control -> core -> reply -> [messages, trailers].
 *
 * Sources: "gRPC over HTTP2" of the gRPC project for framing, metadata,
 * deadlines and statuses; KServe v2 for the methods.
 */

#ifndef NGX_HTTP_INFERENCE_GRPC_H
#define NGX_HTTP_INFERENCE_GRPC_H

#include "ngx_module/ngx_http_inference_request.h"

#include "core/proto/grpc.h"
#include "core/proto/infer_contents.h"
#include "core/proto/infer_message.h"
#include "core/proto/infer_split.h"
#include "core/proto/reply_message.h"


typedef struct ngx_http_inference_deflate_s  ngx_http_inference_deflate_t;

struct ngx_http_inference_grpc_s {
    inf_grpc_encoding_t          in;            /* of compressed messages    */
    inf_grpc_encoding_t          out;           /* of inference responses    */

    u_char                       prefix[INF_GRPC_PREFIX];
    ngx_uint_t                   prefix_len;    /* bytes received            */
    uint64_t                     left;          /* bytes missing of the
                                                   message                   */
    ngx_uint_t                   messages;      /* messages begun            */
    ngx_http_inference_inflate_t  *inflate;     /* of a compressed message   */
    ngx_pool_t                  *pool;          /* of inflate                */

    inf_split_t                  split;         /* an inference's message    */
    inf_infer_message_t         *message;
    uint64_t                    *places;        /* in body.data and ...      */
    uint64_t                    *sizes;         /* ... of each raw tensor    */
    uint32_t                     places_max;

    inf_reply_t                 *reply;
    inf_arena_t                 *arena;         /* of reply and deflate      */
    ngx_http_inference_deflate_t  *deflate;     /* compresses reply, or NULL */

    inf_grpc_status_t            status;        /* of a failure without an
                                                   internal code; OK: none   */
    unsigned                     compressed:1;  /* the message is            */
    unsigned                     empty_final:1; /* empty final responses are
                                                   sent to the client        */
    unsigned                     stream_errors:1;   /* an error of a model
                                                   ends the stream           */
};


#define ngx_http_inference_is_stream(ctx)                                     \
    ((ctx)->endpoint->verb == NGX_HTTP_INFERENCE_STREAM_INFER)

/* whether the stream receives and sends messages */
#define ngx_http_inference_is_streaming(ctx)                                  \
    ((ctx)->stream && (ctx)->state == NGX_HTTP_INFERENCE_WAITING)


/* ---- grpc.c -------------------------------------------------------------- */

/* Whether the request is a call of gRPC, by its version of HTTP and its content
   type. */
ngx_uint_t ngx_http_inference_is_grpc(ngx_http_request_t *r);

/* The method that the path names in its location, or NULL. */
const ngx_http_inference_endpoint_t *ngx_http_inference_grpc_match(
    ngx_http_request_t *r);

/* Sets method and call, and what the metadata ask for; NGX_ERROR: failed. */
ngx_int_t ngx_http_inference_grpc_find_method(ngx_http_inference_ctx_t *ctx);

/* Of each message of a stream. */
const ngx_http_inference_endpoint_t *ngx_http_inference_grpc_infer_method(
    void);

/* Fails with a status of gRPC's own; returns NGX_ERROR. */
ngx_int_t ngx_http_inference_grpc_fail(ngx_http_inference_ctx_t *ctx,
    inf_grpc_status_t status, const char *fmt, ...);


/* ---- grpc_body.c --------------------------------------------------------- */

/* Receives n bytes of frames. */
ngx_int_t ngx_http_inference_grpc_place(ngx_http_inference_ctx_t *ctx,
    const u_char *p, size_t n);

/* Called at the body's end: fails if the message is incomplete. */
ngx_int_t ngx_http_inference_grpc_end(ngx_http_inference_ctx_t *ctx);

/* Inflates a compressed message; NGX_AGAIN: the slice is over. */
ngx_int_t ngx_http_inference_grpc_unpack(ngx_http_inference_ctx_t *ctx);

/* Parses the message of an inference into ctx->infer and ctx->offsets.
   NGX_AGAIN: the slice is over. */
ngx_int_t ngx_http_inference_grpc_read(ngx_http_inference_ctx_t *ctx);


/* ---- grpc_reply.c -------------------------------------------------------- */

/* Creates ctx->grpc->reply from the checked record. */
ngx_int_t ngx_http_inference_grpc_open_reply(ngx_http_inference_ctx_t *ctx,
    const inf_response_record_t *record, const void *arena);

/* Computes classification and lengths.  NGX_OK: sending may begin. */
ngx_int_t ngx_http_inference_grpc_prepare(ngx_http_inference_ctx_t *ctx);

/* The pieces of the prepared reply, compressed or not. */
uint32_t ngx_http_inference_grpc_piece_count(
    const ngx_http_inference_grpc_t *grpc);
inf_slice_t ngx_http_inference_grpc_piece(
    const ngx_http_inference_grpc_t *grpc, uint32_t i);

/* Frees what the call holds outside of arenas. */
void ngx_http_inference_grpc_free(ngx_http_inference_grpc_t *grpc);

/* Sends the reply, or a call's answer; sets ctx->rc. */
ngx_int_t ngx_http_inference_grpc_respond(ngx_http_inference_ctx_t *ctx);
ngx_int_t ngx_http_inference_grpc_answer(ngx_http_inference_ctx_t *ctx,
    ngx_str_t *message);

/* Sends the failure, in trailers or instead of a response.  Returns the code to
   finalize the request with. */
ngx_int_t ngx_http_inference_grpc_send_error(ngx_http_inference_ctx_t *ctx);

/* Adds the headers of a gRPC response without sending them. */
ngx_int_t ngx_http_inference_grpc_head(ngx_http_inference_ctx_t *ctx);

/* Sends the trailers; text may be NULL.  Returns the code to finalize the
   request with. */
ngx_int_t ngx_http_inference_grpc_send_trailers(ngx_http_inference_ctx_t *ctx,
    inf_grpc_status_t status, const ngx_str_t *text);

/* Sets the head of r to status and text without a body. */
ngx_int_t ngx_http_inference_grpc_trailers_only(ngx_http_request_t *r,
    inf_grpc_status_t status, const ngx_str_t *text);


/* ---- grpc_stream.c ------------------------------------------------------- */

/* Prepares the call; its messages come and go while it waits. */
ngx_int_t ngx_http_inference_stream_open(ngx_http_inference_ctx_t *ctx);

/* The phase of the call; NGX_DECLINED: it has ended. */
ngx_int_t ngx_http_inference_stream(ngx_http_inference_ctx_t *ctx);

/* The last trailers, unless nothing can be sent; ctx->rc. */
ngx_int_t ngx_http_inference_stream_close(ngx_http_inference_ctx_t *ctx);

/* Whether what was taken of the body stays in nginx's buffer for now. */
ngx_uint_t ngx_http_inference_stream_holds_window(
    ngx_http_inference_ctx_t *ctx);

/* The call fails: its messages are given up. */
void ngx_http_inference_stream_abandon(ngx_http_inference_ctx_t *ctx);

/* Gives an abandoned call to another handler: frees what its messages hold.
   NGX_DECLINED: the call keeps our error. */
ngx_int_t ngx_http_inference_stream_hand_on(ngx_http_inference_ctx_t *ctx);

/* The call's time is over, or it has been idle since its worker began to
   leave. */
ngx_int_t ngx_http_inference_stream_check_time(ngx_http_inference_ctx_t *ctx);

/* A message is being received and its time is over: the timer of the rate. */
ngx_int_t ngx_http_inference_stream_check_rate(ngx_http_inference_ctx_t *ctx);


/* ---- grpc_message.c ------------------------------------------------------ */

/* Called before a message is submitted; fails while nginx stops. */
ngx_int_t ngx_http_inference_stream_admit(ngx_http_inference_ctx_t *ctx);

/* The phases of a message.  next waits for a response and opens it; respond
   sends it (NGX_OK: it was the last); reject sends the failure in its turn. */
ngx_int_t ngx_http_inference_stream_next(ngx_http_inference_ctx_t *ctx);
ngx_int_t ngx_http_inference_stream_respond(ngx_http_inference_ctx_t *ctx);
ngx_int_t ngx_http_inference_stream_reject(ngx_http_inference_ctx_t *ctx);

/* Ends a message; its memory may be used for another message. */
void ngx_http_inference_stream_over(ngx_http_inference_ctx_t *ctx);

/* Sets the call's number for the core, from the first request until all
   responses were sent, and the message's place in it; 0: ctx is no message, or
   there are too many calls. */
void ngx_http_inference_stream_name(ngx_http_inference_ctx_t *ctx,
    inf_submission_t *s);

/* Counts the bytes that a message holds; reading pauses in a call that holds
   many. */
void ngx_http_inference_stream_count(ngx_http_inference_ctx_t *ctx,
    uint64_t size);

/* Whether ctx is a message with a response. */
ngx_uint_t ngx_http_inference_stream_begun(ngx_http_inference_ctx_t *ctx);

/* Takes a completion of a message; c NULL: the core has exited. */
void ngx_http_inference_stream_completed(ngx_http_inference_ctx_t *ctx,
    const inf_completion_t *c);


/* ---- grpc_watch.c -------------------------------------------------------- */

/* Reads the service that the call asks for, and makes it a watcher. */
ngx_int_t ngx_http_inference_watcher_open(ngx_http_inference_ctx_t *ctx);

/* The phase of a watcher.  NGX_DECLINED: sending failed, ctx->rc is set. */
ngx_int_t ngx_http_inference_watcher(ngx_http_inference_ctx_t *ctx);


/* ---- grpc_deflate.c ------------------------------------------------------ */

/* Creates a compressor of a prepared reply, which stays the caller's; the
   pieces are the arena's.  NULL: out of memory. */
ngx_http_inference_deflate_t *ngx_http_inference_deflate_new(
    inf_reply_t *reply, inf_grpc_encoding_t encoding, inf_arena_t *arena);

/* Frees memory outside the arena; d may be NULL. */
void ngx_http_inference_deflate_free(ngx_http_inference_deflate_t *d);

/* NGX_OK: all is compressed; NGX_AGAIN: the slice is over. */
ngx_int_t ngx_http_inference_deflate(ngx_http_inference_ctx_t *ctx,
    ngx_http_inference_deflate_t *d);

/* As inf_reply_size(), inf_reply_piece_count() and inf_reply_piece(). */
uint64_t ngx_http_inference_deflate_size(
    const ngx_http_inference_deflate_t *d);
uint32_t ngx_http_inference_deflate_count(
    const ngx_http_inference_deflate_t *d);
inf_slice_t ngx_http_inference_deflate_get(
    const ngx_http_inference_deflate_t *d, uint32_t i);


/* ---- grpc_filter.c ------------------------------------------------------- */

/* Installs the header filter, which runs before nginx's own filters. */
void ngx_http_inference_grpc_install_filter(void);

/* The gRPC project's "HTTP to gRPC Status Code Mapping", and our status for a
   message that is too large. */
inf_grpc_status_t ngx_http_inference_grpc_status_of(ngx_uint_t status);


#endif /* NGX_HTTP_INFERENCE_GRPC_H */
