/*
 * predict.h - computes a model's answers for rows of features.
 *
 * Owner    The instance owns trees_predict_t; the model owns forest and
 *          answer.
 * Thread   its instance's.
 * Units    rows; an answer row has trees_answer_width numbers.
 * Errors   init: no memory.  On a device, those of device.h.
 * Route    run -> [predict] -> walk, device, postprocess
 */

#ifndef TREES_PREDICT_H
#define TREES_PREDICT_H

#include "device.h"

typedef struct {
    /* constant: from the model's parameters and its file */
    bool  classes;          /* answers are classes, or their probabilities   */
    bool  probabilities;
    bool  both;             /* of a binary model: 1 - p and p                */
    bool  thresholded;      /* of two classes the second has a threshold     */
    float threshold;        /* of a binary model: above it is class 1        */
} trees_answer_t;

typedef struct {
    const trees_forest_t *forest;
    const trees_answer_t *answer;
    trees_device_t       *device;       /* NULL: the host walks              */
    uint64_t              host_rows;    /* up to so many the host walks      */
    uint64_t              sum_rows;     /* capacity of sums                  */
    uint64_t              node_rows;    /* capacity of nodes                 */
    void                 *sums;
    uint32_t             *nodes;        /* of leaves                         */
} trees_predict_t;

/* Rows of a request, on the host or on the device. */
typedef struct {
    const float *data;
    uint64_t     count;
    bool         on_device;
} trees_rows_t;

/* Borrows device, which may be NULL. */
BK_CHECK TRITONSERVER_Error *trees_predict_init(trees_predict_t *p,
    const trees_forest_t *forest, const trees_answer_t *answer,
    trees_device_t *device, uint64_t host_rows);
void trees_predict_fini(trees_predict_t *p);

/* Numbers in a row of the answer. */
uint32_t trees_answer_width(const trees_forest_t *f,
    const trees_answer_t *answer);

/* The model's answer: classes, probabilities or values; out is on the host. */
BK_CHECK TRITONSERVER_Error *trees_predict(const trees_predict_t *p,
    const trees_rows_t *rows, float *out);

/* The sums of the trees before the model's last function, columns per row. */
BK_CHECK TRITONSERVER_Error *trees_predict_raw(const trees_predict_t *p,
    const trees_rows_t *rows, float *out);

/* The values of each tree's leaf, leaf_values per tree; and the number of the
 * leaf in the model's file. */
BK_CHECK TRITONSERVER_Error *trees_predict_trees(const trees_predict_t *p,
    const trees_rows_t *rows, float *out);
BK_CHECK TRITONSERVER_Error *trees_predict_leaves(const trees_predict_t *p,
    const trees_rows_t *rows, int32_t *out);

#endif /* TREES_PREDICT_H */
