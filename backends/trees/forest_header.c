/* forest_header.c - see forest_header.h */

#include "forest_header.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TYPE_FLOAT          2           /* threshold_type                    */
#define TYPE_DOUBLE         3

static TRITONSERVER_Error *holds(const trees_array_t *a, uint64_t count);
static TRITONSERVER_Error *read_shape(trees_forest_t *f,
    const trees_header_t *h);
static TRITONSERVER_Error *read_class_counts(trees_forest_t *f,
    const trees_array_t *counts);
static TRITONSERVER_Error *read_base_scores(trees_forest_t *f,
    const trees_header_t *h);
static TRITONSERVER_Error *read_postprocessor(trees_forest_t *f,
    const trees_array_t *name);
static TRITONSERVER_Error *id_of(const trees_array_t *ids, uint32_t index,
    uint32_t count, int32_t *out);
static void count_columns(trees_forest_t *f, const trees_tree_t *tree);

TRITONSERVER_Error *
trees_forest_read_header(trees_forest_t *f, const trees_header_t *h)
{
    int8_t type = 0, average = 0, task = 0;
    uint64_t trees = 0;

    TRITONSERVER_Error *err = trees_get_i8(
        &h->arrays[TREES_HEADER_THRESHOLD_TYPE], 0, &type);
    if (err == NULL) {
        err = trees_get_u64(&h->arrays[TREES_HEADER_TREE_COUNT], 0, &trees);
    }
    if (err == NULL) {
        err = trees_get_i8(&h->arrays[TREES_HEADER_TASK], 0, &task);
    }
    if (err == NULL) {
        err = trees_get_i8(&h->arrays[TREES_HEADER_AVERAGE], 0, &average);
    }
    if (err == NULL) {
        err = trees_get_float(&h->arrays[TREES_HEADER_SIGMOID_ALPHA], 0,
            &f->sigmoid_alpha);
    }
    if (err == NULL) {
        err = trees_get_float(&h->arrays[TREES_HEADER_RATIO_C], 0,
            &f->ratio_c);
    }
    if (err != NULL) {
        return err;
    }

    if ((type != TYPE_FLOAT && type != TYPE_DOUBLE)
        || task < TREES_BINARY || task > TREES_ISOLATION)
    {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "numbers of type %d for a task of type %d", type, task);
    }

    err = holds(&h->arrays[TREES_HEADER_TARGET_IDS], trees);
    if (err != NULL) {
        return err;
    }

    f->doubles = type == TYPE_DOUBLE;
    f->task = (trees_task_t) task;
    f->tree_count = (uint32_t) trees;
    f->trees = calloc(trees + 1, sizeof(*f->trees));
    if (f->trees == NULL) {
        return bk_err_nomem("trees");
    }

    err = read_shape(f, h);
    if (err == NULL) {
        err = read_base_scores(f, h);
    }
    if (err == NULL) {
        err = read_postprocessor(f, &h->arrays[TREES_HEADER_POSTPROCESSOR]);
    }
    if (err == NULL && average != 0) {
        f->averages = calloc(f->columns, sizeof(*f->averages));
        err = f->averages == NULL ? bk_err_nomem("averages") : NULL;
    }
    return err;
}

/* -1 stands for all targets, or all classes */
TRITONSERVER_Error *
trees_forest_read_columns(trees_forest_t *f, uint32_t index,
    const trees_header_t *h, trees_tree_t *tree)
{
    const trees_array_t *leaf_shape = &h->arrays[TREES_HEADER_LEAF_SHAPE];
    int32_t target, class_id, a, b;

    TRITONSERVER_Error *err = id_of(&h->arrays[TREES_HEADER_TARGET_IDS],
        index, f->targets, &target);
    if (err == NULL) {
        err = id_of(&h->arrays[TREES_HEADER_CLASS_IDS], index, f->classes,
            &class_id);
    }
    if (err == NULL) {
        err = trees_get_i32(leaf_shape, 0, &a);
    }
    if (err == NULL) {
        err = trees_get_i32(leaf_shape, 1, &b);
    }
    if (err != NULL) {
        return err;
    }

    uint32_t rows = target == -1 ? f->targets : 1;
    uint32_t cols = class_id == -1 ? f->classes : 1;
    if ((uint32_t) a != rows || (uint32_t) b != cols) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "leaves have %"
            PRId32 "x%" PRId32 " values for %" PRIu32 "x%" PRIu32
            " targets and classes", a, b, rows, cols);
    }

    tree->column = (target == -1 ? 0 : (uint32_t) target * f->classes)
        + (class_id == -1 ? 0 : (uint32_t) class_id);
    tree->stride = class_id == -1 ? 1 : f->classes;
    tree->values = rows * cols;
    count_columns(f, tree);
    return NULL;
}

/* Before memory is taken for as many. */
static TRITONSERVER_Error *
holds(const trees_array_t *a, uint64_t count)
{
    return count <= a->count && count < UINT32_MAX ? NULL
        : bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "\"%s\" has %zu"
        " elements for %" PRIu64, a->name, a->count, count);
}

