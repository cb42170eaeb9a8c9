/* Any bytes as a BYTES tensor of any number of elements: what is read lies in
   them, one element behind the other, and reads back as the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backends/common/bytes.c"
#include "backends/common/error.c"
#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint64_t elements = size > 0 ? data[0] : 0;
    const uint8_t *bytes = size > 0 ? data + 1 : data;
    const size_t len_bytes = size > 0 ? size - 1 : 0;
    uint8_t *again = malloc(size + 1);
    size_t used = 0;
    bk_bytes_t b;

    check(again != NULL);
    TRITONSERVER_Error *err = bk_bytes_open(&b, "input", "X", bytes,
        len_bytes, elements);
    for (uint64_t i = 0; err == NULL && i < elements; i++) {
        const char *text;
        uint32_t len;

        err = bk_bytes_next(&b, &text, &len);
        if (err == NULL) {
            check(used + BK_BYTES_PREFIX + len <= len_bytes);
            bk_bytes_put_len(again + used, len);
            memcpy(again + used + BK_BYTES_PREFIX, text, len);
            used += BK_BYTES_PREFIX + len;
        }
    }

    if (err == NULL) {
        check(used == len_bytes && memcmp(again, bytes, used) == 0);
    } else {
        check(TRITONSERVER_ErrorMessage(err)[0] != '\0');
        TRITONSERVER_ErrorDelete(err);
    }

    free(again);
    return 0;
}
