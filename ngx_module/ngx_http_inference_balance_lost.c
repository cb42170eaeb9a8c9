/*
 * ngx_http_inference_balance_lost.c - the error sent when the node of a
 *                                     sequence is gone, instead of nginx's 502
 *                                     or of the next node's error.
 */

#include "ngx_module/ngx_http_inference_balance.h"
#include "ngx_module/ngx_http_inference_error.h"
#include "ngx_module/ngx_http_inference_grpc.h"


#define NGX_HTTP_INFERENCE_LOST_TEXT                                          \
    "the node is gone: sequence lost, start again"


static ngx_int_t ngx_http_inference_lost_header_filter(ngx_http_request_t *r);
static ngx_http_inference_peer_t *ngx_http_inference_lost_peer(
    ngx_http_request_t *r);
static void ngx_http_inference_lost_mark(void *data);
static ngx_uint_t ngx_http_inference_is_lost(ngx_http_inference_peer_t *bp);
static ngx_uint_t ngx_http_inference_wants_start(ngx_http_request_t *r);
static ngx_uint_t ngx_http_inference_names_start(u_char *p, size_t len);
static ngx_int_t ngx_http_inference_lost_grpc(ngx_http_request_t *r);
static ngx_int_t ngx_http_inference_lost_rest(ngx_http_request_t *r);


static ngx_http_output_header_filter_pt  ngx_http_inference_next_header_filter;


void
ngx_http_inference_lost_install_filter(void)
{
    ngx_http_inference_next_header_filter = ngx_http_top_header_filter;
    ngx_http_top_header_filter = ngx_http_inference_lost_header_filter;
}


ngx_int_t
ngx_http_inference_lost_watch(ngx_http_inference_peer_t *peer)
{
    ngx_pool_cleanup_t  *cln;

    cln = ngx_pool_cleanup_add(peer->request->pool, 0);
    if (cln == NULL) {
        return NGX_ERROR;
    }

    cln->handler = ngx_http_inference_lost_mark;
    cln->data = peer;

    return NGX_OK;
}


/* The cleanup handler only marks the entry: the peer is in the pool. */

static void
ngx_http_inference_lost_mark(void *data)
{
}


/* The peer added last, if error_page has led through several upstreams; NULL:
   none. */

static ngx_http_inference_peer_t *
ngx_http_inference_lost_peer(ngx_http_request_t *r)
{
    ngx_pool_cleanup_t         *cln;
    ngx_http_inference_peer_t  *bp;

    for (cln = r->pool->cleanup; cln; cln = cln->next) {

        if (cln->handler != ngx_http_inference_lost_mark) {
            continue;
        }

        bp = cln->data;

        if (bp->request == r) {
            return bp;
        }
    }

    return NULL;
}


static ngx_int_t
ngx_http_inference_lost_header_filter(ngx_http_request_t *r)
{
    ngx_http_inference_peer_t  *bp;

    if (r->upstream == NULL || r != r->main) {
        return ngx_http_inference_next_header_filter(r);
    }

    bp = ngx_http_inference_lost_peer(r);

    if (bp == NULL || !ngx_http_inference_is_lost(bp)) {
        return ngx_http_inference_next_header_filter(r);
    }

    bp->passage = NGX_HTTP_INFERENCE_SEQUENCE_LOST;

    (void) ngx_http_inference_sequence_put(bp->balance, bp->key, NULL);

    ngx_log_error(NGX_LOG_ERR, r->connection->log, 0,
                  "inference: a sequence is lost with its node");

    r->headers_out.status_line.len = 0;

    ngx_http_clear_content_length(r);
    ngx_http_clear_accept_ranges(r);
    ngx_http_clear_last_modified(r);
    ngx_http_clear_etag(r);

    return ngx_http_inference_is_grpc(r) ? ngx_http_inference_lost_grpc(r)
                                         : ngx_http_inference_lost_rest(r);
}


