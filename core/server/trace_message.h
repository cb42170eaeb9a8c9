/*
 * trace_message.h - trace settings as messages: the changes of a request, and
 *                   the settings in force after it.
 *
 * Owner    The answer lies in arena and borrows texts of the server's
 *          configuration.
 * Thread   any.
 * Units    as the settings.
 * Errors   UNSUPPORTED: a path.  INVALID_ARG: an invalid value, or settings
 *          that cannot be traced by.
 * Route    calls -> [trace message] -> trace settings -> client
 *
 * Source: Triton's trace extension of KServe v2.
 */

#ifndef INF_SERVER_TRACE_MESSAGE_H
#define INF_SERVER_TRACE_MESSAGE_H

#include "core/base/arena.h"
#include "core/server/trace_settings.h"
#include "grpc_service.pb-c.h"

/* Only the configuration sets paths, never a request. */
#define INF_TRACE_FILE_FIXED \
    "trace file location can not be updated through network protocol"

/* The caller has checked that q's model exists, if it names one. */
INF_CHECK inf_err_t *inf_trace_message(inf_trace_settings_t *settings,
    const Inference__TraceSettingRequest *q, inf_arena_t *arena,
    Inference__TraceSettingResponse *out);

/* Applies the result of inf_trace_message_own to another core's settings. */
INF_CHECK inf_err_t *inf_trace_message_restore(inf_trace_settings_t *settings,
    const Inference__TraceSettingRequest *q);

/* Fills out with a request that sets the own settings of model (see
   inf_trace_settings_own); empty if there are none. */
INF_CHECK inf_err_t *inf_trace_message_own(inf_trace_settings_t *settings,
    const char *model, inf_arena_t *arena,
    Inference__TraceSettingRequest *out);

#endif /* INF_SERVER_TRACE_MESSAGE_H */
