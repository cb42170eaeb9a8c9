/* certain_rows.c - see certain_rows.h */

#include "certain_rows.h"

#include "ports.h"

#include <stdlib.h>
#include <string.h>

#define SYMBOL "rows"
#define OPEN   -1

static bool is_candidate(const bk_tensor_t *t);
static bool at_rows(const vino_runtime_t *rt, const ov_model_t *model,
    const bk_model_config_t *config, const bk_tensors_t *tensors,
    int64_t rows);
static bool has_rows(const vino_runtime_t *rt, const ov_model_t *model,
    uint32_t i, const bk_tensor_t *t, int64_t rows);
static TRITONSERVER_Error *symbol_set(bk_tensor_t *t);

TRITONSERVER_Error *
vino_certain_rows_mark(const vino_runtime_t *rt, const ov_model_t *model,
    const bk_model_config_t *config, bk_tensors_t *tensors)
{
    const int64_t sizes[] = { 2, 7, config->max_batch_size };
    bool any = false;

    bool *certain = calloc((size_t) tensors->output_count + 1, sizeof(bool));
    if (certain == NULL) {
        return bk_err_nomem("outputs of a model");
    }

    for (uint32_t i = 0; i < tensors->output_count; i++) {
        certain[i] = is_candidate(&tensors->outputs[i]);
        any = any || certain[i];
    }

    bool reshaped = any;
    for (size_t k = 0; any && k < sizeof(sizes) / sizeof(sizes[0]); k++) {
        any = at_rows(rt, model, config, tensors, sizes[k]);
        for (uint32_t i = 0; any && i < tensors->output_count; i++) {
            certain[i] = certain[i] && has_rows(rt, model, i,
                &tensors->outputs[i], sizes[k]);
        }
    }

    /* it is compiled again from these shapes if a run fails */
    TRITONSERVER_Error *err = !reshaped
        || at_rows(rt, model, config, tensors, OPEN) ? NULL
        : bk_err_new(TRITONSERVER_ERROR_INTERNAL,
        "cannot restore the open shapes of the model");
    for (uint32_t i = 0; any && err == NULL && i < tensors->output_count;
         i++)
    {
        err = certain[i] ? symbol_set(&tensors->outputs[i]) : NULL;
    }
    for (uint32_t i = 0; any && err == NULL && i < tensors->input_count;
         i++)
    {
        err = vino_ports_batched(config, tensors->inputs[i].name)
            ? symbol_set(&tensors->inputs[i]) : NULL;
    }

    free(certain);
    return err;
}

/* Only the first dimension is open. */
static bool
is_candidate(const bk_tensor_t *t)
{
    if (t->dims_count == 0 || t->dims[0] != -1) {
        return false;
    }

    for (uint32_t d = 1; d < t->dims_count; d++) {
        if (t->dims[d] == -1) {
            return false;
        }
    }

    return true;
}

/* Gives the model's inputs so many rows; false if it cannot take them. */
static bool
at_rows(const vino_runtime_t *rt, const ov_model_t *model,
    const bk_model_config_t *config, const bk_tensors_t *tensors,
    int64_t rows)
{
    uint32_t count = tensors->input_count;
    ov_partial_shape_t *shapes = calloc((size_t) count + 1, sizeof(*shapes));
    size_t *indexes = calloc((size_t) count + 1, sizeof(*indexes));
    bool fits = shapes != NULL && indexes != NULL;
    uint32_t made = 0;

    while (fits && made < count) {
        ov_partial_shape_t *shape = &shapes[made];
        TRITONSERVER_Error *err = vino_ports_input_shape(rt, model, made,
            shape);

        fits = err == NULL;
        bk_err_drop(err);
        if (fits) {
            indexes[made] = made;
            fits = !rt->f.ov_rank_is_dynamic(shape->rank);
            if (fits && shape->rank.min > 0
                && vino_ports_batched(config, tensors->inputs[made].name))
            {
                shape->dims[0] = (ov_dimension_t) { rows, rows };
            }
            made++;
        }
    }

    if (fits) {
        TRITONSERVER_Error *err = vino_err(rt,
            rt->f.ov_model_reshape_by_port_indexes(model, indexes, shapes,
            count), "rows");
        fits = err == NULL;
        bk_err_drop(err);
    }

    while (made > 0) {
        rt->f.ov_partial_shape_free(&shapes[--made]);
    }
    free(shapes);
    free(indexes);
    return fits;
}

static bool
has_rows(const vino_runtime_t *rt, const ov_model_t *model, uint32_t i,
    const bk_tensor_t *t, int64_t rows)
{
    ov_partial_shape_t shape = { 0 };

    TRITONSERVER_Error *err = vino_ports_output_shape(rt, model, i, &shape);
    if (err != NULL) {
        bk_err_drop(err);
        return false;
    }

    bool has = !rt->f.ov_rank_is_dynamic(shape.rank)
        && shape.rank.min == (int64_t) t->dims_count;
    for (uint32_t d = 0; has && d < t->dims_count; d++) {
        int64_t expected = d == 0 ? rows : t->dims[d];
        has = shape.dims[d].min == expected && shape.dims[d].max == expected;
    }

    rt->f.ov_partial_shape_free(&shape);
    return has;
}

static TRITONSERVER_Error *
symbol_set(bk_tensor_t *t)
{
    free(t->symbol);
    t->symbol = strdup(SYMBOL);
    return t->symbol == NULL ? bk_err_nomem("dimension of a tensor") : NULL;
}
