/* infer_tail.c - the bytes after the JSON of an inference request, or in place
   of it. */

#include <string.h>

#include "core/proto/infer_request.h"

inf_err_t *
inf_infer_request_raw(inf_infer_request_t *out, inf_arena_t *arena,
    uint64_t body_len)
{
    inf_infer_input_t *in = inf_arena_calloc(arena, 1, sizeof(*in));

    if (in == NULL) {
        return inf_err_nomem();
    }

    in->name = INF_SLICE("");
    in->source = INF_SOURCE_BINARY;
    in->byte_size = body_len;

    memset(out, 0, sizeof(*out));
    out->flags = INF_REQUEST_RAW_INPUT;
    out->binary_data_output = true;
    out->inputs = in;
    out->input_count = 1;
    out->binary_size = body_len;
    return NULL;
}

inf_err_t *
inf_infer_request_check_tail(const inf_infer_request_t *req,
    uint64_t tail_len, inf_slice_t model)
{
    for (uint32_t i = 0; i < req->input_count; i++) {
        const inf_infer_input_t *in = &req->inputs[i];

        if (in->source == INF_SOURCE_BINARY
            && (in->binary_offset > tail_len
                || in->byte_size > tail_len - in->binary_offset))
        {
            uint64_t there = in->binary_offset < tail_len
                             ? tail_len - in->binary_offset : 0;

            return inf_err_new(INF_ERR_INVALID_ARG,
                               "unexpected size for input '%.*s', expecting "
                               "%llu additional bytes for model '%.*s'",
                               (int) in->name.len, in->name.data,
                               (unsigned long long) (in->byte_size - there),
                               (int) model.len, model.data);
        }
    }

    if (tail_len != req->binary_size) {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "unexpected additional input data for model "
                           "'%.*s'", (int) model.len, model.data);
    }

    return NULL;
}