static TRITONSERVER_Error *
read_shape(trees_forest_t *f, const trees_header_t *h)
{
    int32_t features = 0, targets = 0, a = 0, b = 0;

    TRITONSERVER_Error *err = trees_get_i32(
        &h->arrays[TREES_HEADER_FEATURE_COUNT], 0, &features);
    if (err == NULL) {
        err = trees_get_i32(&h->arrays[TREES_HEADER_TARGET_COUNT], 0,
            &targets);
    }
    if (err == NULL) {
        err = trees_get_i32(&h->arrays[TREES_HEADER_LEAF_SHAPE], 0, &a);
    }
    if (err == NULL) {
        err = trees_get_i32(&h->arrays[TREES_HEADER_LEAF_SHAPE], 1, &b);
    }
    if (err != NULL) {
        return err;
    }

    if (features < 1 || (uint32_t) features > TREES_FEATURE || targets < 1
        || targets > TREES_COLUMNS_MAX || a < 1 || b < 1
        || (int64_t) a * b > TREES_COLUMNS_MAX)
    {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "%" PRId32
            " features, %" PRId32 " targets, leaves of %" PRId32 "x%" PRId32
            " values", features, targets, a, b);
    }

    f->features = (uint32_t) features;
    f->targets = (uint32_t) targets;
    f->leaf_values = (uint32_t) (a * b);
    return read_class_counts(f, &h->arrays[TREES_HEADER_CLASS_COUNTS]);
}

/* Of each target; and the columns, which follow from them. */
static TRITONSERVER_Error *
read_class_counts(trees_forest_t *f, const trees_array_t *counts)
{
    TRITONSERVER_Error *err = holds(counts, f->targets);
    if (err != NULL) {
        return err;
    }

    f->class_counts = calloc(f->targets, sizeof(*f->class_counts));
    if (f->class_counts == NULL) {
        return bk_err_nomem("classes");
    }

    for (uint32_t i = 0; i < f->targets; i++) {
        int32_t classes = 0;

        err = trees_get_i32(counts, i, &classes);
        if (err == NULL && (classes < 1
            || (int64_t) classes * f->targets > TREES_COLUMNS_MAX))
        {
            err = bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "target %" PRIu32
                " of %" PRIu32 " has %" PRId32 " classes", i, f->targets,
                classes);
        }
        if (err != NULL) {
            return err;
        }

        f->class_counts[i] = (uint32_t) classes;
        f->classes = f->classes < (uint32_t) classes ? (uint32_t) classes
            : f->classes;
    }

    f->columns = f->targets * f->classes;
    return NULL;
}

static TRITONSERVER_Error *
read_base_scores(trees_forest_t *f, const trees_header_t *h)
{
    TRITONSERVER_Error *short_of = holds(&h->arrays[TREES_HEADER_BASE_SCORES],
        f->columns);
    if (short_of != NULL) {
        return short_of;
    }

    f->base_scores = calloc(f->columns, sizeof(*f->base_scores));
    if (f->base_scores == NULL) {
        return bk_err_nomem("base scores");
    }

    for (uint32_t i = 0; i < f->columns; i++) {
        TRITONSERVER_Error *err = trees_get_number(
            &h->arrays[TREES_HEADER_BASE_SCORES], i, &f->base_scores[i]);
        if (err != NULL) {
            return err;
        }
    }

    return NULL;
}

static TRITONSERVER_Error *
read_postprocessor(trees_forest_t *f, const trees_array_t *name)
{
    static const struct {
        const char           *name;
        trees_postprocessor_t value;
    } known[] = {
        { "identity", TREES_IDENTITY },
        { "identity_multiclass", TREES_IDENTITY },
        { "signed_square", TREES_SIGNED_SQUARE },
        { "hinge", TREES_HINGE },
        { "sigmoid", TREES_SIGMOID },
        { "exponential", TREES_EXPONENTIAL },
        { "exponential_standard_ratio", TREES_EXPONENTIAL_STANDARD_RATIO },
        { "logarithm_one_plus_exp", TREES_LOGARITHM_ONE_PLUS_EXP },
        { "softmax", TREES_SOFTMAX },
        { "multiclass_ova", TREES_MULTICLASS_OVA }
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (name->size == 1 && strlen(known[i].name) == name->count
            && memcmp(known[i].name, name->data, name->count) == 0)
        {
            f->postprocessor = known[i].value;
            return NULL;
        }
    }

    return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED, "the model's outputs go"
        " through \"%.*s\", a function that this backend does not have",
        name->count > 100 ? 100 : (int) name->count,
        name->count == 0 ? "" : (const char *) name->data);
}

static TRITONSERVER_Error *
id_of(const trees_array_t *ids, uint32_t index, uint32_t count, int32_t *out)
{
    TRITONSERVER_Error *err = trees_get_i32(ids, index, out);
    if (err == NULL && (*out < -1 || *out >= (int64_t) count)) {
        err = bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "\"%s\" is %" PRId32
            " of %" PRIu32, ids->name, *out, count);
    }

    return err;
}

static void
count_columns(trees_forest_t *f, const trees_tree_t *tree)
{
    for (uint32_t i = 0; f->averages != NULL && i < tree->values; i++) {
        f->averages[tree->column + i * tree->stride] += 1;
    }
}
