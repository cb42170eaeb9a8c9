#include "core/model/raw_input.h"

static inf_err_t *deduce_shape(const inf_config_tensor_t *t, uint64_t size,
    int64_t *shape, uint32_t *dims);
static inf_err_t *add_length(inf_request_t *req, inf_input_t *in,
    uint64_t size);

inf_err_t *
inf_request_add_raw(const inf_model_t *model, inf_request_t *req,
    const inf_buffer_t *data)
{
    if (inf_config_tensors_input_count(model->tensors) != 1) {
        return inf_err_new(INF_ERR_INVALID_ARG, "Raw request must only have 1"
            " input (found 1) to be deduced but got %u inputs in '%s' model"
            " configuration", inf_config_tensors_input_count(model->tensors),
            model->name);
    }

    const inf_config_tensor_t *t = inf_config_tensors_input(model->tensors, 0);
    int64_t shape[INF_MAX_DIMS + 1];
    uint32_t dims = 0;

    if (t->dim_count > INF_MAX_DIMS) {
        return inf_err_new(INF_ERR_UNSUPPORTED, "input '%s' of model '%s' has"
            " too many dimensions for raw binary data", t->name.data,
            model->name);
    }

    if (inf_config_tensors_max_batch_size(model->tensors) > 0) {
        shape[dims++] = 1;
    }
    inf_err_t *err = deduce_shape(t, data->size, shape, &dims);
    if (err != NULL) {
        return err;
    }

    inf_input_t *in = inf_request_add_input(req, t->name.data, t->name.len,
        (inf_datatype_t) t->datatype, shape, dims);
    if (in == NULL) {
        return inf_err_nomem();
    }

    if (t->datatype == INF_TYPE_BYTES) {
        err = add_length(req, in, data->size);
        if (err != NULL) {
            return err;
        }
    }

    return inf_request_add_data(req, in, data);
}

/* Appends the input's dimensions to shape; the size of the data determines one
   variable dimension. */
static inf_err_t *
deduce_shape(const inf_config_tensor_t *t, uint64_t size, int64_t *shape,
    uint32_t *dims)
{
    uint64_t row = inf_datatype_size(t->datatype);
    int64_t *variable = NULL;

    for (uint32_t i = 0; i < t->dim_count; i++) {
        int64_t *dim = &shape[(*dims)++];
        *dim = t->dims[i];
        if (*dim >= 0) {
            row *= (uint64_t) *dim;
        } else if (variable != NULL) {
            return inf_err_new(INF_ERR_INVALID_ARG, "The shape of the raw input"
                " '%s' can not be deduced because there are more than one"
                " variable-sized dimension", t->name.data);
        } else {
            variable = dim;
        }
    }

    if (t->datatype == INF_TYPE_BYTES
        && (t->dim_count != 1 || t->dims[0] != 1))
    {
        return inf_err_new(INF_ERR_INVALID_ARG, "For BYTE datatype raw input"
            " '%s', the model must have input shape [1]", t->name.data);
    }

    if (variable != NULL) {
        if (row == 0 || size % row != 0) {
            return inf_err_new(INF_ERR_INVALID_ARG, "The shape of the raw input"
                " '%s' can not be deduced: %llu bytes are not a multiple of"
                " %llu", t->name.data, (unsigned long long) size,
                (unsigned long long) row);
        }
        *variable = (int64_t) (size / row);
    }

    return NULL;
}

/* Adds the length before a string of a BYTES tensor. */
static inf_err_t *
add_length(inf_request_t *req, inf_input_t *in, uint64_t size)
{
    if (size > UINT32_MAX) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "raw input '%s' is longer than 4 GiB", in->name);
    }

    uint32_t *prefix = inf_arena_alloc(&req->arena, sizeof(*prefix));
    if (prefix == NULL) {
        return inf_err_nomem();
    }

    *prefix = (uint32_t) size;
    return inf_request_add_data(req, in,
        &(inf_buffer_t) { .base = prefix, .size = sizeof(*prefix) });
}
