/*
 * status_message.h - the server at this moment, for people who look after it.
 *
 * Owner    What the message refers to is in the caller's arena.
 * Thread   a control thread that may wait for a repository.
 * Units    ns.
 * Errors   out of memory, a repository that can't be listed.
 * Route    lifecycle, runners, statistics, rate gate -> [status message] ->
 *          calls
 */

#ifndef INF_SERVER_STATUS_MESSAGE_H
#define INF_SERVER_STATUS_MESSAGE_H

#include "core/base/arena.h"
#include "core/server/server.h"
#include "core_calls.pb-c.h"

/* Fills out, whose texts and rows last as long as arena and server. */
INF_CHECK inf_err_t *inf_status_message(inf_server_t *server,
    inf_arena_t *arena, NginxInference__StatusResponse *out);

#endif /* INF_SERVER_STATUS_MESSAGE_H */
