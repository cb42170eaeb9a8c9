/*
 * rest_request.h - the message of the gRPC service that a REST body of the
 *                  control API stands for.
 *
 * Owner    The caller frees the message with inf_message_free.
 * Thread   the control threads: a body with files takes its time, which a
 *          worker doesn't have.
 * Units    bytes.
 * Errors   INVALID_ARG, what is wrong with the body; of settings those that
 *          rest_settings.h names.
 * Route    control -> [REST request] -> model control, calls
 */

#ifndef INF_SERVER_REST_REQUEST_H
#define INF_SERVER_REST_REQUEST_H

#include "core/base/slice.h"
#include "core/proto/message.h"

/* record: as INF_SUBMIT_FLAG_REST says (channel.h). */
INF_CHECK inf_err_t *inf_rest_request(uint16_t method, inf_slice_t record,
    ProtobufCMessage **out);

#endif /* INF_SERVER_REST_REQUEST_H */
