/* postprocess.c - see postprocess.h */

#include "postprocess.h"

#include <math.h>

static void floats(const trees_forest_t *f, uint32_t classes, float *v);
static void doubles(const trees_forest_t *f, uint32_t classes, double *v);
static void softmax_floats(uint32_t classes, float *v);
static void softmax_doubles(uint32_t classes, double *v);

void
trees_postprocess(const trees_forest_t *f, uint64_t count, void *sums)
{
    for (uint64_t i = 0; i < count * f->targets; i++) {
        uint32_t classes = f->class_counts[i % f->targets];

        if (f->doubles) {
            doubles(f, classes, (double *) sums + i * f->classes);
        } else {
            floats(f, classes, (float *) sums + i * f->classes);
        }
    }
}

/* Where a function is of one number, it is that of the target's first. */
static void
floats(const trees_forest_t *f, uint32_t classes, float *v)
{
    switch (f->postprocessor) {

    case TREES_IDENTITY:
        break;

    case TREES_SIGNED_SQUARE:
        *v = copysignf(*v * *v, *v);
        break;

    case TREES_HINGE:
        *v = *v > 0 ? 1 : 0;
        break;

    case TREES_SIGMOID:
        *v = 1 / (1 + expf(-f->sigmoid_alpha * *v));
        break;

    case TREES_EXPONENTIAL:
        *v = expf(*v);
        break;

    case TREES_EXPONENTIAL_STANDARD_RATIO:
        *v = exp2f(-*v / f->ratio_c);
        break;

    case TREES_LOGARITHM_ONE_PLUS_EXP:
        *v = log1pf(expf(*v));
        break;

    case TREES_SOFTMAX:
        softmax_floats(classes, v);
        break;

    case TREES_MULTICLASS_OVA:
        for (uint32_t i = 0; i < classes; i++) {
            v[i] = 1 / (1 + expf(-f->sigmoid_alpha * v[i]));
        }
        break;
    }
}

static void
doubles(const trees_forest_t *f, uint32_t classes, double *v)
{
    switch (f->postprocessor) {

    case TREES_IDENTITY:
        break;

    case TREES_SIGNED_SQUARE:
        *v = copysign(*v * *v, *v);
        break;

    case TREES_HINGE:
        *v = *v > 0 ? 1 : 0;
        break;

    case TREES_SIGMOID:
        *v = 1 / (1 + exp(-f->sigmoid_alpha * *v));
        break;

    case TREES_EXPONENTIAL:
        *v = exp(*v);
        break;

    case TREES_EXPONENTIAL_STANDARD_RATIO:
        *v = exp2(-*v / f->ratio_c);
        break;

    case TREES_LOGARITHM_ONE_PLUS_EXP:
        *v = log1p(exp(*v));
        break;

    case TREES_SOFTMAX:
        softmax_doubles(classes, v);
        break;

    case TREES_MULTICLASS_OVA:
        for (uint32_t i = 0; i < classes; i++) {
            v[i] = 1 / (1 + exp(-f->sigmoid_alpha * v[i]));
        }
        break;
    }
}

static void
softmax_floats(uint32_t classes, float *v)
{
    float most = v[0];
    double sum = 0;

    for (uint32_t i = 1; i < classes; i++) {
        most = v[i] > most ? v[i] : most;
    }
    for (uint32_t i = 0; i < classes; i++) {
        v[i] = expf(v[i] - most);
        sum += v[i];
    }
    for (uint32_t i = 0; i < classes; i++) {
        v[i] /= (float) sum;
    }
}

/* treelite keeps the largest margin, the powers and their sum as floats */
static void
softmax_doubles(uint32_t classes, double *v)
{
    float most = (float) v[0];
    double sum = 0;

    for (uint32_t i = 1; i < classes; i++) {
        most = v[i] > most ? (float) v[i] : most;
    }
    for (uint32_t i = 0; i < classes; i++) {
        v[i] = (float) exp(v[i] - most);
        sum += v[i];
    }
    for (uint32_t i = 0; i < classes; i++) {
        v[i] /= (float) sum;
    }
}
