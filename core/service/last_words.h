/*
 * last_words.h - what the core says when it crashes: which model, version,
 *                backend and instance was executing or loading.
 *
 * Owner    Nothing is owned; a channel's place is the channel's.
 * Thread   add, remove: the intake role.  say: a handler of signals, or a
 *          thread that ends the process.
 * Units    bytes.
 * Errors   none: of more channels than there is room for, some are not told.
 * Route    handler of a crash -> [last words] -> stderr, workers, crash page
 */

#ifndef INF_SERVICE_LAST_WORDS_H
#define INF_SERVICE_LAST_WORDS_H

#include "core/include/channel.h"
#include "core/server/crash_page.h"

/* text: INF_CRASH_MAX bytes that a worker reads, which stay until remove. */
void inf_last_words_add(char *text);
void inf_last_words_remove(const char *text);

/* Async-signal-safe; page may be NULL. */
void inf_last_words_say(inf_crash_page_t *page);

#endif /* INF_SERVICE_LAST_WORDS_H */
