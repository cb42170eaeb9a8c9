/*
 * log.h - the process's log: levels, one line per record, a sink.
 *
 * Owner    The sink is process-wide; main (or the embedding program) sets it.
 * Thread   any.
 * Units    A line has no newline and no other control character; it is
 *          truncated to INF_LOG_MAX bytes.
 * Errors   Logging never fails for the caller.
 * Route    core: lines go to the log socket and from there into nginx's
 *          error_log.  Worker: the sink writes to the cycle's log.
 */

#ifndef INF_BASE_LOG_H
#define INF_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/error.h"

#define INF_LOG_MAX 2000

/* The values are those of TRITONSERVER_LogLevel; NOTICE, for the state of core
   and models, is logged where INFO is. */
typedef enum {
    INF_LOG_INFO    = 0,
    INF_LOG_WARN    = 1,
    INF_LOG_ERROR   = 2,
    INF_LOG_VERBOSE = 3,
    INF_LOG_NOTICE  = 4
} inf_log_level_t;

/* line is NUL-terminated; file and line_no are those of the inf_log call. */
typedef void (*inf_log_sink_fn)(void *userp, inf_log_level_t level,
    const char *file, int line_no, const char *line);

/* Not synchronised: called before other threads start.  NULL: stream. */
void inf_log_set_sink(inf_log_sink_fn sink, void *userp);

/* Enables levels.  verbose_level 0 disables INF_LOG_VERBOSE. */
void inf_log_set_levels(bool info, bool warn, bool error, int verbose_level);
bool inf_log_enabled(inf_log_level_t level);
int inf_log_verbose_level(void);

#define inf_log(level, ...) inf_log_at((level), __FILE__, __LINE__, __VA_ARGS__)

/* The length of the control character at p: U+0000 to 001F, U+007F, or U+0080
   to 009F in UTF-8, which terminals also interpret; 0: none.  len is at least
   1. */
size_t inf_log_control(const char *p, size_t len);

/* Replaces all control characters by spaces, so that the record is one line
   that a terminal shows unchanged. */
void inf_log_blank(char *line, size_t len);

/* Implements inf_log(): formats the record as one line, at most INF_LOG_MAX
   bytes, and passes it to the sink. */
void inf_log_at(inf_log_level_t level, const char *file, int line_no,
    const char *fmt, ...) INF_PRINTF(4, 5);

#endif /* INF_BASE_LOG_H */
