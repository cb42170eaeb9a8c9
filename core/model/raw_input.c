#include "core/model/raw_input.h"

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
    uint32_t batched = inf_config_tensors_max_batch_size(model->tensors) > 0;
    int64_t shape[INF_MAX_DIMS + 1];
    uint32_t dims = 0;
    uint64_t fixed = 1;
    int variable = -1;

    if (t->dim_count > INF_MAX_DIMS) {
        return inf_err_new(INF_ERR_UNSUPPORTED, "input '%s' of model '%s' has"
            " too many dimensions for raw binary data", t->name.data,
            model->name);
    }

    if (batched) {
        shape[dims++] = 1;
    }
    for (uint32_t i = 0; i < t->dim_count; i++) {
        if (t->dims[i] >= 0) {
            fixed *= (uint64_t) t->dims[i];
        } else if (variable >= 0) {
            return inf_err_new(INF_ERR_INVALID_ARG, "The shape of the raw input"
                " '%s' can not be deduced because there are more than one"
                " variable-sized dimension", t->name.data);
        } else {
            variable = (int) dims;
        }
        shape[dims++] = t->dims[i];
    }

    bool bytes = t->datatype == INF_TYPE_BYTES;
    if (bytes && (t->dim_count != 1 || t->dims[0] != 1)) {
        return inf_err_new(INF_ERR_INVALID_ARG, "For BYTE datatype raw input"
            " '%s', the model must have input shape [1]", t->name.data);
    }

    if (variable >= 0) {
        uint64_t row = fixed * inf_datatype_size(t->datatype);
        if (row == 0 || data->size % row != 0) {
            return inf_err_new(INF_ERR_INVALID_ARG, "The shape of the raw input"
                " '%s' can not be deduced: %llu bytes are not a multiple of"
                " %llu", t->name.data, (unsigned long long) data->size,
                (unsigned long long) row);
        } else {
            shape[variable] = (int64_t) (data->size / row);
        }
    }

    inf_input_t *in = inf_request_add_input(req, t->name.data, t->name.len,
        (inf_datatype_t) t->datatype, shape, dims);
    if (in == NULL) {
        return inf_err_nomem();
    }

    if (bytes) {
        if (data->size > UINT32_MAX) {
            return inf_err_new(INF_ERR_INVALID_ARG,
                "raw input '%s' is longer than 4 GiB", t->name.data);
        }

        uint32_t *prefix = inf_arena_alloc(&req->arena, sizeof(*prefix));
        if (prefix == NULL) {
            return inf_err_nomem();
        }
        *prefix = (uint32_t) data->size;

        inf_err_t *err = inf_request_add_data(req, in,
            &(inf_buffer_t) { .base = prefix, .size = sizeof(*prefix) });
        if (err != NULL) {
            return err;
        }
    }

    return inf_request_add_data(req, in, data);
}
