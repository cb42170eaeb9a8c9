/* Any bytes as an ONNX file: what passes names no place outside of its
   directory, however the bytes are read; and what passes twice over, with a
   tensor of ours that lies elsewhere behind it, does not. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backends/common/error.c"
#include "backends/common/path.c"
#include "backends/onnxruntime/external_data.c"
#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* graph { initializer { external_data { key: "location" value: "/" } } } */
static const uint8_t outside[] =
    "\x3a\x11\x2a\x0f\x6a\x0d\x0a\x08" "location" "\x12\x01/";

static bool
passes(const uint8_t *data, size_t size)
{
    TRITONSERVER_Error *err = ort_external_data_check(data, size);
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
    static const size_t len = sizeof(outside) - 1;
    uint8_t *both = malloc(size + len);

    check(both != NULL);
    if (size > 0) {
        memcpy(both, data, size);
    }
    memcpy(both + size, outside, len);
    bool whole = passes(data, size);
    check(!whole || !passes(both, size + len));

    memcpy(both, outside, len);
    if (size > 0) {
        memcpy(both + len, data, size);
    }
    check(!passes(both, size + len));
    free(both);

    if (bk_path_is_inner((const char *) data, size)) {
        check(data[0] != '/' && memchr(data, '\0', size) == NULL);
        check(size < 3 || memcmp(data, "../", 3) != 0);
        check(memmem(data, size, "/../", 4) == NULL);
    }
    return 0;
}
