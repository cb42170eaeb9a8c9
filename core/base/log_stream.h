/*
 * log_stream.h - where lines of the log go while no sink is set: stderr or a
 *                file, one write a line.
 *
 * Owner    process-wide, like the log itself.
 * Thread   any.
 * Units    time of day with us, in UTC.
 * Errors   INTERNAL: the file can't be opened; what was used before stays.
 * Route    log -> [log stream] -> stderr, file
 */

#ifndef INF_BASE_LOG_STREAM_H
#define INF_BASE_LOG_STREAM_H

#include <stddef.h>
#include <time.h>

#include "core/base/log.h"

/* A line with everything in it escaped fits. */
#define INF_LOG_STREAM_MAX (6 * INF_LOG_MAX + 256)

/* The values are those of TRITONSERVER_LogFormat. */
typedef enum {
    INF_LOG_DEFAULT = 0,    /* I1121 15:04:05.123456 77 file.c:9] "text"     */
    INF_LOG_ISO8601 = 1     /* 2026-11-21T15:04:05Z I 77 file.c:9] "text"    */
} inf_log_format_t;

/* Lines are appended to it; NULL or "": to stderr. */
INF_CHECK inf_err_t *inf_log_stream_open(const char *path);

/* For the lines that follow. */
void inf_log_stream_set_format(inf_log_format_t format);
inf_log_format_t inf_log_stream_format(void);

/* The sink. */
void inf_log_stream_write(void *userp, inf_log_level_t level,
    const char *file, int line_no, const char *line);

/* One line with its newline into text; its length.  escape: as a JSON string,
   else as it is. */
size_t inf_log_stream_line(char text[INF_LOG_STREAM_MAX],
    inf_log_format_t format, bool escape, const struct timespec *now, int pid,
    inf_log_level_t level, const char *file, int line_no, const char *line);

#endif /* INF_BASE_LOG_STREAM_H */
