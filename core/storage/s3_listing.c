#include "core/storage/s3_listing.h"

#include "core/storage/iso_time.h"
#include "core/storage/listing_reader.h"
#include "core/storage/percent.h"

static const inf_listing_row_t rows[] = {
    { INF_LISTING_ROOT, "Contents", INF_LISTING_OBJECT },
    { INF_LISTING_ROOT, "CommonPrefixes", INF_LISTING_PREFIXES },
    { INF_LISTING_ROOT, "NextContinuationToken", INF_LISTING_NEXT },
    { INF_LISTING_ROOT, "IsTruncated", INF_LISTING_TRUNCATED },
    { INF_LISTING_ROOT, "EncodingType", INF_LISTING_ENCODING },
    { INF_LISTING_OBJECT, "Key", INF_LISTING_KEY },
    { INF_LISTING_OBJECT, "ETag", INF_LISTING_ETAG },
    { INF_LISTING_OBJECT, "Size", INF_LISTING_SIZE },
    { INF_LISTING_OBJECT, "LastModified", INF_LISTING_MODIFIED },
    { INF_LISTING_PREFIXES, "Prefix", INF_LISTING_PREFIX },
};

static const inf_listing_form_t form = {
    .root = "ListBucketResult",
    .other_root = "it is no ListBucketResult",
    .rows = rows,
    .count = sizeof(rows) / sizeof(rows[0]),
    .flagged = true,
    .time_form = "a time is not of the form 2026-11-21T15:24:46.000Z",
    .parse_time = inf_iso_time_parse,
};

void
inf_s3_listing_put_query(inf_buf_t *url, const inf_object_page_t *page)
{
    if (page->token != NULL) {
        inf_buf_puts(url, "continuation-token=");
        inf_percent_encode(url, page->token, false);
        inf_buf_putc(url, '&');
    }
    inf_buf_puts(url, page->recursive ? "encoding-type=url&list-type=2"
        : "delimiter=%2F&encoding-type=url&list-type=2");
    if (page->limit > 0) {
        inf_buf_printf(url, "&max-keys=%zu", page->limit);
    }
    inf_buf_puts(url, "&prefix=");
    inf_percent_encode(url, page->prefix, false);
}

inf_err_t *
inf_s3_listing_parse(inf_object_listing_t *l, const char *xml, size_t len)
{
    return inf_listing_read(l, &form, xml, len);
}
