/*
 * message_wire.h - the wire format of protobuf: varints, and the heads of
 *                  fields.
 *
 * Owner    The caller's memory.
 * Thread   any.
 * Units    bytes.
 * Errors   a reason instead of a head; NULL if only more bytes are needed.
 * Route    splitter, request reader and reply writer of gRPC inferences ->
 *          [wire]; all other messages use protobuf-c (message.h).
 */

#ifndef INF_PROTO_MESSAGE_WIRE_H
#define INF_PROTO_MESSAGE_WIRE_H

#include <stddef.h>
#include <stdint.h>

#define INF_WIRE_VARINT_MAX 10u
#define INF_WIRE_HEAD_MAX   (2 * INF_WIRE_VARINT_MAX)

typedef enum {
    INF_WIRE_VARINT = 0,
    INF_WIRE_I64    = 1,
    INF_WIRE_LEN    = 2,
    INF_WIRE_I32    = 5
} inf_wire_type_t;

/* A field up to the start of its bytes; a varint has only a head. */
typedef struct {
    uint32_t        field;
    inf_wire_type_t type;
    uint64_t        value;      /* VARINT                                    */
    uint64_t        body;       /* bytes that follow                         */
    size_t          len;        /* of the head                               */
} inf_wire_head_t;

typedef enum {
    INF_WIRE_OK,
    INF_WIRE_CUT,               /* more than n bytes are needed              */
    INF_WIRE_BAD                /* *reason is the cause                      */
} inf_wire_result_t;

/* Reads the varint in the n bytes at p and returns its length; 0: not complete,
   or invalid if n is INF_WIRE_VARINT_MAX or more. */
static inline size_t
inf_wire_varint(const char *p, size_t n, uint64_t *value)
{
    uint64_t v = 0;

    if (n != 0 && (unsigned char) *p < 0x80) {
        *value = (unsigned char) *p;
        return 1;
    }

    n = n < INF_WIRE_VARINT_MAX ? n : INF_WIRE_VARINT_MAX;
    for (size_t i = 0; i < n; i++) {
        uint64_t byte = (unsigned char) p[i];

        v |= (byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            *value = v;
            return i + 1;
        }
    }

    return 0;
}

/* Reads the head of the field at p; n > 0.  The caller checks the end of the
   body. */
static inline inf_wire_result_t
inf_wire_head(const char *p, size_t n, inf_wire_head_t *head,
    const char **reason)
{
    uint64_t tag;
    size_t used = inf_wire_varint(p, n, &tag);

    if (used == 0) {
        *reason = "a tag of more than 10 bytes";
        return n < INF_WIRE_VARINT_MAX ? INF_WIRE_CUT : INF_WIRE_BAD;
    }

    head->field = (uint32_t) (tag >> 3);
    head->type = (inf_wire_type_t) (tag & 7);
    head->len = used;
    head->value = 0;
    head->body = 0;

    if (tag > UINT32_MAX || head->field == 0) {
        *reason = "an impossible field number";
        return INF_WIRE_BAD;
    }

    switch ((unsigned) head->type) {
    case INF_WIRE_I64:
        head->body = 8;
        return INF_WIRE_OK;
    case INF_WIRE_I32:
        head->body = 4;
        return INF_WIRE_OK;
    case INF_WIRE_VARINT:
    case INF_WIRE_LEN:
        break;
    default:
        *reason = "an unknown wire type";
        return INF_WIRE_BAD;
    }

    used = inf_wire_varint(p + head->len, n - head->len, &head->value);
    if (used == 0) {
        *reason = "a varint of more than 10 bytes";
        return n - head->len < INF_WIRE_VARINT_MAX ? INF_WIRE_CUT
                                                   : INF_WIRE_BAD;
    }

    head->len += used;
    head->body = head->type == INF_WIRE_LEN ? head->value : 0;
    return INF_WIRE_OK;
}

static inline size_t
inf_wire_varint_size(uint64_t value)
{
    /* 7 bits a byte, at least one byte */
    return ((size_t) (63 - __builtin_clzll(value | 1)) * 9 + 73) / 64;
}

/* Writes a varint and returns the end. */
static inline char *
inf_wire_put_varint(char *dst, uint64_t value)
{
    while (value >= 0x80) {
        *dst++ = (char) (value | 0x80);
        value >>= 7;
    }

    *dst++ = (char) value;
    return dst;
}

/* The one-byte tag of a field below 16. */
static inline char
inf_wire_tag(uint32_t field, inf_wire_type_t type)
{
    return (char) (field << 3 | (uint32_t) type);
}

#endif /* INF_PROTO_MESSAGE_WIRE_H */
