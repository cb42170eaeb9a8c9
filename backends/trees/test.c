/* test.c - see test.h */

#include "test.h"

#include <math.h>

static float ceiling(double t);
static float above(double t);

/*
 * No FP32 number is less than -infinity: that is the threshold of a test that
 * nothing passes, and with exchanged children of one that everything passes.
 */
TRITONSERVER_Error *
trees_test_of(int8_t op, double threshold, trees_node_t *node,
    bool *exchanged)
{
    bool never = isnan(threshold);

    *exchanged = false;
    switch (op) {

    case TREES_EQ:
        node->threshold = (double) (float) threshold == threshold
            ? (float) threshold : NAN;
        node->value = TREES_EQUALITY;
        node->feature |= TREES_SPECIAL;
        return NULL;

    case TREES_LT:
    case TREES_GE:
        node->threshold = ceiling(threshold);
        *exchanged = op == TREES_GE;
        break;

    case TREES_LE:
    case TREES_GT:
        node->threshold = above(threshold);
        *exchanged = op == TREES_GT;
        if (threshold == INFINITY) {    /* all are at most that              */
            node->threshold = -INFINITY;
            *exchanged = !*exchanged;
        }
        break;

    default:
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "a test with an operator of number %d", op);
    }

    if (never) {
        node->threshold = -INFINITY;
        *exchanged = false;
    }
    return NULL;
}

/* x < t exactly where x < the smallest FP32 number that is not less than t. */
static float
ceiling(double t)
{
    float f = (float) t;

    return (double) f < t ? nextafterf(f, INFINITY) : f;
}

/* x <= t exactly where x < the smallest FP32 number greater than t. */
static float
above(double t)
{
    float f = (float) t;

    return (double) f > t ? f : nextafterf(f, INFINITY);
}
