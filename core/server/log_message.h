/*
 * log_message.h - log settings as messages: what a request changes, and what
 *                 is in force then.
 *
 * Owner    The answer lies in arena.  The settings are the process's, as the
 *          log itself.
 * Thread   any.
 * Units    a level of verbose lines, 0: none.
 * Errors   UNSUPPORTED: a path.  INVALID_ARG: a value of the wrong kind.  Then
 *          nothing is changed.
 * Route    calls -> [log message] -> log -> client
 *
 * Source: Triton's logging extension of KServe v2.
 */

#ifndef INF_SERVER_LOG_MESSAGE_H
#define INF_SERVER_LOG_MESSAGE_H

#include "core/base/arena.h"
#include "core/base/error.h"
#include "grpc_service.pb-c.h"

#define INF_LOG_FILE_FIXED \
    "log file location can not be updated through network protocol"

/* q without settings changes nothing. */
INF_CHECK inf_err_t *inf_log_message(const Inference__LogSettingsRequest *q,
    inf_arena_t *arena, Inference__LogSettingsResponse *out);

/* A request that sets what is in force now. */
INF_CHECK inf_err_t *inf_log_message_now(inf_arena_t *arena,
    Inference__LogSettingsRequest *out);

#endif /* INF_SERVER_LOG_MESSAGE_H */
