/*
 * http_date.h - dates of HTTP headers, in any locale.
 *
 * Owner    The caller's memory.
 * Thread   any.
 * Units    ns since 1970, of whole seconds.
 * Errors   parse: -1.
 * Route    listing of blobs, signature -> [date]
 *
 * Source: RFC 9110, IMF-fixdate: "Sat, 21 Nov 2026 15:24:46 GMT".
 */

#ifndef INF_STORAGE_HTTP_DATE_H
#define INF_STORAGE_HTTP_DATE_H

#include <stdint.h>
#include <time.h>

#define INF_HTTP_DATE_BYTES 30u         /* with the NUL                      */

/* seconds: since 1970, before the year 10000. */
void inf_http_date_format(time_t seconds, char out[INF_HTTP_DATE_BYTES]);

/* -1 also: before 1970, or beyond what 63 bits hold. */
int64_t inf_http_date_parse(const char *text);

#endif /* INF_STORAGE_HTTP_DATE_H */
