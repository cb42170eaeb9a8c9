/*
 * json_string.h - the bytes of a JSON string, unescaped piece by piece.
 *
 * Owner    the caller's memory.
 * Thread   any.
 * Units    bytes.
 * Errors   false: not a string that the tokenizer would have let through.
 * Route    inference request (names, texts, BYTES), JSON of messages.
 */

#ifndef INF_PROTO_JSON_STRING_H
#define INF_PROTO_JSON_STRING_H

#include <stdbool.h>

/*
 * Copies from *src to *dst and moves both on, up to a closing quote (which
 * stays) or the first character at or behind stop.  Nothing is read behind
 * end nor written behind dst_end.
 */
bool inf_json_unescape(const char **src, const char *stop, const char *end,
    char **dst, const char *dst_end);

#endif /* INF_PROTO_JSON_STRING_H */
