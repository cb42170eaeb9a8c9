/*
 * rest_answer.h - the REST body of an answer of the gRPC service.
 *
 * Owner    The caller owns message and text.
 * Thread   control threads: an answer about many models takes time, which a
 *          worker does not have.
 * Units    bytes.
 * Errors   An answer that REST gives by its status: a server or model that is
 *          not ready, of cause INF_CAUSE_NOT_READY; for the server without a
 *          text, as in Triton.
 * Route    calls, ready calls -> [REST answer] -> channel
 */

#ifndef INF_SERVER_REST_ANSWER_H
#define INF_SERVER_REST_ANSWER_H

#include "core/base/buf.h"
#include "core/base/error.h"
#include "core/proto/message.h"

/* Appends the body; text stays empty where REST has none. */
INF_CHECK inf_err_t *inf_rest_answer(uint16_t method,
    const ProtobufCMessage *answer, inf_buf_t *text);

#endif /* INF_SERVER_REST_ANSWER_H */
