#include "core/model/config_tensors.h"

#include <string.h>
#include <stdlib.h>

#include "core/base/arena.h"
#include "core/base/log.h"
#include "core/model/config_names.h"

/* Inputs, or outputs. */
typedef struct {
    inf_config_tensor_t *items;
    uint32_t             count;
    inf_config_names_t          names;
} tensor_list_t;

struct inf_config_tensors_s {
    inf_arena_t   arena;
    tensor_list_t inputs;
    tensor_list_t outputs;
    const char  **output_names;     /* sorted                              */
    uint32_t      max_batch_size;
    uint32_t      required;
};

static inf_err_t *tensors_fill(inf_config_tensors_t *t,
    const Inference__ModelConfig *msg);
static inf_err_t *tensors_input(inf_config_tensors_t *t,
    const Inference__ModelInput *in, const char *model);
static inf_err_t *tensors_output(inf_config_tensors_t *t,
    const Inference__ModelOutput *o, const char *model);
static inf_err_t *list_reserve(inf_config_tensors_t *t, tensor_list_t *list,
    size_t count);
static inf_err_t *list_add(inf_config_tensors_t *t, tensor_list_t *list,
    const inf_config_tensor_t *view, const char *side, const char *model,
    bool *added);
static inf_err_t *outputs_rank(inf_config_tensors_t *t);
static int by_name(const void *a, const void *b);
static bool tensor_shape_copy(inf_arena_t *arena, const int64_t **shape,
    uint32_t count);
static void tensor_shape_view(inf_config_tensor_t *v, const int64_t *dims,
    size_t dim_count, const Inference__ModelTensorReshape *reshape);
static void tensor_count_elements(inf_config_tensor_t *v);
static const inf_config_tensor_t *list_find(const tensor_list_t *list,
    inf_slice_t name);

inf_err_t *
inf_config_tensors_new(const Inference__ModelConfig *msg,
    inf_config_tensors_t **out)
{
    inf_config_tensors_t *t = calloc(1, sizeof(*t));
    if (t == NULL) {
        return inf_err_nomem();
    }

    inf_arena_init(&t->arena);
    inf_config_names_init(&t->inputs.names);
    inf_config_names_init(&t->outputs.names);
    t->max_batch_size = msg->max_batch_size > 0
        ? (uint32_t) msg->max_batch_size : 0;

    inf_err_t *err = tensors_fill(t, msg);
    if (err != NULL) {
        inf_config_tensors_free(t);
        return err;
    }

    *out = t;
    return NULL;
}

void
inf_config_tensors_free(inf_config_tensors_t *t)
{
    if (t == NULL) {
        return;
    }

    inf_config_names_fini(&t->inputs.names);
    inf_config_names_fini(&t->outputs.names);
    inf_arena_fini(&t->arena);
    free(t);
}

uint32_t
inf_config_tensors_max_batch_size(const inf_config_tensors_t *t)
{
    return t->max_batch_size;
}

uint32_t
inf_config_tensors_input_count(const inf_config_tensors_t *t)
{
    return t->inputs.count;
}

uint32_t
inf_config_tensors_required_count(const inf_config_tensors_t *t)
{
    return t->required;
}

uint32_t
inf_config_tensors_output_count(const inf_config_tensors_t *t)
{
    return t->outputs.count;
}

const inf_config_tensor_t *
inf_config_tensors_input(const inf_config_tensors_t *t, uint32_t index)
{
    return &t->inputs.items[index];
}

const inf_config_tensor_t *
inf_config_tensors_output(const inf_config_tensors_t *t, uint32_t index)
{
    return &t->outputs.items[index];
}

const char *const *
inf_config_tensors_output_names(const inf_config_tensors_t *t)
{
    return t->output_names;
}

const inf_config_tensor_t *
inf_config_tensors_find_input(const inf_config_tensors_t *t,
    inf_slice_t name)
{
    return list_find(&t->inputs, name);
}

const inf_config_tensor_t *
inf_config_tensors_find_output(const inf_config_tensors_t *t,
    inf_slice_t name)
{
    return list_find(&t->outputs, name);
}

static inf_err_t *
tensors_fill(inf_config_tensors_t *t, const Inference__ModelConfig *msg)
{
    inf_err_t *err = list_reserve(t, &t->inputs, msg->n_input);
    if (err == NULL) {
        err = list_reserve(t, &t->outputs, msg->n_output);
    }

    for (size_t i = 0; err == NULL && i < msg->n_input; i++) {
        err = tensors_input(t, msg->input[i], msg->name);
    }

    for (size_t i = 0; err == NULL && i < msg->n_output; i++) {
        err = tensors_output(t, msg->output[i], msg->name);
    }

    return err == NULL ? outputs_rank(t) : err;
}

static inf_err_t *
tensors_input(inf_config_tensors_t *t, const Inference__ModelInput *in,
    const char *model)
{
    inf_config_tensor_t view = {
        .name = inf_slice_str(in->name),
        .datatype = (uint32_t) in->data_type,
        .optional = in->optional,
        .ragged = in->allow_ragged_batch,
        .shape_tensor = in->is_shape_tensor,
        .non_linear = in->is_non_linear_format_io,
    };
    bool added;

    tensor_shape_view(&view, in->dims, in->n_dims, in->reshape);
    inf_err_t *err = list_add(t, &t->inputs, &view, "input", model, &added);
    if (err == NULL && added && !in->optional) {
        t->required++;
    }

    return err;
}

