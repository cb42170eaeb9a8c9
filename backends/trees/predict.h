/*
 * predict.h - what a model answers for rows of features.
 *
 * Owner    trees_predict_t belongs to its instance; forest and answer are
 *          the model's.
 * Thread   its instance's.
 * Units    rows; an answer row has trees_answer_width numbers.
 * Errors   init: no memory.
 * Route    run -> [predict] -> walk, postprocess
 */

#ifndef TREES_PREDICT_H
#define TREES_PREDICT_H

#include "forest.h"

/* From the model's parameters and its file. */
typedef struct {
    bool  classes;          /* answers are classes, or their probabilities   */
    bool  probabilities;
    bool  both;             /* of a binary model: 1 - p and p                */
    float threshold;        /* of a binary model: above it is class 1        */
} trees_answer_t;

typedef struct {
    const trees_forest_t *forest;
    const trees_answer_t *answer;
    uint64_t              rows_most;    /* that sums has room for            */
    void                 *sums;
    uint32_t             *nodes;        /* leaves of one row                 */
} trees_predict_t;

BK_CHECK TRITONSERVER_Error *trees_predict_init(trees_predict_t *p,
    const trees_forest_t *forest, const trees_answer_t *answer);
void trees_predict_fini(trees_predict_t *p);

/* Numbers in a row of the answer. */
uint32_t trees_answer_width(const trees_forest_t *f,
    const trees_answer_t *answer);

/* The model's answer: classes, probabilities or values. */
void trees_predict(const trees_predict_t *p, const float *rows,
    uint64_t count, float *out);

/* The sums of the trees, before the model's last function; columns a row. */
void trees_predict_raw(const trees_predict_t *p, const float *rows,
    uint64_t count, float *out);

/* The values of each tree's leaf, leaf_values of the forest each; and the
 * leaf's number in the model's file. */
void trees_predict_trees(const trees_predict_t *p, const float *rows,
    uint64_t count, float *out);
void trees_predict_leaves(const trees_predict_t *p, const float *rows,
    uint64_t count, int32_t *out);

#endif /* TREES_PREDICT_H */
