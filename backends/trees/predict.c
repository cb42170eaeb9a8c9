/* predict.c - see predict.h */

#include "predict.h"

#include "postprocess.h"
#include "walk.h"

#include <stdlib.h>

#define ROWS_MOST 128                   /* as many as walk takes at a time   */
#define SUMS_MOST (1 << 16)             /* numbers, unless a row has more    */

static void answer_rows(const trees_predict_t *p, uint64_t count,
    float *out);
static float class_of(const trees_predict_t *p, uint64_t row,
    uint32_t target);
static float number(const trees_predict_t *p, uint64_t at);
static uint64_t part(const trees_predict_t *p, uint64_t left);

TRITONSERVER_Error *
trees_predict_init(trees_predict_t *p, const trees_forest_t *forest,
    const trees_answer_t *answer)
{
    uint64_t rows = SUMS_MOST / forest->columns;

    rows = rows < 1 ? 1 : rows > ROWS_MOST ? ROWS_MOST : rows;
    *p = (trees_predict_t) {
        .forest = forest, .answer = answer, .rows_most = rows,
        .sums = calloc(rows * forest->columns, sizeof(double)),
        .nodes = calloc((size_t) forest->tree_count + 1, sizeof(*p->nodes))
    };

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

void
trees_predict(const trees_predict_t *p, const float *rows, uint64_t count,
    float *out)
{
    const trees_forest_t *f = p->forest;

    for (uint64_t done = 0, n; done < count; done += n) {
        n = part(p, count - done);
        trees_walk_sums(f, rows + done * f->features, n, p->sums);
        trees_postprocess(f, n, p->sums);
        answer_rows(p, n, out + done * trees_answer_width(f, p->answer));
    }
}

void
trees_predict_raw(const trees_predict_t *p, const float *rows,
    uint64_t count, float *out)
{
    const trees_forest_t *f = p->forest;

    for (uint64_t done = 0, n; done < count; done += n) {
        n = part(p, count - done);
        trees_walk_sums(f, rows + done * f->features, n, p->sums);
        for (uint64_t i = 0; i < n * f->columns; i++) {
            out[done * f->columns + i] = number(p, i);
        }
    }
}

void
trees_predict_trees(const trees_predict_t *p, const float *rows,
    uint64_t count, float *out)
{
    const trees_forest_t *f = p->forest;
    const double *wide = f->leaves;
    const float *narrow = f->leaves;

    for (uint64_t row = 0; row < count; row++) {
        trees_walk_leaves(f, rows + row * f->features, 1, p->nodes);
        for (uint32_t t = 0; t < f->tree_count; t++) {
            uint32_t value = f->nodes[p->nodes[t]].value;

            for (uint32_t i = 0; i < f->leaf_values; i++) {
                *out++ = f->doubles ? (float) wide[value + i]
                    : narrow[value + i];
            }
        }
    }
}

void
trees_predict_leaves(const trees_predict_t *p, const float *rows,
    uint64_t count, int32_t *out)
{
    const trees_forest_t *f = p->forest;

    for (uint64_t row = 0; row < count; row++) {
        trees_walk_leaves(f, rows + row * f->features, 1, p->nodes);
        for (uint32_t t = 0; t < f->tree_count; t++) {
            *out++ = f->ids[p->nodes[t]];
        }
    }
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

/* The class of the largest number, the first of several. */
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
part(const trees_predict_t *p, uint64_t left)
{
    return left < p->rows_most ? left : p->rows_most;
}
