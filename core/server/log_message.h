/*
 * log_message.h - log settings as messages: the changes of a request, and the
 *                 settings in force after it.
 *
 * Owner    The answer lies in arena.  The settings are those of the process.
 * Thread   any.
 * Units    level of verbose lines; 0: none.
 * Errors   UNSUPPORTED: a path.  INVALID_ARG: a value of the wrong kind.
 *          After an error nothing is changed.
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

/* Changes the settings in q and fills out with those in force. */
INF_CHECK inf_err_t *inf_log_message(const Inference__LogSettingsRequest *q,
    inf_arena_t *arena, Inference__LogSettingsResponse *out);

/* Fills out with a request that sets the settings in force. */
INF_CHECK inf_err_t *inf_log_message_now(inf_arena_t *arena,
    Inference__LogSettingsRequest *out);

#endif /* INF_SERVER_LOG_MESSAGE_H */
