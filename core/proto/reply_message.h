/*
 * reply_message.h - a response record as the gRPC reply to an inference, in
 *                   pieces for one writev.
 *
 * Owner    The caller owns the record's private copy, the mapped arena and the
 *          pool; all must outlive the writer, which lives in the pool.  Pieces
 *          point into pool and arena.
 * Thread   one at a time.
 * Units    bytes.
 * Errors   INVALID_ARG: impossible classification; a message over INT32_MAX
 *          bytes.  UNSUPPORTED: a parameter of type BYTES.
 * Route    completion ring -> record check -> [writer] -> DATA frames.
 *
 * Order of calls: check, new, prepare until DONE, then the pieces.  All errors
 * due to the response's content come from new and prepare, so a status can
 * still be chosen.
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

/* rec is checked and its status INF_OK.  options NULL: nothing listed,
   unary. */
INF_CHECK inf_err_t *inf_reply_new(inf_reply_t **out,
    const inf_response_record_t *rec, const void *arena_base,
    const inf_reply_options_t *options, inf_arena_t *pool);

/* Classifies and lays out the message.  Called until DONE before the functions
   below. */
INF_CHECK inf_codec_t inf_reply_prepare(inf_reply_t *r, size_t budget,
    inf_err_t **err);

/* The size of all pieces; the message is INF_GRPC_PREFIX (grpc.h) bytes
   shorter. */
uint64_t inf_reply_size(const inf_reply_t *r);

/* The pieces in order; none is empty.  The first contains the whole prefix, of
   an uncompressed message.  If there is only one, record and arena are no
   longer needed. */
uint32_t inf_reply_piece_count(const inf_reply_t *r);
inf_slice_t inf_reply_piece(const inf_reply_t *r, uint32_t i);

/* A reply on a stream without a record; texts may be empty. */
typedef struct {
    inf_slice_t error;
    inf_slice_t id;
    inf_slice_t model_name;
    inf_slice_t model_version;  /* as in the request                         */
    bool        answered;       /* has triton_final_response: the reply is from
                                   the model, not from an earlier check      */
    bool        final;
} inf_reply_notice_t;

/* The whole message with its prefix, in one piece in pool. */
INF_CHECK inf_err_t *inf_reply_notice(inf_slice_t *out,
    const inf_reply_notice_t *notice, inf_arena_t *pool);

#endif /* INF_PROTO_REPLY_MESSAGE_H */
