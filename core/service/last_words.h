/*
 * last_words.h - the core's report when it crashes: the model, version, backend
 *                and instance that was executing or loading.
 *
 * Owner    none; a channel's memory is the channel's.
 * Thread   add, remove: the intake role.  say: a signal handler, or a thread
 *          that ends the process.
 * Units    bytes.
 * Errors   none: if there are too many channels, some get no report.
 * Route    handler of a crash -> [last words] -> stderr, workers, crash page
 */

#ifndef INF_SERVICE_LAST_WORDS_H
#define INF_SERVICE_LAST_WORDS_H

#include "core/include/channel.h"
#include "core/server/crash_page.h"

/* text: INF_CRASH_MAX bytes readable by a worker, valid until remove. */
void inf_last_words_add(char *text);
void inf_last_words_remove(const char *text);

/* Writes the last words to all; async-signal-safe; page may be NULL. */
void inf_last_words_say(inf_crash_page_t *page);

#endif /* INF_SERVICE_LAST_WORDS_H */
