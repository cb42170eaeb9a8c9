/*
 * message.h - functions on protobuf messages: new, pack, unpack, clone, free.
 *
 * Owner    The receiver of a message frees it with inf_message_free (or the
 *          generated __free_unpacked with a NULL allocator).
 * Thread   as the message; descriptors are constant.
 * Units    bytes.
 * Errors   INVALID_ARG: the bytes are not such a message; the text names the
 *          field.  Out of memory.
 * Route    control calls between worker and core, gRPC messages,
 *          configurations -> [message] -> protobuf-c, which no other file
 *          calls
 */

#ifndef INF_PROTO_MESSAGE_H
#define INF_PROTO_MESSAGE_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>

#include "core/base/buf.h"
#include "core/base/error.h"
#include "core/base/slice.h"
#include "core/proto/message_field.h"

/* Nesting depth of messages that the codecs accept. */
#define INF_MESSAGE_DEPTH 64

/* Limits of a client's request: fields in all its messages, and unknown
   fields. */
#define INF_MESSAGE_FIELDS   65536u
#define INF_MESSAGE_UNKNOWN  4096u

/* Creates a message with all defaults, which the caller frees. */
INF_CHECK inf_err_t *inf_message_new(const ProtobufCMessageDescriptor *desc,
    ProtobufCMessage **out);

/* m may be NULL. */
void inf_message_free(ProtobufCMessage *m);

/* Creates a deep copy, which the caller frees. */
INF_CHECK inf_err_t *inf_message_clone(const ProtobufCMessage *m,
    ProtobufCMessage **out);

/* The number of bytes that pack appends. */
size_t inf_message_packed_len(const ProtobufCMessage *m);

/* Whether both pack to the same bytes; false if memory is exhausted. */
bool inf_message_same(const ProtobufCMessage *a, const ProtobufCMessage *b);

/* Appends the packed message to out. */
INF_CHECK inf_err_t *inf_message_pack(const ProtobufCMessage *m,
    inf_buf_t *out);

/*
 * Replaces each invalid UTF-8 byte in the strings of a packed message by a
 * question mark, in place.
 */
INF_CHECK inf_err_t *inf_message_repair(
    const ProtobufCMessageDescriptor *desc, char *bytes, size_t len);

/* Unpacks a message.  Strings must be UTF-8 without NUL bytes; map entries with
   the same key are folded. */
INF_CHECK inf_err_t *inf_message_unpack(const ProtobufCMessageDescriptor *desc,
    inf_slice_t bytes, ProtobufCMessage **out);

/* Unpacks a client's request: bytes that are not such a message are INTERNAL,
   as in gRPC's libraries; more fields than the limits above are INVALID_ARG. */
INF_CHECK inf_err_t *inf_message_unpack_request(
    const ProtobufCMessageDescriptor *desc, inf_slice_t bytes,
    ProtobufCMessage **out);

#endif /* INF_PROTO_MESSAGE_H */
