/*
 * walk.h - which leaf of each tree a row ends at, and the sums of the leaves.
 *
 * Owner    Rows and results are the caller's.
 * Thread   any: the forest is only read.
 * Units    rows are features() FP32 numbers each, one behind the other; a sum
 *          row has the forest's columns.
 * Errors   none: a finished forest cannot lead out of itself.
 * Route    predict -> [walk] -> postprocess
 *
 * The way of one row through one tree is a chain of loads that each wait for
 * the last.  So several ways are walked side by side: of several rows through
 * one tree, which then stays in the cache, or, where rows are few, of one row
 * through several trees.
 */

#ifndef TREES_WALK_H
#define TREES_WALK_H

#include "forest.h"

/* The sums of a forest's leaves, in the order of its trees, divided where the
 * model averages, with base scores: float, or double where f->doubles.
 * Columns of classes that a target does not have are 0. */
void trees_walk_sums(const trees_forest_t *f, const float *rows,
    uint64_t count, void *sums);

/* The end of that alone: from bare sums of leaves, in place. */
void trees_walk_finish(const trees_forest_t *f, uint64_t count, void *sums);

/* The node of each tree's leaf: count times f->tree_count. */
void trees_walk_leaves(const trees_forest_t *f, const float *rows,
    uint64_t count, uint32_t *nodes);

#endif /* TREES_WALK_H */
