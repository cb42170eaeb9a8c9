/*
 * message_names.h - the names in the first bytes of a message, before it is
 *                   received.
 *
 * Owner    the caller's memory; the names are views into it.
 * Thread   any.
 * Units    bytes.
 * Errors   none: bytes that are no protobuf end the search.
 * Route    preaccess phase of a call of gRPC -> [names] -> limits, maps.
 */

#ifndef INF_PROTO_MESSAGE_NAMES_H
#define INF_PROTO_MESSAGE_NAMES_H

#include <stdint.h>

#include "core/base/slice.h"

/* Numbers of the string fields of a message; 0: it has no such field. */
typedef struct {
    uint32_t model;
    uint32_t version;
} inf_names_fields_t;

typedef struct {
    inf_slice_t model;
    inf_slice_t version;
} inf_names_t;

/* Of a message that begins with these bytes: of a field that stands twice the
   last one, as in the whole message; empty: it is not there, or cut. */
inf_names_t inf_message_names(inf_slice_t bytes, inf_names_fields_t fields);

#endif /* INF_PROTO_MESSAGE_NAMES_H */
