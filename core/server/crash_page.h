/*
 * crash_page.h - remembers, across the core's deaths, which versions were being
 *                loaded or executed: one that ends core after core is
 *                quarantined.
 *
 * Owner    The master keeps the memory (a memfd); this core maps it.
 * Thread   begin, end: loaders.  late: any.  note_signal, note_execution: a
 *          signal handler.
 * Units    none.
 * Errors   begin: UNAVAILABLE with the reason when a version is quarantined.
 * Route    lifecycle -> [crash page] -> next core's lifecycle
 *
 * A crash is a death of a signal of the core's own doing (SEGV, ABRT, BUS, FPE,
 * ILL), or the end of a core because a GPU has failed; a kill from outside
 * counts against nobody.  A version that was loading in one crash is loaded by
 * the next core while nothing else loads; two such crashes quarantine the
 * version.  So do five in a row that executed it, ten minutes apart at most,
 * where it is clear which version it was.  A version in quarantine isn't loaded
 * until a request loads it or its files change.  The page has room for 1024
 * versions; of those that are not in quarantine yet the one that crashed
 * longest ago gives way.  A load that is late counts as loading until it ends,
 * but others don't wait for it any more.
 */

#ifndef INF_SERVER_CRASH_PAGE_H
#define INF_SERVER_CRASH_PAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/os/signal_text.h"
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

/* Likewise: this core ends because a GPU has failed, which counts as a crash;
   loading: of a version that is being loaded. */
void inf_crash_page_note_gpu(inf_crash_page_t *page, bool loading);

/* Likewise: words that name it, with its backend and instance, in the thread
   that crashes. */
void inf_crash_page_note_words(inf_crash_page_t *page, const char *words);

/* Likewise: puts "model=m version=1" of what this thread loads; false: it loads
   nothing. */
bool inf_crash_page_loading(const inf_crash_page_t *page,
    inf_signal_text_t *text);

/* Likewise: that version is executing.  certain: in the thread that crashes;
   else it counts only if nothing is loading. */
void inf_crash_page_note_execution(inf_crash_page_t *page, const char *name,
    int64_t version, bool certain);

#endif /* INF_SERVER_CRASH_PAGE_H */
