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
#include "t/fuzz/check.h"
#include "t/fuzz/flat_record.h"
#include "t/unit/proto/infer_compare.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const inf_infer_limits_t limits = {
    .max_json_bytes = 1 << 20, .max_inputs = 40, .max_outputs = 40,
    .max_piece_bytes = 256
};

/* The bytes, or NULL where the error is. */
static char *
decode(const inf_infer_input_t *in, const char *text, size_t budget)
{
    char *dst = malloc(in->byte_size + 1);
    inf_err_t *err = NULL;
    inf_data_decoder_t d;
    inf_codec_t rc;

    check(dst != NULL);
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

    check((a == NULL) == (b == NULL));
    check(a == NULL || memcmp(a, b, in->byte_size) == 0);
    free(a);
    free(b);
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
    compare_t whole, crumbs;

    /* exactly as long as the text, so that a byte too far is seen */
    char *text = malloc(len + (len == 0));
    check(text != NULL);
    memcpy(text, data + 2, len);

    check(compare_read(&whole, text, len, len, SIZE_MAX, &limits));
    check(compare_read(&crumbs, text, len, slice, budget, &limits));
    check(compare_results(&whole, &crumbs) == NULL);

    if (whole.err == NULL) {
        for (uint32_t i = 0; i < whole.request.input_count; i++) {
            decode_both(&whole.request.inputs[i], text, budget);
        }

        flat_record_write(&whole.request, INF_SLICE("model"), 1,
            INF_PROTOCOL_HTTP);
    }

    compare_fini(&whole);
    compare_fini(&crumbs);
    free(text);
    return 0;
}
