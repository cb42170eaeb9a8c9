/*
 * rest_message.h - converts the REST answer of a call to the message of gRPC.
 *
 * Owner    The caller's memory.
 * Thread   any.
 * Units    bytes.
 * Errors   INVALID_ARG: the text is not such an answer; out is then undefined.
 * Route    joined answers of two servers -> [rest message] -> client of gRPC
 */

#ifndef INF_PROTO_REST_MESSAGE_H
#define INF_PROTO_REST_MESSAGE_H

#include <stdint.h>

#include "core/base/buf.h"

/* Appends the packed message; method is REPOSITORY_INDEX, SERVER_METADATA or
   MODEL_METADATA of channel.h. */
INF_CHECK inf_err_t *inf_rest_message(uint16_t method, inf_slice_t text,
    inf_buf_t *out);

#endif /* INF_PROTO_REST_MESSAGE_H */
