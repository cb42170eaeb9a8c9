/* tensors.c - see tensors.h */

#include "tensors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void input_apply(bk_tensor_t *in, const bk_tensors_t *t,
    const bk_model_config_t *config);
static uint32_t input_index(const bk_tensors_t *t, const char *name);
static const bk_tensor_t *tensor_find(const bk_tensor_t *list,
    uint32_t count, const char *name);
static void tensors_free(bk_tensor_t *list, uint32_t count);

TRITONSERVER_Error *
bk_tensors_init(bk_tensors_t *t, uint32_t required_count,
    uint32_t default_count, uint32_t output_count)
{
    size_t inputs = (size_t) required_count + default_count;

    *t = (bk_tensors_t) { 0 };
    if (inputs > INT32_MAX || output_count > INT32_MAX) {
        return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
            "%zu inputs and %" PRIu32 " outputs", inputs, output_count);
    }

    t->inputs = calloc(inputs + 1, sizeof(*t->inputs));
    t->outputs = calloc((size_t) output_count + 1, sizeof(*t->outputs));
    if (t->inputs == NULL || t->outputs == NULL) {
        bk_tensors_fini(t);
        return bk_err_nomem("table of a model's tensors");
    }

    t->required_count = required_count;
    t->input_count = (uint32_t) inputs;
    t->output_count = output_count;
    for (uint32_t i = required_count; i < t->input_count; i++) {
        t->inputs[i].has_default = true;
    }

    return NULL;
}

void
bk_tensors_fini(bk_tensors_t *t)
{
    tensors_free(t->inputs, t->input_count);
    tensors_free(t->outputs, t->output_count);
    *t = (bk_tensors_t) { 0 };
}

TRITONSERVER_Error *
bk_tensor_set(bk_tensor_t *t, const char *name,
    TRITONSERVER_DataType datatype, const int64_t *dims, uint32_t dims_count)
{
    if (dims_count > BK_MAX_DIMS) {
        return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
            "tensor \"%s\" has %" PRIu32 " dimensions, more than %d", name,
            dims_count, BK_MAX_DIMS);
    }

    t->name = strdup(name);
    t->dims = calloc((size_t) dims_count + 1, sizeof(*t->dims));
    if (t->name == NULL || t->dims == NULL) {
        return bk_err_nomem("a tensor's name and dimensions");
    }

    t->datatype = datatype;
    t->dims_count = dims_count;
    for (uint32_t i = 0; i < dims_count; i++) {
        t->dims[i] = dims[i];
    }

    return NULL;
}

TRITONSERVER_Error *
bk_tensor_set_configured(bk_tensor_t *t, const bk_tensor_config_t *config,
    bool batching)
{
    int64_t dims[BK_MAX_DIMS + 1] = { -1 };
    uint32_t count = batching ? 1 : 0;

    for (uint32_t i = 0; i < config->model_dims_count && count <= BK_MAX_DIMS;
        i++)
    {
        dims[count++] = config->model_dims[i];
    }

    return bk_tensor_set(t, config->name, config->datatype, dims, count);
}

void
bk_tensors_apply_config(bk_tensors_t *t, const bk_model_config_t *config)
{
    for (uint32_t i = 0; i < t->input_count; i++) {
        input_apply(&t->inputs[i], t, config);
    }

    for (uint32_t i = 0; i < t->output_count; i++) {
        bk_tensor_t *one = &t->outputs[i];

        one->state = bk_sequence_has_output(&config->sequence, one->name);
        one->passthrough = bk_tensors_input(t, one->name) != NULL;
    }

    for (uint32_t k = 0; k < config->output_count; k++) {
        const bk_tensor_config_t *c = &config->outputs[k];
        bk_tensor_t *one = t->outputs + (bk_tensors_output(t, c->name)
            - t->outputs);

        one->batch_output = bk_batch_output_find(&config->batch, c->name);
        one->shape = c;
        if (one->batch_output != NULL) {
            one->source = input_index(t, one->batch_output->source);
        }
    }
}

const bk_tensor_t *
bk_tensors_input(const bk_tensors_t *t, const char *name)
{
    return tensor_find(t->inputs, t->input_count, name);
}

const bk_tensor_t *
bk_tensors_output(const bk_tensors_t *t, const char *name)
{
    return tensor_find(t->outputs, t->output_count, name);
}

bool
bk_shape_matches(const bk_tensor_t *t, const int64_t *shape,
    uint32_t dims_count)
{
    uint32_t ones;

    if (t->dims_count == 0) {
        const int64_t *dims = bk_scalar_shape(t, &ones);

        return dims_count == 0 || (dims_count == ones
            && memcmp(dims, shape, ones * sizeof(*dims)) == 0);
    }

    if (t->dims_count != dims_count) {
        return false;
    }

    for (uint32_t i = 0; i < dims_count; i++) {
        if (t->dims[i] != -1 && t->dims[i] != shape[i]) {
            return false;
        }
    }

    return true;
}

const int64_t *
bk_scalar_shape(const bk_tensor_t *t, uint32_t *dims_count)
{
    static const int64_t one = 1;

    const bk_tensor_config_t *c = t->shape;
    uint64_t elements;

    if (c == NULL
        || !bk_elements(c->model_dims, c->model_dims_count, &elements)
        || elements != 1)
    {
        *dims_count = 1;
        return &one;
    }

    *dims_count = c->model_dims_count;
    return c->model_dims;
}

bool
bk_elements(const int64_t *shape, uint32_t dims_count, uint64_t *elements)
{
    uint64_t n = 1;

    for (uint32_t i = 0; i < dims_count; i++) {
        if (shape[i] < 0
            || __builtin_mul_overflow(n, (uint64_t) shape[i], &n))
        {
            return false;
        }
    }

    *elements = n;
    return true;
}

const char *
bk_dims_text(const int64_t *dims, uint32_t count, char *text, size_t size)
{
    size_t len = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i <= count && len < size; i++) {
        if (i < count) {
            len += (size_t) snprintf(text + len, size - len, "%s%" PRId64,
                i == 0 ? "[" : ",", dims[i]);

        } else {
            len += (size_t) snprintf(text + len, size - len, "%s",
                count == 0 ? "[]" : "]");
        }
    }

    return text;
}

static void
input_apply(bk_tensor_t *in, const bk_tensors_t *t,
    const bk_model_config_t *config)
{
    in->control = bk_sequence_has_control(&config->sequence, in->name);
    in->batch_input = bk_batch_input_find(&config->batch, in->name);
    if (in->batch_input != NULL) {
        in->source = input_index(t, in->batch_input->source);
    }

    for (uint32_t k = 0; k < config->input_count; k++) {
        const bk_tensor_config_t *c = &config->inputs[k];

        if (strcmp(c->name, in->name) == 0) {
            in->shape = c;
            in->ragged |= c->ragged && config->max_batch_size > 0;
        }
    }
}

/* of one that is there */
static uint32_t
input_index(const bk_tensors_t *t, const char *name)
{
    return (uint32_t) (bk_tensors_input(t, name) - t->inputs);
}

static const bk_tensor_t *
tensor_find(const bk_tensor_t *list, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(list[i].name, name) == 0) {
            return &list[i];
        }
    }

    return NULL;
}

static void
tensors_free(bk_tensor_t *list, uint32_t count)
{
    for (uint32_t i = 0; list != NULL && i < count; i++) {
        free(list[i].name);
        free(list[i].dims);
        free(list[i].symbol);
    }
    free(list);
}
