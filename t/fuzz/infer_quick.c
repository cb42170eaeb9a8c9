/*
 * infer_quick.c - any bytes as a request: the quick way and the document's
 *                 give the same tables or the same error.
 *
 * The first two bytes choose how the text arrives in the second round.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "t/unit/proto/infer_compare.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const inf_infer_limits_t limits = {
    .max_json_bytes = 1 << 20, .max_inputs = 40, .max_outputs = 40,
    .max_piece_bytes = 256
};

static void
expect(int condition)
{
    if (!condition) {
        abort();
    }
}

static void
compare(const compare_t *slow, const char *text, size_t len, size_t slice,
    size_t budget)
{
    compare_t quick;

    expect(compare_read(&quick, text, len, slice, budget, &limits, true));
    expect(compare_results(&quick, slow) == NULL);
    compare_fini(&quick);
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
    compare_t slow;

    /* exactly as long as the text, so that a byte too far is seen */
    char *text = malloc(len + (len == 0));
    expect(text != NULL);
    memcpy(text, data + 2, len);

    expect(compare_read(&slow, text, len, len, SIZE_MAX, &limits, false));
    compare(&slow, text, len, len, SIZE_MAX);
    compare(&slow, text, len, len, budget);
    compare(&slow, text, len, slice, SIZE_MAX);

    compare_fini(&slow);
    free(text);
    return 0;
}
