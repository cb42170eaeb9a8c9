/*
 * calls.h - the calls other than inference: a protobuf message of the gRPC
 *           service in, one out.
 *
 * Owner    The caller owns request and answer.
 * Thread   any; a registry reader belongs to one thread.
 * Units    bytes.
 * Errors   the status and text of the answer.
 * Route    control thread, C API -> [calls] -> server, registry
 */

#ifndef INF_SERVER_CALLS_H
#define INF_SERVER_CALLS_H

#include "core/proto/message.h"
#include "core/server/server.h"

/* Finds the type of a method's request. */
INF_CHECK inf_err_t *inf_call_request(uint16_t method,
    const ProtobufCMessageDescriptor **out);

/* Runs the call on the caller's thread and appends the answer, packed or as
   REST body.  Methods of ready_calls.h and model_control.h are not served. */
INF_CHECK inf_err_t *inf_call(inf_server_t *server,
    inf_registry_reader_t *models, uint16_t method, inf_slice_t request,
    bool rest, inf_buf_t *answer);

/* Finds a model; version "" is the newest.  *out is a reference. */
INF_CHECK inf_err_t *inf_call_find_model(inf_registry_reader_t *models,
    const char *name, const char *version, inf_model_t **out);

#endif /* INF_SERVER_CALLS_H */
