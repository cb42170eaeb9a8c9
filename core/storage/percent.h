/*
 * percent.h - decodes percent-encoded text.
 *
 * Owner    The caller's text, changed in place.
 * Thread   any.
 * Units    bytes.
 * Errors   none; what is no %XX stays.
 * Route    S3 listing, http post -> [percent]
 *
 * Source: RFC 3986.
 */

#ifndef INF_STORAGE_PERCENT_H
#define INF_STORAGE_PERCENT_H

/* A zero byte, which no C string holds, stays encoded. */
void inf_percent_decode(char *text);

/* Likewise, and "+" is a space, as in queries. */
void inf_percent_decode_query(char *text);

#endif /* INF_STORAGE_PERCENT_H */
