/*
 * test.h - the test of a node, as "an FP32 number is less than a threshold".
 *
 * Owner    nobody: pure functions.
 * Thread   any.
 * Units    none.
 * Errors   INVALID_ARG: an operator that does not exist.
 * Route    forest -> [test] -> nodes
 */

#ifndef TREES_TEST_H
#define TREES_TEST_H

#include "forest.h"

#define TREES_INFINITY __builtin_inff()

/* treelite's numbers */
enum {
    TREES_EQ = 1, TREES_LT, TREES_LE, TREES_GT, TREES_GE
};

/* Sets threshold, and value and bits of feature for an equality; exchanged:
 * the left child is for numbers that do not pass the test. */
BK_CHECK TRITONSERVER_Error *trees_test_of(int8_t op, double threshold,
    trees_node_t *node, bool *exchanged);

#endif /* TREES_TEST_H */
