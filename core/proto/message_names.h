/*
 * message_names.h - the names in the first bytes of a message, before the rest
 *                   is received.
 *
 * Owner    The caller's memory; the names are views into it.
 * Thread   any.
 * Units    bytes.
 * Errors   none: bytes that are not protobuf end the search.
 * Route    preaccess phase of a call of gRPC -> [names] -> limits, maps.
 */

#ifndef INF_PROTO_MESSAGE_NAMES_H
#define INF_PROTO_MESSAGE_NAMES_H

#include <stdint.h>

#include "core/base/slice.h"

/* Numbers of the string fields of a message; 0: no such field. */
typedef struct {
    uint32_t model;
    uint32_t version;
} inf_names_fields_t;

typedef struct {
    inf_slice_t model;
    inf_slice_t version;
} inf_names_t;

/* Finds the names in the first bytes of a message: of a repeated field the
   last, as in the whole message; empty: missing or incomplete. */
inf_names_t inf_message_names(inf_slice_t bytes, inf_names_fields_t fields);

#endif /* INF_PROTO_MESSAGE_NAMES_H */
