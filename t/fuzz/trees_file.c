/* Any bytes as a model's file.  A treelite checkpoint that passes is as long as
   it says: no part of it passes, and bytes behind it change nothing.  A binary
   file of XGBoost and UBJSON that pass still do with bytes behind them, JSON
   without its end; treelite's way through the trees of JSON that passes stays
   in their arrays. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backends/common/config_json.c"
#include "backends/common/error.c"
#include "backends/trees/checkpoint.c"
#include "backends/trees/lightgbm.c"
#include "backends/trees/xgboost_document.c"
#include "backends/trees/xgboost_binary.c"
#include "backends/trees/xgboost_json.c"
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

static int64_t
number_in(const bk_json_t *tree, const char *field, size_t at)
{
    const bk_json_t *array = bk_json_member(tree, field);

    check(at < bk_json_count(array));
    return bk_json_int(bk_json_at(array, at), 0);
}

static void
walk_categories(const bk_json_t *tree, int64_t node)
{
    const bk_json_t *nodes = bk_json_member(tree, "categories_nodes");
    size_t at = 0;

    while (at < bk_json_count(nodes)
        && bk_json_int(bk_json_at(nodes, at), 0) < node)
    {
        at++;
    }
    if (at == bk_json_count(nodes)) {
        return;
    }

    int64_t begin = number_in(tree, "categories_segments", at);
    int64_t count = number_in(tree, "categories_sizes", at);
    for (int64_t i = begin; i < begin + count; i++) {
        (void) number_in(tree, "categories", (size_t) i);
    }
}

static void
walk_tree(const bk_json_t *tree)
{
    const bk_json_t *param = bk_json_member(tree, "tree_param");
    const char *text = bk_json_string(bk_json_member(param, "num_nodes"), "");
    int64_t nodes = strtoll(text, NULL, 10);

    text = bk_json_string(bk_json_member(param, "size_leaf_vector"), "");
    int64_t values = strtoll(text, NULL, 10);
    for (int64_t i = 0; i < nodes; i++) {
        int64_t right = number_in(tree, "right_children", (size_t) i);

        if (number_in(tree, "left_children", (size_t) i) != -1) {
            walk_categories(tree, i);
        } else if (values > 1) {
            check(right >= 0 && (uint64_t) ((right + 1) * values)
                <= bk_json_count(bk_json_member(tree, "leaf_weights")));
        }
        if (bk_json_count(bk_json_member(tree, "loss_changes")) != 0) {
            (void) number_in(tree, "loss_changes", (size_t) i);
        }
        if (bk_json_count(bk_json_member(tree, "sum_hessian")) != 0) {
            (void) number_in(tree, "sum_hessian", (size_t) i);
        }
    }
}

/* Where it is read as JSON, fields that are there twice are the last one. */
static void
walk_json(const uint8_t *data, size_t size)
{
    bk_json_t *root = NULL;

    TRITONSERVER_Error *err = bk_json_parse((const char *) data, size, &root);
    if (err != NULL) {
        TRITONSERVER_ErrorDelete(err);
        return;
    }

    const bk_json_t *trees = bk_json_member(bk_json_member(bk_json_member(
        bk_json_member(root, "learner"), "gradient_booster"), "model"),
        "trees");
    for (size_t i = 0; i < bk_json_count(trees); i++) {
        walk_tree(bk_json_at(trees, i));
    }
    bk_json_free(root);
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
        walk_json(data, size);
    }
    free(more);
    return 0;
}
