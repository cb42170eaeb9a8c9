/*
 * forest.h - all trees of a model in one flat array, ready to be walked.
 *
 * Owner    trees_forest_new gives the forest to the caller; the forest owns
 *          its arrays and keeps nothing of the source.
 * Thread   new, add and free: one; a finished forest is read by anyone.
 * Units    nodes, trees, columns (outputs of a row before its class is
 *          chosen).
 * Errors   INVALID_ARG naming tree, node and fault.
 * Route    source -> [forest] -> walk
 *
 * Every feature of a request is an FP32 number x.  So each test of a model,
 * with thresholds of any type, equals "x < threshold" for some FP32
 * threshold, with the children exchanged where needed; special nodes test
 * equality or a list of categories.  The children of a node are neighbours,
 * and the child of a leaf is the leaf itself: a walk takes as many steps as
 * the tree is deep, without a test for leaves.
 *
 * In a finished forest all children and features exist, and each node has one
 * parent; any other source is rejected.
 */

#ifndef TREES_FOREST_H
#define TREES_FOREST_H

#include "source.h"

#define TREES_DEFAULT_LEFT 0x80000000u  /* of feature: NaN goes left         */
#define TREES_SPECIAL      0x40000000u  /* equality or categories            */
#define TREES_FEATURE      0x3fffffffu
#define TREES_EQUALITY     UINT32_MAX   /* value of such a node              */
#define TREES_COLUMNS_MAX  (1 << 24)

typedef struct {
    float    threshold;
    uint32_t feature;                   /* with the bits above               */
    uint32_t child;                     /* the left; the right is the next   */
    uint32_t value;                     /* leaf: its first value in leaves;
                                         * special: its list or equality     */
} trees_node_t;

/* Categories that go left, in rising order. */
typedef struct {
    uint32_t begin;
    uint32_t count;
} trees_list_t;

/* A leaf has values for columns column, column + stride, ... */
typedef struct {
    uint32_t root;
    uint32_t depth;                     /* steps to the deepest leaf         */
    uint32_t column;
    uint32_t stride;
    uint32_t values;
    bool     special;                   /* has such nodes                    */
} trees_tree_t;

typedef enum {
    TREES_BINARY, TREES_REGRESSION, TREES_MULTICLASS, TREES_RANKING,
    TREES_ISOLATION
} trees_task_t;

typedef enum {
    TREES_IDENTITY, TREES_SIGNED_SQUARE, TREES_HINGE, TREES_SIGMOID,
    TREES_EXPONENTIAL, TREES_EXPONENTIAL_STANDARD_RATIO,
    TREES_LOGARITHM_ONE_PLUS_EXP, TREES_SOFTMAX, TREES_MULTICLASS_OVA
} trees_postprocessor_t;

typedef struct {
    trees_node_t  *nodes;
    int32_t       *ids;                 /* of each node in its tree's source */
    uint32_t       node_count;
    trees_tree_t  *trees;
    uint32_t       tree_count;
    bool           doubles;             /* leaves and sums are double        */
    void          *leaves;              /* float or double                   */
    uint32_t       leaf_count;          /* of values                         */
    trees_list_t  *lists;
    uint32_t       list_count;
    uint32_t      *categories;
    uint32_t       category_count;

    uint32_t       features;
    uint32_t       targets;
    uint32_t       classes;             /* of the target that has most       */
    uint32_t       columns;             /* targets * classes                 */
    uint32_t      *class_counts;        /* of each target                    */
    uint32_t       leaf_values;         /* of any leaf                       */
    double        *base_scores;         /* of each column                    */
    double        *averages;            /* divisor of each column; NULL: sum */
    trees_task_t   task;
    trees_postprocessor_t postprocessor;
    float          sigmoid_alpha;
    float          ratio_c;

    uint32_t       node_cap, leaf_cap, list_cap, category_cap;
} trees_forest_t;

/* Creates an empty forest of the header's shape; trees_forest_add then adds all
 * its trees in order. */
BK_CHECK TRITONSERVER_Error *trees_forest_new(trees_forest_t **out,
    const trees_header_t *header);
BK_CHECK TRITONSERVER_Error *trees_forest_add(trees_forest_t *f,
    uint32_t index, const trees_header_t *header,
    const trees_source_tree_t *tree);

/* Shrinks the arrays to their contents. */
void trees_forest_finish(trees_forest_t *f);
void trees_forest_free(trees_forest_t *f);

#endif /* TREES_FOREST_H */
