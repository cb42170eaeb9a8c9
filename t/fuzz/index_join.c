/* Any two texts as indexes, split at the first NUL: if they are joined, the
   result is a list, and joining it with the same again changes nothing. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/proto/index_join.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool
join(inf_slice_t a, inf_slice_t b, inf_buf_t *out)
{
    inf_buf_init(out);
    inf_err_t *err = inf_index_join(a, b, out);
    if (err == NULL) {
        return true;
    }
    if (out->len != 0) {
        abort();
    }
    inf_err_free(err);
    inf_buf_fini(out);
    return false;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *bytes = (const char *) data;
    const char *nul = size ? memchr(bytes, '\0', size) : NULL;
    inf_buf_t once, twice;

    if (nul == NULL) {
        return 0;
    }

    inf_slice_t ours = inf_slice(bytes, (size_t) (nul - bytes));
    inf_slice_t theirs = inf_slice(nul + 1, size - ours.len - 1);
    if (!join(ours, theirs, &once)) {
        return 0;
    }

    if (once.data[0] != '[' || once.data[once.len - 1] != ']'
        || !join(inf_buf_slice(&once), theirs, &twice)
        || once.len != twice.len
        || memcmp(once.data, twice.data, once.len) != 0)
    {
        abort();
    }

    inf_buf_fini(&once);
    inf_buf_fini(&twice);
    return 0;
}
