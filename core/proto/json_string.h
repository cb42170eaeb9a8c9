/*
 * json_string.h - unescapes a JSON string piece by piece.
 *
 * Owner    The caller's memory.
 * Thread   any.
 * Units    bytes.
 * Errors   false: a string that the tokenizer would have rejected.
 * Route    inference request (names, texts, BYTES), JSON of messages.
 */

#ifndef INF_PROTO_JSON_STRING_H
#define INF_PROTO_JSON_STRING_H

#include <stdbool.h>

/*
 * Copies from *src to *dst and advances both, up to a closing quote (not
 * consumed) or the first character at or after stop.  Does not read at or
 * after end, nor write at or after dst_end.
 */
bool inf_json_unescape(const char **src, const char *stop, const char *end,
    char **dst, const char *dst_end);

#endif /* INF_PROTO_JSON_STRING_H */
