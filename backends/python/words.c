/* words.c - see words.h */

#include "words.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "../common/error.h"

#define READS           256         /* in one go; more than a pipe holds     */
#define LINE_MAX_BYTES  1024u       /* a longer one is several in the log    */

static void log_lines(py_words_t *w, bool all);

int
py_words_open(py_words_t *w, const char *name, int *writer)
{
    int ends[2];

    *w = (py_words_t) { .fd = -1, .name = name };
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return errno;
    }

    w->fd = ends[0];
    *writer = ends[1];
    return fcntl(w->fd, F_SETFL, O_NONBLOCK) == 0 ? 0 : errno;
}

void
py_words_hear(py_words_t *w)
{
    ssize_t n = 1;

    for (int i = 0; i < READS && n > 0; i++) {
        if (w->len == sizeof(w->text) - 1) {
            w->line -= w->len - PY_WORDS_KEPT;
            memmove(w->text, w->text + w->len - PY_WORDS_KEPT, PY_WORDS_KEPT);
            w->len = PY_WORDS_KEPT;
        }
        n = read(w->fd, w->text + w->len, sizeof(w->text) - 1 - w->len);
        if (n > 0) {
            w->len += (size_t) n;
            log_lines(w, false);
        }
    }
    if (n == 0) {
        py_words_close(w);
    }
}

/* Logs the lines that have ended, or all. */
static void
log_lines(py_words_t *w, bool all)
{
    while (w->line < w->len) {
        const char *text = w->text + w->line;
        size_t len = w->len - w->line;

        const char *end = memchr(text, '\n', len);
        if (end == NULL && len < LINE_MAX_BYTES && !all) {
            return;
        }

        len = end != NULL ? (size_t) (end - text) : len;
        len = len < LINE_MAX_BYTES ? len : LINE_MAX_BYTES;
        bk_log(TRITONSERVER_LOG_WARN, "instance %s: %.*s", w->name, (int) len,
            text);
        w->line += len + (text + len == end ? 1 : 0);
    }
}

void
py_words_close(py_words_t *w)
{
    if (w->fd != -1) {
        log_lines(w, true);
        (void) close(w->fd);
        w->fd = -1;
    }
}

const char *
py_words_last(py_words_t *w)
{
    size_t end = w->len;
    size_t begin;

    while (end > 0 && w->text[end - 1] == '\n') {
        end--;
    }
    w->text[end] = '\0';

    begin = end > PY_WORDS_KEPT ? end - PY_WORDS_KEPT : 0;
    const char *line = begin > 0 ? strchr(w->text + begin, '\n') : NULL;
    return line != NULL ? line + 1 : w->text + begin;
}
