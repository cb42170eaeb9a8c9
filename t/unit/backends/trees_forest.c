/* forests of random trees against a walker that takes one step after the
   other, as a model's source says it; and sources that are wrong */

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/common/error.c"
#include "backends/trees/forest.c"
#include "backends/trees/forest_header.c"
#include "backends/trees/forest_tree.c"
#include "backends/trees/postprocess.c"
#include "backends/trees/source.c"
#include "backends/trees/test.c"
#include "backends/trees/walk.c"

#define NODES    600
#define TREES    12
#define FEATURES 5
#define CLASSES  3
#define ROWS     150

/* A tree as treelite has it, one of doubles. */
typedef struct {
    int32_t  count;
    int8_t   type[NODES];
    int32_t  left[NODES];
    int32_t  right[NODES];
    int32_t  feature[NODES];
    int8_t   default_left[NODES];
    double   leaf[NODES];
    double   threshold[NODES];
    int8_t   op[NODES];
    int8_t   list_right[NODES];
    double   vector[NODES * CLASSES];
    uint64_t vector_begin[NODES];
    uint64_t vector_end[NODES];
    uint32_t categories[NODES * 4];
    uint64_t begin[NODES];
    uint64_t end[NODES];
} tree_t;

typedef struct {
    int8_t   type;
    uint64_t trees;
    int32_t  features;
    int8_t   task;
    int8_t   average;
    int32_t  targets;
    int32_t  classes[1];
    int32_t  shape[2];
    int32_t  target_ids[TREES];
    int32_t  class_ids[TREES];
    float    alpha;
    float    ratio;
    double   base[CLASSES];
    trees_header_t header;
    tree_t   tree[TREES];
} model_t;

static uint32_t
random_below(uint32_t n)
{
    return (uint32_t) rand() % n;
}

/* Among few values, so that features meet thresholds exactly. */
static double
random_number(void)
{
    static const double special[] = {
        0, -0.0, 1.5, 1e-45, 3.5e38, -3.5e38, INFINITY, -INFINITY, 0.1, 7
    };

    return random_below(3) == 0 ? special[random_below(10)]
        : random_below(2) == 0 ? random_below(20) : random_below(1000) / 97.0;
}

static void
grow_tree(tree_t *t, bool vector, uint32_t depth, int32_t id)
{
    t->vector_begin[id] = t->vector_end[id] = 0;
    t->begin[id] = t->end[id] = (uint64_t) id * 4;
    if (depth == 0 || random_below(6) == 0 || t->count + 2 > NODES) {
        t->left[id] = t->right[id] = t->feature[id] = -1;
        t->leaf[id] = random_below(1000) / 8.0;
        if (vector) {
            t->vector_begin[id] = (uint64_t) id * CLASSES;
            t->vector_end[id] = t->vector_begin[id] + CLASSES;
            for (int i = 0; i < CLASSES; i++) {
                t->vector[id * CLASSES + i] = random_below(100) / 4.0;
            }
        }
        return;
    }

    bool swap = random_below(2) == 0;
    int32_t first = t->count++, second = t->count++;

    t->left[id] = swap ? second : first;
    t->right[id] = swap ? first : second;
    t->type[id] = random_below(5) == 0 ? NODE_CATEGORICAL : 1;
    t->feature[id] = (int32_t) random_below(FEATURES);
    t->default_left[id] = (int8_t) random_below(2);
    t->threshold[id] = random_below(40) == 0 ? NAN : random_number();
    t->op[id] = (int8_t) (TREES_EQ + random_below(5));
    t->list_right[id] = (int8_t) random_below(2);
    t->end[id] += random_below(5);
    for (uint64_t i = t->begin[id]; i < t->end[id]; i++) {
        t->categories[i] = random_below(30) == 0 ? UINT32_MAX
            : random_below(20);
    }
    grow_tree(t, vector, depth - 1, first);
    grow_tree(t, vector, depth - 1, second);
}

static trees_array_t
array(const char *name, const void *data, size_t count, size_t size)
{
    return (trees_array_t) {
        .name = name, .data = data, .count = count, .size = size
    };
}

