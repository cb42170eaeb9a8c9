/*
 * A call of gRPC through the module's own state machine, handler to submission,
 * in an nginx of ngx/fake.c.  The input makes a ModelInferRequest (its own
 * bytes, or one with raw tensors), its frame, which may lie, and says how the
 * bytes come: in what pieces, compressed, cut short, with slices that end
 * anywhere.
 *
 * However they come, the answer is that of the same bytes in one piece: the
 * same failure, or the same record with the same tensors.  A call that fails
 * and goes on to another handler has its bytes again, all of them and, where
 * its fields stand as clients write them, in their order.  No region is left
 * when the call is gone.
 */

#include "t/fuzz/ngx/fake.h"

#include <zlib.h>

#define ARENA_BOUND (1u << 20)
#define ARENA_SIZE  (8u << 20)
#define TURNS_MAX   100000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    HOW_BYTES = 0x01, HOW_GZIP = 0x02, HOW_ZLIB = 0x04, HOW_DAMAGED = 0x08,
    HOW_SHORT = 0x10, HOW_LENGTH = 0x20, HOW_TWICE = 0x40, HOW_LIMITED = 0x80,
    HOW_FLAG = 0x100, HOW_ERROR_PAGE = 0x200
};

typedef struct {
    inf_slice_t   frames;
    uint32_t      how;
    input_t       pieces;               /* of the body, and turns            */
    input_t       clock;
} scene_t;

typedef struct {
    bool       accepted;
    ngx_int_t  status;                  /* of gRPC, or of the finalization   */
    inf_buf_t  record;
} result_t;

/* ---- the call ------------------------------------------------------------ */

static void
put_text(inf_buf_t *out, char tag, const char *text, size_t len)
{
    check(len < 128);
    inf_buf_putc(out, tag);
    inf_buf_putc(out, (char) len);
    inf_buf_put(out, text, len);
}

static void
put_tensor(const scene_t *s, inf_buf_t *out, inf_buf_t *raw, input_t *in)
{
    uint64_t count = input_next(in, 1) * (input_next(in, 1) & 1 ? 60 : 1);
    uint64_t size = count + (input_next(in, 1) & 0x3f ? 0 : 1);
    char shape[8] = { 0x1a, 2, (char) ((count & 0x7f) | 0x80),
        (char) (count >> 7) };
    char name[2] = { 'I', (char) ('0' + (out->len & 7)) };
    inf_buf_t input;

    inf_buf_init(&input);
    put_text(&input, 0x0a, name, sizeof(name));
    put_text(&input, 0x12, "UINT8", 5);
    inf_buf_put(&input, shape, 4);
    put_text(out, 0x2a, input.data, input.len);
    inf_buf_fini(&input);

    inf_buf_putc(raw, 0x3a);
    if (s->how & HOW_ERROR_PAGE) {
        char len[INF_WIRE_VARINT_MAX];
        inf_buf_put(raw, len, (size_t) (inf_wire_put_varint(len, size) - len));
    } else {                            /* with idle bytes                   */
        inf_buf_putc(raw, (char) ((size & 0x7f) | 0x80));
        inf_buf_putc(raw, (char) ((size >> 7 & 0x7f) | 0x80));
        inf_buf_putc(raw, (char) (size >> 14));
    }
    for (uint64_t i = 0; i < size; i++) {
        inf_buf_putc(raw, (char) (i % 251));
    }
}

static void
make_message(const scene_t *s, input_t *in, inf_buf_t *message)
{
    inf_buf_t raw;

    if (s->how & HOW_BYTES) {
        inf_buf_put(message, in->data, in->size);
        return;
    }

    inf_buf_init(&raw);
    put_text(message, 0x0a, "m", 1);
    put_text(message, 0x1a, "id", 2);
    for (uint64_t n = input_next(in, 1) & 3; n > 0; n--) {
        put_tensor(s, message, &raw, in);
    }
    inf_buf_put(message, raw.data, raw.len);
    inf_buf_fini(&raw);
}

