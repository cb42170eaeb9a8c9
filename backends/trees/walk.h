/*
 * walk.h - finds the leaf of each tree for a row, and sums the leaves.
 *
 * Owner    The caller owns rows and results.
 * Thread   any: the forest is only read.
 * Units    rows are features() FP32 numbers each, one behind the other; a sum
 *          row has the forest's columns.
 * Errors   none: a finished forest cannot lead out of itself.
 * Route    predict -> [walk] -> postprocess
 *
 * A walk of one row through one tree is a chain of loads that each wait for the
 * previous one.  So several walks are interleaved: of several rows through one
 * tree, which stays in the cache, or, with few rows, of one row through several
 * trees.
 */

#ifndef TREES_WALK_H
#define TREES_WALK_H

#include "forest.h"

/* The sums of a forest's leaves, in the order of its trees, divided where the
 * model averages, with base scores: float, or double where f->doubles.
 * Columns of classes that a target does not have are 0. */
void trees_walk_sums(const trees_forest_t *f, const float *rows,
    uint64_t count, void *sums);

/* Completes bare sums of leaves in place: divisions and base scores. */
void trees_walk_finish(const trees_forest_t *f, uint64_t count, void *sums);

/* The node of each tree's leaf: count times f->tree_count. */
void trees_walk_leaves(const trees_forest_t *f, const float *rows,
    uint64_t count, uint32_t *nodes);

#endif /* TREES_WALK_H */
