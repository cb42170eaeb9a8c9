/*
 * lightgbm.h - whether a text of LightGBM is whole, and its trees are trees.
 *
 * Owner    nothing is kept of the text.
 * Thread   any.
 * Units    bytes.
 * Errors   INVALID_ARG: the text ends before its trees do, or the number of
 *          the tree and the field that leads out of it.  UNSUPPORTED: it
 *          takes zeros for missing values, and treelite would not.
 * Route    model file -> [lightgbm] -> treelite
 *
 * treelite takes the trees that are there for the model, and what is missing
 * of the last one for repetitions of its last number.  It goes to the child or
 * category that a node names without asking whether there is one, and round
 * and round where a child is reached by two ways.
 */

#ifndef TREES_LIGHTGBM_H
#define TREES_LIGHTGBM_H

#include "common/error.h"

#include <stddef.h>

BK_CHECK TRITONSERVER_Error *trees_lightgbm_check(const void *data,
    size_t len);

#endif /* TREES_LIGHTGBM_H */
