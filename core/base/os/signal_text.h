/*
 * signal_text.h - a text written by a signal handler.
 *
 * Owner    The caller's memory.
 * Thread   one at a time; async-signal-safe.
 * Units    bytes.
 * Errors   none: a text that is too long is truncated, and cut is set.
 * Route    handler of a crash -> [signal text]
 */

#ifndef INF_BASE_OS_SIGNAL_TEXT_H
#define INF_BASE_OS_SIGNAL_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    char   *data;       /* ends with a NUL                                   */
    size_t  len;
    size_t  cap;
    bool    cut;
} inf_signal_text_t;

/* cap is not 0. */
void inf_signal_text_init(inf_signal_text_t *t, char *data, size_t cap);
void inf_signal_text_puts(inf_signal_text_t *t, const char *s);
void inf_signal_text_number(inf_signal_text_t *t, uint64_t n);

#endif /* INF_BASE_OS_SIGNAL_TEXT_H */
