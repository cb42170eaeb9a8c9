/*
 * forest_header.h - reads the header of a source: shape, base scores and
 *                   postprocessor of a forest, and the columns of each tree.
 *
 * Owner    The forest owns the arrays that are allocated here.
 * Thread   the one that loads the model.
 * Units    columns (outputs of a row before its class is chosen).
 * Errors   INVALID_ARG: numbers that contradict each other, or arrays that are
 *          shorter than they say.  UNSUPPORTED: an unknown postprocessor.
 * Route    source -> [forest_header] -> forest
 */

#ifndef TREES_FOREST_HEADER_H
#define TREES_FOREST_HEADER_H

#include "forest.h"

/* Sets all of f but nodes, leaves, lists and categories, which are empty. */
BK_CHECK TRITONSERVER_Error *trees_forest_read_header(trees_forest_t *f,
    const trees_header_t *h);

/* Sets the columns of the tree at index, and counts it in f->averages. */
BK_CHECK TRITONSERVER_Error *trees_forest_read_columns(trees_forest_t *f,
    uint32_t index, const trees_header_t *h, trees_tree_t *tree);

#endif /* TREES_FOREST_HEADER_H */
