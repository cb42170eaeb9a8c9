#include "core/base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"

struct TRITONSERVER_Error {
    inf_err_code_t   code;
    inf_err_cause_t  cause;
    char            *msg;
};

static char       err_nomem_text[] = "out of memory";
static inf_err_t  err_nomem_object = {
    INF_ERR_UNAVAILABLE, INF_CAUSE_NONE, err_nomem_text
};

static inf_err_t *err_newv(inf_err_code_t code, const char *fmt,
    va_list args) INF_PRINTF(2, 0);
static inf_err_t *err_reformat(inf_err_t *err, const char *fmt, va_list args,
    bool front) INF_PRINTF(2, 0);
static char *err_vformat(const char *fmt, va_list args) INF_PRINTF(1, 0);

inf_err_t *
inf_err_new(inf_err_code_t code, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    inf_err_t *err = err_newv(code, fmt, args);
    va_end(args);
    return err;
}

static inf_err_t *
err_newv(inf_err_code_t code, const char *fmt, va_list args)
{
    inf_err_t *err = malloc(sizeof(*err));
    if (err == NULL) {
        return &err_nomem_object;
    }

    err->code = code;
    err->cause = INF_CAUSE_NONE;
    err->msg = err_vformat(fmt, args);
    if (err->msg == NULL) {
        free(err);
        return &err_nomem_object;
    }

    return err;
}

inf_err_t *
inf_err_os(int errnum, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    inf_err_t *err = err_newv(INF_ERR_INTERNAL, fmt, args);
    va_end(args);

    if (err == &err_nomem_object) {
        return err;
    }

    char text[128];
    const char *why = strerror_r(errnum, text, sizeof(text));

    char *msg = NULL;
    if (asprintf(&msg, "%s: %s", err->msg, why) < 0) {
        return err;
    }

    free(err->msg);
    err->msg = msg;
    return err;
}

inf_err_t *
inf_err_nomem(void)
{
    return &err_nomem_object;
}

inf_err_t *
inf_err_add(inf_err_t *err, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    err = err_reformat(err, fmt, args, true);
    va_end(args);
    return err;
}

inf_err_t *
inf_err_note(inf_err_t *err, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    err = err_reformat(err, fmt, args, false);
    va_end(args);
    return err;
}

inf_err_t *
inf_err_recode(inf_err_t *err, inf_err_code_t code)
{
    if (err != NULL && err != &err_nomem_object) {
        err->code = code;
    }

    return err;
}

inf_err_t *
inf_err_because(inf_err_t *err, inf_err_cause_t cause)
{
    if (err != NULL && err != &err_nomem_object) {
        err->cause = cause;
    }

    return err;
}

inf_err_t *
inf_err_copy(const inf_err_t *err)
{
    return inf_err_because(inf_err_new(err->code, "%s", err->msg),
        err->cause);
}

void
inf_err_log(inf_err_t *err)
{
    if (err == NULL) {
        return;
    }

    inf_log(INF_LOG_ERROR, "%s", err->msg);
    inf_err_free(err);
}

void
inf_err_free(inf_err_t *err)
{
    if (err == NULL || err == &err_nomem_object) {
        return;
    }

    free(err->msg);
    free(err);
}

inf_err_code_t
inf_err_code(const inf_err_t *err)
{
    return err->code;
}

inf_err_cause_t
inf_err_cause(const inf_err_t *err)
{
    return err->cause;
}

const char *
inf_err_msg(const inf_err_t *err)
{
    return err->msg;
}

const char *
inf_err_code_string(inf_err_code_t code)
{
    switch (code) {
    case INF_ERR_UNKNOWN:
        return "Unknown";
    case INF_ERR_INTERNAL:
        return "Internal";
    case INF_ERR_NOT_FOUND:
        return "Not found";
    case INF_ERR_INVALID_ARG:
        return "Invalid argument";
    case INF_ERR_UNAVAILABLE:
        return "Unavailable";
    case INF_ERR_UNSUPPORTED:
        return "Unsupported";
    case INF_ERR_ALREADY_EXISTS:
        return "Already exists";
    case INF_ERR_CANCELLED:
        return "<invalid code>";
    }

    return "Unknown";
}

/* Adds a text before or after the message. */
static inf_err_t *
err_reformat(inf_err_t *err, const char *fmt, va_list args, bool front)
{
    if (err == NULL || err == &err_nomem_object) {
        return err;
    }

    char *text = err_vformat(fmt, args);
    if (text == NULL) {
        return err;
    }

    char *msg = NULL;
    int len = front ? asprintf(&msg, "%s: %s", text, err->msg)
        : asprintf(&msg, "%s (%s)", err->msg, text);
    if (len >= 0) {
        free(err->msg);
        err->msg = msg;
    }

    free(text);
    return err;
}

static char *
err_vformat(const char *fmt, va_list args)
{
    char *text = NULL;
    if (vasprintf(&text, fmt, args) < 0) {
        return NULL;
    }

    return text;
}
