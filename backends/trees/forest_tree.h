/*
 * forest_tree.h - appends one tree of a source to a forest.
 *
 * Owner    The forest owns the arrays, which grow.
 * Thread   the one that loads the model.
 * Units    nodes, values of leaves, categories.
 * Errors   INVALID_ARG naming the node: a child or feature does not exist, or
 *          the node has two parents.  The caller then frees the forest.
 * Route    source -> [forest_tree] -> forest
 */

#ifndef TREES_FOREST_TREE_H
#define TREES_FOREST_TREE_H

#include "forest.h"

/* Sets tree, one of f's, whose columns are set (forest_header.h) and whose
 * other fields are zero. */
BK_CHECK TRITONSERVER_Error *trees_forest_copy_tree(trees_forest_t *f,
    trees_tree_t *tree, const trees_source_tree_t *source);

#endif /* TREES_FOREST_TREE_H */
