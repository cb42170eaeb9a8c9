/* predict.c - see predict.h */

#include "predict.h"

#include "postprocess.h"
#include "walk.h"

#include <stdlib.h>

#define ROWS_MOST 128                   /* as many as walk takes at a time   */
#define SUMS_MOST (1 << 16)             /* numbers, unless a row has more    */
#define DEVICE_SUMS_MOST (1 << 20)
#define DEVICE_NODES_MOST (1 << 20)

static uint64_t rows_in(uint64_t numbers, uint64_t row, uint64_t most);
static bool host_walks(const trees_predict_t *p, const trees_rows_t *rows);
static TRITONSERVER_Error *sums_of(const trees_predict_t *p,
    const trees_rows_t *rows, uint64_t first, uint64_t count);
static TRITONSERVER_Error *nodes_of(const trees_predict_t *p,
    const trees_rows_t *rows, uint64_t first, uint64_t count);
static void answer_rows(const trees_predict_t *p, uint64_t count,
    float *out);
static float class_of(const trees_predict_t *p, uint64_t row,
    uint32_t target);
static float number(const trees_predict_t *p, uint64_t at);
static uint64_t part(uint64_t left, uint64_t most);

TRITONSERVER_Error *
trees_predict_init(trees_predict_t *p, const trees_forest_t *forest,
    const trees_answer_t *answer, trees_device_t *device, uint64_t host_rows)
{
    uint64_t most = device == NULL ? 0 : trees_device_rows_most(device);

    *p = (trees_predict_t) {
        .forest = forest, .answer = answer, .device = device,
        .host_rows = host_rows,
        .sum_rows = device == NULL
            ? rows_in(SUMS_MOST, forest->columns, ROWS_MOST)
            : rows_in(DEVICE_SUMS_MOST, forest->columns, most),
        .node_rows = device == NULL ? 1
            : rows_in(DEVICE_NODES_MOST, forest->tree_count, most)
    };
    p->sums = calloc(p->sum_rows * forest->columns, sizeof(double));
    p->nodes = calloc(p->node_rows * forest->tree_count + 1,
        sizeof(*p->nodes));
    if (p->sums == NULL || p->nodes == NULL) {
        trees_predict_fini(p);
        return bk_err_nomem("sums of the trees");
    }

    return NULL;
}

void
trees_predict_fini(trees_predict_t *p)
{
    free(p->sums);
    free(p->nodes);
    *p = (trees_predict_t) { 0 };
}

uint32_t
trees_answer_width(const trees_forest_t *f, const trees_answer_t *answer)
{
    if (answer->classes && !answer->probabilities) {
        return f->targets;
    }

    return answer->both ? 2 : f->columns;
}

TRITONSERVER_Error *
trees_predict(const trees_predict_t *p, const trees_rows_t *rows, float *out)
{
    const trees_forest_t *f = p->forest;
    TRITONSERVER_Error *err = NULL;

    for (uint64_t done = 0, n; err == NULL && done < rows->count; done += n) {
        n = part(rows->count - done, p->sum_rows);
        err = sums_of(p, rows, done, n);
        if (err == NULL) {
            trees_postprocess(f, n, p->sums);
            answer_rows(p, n, out + done * trees_answer_width(f, p->answer));
        }
    }

    return err;
}

TRITONSERVER_Error *
trees_predict_raw(const trees_predict_t *p, const trees_rows_t *rows,
    float *out)
{
    const trees_forest_t *f = p->forest;
    TRITONSERVER_Error *err = NULL;

    for (uint64_t done = 0, n; err == NULL && done < rows->count; done += n) {
        n = part(rows->count - done, p->sum_rows);
        err = sums_of(p, rows, done, n);
        for (uint64_t i = 0; err == NULL && i < n * f->columns; i++) {
            out[done * f->columns + i] = number(p, i);
        }
    }

    return err;
}

