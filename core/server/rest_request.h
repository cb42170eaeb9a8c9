/*
 * rest_request.h - the gRPC message for a REST body of the control API.
 *
 * Owner    The caller frees the message with inf_message_free.
 * Thread   control threads: a body with files takes time, which a worker does
 *          not have.
 * Units    bytes.
 * Errors   INVALID_ARG: the body's fault; for settings the errors of
 *          rest_settings.h.
 * Route    control -> [REST request] -> model control, calls
 */

#ifndef INF_SERVER_REST_REQUEST_H
#define INF_SERVER_REST_REQUEST_H

#include "core/base/slice.h"
#include "core/proto/message.h"

/* record: in the format of INF_SUBMIT_FLAG_REST (channel.h). */
INF_CHECK inf_err_t *inf_rest_request(uint16_t method, inf_slice_t record,
    ProtobufCMessage **out);

#endif /* INF_SERVER_REST_REQUEST_H */
