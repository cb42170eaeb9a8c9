/*
 * message_json.h - protobuf's JSON form, by descriptor, reading and writing.
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

/* Whether this 64-bit field is written as a number; otherwise it is a
   string. */
typedef bool (*inf_json_number_pt)(const ProtobufCMessageDescriptor *desc,
    const ProtobufCFieldDescriptor *f);

/* The members of a oneof are written before the named field; descriptors do not
   have their position in the .proto file. */
typedef struct {
    const char  *message;           /* full name                             */
    const char  *before;
} inf_json_oneof_place_t;

/* {0}: every scalar, list and map of a present message is written, 64-bit
   integers are strings, oneofs come last. */
typedef struct {
    bool                           omit_defaults;   /* unset and empty fields
                                                       are left out          */
    bool                           int64_numbers;   /* all of them           */
    inf_json_number_pt             is_number;       /* some; may be NULL     */
    const inf_json_oneof_place_t  *places;
    size_t                         n_places;
} inf_json_options_t;

/* Appends m in compact form, names and order of fields as in the .proto file.
   Unset messages and oneof members are left out; enum numbers without a name
   are numbers; invalid UTF-8 becomes U+FFFD.  options may be NULL. */
INF_CHECK inf_err_t *inf_message_to_json(const ProtobufCMessage *m,
    const inf_json_options_t *options, inf_buf_t *out);

/* Reads a message.  Accepted are names as in the .proto file or in
   lowerCamelCase, enums by name in any case or by number, integers as numbers
   or strings and with a zero fraction, null as unset, a bare value for a list
   of one, duplicate keys (the last counts), 'single quotes', bare keys, and a
   trailing comma.  Unknown fields and two members of a oneof are rejected. */
INF_CHECK inf_err_t *inf_message_from_json(
    const ProtobufCMessageDescriptor *desc, inf_slice_t text,
    ProtobufCMessage **out);

/* Appends s in quotes. */
void inf_json_put_string(inf_buf_t *out, inf_slice_t s);

#endif /* INF_PROTO_MESSAGE_JSON_H */
