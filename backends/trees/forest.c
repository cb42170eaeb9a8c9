/* forest.c - see forest.h */

#include "forest.h"

#include "test.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TYPE_FLOAT          2           /* threshold_type                    */
#define TYPE_DOUBLE         3
#define NODE_CATEGORICAL    2           /* node_type                         */
#define CATEGORY_MAX        (1u << 24)  /* no FP32 number is a later one     */

/* One tree while it is added. */
typedef struct {
    trees_forest_t            *forest;
    const trees_source_tree_t *source;
    trees_tree_t              *tree;
    int32_t                   *order;   /* nodes of the source, as they are
                                         * laid behind the root              */
    uint32_t                   reached; /* so many of them                   */
    uint32_t                   count;   /* nodes in the source               */
    uint8_t                   *seen;    /* a byte for each of them           */
} planting_t;

static TRITONSERVER_Error *read_header(trees_forest_t *f,
    const trees_header_t *h);
static TRITONSERVER_Error *has(const trees_array_t *a, uint64_t count);
static TRITONSERVER_Error *read_shape(trees_forest_t *f,
    const trees_header_t *h);
static TRITONSERVER_Error *read_class_counts(trees_forest_t *f,
    const trees_array_t *counts);
static TRITONSERVER_Error *read_base_scores(trees_forest_t *f,
    const trees_header_t *h);
static TRITONSERVER_Error *read_postprocessor(trees_forest_t *f,
    const trees_array_t *name);
static TRITONSERVER_Error *read_place(trees_forest_t *f, uint32_t index,
    const trees_header_t *h, trees_tree_t *tree);
static TRITONSERVER_Error *id_of(const trees_array_t *ids, uint32_t index,
    uint32_t count, int32_t *out);
static void count_columns(trees_forest_t *f, const trees_tree_t *tree);
static TRITONSERVER_Error *plant(planting_t *p);
static TRITONSERVER_Error *plant_node(planting_t *p, uint32_t at);
static TRITONSERVER_Error *plant_leaf(planting_t *p, int32_t id,
    trees_node_t *node);
static TRITONSERVER_Error *leaf_range(const planting_t *p, int32_t id,
    const trees_array_t **from, uint64_t *begin);
static TRITONSERVER_Error *plant_test(planting_t *p, int32_t id,
    trees_node_t *node, bool *exchanged);
static TRITONSERVER_Error *plant_categories(planting_t *p, int32_t id,
    trees_node_t *node, bool *exchanged);
static int compare_categories(const void *a, const void *b);
static TRITONSERVER_Error *reach(planting_t *p, int32_t to);
static TRITONSERVER_Error *grow(void **array, uint32_t *cap, uint64_t wanted,
    size_t size, const char *what);

TRITONSERVER_Error *
trees_forest_new(trees_forest_t **out, const trees_header_t *header)
{
    trees_forest_t *f = calloc(1, sizeof(*f));
    if (f == NULL) {
        return bk_err_nomem("a forest");
    }

    TRITONSERVER_Error *err = read_header(f, header);
    if (err != NULL) {
        trees_forest_free(f);
        return err;
    }

    *out = f;
    return NULL;
}

TRITONSERVER_Error *
trees_forest_add(trees_forest_t *f, uint32_t index,
    const trees_header_t *header, const trees_source_tree_t *source)
{
    planting_t p = { .forest = f, .source = source };
    int32_t count = 0;

    p.tree = &f->trees[index];
    TRITONSERVER_Error *err = read_place(f, index, header, p.tree);
    if (err == NULL) {
        err = trees_get_i32(&source->arrays[TREES_TREE_NODE_COUNT], 0,
            &count);
    }
    if (err == NULL && (count < 1
        || (size_t) count > source->arrays[TREES_TREE_LEFT].count))
    {
        err = bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "%" PRId32 " nodes,"
            " and children of %zu", count,
            source->arrays[TREES_TREE_LEFT].count);
    }
    if (err == NULL) {
        p.count = (uint32_t) count;
        p.order = calloc(p.count, sizeof(*p.order));
        p.seen = calloc(p.count, 1);
        err = p.order == NULL || p.seen == NULL ? bk_err_nomem("a tree")
            : plant(&p);
    }

    free(p.order);
    free(p.seen);
    return err == NULL ? NULL : bk_err_add(err, "tree %" PRIu32, index);
}