static void
model_new(model_t *m, bool vector)
{
    trees_array_t *h = m->header.arrays;

    *m = (model_t) {
        .type = TYPE_DOUBLE, .trees = TREES, .features = FEATURES,
        .task = TREES_MULTICLASS, .average = (int8_t) random_below(2),
        .targets = 1, .classes = { CLASSES }, .alpha = 1, .ratio = 1,
        .shape = { 1, vector ? CLASSES : 1 }, .base = { 1, 2, 3 }
    };
    for (int i = 0; i < TREES; i++) {
        m->class_ids[i] = vector ? -1 : i % CLASSES;
        m->tree[i].count = 1;
        grow_tree(&m->tree[i], vector, random_below(10), 0);
    }

    h[TREES_HEADER_THRESHOLD_TYPE] = array("threshold_type", &m->type, 1, 1);
    h[TREES_HEADER_TREE_COUNT] = array("num_tree", &m->trees, 1, 8);
    h[TREES_HEADER_FEATURE_COUNT] = array("num_feature", &m->features, 1, 4);
    h[TREES_HEADER_TASK] = array("task_type", &m->task, 1, 1);
    h[TREES_HEADER_AVERAGE] = array("average", &m->average, 1, 1);
    h[TREES_HEADER_TARGET_COUNT] = array("num_target", &m->targets, 1, 4);
    h[TREES_HEADER_CLASS_COUNTS] = array("num_class", m->classes, 1, 4);
    h[TREES_HEADER_LEAF_SHAPE] = array("shape", m->shape, 2, 4);
    h[TREES_HEADER_TARGET_IDS] = array("target_id", m->target_ids, TREES, 4);
    h[TREES_HEADER_CLASS_IDS] = array("class_id", m->class_ids, TREES, 4);
    h[TREES_HEADER_POSTPROCESSOR] = array("post", "softmax", 7, 1);
    h[TREES_HEADER_SIGMOID_ALPHA] = array("alpha", &m->alpha, 1, 4);
    h[TREES_HEADER_RATIO_C] = array("ratio", &m->ratio, 1, 4);
    h[TREES_HEADER_BASE_SCORES] = array("base", m->base, CLASSES, 8);
}

static trees_source_tree_t
source_of(const tree_t *t)
{
    const size_t n = (size_t) t->count;
    trees_source_tree_t s;
    trees_array_t *a = s.arrays;

    a[TREES_TREE_NODE_COUNT] = array("num_nodes", &t->count, 1, 4);
    a[TREES_TREE_NODE_TYPE] = array("node_type", t->type, n, 1);
    a[TREES_TREE_LEFT] = array("cleft", t->left, n, 4);
    a[TREES_TREE_RIGHT] = array("cright", t->right, n, 4);
    a[TREES_TREE_FEATURE] = array("split_index", t->feature, n, 4);
    a[TREES_TREE_DEFAULT_LEFT] = array("default_left", t->default_left, n, 1);
    a[TREES_TREE_LEAF] = array("leaf_value", t->leaf, n, 8);
    a[TREES_TREE_THRESHOLD] = array("threshold", t->threshold, n, 8);
    a[TREES_TREE_OPERATOR] = array("cmp", t->op, n, 1);
    a[TREES_TREE_CATEGORIES_RIGHT] = array("right", t->list_right, n, 1);
    a[TREES_TREE_VECTOR] = array("leaf_vector", t->vector, n * CLASSES, 8);
    a[TREES_TREE_VECTOR_BEGIN] = array("vector_begin", t->vector_begin, n, 8);
    a[TREES_TREE_VECTOR_END] = array("vector_end", t->vector_end, n, 8);
    a[TREES_TREE_CATEGORIES] = array("categories", t->categories, n * 4, 4);
    a[TREES_TREE_CATEGORIES_BEGIN] = array("begin", t->begin, n, 8);
    a[TREES_TREE_CATEGORIES_END] = array("end", t->end, n, 8);
    return s;
}

static TRITONSERVER_Error *
forest_of(const model_t *m, trees_forest_t **out)
{
    TRITONSERVER_Error *err = trees_forest_new(out, &m->header);
    for (uint32_t i = 0; err == NULL && i < TREES; i++) {
        const trees_source_tree_t s = source_of(&m->tree[i]);

        err = trees_forest_add(*out, i, &m->header, &s);
        if (err != NULL) {
            trees_forest_free(*out);
            *out = NULL;
        }
    }
    if (err == NULL) {
        trees_forest_finish(*out);
    }
    return err;
}

static bool
passes(const tree_t *t, int32_t id, float x)
{
    if (t->type[id] == NODE_CATEGORICAL) {
        bool found = false;

        for (uint64_t i = t->begin[id]; i < t->end[id]; i++) {
            found = found || (x >= 0 && x <= 16777216.0f
                && t->categories[i] == (uint32_t) x);
        }
        return found != (t->list_right[id] != 0);
    }

    switch (t->op[id]) {
    case TREES_EQ: return x == t->threshold[id];
    case TREES_LT: return x < t->threshold[id];
    case TREES_LE: return x <= t->threshold[id];
    case TREES_GT: return x > t->threshold[id];
    default:       return x >= t->threshold[id];
    }
}

