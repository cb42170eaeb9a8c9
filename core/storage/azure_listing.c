#include "core/storage/azure_listing.h"

#include "core/storage/http_date.h"
#include "core/storage/listing_reader.h"
#include "core/storage/percent.h"

static const inf_listing_row_t rows[] = {
    { INF_LISTING_ROOT, "Blobs", INF_LISTING_ENTRIES },
    { INF_LISTING_ROOT, "NextMarker", INF_LISTING_NEXT },
    { INF_LISTING_ENTRIES, "Blob", INF_LISTING_OBJECT },
    { INF_LISTING_ENTRIES, "BlobPrefix", INF_LISTING_PREFIXES },
    { INF_LISTING_OBJECT, "Name", INF_LISTING_KEY },
    { INF_LISTING_OBJECT, "Properties", INF_LISTING_PROPERTIES },
    { INF_LISTING_PROPERTIES, "Etag", INF_LISTING_ETAG },
    { INF_LISTING_PROPERTIES, "Content-Length", INF_LISTING_SIZE },
    { INF_LISTING_PROPERTIES, "Last-Modified", INF_LISTING_MODIFIED },
    { INF_LISTING_PROPERTIES, "ResourceType", INF_LISTING_TYPE },
    { INF_LISTING_PREFIXES, "Name", INF_LISTING_PREFIX },
};

static const inf_listing_form_t form = {
    .root = "EnumerationResults",
    .other_root = "it is no EnumerationResults",
    .rows = rows,
    .count = sizeof(rows) / sizeof(rows[0]),
    .time_form = "a time is not of the form Sat, 21 Nov 2026 15:24:46 GMT",
    .parse_time = inf_http_date_parse,
};

void
inf_azure_listing_put_query(inf_buf_t *url, const inf_object_page_t *page)
{
    inf_buf_puts(url, page->recursive ? "comp=list"
        : "comp=list&delimiter=%2F");
    if (page->token != NULL) {
        inf_buf_puts(url, "&marker=");
        inf_percent_encode(url, page->token, false);
    }
    if (page->limit > 0) {
        inf_buf_printf(url, "&maxresults=%zu", page->limit);
    }
    if (page->prefix[0] != '\0') {
        inf_buf_puts(url, "&prefix=");
        inf_percent_encode(url, page->prefix, false);
    }
    inf_buf_puts(url, "&restype=container");
}

inf_err_t *
inf_azure_listing_parse(inf_object_listing_t *l, const char *xml, size_t len)
{
    return inf_listing_read(l, &form, xml, len);
}
