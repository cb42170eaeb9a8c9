/*
 * s3_listing.h - ListObjectsV2: the query of a page, and its XML.
 *
 * Owner    The caller's listing.
 * Thread   one at a time.
 * Units    bytes; ns since 1970.
 * Errors   INTERNAL: not such a document, with line and column.
 * Route    object client -> [S3 listing] -> listing
 *
 * Source: Amazon S3 API, ListObjectsV2.
 */

#ifndef INF_STORAGE_S3_LISTING_H
#define INF_STORAGE_S3_LISTING_H

#include "core/base/buf.h"
#include "core/base/error.h"
#include "core/storage/object_listing.h"
#include "core/storage/object_service.h"

/* Appends the query, sorted as a signature needs it. */
void inf_s3_listing_put_query(inf_buf_t *url, const inf_object_page_t *page);

/* Appends the entries of a page and sets next. */
INF_CHECK inf_err_t *inf_s3_listing_parse(inf_object_listing_t *l,
    const char *xml, size_t len);

#endif /* INF_STORAGE_S3_LISTING_H */