static int32_t
naive_leaf(const tree_t *t, const float *row)
{
    int32_t id = 0;

    while (t->left[id] != -1) {
        float x = row[t->feature[id]];
        bool left = isnan(x) ? t->default_left[id] != 0 : passes(t, id, x);

        id = left ? t->left[id] : t->right[id];
    }
    return id;
}

static void
naive_sums(const model_t *m, const float *row, double sums[CLASSES])
{
    double counts[CLASSES] = { 0 };

    memset(sums, 0, CLASSES * sizeof(*sums));
    for (int i = 0; i < TREES; i++) {
        const tree_t *t = &m->tree[i];
        int32_t id = naive_leaf(t, row);

        for (int c = 0; c < CLASSES; c++) {
            if (m->class_ids[i] == -1) {
                sums[c] += t->vector[id * CLASSES + c];
                counts[c]++;
            } else if (m->class_ids[i] == c) {
                sums[c] += t->leaf[id];
                counts[c]++;
            }
        }
    }
    for (int c = 0; c < CLASSES; c++) {
        sums[c] = (m->average != 0 ? sums[c] / counts[c] : sums[c])
            + m->base[c];
    }
}

static void
walks_end_where_single_steps_do(void **state)
{
    static float rows[ROWS * FEATURES];
    static double sums[ROWS * CLASSES];
    static uint32_t nodes[ROWS * TREES];
    model_t *m = malloc(sizeof(*m));

    (void) state;
    srand(1);
    for (int round = 0; round < 60; round++) {
        trees_forest_t *f = NULL;
        uint32_t count = 1 + random_below(ROWS);

        model_new(m, round % 2 == 1);
        assert_null(forest_of(m, &f));
        for (uint32_t i = 0; i < count * FEATURES; i++) {
            rows[i] = random_below(10) == 0 ? NAN : (float) random_number();
        }

        trees_walk_sums(f, rows, count, sums);
        trees_walk_leaves(f, rows, count, nodes);
        for (uint32_t row = 0; row < count; row++) {
            double expected[CLASSES];

            naive_sums(m, rows + row * FEATURES, expected);
            assert_memory_equal(expected, sums + row * CLASSES,
                sizeof(expected));
            for (int t = 0; t < TREES; t++) {
                assert_int_equal(f->ids[nodes[row * TREES + t]],
                    naive_leaf(&m->tree[t], rows + row * FEATURES));
            }
        }
        trees_forest_free(f);
    }
    free(m);
}

/* every operator, with thresholds around the numbers that FP32 has */
static void
test_of_a_node_is_exact(void **state)
{
    static const float xs[] = {
        0, -0.0f, 1, 1.1f, -1.1f, 16777216, 3.4e38f, -3.4e38f, 1e-45f,
        -1e-45f, INFINITY, -INFINITY
    };
    const size_t n = sizeof(xs) / sizeof(xs[0]);
    tree_t *t = calloc(1, sizeof(*t));

    (void) state;
    for (int op = TREES_EQ; op <= TREES_GE; op++) {
        for (size_t i = 0; i < n * 3; i++) {
            double near = xs[i / 3];
            trees_node_t node = { 0 };
            bool exchanged;

            near = i % 3 == 0 ? near : nextafter(near, i % 3 == 1 ? INFINITY
                : -INFINITY);
            t->op[0] = (int8_t) op;
            t->threshold[0] = near;
            assert_null(trees_test_of((int8_t) op, near, &node, &exchanged));
            for (size_t k = 0; k < n; k++) {
                bool left = op == TREES_EQ ? xs[k] == node.threshold
                    : xs[k] < node.threshold;

                assert_int_equal(left != exchanged, passes(t, 0, xs[k]));
            }
        }
    }
    free(t);
}

static void
rejects(const model_t *m, const char *words)
{
    trees_forest_t *f = NULL;

    TRITONSERVER_Error *err = forest_of(m, &f);
    assert_non_null(err);
    if (strstr(TRITONSERVER_ErrorMessage(err), words) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", words,
            TRITONSERVER_ErrorMessage(err));
    }
    TRITONSERVER_ErrorDelete(err);
}

