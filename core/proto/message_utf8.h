/*
 * message_utf8.h - is it UTF-8, and how a code point becomes bytes.
 *
 * Owner    the caller's memory.
 * Thread   any.
 * Units    bytes.
 * Errors   none.
 * Route    unpack and the JSON codec look at every string here, and so
 *          does code that shows a client's or a backend's text.
 */

#ifndef INF_PROTO_MESSAGE_UTF8_H
#define INF_PROTO_MESSAGE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/slice.h"

/* Length of the longest valid prefix (no surrogates, no overlong forms). */
size_t inf_utf8_valid_prefix(inf_slice_t s);

static inline bool
inf_utf8_valid(inf_slice_t s)
{
    return inf_utf8_valid_prefix(s) == s.len;
}

/* Puts a '?' for each byte that is in no character; the length stays. */
void inf_utf8_repair(char *text, size_t len);

/* Writes 1 to 4 bytes to dst, gives how many; code is at most 0x10ffff.
   A surrogate is written as the three bytes its number asks for. */
size_t inf_utf8_put(char *dst, uint32_t code);

#endif /* INF_PROTO_MESSAGE_UTF8_H */
