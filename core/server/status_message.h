/*
 * status_message.h - the state of the server for the operator.
 *
 * Owner    The message refers to the caller's arena.
 * Thread   a control thread, which may wait for a repository.
 * Units    ns.
 * Errors   out of memory, a repository that cannot be listed.
 * Route    lifecycle, runners, statistics, rate gate -> [status message] ->
 *          calls
 */

#ifndef INF_SERVER_STATUS_MESSAGE_H
#define INF_SERVER_STATUS_MESSAGE_H

#include "core/base/arena.h"
#include "core/server/server.h"
#include "core_calls.pb-c.h"

/* Fills out; its texts and rows are valid as long as arena and server. */
INF_CHECK inf_err_t *inf_status_message(inf_server_t *server,
    inf_arena_t *arena, NginxInference__StatusResponse *out);

#endif /* INF_SERVER_STATUS_MESSAGE_H */
