/* Any page of a listing of Azure: no crash, and what is read has its bounds. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/storage/azure_listing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    inf_object_listing_t l;

    inf_object_listing_init(&l);
    for (int i = 0; i < 2; i++) {
        inf_err_free(inf_azure_listing_parse(&l, (const char *) data, size));
    }
    for (size_t i = 0; i < l.count; i++) {
        size_t len = strlen(l.items[i].key);
        if (len == 0 || len > INF_OBJECT_KEY_MAX) {
            abort();
        }
    }
    inf_object_listing_fini(&l);
    return 0;
}
