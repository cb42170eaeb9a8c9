/*
 * ngx_http_inference_digest.c - $inference_digest: equal for two REST
 *                               inferences that may share a response, for
 *                               caches in front of us.
 *
 * The value is the SHA-256 of the path as sent and as rewritten by nginx, id,
 * inputs, outputs and parameters, each with its length.  It is empty before the
 * whole body was received, for a body that is compressed or not in memory, for
 * one whose media type has the length of its JSON, for other requests, and for
 * inferences whose response the body does not determine (sequences and shared
 * memory).
 */

#include "ngx_module/ngx_http_inference_error.h"
#include "ngx_module/ngx_http_inference_variables.h"

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/base/slice.h"
#include "core/proto/infer_request.h"

#include <openssl/evp.h>


#define NGX_HTTP_INFERENCE_DIGEST  32


typedef struct {
    inf_slice_t          json;
    inf_slice_t          tail;          /* binary tensors                    */
    ngx_uint_t           raw;           /* 1: raw binary mode                */
    inf_infer_request_t  infer;
} ngx_http_inference_digested_t;


static ngx_int_t ngx_http_inference_digest_split(ngx_http_request_t *r,
    ngx_http_inference_digested_t *d);
static ngx_uint_t ngx_http_inference_digest_type_has_length(
    ngx_str_t *type);
static ngx_int_t ngx_http_inference_digest_body(ngx_http_request_t *r,
    inf_slice_t *body);
static ngx_int_t ngx_http_inference_digest_read(
    ngx_http_inference_digested_t *d, inf_arena_t *arena);
static ngx_uint_t ngx_http_inference_digest_is_sound(
    ngx_http_inference_digested_t *d);
static ngx_int_t ngx_http_inference_digest_make(ngx_http_request_t *r,
    ngx_http_inference_digested_t *d, u_char *out);
static void ngx_http_inference_digest_infer(EVP_MD_CTX *md,
    ngx_http_inference_digested_t *d);
static void ngx_http_inference_digest_input(EVP_MD_CTX *md,
    ngx_http_inference_digested_t *d, const inf_infer_input_t *input);
static void ngx_http_inference_digest_parameter(EVP_MD_CTX *md,
    const inf_infer_parameter_t *p);
static void ngx_http_inference_digest_text(EVP_MD_CTX *md, inf_slice_t text);
static void ngx_http_inference_digest_number(EVP_MD_CTX *md, uint64_t n);


ngx_int_t
ngx_http_inference_variable_digest(ngx_http_request_t *r,
    ngx_http_variable_value_t *v, uintptr_t data)
{
    u_char                         *text, sum[NGX_HTTP_INFERENCE_DIGEST];
    ngx_int_t                       rc;
    inf_arena_t                     arena;
    ngx_http_inference_digested_t   d;

    v->not_found = 1;

    if (r->request_body == NULL || r->reading_body) {
        /* the body may be complete later */
        v->no_cacheable = 1;
        return NGX_OK;
    }

    v->no_cacheable = 0;

    if (r->method != NGX_HTTP_POST
        || ngx_http_inference_digest_split(r, &d) != NGX_OK)
    {
        return NGX_OK;
    }

    inf_arena_init(&arena);

    rc = d.raw ? NGX_OK : ngx_http_inference_digest_read(&d, &arena);

    if (rc == NGX_OK) {
        rc = ngx_http_inference_digest_make(r, &d, sum);
    }

    inf_arena_fini(&arena);

    if (rc != NGX_OK) {
        return (rc == NGX_DECLINED) ? NGX_OK : NGX_ERROR;
    }

    text = ngx_pnalloc(r->pool, 2 * sizeof(sum));
    if (text == NULL) {
        return NGX_ERROR;
    }

    ngx_hex_dump(text, sum, sizeof(sum));

    v->valid = 1;
    v->not_found = 0;
    v->len = 2 * sizeof(sum);
    v->data = text;

    return NGX_OK;
}


