/* Any bytes as a treelite checkpoint: what passes is as long as it says, so
   that no part of it passes, and bytes behind it change nothing. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backends/common/error.c"
#include "backends/trees/checkpoint.c"
#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool
passes(const uint8_t *data, size_t size)
{
    TRITONSERVER_Error *err = trees_checkpoint_check(data, size);
    if (err == NULL) {
        return true;
    }

    check(TRITONSERVER_ErrorMessage(err)[0] != '\0');
    TRITONSERVER_ErrorDelete(err);
    return false;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *more = malloc(size + 3);

    check(more != NULL);
    if (size > 0) {
        memcpy(more, data, size);
    }
    memcpy(more + size, "\1\0\1", 3);
    if (passes(data, size)) {
        check(passes(more, size + 3));
    }
    if (size > 0 && !passes(data, size)) {
        check(!passes(data, size - 1));
    }
    free(more);
    return 0;
}
