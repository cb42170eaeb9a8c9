/* xgboost_binary.c - see xgboost_binary.h */

#include "xgboost_binary.h"

#include <string.h>

/* The parts of a file, and where in them is what this reads. */
#define MAGIC            "binf"         /* in front of some files            */
#define LEARNER          136            /* bytes                             */
#define LEARNER_CLASSES  8
#define LEARNER_MAJOR    20             /* XGBoost's version                 */
#define LEARNER_TARGETS  28
#define BOOSTER          160
#define TREE             148
#define TREE_NODES       4
#define TREE_LEAF_VECTOR 20
#define NODE             (20 + 16)      /* with its statistics               */

typedef struct {
    const char *at;
    size_t      left;
} rest_t;

static bool parts_fit(rest_t *r, const char **part);
static bool trees_fit(rest_t *r, uint32_t major, int32_t count);
static bool step_over_text(rest_t *r);
static bool step_over(rest_t *r, uint64_t count, size_t size);
static int32_t number(const char *at);

TRITONSERVER_Error *
trees_xgboost_binary_check(const void *data, size_t len)
{
    rest_t r = { data, len };
    const char *part = "parameters";

    return parts_fit(&r, &part) ? NULL : bk_err_new(
        TRITONSERVER_ERROR_INVALID_ARG, "not a binary file of XGBoost, or a"
        " part of one: its %s end early or are wrong", part);
}

static bool
parts_fit(rest_t *r, const char **part)
{
    if (r->left >= strlen(MAGIC) && memcmp(r->at, MAGIC, strlen(MAGIC)) == 0)
    {
        (void) step_over(r, 1, strlen(MAGIC));
    }

    const char *learner = r->at;
    if (!step_over(r, 1, LEARNER) || !step_over_text(r) || !step_over_text(r)) {
        return false;
    }

    /* the library makes room for as many classes and targets */
    if (number(learner + LEARNER_CLASSES) > (int64_t) r->left
        || number(learner + LEARNER_TARGETS) > (int64_t) r->left)
    {
        return false;
    }

    const char *booster = r->at;
    if (!step_over(r, 1, BOOSTER)) {
        return false;
    }

    int32_t trees = number(booster);
    *part = "trees";
    return trees_fit(r, (uint32_t) number(learner + LEARNER_MAJOR), trees)
        && (trees <= 0 || step_over(r, (uint64_t) trees, sizeof(int32_t)));
}

static bool
trees_fit(rest_t *r, uint32_t major, int32_t count)
{
    for (int32_t i = 0; i < count; i++) {
        const char *tree = r->at;

        if (!step_over(r, 1, TREE)) {
            return false;
        }

        int32_t nodes = number(tree + TREE_NODES);
        if (nodes < 0 || !step_over(r, (uint64_t) nodes, NODE)) {
            return false;
        }

        if (number(tree + TREE_LEAF_VECTOR) != 0 && major < 2) {
            uint64_t values;

            if (r->left < sizeof(values)) {
                return false;
            }
            memcpy(&values, r->at, sizeof(values));
            if (!step_over(r, 1, sizeof(values))
                || !step_over(r, values, sizeof(float)))
            {
                return false;
            }
        }
    }

    return true;
}

/* Its length is in front of it. */
static bool
step_over_text(rest_t *r)
{
    uint64_t len;

    if (r->left < sizeof(len)) {
        return false;
    }

    memcpy(&len, r->at, sizeof(len));
    return step_over(r, 1, sizeof(len)) && step_over(r, len, 1);
}

static bool
step_over(rest_t *r, uint64_t count, size_t size)
{
    uint64_t bytes;

    if (__builtin_mul_overflow(count, size, &bytes) || bytes > r->left) {
        return false;
    }

    r->at += bytes;
    r->left -= bytes;
    return true;
}

static int32_t
number(const char *at)
{
    int32_t n;

    memcpy(&n, at, sizeof(n));
    return n;
}
