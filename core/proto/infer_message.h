/*
 * infer_message.h - reads the fields of a ModelInferRequest into the same
 *                   tables as a JSON request.
 *
 * Owner    The caller owns the text, the arena and the reader.  All tables and
 *          texts of the request are in the arena; only offsets of tensors
 *          refer to the text.
 * Thread   one at a time.
 * Units    bytes; offsets count from the text's first byte.
 * Errors   INTERNAL: the text is not a ModelInferRequest, with the position.
 *          INVALID_ARG: a rule of the service is broken, with Triton's text.
 *          UNSUPPORTED: a correlation id longer than 128 bytes.
 * Route    splitter -> [reader] -> contents decoder -> record -> channel.
 *
 * The text is the message without raw_input_contents, from infer_split.h.
 * Errors of syntax come first, then those of the version, the request's
 * parameters, inputs, outputs, the tensors' data, and the outputs' options, in
 * this order.
 */

#ifndef INF_PROTO_INFER_MESSAGE_H
#define INF_PROTO_INFER_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/proto/infer_codec.h"
#include "core/proto/infer_request.h"

typedef struct {
    inf_slice_t         model_name;
    inf_slice_t         version_text;   /* as requested; empty: by policy    */
    int64_t             model_version;  /* -1: by policy                     */
    bool                empty_final;    /* triton_enable_empty_final_response */
    inf_infer_request_t infer;
} inf_infer_call_t;

typedef struct inf_infer_message_s inf_infer_message_t;

/* Allocates the reader; limits may be NULL, max_json_bytes is ignored. */
INF_CHECK inf_err_t *inf_infer_message_new(inf_infer_message_t **out,
    inf_arena_t *arena, const inf_infer_limits_t *limits);

/*
 * Continues reading.  text has all fields of the message except the raw
 * tensors, whose sizes are raw_sizes; each call has the same bytes, at any
 * address.  AGAIN: the budget is spent, call again.
 */
INF_CHECK inf_codec_t inf_infer_message_read(inf_infer_message_t *m,
    const char *text, uint64_t len, const uint64_t *raw_sizes,
    uint32_t raw_count, size_t budget, inf_err_t **err);

/*
 * After DONE the whole request.  After an error id, model_name and
 * version_text as far as they were read, for a reply that names them.  Each
 * request of a stream has its own reader.
 *
 * An input's source is INF_SOURCE_RAW (raw_entry is its index), SHM, or
 * CONTENTS (infer_contents.h; byte_size 0: nothing to decode).
 */
const inf_infer_call_t *inf_infer_message_call(const inf_infer_message_t *m);

#endif /* INF_PROTO_INFER_MESSAGE_H */
