/*
 * iso_time.h - times of documents, such as "2026-11-21T15:24:46.000Z".
 *
 * Owner    The caller's text.
 * Thread   any.
 * Units    ns since 1970.
 * Errors   -1.
 * Route    listing, access token -> [time]
 *
 * Source: RFC 3339, of times in UTC.
 */

#ifndef INF_STORAGE_ISO_TIME_H
#define INF_STORAGE_ISO_TIME_H

#include <stdint.h>

/* -1 also: before 1970, or beyond what 63 bits hold. */
int64_t inf_iso_time_parse(const char *text);

#endif /* INF_STORAGE_ISO_TIME_H */
