/*
 * rest_answer.h - the REST body that stands for an answer of the gRPC service.
 *
 * Owner    The caller owns message and text.
 * Thread   the control threads: what many models say takes its time, which a
 *          worker doesn't have.
 * Units    bytes.
 * Errors   An answer that REST tells by its status: a server or model that is
 *          not ready, of cause INF_CAUSE_NOT_READY; for the server without a
 *          text, as Triton answers.
 * Route    calls, ready calls -> [REST answer] -> channel
 */

#ifndef INF_SERVER_REST_ANSWER_H
#define INF_SERVER_REST_ANSWER_H

#include "core/base/buf.h"
#include "core/base/error.h"
#include "core/proto/message.h"

/* Appends it; the text stays empty where REST has no body. */
INF_CHECK inf_err_t *inf_rest_answer(uint16_t method,
    const ProtobufCMessage *answer, inf_buf_t *text);

#endif /* INF_SERVER_REST_ANSWER_H */
