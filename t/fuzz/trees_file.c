/* Any bytes as a model's file.  A treelite checkpoint that passes is as long as
   it says: no part of it passes, and bytes behind it change nothing.  A binary
   file of XGBoost and UBJSON that pass still do with bytes behind them, JSON
   without its end. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backends/common/error.c"
#include "backends/trees/checkpoint.c"
#include "backends/trees/lightgbm.c"
#include "backends/trees/xgboost_binary.c"
#include "backends/trees/xgboost_json.c"
#undef DEPTH_MOST
#include "backends/trees/xgboost_ubj.c"
#include "check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef TRITONSERVER_Error *(*check_t)(const void *data, size_t size);

static bool
passes(check_t check_file, const uint8_t *data, size_t size)
{
    TRITONSERVER_Error *err = check_file(data, size);
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
    if (passes(trees_checkpoint_check, data, size)) {
        check(passes(trees_checkpoint_check, more, size + 3));
    } else if (size > 0) {
        check(!passes(trees_checkpoint_check, data, size - 1));
    }
    if (passes(trees_xgboost_binary_check, data, size)) {
        check(passes(trees_xgboost_binary_check, more, size + 3));
    }
    if (passes(trees_xgboost_ubj_check, data, size)) {
        check(passes(trees_xgboost_ubj_check, more, size + 3));
    }
    (void) passes(trees_lightgbm_check, data, size);
    if (size > 0 && passes(trees_xgboost_json_check, data, size)) {
        check(passes(trees_xgboost_json_check, data, size - 1));
    }
    free(more);
    return 0;
}
