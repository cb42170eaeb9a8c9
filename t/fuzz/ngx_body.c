/*
 * A request's body through the module's own state machine, handler to
 * submission, in an nginx of ngx/fake.c.  The input makes a body (its own
 * bytes, or a request with tensors in JSON and behind it, of sizes that may be
 * wrong) and says how it comes: in what pieces, chunked, compressed, read by
 * somebody before, cut short, with turns of the event loop between and slices
 * that end anywhere; and what comes after: a core that dies, an error_page.
 *
 * However it comes, the answer is that of the same body in one piece:
 * rejected, or the same record with the same tensors.  error_page hands on the
 * bytes received and no others, also when the arena is full of other requests
 * meanwhile.  No region is left when the request is gone.
 */

#include "t/fuzz/ngx/fake.h"

#include "core/base/buf.h"

#include <zlib.h>

#define ARENA_BOUND (1u << 20)
#define ARENA_SIZE  (8u << 20)
#define BODY_MAX    (200u << 10)
#define TURNS_MAX   100000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    HOW_CHUNKED = 0x01, HOW_GZIP = 0x02, HOW_ZLIB = 0x04, HOW_DAMAGED = 0x08,
    HOW_SHORT = 0x10, HOW_FOREIGN = 0x20, HOW_LIMITED = 0x40,
    HOW_IN_PIECES = 0x80, HOW_ERROR_PAGE = 0x100, HOW_CORE_DIES = 0x200
};

typedef struct {
    inf_slice_t   plain;
    char          header_len[24];       /* of the header; "": none           */
    uint32_t      how;
    input_t       pieces;               /* of the body, and turns            */
    input_t       clock;
} scene_t;

typedef struct {
    bool       accepted;
    ngx_int_t  status;
    inf_buf_t  record;                  /* what was submitted, with tensors  */
} result_t;

/* ---- bodies -------------------------------------------------------------- */

static void
put_input(inf_buf_t *json, uint32_t i, input_t *in, uint64_t *tail)
{
    static const struct {
        const char *name;
        uint32_t    size;
    } types[4] = { { "UINT8", 1 }, { "INT32", 4 }, { "FP64", 8 },
        { "BOOL", 1 } };
    uint64_t how = input_next(in, 1);
    uint64_t count = input_next(in, 1) * (how & 0x40 ? 50 : 1);
    char text[128];

    snprintf(text, sizeof(text), "%s{\"name\":\"I%u\",\"datatype\":\"%s\","
        "\"shape\":[%llu]", i > 0 ? "," : "", i, types[how & 3].name,
        (unsigned long long) count);
    inf_buf_puts(json, text);

    if (how & 4) {
        inf_buf_puts(json, ",\"data\":[");
        for (uint64_t k = 0; k < count; k++) {
            inf_buf_puts(json, k > 0 ? "," : "");
            inf_buf_puts(json, (how & 3) == 3 ? "true" : "7");
        }
        inf_buf_puts(json, "]}");
        return;
    }

    uint64_t size = count * types[how & 3].size;
    if (how & 0x20) {
        size += input_next(in, 1) - 128;        /* a lie                     */
    }
    snprintf(text, sizeof(text), ",\"parameters\":{\"binary_data_size\":%llu}"
        "}", (unsigned long long) size);
    inf_buf_puts(json, text);
    *tail += size < BODY_MAX ? size : 0;
}

static void
make_body(scene_t *s, input_t *in, inf_buf_t *body)
{
    uint64_t how = input_next(in, 1);
    uint64_t tail = 0;

    if (how & 1) {
        inf_buf_put(body, in->data, in->size);
        snprintf(s->header_len, sizeof(s->header_len), "%llu",
            (unsigned long long) (how >> 2));
        if (how & 2) {
            s->header_len[0] = '\0';
        }
        return;
    }

    inf_buf_puts(body, "{\"inputs\":[");
    for (uint32_t i = 0; i <= (how >> 1 & 3); i++) {
        put_input(body, i, in, &tail);
    }
    inf_buf_puts(body, how & 0x80 ? "]" : "]}");

    uint64_t length = inf_buf_slice(body).len;
    if (how & 8) {
        length += input_next(in, 1) - 128;
    }
    if (how & 0x10) {
        tail += input_next(in, 1) - 128;
    }
    if (!(how & 0x20)) {
        snprintf(s->header_len, sizeof(s->header_len), "%lld",
            (long long) length);
    }
    if (how & 0x40) {
        strcpy(s->header_len, "0");
    }

    tail = tail < BODY_MAX ? tail : 0;
    for (uint64_t i = 0; i < tail; i++) {
        inf_buf_putc(body, (char) (i % 251));
    }
}

