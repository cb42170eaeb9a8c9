/* error.c - see error.h */

#include "error.h"

#include <stdarg.h>
#include <stdio.h>

static TRITONSERVER_Error *new_with(TRITONSERVER_Error_Code code,
    const char *prefix, const char *message);

TRITONSERVER_Error *
bk_err_new(TRITONSERVER_Error_Code code, const char *fmt, ...)
{
    char text[BK_ERR_MAX];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);

    return TRITONSERVER_ErrorNew(code, text);
}

TRITONSERVER_Error *
bk_err_add(TRITONSERVER_Error *err, const char *fmt, ...)
{
    char prefix[BK_ERR_MAX];
    va_list args;

    va_start(args, fmt);
    vsnprintf(prefix, sizeof(prefix), fmt, args);
    va_end(args);

    TRITONSERVER_Error *longer = new_with(TRITONSERVER_ErrorCode(err), prefix,
        TRITONSERVER_ErrorMessage(err));
    TRITONSERVER_ErrorDelete(err);

    return longer;
}

TRITONSERVER_Error *
bk_err_nomem(const char *what)
{
    return new_with(TRITONSERVER_ERROR_UNAVAILABLE, "out of memory", what);
}

void
bk_err_log(TRITONSERVER_Error *err, const char *what)
{
    if (err == NULL) {
        return;
    }

    bk_log(TRITONSERVER_LOG_ERROR, "%s: %s", what,
        TRITONSERVER_ErrorMessage(err));
    TRITONSERVER_ErrorDelete(err);
}

void
bk_err_drop(TRITONSERVER_Error *err)
{
    if (err != NULL) {
        TRITONSERVER_ErrorDelete(err);
    }
}

void
bk_log_at(const char *file, int line, TRITONSERVER_LogLevel level,
    const char *fmt, ...)
{
    char text[BK_ERR_MAX];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);

    /* a log line that cannot be written has nowhere else to go */
    bk_err_drop(TRITONSERVER_LogMessage(level, file, line, text));
}

TRITONSERVER_Error *
bk_check_api_version(void)
{
    uint32_t major = 0;
    uint32_t minor = 0;

    TRITONSERVER_Error *err = TRITONBACKEND_ApiVersion(&major, &minor);
    if (err != NULL) {
        return err;
    }

    if (major != TRITONBACKEND_API_VERSION_MAJOR
        || minor < TRITONBACKEND_API_VERSION_MINOR)
    {
        return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
            "the core speaks backend API %u.%u, this backend needs %d.%d",
            major, minor, TRITONBACKEND_API_VERSION_MAJOR,
            TRITONBACKEND_API_VERSION_MINOR);
    }

    return NULL;
}

static TRITONSERVER_Error *
new_with(TRITONSERVER_Error_Code code, const char *prefix,
    const char *message)
{
    return bk_err_new(code, "%s: %s", prefix, message);
}
