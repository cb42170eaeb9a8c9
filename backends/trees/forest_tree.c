/* forest_tree.c - see forest_tree.h */

#include "forest_tree.h"

#include "test.h"

#include <inttypes.h>
#include <stdlib.h>

#define NODE_CATEGORICAL    2           /* node_type                         */
#define CATEGORY_MAX        (1u << 24)  /* no FP32 number is a later one     */

/* One tree while it is copied. */
typedef struct {
    trees_forest_t            *forest;
    const trees_source_tree_t *source;
    trees_tree_t              *tree;
    int32_t                   *order;   /* nodes of the source, as they are
                                         * laid behind the root              */
    uint32_t                   reached; /* so many of them                   */
    uint32_t                   count;   /* nodes in the source               */
    uint8_t                   *seen;    /* a byte for each of them           */
} copying_t;

static TRITONSERVER_Error *copy_nodes(copying_t *c);
static TRITONSERVER_Error *copy_node(copying_t *c, uint32_t at);
static TRITONSERVER_Error *copy_leaf(copying_t *c, int32_t id,
    trees_node_t *node);
static TRITONSERVER_Error *leaf_range(const copying_t *c, int32_t id,
    const trees_array_t **from, uint64_t *begin);
static TRITONSERVER_Error *copy_test(copying_t *c, int32_t id,
    trees_node_t *node, bool *exchanged);
static TRITONSERVER_Error *copy_categories(copying_t *c, int32_t id,
    trees_node_t *node, bool *exchanged);
static int compare_categories(const void *a, const void *b);
static TRITONSERVER_Error *reach(copying_t *c, int32_t to);
static TRITONSERVER_Error *grow(void **array, uint32_t *cap, uint64_t wanted,
    size_t size, const char *what);

TRITONSERVER_Error *
trees_forest_copy_tree(trees_forest_t *f, trees_tree_t *tree,
    const trees_source_tree_t *source)
{
    const trees_array_t *left = &source->arrays[TREES_TREE_LEFT];
    copying_t c = { .forest = f, .source = source, .tree = tree };
    int32_t count = 0;

    TRITONSERVER_Error *err = trees_get_i32(
        &source->arrays[TREES_TREE_NODE_COUNT], 0, &count);
    if (err == NULL && (count < 1 || (size_t) count > left->count)) {
        err = bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "%" PRId32 " nodes,"
            " and children of %zu", count, left->count);
    }
    if (err != NULL) {
        return err;
    }

    c.count = (uint32_t) count;
    c.order = calloc(c.count, sizeof(*c.order));
    c.seen = calloc(c.count, 1);
    err = c.order == NULL || c.seen == NULL ? bk_err_nomem("a tree")
        : copy_nodes(&c);

    free(c.order);
    free(c.seen);
    return err;
}

/* Breadth first: the order in which nodes are reached is the one in which
 * they lie, so that the children of a node are neighbours. */
static TRITONSERVER_Error *
copy_nodes(copying_t *c)
{
    trees_forest_t *f = c->forest;
    uint32_t level_end = 1;

    c->tree->root = f->node_count;
    c->reached = 1;
    c->seen[0] = 1;

    for (uint32_t at = 0; at < c->reached; at++) {
        if (at == level_end) {
            level_end = c->reached;
            c->tree->depth++;
        }
        TRITONSERVER_Error *err = copy_node(c, at);
        if (err != NULL) {
            return bk_err_add(err, "node %" PRId32, c->order[at]);
        }
    }

    return NULL;
}

static TRITONSERVER_Error *
copy_node(copying_t *c, uint32_t at)
{
    trees_forest_t *f = c->forest;
    const trees_array_t *arrays = c->source->arrays;
    trees_node_t node = { 0 };
    int32_t left = 0, right = 0;
    int32_t id = c->order[at];
    bool exchanged = false;

    TRITONSERVER_Error *err = trees_get_i32(&arrays[TREES_TREE_LEFT],
        (uint64_t) id, &left);
    if (err == NULL && left == -1) {
        node.child = f->node_count - 1; /* the next after it is the leaf     */
        err = copy_leaf(c, id, &node);

    } else if (err == NULL) {
        node.child = c->tree->root + c->reached;
        err = trees_get_i32(&arrays[TREES_TREE_RIGHT], (uint64_t) id, &right);
        if (err == NULL) {
            err = copy_test(c, id, &node, &exchanged);
        }
        if (err == NULL) {
            err = reach(c, exchanged ? right : left);
        }
        if (err == NULL) {
            err = reach(c, exchanged ? left : right);
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
copy_leaf(copying_t *c, int32_t id, trees_node_t *node)
{
    trees_forest_t *f = c->forest;
    size_t size = f->doubles ? sizeof(double) : sizeof(float);
    const trees_array_t *from = NULL;
    uint64_t begin = 0;

    TRITONSERVER_Error *err = leaf_range(c, id, &from, &begin);
    if (err == NULL) {
        err = grow(&f->leaves, &f->leaf_cap,
            (uint64_t) f->leaf_count + c->tree->values, size,
            "values of leaves");
    }

    node->threshold = -TREES_INFINITY;  /* nothing goes left                 */
    node->value = f->leaf_count;
    for (uint32_t i = 0; err == NULL && i < c->tree->values; i++) {
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
leaf_range(const copying_t *c, int32_t id, const trees_array_t **from,
    uint64_t *begin)
{
    const trees_array_t *arrays = c->source->arrays;
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
    if (end < *begin || values != c->tree->values) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "a leaf of %" PRIu64
            " values, which must have %" PRIu32, values, c->tree->values);
    }

    *from = &arrays[TREES_TREE_VECTOR];
    if (end == *begin) {
        *from = &arrays[TREES_TREE_LEAF];
        *begin = (uint64_t) id;
    }
    return (*from)->size == (c->forest->doubles ? sizeof(double)
        : sizeof(float)) ? NULL : bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
        "\"%s\" has elements of %zu bytes", (*from)->name, (*from)->size);
}

static TRITONSERVER_Error *
copy_test(copying_t *c, int32_t id, trees_node_t *node, bool *exchanged)
{
    const trees_array_t *arrays = c->source->arrays;
    int8_t type = 0, op = 0, default_left = 0;
    int32_t feature = 0;
    double threshold = 0;

    TRITONSERVER_Error *err = trees_get_i32(&arrays[TREES_TREE_FEATURE],
        (uint64_t) id, &feature);
    if (err == NULL && (feature < 0
        || (uint32_t) feature >= c->forest->features))
    {
        err = bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "a test of feature %"
            PRId32 ", the model has %" PRIu32, feature, c->forest->features);
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
        err = copy_categories(c, id, node, exchanged);
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

    c->tree->special = c->tree->special
        || (node->feature & TREES_SPECIAL) != 0;
    if ((default_left != 0) != *exchanged) {
        node->feature |= TREES_DEFAULT_LEFT;
    }
    return err;
}

static TRITONSERVER_Error *
copy_categories(copying_t *c, int32_t id, trees_node_t *node,
    bool *exchanged)
{
    const trees_array_t *arrays = c->source->arrays;
    const trees_array_t *all = &arrays[TREES_TREE_CATEGORIES];
    trees_forest_t *f = c->forest;
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
reach(copying_t *c, int32_t to)
{
    if (to < 0 || (uint32_t) to >= c->count) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "its child %" PRId32
            " is none of the %" PRIu32 " nodes", to, c->count);
    }
    if (c->seen[to] != 0) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "its child %" PRId32
            " is reached by two ways", to);
    }

    c->seen[to] = 1;
    c->order[c->reached++] = to;
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
