/*
 * reply_message.h - a response record as the gRPC message that answers an
 *                   inference, in pieces for one writev.
 *
 * Owner    The caller owns the record's private copy, the mapped arena and
 *          the pool; all must outlive the writer, which lives in the pool.
 *          Pieces point into pool and arena.
 * Thread   one at a time.
 * Units    bytes.
 * Errors   INVALID_ARG: classification that can't be; a message over
 *          INT32_MAX bytes.  UNSUPPORTED: a parameter of type BYTES.
 * Route    completion ring -> record check -> [writer] -> DATA frames.
 *
 * The life: check, new, prepare until DONE, then the pieces.  All errors that
 * the response's content can cause come out of new and prepare, so a status
 * can still be chosen.
 */

#ifndef INF_PROTO_REPLY_MESSAGE_H
#define INF_PROTO_REPLY_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/error.h"
#include "core/base/slice.h"
#include "core/include/channel.h"
#include "core/proto/infer_codec.h"
#include "core/proto/infer_request.h"

/* Tensors up to this length are copied into the pool. */
#define INF_REPLY_COPIED 512u

typedef struct {
    const inf_infer_output_t *outputs;      /* the listed ones               */
    uint32_t                  output_count;
    bool                      stream;       /* as ModelStreamInferResponse   */
    bool                      final;        /* of a stream: the last response
                                               to this request               */
} inf_reply_options_t;

typedef struct inf_reply_s inf_reply_t;

/* rec is checked and its status INF_OK.  options may be NULL: nothing listed,
   unary. */
INF_CHECK inf_err_t *inf_reply_new(inf_reply_t **out,
    const inf_response_record_t *rec, const void *arena_base,
    const inf_reply_options_t *options, inf_arena_t *pool);

/* Classifies and lays the message out.  Call until DONE before anything
   below. */
INF_CHECK inf_codec_t inf_reply_prepare(inf_reply_t *r, size_t budget,
    inf_err_t **err);

/* Of all pieces; the message is INF_GRPC_PREFIX (grpc.h) bytes shorter. */
uint64_t inf_reply_size(const inf_reply_t *r);

/* The pieces in their order; none is empty.  The first begins with the whole
   prefix, of an uncompressed message.  Where there is only one, no byte of
   record and arena is needed any more. */
uint32_t inf_reply_piece_count(const inf_reply_t *r);
inf_slice_t inf_reply_piece(const inf_reply_t *r, uint32_t i);

/* A reply on a stream that has no record; texts may be empty. */
typedef struct {
    inf_slice_t error;
    inf_slice_t id;
    inf_slice_t model_name;
    inf_slice_t model_version;  /* as the request has it                     */
    bool        answered;       /* with triton_final_response: by the model,
                                   not by a check before it                  */
    bool        final;
} inf_reply_notice_t;

/* The whole message with its prefix, in one piece from pool. */
INF_CHECK inf_err_t *inf_reply_notice(inf_slice_t *out,
    const inf_reply_notice_t *notice, inf_arena_t *pool);

#endif /* INF_PROTO_REPLY_MESSAGE_H */