static ngx_int_t
ngx_http_inference_digest_split(ngx_http_request_t *r,
    ngx_http_inference_digested_t *d)
{
    ssize_t           json;
    ngx_uint_t        i, length_given;
    inf_slice_t       body;
    ngx_list_part_t  *part;
    ngx_table_elt_t  *h;

    ngx_memzero(d, sizeof(ngx_http_inference_digested_t));

    if (ngx_http_inference_digest_body(r, &body) != NGX_OK) {
        return NGX_DECLINED;
    }

    json = (ssize_t) body.len;
    length_given = 0;

    part = &r->headers_in.headers.part;
    i = 0;

    while ((h = ngx_http_inference_next_field(&part, &i)) != NULL) {

        if (ngx_http_inference_field_is(h, "content-encoding")
            || (ngx_http_inference_field_is(h, "content-type")
                && ngx_http_inference_digest_type_has_length(&h->value)))
        {
            return NGX_DECLINED;
        }

        if (ngx_http_inference_field_is(h, "inference-header-content-length"))
        {
            if (length_given) {
                /* servers differ in which of two lengths they take */
                return NGX_DECLINED;
            }

            length_given = 1;
            json = ngx_atosz(h->value.data, h->value.len);
            d->raw = (json == 0);
        }
    }

    if (json < 0 || (size_t) json > body.len) {
        return NGX_DECLINED;
    }

    d->json = inf_slice(body.data, (size_t) json);
    d->tail = inf_slice(body.data + json, body.len - (size_t) json);

    return NGX_OK;
}


/* Whether the media type may say how long the JSON is: another server's
   "inference_binary_type" decides that. */

static ngx_uint_t
ngx_http_inference_digest_type_has_length(ngx_str_t *type)
{
    static u_char  size[] = "json-header-size=";

    return ngx_strlcasestrn(type->data, type->data + type->len, size,
                            sizeof(size) - 2)
           != NULL;
}


/* The body in one piece.  NGX_DECLINED: not in memory, or incomplete. */

static ngx_int_t
ngx_http_inference_digest_body(ngx_http_request_t *r, inf_slice_t *body)
{
    size_t        len;
    u_char       *p;
    ngx_chain_t  *cl, *first;

    if (r->reading_body || r->request_body_no_buffering
        || r->request_body->rest != 0)
    {
        return NGX_DECLINED;
    }

    first = r->request_body->bufs;
    len = 0;

    for (cl = first; cl; cl = cl->next) {

        if (cl->buf->in_file) {
            return NGX_DECLINED;
        }

        len += cl->buf->last - cl->buf->pos;
    }

    if (len == 0
        || (r->headers_in.content_length_n >= 0
            && len != (size_t) r->headers_in.content_length_n))
    {
        return NGX_DECLINED;
    }

    if (first->next == NULL) {
        *body = inf_slice((char *) first->buf->pos, len);
        return NGX_OK;
    }

    p = ngx_pnalloc(r->pool, len);
    if (p == NULL) {
        return NGX_DECLINED;
    }

    *body = inf_slice((char *) p, len);

    for (cl = first; cl; cl = cl->next) {
        p = ngx_cpymem(p, cl->buf->pos, cl->buf->last - cl->buf->pos);
    }

    return NGX_OK;
}


/* Parses the body in one go: client_body_buffer_size limits its size. */

static ngx_int_t
ngx_http_inference_digest_read(ngx_http_inference_digested_t *d,
    inf_arena_t *arena)
{
    inf_err_t           *err;
    inf_codec_t          rc;
    inf_infer_reader_t  *reader;

    err = inf_infer_reader_new(&reader, arena, NULL);

    if (err) {
        inf_err_free(err);
        return NGX_DECLINED;
    }

    do {
        rc = inf_infer_reader_feed(reader, d->json.data, d->json.len, 1,
                                   INF_CODEC_BUDGET, &err);
    } while (rc == INF_CODEC_AGAIN);

    if (rc == INF_CODEC_DONE) {
        d->infer = inf_infer_reader_request(reader);
        err = inf_infer_request_check_tail(&d->infer, d->tail.len,
                                           inf_slice("", 0));
    }

    inf_infer_reader_free(reader);

    if (err) {
        /* the server rejects the request with this error */
        inf_err_free(err);
        return NGX_DECLINED;
    }

    return ngx_http_inference_digest_is_sound(d) ? NGX_OK : NGX_DECLINED;
}


static ngx_uint_t
ngx_http_inference_digest_is_sound(ngx_http_inference_digested_t *d)
{
    uint32_t  i;

    if (d->infer.flags || d->infer.correlation_id
        || d->infer.correlation_text.len)
    {
        return 0;
    }

    for (i = 0; i < d->infer.input_count; i++) {
        if (d->infer.inputs[i].source == INF_SOURCE_SHM) {
            return 0;
        }
    }

    for (i = 0; i < d->infer.output_count; i++) {
        if (d->infer.outputs[i].shm_region.len) {
            return 0;
        }
    }

    return 1;
}


