/* Any text as a line of backend cuda: a kernel, a rule or a requirement.  Each
   that is read gives a value or an error for any shapes, and the same when it
   is asked again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "backends/common/error.c"
#include "backends/cuda/buffer.c"
#include "backends/cuda/expression.c"
#include "backends/cuda/expression_read.c"
#include "backends/cuda/kernel.c"
#include "backends/cuda/reader.c"
#include "backends/cuda/requirement.c"
#include "backends/cuda/rule.c"
#include "check.h"
#include "input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const int64_t dims[] = { -1, -1, -1 };
static const gpu_tensor_t tensors[] = {
    { .name = "x", .dims = dims, .dims_count = 3, .size = 8 },
    { .name = "in-2", .dims = dims, .dims_count = 1, .size = 1 }
};
static const gpu_buffer_t buffers[] = {
    { .name = "tmp" }, { .name = "w", .file = "w.bin", .file_bytes = 1000 }
};
static const gpu_names_t names = {
    .tensors = tensors, .tensor_count = 2, .buffers = buffers,
    .buffer_count = 2
};

static bool
passes(TRITONSERVER_Error *err)
{
    if (err == NULL) {
        return true;
    }

    check(TRITONSERVER_ErrorMessage(err)[0] != '\0');
    TRITONSERVER_ErrorDelete(err);
    return false;
}

/* Twice the same, and no sign of the machine's own limits. */
static void
evaluate(const gpu_expression_t *e, const gpu_shapes_t *shapes)
{
    int64_t a = 1, b = 2;

    if (e->count == 0) {
        return;
    }
    check(e->count <= GPU_STEPS_MAX);
    bool done = passes(gpu_expression_value(e, shapes, "v", &a));
    check(passes(gpu_expression_value(e, shapes, "v", &b)) == done);
    check(!done || a == b);
}

static void
try_kernel(const char *text, const gpu_shapes_t *shapes)
{
    gpu_kernel_t k;

    if (passes(gpu_kernel_read(&k, "kernel_1", text, &names))) {
        check(k.name[0] != '\0' && k.argument_count <= GPU_ARGUMENTS_MAX);
        for (int i = 0; i < 3; i++) {
            evaluate(&k.grid[i], shapes);
            evaluate(&k.block[i], shapes);
        }
        evaluate(&k.shared, shapes);
        for (uint32_t i = 0; i < k.argument_count; i++) {
            const gpu_argument_t *a = &k.arguments[i];
            check(a->kind != GPU_ARGUMENT_TENSOR || a->index < 2);
            check(a->kind != GPU_ARGUMENT_BUFFER || a->index < 2);
            evaluate(&a->value, shapes);
        }
    }
    gpu_kernel_fini(&k);
}

static void
try_rule(const char *text, const gpu_shapes_t *shapes)
{
    for (uint32_t i = 0; i < 2; i++) {
        gpu_shape_t out = { .elements = 0 };
        gpu_rule_t rule = { .count = 0 };

        if (passes(gpu_rule_read(&rule, &tensors[i], "shape_x", text,
                &names))
            && passes(gpu_rule_apply(&rule, &tensors[i], shapes, &out)))
        {
            for (uint32_t d = 0; d < tensors[i].dims_count; d++) {
                check(out.dims[d] >= 0);
            }
            if (gpu_shape_count(&out, &tensors[i], shapes->batch)) {
                check(out.elements >= 0 && out.bytes >= out.elements);
            }
        }
        gpu_rule_fini(&rule);
    }
}

static void
try_requirement(const char *text, const gpu_shapes_t *shapes)
{
    gpu_requirement_t q;

    if (passes(gpu_requirement_read(&q, "require_1", text, &names))) {
        check(passes(gpu_requirement_check_certain(&q, &names))
            == passes(gpu_requirement_check_certain(&q, &names)));
        evaluate(&q.sides[0], shapes);
        evaluate(&q.sides[1], shapes);
        check(passes(gpu_requirement_check(&q, shapes))
            == passes(gpu_requirement_check(&q, shapes)));
    }
    gpu_requirement_fini(&q);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input_t in = { .data = data, .size = size };
    gpu_shape_t shape[2] = { { .elements = 0 }, { .elements = 0 } };

    /* numbers of any size, most of them small */
    gpu_shapes_t shapes = { .batch = (int64_t) input_next(&in, 1) + 1,
        .tensors = shape };
    for (int i = 0; i < 4; i++) {
        int64_t dim = (int64_t) (input_next(&in, 1) % 2 != 0
            ? input_next(&in, 1) : input_next(&in, 8) >> 1);
        shape[i / 3].dims[i % 3] = dim;
        shape[i / 3].elements = dim;
        shape[i / 3].bytes = dim;
    }

    char *text = malloc(in.size + 1);
    check(text != NULL);
    if (in.size > 0) {
        memcpy(text, in.data, in.size);
    }
    text[in.size] = '\0';

    try_kernel(text, &shapes);
    try_rule(text, &shapes);
    try_requirement(text, &shapes);
    free(text);
    return 0;
}
