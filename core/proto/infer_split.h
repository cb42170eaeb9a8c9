/*
 * infer_split.h - splits a ModelInferRequest that arrives in pieces: raw
 *                 tensors apart, all other fields as one text.
 *
 * Owner    the caller's memory; there is nothing to free.
 * Thread   one at a time.
 * Units    bytes; positions count from the message's first byte.
 * Errors   INTERNAL: these bytes are no protobuf message, with the place.
 *          INVALID_ARG: too many raw tensors.
 * Route    body of the call -> [splitter] -> tensors at their places, fields
 *          for infer_message.h.
 */

#ifndef INF_PROTO_INFER_SPLIT_H
#define INF_PROTO_INFER_SPLIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/proto/message_wire.h"

typedef enum {
    INF_SPLIT_NOTHING,          /* bytes that nobody needs                   */
    INF_SPLIT_FIELDS,           /* append them to the text of the fields     */
    INF_SPLIT_TENSOR            /* they are the next ones of raw entry index */
} inf_split_kind_t;

/* The kind of the next bytes. */
typedef struct {
    inf_split_kind_t kind;
    size_t           used;      /* bytes of the input that are dealt with    */
    const char      *data;      /* what to keep: in the input, or the
                                   splitter's until the next call            */
    size_t           len;       /* of data; may be 0                         */
    uint32_t         index;     /* TENSOR: of the raw entry, from 0 on       */
    uint64_t         size;      /* TENSOR: of the whole entry                */
    uint64_t         offset;    /* TENSOR: of data in the entry              */
} inf_split_piece_t;

typedef struct {
    uint64_t size;              /* of the message                            */
    uint64_t pos;               /* bytes dealt with                          */
    uint64_t body;              /* bytes left of the open field              */
    uint64_t tensor_size;
    uint32_t count;             /* raw entries that have begun               */
    bool     tensor;            /* the open field is a raw entry             */
    uint8_t  head_len;          /* bytes of a head that was cut              */
    char     head[INF_WIRE_HEAD_MAX];
} inf_split_t;

/* size: of the message, as its prefix says. */
void inf_split_init(inf_split_t *s, uint64_t size);

/*
 * Says the kind of the next of the n bytes at data; bytes behind the message's
 * end are not looked at.  Call again with the bytes behind piece->used until
 * the message is done.  A new index comes first in the piece that knows the
 * size, also where this has no byte of the entry yet, or the entry is empty.
 */
INF_CHECK inf_err_t *inf_split_next(inf_split_t *s, const void *data,
    size_t n, inf_split_piece_t *piece);

/* All bytes have been dealt with. */
static inline bool
inf_split_done(const inf_split_t *s)
{
    return s->pos == s->size;
}

/* No field is cut: where the message's size was not known, it may end here. */
static inline bool
inf_split_at_field(const inf_split_t *s)
{
    return s->body == 0 && s->head_len == 0;
}

/* Raw entries so far. */
static inline uint32_t
inf_split_count(const inf_split_t *s)
{
    return s->count;
}

/* Writes the head of a raw entry of that size, INF_WIRE_HEAD_MAX bytes at most;
   its length. */
size_t inf_split_raw_head(char *dst, uint64_t size);

#endif /* INF_PROTO_INFER_SPLIT_H */
