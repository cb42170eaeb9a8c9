/*
 * s3_listing.h - parses pages of ListObjectsV2 from XML.
 *
 * Owner    The caller's memory: init, parse pages into it, fini.
 * Thread   one at a time.
 * Units    bytes; ns since 1970.
 * Errors   INTERNAL: not such a document, with line and column.
 * Route    S3 client -> [listing] -> storage
 *
 * Source: Amazon S3 API, ListObjectsV2 (response syntax).
 */

#ifndef INF_STORAGE_S3_LISTING_H
#define INF_STORAGE_S3_LISTING_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

#define INF_S3_KEY_MAX 1024u        /* limit of the service                  */

typedef struct {
    char     *key;          /* of an object, or a prefix that ends in '/'    */
    char     *etag;         /* without quotes; NULL: a prefix                */
    uint64_t  size;
    int64_t   modified_ns;
} inf_s3_object_t;

typedef struct {
    inf_s3_object_t *items;         /* in the order of the pages             */
    size_t           count;
    size_t           capacity;
    char            *next;          /* continuation token; NULL: the end     */
} inf_s3_listing_t;

/* init: an empty listing; fini frees the entries and empties it. */
void inf_s3_listing_init(inf_s3_listing_t *l);
void inf_s3_listing_fini(inf_s3_listing_t *l);

/* Appends the entries of a page and sets next. */
INF_CHECK inf_err_t *inf_s3_listing_parse(inf_s3_listing_t *l,
    const char *xml, size_t len);

#endif /* INF_STORAGE_S3_LISTING_H */
