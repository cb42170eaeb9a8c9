/*
 * message_utf8.h - validates UTF-8 and encodes code points.
 *
 * Owner    The caller's memory.
 * Thread   any.
 * Units    bytes.
 * Errors   none.
 * Route    unpack, the JSON codec, texts of clients and backends -> [UTF-8]
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

/* Replaces each byte outside a valid character by '?'; the length stays. */
void inf_utf8_repair(char *text, size_t len);

/* Writes 1 to 4 bytes to dst and returns their number; code is at most
   0x10ffff.  A surrogate is encoded as three bytes. */
size_t inf_utf8_put(char *dst, uint32_t code);

#endif /* INF_PROTO_MESSAGE_UTF8_H */
