/*
 * error.h - the error object.
 *
 * Owner    The receiver of a non-NULL error owns it and ends it in one of
 *          three ways: returning it (with inf_err_add), turning it into a
 *          response, or logging it with inf_err_log.
 * Thread   any; an error belongs to one thread at a time.
 * Units    none.
 * Errors   Out of memory is a static object: creating it cannot fail.
 * Route    the object is the ABI's TRITONSERVER_Error, so that errors from and
 *          to backends need no conversion.
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

/* Causes within a code that change the answer to a client; the channel carries
   one as a byte. */
typedef enum {
    INF_CAUSE_NONE      = 0,
    INF_CAUSE_FULL      = 1,    /* a queue or an arena is full               */
    INF_CAUSE_TIMED_OUT = 2,    /* a wait exceeded its limit                 */
    INF_CAUSE_STRINGS   = 3,    /* only in the core: an ensemble's client sent
                                   malformed strings, err is sent to it      */
    INF_CAUSE_NOT_READY = 4,    /* the server or model asked about is not
                                   ready                                     */
    INF_CAUSE_STARTING  = 5,    /* a core after another's exit has still to load
                                   the model: a later try may find it        */
    INF_CAUSE_UNNAMED   = 6,    /* only in the core: sent without the request's
                                   id, as Triton does                        */
    INF_CAUSE_QUARANTINED = 7,  /* only in the core: a model crashed several
                                   cores in a row                            */
    INF_CAUSE_UNTAKEN   = 8,    /* the client does not take its responses    */
    INF_CAUSE_NO_MEMORY = 9     /* a model says that memory is short         */
} inf_err_cause_t;

#define INF_CAUSE_LAST INF_CAUSE_NO_MEMORY

typedef struct TRITONSERVER_Error inf_err_t;

/* Creates an error with a formatted text.  Never NULL. */
INF_CHECK inf_err_t *inf_err_new(inf_err_code_t code, const char *fmt, ...)
    INF_PRINTF(2, 3);

/* INTERNAL, "<text>: <strerror(errnum)>". */
INF_CHECK inf_err_t *inf_err_os(int errnum, const char *fmt, ...)
    INF_PRINTF(2, 3);

/* The static out-of-memory error (UNAVAILABLE). */
INF_CHECK inf_err_t *inf_err_nomem(void);

/* Prepends "<text>: " to err's message; takes err and returns it. */
INF_CHECK inf_err_t *inf_err_add(inf_err_t *err, const char *fmt, ...)
    INF_PRINTF(2, 3);

/* Appends " (<text>)" to err's message; takes err and returns it. */
INF_CHECK inf_err_t *inf_err_note(inf_err_t *err, const char *fmt, ...)
    INF_PRINTF(2, 3);

/* Replaces the code; takes err and returns it. */
INF_CHECK inf_err_t *inf_err_recode(inf_err_t *err, inf_err_code_t code);

/* Sets the cause; takes err and returns it. */
INF_CHECK inf_err_t *inf_err_because(inf_err_t *err, inf_err_cause_t cause);

/* A copy of err. */
INF_CHECK inf_err_t *inf_err_copy(const inf_err_t *err);

/* Logs err (error level) and frees it; err may be NULL. */
void inf_err_log(inf_err_t *err);

/* Frees err; err may be NULL or the static object. */
void inf_err_free(inf_err_t *err);

/* Fields of an error, which is not NULL; the text is valid as long as err. */
inf_err_code_t inf_err_code(const inf_err_t *err);
inf_err_cause_t inf_err_cause(const inf_err_t *err);
const char *inf_err_msg(const inf_err_t *err);

/* "Internal", "Not found", ...; out-of-range values give "Unknown". */
const char *inf_err_code_string(inf_err_code_t code);

#endif /* INF_BASE_ERROR_H */
