/*
 * calls.h - everything that may be asked and is no inference: a protobuf
 *           message of the gRPC service, answered by one.
 *
 * Owner    The caller owns request and answer.
 * Thread   any; a reader of the registry is one thread's.
 * Units    bytes.
 * Errors   the answer's: a status and a text.
 * Route    control thread, C API -> [calls] -> server, registry
 */

#ifndef INF_SERVER_CALLS_H
#define INF_SERVER_CALLS_H

#include "core/server/server.h"

/* The call itself, on the caller's thread: appends the answer, packed or as
   REST body.  Not of methods that ready_calls.h or model_control.h answers. */
INF_CHECK inf_err_t *inf_call(inf_server_t *server,
    inf_registry_reader_t *models, uint16_t method, inf_slice_t request,
    bool rest, inf_buf_t *answer);

/* As a call names it: version "" is the newest.  A reference. */
INF_CHECK inf_err_t *inf_call_find_model(inf_registry_reader_t *models,
    const char *name, const char *version, inf_model_t **out);

#endif /* INF_SERVER_CALLS_H */
