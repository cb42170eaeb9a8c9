/*
 * message_json.h - protobuf's JSON form, by descriptor, both ways.
 *
 * Owner    The caller frees the message with inf_message_free.
 * Thread   any.
 * Units    offsets are bytes from the text's first.
 * Errors   INVALID_ARG, "<field>: <what is wrong> at byte <offset>".
 * Route    REST bodies of control calls; the model configuration as the
 *          backends see it.
 */

#ifndef INF_PROTO_MESSAGE_JSON_H
#define INF_PROTO_MESSAGE_JSON_H

#include "core/base/buf.h"
#include "core/base/error.h"
#include "core/base/slice.h"
#include "core/proto/message.h"

/* Is this 64-bit field written as a number?  Else it is a string. */
typedef bool (*inf_json_number_pt)(const ProtobufCMessageDescriptor *desc,
    const ProtobufCFieldDescriptor *f);

/* A oneof's members are written in front of the named field; descriptors do
   not tell where in the .proto file they stand. */
typedef struct {
    const char  *message;           /* full name                             */
    const char  *before;
} inf_json_oneof_place_t;

/* {0}: every scalar, list and map of a present message is written, 64-bit
   integers are strings, oneofs come last. */
typedef struct {
    bool                           omit_defaults;   /* what is unset or
                                                       empty is left out     */
    bool                           int64_numbers;   /* all of them           */
    inf_json_number_pt             is_number;       /* or some; may be NULL  */
    const inf_json_oneof_place_t  *places;
    size_t                         n_places;
} inf_json_options_t;

/* Appends m: compact, names as in the .proto file, fields in its order.
   Unset messages and oneof members are left out; enum numbers without a name
   are numbers; invalid UTF-8 becomes U+FFFD.  options may be NULL. */
INF_CHECK inf_err_t *inf_message_to_json(const ProtobufCMessage *m,
    const inf_json_options_t *options, inf_buf_t *out);

/* Takes names as in the .proto file or in lowerCamelCase, enums by name in any
   case or by number, integers as numbers or strings and with a fraction that
   is zero, null as unset, a bare value for a list of one, the last of
   duplicate keys; also 'single quotes', bare keys, a comma too many at an
   end.  Rejects unknown fields and two members of a oneof. */
INF_CHECK inf_err_t *inf_message_from_json(
    const ProtobufCMessageDescriptor *desc, inf_slice_t text,
    ProtobufCMessage **out);

/* Appends s in quotes. */
void inf_json_put_string(inf_buf_t *out, inf_slice_t s);

#endif /* INF_PROTO_MESSAGE_JSON_H */
