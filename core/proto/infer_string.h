/*
 * infer_string.h - the bytes of a JSON string, unescaped piece by piece.
 *
 * Owner    the caller's memory.
 * Thread   any.
 * Units    bytes.
 * Errors   false: not a string that the scanner would have let through.
 * Route    request reader (names of members), data decoder (BYTES).
 */

#ifndef INF_PROTO_INFER_STRING_H
#define INF_PROTO_INFER_STRING_H

#include <stdbool.h>

/*
 * Copies from *src to *dst and moves both on, up to a closing quote (which
 * stays) or the first character at or behind stop.  Nothing is read behind
 * end nor written behind dst_end.
 */
bool inf_string_unescape(const char **src, const char *stop, const char *end,
    char **dst, const char *dst_end);

#endif /* INF_PROTO_INFER_STRING_H */
