/* Any text as another server's metadata, and as those of its model "m": what is
   made of it is an answer that gRPC has a message of, and the same is made of
   that again. */
#include <stdint.h>
#include <stdlib.h>

#include "check.h"
#include "core/include/channel.h"
#include "core/proto/metadata_join.h"
#include "core/proto/model_metadata.h"
#include "core/proto/rest_message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef inf_err_t *(*join_fn)(inf_slice_t, inf_slice_t, inf_buf_t *);

static bool
join(join_fn answers, inf_slice_t ours, inf_slice_t theirs, inf_buf_t *out)
{
    inf_buf_init(out);
    inf_err_t *err = answers(ours, theirs, out);
    if (err == NULL) {
        return true;
    }
    inf_err_free(err);
    inf_buf_fini(out);
    return false;
}

static void
join_twice(uint16_t method, join_fn answers, inf_slice_t ours,
    inf_slice_t theirs)
{
    inf_buf_t once, twice, message;

    if (!join(answers, ours, theirs, &once)) {
        return;
    }

    check(join(answers, ours, inf_buf_slice(&once), &twice));
    check(inf_slice_eq(inf_buf_slice(&once), inf_buf_slice(&twice)));

    inf_buf_init(&message);
    check(inf_rest_message(method, inf_buf_slice(&once), &message) == NULL);

    inf_buf_fini(&message);
    inf_buf_fini(&once);
    inf_buf_fini(&twice);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    inf_slice_t theirs = inf_slice((const char *) data, size);

    join_twice(INF_METHOD_SERVER_METADATA, inf_metadata_join,
        INF_SLICE("{\"name\":\"us\",\"version\":\"1\",\"extensions\":"
                  "[\"statistics\",\"trace\"]}"), theirs);
    join_twice(INF_METHOD_MODEL_METADATA, inf_model_metadata_restrict,
        INF_SLICE("m"), theirs);
    return 0;
}
