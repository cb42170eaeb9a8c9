/* requirement.c - see requirement.h */

#include "requirement.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

TRITONSERVER_Error *
gpu_requirement_read(gpu_requirement_t *q, const char *parameter,
    const char *text, const gpu_names_t *inputs)
{
    gpu_reader_t r = {
        .parameter = parameter, .text = text != NULL ? text : ""
    };

    *q = (gpu_requirement_t) { .parameter = parameter, .text = r.text };
    TRITONSERVER_Error *err = gpu_expression_read(&q->sides[0], &r,
        inputs);
    if (err == NULL) {
        err = gpu_reader_expect(&r, "==");
    }
    if (err == NULL) {
        err = gpu_expression_read(&q->sides[1], &r, inputs);
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
gpu_requirement_check_certain(const gpu_requirement_t *q,
    const gpu_names_t *inputs)
{
    uint32_t count = inputs->tensor_count;

    if (!gpu_expression_is_certain(&q->sides[0], inputs->tensors)
        || !gpu_expression_is_certain(&q->sides[1], inputs->tensors))
    {
        return NULL;
    }

    gpu_shape_t *tensors = calloc((size_t) count + 1, sizeof(*tensors));
    if (tensors == NULL) {
        return bk_err_nomem("shapes of a model");
    }
    for (uint32_t i = 0; i < count; i++) {
        memcpy(tensors[i].dims, inputs->tensors[i].dims,
            inputs->tensors[i].dims_count * sizeof(tensors[i].dims[0]));
    }

    TRITONSERVER_Error *err = gpu_requirement_check(q, &(gpu_shapes_t) {
            .tensors = tensors
        });
    free(tensors);
    return err;
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