static void
compress_message(const scene_t *s, inf_buf_t *message)
{
    z_stream z = { 0 };

    check(deflateInit2(&z, 1, Z_DEFLATED, s->how & HOW_GZIP ? 31 : 15, 9,
        Z_DEFAULT_STRATEGY) == Z_OK);
    size_t bound = deflateBound(&z, message->len) + 32;
    uint8_t *out = malloc(bound);
    check(out != NULL);
    z.next_in = (Bytef *) message->data;
    z.avail_in = (uInt) message->len;
    z.next_out = out;
    z.avail_out = (uInt) bound;
    check(deflate(&z, Z_FINISH) == Z_STREAM_END);
    message->len = 0;
    inf_buf_put(message, out, bound - z.avail_out);
    deflateEnd(&z);
    free(out);
}

static void
make_frames(scene_t *s, input_t *in, inf_buf_t *frames)
{
    bool compressed = (s->how & (HOW_GZIP | HOW_ZLIB)) != 0;
    char prefix[INF_GRPC_PREFIX];
    inf_buf_t message;

    inf_buf_init(&message);
    make_message(s, in, &message);
    if (compressed) {
        compress_message(s, &message);
    }

    inf_grpc_put_prefix(prefix, &(inf_grpc_prefix_t) {
        .compressed = compressed,
        .len = (uint32_t) message.len
            + (s->how & HOW_LENGTH ? (uint32_t) input_next(&s->pieces, 4) : 0)
    });
    if (s->how & HOW_FLAG) {
        prefix[0] = (char) input_next(&s->pieces, 1);
    }

    for (int i = 0; i < (s->how & HOW_TWICE ? 2 : 1); i++) {
        inf_buf_put(frames, prefix, sizeof(prefix));
        inf_buf_put(frames, message.data, message.len);
    }
    inf_buf_fini(&message);

    if ((s->how & HOW_DAMAGED) && frames->len > 0) {
        frames->data[input_next(&s->pieces, 2) % frames->len]
            ^= (char) (1 + input_next(&s->pieces, 1));
    }
    s->frames = inf_buf_slice(frames);
    if (s->how & HOW_SHORT) {
        s->frames.len = input_next(&s->pieces, 2) % (s->frames.len + 1);
    }
}

/* ---- a run --------------------------------------------------------------- */

static void
set_up(const scene_t *s, inf_client_t *client)
{
    static ngx_table_elt_t type;
    ngx_http_request_t *r = &fake.request;

    fake_open("/inference.GRPCInferenceService/ModelInfer", client);
    fake.arena_size = ARENA_SIZE;
    fake.main_conf.arena = ARENA_BOUND;
    fake.loc_conf.max_body = s->how & HOW_LIMITED ? 300 : 0;

    if (s->how & HOW_ERROR_PAGE) {
        static const ngx_int_t statuses[8] = { 400, 404, 413, 429, 500, 501,
            503, 504 };

        for (size_t i = 0; i < 8; i++) {
            fake.pages[i].status = statuses[i];
        }
        fake.loc_conf.intercept = 1;
        fake.error_pages.elts = fake.pages;
        fake.error_pages.nelts = 8;
        fake.core_conf.error_pages = &fake.error_pages;
    }

    ngx_str_set(&type.value, "application/grpc");
    r->headers_in.content_type = &type;
    r->headers_in.chunked = 1;
    r->http_version = NGX_HTTP_VERSION_20;
    fake_header("te", "trailers", strlen("trailers"));
    if (s->how & (HOW_GZIP | HOW_ZLIB)) {
        const char *name = s->how & HOW_GZIP ? "gzip" : "deflate";
        fake_header("grpc-encoding", name, strlen(name));
    }
}