static inf_err_t *
tensors_output(inf_config_tensors_t *t, const Inference__ModelOutput *o,
    const char *model)
{
    inf_config_tensor_t view = {
        .name = inf_slice_str(o->name),
        .datatype = (uint32_t) o->data_type,
        .shape_tensor = o->is_shape_tensor,
        .non_linear = o->is_non_linear_format_io,
    };
    bool added;

    tensor_shape_view(&view, o->dims, o->n_dims, o->reshape);
    return list_add(t, &t->outputs, &view, "output", model, &added);
}

static inf_err_t *
list_reserve(inf_config_tensors_t *t, tensor_list_t *list, size_t count)
{
    if (count >= INF_CONFIG_NAMES_NONE) {
        return inf_err_nomem();
    }

    list->items = inf_arena_calloc(&t->arena, count + 1,
        sizeof(*list->items));
    return list->items == NULL ? inf_err_nomem() : NULL;
}

/* Copies view into the list; of equal names the first is kept. */
static inf_err_t *
list_add(inf_config_tensors_t *t, tensor_list_t *list,
    const inf_config_tensor_t *view, const char *side, const char *model,
    bool *added)
{
    inf_config_tensor_t *item = &list->items[list->count];
    *item = *view;
    item->index = list->count;
    item->name.data = inf_arena_strdup(&t->arena, view->name.data,
        view->name.len);

    *added = false;
    if (item->name.data == NULL
        || !tensor_shape_copy(&t->arena, &item->dims, item->dim_count)
        || !tensor_shape_copy(&t->arena, &item->reshape,
            item->reshape_count))
    {
        return inf_err_nomem();
    }

    switch (inf_config_names_add(&list->names, item->name, list->count)) {
    case INF_CONFIG_NAMES_ADDED:
        list->count++;
        *added = true;
        return NULL;
    case INF_CONFIG_NAMES_KNOWN:
        inf_log(INF_LOG_WARN, "model '%s': %s '%s' is configured more than "
            "once; the first one counts", model, side, item->name.data);
        return NULL;
    case INF_CONFIG_NAMES_NOMEM:
        break;
    }

    return inf_err_nomem();
}

static inf_err_t *
outputs_rank(inf_config_tensors_t *t)
{
    uint32_t count = t->outputs.count;
    const inf_config_tensor_t **sorted = calloc(count + (size_t) 1,
        sizeof(*sorted));

    t->output_names = inf_arena_calloc(&t->arena, count + (size_t) 1,
        sizeof(*t->output_names));
    if (sorted == NULL || t->output_names == NULL) {
        free(sorted);
        return inf_err_nomem();
    }

    for (uint32_t i = 0; i < count; i++) {
        sorted[i] = &t->outputs.items[i];
    }
    qsort(sorted, count, sizeof(*sorted), by_name);
    for (uint32_t rank = 0; rank < count; rank++) {
        t->outputs.items[sorted[rank]->index].rank = rank;
        t->output_names[rank] = sorted[rank]->name.data;
    }

    free(sorted);
    return NULL;
}

static int
by_name(const void *a, const void *b)
{
    const inf_config_tensor_t *const *one = a;
    const inf_config_tensor_t *const *other = b;

    return strcmp((*one)->name.data, (*other)->name.data);
}

static bool
tensor_shape_copy(inf_arena_t *arena, const int64_t **shape, uint32_t count)
{
    if (count == 0) {
        *shape = NULL;
        return true;
    }

    int64_t *copy = inf_arena_calloc(arena, count, sizeof(*copy));
    if (copy == NULL) {
        return false;
    }

    memcpy(copy, *shape, count * sizeof(*copy));
    *shape = copy;
    return true;
}

static void
tensor_shape_view(inf_config_tensor_t *v, const int64_t *dims,
    size_t dim_count, const Inference__ModelTensorReshape *reshape)
{
    v->dims = dims;
    v->dim_count = (uint32_t) dim_count;
    tensor_count_elements(v);

    if (reshape != NULL) {
        v->has_reshape = true;
        v->reshape = reshape->shape;
        v->reshape_count = (uint32_t) reshape->n_shape;
    }
}

/* Sets the product of dims, which validation has bounded. */
static void
tensor_count_elements(inf_config_tensor_t *v)
{
    uint64_t product = 1;

    for (uint32_t i = 0; i < v->dim_count; i++) {
        if (v->dims[i] < 0) {
            v->variable = true;
            v->elements = -1;
            return;
        }

        product *= (uint64_t) v->dims[i];
    }

    v->elements = (int64_t) product;
}

static const inf_config_tensor_t *
list_find(const tensor_list_t *list, inf_slice_t name)
{
    uint32_t at = inf_config_names_find(&list->names, name);
    return at == INF_CONFIG_NAMES_NONE ? NULL : &list->items[at];
}
