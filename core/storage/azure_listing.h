/*
 * azure_listing.h - List Blobs: the query of a page, and its XML.
 *
 * Owner    The caller's listing.
 * Thread   one at a time.
 * Units    bytes; ns since 1970.
 * Errors   INTERNAL: not such a document, with line and column.
 * Route    object client -> [Azure listing] -> listing
 *
 * Source: Azure Blob Storage REST API, List Blobs.
 */

#ifndef INF_STORAGE_AZURE_LISTING_H
#define INF_STORAGE_AZURE_LISTING_H

#include "core/base/buf.h"
#include "core/base/error.h"
#include "core/storage/object_listing.h"
#include "core/storage/object_service.h"

/* Appends the query. */
void inf_azure_listing_put_query(inf_buf_t *url,
    const inf_object_page_t *page);

/* Appends the entries of a page and sets next.  Directories, which an account
   with a hierarchical namespace lists as blobs, are left out. */
INF_CHECK inf_err_t *inf_azure_listing_parse(inf_object_listing_t *l,
    const char *xml, size_t len);

#endif /* INF_STORAGE_AZURE_LISTING_H */
