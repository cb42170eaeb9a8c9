/* expression.c - see expression.h */

#include "expression.h"

#include <stdlib.h>

static int64_t leaf_value(const gpu_step_t *s, const gpu_shapes_t *shapes);
static bool combine(gpu_step_kind_t kind, int64_t a, int64_t b, int64_t *out);
static int64_t ceildiv(int64_t a, int64_t b);

TRITONSERVER_Error *
gpu_expression_of_dim(gpu_expression_t *e, uint32_t tensor, uint32_t dim)
{
    *e = (gpu_expression_t) { .steps = malloc(sizeof(*e->steps)) };
    if (e->steps == NULL) {
        return bk_err_nomem("an expression");
    }

    e->count = 1;
    e->steps[0] = (gpu_step_t) {
        .kind = GPU_STEP_DIM, .tensor = tensor, .dim = dim
    };
    return NULL;
}

void
gpu_expression_fini(gpu_expression_t *e)
{
    free(e->steps);
    *e = (gpu_expression_t) { 0 };
}

TRITONSERVER_Error *
gpu_expression_value(const gpu_expression_t *e, const gpu_shapes_t *shapes,
    const char *what, int64_t *value)
{
    int64_t stack[GPU_STEPS_MAX];
    uint32_t n = 0;

    for (uint32_t i = 0; i < e->count; i++) {
        const gpu_step_t *s = &e->steps[i];

        if (s->kind < GPU_STEP_NEGATE) {
            stack[n++] = leaf_value(s, shapes);
            continue;
        }

        /* -a is 0 - a */
        int64_t b = stack[--n];
        int64_t a = s->kind == GPU_STEP_NEGATE ? 0 : stack[--n];
        if (!combine(s->kind, a, b, &stack[n++])) {
            bool divides = s->kind == GPU_STEP_DIVIDE
                || s->kind == GPU_STEP_REST || s->kind == GPU_STEP_CEILDIV;
            return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "%s: %s", what,
                divides && b == 0 ? "division by zero"
                : "the result is beyond 64 bits");
        }
    }

    *value = stack[0];
    return NULL;
}

bool
gpu_expression_is_certain(const gpu_expression_t *e,
    const gpu_tensor_t *tensors)
{
    bool certain = true;

    for (uint32_t i = 0; certain && i < e->count; i++) {
        const gpu_step_t *s = &e->steps[i];
        const gpu_tensor_t *t = &tensors[s->tensor];

        certain = s->kind != GPU_STEP_BATCH && s->kind != GPU_STEP_ELEMENTS
            && s->kind != GPU_STEP_BYTES && (s->kind != GPU_STEP_DIM
            || (!t->optional && t->dims[s->dim] >= 0));
    }
    return certain;
}

uint32_t
gpu_tensor_find(const gpu_tensor_t *tensors, uint32_t count, gpu_word_t name)
{
    uint32_t i = 0;

    while (i < count && !gpu_word_is(name, tensors[i].name)) {
        i++;
    }
    return i;
}

bool
gpu_shape_count(gpu_shape_t *shape, const gpu_tensor_t *tensor, int64_t batch)
{
    shape->elements = batch;
    for (uint32_t i = 0; i < tensor->dims_count; i++) {
        if (shape->dims[i] < 0 || __builtin_mul_overflow(shape->elements,
            shape->dims[i], &shape->elements))
        {
            return false;
        }
    }

    return !__builtin_mul_overflow(shape->elements, (int64_t) tensor->size,
        &shape->bytes);
}

static int64_t
leaf_value(const gpu_step_t *s, const gpu_shapes_t *shapes)
{
    const gpu_shape_t *t = &shapes->tensors[s->tensor];

    return s->kind == GPU_STEP_NUMBER ? s->number
        : s->kind == GPU_STEP_BATCH ? shapes->batch
        : s->kind == GPU_STEP_DIM ? t->dims[s->dim]
        : s->kind == GPU_STEP_ELEMENTS ? t->elements
        : t->bytes;
}

static bool
combine(gpu_step_kind_t kind, int64_t a, int64_t b, int64_t *out)
{
    bool divisible = b != 0 && (a != INT64_MIN || b != -1);

    switch (kind) {
    case GPU_STEP_NUMBER:
    case GPU_STEP_BATCH:
    case GPU_STEP_DIM:
    case GPU_STEP_ELEMENTS:
    case GPU_STEP_BYTES:
        return false;
    case GPU_STEP_NEGATE:
    case GPU_STEP_SUBTRACT:
        return !__builtin_sub_overflow(a, b, out);
    case GPU_STEP_ADD:
        return !__builtin_add_overflow(a, b, out);
    case GPU_STEP_MULTIPLY:
        return !__builtin_mul_overflow(a, b, out);
    case GPU_STEP_DIVIDE:
        *out = divisible ? a / b : 0;
        return divisible;
    case GPU_STEP_REST:
        *out = divisible ? a % b : 0;
        return divisible;
    case GPU_STEP_CEILDIV:
        *out = divisible ? ceildiv(a, b) : 0;
        return divisible;
    case GPU_STEP_MIN:
        *out = a < b ? a : b;
        return true;
    case GPU_STEP_MAX:
        *out = a > b ? a : b;
        return true;
    }

    return false;
}

/* Rounds towards plus infinity. */
static int64_t
ceildiv(int64_t a, int64_t b)
{
    int64_t q = a / b;

    return q + (a % b != 0 && (a < 0) == (b < 0));
}