TRITONSERVER_Error *
trees_predict_trees(const trees_predict_t *p, const trees_rows_t *rows,
    float *out)
{
    const trees_forest_t *f = p->forest;
    const double *wide = f->leaves;
    const float *narrow = f->leaves;
    TRITONSERVER_Error *err = NULL;

    for (uint64_t done = 0, n; err == NULL && done < rows->count; done += n) {
        n = part(rows->count - done, p->node_rows);
        err = nodes_of(p, rows, done, n);
        for (uint64_t t = 0; err == NULL && t < n * f->tree_count; t++) {
            uint32_t value = f->nodes[p->nodes[t]].value;

            for (uint32_t i = 0; i < f->leaf_values; i++) {
                *out++ = f->doubles ? (float) wide[value + i]
                    : narrow[value + i];
            }
        }
    }

    return err;
}

TRITONSERVER_Error *
trees_predict_leaves(const trees_predict_t *p, const trees_rows_t *rows,
    int32_t *out)
{
    const trees_forest_t *f = p->forest;
    TRITONSERVER_Error *err = NULL;

    for (uint64_t done = 0, n; err == NULL && done < rows->count; done += n) {
        n = part(rows->count - done, p->node_rows);
        err = nodes_of(p, rows, done, n);
        for (uint64_t t = 0; err == NULL && t < n * f->tree_count; t++) {
            *out++ = f->ids[p->nodes[t]];
        }
    }

    return err;
}

static uint64_t
rows_in(uint64_t numbers, uint64_t row, uint64_t most)
{
    uint64_t rows = row == 0 ? most : numbers / row;

    return rows < 1 ? 1 : rows > most ? most : rows;
}

static bool
host_walks(const trees_predict_t *p, const trees_rows_t *rows)
{
    return p->device == NULL || (!rows->on_device
        && rows->count <= p->host_rows);
}

static TRITONSERVER_Error *
sums_of(const trees_predict_t *p, const trees_rows_t *rows, uint64_t first,
    uint64_t count)
{
    const float *data = rows->data + first * p->forest->features;

    if (host_walks(p, rows)) {
        trees_walk_sums(p->forest, data, count, p->sums);
        return NULL;
    }

    TRITONSERVER_Error *err = trees_device_walk(p->device, data,
        rows->on_device, count, p->sums, NULL);
    if (err == NULL) {
        trees_walk_finish(p->forest, count, p->sums);
    }
    return err;
}

static TRITONSERVER_Error *
nodes_of(const trees_predict_t *p, const trees_rows_t *rows, uint64_t first,
    uint64_t count)
{
    const float *data = rows->data + first * p->forest->features;

    if (host_walks(p, rows)) {
        trees_walk_leaves(p->forest, data, count, p->nodes);
        return NULL;
    }

    return trees_device_walk(p->device, data, rows->on_device, count, NULL,
        p->nodes);
}

static void
answer_rows(const trees_predict_t *p, uint64_t count, float *out)
{
    const trees_forest_t *f = p->forest;

    for (uint64_t row = 0; row < count; row++) {
        if (p->answer->classes && !p->answer->probabilities) {
            for (uint32_t t = 0; t < f->targets; t++) {
                *out++ = class_of(p, row, t);
            }

        } else if (p->answer->both) {
            float one = number(p, row);

            *out++ = 1 - one;
            *out++ = one;

        } else {
            for (uint32_t i = 0; i < f->columns; i++) {
                *out++ = number(p, row * f->columns + i);
            }
        }
    }
}

/* The class of the largest number, the first of several; scikit-learn's binary
 * models have a number for each of their two classes. */
static float
class_of(const trees_predict_t *p, uint64_t row, uint32_t target)
{
    const trees_forest_t *f = p->forest;
    uint64_t first = row * f->columns + (uint64_t) target * f->classes;
    uint32_t classes = f->class_counts[target];
    uint32_t best = 0;

    if (classes == 1) {
        return number(p, first) > p->answer->threshold ? 1 : 0;
    }
    if (classes == 2 && p->answer->thresholded) {
        return number(p, first + 1) > p->answer->threshold ? 1 : 0;
    }

    for (uint32_t i = 1; i < classes; i++) {
        best = number(p, first + i) > number(p, first + best) ? i : best;
    }
    return (float) best;
}

static float
number(const trees_predict_t *p, uint64_t at)
{
    return p->forest->doubles ? (float) ((const double *) p->sums)[at]
        : ((const float *) p->sums)[at];
}

static uint64_t
part(uint64_t left, uint64_t most)
{
    return left < most ? left : most;
}
