/*
 * message_field.h - reads and writes fields of any message by descriptor.
 *
 * Owner    The message owns what is put into it.  put copies strings and
 *          bytes; a slice that get gives lives as long as the message.
 * Thread   as the message.
 * Units    bytes.
 * Errors   Out of memory; a NUL byte in a string field (its C string could
 *          not hold it): INVALID_ARG.
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

/* By its name in the .proto file, or NULL. */
const ProtobufCFieldDescriptor *inf_field_find(
    const ProtobufCMessageDescriptor *desc, inf_slice_t name);

/* The field's name nearest to a mistyped one, or NULL if none is near. */
const char *inf_field_suggest(const ProtobufCMessageDescriptor *desc,
    inf_slice_t name);

/* The index of the field in desc->fields. */
size_t inf_field_index(const ProtobufCMessageDescriptor *desc,
    const ProtobufCFieldDescriptor *f);

/* protobuf-c keeps a map as an array of entries with key and value. */
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

/* The member of f's oneof that m has, or NULL. */
const ProtobufCFieldDescriptor *inf_field_oneof_set(const ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f);

/* How many values m has: elements of a repeated field; else 1 when it is set
   (without presence of its own: when it is not the default), or 0. */
size_t inf_field_count(const ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f);

/* Value i of a repeated field; i is 0 for any other, which gives its default
   when unset.  A oneof member is asked only when it is the one set. */
inf_scalar_t inf_field_get(const ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f, size_t i);

/* Appends to a repeated field, replaces any other (and its oneof). */
INF_CHECK inf_err_t *inf_field_put(ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f, inf_scalar_t v);

/* The same with a new, empty message, which *child borrows. */
INF_CHECK inf_err_t *inf_field_put_message(ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f, ProtobufCMessage **child);

/* Makes the field unset or empty. */
void inf_field_clear(ProtobufCMessage *m, const ProtobufCFieldDescriptor *f);

/* Whether both have the same value there; whether it is set does not count,
   except for messages.  No member of a oneof, also within messages. */
bool inf_field_same(const ProtobufCMessage *a, const ProtobufCMessage *b,
    const ProtobufCFieldDescriptor *f);

/* Exchanges the values of two messages of one type; no member of a oneof. */
void inf_field_swap(ProtobufCMessage *a, ProtobufCMessage *b,
    const ProtobufCFieldDescriptor *f);

/* Sets the has_ flag of every optional scalar that differs from its default,
   through the whole tree; proto2 writers call it before they pack. */
void inf_message_mark_set(ProtobufCMessage *m);

/* Per map and key only the last entry stays; absent values of message type
   become empty messages. */
INF_CHECK inf_err_t *inf_message_fold_maps(ProtobufCMessage *m);

#endif /* INF_PROTO_MESSAGE_FIELD_H */
