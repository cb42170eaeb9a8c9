#include "core/sched/compatibility.h"

#include <string.h>

static bool input_matters(const inf_config_tensor_t *t);
static const inf_input_t *counterpart(const inf_request_t *r,
    const char *name, uint32_t hint);
static bool same_shape(const inf_input_t *a, const inf_input_t *b,
    uint32_t from);
static bool same_contents(const inf_input_t *a, const inf_input_t *b);

bool
inf_compatibility_matters(const inf_config_tensors_t *tensors)
{
    uint32_t count = inf_config_tensors_input_count(tensors);

    for (uint32_t i = 0; i < count; i++) {
        const inf_config_tensor_t *t = inf_config_tensors_input(tensors, i);
        if (t->optional || input_matters(t)) {
            return true;
        }
    }

    return false;
}

/* Clients' inputs are those of the configuration, as normalising has checked;
   inputs_added counts inputs added when the request ran before. */
bool
inf_compatible(const inf_config_tensors_t *tensors, const inf_request_t *a,
    const inf_request_t *b)
{
    uint32_t batched = inf_config_tensors_max_batch_size(tensors) > 0;

    uint32_t count = a->input_count - a->inputs_added;

    if (count != b->input_count - b->inputs_added) {
        return false;           /* an optional input differs                 */
    }

    for (uint32_t i = 0; i < count; i++) {
        const inf_input_t *x = &a->inputs[i];
        const inf_input_t *y = counterpart(b, x->name, i);
        const inf_config_tensor_t *t = inf_config_tensors_find_input(tensors,
            inf_slice_str(x->name));

        if (y == NULL) {
            return false;
        }
        if (t == NULL || !input_matters(t)) {
            continue;
        }
        if (!same_shape(x, y, batched)
            || (t->shape_tensor && !same_contents(x, y)))
        {
            return false;
        }
    }

    return true;
}

static bool
input_matters(const inf_config_tensor_t *t)
{
    return t->shape_tensor || (t->variable && !t->ragged);
}

/* The input of that name; most clients send inputs in the same order (hint). */
static const inf_input_t *
counterpart(const inf_request_t *r, const char *name, uint32_t hint)
{
    if (hint < r->input_count && strcmp(r->inputs[hint].name, name) == 0) {
        return &r->inputs[hint];
    }

    return inf_request_find_input(r, name);
}

static bool
same_shape(const inf_input_t *a, const inf_input_t *b, uint32_t from)
{
    return a->dim_count == b->dim_count && (a->dim_count <= from
        || memcmp(a->shape + from, b->shape + from,
            (a->dim_count - from) * sizeof(*a->shape)) == 0);
}

/* Compares contents that are contiguous in CPU memory; other contents
   differ. */
static bool
same_contents(const inf_input_t *a, const inf_input_t *b)
{
    if (a->byte_size != b->byte_size) {
        return false;
    }
    if (a->byte_size == 0) {
        return true;
    }

    return a->buffer_count == 1 && b->buffer_count == 1
        && a->buffers[0].memory_type != INF_MEMORY_GPU
        && b->buffers[0].memory_type != INF_MEMORY_GPU
        && memcmp(a->buffers[0].base, b->buffers[0].base, a->byte_size) == 0;
}
