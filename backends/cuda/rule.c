/* rule.c - see rule.h */

#include "rule.h"

#include <inttypes.h>
#include <stdio.h>

#define TEXT_MAX 512

static bool has_open_dims(const gpu_tensor_t *t);
static bool read_like(gpu_reader_t *r, gpu_word_t *input);

TRITONSERVER_Error *
gpu_rule_read(gpu_rule_t *rule, const gpu_tensor_t *output,
    const char *parameter, const char *text, const gpu_names_t *inputs)
{
    gpu_reader_t r = { .parameter = parameter, .text = text };
    uint32_t count = output->dims_count;
    TRITONSERVER_Error *err = NULL;
    gpu_word_t like;

    if (text == NULL) {
        return !has_open_dims(output) ? NULL
            : bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "output \"%s\" has"
                " open dimensions: parameter \"%s\" must be \"like INPUT\" or"
                " an expression for each dimension", output->name, parameter);
    }

    if (read_like(&r, &like)) {
        uint32_t i = gpu_tensor_find(inputs->tensors, inputs->tensor_count,
            like);
        if (i == inputs->tensor_count
            || inputs->tensors[i].dims_count != count)
        {
            return gpu_reader_error(&r, "there is no input \"%.*s\" of %u"
                " dimensions", (int) like.len, like.text, count);
        }
        for (uint32_t d = 0; err == NULL && d < count; d++) {
            err = gpu_expression_of_dim(&rule->dims[rule->count++], i, d);
        }
        return err;
    }

    for (uint32_t d = 0; err == NULL && d < count; d++) {
        err = d == 0 ? NULL : gpu_reader_expect(&r, ",");
        if (err == NULL) {
            err = gpu_expression_read(&rule->dims[rule->count++], &r,
                inputs);
        }
    }
    return err != NULL || gpu_reader_at_end(&r) ? err
        : gpu_reader_error(&r, "output \"%s\" has %u dimensions besides the"
            " batch", output->name, count);
}

void
gpu_rule_fini(gpu_rule_t *rule)
{
    for (uint32_t d = 0; d < rule->count; d++) {
        gpu_expression_fini(&rule->dims[d]);
    }
    rule->count = 0;
}

TRITONSERVER_Error *
gpu_rule_apply(const gpu_rule_t *rule, const gpu_tensor_t *output,
    const gpu_shapes_t *known, gpu_shape_t *out)
{
    char what[TEXT_MAX];

    for (uint32_t d = 0; d < output->dims_count; d++) {
        out->dims[d] = output->dims[d];
        if (rule->count == 0) {
            continue;
        }

        snprintf(what, sizeof(what), "dimension %u of output \"%s\"", d,
            output->name);
        TRITONSERVER_Error *err = gpu_expression_value(&rule->dims[d], known,
            what, &out->dims[d]);
        if (err != NULL) {
            return err;
        }

        if (out->dims[d] < 0 || (output->dims[d] != -1
            && output->dims[d] != out->dims[d]))
        {
            return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "%s would be %"
                PRId64 ", the configuration has %" PRId64, what, out->dims[d],
                output->dims[d]);
        }
    }

    return NULL;
}

static bool
has_open_dims(const gpu_tensor_t *t)
{
    for (uint32_t d = 0; d < t->dims_count; d++) {
        if (t->dims[d] < 0) {
            return true;
        }
    }
    return false;
}

/* Stays where it is when it is no "like INPUT". */
static bool
read_like(gpu_reader_t *r, gpu_word_t *input)
{
    gpu_reader_t ahead = *r;
    gpu_word_t like;

    if (gpu_reader_word(&ahead, &like) && gpu_word_is(like, "like")
        && gpu_reader_word(&ahead, input) && gpu_reader_at_end(&ahead))
    {
        return true;
    }
    return false;
}
