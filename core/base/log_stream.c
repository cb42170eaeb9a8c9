#include "core/base/log_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ESCAPE_VARIABLE "TRITON_SERVER_ESCAPE_LOG_MESSAGES"

static _Atomic int stream_fd = STDERR_FILENO;   /* seq_cst                   */
static _Atomic int stream_format;           /* relaxed                       */
static _Atomic int stream_escape = -1;      /* relaxed; -1: not determined   */

static bool wants_escape(void);
static size_t put_escaped(char *out, const char *line);

inf_err_t *
inf_log_stream_open(const char *path)
{
    int now = atomic_load(&stream_fd);

    if (path == NULL || path[0] == '\0') {
        atomic_store(&stream_fd, STDERR_FILENO);
        if (now != STDERR_FILENO) {
            close(now);
        }
        return NULL;
    }

    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd < 0) {
        return inf_err_os(errno, "cannot open log file \"%s\"", path);
    }

    if (now == STDERR_FILENO) {
        atomic_store(&stream_fd, fd);
        return NULL;
    }

    /* a thread that is writing keeps a valid descriptor */
    int rc = dup3(fd, now, O_CLOEXEC);
    int error = errno;
    close(fd);
    return rc >= 0 ? NULL : inf_err_os(error, "log file \"%s\"", path);
}

void
inf_log_stream_set_format(inf_log_format_t format)
{
    atomic_store_explicit(&stream_format, format, memory_order_relaxed);
}

inf_log_format_t
inf_log_stream_format(void)
{
    return (inf_log_format_t) atomic_load_explicit(&stream_format,
        memory_order_relaxed);
}

void
inf_log_stream_write(void *userp, inf_log_level_t level, const char *file,
    int line_no, const char *line)
{
    char text[INF_LOG_STREAM_MAX];
    struct timespec now;
    (void) userp;

    clock_gettime(CLOCK_REALTIME, &now);
    size_t len = inf_log_stream_line(text, inf_log_stream_format(),
        wants_escape(), &now, (int) getpid(), level, file, line_no, line);

    size_t done = 0;
    while (done < len) {
        ssize_t n = write(atomic_load(&stream_fd), text + done, len - done);
        if (n < 0 && errno != EINTR) {
            return;
        }
        done += n > 0 ? (size_t) n : 0;
    }
}

size_t
inf_log_stream_line(char text[INF_LOG_STREAM_MAX], inf_log_format_t format,
    bool escape, const struct timespec *now, int pid, inf_log_level_t level,
    const char *file, int line_no, const char *line)
{
    char letter = "IWEII"[level];
    const char *base = strrchr(file, '/');
    struct tm t;

    base = base != NULL ? base + 1 : file;
    gmtime_r(&now->tv_sec, &t);

    int n = format == INF_LOG_ISO8601
        ? snprintf(text, INF_LOG_STREAM_MAX, "%04d-%02d-%02dT%02d:%02d:%02dZ"
            " %c %d %.100s:%d] ", t.tm_year + 1900, t.tm_mon + 1, t.tm_mday,
            t.tm_hour, t.tm_min, t.tm_sec, letter, pid, base, line_no)
        : snprintf(text, INF_LOG_STREAM_MAX, "%c%02d%02d %02d:%02d:%02d.%06ld"
            " %d %.100s:%d] ", letter, t.tm_mon + 1, t.tm_mday, t.tm_hour,
            t.tm_min, t.tm_sec, now->tv_nsec / 1000, pid, base, line_no);

    size_t len = (size_t) n;
    if (escape) {
        len += put_escaped(text + len, line);
    } else {
        size_t size = strnlen(line, INF_LOG_MAX);
        memcpy(text + len, line, size);
        len += size;
    }

    text[len++] = '\n';
    return len;
}

static bool
wants_escape(void)
{
    int escape = atomic_load_explicit(&stream_escape, memory_order_relaxed);
    if (escape < 0) {
        const char *env = getenv(ESCAPE_VARIABLE);
        escape = env == NULL || strcmp(env, "0") != 0;
        atomic_store_explicit(&stream_escape, escape, memory_order_relaxed);
    }

    return escape != 0;
}

static size_t
put_escaped(char *out, const char *line)
{
    static const char hex[] = "0123456789abcdef";
    char *p = out;

    *p++ = '"';
    for (size_t i = 0; i < INF_LOG_MAX && line[i] != '\0'; i++) {
        unsigned char c = (unsigned char) line[i];
        if (c == '"' || c == '\\') {
            *p++ = '\\';
            *p++ = (char) c;
        } else if (c == '\t') {
            *p++ = '\\';
            *p++ = 't';
        } else if (c < 0x20) {
            memcpy(p, "\\u00", 4);
            p[4] = hex[c >> 4];
            p[5] = hex[c & 15];
            p += 6;
        } else {
            *p++ = (char) c;
        }
    }
    *p++ = '"';

    return (size_t) (p - out);
}
