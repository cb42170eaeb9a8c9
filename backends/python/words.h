/*
 * words.h - stderr of a process until it has begun: a pipe, of which each line
 *           is logged and the end of the text is kept.  Children of the process
 *           may have it longer.
 *
 * Owner    The process; close keeps the last words, until the next open.
 * Thread   one.
 * Units    bytes.
 * Errors   open: errno.
 * Route    interpreter -> process -> [words] -> log
 */

#ifndef PY_WORDS_H
#define PY_WORDS_H

#include <stddef.h>

#define PY_WORDS_KEPT   4096u

typedef struct {
    int         fd;         /* of a pipe; -1: there are no more              */
    const char *name;       /* of the instance                               */
    size_t      line;       /* in text: begin of the one that has not ended  */
    size_t      len;
    char        text[2 * PY_WORDS_KEPT + 1];    /* the last that have come   */
} py_words_t;

/* Gives in *writer the end that is to be stderr; name stays until close. */
int py_words_open(py_words_t *w, const char *name, int *writer);

/* Logs what has come, a part of it if it does not end.  Writers wait while
   nobody hears them. */
void py_words_hear(py_words_t *w);

/* A later writer gets SIGPIPE. */
void py_words_close(py_words_t *w);

/* The last words that were heard, about PY_WORDS_KEPT at most; "": none. */
const char *py_words_last(py_words_t *w);

#endif /* PY_WORDS_H */
