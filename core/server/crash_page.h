/*
 * crash_page.h - memory that successive cores share: which versions were being
 *                loaded or executed when a core crashed.
 *
 * Owner    The master keeps the memory (a memfd) for all cores.  A core maps
 *          the memory in open and unmaps it in close.
 * Thread   open, close: main.  The operations of inf_crash_page_watch: begin
 *          and end on the thread that loads, late on any.  note_*, loading: a
 *          signal handler.
 * Units    none.
 * Errors   open: the system's, or INVALID_ARG for a memory that is too small.
 *          begin: UNAVAILABLE, with the reason, for a quarantined version.
 * Route    lifecycle, signal handler -> [crash page] -> next core's lifecycle
 *
 * A crash is a core's exit by a signal that the core has caused (SEGV, ABRT,
 * BUS, FPE, ILL), or because a GPU has failed.  A kill from outside is none.
 *
 * Loads: after a crash during the load of a version, the next core loads that
 * version alone, so that a second crash has one cause.  The second crash
 * quarantines the version.  A load that is late still counts as a load, but
 * other loads do not wait for its end.
 *
 * Executions: five crashes in a row during executions of a version quarantine
 * the version, if each is at most ten minutes after the one before and the
 * version is known for certain.
 *
 * A quarantined version is not loaded until a request loads the version or its
 * files change.  The page has 1024 records; a new record in a full page
 * replaces the one with the oldest crash, except those of quarantined versions.
 *
 * Order: the handler calls note_signal or note_gpu first; that clears what the
 * other notes say.
 */

#ifndef INF_SERVER_CRASH_PAGE_H
#define INF_SERVER_CRASH_PAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/os/signal_text.h"
#include "core/repository/lifecycle.h"

typedef struct inf_crash_page_s inf_crash_page_t;

/* Maps fd, and counts the crash of the last core against the versions that its
   records name. */
INF_CHECK inf_err_t *inf_crash_page_open(int fd, inf_crash_page_t **out);
void inf_crash_page_close(inf_crash_page_t *page);

/* Whether a core ran before this one. */
bool inf_crash_page_restarted(const inf_crash_page_t *page);

/* Operations for the lifecycle's options; userp is the page. */
extern const inf_load_watch_ops_t inf_crash_page_watch;

/* The functions below are async-signal-safe; page may be NULL. */

/* Notes the signal that ends this core. */
void inf_crash_page_note_signal(inf_crash_page_t *page, int signo);

/* Notes that a failed GPU ends this core.  loading: the exit counts against the
   versions that are being loaded. */
void inf_crash_page_note_gpu(inf_crash_page_t *page, bool loading);

/* Notes what the crashing thread executes: "model=m version=1 backend=b
   instance=m_0_0". */
void inf_crash_page_note_words(inf_crash_page_t *page, const char *words);

/* Appends "model=m version=1" for the load of this thread.  false: this thread
   loads nothing. */
bool inf_crash_page_loading(const inf_crash_page_t *page,
    inf_signal_text_t *text);

/* Notes the version that the crash counts against.  certain: the crashing
   thread executes the version; otherwise the crash counts only if no version is
   being loaded. */
void inf_crash_page_note_execution(inf_crash_page_t *page, const char *name,
    int64_t version, bool certain);

#endif /* INF_SERVER_CRASH_PAGE_H */
