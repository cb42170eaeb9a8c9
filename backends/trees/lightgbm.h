/*
 * lightgbm.h - checks a text of LightGBM: it is complete, its trees are trees.
 *
 * Owner    nothing is kept.
 * Thread   any.
 * Units    bytes.
 * Errors   INVALID_ARG: the text is truncated, or a field of a tree points
 *          out of the tree.  UNSUPPORTED: the model treats zeros as missing
 *          values, which treelite does not.
 * Route    model file -> [lightgbm] -> treelite
 *
 * treelite accepts a truncated text: the last tree gets repetitions of its last
 * number.  It does not check that a node's child or category exists, and loops
 * for ever where a child has two parents.
 */

#ifndef TREES_LIGHTGBM_H
#define TREES_LIGHTGBM_H

#include "common/error.h"

#include <stddef.h>

/* Checks the text, which treelite may read afterwards. */
BK_CHECK TRITONSERVER_Error *trees_lightgbm_check(const void *data,
    size_t len);

#endif /* TREES_LIGHTGBM_H */
