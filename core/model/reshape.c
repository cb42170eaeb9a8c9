#include "core/model/reshape.h"

inf_err_t *
inf_input_reshape(inf_request_t *req, inf_input_t *in,
    const inf_config_tensor_t *t, uint32_t batched)
{
    uint32_t count = t->reshape_count + batched;
    int64_t *shape = inf_arena_alloc(&req->arena, count * sizeof(*shape));
    if (shape == NULL) {
        return inf_err_nomem();
    }

    if (batched) {
        shape[0] = in->shape[0];
    }

    uint32_t from = 0;
    for (uint32_t i = 0; i < t->reshape_count; i++) {
        if (t->reshape[i] != -1) {
            shape[i + batched] = t->reshape[i];
            continue;
        }

        while (from < t->dim_count && t->dims[from] != -1) {
            from++;
        }
        if (from == t->dim_count) {
            return inf_err_new(INF_ERR_INTERNAL,
                "input '%s': reshape has more variable dimensions than dims",
                in->name);
        }
        shape[i + batched] = in->shape[from + batched];
        from++;
    }

    in->model_shape = shape;
    in->model_dim_count = count;
    return NULL;
}

inf_err_t *
inf_output_undo_reshape(const inf_model_t *model, const inf_config_tensor_t *t,
    const int64_t *shape, uint32_t dims, int64_t *client,
    uint32_t *client_dims)
{
    uint32_t batched = inf_config_tensors_max_batch_size(model->tensors) > 0;
    uint32_t n = 0;

    if (dims < batched || dims - batched != t->reshape_count
        || t->dim_count > INF_MAX_DIMS)
    {
        return inf_err_new(INF_ERR_INVALID_ARG, "output '%s' of model '%s' has"
            " %u dimensions, its reshape says %u", t->name.data, model->name,
            dims, t->reshape_count + batched);
    }

    if (batched) {
        client[n++] = shape[0];
    }

    uint32_t from = 0;
    for (uint32_t i = 0; i < t->dim_count; i++) {
        if (t->dims[i] != -1) {
            client[n++] = t->dims[i];
            continue;
        }

        while (from < t->reshape_count && t->reshape[from] != -1) {
            from++;
        }
        if (from == t->reshape_count) {
            return inf_err_new(INF_ERR_INTERNAL, "output '%s': dims has more"
                " variable dimensions than reshape", t->name.data);
        }
        client[n++] = shape[from + batched];
        from++;
    }

    *client_dims = n;
    return NULL;
}
