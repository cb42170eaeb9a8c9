/*
 * stderr_pipe.h - stderr of a process until it has begun: a pipe.  Each line is
 *                 logged, and the end of the text is kept.  Children of the
 *                 process may have it longer.
 *
 * Owner    The process; close keeps the last text, until the next open.
 * Thread   one.
 * Units    bytes.
 * Errors   open: errno.
 * Route    interpreter -> process -> [stderr pipe] -> log
 */

#ifndef PY_STDERR_PIPE_H
#define PY_STDERR_PIPE_H

#include <stddef.h>

#define PY_STDERR_KEPT  4096u

typedef struct {
    int         fd;         /* of the pipe; -1: nothing more comes           */
    const char *name;       /* of the instance                               */
    size_t      line;       /* in text: begin of the one that has not ended  */
    size_t      len;
    char        text[2 * PY_STDERR_KEPT + 1];   /* the last that was read    */
} py_stderr_t;

/* Gives in *writer the end that is to be stderr; name stays until close. */
int py_stderr_open(py_stderr_t *p, const char *name, int *writer);

/* Logs what has come, a part of it if it does not end.  Writers wait while
   nobody reads. */
void py_stderr_read(py_stderr_t *p);

/* A later writer gets SIGPIPE. */
void py_stderr_close(py_stderr_t *p);

/* The end of the text that was read, about PY_STDERR_KEPT at most; "": none. */
const char *py_stderr_last(py_stderr_t *p);

#endif /* PY_STDERR_PIPE_H */
