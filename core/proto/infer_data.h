/*
 * infer_data.h - decodes the `data` array of one input into typed bytes.
 *
 * Owner    The caller's memory; there is nothing to free.
 * Thread   one at a time.
 * Units    bytes; count: elements.
 * Errors   INVALID_ARG: an element of the wrong kind or out of its datatype's
 *          range, a datatype that JSON cannot carry, a wrong count.
 * Route    reader -> [data decoder] -> the input's region in the request
 *          arena.
 */

#ifndef INF_PROTO_INFER_DATA_H
#define INF_PROTO_INFER_DATA_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/proto/infer_codec.h"
#include "core/proto/infer_request.h"

typedef struct {
    const inf_infer_input_t *input;
    uint64_t pos;               /* in the span                               */
    uint64_t count;             /* elements written                          */
    uint64_t out;               /* bytes written                             */
    uint64_t string_at;         /* of the open string's length prefix        */
    uint32_t depth;
    bool     in_string;
} inf_data_decoder_t;

/* Triton's error text for an element of the wrong kind. */
const char *inf_data_wrong_kind(uint32_t datatype);

/* For an input whose source is INF_SOURCE_JSON; input must stay valid. */
void inf_data_decoder_init(inf_data_decoder_t *d,
    const inf_infer_input_t *input);

/*
 * Continues decoding.  json is the JSON's first byte (as given to the reader),
 * dst the tensor's first byte with room for input->byte_size bytes; both have
 * the same bytes in every call.  DONE: exactly byte_size bytes are written.
 */
INF_CHECK inf_codec_t inf_data_decoder_run(inf_data_decoder_t *d,
    const char *json, void *dst, size_t budget, inf_err_t **err);

#endif /* INF_PROTO_INFER_DATA_H */
