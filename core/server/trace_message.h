/*
 * trace_message.h - trace settings as messages: what a request changes, and
 *                   what is in force then.
 *
 * Owner    The answer lies in arena and borrows texts of the server's
 *          configuration.
 * Thread   any.
 * Units    as the settings.
 * Errors   UNSUPPORTED: a path.  INVALID_ARG: a value that is none, settings
 *          that can't be traced by.
 * Route    calls -> [trace message] -> trace settings -> client
 *
 * Source: Triton's trace extension of KServe v2.
 */

#ifndef INF_SERVER_TRACE_MESSAGE_H
#define INF_SERVER_TRACE_MESSAGE_H

#include "core/base/arena.h"
#include "core/server/trace_settings.h"
#include "grpc_service.pb-c.h"

/* Paths come from the configuration alone, never from a request. */
#define INF_TRACE_FILE_FIXED \
    "trace file location can not be updated through network protocol"

/* q's model, if it names one, is known to exist. */
INF_CHECK inf_err_t *inf_trace_message(inf_trace_settings_t *settings,
    const Inference__TraceSettingRequest *q, inf_arena_t *arena,
    Inference__TraceSettingResponse *out);

/* Sets what inf_trace_message_own gave, in another core's settings. */
INF_CHECK inf_err_t *inf_trace_message_restore(inf_trace_settings_t *settings,
    const Inference__TraceSettingRequest *q);

/* A request that sets what the scope of model has of its own (as
   inf_trace_settings_own); without settings: nothing. */
INF_CHECK inf_err_t *inf_trace_message_own(inf_trace_settings_t *settings,
    const char *model, inf_arena_t *arena,
    Inference__TraceSettingRequest *out);

#endif /* INF_SERVER_TRACE_MESSAGE_H */
