/*
 * silent_log.h - a log whose lines are made and thrown away.
 *
 * Owner    nobody.
 * Thread   any.
 * Units    none.
 * Errors   none.
 * Route    core -> log -> [silent log]
 */

#ifndef T_FUZZ_SILENT_LOG_H
#define T_FUZZ_SILENT_LOG_H

#include "core/base/log.h"

static inline void
silent_log_line(void *userp, inf_log_level_t level, const char *file,
    int line_no, const char *line)
{
    (void) userp, (void) level, (void) file, (void) line_no, (void) line;
}

static inline void
silent_log_begin(void)
{
    inf_log_set_sink(silent_log_line, NULL);
}

#endif /* T_FUZZ_SILENT_LOG_H */
