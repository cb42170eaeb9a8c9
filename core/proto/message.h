/*
 * message.h - life of a protobuf message: new, pack, unpack, clone, free.
 *
 * Owner    The receiver of a message frees it with inf_message_free (or the
 *          generated __free_unpacked with a NULL allocator).
 * Thread   as the message; descriptors are constant.
 * Units    bytes.
 * Errors   INVALID_ARG: bytes that are no such message; the text names the
 *          field.  Out of memory.
 * Route    the one door to protobuf-c: control calls between worker and
 *          core, gRPC messages, configurations.
 */

#ifndef INF_PROTO_MESSAGE_H
#define INF_PROTO_MESSAGE_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>

#include "core/base/buf.h"
#include "core/base/error.h"
#include "core/base/slice.h"
#include "core/proto/message_field.h"

/* Messages within messages that any codec follows. */
#define INF_MESSAGE_DEPTH 64

/* Fields of a client's request in all its messages, and those of them that its
   descriptors do not know. */
#define INF_MESSAGE_FIELDS   65536u
#define INF_MESSAGE_UNKNOWN  4096u

/* A message with all its defaults, which the caller frees. */
INF_CHECK inf_err_t *inf_message_new(const ProtobufCMessageDescriptor *desc,
    ProtobufCMessage **out);

/* m may be NULL. */
void inf_message_free(ProtobufCMessage *m);

/* A deep copy, which the caller frees. */
INF_CHECK inf_err_t *inf_message_clone(const ProtobufCMessage *m,
    ProtobufCMessage **out);

/* The bytes that pack will append. */
size_t inf_message_packed_len(const ProtobufCMessage *m);

/* Whether both pack to the same bytes; false without memory. */
bool inf_message_same(const ProtobufCMessage *a, const ProtobufCMessage *b);

/* Appends to out. */
INF_CHECK inf_err_t *inf_message_pack(const ProtobufCMessage *m,
    inf_buf_t *out);

/*
 * Makes strings of a packed message that are not UTF-8 UTF-8, in place: each
 * wrong byte becomes a question mark.
 */
INF_CHECK inf_err_t *inf_message_repair(
    const ProtobufCMessageDescriptor *desc, char *bytes, size_t len);

/* Strings must be UTF-8 without NUL bytes; maps come out folded. */
INF_CHECK inf_err_t *inf_message_unpack(const ProtobufCMessageDescriptor *desc,
    inf_slice_t bytes, ProtobufCMessage **out);

/* A client's request: bytes that are no such message are INTERNAL, as gRPC's
   libraries have it; more fields than the limits above are INVALID_ARG. */
INF_CHECK inf_err_t *inf_message_unpack_request(
    const ProtobufCMessageDescriptor *desc, inf_slice_t bytes,
    ProtobufCMessage **out);

#endif /* INF_PROTO_MESSAGE_H */
