/*
 * log_stream.h - the log's destination while no sink is set: stderr or a file,
 *                one write per line.
 *
 * Owner    process-wide, like the log.
 * Thread   any.
 * Units    UTC with microseconds.
 * Errors   INTERNAL: the file cannot be opened; the previous destination
 *          stays.
 * Route    log -> [log stream] -> stderr, file
 */

#ifndef INF_BASE_LOG_STREAM_H
#define INF_BASE_LOG_STREAM_H

#include <stddef.h>
#include <time.h>

#include "core/base/log.h"

/* Enough for a line in which every byte is escaped. */
#define INF_LOG_STREAM_MAX (6 * INF_LOG_MAX + 256)

/* The values are those of TRITONSERVER_LogFormat. */
typedef enum {
    INF_LOG_DEFAULT = 0,    /* I1121 15:04:05.123456 77 file.c:9] "text"     */
    INF_LOG_ISO8601 = 1     /* 2026-11-21T15:04:05Z I 77 file.c:9] "text"    */
} inf_log_format_t;

/* Appends lines to the file; NULL or "": to stderr. */
INF_CHECK inf_err_t *inf_log_stream_open(const char *path);

/* Sets the format of later lines. */
void inf_log_stream_set_format(inf_log_format_t format);
inf_log_format_t inf_log_stream_format(void);

/* An inf_log_sink_fn. */
void inf_log_stream_write(void *userp, inf_log_level_t level,
    const char *file, int line_no, const char *line);

/* Writes one line with its newline to text and returns its length.  escape: as
   a JSON string, otherwise unchanged. */
size_t inf_log_stream_line(char text[INF_LOG_STREAM_MAX],
    inf_log_format_t format, bool escape, const struct timespec *now, int pid,
    inf_log_level_t level, const char *file, int line_no, const char *line);

#endif /* INF_BASE_LOG_STREAM_H */
