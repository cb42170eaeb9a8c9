/*
 * listing_reader.h - reads a page of a listing from XML, by a table of the
 *                    elements that the service's document has.
 *
 * Owner    The caller's listing; forms are static.
 * Thread   one at a time.
 * Units    bytes; ns since 1970.
 * Errors   INTERNAL: not such a document, with line and column.
 * Route    S3 listing, Azure listing -> [reader] -> listing
 */

#ifndef INF_STORAGE_LISTING_READER_H
#define INF_STORAGE_LISTING_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/storage/object_listing.h"

typedef enum {
    INF_LISTING_OTHER,
    INF_LISTING_ROOT,
    INF_LISTING_ENTRIES,        /* contains entries; some documents have it  */
    INF_LISTING_OBJECT,
    INF_LISTING_PROPERTIES,     /* of an object; likewise                    */
    INF_LISTING_PREFIXES,
    INF_LISTING_KEY,            /* from here on: with a text                 */
    INF_LISTING_ETAG,
    INF_LISTING_SIZE,
    INF_LISTING_MODIFIED,
    INF_LISTING_PREFIX,
    INF_LISTING_NEXT,
    INF_LISTING_TRUNCATED,      /* "true": next must not be empty            */
    INF_LISTING_ENCODING,       /* "url": keys are encoded as in a query     */
    INF_LISTING_TYPE,           /* "directory": the object is left out       */
    INF_LISTING_ESCAPED         /* in no form: KEY or PREFIX with Encoded    */
} inf_listing_element_t;

typedef struct {
    inf_listing_element_t  parent;
    const char            *name;
    inf_listing_element_t  element;
} inf_listing_row_t;

typedef struct {
    const char              *root;
    const char              *other_root;    /* error of another one          */
    const inf_listing_row_t *rows;
    size_t                   count;
    bool                     flagged;       /* next counts only if TRUNCATED */
    const char              *time_form;     /* error of another one          */
    int64_t                (*parse_time)(const char *text);     /* -1: wrong */
} inf_listing_form_t;

/* Appends the entries of a page and sets next. */
INF_CHECK inf_err_t *inf_listing_read(inf_object_listing_t *l,
    const inf_listing_form_t *form, const char *xml, size_t len);

#endif /* INF_STORAGE_LISTING_READER_H */
