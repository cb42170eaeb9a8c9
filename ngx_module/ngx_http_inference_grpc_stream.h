/*
 * ngx_http_inference_grpc_stream.h - a call of ModelStreamInfer and its
 *                                    messages: what the two know of each other.
 *
 * Owner    The call owns its messages, their outputs and the replies that wait;
 *          each is used again for another one until the call ends.
 * Thread   the worker's event loop.
 * Units    bytes.
 * Errors   As ngx_http_inference_request.h: of a message, or of the call.
 * Route    body -> [call -> message] -> core -> [message -> call] -> socket.
 *
 * The call calls its messages; a message wakes its call, which is posted then.
 */

#ifndef NGX_HTTP_INFERENCE_GRPC_STREAM_H
#define NGX_HTTP_INFERENCE_GRPC_STREAM_H

#include "ngx_module/ngx_http_inference_peek.h"


/* of requests, and of idle calls, while nginx ends */
#define NGX_HTTP_INFERENCE_STOPPING                                           \
    "GRPC server is shutting down and has stopped accepting new requests."

/* what requests and prepared responses may hold together, beyond one of them,
   before the call is received on */
#define NGX_HTTP_INFERENCE_STREAM_HELD  ((uint64_t) 8 * 1024 * 1024)

/* of responses of decoupled models, which the core bounds: so many bytes of
   messages are ready for the socket, beyond one of them */
#define NGX_HTTP_INFERENCE_STREAM_PREPARED  ((uint64_t) 256 * 1024)


/* a message on its way to the socket */

typedef struct {
    ngx_queue_t                  queue;
    inf_arena_t                  arena;         /* of all but the tensors    */
    ngx_http_inference_reply_t   reply;         /* held: has the tensors     */
    ngx_buf_t                   *last;          /* sent: so is the message   */
    uint64_t                     size;
} ngx_http_inference_stream_output_t;


struct ngx_http_inference_stream_s {
    ngx_http_inference_ctx_t    *call;
    ngx_http_inference_leaver_t  leaver;
    ngx_queue_t                  messages;      /* in the order of arrival   */
    ngx_uint_t                   open;          /* so many                   */
    uint64_t                     taken;         /* bytes of those that are
                                                   whole                     */
    ngx_http_inference_message_t  *receiving;   /* not whole, or NULL        */
    ngx_buf_t                   *rest;          /* of the call's bytes, which
                                                   came while it was full    */
    ngx_http_inference_waiter_t  waiter;        /* of a preview              */
    size_t                       previewed;     /* bytes taken, which will be
                                                   read once more            */
    ngx_http_inference_replies_t  replies;      /* of all messages           */
    off_t                        sent;          /* when the timer of sending
                                                   was started               */

    ngx_queue_t                  outputs;       /* not drained, in order     */
    uint64_t                     held;          /* bytes of them             */
    uint32_t                     number;        /* for the core; 0: none     */
    ngx_chain_t                 *pending;       /* to be given to nginx      */
    ngx_chain_t                **last;
    ngx_chain_t                 *free;
    ngx_chain_t                 *busy;

    ngx_queue_t                  spare_messages;
    ngx_queue_t                  spare_outputs;

    unsigned                     lingering:1;   /* idle, its worker leaves   */
    unsigned                     ended:1;       /* by the client: no more    */
    unsigned                     broken:1;      /* nothing can be sent       */
};


/* one request on the call, in the end with the last of its responses */

struct ngx_http_inference_message_s {
    ngx_http_inference_ctx_t     ctx;           /* the first member          */
    ngx_http_inference_grpc_t    grpc;
    ngx_http_inference_stream_t *stream;
    ngx_queue_t                  queue;         /* of messages, or spare     */
    ngx_queue_t                  replies;       /* not sent yet              */
    uint64_t                     size;          /* of the stream's taken     */
    uint64_t                     order;         /* for the core: grows       */
    ngx_http_inference_stream_output_t  *output;    /* being prepared        */
    unsigned                     decoupled:1;   /* its model                 */
    unsigned                     skipped:1;     /* failed while received     */
    unsigned                     final:1;       /* output is the last        */
};


#define ngx_http_inference_stream_of(q)                                       \
    (ngx_queue_data(q, ngx_http_inference_message_t, queue))


/* ---- grpc_message.c ------------------------------------------------------ */

/* A new one, at the end of the line, which is being received; NULL: out of
   memory. */
ngx_http_inference_message_t *ngx_http_inference_stream_message(
    ngx_http_inference_stream_t *stream);

/* Frees the call's number when no message is open and no response is left. */
void ngx_http_inference_stream_give_number(ngx_http_inference_stream_t *stream);

/* All of it is here. */
void ngx_http_inference_stream_complete(ngx_http_inference_message_t *m);

/* It, or each message with something to send, goes on in a turn of its own,
   soon. */
void ngx_http_inference_stream_wake(ngx_http_inference_ctx_t *ctx);
void ngx_http_inference_stream_wake_all(ngx_http_inference_stream_t *stream);


/* ---- grpc_preview.c ------------------------------------------------------ */

/* Nothing of the call is read yet, and it may go on to error_page. */
#define ngx_http_inference_is_preview(stream)                                 \
    ((stream)->call->body.stage == NGX_HTTP_INFERENCE_BODY_UNREAD)

/* Begins a preview where error_page may have the call. */
void ngx_http_inference_preview_open(ngx_http_inference_stream_t *stream);

/* The bytes that are there and not taken yet; and: n of them have been taken, so
   that the preview goes on, or ends where more have no room. */
ngx_str_t ngx_http_inference_preview_bytes(ngx_http_inference_stream_t *stream);
ngx_int_t ngx_http_inference_preview_took(ngx_http_inference_stream_t *stream,
    size_t n);

/* Ends a preview: the call's next turn begins to read the body. */
void ngx_http_inference_preview_end(ngx_http_inference_stream_t *stream);

/* How many of the first n bytes read now were taken by the preview. */
size_t ngx_http_inference_preview_skip(ngx_http_inference_stream_t *stream,
    size_t n);

/* Whether the call goes on where this message fails with the status. */
ngx_uint_t ngx_http_inference_preview_wants(ngx_http_inference_message_t *m,
    ngx_uint_t status);

/* NGX_ERROR: its first message has failed, and so does the call, which goes
   on. */
ngx_int_t ngx_http_inference_preview_check(ngx_http_inference_stream_t *stream);


#endif /* NGX_HTTP_INFERENCE_GRPC_STREAM_H */