void
trees_forest_finish(trees_forest_t *f)
{
    size_t size = f->doubles ? sizeof(double) : sizeof(float);
    uint32_t cap = f->node_cap;

    /* smaller never fails in a way that matters: the array stays as it is */
    if (f->node_count != 0 && f->node_count < cap) {
        void *nodes = realloc(f->nodes, f->node_count * sizeof(*f->nodes));
        f->nodes = nodes != NULL ? nodes : f->nodes;
        void *ids = realloc(f->ids, f->node_count * sizeof(*f->ids));
        f->ids = ids != NULL ? ids : f->ids;
    }
    if (f->leaf_count != 0 && f->leaf_count < f->leaf_cap) {
        void *leaves = realloc(f->leaves, f->leaf_count * size);
        f->leaves = leaves != NULL ? leaves : f->leaves;
    }
}

void
trees_forest_free(trees_forest_t *f)
{
    if (f == NULL) {
        return;
    }

    free(f->nodes);
    free(f->ids);
    free(f->trees);
    free(f->leaves);
    free(f->lists);
    free(f->categories);
    free(f->class_counts);
    free(f->base_scores);
    free(f->averages);
    free(f);
}

static TRITONSERVER_Error *
read_header(trees_forest_t *f, const trees_header_t *h)
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

    err = has(&h->arrays[TREES_HEADER_TARGET_IDS], trees);
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

