/*
 * ready_calls.h - the calls ServerReady and ModelReady, which ask backends;
 *                 the thread with the last result sends the answer.
 *
 * Owner    The caller owns the request.
 * Thread   call: a control thread; done is called once by any thread, possibly
 *          before call returns.
 * Units    bytes.
 * Errors   passed to done, which takes err.
 * Route    control -> [ready calls] -> readiness -> channel
 */

#ifndef INF_SERVER_READY_CALLS_H
#define INF_SERVER_READY_CALLS_H

#include "core/server/server.h"

/* answer: packed or as REST body, valid during the call. */
typedef void (*inf_ready_call_fn)(void *userp, inf_err_t *err,
    inf_slice_t answer);

/* Whether inf_ready_call serves the method. */
bool inf_ready_calls_have(uint16_t method);

/* Answers by done. */
void inf_ready_call(inf_server_t *server, inf_registry_reader_t *models,
    uint16_t method, inf_slice_t request, bool rest, inf_ready_call_fn done,
    void *userp);

#endif /* INF_SERVER_READY_CALLS_H */
