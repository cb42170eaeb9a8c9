/* requirement.c - see requirement.h */

#include "requirement.h"

#include <inttypes.h>

TRITONSERVER_Error *
gpu_requirement_read(gpu_requirement_t *q, const char *parameter,
    const char *text, const gpu_tensor_t *inputs, uint32_t input_count)
{
    gpu_reader_t r = {
        .parameter = parameter, .text = text != NULL ? text : ""
    };

    *q = (gpu_requirement_t) { .parameter = parameter, .text = r.text };
    TRITONSERVER_Error *err = gpu_expression_read(&q->sides[0], &r, inputs,
        input_count);
    if (err == NULL) {
        err = gpu_reader_expect(&r, "==");
    }
    if (err == NULL) {
        err = gpu_expression_read(&q->sides[1], &r, inputs, input_count);
    }
    return err != NULL || gpu_reader_at_end(&r) ? err
        : gpu_reader_error(&r, "the requirement goes on behind its end");
}

void
gpu_requirement_fini(gpu_requirement_t *q)
{
    gpu_expression_fini(&q->sides[0]);
    gpu_expression_fini(&q->sides[1]);
}

TRITONSERVER_Error *
gpu_requirement_check(const gpu_requirement_t *q, const gpu_shapes_t *known)
{
    int64_t values[2];

    for (int i = 0; i < 2; i++) {
        TRITONSERVER_Error *err = gpu_expression_value(&q->sides[i], known,
            q->parameter, &values[i]);
        if (err != NULL) {
            return err;
        }
    }

    return values[0] == values[1] ? NULL
        : bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "the shapes do not meet"
            " \"%s\" (%s): %" PRId64 " is not %" PRId64, q->text,
            q->parameter, values[0], values[1]);
}