static ngx_int_t
ngx_http_inference_digest_make(ngx_http_request_t *r,
    ngx_http_inference_digested_t *d, u_char *out)
{
    ngx_int_t    rc;
    EVP_MD_CTX  *md;

    md = EVP_MD_CTX_new();
    if (md == NULL) {
        return NGX_ERROR;
    }

    rc = NGX_ERROR;

    if (EVP_DigestInit_ex(md, EVP_sha256(), NULL) == 1) {

        ngx_http_inference_digest_text(md,
                                    ngx_http_inference_slice(&r->unparsed_uri));
        ngx_http_inference_digest_text(md, ngx_http_inference_slice(&r->uri));
        ngx_http_inference_digest_text(md, ngx_http_inference_slice(&r->args));
        ngx_http_inference_digest_number(md, d->raw);

        if (d->raw) {
            ngx_http_inference_digest_text(md, d->tail);

        } else {
            ngx_http_inference_digest_infer(md, d);
        }

        if (EVP_DigestFinal_ex(md, out, NULL) == 1) {
            rc = NGX_OK;
        }
    }

    EVP_MD_CTX_free(md);

    return rc;
}


static void
ngx_http_inference_digest_infer(EVP_MD_CTX *md,
    ngx_http_inference_digested_t *d)
{
    uint32_t                   i;
    const inf_infer_output_t  *output;

    ngx_http_inference_digest_text(md, d->infer.id);
    ngx_http_inference_digest_number(md, d->infer.binary_data_output);
    ngx_http_inference_digest_number(md, d->infer.input_count);

    for (i = 0; i < d->infer.input_count; i++) {
        ngx_http_inference_digest_input(md, d, &d->infer.inputs[i]);
    }

    ngx_http_inference_digest_number(md, d->infer.output_count);

    for (i = 0; i < d->infer.output_count; i++) {
        output = &d->infer.outputs[i];

        ngx_http_inference_digest_text(md, output->name);
        ngx_http_inference_digest_number(md, output->binary);
        ngx_http_inference_digest_number(md, output->classification);
    }

    ngx_http_inference_digest_number(md, d->infer.parameter_count);

    for (i = 0; i < d->infer.parameter_count; i++) {
        ngx_http_inference_digest_parameter(md, &d->infer.parameters[i]);
    }
}


/* Numbers in JSON are hashed as written. */

static void
ngx_http_inference_digest_input(EVP_MD_CTX *md,
    ngx_http_inference_digested_t *d, const inf_infer_input_t *input)
{
    uint32_t     i;
    inf_slice_t  bytes;

    ngx_http_inference_digest_text(md, input->name);
    ngx_http_inference_digest_number(md, input->datatype);
    ngx_http_inference_digest_number(md, input->dim_count);

    for (i = 0; i < input->dim_count; i++) {
        ngx_http_inference_digest_number(md, (uint64_t) input->shape[i]);
    }

    if (input->source == INF_SOURCE_BINARY) {
        bytes = inf_slice(d->tail.data + input->binary_offset,
                          input->byte_size);

    } else {
        bytes = inf_slice(d->json.data + input->json_offset,
                          input->json_length);
    }

    ngx_http_inference_digest_number(md, input->source);
    ngx_http_inference_digest_text(md, bytes);
}


static void
ngx_http_inference_digest_parameter(EVP_MD_CTX *md,
    const inf_infer_parameter_t *p)
{
    uint64_t  real;

    ngx_memcpy(&real, &p->real, sizeof(real));

    ngx_http_inference_digest_text(md, p->name);
    ngx_http_inference_digest_number(md, p->type);
    ngx_http_inference_digest_text(md, p->text);
    ngx_http_inference_digest_number(md, (uint64_t) p->integer);
    ngx_http_inference_digest_number(md, real);
}


static void
ngx_http_inference_digest_text(EVP_MD_CTX *md, inf_slice_t text)
{
    ngx_http_inference_digest_number(md, text.len);

    if (text.len) {
        (void) EVP_DigestUpdate(md, text.data, text.len);
    }
}


static void
ngx_http_inference_digest_number(EVP_MD_CTX *md, uint64_t n)
{
    (void) EVP_DigestUpdate(md, &n, sizeof(n));
}