static void
make_wire(const scene_t *s, inf_buf_t *wire)
{
    z_stream z = { 0 };

    if (!(s->how & (HOW_GZIP | HOW_ZLIB))) {
        inf_buf_put(wire, s->plain.data, s->plain.len);
        return;
    }

    check(deflateInit2(&z, 1, Z_DEFLATED, s->how & HOW_GZIP ? 31 : 15, 9,
        Z_DEFAULT_STRATEGY) == Z_OK);
    size_t bound = deflateBound(&z, s->plain.len) + 32;
    uint8_t *out = malloc(bound);
    check(out != NULL);
    z.next_in = (Bytef *) (uintptr_t) s->plain.data;
    z.avail_in = (uInt) s->plain.len;
    z.next_out = out;
    z.avail_out = (uInt) bound;
    check(deflate(&z, Z_FINISH) == Z_STREAM_END);
    inf_buf_put(wire, out, bound - z.avail_out);
    deflateEnd(&z);
    free(out);
}

/* ---- what comes out ------------------------------------------------------ */

/* Free memory is another request's now. */
static void
fill_arena(void)
{
    inf_region_t *taken[ARENA_BOUND / 65536 + 16];
    size_t n = 0;

    for (uint64_t size = 65536; size >= 64; size /= 32) {
        while (n < sizeof(taken) / sizeof(taken[0])) {
            inf_region_t *region = inf_client_alloc(fake.client, size);

            if (region == NULL) {
                break;
            }
            memset(inf_client_data(fake.client, region), 0xee, size);
            taken[n++] = region;
        }
    }

    while (n > 0) {
        inf_client_free_region(fake.client, taken[--n]);
    }
}

/* error_page: the next handler reads what it finds, or reads for itself. */
static void
check_handed_on(inf_slice_t wire, size_t delivered, bool foreign)
{
    const ngx_http_request_body_t *rb = fake.request.request_body;
    size_t at = 0;

    if (!fake.finalized || fake.sent || fake.rc < 400 || foreign) {
        return;
    }

    fill_arena();
    for (ngx_chain_t *cl = rb != NULL ? rb->bufs : NULL; cl != NULL;
         cl = cl->next)
    {
        size_t n = (size_t) (cl->buf->last - cl->buf->pos);

        check(n > 0 && n <= delivered - at);
        check(memcmp(cl->buf->pos, wire.data + at, n) == 0);
        at += n;
    }
    check(at == delivered);
}

/* ---- a run --------------------------------------------------------------- */

static void
set_up(const scene_t *s, size_t wire_len)
{
    static const ngx_int_t statuses[8] = { 400, 413, 415, 500, 501, 503, 504,
        429 };
    ngx_http_request_t *r = &fake.request;

    fake.main_conf.arena = ARENA_BOUND;
    fake.loc_conf.max_body = s->how & HOW_LIMITED ? 300 : 0;
    fake.loc_conf.intercept = 1;
    r->headers_in.chunked = (s->how & HOW_CHUNKED) != 0;
    r->headers_in.content_length_n = s->how & HOW_CHUNKED ? -1
        : (off_t) wire_len;

    if (s->header_len[0] != '\0') {
        fake_header("inference-Header-Content-Length", s->header_len,
            strlen(s->header_len));
    }
    if (s->how & (HOW_GZIP | HOW_ZLIB)) {
        const char *name = s->how & HOW_GZIP ? "gzip" : "deflate";
        fake_header("Content-encoding", name, strlen(name));
    }
    if (s->how & HOW_ERROR_PAGE) {
        for (size_t i = 0; i < 8; i++) {
            fake.pages[i].status = statuses[i];
        }
        fake.error_pages.elts = fake.pages;
        fake.error_pages.nelts = 8;
        fake.core_conf.error_pages = &fake.error_pages;
    }
}

/* Somebody else has read it into a chain of buffers. */
static void
set_foreign(scene_t *s, inf_slice_t wire)
{
    ngx_http_request_t *r = &fake.request;
    ngx_chain_t **last;
    size_t at = 0;

    r->request_body = ngx_pcalloc(r->pool, sizeof(*r->request_body));
    last = &r->request_body->bufs;
    while (at < wire.len) {
        size_t n = 1 + input_next(&s->pieces, 1) * 16;
        n = n < wire.len - at ? n : wire.len - at;

        ngx_chain_t *cl = ngx_alloc_chain_link(r->pool);
        cl->buf = ngx_create_temp_buf(r->pool, n);
        cl->buf->last = cl->buf->pos + n;
        memcpy(cl->buf->pos, wire.data + at, n);
        cl->next = NULL;
        *last = cl;
        last = &cl->next;
        at += n;
    }
}

