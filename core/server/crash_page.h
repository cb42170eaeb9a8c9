/*
 * crash_page.h - memory, shared by successive cores, of the versions being
 *                loaded or executed; a version that keeps crashing the core is
 *                quarantined.
 *
 * Owner    The master keeps the memory (a memfd); this core maps it.
 * Thread   begin, end: loaders.  late: any.  note_signal, note_execution: a
 *          signal handler.
 * Units    none.
 * Errors   begin: UNAVAILABLE with the reason when a version is quarantined.
 * Route    lifecycle -> [crash page] -> next core's lifecycle
 *
 * A crash is a core's exit by a signal of its own (SEGV, ABRT, BUS, FPE, ILL),
 * or because a GPU failed; a kill from outside does not count.  After a crash
 * the next core loads a version that was loading while nothing else loads; two
 * such crashes quarantine the version.  Five crashes in a row during its
 * execution do the same, if they are at most ten minutes apart and the version
 * is known for certain.  A quarantined version is not loaded until a request
 * loads it or its files change.  The page has 1024 records; a full page reuses
 * the record with the oldest crash that is not in quarantine.  A load that is
 * late counts as loading until it ends, but other loads no longer wait for it.
 */

#ifndef INF_SERVER_CRASH_PAGE_H
#define INF_SERVER_CRASH_PAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/os/signal_text.h"
#include "core/repository/lifecycle.h"

typedef struct inf_crash_page_s inf_crash_page_t;

/* Maps fd (size bytes or more) and evaluates the last core's records. */
INF_CHECK inf_err_t *inf_crash_page_open(int fd, inf_crash_page_t **out);
void inf_crash_page_close(inf_crash_page_t *page);

/* Whether a core ran before this one. */
bool inf_crash_page_restarted(const inf_crash_page_t *page);

/* Operations for the lifecycle's options; userp is the page. */
extern const inf_load_watch_ops_t inf_crash_page_watch;

/* Notes the signal that ends this core.  Async-signal-safe; page may be
   NULL. */
void inf_crash_page_note_signal(inf_crash_page_t *page, int signo);

/* Notes that a failed GPU ends this core, which counts as a crash; loading: a
   version was being loaded.  Async-signal-safe; page may be NULL. */
void inf_crash_page_note_gpu(inf_crash_page_t *page, bool loading);

/* Notes a text that names the version, backend and instance of the crashing
   thread.  Async-signal-safe; page may be NULL. */
void inf_crash_page_note_words(inf_crash_page_t *page, const char *words);

/* Appends "model=m version=1" of this thread's load; false: none.
   Async-signal-safe; page may be NULL. */
bool inf_crash_page_loading(const inf_crash_page_t *page,
    inf_signal_text_t *text);

/* Notes a version that is executing.  certain: in the crashing thread;
   otherwise it counts only if nothing is loading.  Async-signal-safe; page may
   be NULL. */
void inf_crash_page_note_execution(inf_crash_page_t *page, const char *name,
    int64_t version, bool certain);

#endif /* INF_SERVER_CRASH_PAGE_H */
