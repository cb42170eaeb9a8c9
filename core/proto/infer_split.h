/*
 * infer_split.h - splits a ModelInferRequest that arrives in pieces: raw
 *                 tensors, and all other fields as one text.
 *
 * Owner    The caller's memory; there is nothing to free.
 * Thread   one at a time.
 * Units    bytes; positions count from the message's first byte.
 * Errors   INTERNAL: the bytes are not a protobuf message, with the position.
 *          INVALID_ARG: too many raw tensors.
 * Route    body of the call -> [splitter] -> tensors, fields for
 *          infer_message.h.
 */

#ifndef INF_PROTO_INFER_SPLIT_H
#define INF_PROTO_INFER_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/proto/message_wire.h"

typedef enum {
    INF_SPLIT_NOTHING,          /* bytes that are not needed                 */
    INF_SPLIT_FIELDS,           /* append to the text of the fields          */
    INF_SPLIT_TENSOR            /* next bytes of raw entry index             */
} inf_split_kind_t;

/* The next piece of the input. */
typedef struct {
    inf_split_kind_t kind;
    size_t           used;      /* processed bytes of the input              */
    const char      *data;      /* bytes to keep: in the input, or in the
                                   splitter until the next call              */
    size_t           len;       /* of data; may be 0                         */
    uint32_t         index;     /* TENSOR: of the raw entry, from 0 on       */
    uint64_t         size;      /* TENSOR: of the whole entry                */
    uint64_t         offset;    /* TENSOR: of data in the entry              */
} inf_split_piece_t;

typedef struct {
    uint64_t size;              /* of the message                            */
    uint64_t pos;               /* processed bytes                           */
    uint64_t body;              /* remaining bytes of the open field         */
    uint64_t tensor_size;
    uint32_t count;             /* raw entries begun                         */
    bool     tensor;            /* the open field is a raw entry             */
    uint8_t  head_len;          /* bytes of an incomplete head               */
    char     head[INF_WIRE_HEAD_MAX];
} inf_split_t;

/* size: of the message, from its prefix. */
void inf_split_init(inf_split_t *s, uint64_t size);

/*
 * Returns the next piece of the n bytes at data; bytes after the message's end
 * are ignored.  Call again with the bytes after piece->used until the message
 * is done.  A new index first comes in the piece that has the size, even if
 * this has no byte of the entry yet, or the entry is empty.
 */
INF_CHECK inf_err_t *inf_split_next(inf_split_t *s, const void *data,
    size_t n, inf_split_piece_t *piece);

/* Whether all bytes have been processed. */
static inline bool
inf_split_done(const inf_split_t *s)
{
    return s->pos == s->size;
}

/* Whether no field is incomplete: a message of unknown size may end here. */
static inline bool
inf_split_at_field(const inf_split_t *s)
{
    return s->body == 0 && s->head_len == 0;
}

/* The number of raw entries so far. */
static inline uint32_t
inf_split_count(const inf_split_t *s)
{
    return s->count;
}

/* Writes the head of a raw entry of that size, at most INF_WIRE_HEAD_MAX bytes,
   and returns its length. */
size_t inf_split_raw_head(char *dst, uint64_t size);

#endif /* INF_PROTO_INFER_SPLIT_H */
