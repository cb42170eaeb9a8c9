/*
 * error.h - errors and log lines of a backend, with printf texts.
 *
 * Owner    An error belongs to its receiver and ends in one of three
 *          ways: returned to the core, sent with a response, or logged.
 * Thread   any; an error belongs to one thread at a time.
 * Units    none.
 * Errors   NULL is success.  A text longer than BK_ERR_MAX is truncated.
 * Route    backend -> [error] -> core
 */

#ifndef BK_ERROR_H
#define BK_ERROR_H

#include "triton/core/tritonbackend.h"

#define BK_ERR_MAX      8192
#define BK_CHECK        __attribute__((warn_unused_result))
#define BK_PRINTF(f, a) __attribute__((format(printf, f, a)))

/* A new error; never NULL. */
BK_CHECK TRITONSERVER_Error *bk_err_new(TRITONSERVER_Error_Code code,
    const char *fmt, ...) BK_PRINTF(2, 3);

/* Adds "<text>: " before the message; takes err, returns the replacement. */
BK_CHECK TRITONSERVER_Error *bk_err_add(TRITONSERVER_Error *err,
    const char *fmt, ...) BK_PRINTF(2, 3);

/* The error of a failed allocation of what. */
BK_CHECK TRITONSERVER_Error *bk_err_nomem(const char *what);

/* Logs "<what>: <message>" and deletes err; err may be NULL. */
void bk_err_log(TRITONSERVER_Error *err, const char *what);

/* Deletes err without logging it; err may be NULL. */
void bk_err_drop(TRITONSERVER_Error *err);

/* One log line; use bk_log(), which adds file and line. */
void bk_log_at(const char *file, int line, TRITONSERVER_LogLevel level,
    const char *fmt, ...) BK_PRINTF(4, 5);

#define bk_log(level, ...) bk_log_at(__FILE__, __LINE__, level, __VA_ARGS__)

/* Fails if the core lacks the version of the ABI that the backend was compiled
 * for. */
BK_CHECK TRITONSERVER_Error *bk_check_api_version(void);

#endif /* BK_ERROR_H */
