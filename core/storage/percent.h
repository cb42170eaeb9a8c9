/*
 * percent.h - percent-encoded text.
 *
 * Owner    The caller's text; decoding changes it in place.
 * Thread   any.
 * Units    bytes.
 * Errors   none; text that is no %XX stays.
 * Route    object URLs, listing, http post -> [percent]
 *
 * Source: RFC 3986.
 */

#ifndef INF_STORAGE_PERCENT_H
#define INF_STORAGE_PERCENT_H

#include <stdbool.h>

#include "core/base/buf.h"

/* Appends text; unreserved characters, and slashes if wanted, stay plain. */
void inf_percent_encode(inf_buf_t *b, const char *text, bool slashes);

/* A zero byte, which no C string holds, stays encoded. */
void inf_percent_decode(char *text);

/* Likewise, and "+" is a space, as in queries. */
void inf_percent_decode_query(char *text);

#endif /* INF_STORAGE_PERCENT_H */