static ngx_uint_t
ngx_http_inference_is_lost(ngx_http_inference_peer_t *bp)
{
    ngx_http_request_t  *r;

    r = bp->request;

    if (bp->passage == NGX_HTTP_INFERENCE_SEQUENCE_LOST) {
        return 0;
    }

    if (r->headers_out.status == NGX_HTTP_BAD_GATEWAY) {
        /* nginx's own status after a failed connection; its node may still have
           the sequence */
        return r->upstream->headers_in.status_n == 0
               && (bp->passage == NGX_HTTP_INFERENCE_SEQUENCE_MOVED
                   || (bp->last
                       && bp->last->state == NGX_HTTP_INFERENCE_NODE_DOWN));
    }

    return bp->passage == NGX_HTTP_INFERENCE_SEQUENCE_MOVED
           && ngx_http_inference_wants_start(r);
}


/* Whether the response is the error of a node that does not know the sequence.
   The error is short, so its body was received with the head. */

static ngx_uint_t
ngx_http_inference_wants_start(ngx_http_request_t *r)
{
    ngx_buf_t        *b;
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    static const ngx_str_t  message = ngx_string("grpc-message");

    if (r->headers_out.status == NGX_HTTP_BAD_REQUEST) {
        b = &r->upstream->buffer;
        return ngx_http_inference_names_start(b->pos, b->last - b->pos);
    }

    part = &r->headers_out.headers.part;
    i = 0;

    while ((h = ngx_http_inference_next_field(&part, &i)) != NULL) {

        if (h->hash && h->key.len == message.len
            && ngx_strncasecmp(h->key.data, message.data, message.len) == 0)
        {
            return ngx_http_inference_names_start(h->value.data,
                                                  h->value.len);
        }
    }

    return 0;
}


static ngx_uint_t
ngx_http_inference_names_start(u_char *p, size_t len)
{
    u_char  *last;

    static const ngx_str_t  start = ngx_string("must specify the START flag");

    if (len < start.len) {
        return 0;
    }

    for (last = p + len - start.len; p <= last; p++) {
        if (ngx_memcmp(p, start.data, start.len) == 0) {
            return 1;
        }
    }

    return 0;
}


static ngx_int_t
ngx_http_inference_lost_grpc(ngx_http_request_t *r)
{
    ngx_uint_t        i;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    static ngx_str_t  text = ngx_string(NGX_HTTP_INFERENCE_LOST_TEXT);

    part = &r->headers_out.headers.part;
    i = 0;

    while ((h = ngx_http_inference_next_field(&part, &i)) != NULL) {
        if (h->key.len > 5
            && ngx_strncasecmp(h->key.data, (u_char *) "grpc-", 5) == 0)
        {
            h->hash = 0;
        }
    }

    if (ngx_http_inference_grpc_trailers_only(r, INF_GRPC_UNAVAILABLE, &text)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_inference_next_header_filter(r);
}


/* Drops the body: the whole error was sent with the head. */

static ngx_int_t
ngx_http_inference_lost_rest(ngx_http_request_t *r)
{
    ngx_int_t    rc;
    ngx_buf_t   *b;
    ngx_chain_t  out;

    static u_char  text[] = "{\"error\":\"" NGX_HTTP_INFERENCE_LOST_TEXT "\"}";

    r->headers_out.status = NGX_HTTP_SERVICE_UNAVAILABLE;
    r->headers_out.content_length_n = sizeof(text) - 1;

    ngx_str_set(&r->headers_out.content_type, "application/json");
    r->headers_out.content_type_len = r->headers_out.content_type.len;
    r->headers_out.content_type_lowcase = NULL;

    rc = ngx_http_inference_next_header_filter(r);

    if (rc == NGX_ERROR || rc > NGX_OK || r->header_only) {
        return rc;
    }

    b = ngx_calloc_buf(r->pool);
    if (b == NULL) {
        return NGX_ERROR;
    }

    b->memory = 1;
    b->pos = text;
    b->last = text + sizeof(text) - 1;
    b->last_buf = 1;
    b->last_in_chain = 1;

    out.buf = b;
    out.next = NULL;

    rc = ngx_http_output_filter(r, &out);

    r->header_only = 1;

    return rc;
}