/* Another handler has got the body, if it has got anything. */
static void
check_handed_on(const scene_t *s)
{
    const ngx_http_request_t *r = &fake.request;
    inf_buf_t bytes;

    if (r->request_body == NULL || r->request_body->bufs == NULL) {
        return;
    }

    inf_buf_init(&bytes);
    for (ngx_chain_t *cl = r->request_body->bufs; cl != NULL; cl = cl->next) {
        inf_buf_put(&bytes, cl->buf->pos,
            (size_t) (cl->buf->last - cl->buf->pos));
    }

    check(!fake.submitted && fake.rc >= 400);
    check(bytes.len == s->frames.len);
    if (!(s->how & (HOW_BYTES | HOW_DAMAGED))
        || (s->how & (HOW_GZIP | HOW_ZLIB)))
    {
        check(memcmp(bytes.data, s->frames.data, bytes.len) == 0);
    }
    inf_buf_fini(&bytes);
}

static void
deliver(scene_t *s, bool whole)
{
    size_t at = 0;

    while (at < s->frames.len) {
        size_t n = s->frames.len;

        if (!whole) {
            uint64_t cut = input_next(&s->pieces, 1);
            n = 1 + (size_t) (cut & 0x3f) * (cut & 0x80 ? 500 : 1);
        }
        n = n < s->frames.len - at ? n : s->frames.len - at;

        if (!fake_piece(s->frames.data + at, n, false)) {
            return;
        }
        at += n;
        if (!whole && (input_next(&s->pieces, 1) & 1)) {
            fake_turn();
        }
    }
    (void) fake_piece(NULL, 0, true);
}

static void
run(scene_t *s, bool whole, inf_client_t *client, result_t *result)
{
    memset(result, 0, sizeof(*result));
    inf_buf_init(&result->record);

    set_up(s, client);
    fake.clock = whole ? NULL : &s->clock;

    ngx_http_finalize_request(&fake.request,
        ngx_http_inference_handler(&fake.request));
    deliver(s, whole);

    for (int turns = 0; fake_posted() && !fake.finalized; turns++) {
        check(turns < TURNS_MAX);
        fake_turn();
    }

    check(fake.submitted || fake.finalized);
    result->accepted = fake.submitted;
    if (!fake.submitted) {
        const ngx_http_inference_ctx_t *ctx = fake.ctx[1];
        check(ctx->status != 0);
        result->status = ctx->status == 413 ? INF_GRPC_RESOURCE_EXHAUSTED
            : ctx->grpc->status != INF_GRPC_OK ? ctx->grpc->status
            : inf_grpc_status(ctx->code);
    } else {
        fake_record(&result->record);
    }

    check_handed_on(s);
    fake_close();
    check(inf_client_arena_stats(client)->regions == 0);
    check(inf_client_arena_stats(client)->in_use == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const inf_client_conf_t conf = { .arena_bound = ARENA_BOUND,
        .arena_size = ARENA_SIZE, .slots = 4, .ring_entries = 4 };
    input_t in = { data, size };
    scene_t scene = { .how = (uint32_t) input_next(&in, 2) };
    inf_client_t *client;
    inf_buf_t frames;
    result_t whole, other;

    if (size < 80 || size > 8192) {
        return 0;
    }

    scene.pieces = (input_t) { in.data, 40 };
    scene.clock = (input_t) { in.data + 40, 24 };
    in.data += 64;
    in.size -= 64;
    inf_buf_init(&frames);
    make_frames(&scene, &in, &frames);

    inf_err_t *err = inf_client_new(&conf, &client);
    check(err == NULL);

    run(&scene, true, client, &whole);
    run(&scene, false, client, &other);

    check(whole.accepted == other.accepted);
    check(whole.status == other.status);
    inf_slice_t a = inf_buf_slice(&whole.record);
    inf_slice_t b = inf_buf_slice(&other.record);
    check(a.len == b.len && memcmp(a.data, b.data, a.len) == 0);

    inf_client_free(client);
    inf_buf_fini(&whole.record);
    inf_buf_fini(&other.record);
    inf_buf_fini(&frames);
    return 0;
}
