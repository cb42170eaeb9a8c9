/*
 * infer_request.c - any bytes as a request: read at once and in crumbs with
 *                   the same outcome, decoded, and put into a record.
 *
 * The first two bytes choose slice and budget of the second reading.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/proto/infer_data.h"
#include "core/proto/infer_record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct {
    inf_arena_t         arena;
    inf_infer_request_t request;
    inf_err_t          *err;
} reading_t;

static const inf_infer_limits_t limits = {
    .max_json_bytes = 1 << 20, .max_inputs = 40, .max_outputs = 40,
    .max_piece_bytes = 4096
};

static void
expect(int condition)
{
    if (!condition) {
        abort();
    }
}

static void
read_all(reading_t *g, const char *text, size_t len, size_t slice,
    size_t budget)
{
    inf_infer_reader_t *reader;
    inf_codec_t rc;
    size_t avail = slice < len ? slice : len;

    memset(g, 0, sizeof(*g));
    inf_arena_init(&g->arena);
    expect(inf_infer_reader_new(&reader, &g->arena, &limits) == NULL);

    for ( ;; ) {
        size_t before = inf_infer_reader_offset(reader);
        rc = inf_infer_reader_feed(reader, text, avail, avail == len, budget,
                                   &g->err);
        if (rc != INF_CODEC_AGAIN) {
            break;
        }

        size_t at = inf_infer_reader_offset(reader);
        expect(at > before || at == avail);
        if (at == avail) {
            expect(avail != len);
            avail = len - avail > slice ? avail + slice : len;
        }
    }

    if (rc == INF_CODEC_DONE) {
        g->request = inf_infer_reader_request(reader);
    }

    expect((rc == INF_CODEC_ERROR) == (g->err != NULL));
    inf_infer_reader_free(reader);
}

/* The bytes, or NULL where the error is. */
static char *
decode(const inf_infer_input_t *in, const char *text, size_t budget)
{
    char *dst = malloc(in->byte_size + 1);
    inf_err_t *err = NULL;
    inf_data_decoder_t d;
    inf_codec_t rc;

    expect(dst != NULL);
    inf_data_decoder_init(&d, in);
    do {
        rc = inf_data_decoder_run(&d, text, dst, budget, &err);
    } while (rc == INF_CODEC_AGAIN);

    if (rc == INF_CODEC_ERROR) {
        inf_err_free(err);
        free(dst);
        return NULL;
    }

    return dst;
}

static void
decode_both(const inf_infer_input_t *in, const char *text, size_t budget)
{
    if (in->source != INF_SOURCE_JSON) {
        return;
    }

    char *a = decode(in, text, SIZE_MAX);
    char *b = decode(in, text, budget);

    expect((a == NULL) == (b == NULL));
    expect(a == NULL || memcmp(a, b, in->byte_size) == 0);
    free(a);
    free(b);
}

static void
write_record(const inf_infer_request_t *q)
{
    uint64_t *offsets = calloc(q->input_count + 1u, sizeof(*offsets));
    inf_infer_target_t target = {
        INF_SLICE("model"), 1, INF_PROTOCOL_HTTP, offsets
    };
    size_t size;

    expect(offsets != NULL);
    expect(inf_infer_record_size(q, &target, &size) == NULL);
    void *record = malloc(size);
    expect(record != NULL);
    inf_infer_record_write(q, &target, record, size);
    free(record);
    free(offsets);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) {
        return 0;
    }

    size_t slice = data[0] + 1u;
    size_t budget = data[1] + 1u;
    size_t len = size - 2;
    reading_t whole, crumbs;

    /* exactly as long as the text, so that a byte too far is seen */
    char *text = malloc(len + (len == 0));
    expect(text != NULL);
    memcpy(text, data + 2, len);

    read_all(&whole, text, len, len, SIZE_MAX);
    read_all(&crumbs, text, len, slice, budget);
    expect((whole.err == NULL) == (crumbs.err == NULL));

    if (whole.err != NULL) {
        expect(strcmp(inf_err_msg(whole.err), inf_err_msg(crumbs.err)) == 0);
    } else {
        expect(whole.request.input_count == crumbs.request.input_count);
        for (uint32_t i = 0; i < whole.request.input_count; i++) {
            decode_both(&whole.request.inputs[i], text, budget);
        }

        write_record(&whole.request);
    }

    inf_err_free(whole.err);
    inf_err_free(crumbs.err);
    inf_arena_fini(&whole.arena);
    inf_arena_fini(&crumbs.arena);
    free(text);
    return 0;
}
