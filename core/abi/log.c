/* log.c - TRITONSERVER_Log*: adds a backend's lines to the core's log. */

#include "core/abi/objects.h"
#include "core/base/log.h"

bool
TRITONSERVER_LogIsEnabled(TRITONSERVER_LogLevel level)
{
    return (unsigned) level <= TRITONSERVER_LOG_VERBOSE
        && inf_log_enabled((inf_log_level_t) level);
}

TRITONSERVER_Error *
TRITONSERVER_LogMessage(TRITONSERVER_LogLevel level, const char *filename,
    const int line, const char *msg)
{
    if ((unsigned) level > TRITONSERVER_LOG_VERBOSE) {
        return inf_err_new(INF_ERR_INVALID_ARG, "unknown logging level '%d'",
            (int) level);
    }

    inf_log_at((inf_log_level_t) level, filename != NULL ? filename : "", line,
        "%s", msg != NULL ? msg : "");
    return NULL;
}