static void
forest_rejects_ways_that_meet_and_that_lead_out(void **state)
{
    model_t *m = malloc(sizeof(*m));
    tree_t *t = &m->tree[3];

    (void) state;
    srand(2);
    do {
        model_new(m, false);
    } while (t->count < 5 || t->left[0] == -1);

    const tree_t whole = *t;
    t->left[0] = 0;
    rejects(m, "tree 3: node 0: its child 0 is reached by two ways");
    *t = whole;
    t->right[0] = t->left[0];
    rejects(m, "reached by two ways");
    *t = whole;
    t->right[0] = t->count;
    rejects(m, "is none of the");
    *t = whole;
    t->left[0] = -2;
    rejects(m, "its child -2 is none of the");
    *t = whole;
    t->feature[0] = FEATURES;
    rejects(m, "a test of feature 5, the model has 5");
    *t = whole;
    t->count = 0;
    rejects(m, "tree 3: 0 nodes");
    *t = whole;
    t->type[0] = NODE_CATEGORICAL;
    t->end[0] = NODES * 5;
    rejects(m, "categories 0 to");
    *t = whole;
    t->vector_end[t->count - 1] = 2;    /* the last node is a leaf           */
    rejects(m, "a leaf of 2 values");
    *t = whole;
    m->class_ids[3] = CLASSES;
    rejects(m, "\"class_id\" is 3 of 3");
    m->class_ids[3] = -1;
    rejects(m, "leaves have 1x1 values for 1x3 targets and classes");
    free(m);
}

static void
forest_rejects_a_header_that_cannot_be(void **state)
{
    model_t *m = malloc(sizeof(*m));
    trees_array_t *h = m->header.arrays;

    (void) state;
    model_new(m, false);
    m->features = 0;
    rejects(m, "0 features");
    model_new(m, false);
    m->type = 1;
    rejects(m, "numbers of type 1");
    model_new(m, false);
    m->classes[0] = TREES_COLUMNS_MAX + 1;
    rejects(m, "classes");
    model_new(m, false);
    h[TREES_HEADER_POSTPROCESSOR].count = 6;
    rejects(m, "\"softma\"");
    model_new(m, false);
    h[TREES_HEADER_BASE_SCORES].count = 2;
    rejects(m, "\"base\" has 2 elements for 3");
    model_new(m, false);
    h[TREES_HEADER_TARGET_IDS].size = 8;
    rejects(m, "\"target_id\" has elements of 8 bytes, not of 4");
    free(m);
}

static void
postprocessors_are_their_formulas(void **state)
{
    uint32_t classes[] = { 3 };
    trees_forest_t f = {
        .targets = 1, .classes = 3, .class_counts = classes,
        .sigmoid_alpha = 2, .ratio_c = 4
    };
    static const struct {
        trees_postprocessor_t kind;
        double                first;    /* of the numbers -2, 1, 0           */
        double                second;
    } known[] = {
        { TREES_IDENTITY, -2, 1 }, { TREES_SIGNED_SQUARE, -4, 1 },
        { TREES_HINGE, 0, 1 }, { TREES_SIGMOID, 0.0179862099620916, 1 },
        { TREES_EXPONENTIAL, 0.135335283236613, 1 },
        { TREES_EXPONENTIAL_STANDARD_RATIO, 1.41421356237310, 1 },
        { TREES_LOGARITHM_ONE_PLUS_EXP, 0.126928011042973, 1 },
        { TREES_SOFTMAX, 0.0351190138764, 0.70538451269824 },
        { TREES_MULTICLASS_OVA, 0.0179862099620916, 0.880797077977882 }
    };

    (void) state;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        double wide[] = { -2, 1, 0 };
        float narrow[] = { -2, 1, 0 };

        f.postprocessor = known[i].kind;
        f.doubles = true;
        trees_postprocess(&f, 1, wide);
        f.doubles = false;
        trees_postprocess(&f, 1, narrow);
        assert_true(fabs(wide[0] - known[i].first) < 1e-6);
        assert_true(fabs(wide[1] - known[i].second) < 1e-6);
        assert_true(fabs(narrow[0] - known[i].first) < 1e-6);
        assert_true(fabs(narrow[1] - known[i].second) < 1e-6);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(walks_end_where_single_steps_do),
        cmocka_unit_test(test_of_a_node_is_exact),
        cmocka_unit_test(forest_rejects_ways_that_meet_and_that_lead_out),
        cmocka_unit_test(forest_rejects_a_header_that_cannot_be),
        cmocka_unit_test(postprocessors_are_their_formulas)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
