#include "core/base/log.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "core/base/log_stream.h"

static inf_log_sink_fn  log_sink = inf_log_stream_write;
static void            *log_userp;
/* relaxed */
static _Atomic int      log_mask = 1 << INF_LOG_INFO | 1 << INF_LOG_NOTICE
    | 1 << INF_LOG_WARN | 1 << INF_LOG_ERROR;
static _Atomic int      log_verbose;

void
inf_log_set_sink(inf_log_sink_fn sink, void *userp)
{
    log_sink = sink != NULL ? sink : inf_log_stream_write;
    log_userp = userp;
}

void
inf_log_set_levels(bool info, bool warn, bool error, int verbose_level)
{
    int mask = (info ? 1 << INF_LOG_INFO | 1 << INF_LOG_NOTICE : 0)
        | (warn ? 1 << INF_LOG_WARN : 0)
        | (error ? 1 << INF_LOG_ERROR : 0)
        | (verbose_level > 0 ? 1 << INF_LOG_VERBOSE : 0);
    atomic_store_explicit(&log_mask, mask, memory_order_relaxed);
    atomic_store_explicit(&log_verbose, verbose_level, memory_order_relaxed);
}

bool
inf_log_enabled(inf_log_level_t level)
{
    return atomic_load_explicit(&log_mask, memory_order_relaxed)
        & (1 << level);
}

int
inf_log_verbose_level(void)
{
    return atomic_load_explicit(&log_verbose, memory_order_relaxed);
}

void
inf_log_at(inf_log_level_t level, const char *file, int line_no,
    const char *fmt, ...)
{
    if (!inf_log_enabled(level)) {
        return;
    }

    char line[INF_LOG_MAX + 1];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);

    if (n < 0) {
        return;
    }

    inf_log_blank(line, strlen(line));
    log_sink(log_userp, level, file, line_no, line);
}

void
inf_log_blank(char *line, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        memset(line + i, ' ', inf_log_control(line + i, len - i));
    }
}

size_t
inf_log_control(const char *p, size_t len)
{
    unsigned char c = (unsigned char) p[0];

    if (c < 0x20 || c == 0x7f) {
        return 1;
    }
    return c == 0xc2 && len > 1 && (unsigned char) p[1] >= 0x80
        && (unsigned char) p[1] < 0xa0 ? 2 : 0;
}
