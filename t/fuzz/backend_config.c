/* Any configuration that a backend of ours is given: what is read prints and
   reads back as the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backends/common/config_json.c"
#include "backends/common/error.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bk_json_t *v;
    bk_json_t *again;

    TRITONSERVER_Error *err = bk_json_parse((const char *) data, size, &v);
    if (err != NULL) {
        TRITONSERVER_ErrorDelete(err);
        return 0;
    }

    char *text = bk_json_dump(v);
    err = text != NULL ? bk_json_parse(text, strlen(text), &again) : NULL;
    if (err != NULL || (text != NULL && json_equal(v, again) != 1)) {
        abort();
    }
    if (text != NULL) {
        bk_json_free(again);
    }
    free(text);
    bk_json_free(v);
    return 0;
}
