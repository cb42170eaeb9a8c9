/*
 * crash_page.h - remembers, across the core's deaths, which models were being
 *                loaded: one that keeps killing the core is left out.
 *
 * Owner    The master keeps the memory (a memfd); this core maps it.
 * Thread   begin, end: loaders.  note_signal: a signal handler.
 * Units    none.
 * Errors   begin: UNAVAILABLE with the reason when a model is quarantined.
 * Route    lifecycle -> [crash page] -> next core's lifecycle
 *
 * A model that was loading when the core died of a signal of its own doing
 * (SEGV, ABRT, BUS, FPE, ILL) is a suspect: the next core loads it while
 * nothing else loads.  Twice is enough: it is quarantined until nginx is
 * restarted.  A kill from outside counts against nobody.
 */

#ifndef INF_SERVER_CRASH_PAGE_H
#define INF_SERVER_CRASH_PAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/repository/lifecycle.h"

typedef struct inf_crash_page_s inf_crash_page_t;

/* Maps fd (size bytes or more) and judges what the last core left there. */
INF_CHECK inf_err_t *inf_crash_page_open(int fd, inf_crash_page_t **out);
void inf_crash_page_close(inf_crash_page_t *page);

/* Whether another core was there before this one. */
bool inf_crash_page_restarted(const inf_crash_page_t *page);

/* For lifecycle's options, with the page as userp. */
extern const inf_load_watch_ops_t inf_crash_page_watch;

/* Async-signal-safe; page may be NULL. */
void inf_crash_page_note_signal(inf_crash_page_t *page, int signo);

#endif /* INF_SERVER_CRASH_PAGE_H */
