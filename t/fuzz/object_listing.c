/* Any page of a listing, of S3 or of Azure: no crash, and what is read has its
   bounds. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/storage/azure_listing.h"
#include "core/storage/s3_listing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef inf_err_t *(*parse_fn)(inf_object_listing_t *l, const char *xml,
    size_t len);

static void
read_pages(parse_fn parse, const char *xml, size_t len)
{
    inf_object_listing_t l;

    inf_object_listing_init(&l);
    for (int i = 0; i < 2; i++) {
        inf_err_free(parse(&l, xml, len));
    }
    for (size_t i = 0; i < l.count; i++) {
        size_t key = strlen(l.items[i].key);
        if (key == 0 || key > INF_OBJECT_KEY_MAX || (l.items[i].etag == NULL
            && !inf_object_is_directory(&l.items[i])))
        {
            abort();
        }
    }
    inf_object_listing_fini(&l);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_pages(inf_s3_listing_parse, (const char *) data, size);
    read_pages(inf_azure_listing_parse, (const char *) data, size);
    return 0;
}
