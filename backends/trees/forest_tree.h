/*
 * forest_tree.h - copies one tree of a source behind those that a forest has.
 *
 * Owner    The forest owns the arrays, which grow.
 * Thread   the one that loads the model.
 * Units    nodes, values of leaves, categories.
 * Errors   INVALID_ARG naming the node: a child or feature that does not
 *          exist, or a node that is reached by two ways.  The forest is then
 *          only to be freed.
 * Route    source -> [forest_tree] -> forest
 */

#ifndef TREES_FOREST_TREE_H
#define TREES_FOREST_TREE_H

#include "forest.h"

/* tree is one of f's; its columns are set (forest_header.h), the rest is zero
 * until this sets it. */
BK_CHECK TRITONSERVER_Error *trees_forest_copy_tree(trees_forest_t *f,
    trees_tree_t *tree, const trees_source_tree_t *source);

#endif /* TREES_FOREST_TREE_H */
