/*
 * postprocess.h - computes predictions from the sums of the trees.
 *
 * Owner    The caller owns the sums, which are changed in place.
 * Thread   any.
 * Units    as walk.h: rows of the forest's columns, float or double.
 * Errors   none.
 * Route    walk -> [postprocess] -> predict
 *
 * The functions are treelite's, in the same precision and the same order of
 * operations, so that results are the same to the last bit.
 */

#ifndef TREES_POSTPROCESS_H
#define TREES_POSTPROCESS_H

#include "forest.h"

/* Applies the model's last function to count rows of sums. */
void trees_postprocess(const trees_forest_t *f, uint64_t count, void *sums);

#endif /* TREES_POSTPROCESS_H */
