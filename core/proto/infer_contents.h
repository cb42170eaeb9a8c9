/*
 * infer_contents.h - decodes the typed contents of one input of a
 *                    ModelInferRequest into the tensor's bytes.
 *
 * Owner    The caller's memory; there is nothing to free.
 * Thread   one at a time.
 * Units    bytes.
 * Errors   INTERNAL: a varint of more than 10 bytes, or bytes that differ from
 *          the reader's counts.
 * Route    request reader -> [contents decoder] -> the input's region in the
 *          request arena.
 */

#ifndef INF_PROTO_INFER_CONTENTS_H
#define INF_PROTO_INFER_CONTENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/proto/infer_codec.h"
#include "core/proto/infer_request.h"

/* The fields of InferTensorContents, each a list; up to UINT64 of varints. */
enum {
    INF_CONTENTS_BOOL = 1,
    INF_CONTENTS_INT,
    INF_CONTENTS_INT64,
    INF_CONTENTS_UINT,
    INF_CONTENTS_UINT64,
    INF_CONTENTS_FP32,
    INF_CONTENTS_FP64,
    INF_CONTENTS_BYTES
};

typedef struct {
    const inf_infer_input_t *input;
    uint64_t pos;               /* in the text                               */
    uint64_t contents_end;      /* of the open contents field                */
    uint64_t list_end;          /* of the open packed list, or string        */
    uint64_t out;               /* bytes written                             */
    uint32_t list;              /* field with the wanted elements            */
} inf_contents_decoder_t;

/* For an input whose source is INF_SOURCE_CONTENTS; input must stay valid. */
void inf_contents_decoder_init(inf_contents_decoder_t *d,
    const inf_infer_input_t *input);

/*
 * Continues decoding.  text is the text's first byte (as given to the reader),
 * dst the tensor's first byte with room for input->byte_size bytes; both have
 * the same bytes in every call.  DONE: exactly byte_size bytes are written.
 */
INF_CHECK inf_codec_t inf_contents_decoder_run(inf_contents_decoder_t *d,
    const char *text, void *dst, size_t budget, inf_err_t **err);

#endif /* INF_PROTO_INFER_CONTENTS_H */
