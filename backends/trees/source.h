/*
 * source.h - a model as treelite holds it: arrays by name, not checked yet.
 *
 * Owner    The arrays are treelite's and live as long as its model.
 * Thread   one model, one thread.
 * Units    counts of elements; sizes in bytes.
 * Errors   INVALID_ARG naming the field that is shorter than it is read, or
 *          whose elements are of another size.
 * Route    treelite -> [source] -> forest
 */

#ifndef TREES_SOURCE_H
#define TREES_SOURCE_H

#include "common/error.h"

#include <stddef.h>

/* field, name in treelite, bytes of an element; 0: of the model's numbers */
#define TREES_HEADER_FIELDS(ROW)                                              \
    ROW(THRESHOLD_TYPE, "threshold_type", 1)                                  \
    ROW(TREE_COUNT, "num_tree", 8)                                            \
    ROW(FEATURE_COUNT, "num_feature", 4)                                      \
    ROW(TASK, "task_type", 1)                                                 \
    ROW(AVERAGE, "average_tree_output", 1)                                    \
    ROW(TARGET_COUNT, "num_target", 4)                                        \
    ROW(CLASS_COUNTS, "num_class", 4)                                         \
    ROW(LEAF_SHAPE, "leaf_vector_shape", 4)                                   \
    ROW(TARGET_IDS, "target_id", 4)                                           \
    ROW(CLASS_IDS, "class_id", 4)                                             \
    ROW(POSTPROCESSOR, "postprocessor", 1)                                    \
    ROW(SIGMOID_ALPHA, "sigmoid_alpha", 4)                                    \
    ROW(RATIO_C, "ratio_c", 4)                                                \
    ROW(BASE_SCORES, "base_scores", 8)

#define TREES_TREE_FIELDS(ROW)                                                \
    ROW(NODE_COUNT, "num_nodes", 4)                                           \
    ROW(NODE_TYPE, "node_type", 1)                                            \
    ROW(LEFT, "cleft", 4)                                                     \
    ROW(RIGHT, "cright", 4)                                                   \
    ROW(FEATURE, "split_index", 4)                                            \
    ROW(DEFAULT_LEFT, "default_left", 1)                                      \
    ROW(LEAF, "leaf_value", 0)                                                \
    ROW(THRESHOLD, "threshold", 0)                                            \
    ROW(OPERATOR, "cmp", 1)                                                   \
    ROW(CATEGORIES_RIGHT, "category_list_right_child", 1)                     \
    ROW(VECTOR, "leaf_vector", 0)                                             \
    ROW(VECTOR_BEGIN, "leaf_vector_begin", 8)                                 \
    ROW(VECTOR_END, "leaf_vector_end", 8)                                     \
    ROW(CATEGORIES, "category_list", 4)                                       \
    ROW(CATEGORIES_BEGIN, "category_list_begin", 8)                           \
    ROW(CATEGORIES_END, "category_list_end", 8)

enum {
#define TREES_ENUM(field, name, size) TREES_HEADER_##field,
    TREES_HEADER_FIELDS(TREES_ENUM)
#undef TREES_ENUM
    TREES_HEADER_COUNT
};

enum {
#define TREES_ENUM(field, name, size) TREES_TREE_##field,
    TREES_TREE_FIELDS(TREES_ENUM)
#undef TREES_ENUM
    TREES_TREE_COUNT
};

typedef struct {
    const char *name;                   /* for errors                        */
    const void *data;
    size_t      count;
    size_t      size;                   /* of an element                     */
} trees_array_t;

typedef struct {
    trees_array_t arrays[TREES_HEADER_COUNT];
} trees_header_t;

typedef struct {
    trees_array_t arrays[TREES_TREE_COUNT];
} trees_source_tree_t;

/* The element at index as its type; it may lie at any address. */
BK_CHECK TRITONSERVER_Error *trees_get_i8(const trees_array_t *a,
    uint64_t index, int8_t *out);
BK_CHECK TRITONSERVER_Error *trees_get_i32(const trees_array_t *a,
    uint64_t index, int32_t *out);
BK_CHECK TRITONSERVER_Error *trees_get_u32(const trees_array_t *a,
    uint64_t index, uint32_t *out);
BK_CHECK TRITONSERVER_Error *trees_get_u64(const trees_array_t *a,
    uint64_t index, uint64_t *out);
BK_CHECK TRITONSERVER_Error *trees_get_float(const trees_array_t *a,
    uint64_t index, float *out);

/* A float or a double, by the size of the array's elements. */
BK_CHECK TRITONSERVER_Error *trees_get_number(const trees_array_t *a,
    uint64_t index, double *out);

#endif /* TREES_SOURCE_H */