/* Before memory is taken for as many. */
static TRITONSERVER_Error *
has(const trees_array_t *a, uint64_t count)
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
    TRITONSERVER_Error *err = has(counts, f->targets);
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
    TRITONSERVER_Error *short_of = has(&h->arrays[TREES_HEADER_BASE_SCORES],
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

/* The columns that the tree's leaves have values for; -1 stands for all. */
static TRITONSERVER_Error *
read_place(trees_forest_t *f, uint32_t index, const trees_header_t *h,
    trees_tree_t *tree)
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

/* Breadth first: the order in which nodes are reached is the one in which
 * they lie, so that the children of a node are neighbours. */
static TRITONSERVER_Error *
plant(planting_t *p)
{
    trees_forest_t *f = p->forest;
    uint32_t level_end = 1;

    p->tree->root = f->node_count;
    p->reached = 1;
    p->seen[0] = 1;

    for (uint32_t at = 0; at < p->reached; at++) {
        if (at == level_end) {
            level_end = p->reached;
            p->tree->depth++;
        }
        TRITONSERVER_Error *err = plant_node(p, at);
        if (err != NULL) {
            return bk_err_add(err, "node %" PRId32, p->order[at]);
        }
    }

    return NULL;
}

static TRITONSERVER_Error *
plant_node(planting_t *p, uint32_t at)
{
    trees_forest_t *f = p->forest;
    const trees_array_t *arrays = p->source->arrays;
    trees_node_t node = { 0 };
    int32_t left = 0, right = 0;
    int32_t id = p->order[at];
    bool exchanged = false;

    TRITONSERVER_Error *err = trees_get_i32(&arrays[TREES_TREE_LEFT],
        (uint64_t) id, &left);
    if (err == NULL && left == -1) {
        node.child = f->node_count - 1; /* the next after it is the leaf     */
        err = plant_leaf(p, id, &node);

    } else if (err == NULL) {
        node.child = p->tree->root + p->reached;
        err = trees_get_i32(&arrays[TREES_TREE_RIGHT], (uint64_t) id, &right);
        if (err == NULL) {
            err = plant_test(p, id, &node, &exchanged);
        }
        if (err == NULL) {
            err = reach(p, exchanged ? right : left);
        }
        if (err == NULL) {
            err = reach(p, exchanged ? left : right);
        }
    }

    uint32_t cap = f->node_cap;
    if (err == NULL) {
        err = grow((void **) &f->nodes, &cap, (uint64_t) f->node_count + 1,
            sizeof(*f->nodes), "nodes");
    }
    if (err == NULL) {
        err = grow((void **) &f->ids, &f->node_cap,
            (uint64_t) f->node_count + 1, sizeof(*f->ids), "nodes");
    }
    if (err != NULL) {
        return err;
    }

    f->nodes[f->node_count] = node;
    f->ids[f->node_count++] = id;
    return NULL;
}

static TRITONSERVER_Error *
plant_leaf(planting_t *p, int32_t id, trees_node_t *node)
{
    trees_forest_t *f = p->forest;
    size_t size = f->doubles ? sizeof(double) : sizeof(float);
    const trees_array_t *from = NULL;
    uint64_t begin = 0;

    TRITONSERVER_Error *err = leaf_range(p, id, &from, &begin);
    if (err == NULL) {
        err = grow(&f->leaves, &f->leaf_cap,
            (uint64_t) f->leaf_count + p->tree->values, size,
            "values of leaves");
    }

    node->threshold = -TREES_INFINITY;  /* nothing goes left                 */
    node->value = f->leaf_count;
    for (uint32_t i = 0; err == NULL && i < p->tree->values; i++) {
        double value = 0;

        err = trees_get_number(from, begin + i, &value);
        if (f->doubles) {
            ((double *) f->leaves)[f->leaf_count++] = value;
        } else {
            ((float *) f->leaves)[f->leaf_count++] = (float) value;
        }
    }

    return err;
}

/* A leaf has a vector, or one number of its own. */
static TRITONSERVER_Error *
leaf_range(const planting_t *p, int32_t id, const trees_array_t **from,
    uint64_t *begin)
{
    const trees_array_t *arrays = p->source->arrays;
    uint64_t end = 0;

    TRITONSERVER_Error *err = trees_get_u64(&arrays[TREES_TREE_VECTOR_BEGIN],
        (uint64_t) id, begin);
    if (err == NULL) {
        err = trees_get_u64(&arrays[TREES_TREE_VECTOR_END], (uint64_t) id,
            &end);
    }
    if (err != NULL) {
        return err;
    }

    uint64_t values = end == *begin ? 1 : end - *begin;
    if (end < *begin || values != p->tree->values) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "a leaf of %" PRIu64
            " values, which must have %" PRIu32, values, p->tree->values);
    }

    *from = &arrays[TREES_TREE_VECTOR];
    if (end == *begin) {
        *from = &arrays[TREES_TREE_LEAF];
        *begin = (uint64_t) id;
    }
    return (*from)->size == (p->forest->doubles ? sizeof(double)
        : sizeof(float)) ? NULL : bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
        "\"%s\" has elements of %zu bytes", (*from)->name, (*from)->size);
}

static TRITONSERVER_Error *
plant_test(planting_t *p, int32_t id, trees_node_t *node, bool *exchanged)
{
    const trees_array_t *arrays = p->source->arrays;
    int8_t type = 0, op = 0, default_left = 0;
    int32_t feature = 0;
    double threshold = 0;

    TRITONSERVER_Error *err = trees_get_i32(&arrays[TREES_TREE_FEATURE],
        (uint64_t) id, &feature);
    if (err == NULL && (feature < 0
        || (uint32_t) feature >= p->forest->features))
    {
        err = bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "a test of feature %"
            PRId32 ", the model has %" PRIu32, feature, p->forest->features);
    }
    if (err == NULL) {
        err = trees_get_i8(&arrays[TREES_TREE_NODE_TYPE], (uint64_t) id,
            &type);
    }
    if (err == NULL) {
        err = trees_get_i8(&arrays[TREES_TREE_DEFAULT_LEFT], (uint64_t) id,
            &default_left);
    }
    if (err != NULL) {
        return err;
    }

    node->feature = (uint32_t) feature;
    if (type == NODE_CATEGORICAL) {
        err = plant_categories(p, id, node, exchanged);
    } else {
        err = trees_get_i8(&arrays[TREES_TREE_OPERATOR], (uint64_t) id, &op);
        if (err == NULL) {
            err = trees_get_number(&arrays[TREES_TREE_THRESHOLD],
                (uint64_t) id, &threshold);
        }
        if (err == NULL) {
            err = trees_test_of(op, threshold, node, exchanged);
        }
    }

    p->tree->special = p->tree->special
        || (node->feature & TREES_SPECIAL) != 0;
    if ((default_left != 0) != *exchanged) {
        node->feature |= TREES_DEFAULT_LEFT;
    }
    return err;
}

