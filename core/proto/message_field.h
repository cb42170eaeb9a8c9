/*
 * message_field.h - reads and writes fields of any message by descriptor.
 *
 * Owner    The message owns the values put into it.  put copies strings and
 *          bytes; a slice from get is valid as long as the message.
 * Thread   as the message.
 * Units    bytes.
 * Errors   Out of memory; INVALID_ARG: a NUL byte in a string field, which is
 *          a C string.
 * Route    text format, JSON, unpack.
 */

#ifndef INF_PROTO_MESSAGE_FIELD_H
#define INF_PROTO_MESSAGE_FIELD_H

#include <protobuf-c/protobuf-c.h>

#include "core/base/error.h"
#include "core/base/slice.h"

/* The value of a field.  The member follows from the field's type: i for all
   signed integers, u for all unsigned ones, d for float and double, e for
   enums, s for strings and bytes, m for messages (may be NULL). */
typedef union {
    inf_slice_t              s;     /* first and largest: {0} zeroes all     */
    int64_t                  i;
    uint64_t                 u;
    double                   d;
    bool                     b;
    int                      e;
    const ProtobufCMessage  *m;
} inf_scalar_t;

/* The field of that name in the .proto file; NULL: none. */
const ProtobufCFieldDescriptor *inf_field_find(
    const ProtobufCMessageDescriptor *desc, inf_slice_t name);

/* The field's name nearest to a misspelled one; NULL if none is near. */
const char *inf_field_suggest(const ProtobufCMessageDescriptor *desc,
    inf_slice_t name);

/* The index of the field in desc->fields. */
size_t inf_field_index(const ProtobufCMessageDescriptor *desc,
    const ProtobufCFieldDescriptor *f);

/* Whether f is a map, which protobuf-c stores as an array of entries with key
   and value. */
bool inf_field_is_map(const ProtobufCFieldDescriptor *f);

static inline bool
inf_field_is_repeated(const ProtobufCFieldDescriptor *f)
{
    return f->label == PROTOBUF_C_LABEL_REPEATED;
}

static inline bool
inf_field_is_oneof(const ProtobufCFieldDescriptor *f)
{
    return (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0;
}

/* The set member of f's oneof; NULL: none. */
const ProtobufCFieldDescriptor *inf_field_oneof_set(const ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f);

/* The number of values: elements of a repeated field; otherwise 1 if it is set
   (for a field without presence: if it is not the default), or 0. */
size_t inf_field_count(const ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f);

/* Value i of a repeated field; for any other i is 0, and an unset field gives
   its default.  A oneof member must be the one that is set. */
inf_scalar_t inf_field_get(const ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f, size_t i);

/* Appends to a repeated field; replaces any other (and its oneof). */
INF_CHECK inf_err_t *inf_field_put(ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f, inf_scalar_t v);

/* Likewise with a new, empty message, which *child borrows. */
INF_CHECK inf_err_t *inf_field_put_message(ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f, ProtobufCMessage **child);

/* Makes the field unset or empty. */
void inf_field_clear(ProtobufCMessage *m, const ProtobufCFieldDescriptor *f);

/* Whether both have the same value of f; presence does not count, except for
   messages.  f is not a member of a oneof, nor are fields within messages. */
bool inf_field_same(const ProtobufCMessage *a, const ProtobufCMessage *b,
    const ProtobufCFieldDescriptor *f);

/* Exchanges the values of two messages of one type; f is not a member of a
   oneof. */
void inf_field_swap(ProtobufCMessage *a, ProtobufCMessage *b,
    const ProtobufCFieldDescriptor *f);

/* Sets the has_ flag of every optional scalar that differs from its default, in
   the whole tree; called before packing proto2 messages. */
void inf_message_mark_set(ProtobufCMessage *m);

/* Keeps only the last entry per map and key; absent values of message type
   become empty messages. */
INF_CHECK inf_err_t *inf_message_fold_maps(ProtobufCMessage *m);

#endif /* INF_PROTO_MESSAGE_FIELD_H */
