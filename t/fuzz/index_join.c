/* Any two texts as indexes, split at the first NUL: if they are joined, the
   result is a list, gRPC has a message of it, and joining it with the same
   again changes nothing. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "core/include/channel.h"
#include "core/proto/index_join.h"
#include "core/proto/rest_message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool
join(inf_slice_t a, inf_slice_t b, inf_buf_t *out)
{
    inf_buf_init(out);
    inf_err_t *err = inf_index_join(a, b, out);
    if (err == NULL) {
        return true;
    }
    check(out->len == 0);
    inf_err_free(err);
    inf_buf_fini(out);
    return false;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *bytes = (const char *) data;
    const char *nul = size ? memchr(bytes, '\0', size) : NULL;
    inf_buf_t once, twice, message;

    if (nul == NULL) {
        return 0;
    }

    inf_slice_t ours = inf_slice(bytes, (size_t) (nul - bytes));
    inf_slice_t theirs = inf_slice(nul + 1, size - ours.len - 1);
    if (!join(ours, theirs, &once)) {
        return 0;
    }

    check(once.data[0] == '[' && once.data[once.len - 1] == ']');
    check(join(inf_buf_slice(&once), theirs, &twice));
    check(inf_slice_eq(inf_buf_slice(&once), inf_buf_slice(&twice)));

    inf_buf_init(&message);
    check(inf_rest_message(INF_METHOD_REPOSITORY_INDEX, inf_buf_slice(&once),
        &message) == NULL);

    inf_buf_fini(&message);
    inf_buf_fini(&once);
    inf_buf_fini(&twice);
    return 0;
}