static TRITONSERVER_Error *
plant_categories(planting_t *p, int32_t id, trees_node_t *node,
    bool *exchanged)
{
    const trees_array_t *arrays = p->source->arrays;
    const trees_array_t *all = &arrays[TREES_TREE_CATEGORIES];
    trees_forest_t *f = p->forest;
    uint64_t begin = 0, end = 0;
    int8_t right = 0;

    TRITONSERVER_Error *err = trees_get_u64(
        &arrays[TREES_TREE_CATEGORIES_BEGIN], (uint64_t) id, &begin);
    if (err == NULL) {
        err = trees_get_u64(&arrays[TREES_TREE_CATEGORIES_END],
            (uint64_t) id, &end);
    }
    if (err == NULL) {
        err = trees_get_i8(&arrays[TREES_TREE_CATEGORIES_RIGHT],
            (uint64_t) id, &right);
    }
    if (err == NULL && (begin > end || end > all->count)) {
        err = bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "categories %" PRIu64
            " to %" PRIu64 " of %zu", begin, end, all->count);
    }
    if (err == NULL) {
        err = grow((void **) &f->categories, &f->category_cap,
            (uint64_t) f->category_count + (end - begin),
            sizeof(*f->categories), "categories");
    }
    if (err == NULL) {
        err = grow((void **) &f->lists, &f->list_cap,
            (uint64_t) f->list_count + 1, sizeof(*f->lists), "categories");
    }
    if (err != NULL) {
        return err;
    }

    trees_list_t *list = &f->lists[f->list_count];
    list->begin = f->category_count;
    list->count = 0;
    for (uint64_t i = begin; i < end; i++) {
        uint32_t category = 0;

        err = trees_get_u32(all, i, &category);
        if (err != NULL) {
            return err;
        }
        if (category <= CATEGORY_MAX) {
            f->categories[f->category_count++] = category;
            list->count++;
        }
    }
    if (list->count > 1) {
        qsort(&f->categories[list->begin], list->count,
            sizeof(*f->categories), compare_categories);
    }

    node->value = f->list_count++;
    node->feature |= TREES_SPECIAL;
    *exchanged = right != 0;
    return NULL;
}

static int
compare_categories(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *) a, y = *(const uint32_t *) b;

    return x < y ? -1 : x > y;
}

static TRITONSERVER_Error *
reach(planting_t *p, int32_t to)
{
    if (to < 0 || (uint32_t) to >= p->count) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "its child %" PRId32
            " is none of the %" PRIu32 " nodes", to, p->count);
    }
    if (p->seen[to] != 0) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "its child %" PRId32
            " is reached by two ways", to);
    }

    p->seen[to] = 1;
    p->order[p->reached++] = to;
    return NULL;
}

static TRITONSERVER_Error *
grow(void **array, uint32_t *cap, uint64_t wanted, size_t size,
    const char *what)
{
    if (wanted <= *cap && *array != NULL) {
        return NULL;
    }

    /* an index with all bits set has a meaning of its own */
    if (wanted >= UINT32_MAX) {
        return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
            "the model has more than %" PRIu32 " %s", UINT32_MAX - 1, what);
    }

    uint64_t more = wanted + wanted / 2 + 64;
    more = more >= UINT32_MAX ? UINT32_MAX - 1 : more;
    void *bigger = realloc(*array, more * size);
    if (bigger == NULL) {
        return bk_err_nomem(what);
    }

    *array = bigger;
    *cap = (uint32_t) more;
    return NULL;
}
