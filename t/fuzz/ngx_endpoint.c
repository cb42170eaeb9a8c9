/*
 * The endpoint that a path reaches, against the path that its location saw.
 * First byte: the location's parts and prefix, merge_slashes, the method; the
 * rest is the path as a client writes it.  nginx would decode it, resolve its
 * dots and merge its slashes, choose a location by that and ask the module; a
 * reading of our own does the same here.  The endpoint reached must be the one
 * that the location's path names word for word, so that no rule for a location
 * is got around, and never a model whose name the location did not see.
 */

#include "t/fuzz/ngx/fake.h"

#define PATH_MAX_ 1024u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct {
    ngx_int_t   rc;
    ngx_uint_t  status;
    const ngx_http_inference_endpoint_t  *endpoint;
    ngx_str_t   model;
    int64_t     version;
} found_t;

/* As nginx reads a path into r->uri; false: it answers 400 itself. */
static bool
normalise(const uint8_t *p, size_t len, bool merge, uint8_t *out,
    size_t *out_len)
{
    size_t n = 0;
    uint8_t plain[PATH_MAX_];
    size_t plain_len = 0;

    for (size_t i = 0; i < len && p[i] != '?' && p[i] != '#'; i++) {
        uint8_t c = p[i];

        if (c == '%') {
            ngx_int_t v = len - i > 2
                ? ngx_hextoi((u_char *) (uintptr_t) p + i + 1, 2) : NGX_ERROR;
            if (v == NGX_ERROR || v == 0) {
                return false;
            }
            c = (uint8_t) v;
            i += 2;
        }
        plain[plain_len++] = c;
    }

    /* segment by segment */
    for (size_t i = 0; i < plain_len; ) {
        size_t end = i + 1;

        while (end < plain_len && plain[end] != '/') {
            end++;
        }
        size_t seg = end - i - 1;
        const uint8_t *s = plain + i + 1;

        if (seg == 2 && s[0] == '.' && s[1] == '.') {
            if (n == 0) {
                return false;
            }
            do {
                n--;
            } while (out[n] != '/');
            if (end == plain_len) {
                out[n++] = '/';
            }
        } else if (seg == 1 && s[0] == '.') {
            if (end == plain_len) {
                out[n++] = '/';
            }
        } else if (seg > 0 || end == plain_len || !merge) {
            memcpy(out + n, plain + i, end - i);
            n += end - i;
        }
        i = end;
    }

    *out_len = n;
    return n > 0 && out[0] == '/';
}

static void
find(const uint8_t *uri, size_t uri_len, const uint8_t *raw, size_t raw_len,
    uint8_t how, found_t *found)
{
    static uint8_t bytes[sizeof(ngx_http_inference_ctx_t)];
    ngx_http_inference_ctx_t *ctx = memset(bytes, 0, sizeof(bytes));
    ngx_http_request_t *r = &fake.request;

    fake_open("", NULL);
    r->uri.data = (u_char *) (uintptr_t) uri;
    r->uri.len = uri_len;
    r->valid_unparsed_uri = raw != NULL;
    r->unparsed_uri.data = (u_char *) (uintptr_t) raw;
    r->unparsed_uri.len = raw_len;
    r->method = how & 1 ? NGX_HTTP_POST : NGX_HTTP_GET;
    if (how & 2) {
        ngx_str_set(&fake.loc_conf.prefix, "/api");
    }
    if (how & 4) {
        fake.loc_conf.parts = NGX_HTTP_INFERENCE_METRICS;
        ngx_str_set(&fake.loc_conf.alone, "/metrics");
    }
    if (how & 16) {
        /* inference_peek */
        fake.loc_conf.parts = 0;
    }

    ctx->request = r;
    r->ctx[1] = ctx;
    found->rc = ngx_http_inference_find_endpoint(ctx);
    found->status = ctx->status;
    found->endpoint = ctx->endpoint;
    found->version = ctx->version;
    found->model = ctx->names.model;

    /* the error's text */
    inf_arena_fini(&ctx->arena);
}

static bool
begins(const uint8_t *path, size_t len, const char *with)
{
    return len >= strlen(with) && memcmp(path, with, strlen(with)) == 0;
}

/* A guarded path lies below its guard. */
static void
check_guarded(const found_t *f, const uint8_t *uri, size_t len, uint8_t how)
{
    const char *name = (char *) f->endpoint->name.data;

    if ((how & 2) && begins(uri, len, "/api/")) {
        uri += 4;
        len -= 4;
    }

    if (f->endpoint->part == NGX_HTTP_INFERENCE_REPOSITORY) {
        check(begins(uri, len, "/v2/repository/"));
    }
    if (f->endpoint->part == NGX_HTTP_INFERENCE_SHARED_MEMORY) {
        check(begins(uri, len, strncmp(name, "cuda", 4) == 0
            ? "/v2/cudasharedmemory/" : "/v2/systemsharedmemory/"));
    }
    if (f->endpoint->verb == NGX_HTTP_INFERENCE_MODEL_INFER) {
        check(begins(uri, len, "/v2/models/"));
        check(f->model.len > 0 && len > 11 + f->model.len);
        check(memcmp(uri + 11, f->model.data, f->model.len) == 0);
        check(uri[11 + f->model.len] == '/');
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t uri[PATH_MAX_ + 2];
    size_t uri_len;
    found_t raw, seen;

    if (size < 2 || size > PATH_MAX_ || data[1] != '/') {
        return 0;
    }

    uint8_t how = data[0];
    size_t len = size - 1;

    /* its ends are watched over */
    uint8_t *path = malloc(len);
    check(path != NULL);
    memcpy(path, data + 1, len);

    if (normalise(path, len, how & 8, uri, &uri_len)) {
        find(uri, uri_len, path, len, how, &raw);

        if (raw.rc == NGX_OK) {
            find(uri, uri_len, NULL, 0, how, &seen);
            check(seen.rc == NGX_OK && seen.endpoint == raw.endpoint);
            check(seen.version == raw.version);
            check(seen.model.len == raw.model.len
                && (raw.model.len == 0 || memcmp(seen.model.data,
                        raw.model.data, raw.model.len) == 0));
            check(raw.model.len == 0
                || memchr(raw.model.data, '/', raw.model.len) == NULL);
            check_guarded(&raw, uri, uri_len, how);
        } else {
            check(raw.status >= 400 && raw.status < 500);
            if (how & 16) {
                find(uri, uri_len, NULL, 0, how, &seen);
                check(seen.rc == raw.rc && seen.endpoint == raw.endpoint);
            }
        }
    }

    fake_close();
    free(path);
    return 0;
}
