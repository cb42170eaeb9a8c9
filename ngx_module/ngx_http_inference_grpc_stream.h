/*
 * ngx_http_inference_grpc_stream.h - a call of ModelStreamInfer, and the
 *                                    state that its messages share.
 *
 * Owner    The call owns its messages, outputs and queued replies.  Ended ones
 *          are reused by later messages until the call ends.
 * Thread   the worker's event loop.
 * Units    bytes.
 * Errors   As ngx_http_inference_request.h: a message fails alone, or the call
 *          fails with all messages.
 * Route    body -> [call -> message] -> core -> [message -> call] -> socket.
 *
 * A message is one inference with a context of its own, which the driver runs.
 * The call calls functions of its messages.  A message wakes its call by
 * posting an event, and never calls the call.
 */

#ifndef NGX_HTTP_INFERENCE_GRPC_STREAM_H
#define NGX_HTTP_INFERENCE_GRPC_STREAM_H

#include "ngx_module/ngx_http_inference_leaving.h"
#include "ngx_module/ngx_http_inference_peek.h"


/* error of requests, and of idle calls, while nginx exits */
#define NGX_HTTP_INFERENCE_STOPPING                                           \
    "GRPC server is shutting down and has stopped accepting new requests."

/* Limit of the bytes of requests and prepared responses of a call, which one of
   them may exceed; the call is not read while they exceed it.  Half of the
   core's limit for responses (core/service/response_flow.h): a call whose
   responses are as large as its requests stops to be read before a backend has
   to wait. */
#define NGX_HTTP_INFERENCE_STREAM_HELD  ((uint64_t) 3 * 1024 * 1024)

/* Limit of the bytes of prepared messages of decoupled models, which one of
   them may exceed; the core limits the responses of these models. */
#define NGX_HTTP_INFERENCE_STREAM_PREPARED  ((uint64_t) 256 * 1024)


/* a message to be written to the socket */

typedef struct {
    ngx_queue_t                  queue;
    inf_arena_t                  arena;         /* of all but the tensors    */
    ngx_http_inference_reply_t   reply;         /* held: owns the tensors    */
    ngx_buf_t                   *last;          /* buffer whose end marks the
                                                   message as sent           */
    uint64_t                     size;
} ngx_http_inference_stream_output_t;


struct ngx_http_inference_stream_s {
    ngx_http_inference_ctx_t    *call;
    ngx_http_inference_leaver_t  leaver;
    ngx_queue_t                  messages;      /* in order of arrival       */
    ngx_uint_t                   open;          /* number of messages        */
    uint64_t                     taken;         /* bytes of complete messages */
    ngx_http_inference_message_t  *receiving;   /* incomplete, or NULL       */
    ngx_buf_t                   *rest;          /* bytes of the call received
                                                   while it was full         */
    ngx_http_inference_waiter_t  waiter;        /* for a preview             */
    size_t                       previewed;     /* bytes taken, which will be
                                                   read again                */
    ngx_http_inference_replies_t  replies;      /* of all messages           */
    off_t                        sent;          /* connection's sent when the
                                                   send timer was started    */

    ngx_queue_t                  outputs;       /* not drained, in order     */
    uint64_t                     held;          /* bytes of outputs          */
    uint32_t                     number;        /* for the core; 0: none     */
    ngx_chain_t                 *pending;       /* to be passed to nginx     */
    ngx_chain_t                **last;
    ngx_chain_t                 *free;
    ngx_chain_t                 *busy;

    ngx_queue_t                  spare_messages;
    ngx_queue_t                  spare_outputs;

    unsigned                     lingering:1;   /* idle while its worker
                                                   exits                     */
    unsigned                     ended:1;       /* by the client             */
    unsigned                     broken:1;      /* nothing can be sent       */
};


/* one request of the call, at the end with the last of its responses */

struct ngx_http_inference_message_s {
    ngx_http_inference_ctx_t     ctx;           /* first member              */
    ngx_http_inference_grpc_t    grpc;
    ngx_http_inference_stream_t *stream;
    ngx_queue_t                  queue;         /* in messages, or spare     */
    ngx_queue_t                  replies;       /* not sent yet              */
    ngx_uint_t                   responses;     /* that have come            */
    uint64_t                     size;          /* counted in stream->taken  */
    uint64_t                     order;         /* for the core: increases   */
    ngx_http_inference_stream_output_t  *output;    /* being prepared        */
    unsigned                     decoupled:1;   /* of its model              */
    unsigned                     skipped:1;     /* failed during reception   */
    unsigned                     final:1;       /* output is the last        */
};


#define ngx_http_inference_stream_of(q)                                       \
    (ngx_queue_data(q, ngx_http_inference_message_t, queue))


/* ---- grpc_message.c ------------------------------------------------------ */

/* Adds a message at the end of messages, to be received; NULL: out of
   memory. */
ngx_http_inference_message_t *ngx_http_inference_stream_message(
    ngx_http_inference_stream_t *stream);

/* Frees the call's number when no message is open and no response is left. */
void ngx_http_inference_stream_give_number(ngx_http_inference_stream_t *stream);

/* Called when the whole message was received. */
void ngx_http_inference_stream_complete(ngx_http_inference_message_t *m);

/* Posts a turn: of one context, or of each message with output. */
void ngx_http_inference_stream_wake(ngx_http_inference_ctx_t *ctx);
void ngx_http_inference_stream_wake_all(ngx_http_inference_stream_t *stream);


/* ---- grpc_preview.c ------------------------------------------------------ */

/* Whether no body byte of the call was read yet, so that it may go on to
   error_page. */
#define ngx_http_inference_is_preview(stream)                                 \
    ((stream)->call->body.stage == NGX_HTTP_INFERENCE_BODY_UNREAD)

/* Begins a preview if error_page may take the call. */
void ngx_http_inference_preview_open(ngx_http_inference_stream_t *stream);

/* bytes: the received bytes not taken yet; took: marks n of them as taken, and
   continues the preview, or ends it if there is no room for more. */
ngx_str_t ngx_http_inference_preview_bytes(ngx_http_inference_stream_t *stream);
ngx_int_t ngx_http_inference_preview_took(ngx_http_inference_stream_t *stream,
    size_t n);

/* Ends a preview: the call's next turn begins to read the body. */
void ngx_http_inference_preview_end(ngx_http_inference_stream_t *stream);

/* The number of the first n bytes read now that the preview has taken. */
size_t ngx_http_inference_preview_skip(ngx_http_inference_stream_t *stream,
    size_t n);

/* Whether the call goes on to error_page if this message fails with the
   status. */
ngx_uint_t ngx_http_inference_preview_wants(ngx_http_inference_message_t *m,
    ngx_uint_t status);

/* NGX_ERROR: the first message has failed, and with it the call, which goes on
   to error_page. */
ngx_int_t ngx_http_inference_preview_check(ngx_http_inference_stream_t *stream);


#endif /* NGX_HTTP_INFERENCE_GRPC_STREAM_H */
