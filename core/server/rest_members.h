/*
 * rest_members.h - members of a REST body and the name of its path, as fields
 *                  of a message.
 *
 * Owner    Fields are the message's.  root, the body's object, may be NULL: an
 *          empty body.
 * Thread   any.
 * Units    bytes.
 * Errors   INVALID_ARG in Triton's words: names the member and its type.
 * Route    REST request -> [REST members]
 */

#ifndef INF_SERVER_REST_MEMBERS_H
#define INF_SERVER_REST_MEMBERS_H

#include "core/proto/json_doc.h"
#include "core/proto/message.h"

#define INF_NO_STRING "attempt to access JSON non-string as string: "

/* Sets each field to the member of its name: a text, which is required, or a
   boolean or uint64, which are not.  A name of the path is the field name or
   model_name.  UNSUPPORTED: a field of another type. */
INF_CHECK inf_err_t *inf_rest_members(ProtobufCMessage *m, const json_t *root,
    inf_slice_t name);

/* Without a member, value is NULL: the field keeps its value. */
INF_CHECK inf_err_t *inf_rest_bool(protobuf_c_boolean *field,
    const json_t *value, const char *key);

/* Likewise an integer that is not negative. */
INF_CHECK inf_err_t *inf_rest_uint64(uint64_t *field, const json_t *value,
    const char *key);

/* Copies a name, which has to be UTF-8 without a NUL character. */
INF_CHECK inf_err_t *inf_rest_name(char **field, inf_slice_t name);

#endif /* INF_SERVER_REST_MEMBERS_H */