static size_t
deliver(scene_t *s, inf_slice_t wire, size_t len)
{
    bool chunked = s->how & HOW_CHUNKED;
    size_t at = 0;

    while (at < len) {
        size_t n = len;

        if (s->how & HOW_IN_PIECES) {
            uint64_t cut = input_next(&s->pieces, 1);
            n = cut == 0 ? len : (size_t) (cut & 0x7f)
                * (cut & 0x80 ? 500 : 1);
            n = n > 0 ? n : 1;
        }
        n = n < len - at ? n : len - at;

        if (!fake_piece(wire.data + at, n, !chunked && at + n == wire.len)) {
            break;
        }
        at += n;
        if (input_next(&s->pieces, 1) & 1) {
            fake_turn();
        }
    }

    if (chunked && at == wire.len) {
        (void) fake_piece(NULL, 0, true);
    }
    return at;
}

static void
run(scene_t *s, inf_client_t *client, result_t *result)
{
    inf_buf_t bytes;

    memset(result, 0, sizeof(*result));
    inf_buf_init(&result->record);
    inf_buf_init(&bytes);
    make_wire(s, &bytes);
    inf_slice_t wire = inf_buf_slice(&bytes);
    size_t len = wire.len;

    if ((s->how & HOW_DAMAGED) && wire.len > 0) {
        ((char *) (uintptr_t) wire.data)[input_next(&s->pieces, 2) % wire.len]
            ^= (char) (1 + input_next(&s->pieces, 1));
    }
    if (s->how & HOW_SHORT) {
        len = wire.len > 0 ? input_next(&s->pieces, 2) % wire.len : 0;
    }

    fake_open("/v2/models/m/infer", client);
    fake.arena_size = ARENA_SIZE;
    set_up(s, wire.len);
    if (s->how & HOW_FOREIGN) {
        set_foreign(s, wire);
    }
    fake.clock = &s->clock;

    ngx_http_finalize_request(&fake.request,
        ngx_http_inference_handler(&fake.request));

    size_t delivered = s->how & HOW_FOREIGN ? 0 : deliver(s, wire, len);
    for (int turns = 0; fake_posted() && !fake.finalized; turns++) {
        check(turns < TURNS_MAX);
        fake_turn();
    }

    if (fake.submitted) {
        result->accepted = true;
        fake_record(&result->record);
        if (s->how & HOW_CORE_DIES) {
            fake_core_dies();
        }
    } else {
        /* nothing is left that could go on: it has been answered */
        check(fake.finalized || (s->how & HOW_SHORT));
        result->status = fake.sent
            ? (ngx_int_t) fake.request.headers_out.status : fake.rc;
        check(!fake.finalized || result->status >= 400);
    }

    check_handed_on(wire, delivered, s->how & HOW_FOREIGN);
    fake_close();
    check(inf_client_arena_stats(client)->regions == 0);
    check(inf_client_arena_stats(client)->in_use == 0);
    inf_buf_fini(&bytes);
}

static bool
is_about_room(ngx_int_t status)
{
    return status == 413 || status == 503;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const inf_client_conf_t conf = { .arena_bound = ARENA_BOUND,
        .arena_size = ARENA_SIZE, .slots = 4, .ring_entries = 4 };
    input_t in = { data, size };
    scene_t scene = { .how = (uint32_t) input_next(&in, 2) };
    inf_client_t *client;
    inf_buf_t body;
    result_t whole, other;

    if (size < 80 || size > 8192) {
        return 0;
    }

    scene.pieces = (input_t) { in.data, 40 };
    scene.clock = (input_t) { in.data + 40, 24 };
    in.data += 64;
    in.size -= 64;
    inf_buf_init(&body);
    make_body(&scene, &in, &body);
    scene.plain = inf_buf_slice(&body);

    inf_err_t *err = inf_client_new(&conf, &client);
    check(err == NULL);

    scene_t plain = scene;
    plain.how &= HOW_LIMITED;
    plain.clock.size = plain.pieces.size = 0;
    run(&plain, client, &whole);
    run(&scene, client, &other);

    if (!(scene.how & (HOW_DAMAGED | HOW_SHORT | HOW_LIMITED))) {
        check(whole.accepted == other.accepted);
        check(whole.accepted || whole.status == other.status
            || is_about_room(whole.status) || is_about_room(other.status));
        inf_slice_t a = inf_buf_slice(&whole.record);
        inf_slice_t b = inf_buf_slice(&other.record);
        check(a.len == b.len && memcmp(a.data, b.data, a.len) == 0);
    }

    inf_client_free(client);
    inf_buf_fini(&whole.record);
    inf_buf_fini(&other.record);
    inf_buf_fini(&body);
    return 0;
}
