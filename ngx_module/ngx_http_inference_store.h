/*
 * ngx_http_inference_store.h - bytes of a body, in the request arena; they
 *                              grow.
 *
 * Owner    A store owns its regions until ngx_http_inference_store_free(), or
 *          until a submission takes them.
 * Thread   the worker's event loop.
 * Units    bytes.
 * Errors   NGX_ERROR: the request has failed: the arena is full, or there has
 *          been no channel to a core.
 * Route    body, place, control -> [store] -> submission.
 *
 * open, then put (or room and ensure, which return where to write); settle
 * before the bytes are read as one piece.  The first region of a request is
 * allocated on the current channel, which becomes ctx->client; all later ones
 * are allocated on the same channel.
 */

#ifndef NGX_HTTP_INFERENCE_STORE_H
#define NGX_HTTP_INFERENCE_STORE_H

#include "ngx_module/ngx_http_inference.h"

#include "core/wire/client.h"


/* initial size of a store whose length is not known */
#define NGX_HTTP_INFERENCE_STORE_SIZE   ((uint64_t) 64 * 1024)

/* granularity of memory charged to a store */
#define NGX_HTTP_INFERENCE_STORE_STEP   ((uint64_t) 4096)

/* a call's body up to this size is accepted when the arena is full */
#define NGX_HTTP_INFERENCE_CALL_SIZE    ((uint64_t) 16 * 1024)


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

/* Frees a body that is too slow at once, as its connection may linger.  Called
   by a timer, while nginx does not read into the arena. */
ngx_int_t ngx_http_inference_stores_check_rate(ngx_http_inference_ctx_t *ctx);

/* Arena bytes of the body, without the record. */
uint64_t ngx_http_inference_stores_size(ngx_http_inference_ctx_t *ctx);

/* Frees the record and the decoded tensors behind it, unless the core may read
   them. */
void ngx_http_inference_record_free(ngx_http_inference_ctx_t *ctx);

/* Fails because the arena has no room for size more bytes; returns
   NGX_ERROR. */
ngx_int_t ngx_http_inference_arena_full(ngx_http_inference_ctx_t *ctx,
    uint64_t size);


#endif /* NGX_HTTP_INFERENCE_STORE_H */
