/*
 * error.h - one error object, returned, never lost.
 *
 * Owner    The receiver of a non-NULL error owns it and ends it in one of
 *          three ways: returns it (with inf_err_add), turns it into a
 *          response, or logs it with inf_err_log.
 * Thread   any; an error belongs to one thread at a time.
 * Units    none.
 * Errors   Out of memory is a static object: reporting it cannot fail.
 * Route    the object is the ABI's TRITONSERVER_Error, so nothing is
 *          translated on the way to or from a backend.
 */

#ifndef INF_BASE_ERROR_H
#define INF_BASE_ERROR_H

#include <stdarg.h>
#include <stdbool.h>

#if defined(__GNUC__)
#define INF_CHECK        __attribute__((warn_unused_result))
#define INF_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define INF_CHECK
#define INF_PRINTF(f, a)
#endif

/* The values are those of TRITONSERVER_Error_Code. */
typedef enum {
    INF_ERR_UNKNOWN        = 0,
    INF_ERR_INTERNAL       = 1,
    INF_ERR_NOT_FOUND      = 2,
    INF_ERR_INVALID_ARG    = 3,
    INF_ERR_UNAVAILABLE    = 4,
    INF_ERR_UNSUPPORTED    = 5,
    INF_ERR_ALREADY_EXISTS = 6,
    INF_ERR_CANCELLED      = 7
} inf_err_code_t;

/* Causes that codes do not tell apart, for the answer to a client; one crosses
   the channel as a byte. */
typedef enum {
    INF_CAUSE_NONE      = 0,
    INF_CAUSE_FULL      = 1,    /* a queue or an arena has no room now       */
    INF_CAUSE_TIMED_OUT = 2,    /* waited for longer than it was allowed to  */
    INF_CAUSE_STRINGS   = 3,    /* inside the core alone: what an ensemble's
                                   client sent is malformed, err tells it so */
    INF_CAUSE_NOT_READY = 4,    /* what was asked whether it is ready is not */
    INF_CAUSE_STARTING  = 5,    /* a core that follows one that ended has still
                                   to load it: another try may find it       */
    INF_CAUSE_UNNAMED   = 6,    /* inside the core alone: told without the
                                   request's id, as Triton tells it          */
    INF_CAUSE_QUARANTINED = 7   /* inside the core alone: a model ended core
                                   after core                                */
} inf_err_cause_t;

#define INF_CAUSE_LAST INF_CAUSE_QUARANTINED

typedef struct TRITONSERVER_Error inf_err_t;

/* A new error with a formatted text.  Never NULL. */
INF_CHECK inf_err_t *inf_err_new(inf_err_code_t code, const char *fmt, ...)
    INF_PRINTF(2, 3);
INF_CHECK inf_err_t *inf_err_newv(inf_err_code_t code, const char *fmt,
    va_list args) INF_PRINTF(2, 0);

/* INTERNAL, "<text>: <strerror(errnum)>". */
INF_CHECK inf_err_t *inf_err_os(int errnum, const char *fmt, ...)
    INF_PRINTF(2, 3);

/* The static out-of-memory error (UNAVAILABLE). */
INF_CHECK inf_err_t *inf_err_nomem(void);

/* Puts "<text>: " in front of err's message; takes err, gives it back. */
INF_CHECK inf_err_t *inf_err_add(inf_err_t *err, const char *fmt, ...)
    INF_PRINTF(2, 3);

/* Puts " (<text>)" behind err's message; takes err, gives it back. */
INF_CHECK inf_err_t *inf_err_note(inf_err_t *err, const char *fmt, ...)
    INF_PRINTF(2, 3);

/* Replaces the code; takes err, gives it back. */
INF_CHECK inf_err_t *inf_err_recode(inf_err_t *err, inf_err_code_t code);

/* Notes why; takes err, gives it back. */
INF_CHECK inf_err_t *inf_err_because(inf_err_t *err, inf_err_cause_t cause);

/* Another error that says the same. */
INF_CHECK inf_err_t *inf_err_copy(const inf_err_t *err);

/* Logs err (error level) and frees it; err may be NULL. */
void inf_err_log(inf_err_t *err);

/* Frees err; err may be NULL or the static object. */
void inf_err_free(inf_err_t *err);

/* Of an error, which is not NULL; the text lives as long as err. */
inf_err_code_t inf_err_code(const inf_err_t *err);
inf_err_cause_t inf_err_cause(const inf_err_t *err);
const char *inf_err_msg(const inf_err_t *err);

/* "Internal", "Not found", ...; out-of-range values give "Unknown". */
const char *inf_err_code_string(inf_err_code_t code);

#endif /* INF_BASE_ERROR_H */
