/* stderr_pipe.c - see stderr_pipe.h */

#include "stderr_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "../common/error.h"

#define READS           256         /* in one go; more than a pipe holds     */
#define LINE_MAX_BYTES  1024u       /* a longer one is several in the log    */

static void log_lines(py_stderr_t *p, bool all);

int
py_stderr_open(py_stderr_t *p, const char *name, int *writer)
{
    int ends[2];

    *p = (py_stderr_t) { .fd = -1, .name = name };
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return errno;
    }

    p->fd = ends[0];
    *writer = ends[1];
    return fcntl(p->fd, F_SETFL, O_NONBLOCK) == 0 ? 0 : errno;
}

void
py_stderr_read(py_stderr_t *p)
{
    ssize_t n = 1;

    for (int i = 0; i < READS && n > 0; i++) {
        if (p->len == sizeof(p->text) - 1) {
            p->line -= p->len - PY_STDERR_KEPT;
            memmove(p->text, p->text + p->len - PY_STDERR_KEPT, PY_STDERR_KEPT);
            p->len = PY_STDERR_KEPT;
        }
        n = read(p->fd, p->text + p->len, sizeof(p->text) - 1 - p->len);
        if (n > 0) {
            p->len += (size_t) n;
            log_lines(p, false);
        }
    }
    if (n == 0) {
        py_stderr_close(p);
    }
}

/* Logs the lines that have ended, or all. */
static void
log_lines(py_stderr_t *p, bool all)
{
    while (p->line < p->len) {
        const char *text = p->text + p->line;
        size_t len = p->len - p->line;

        const char *end = memchr(text, '\n', len);
        if (end == NULL && len < LINE_MAX_BYTES && !all) {
            return;
        }

        len = end != NULL ? (size_t) (end - text) : len;
        len = len < LINE_MAX_BYTES ? len : LINE_MAX_BYTES;
        bk_log(TRITONSERVER_LOG_WARN, "instance %s: %.*s", p->name, (int) len,
            text);
        p->line += len + (text + len == end ? 1 : 0);
    }
}

void
py_stderr_close(py_stderr_t *p)
{
    if (p->fd != -1) {
        log_lines(p, true);
        (void) close(p->fd);
        p->fd = -1;
    }
}

const char *
py_stderr_last(py_stderr_t *p)
{
    size_t end = p->len;
    size_t begin;

    while (end > 0 && p->text[end - 1] == '\n') {
        end--;
    }
    p->text[end] = '\0';

    begin = end > PY_STDERR_KEPT ? end - PY_STDERR_KEPT : 0;
    const char *line = begin > 0 ? strchr(p->text + begin, '\n') : NULL;
    return line != NULL ? line + 1 : p->text + begin;
}
