#include "core/model/normalize.h"

#include "core/base/buf.h"
#include "core/model/reshape.h"
#include "core/model/wrong_inputs.h"

#define BATCH_NOTE "NOTE: Setting a non-zero max_batch_size in the model"      \
    " config requires a batch dimension to be prepended to each input shape."  \
    " If you want to specify the full shape including the batch dim in your"   \
    " input dims config, try setting max_batch_size to zero. See the model"    \
    " configuration docs for more info on max_batch_size."

static inf_err_t *unexpected(const inf_model_t *model, inf_slice_t output);
static inf_err_t *check_input_set(const inf_model_t *model,
    inf_request_t *req);
static inf_err_t *normalize_input(const inf_model_t *model,
    inf_request_t *req, inf_input_t *in, const inf_config_tensor_t *t);
static inf_err_t *check_shape(const inf_model_t *model, const inf_input_t *in,
    const inf_config_tensor_t *t, uint32_t batched);
static inf_err_t *check_batch(const inf_model_t *model, inf_request_t *req,
    const inf_input_t *in);
static inf_err_t *check_size(const inf_model_t *model, const inf_input_t *in);
static inf_err_t *check_outputs(const inf_model_t *model, inf_request_t *req);
static bool element_count(const int64_t *shape, uint32_t dims, uint64_t *out);
static void put_shape(inf_buf_t *b, const int64_t *shape, uint32_t dims,
    bool leading);

inf_err_t *
inf_request_normalize(const inf_model_t *model, inf_request_t *req)
{
    req->batch_size = 0;
    req->strings_unchecked = false;
    inf_request_move_inputs(req, INF_INPUTS_PRIVATE);
    if (model->private_inputs) {
        inf_request_move_inputs(req, INF_INPUTS_SHARED);
    }

    inf_err_t *err = check_input_set(model, req);
    if (err != NULL) {
        return err;
    }

    for (uint32_t i = 0; i < req->input_count; i++) {
        inf_input_t *in = &req->inputs[i];
        const inf_config_tensor_t *t = inf_config_tensors_find_input(
            model->tensors, inf_slice_str(in->name));

        err = normalize_input(model, req, in, t);
        if (err != NULL) {
            return err;
        }
    }

    return check_outputs(model, req);
}

inf_err_t *
inf_model_knows_output(const inf_model_t *model, inf_slice_t name)
{
    return inf_config_tensors_find_output(model->tensors, name) != NULL ? NULL
        : unexpected(model, name);
}

static inf_err_t *
unexpected(const inf_model_t *model, inf_slice_t output)
{
    return inf_err_because(inf_err_new(INF_ERR_INVALID_ARG, "unexpected"
        " inference output '%.*s' for model '%s'", (int) output.len,
        output.data, model->name), INF_CAUSE_UNNAMED);
}

static inf_err_t *
check_input_set(const inf_model_t *model, inf_request_t *req)
{
    const inf_config_tensors_t *tensors = model->tensors;
    uint32_t required = 0;
    bool *given = inf_arena_calloc(&req->arena,
        inf_config_tensors_input_count(tensors) + (size_t) 1, sizeof(*given));
    if (given == NULL) {
        return inf_err_nomem();
    }

    for (uint32_t i = 0; i < req->input_count; i++) {
        inf_slice_t name = inf_slice_str(req->inputs[i].name);
        const inf_config_tensor_t *t = inf_config_tensors_find_input(tensors,
            name);
        if (t == NULL) {
            return inf_model_unknown_input(model, req, req->inputs[i].name);
        }
        if (given[t->index]) {
            return inf_err_new(INF_ERR_INVALID_ARG,
                "input '%s' already exists in request", req->inputs[i].name);
        }
        given[t->index] = true;
        required += !t->optional;
    }

    if (required != inf_config_tensors_required_count(tensors)) {
        return inf_model_wrong_inputs(model, req);
    }

    return NULL;
}

static inf_err_t *
normalize_input(const inf_model_t *model, inf_request_t *req, inf_input_t *in,
    const inf_config_tensor_t *t)
{
    if (in->datatype != t->datatype) {
        return inf_err_new(INF_ERR_INVALID_ARG, "inference input '%s' data-type"
            " is '%s', but model '%s' expects '%s'", in->name,
            inf_datatype_name(in->datatype), model->name,
            inf_datatype_name(t->datatype));
    }

    uint32_t batched = inf_config_tensors_max_batch_size(model->tensors) > 0;
    if (batched) {
        inf_err_t *err = check_batch(model, req, in);
        if (err != NULL) {
            return err;
        }
    }

    inf_err_t *err = check_shape(model, in, t, batched);
    if (err == NULL && !t->non_linear) {
        err = check_size(model, in);
        req->strings_unchecked |= in->datatype == INF_TYPE_BYTES;
        if (in->datatype == INF_TYPE_BYTES && in->in_region) {
            inf_request_move_inputs(req, INF_INPUTS_SHARED);
        }
    }
    if (err == NULL && t->has_reshape) {
        err = inf_input_reshape(req, in, t, batched);
    }

    return err;
}

static inf_err_t *
check_batch(const inf_model_t *model, inf_request_t *req,
    const inf_input_t *in)
{
    if (in->dim_count == 0) {
        return inf_err_new(INF_ERR_INVALID_ARG, "input '%s' has no shape but"
            " model requires batch dimension for '%s'", in->name, model->name);
    }

    int64_t rows = in->shape[0];
    uint32_t limit = inf_config_tensors_max_batch_size(model->tensors);

    if (rows < 1) {
        return inf_err_new(INF_ERR_INVALID_ARG, "inference request batch-size"
            " must be >= 1 for '%s'", model->name);
    }

    if (rows > limit) {
        return inf_err_new(INF_ERR_INVALID_ARG, "inference request batch-size"
            " must be <= %u for '%s'", limit, model->name);
    }

    if (req->batch_size == 0) {
        req->batch_size = (uint32_t) rows;

    } else if (req->batch_size != (uint32_t) rows) {
        return inf_err_new(INF_ERR_INVALID_ARG, "input '%s' batch size does not"
            " match other inputs for '%s'", in->name, model->name);
    }

    return NULL;
}

static inf_err_t *
check_shape(const inf_model_t *model, const inf_input_t *in,
    const inf_config_tensor_t *t, uint32_t batched)
{
    bool ok = in->dim_count == t->dim_count + batched;
    bool given = true;

    for (uint32_t i = 0; i < in->dim_count; i++) {
        given = given && in->shape[i] >= 0;
    }
    for (uint32_t i = 0; ok && i < t->dim_count; i++) {
        ok = t->dims[i] == -1 || t->dims[i] == in->shape[i + batched];
    }

    if (ok && given) {
        return NULL;
    }

    inf_buf_t want, got;
    inf_buf_init(&want);
    inf_buf_init(&got);
    put_shape(&want, t->dims, t->dim_count, batched);
    put_shape(&got, in->shape, in->dim_count, false);

    inf_err_t *err = !given
        ? inf_err_new(INF_ERR_INVALID_ARG, "All input dimensions should be"
            " specified for input '%s' for model '%s', got %s", in->name,
            model->name, inf_buf_slice(&got).data)
        : inf_err_new(INF_ERR_INVALID_ARG, "unexpected shape for input '%s'"
            " for model '%s'. Expected %s, got %s. %s", in->name, model->name,
            inf_buf_slice(&want).data, inf_buf_slice(&got).data,
            batched ? BATCH_NOTE : "");

    inf_buf_fini(&want);
    inf_buf_fini(&got);
    return err;
}

static inf_err_t *
check_size(const inf_model_t *model, const inf_input_t *in)
{
    uint64_t elements;
    if (!element_count(in->shape, in->dim_count, &elements)) {
        return inf_err_new(INF_ERR_INVALID_ARG, "input '%s' for model '%s': the"
            " shape has more elements than can be counted", in->name,
            model->name);
    }

    if (in->datatype == INF_TYPE_BYTES) {
        return NULL;            /* string_check.h checks the sizes           */
    }

    uint32_t size = inf_datatype_size(in->datatype);
    uint64_t want;
    if (__builtin_mul_overflow(elements, (uint64_t) size, &want)) {
        return inf_err_new(INF_ERR_INVALID_ARG, "input '%s' for model '%s': the"
            " shape has more bytes than can be counted", in->name,
            model->name);
    }
    if (want != in->byte_size) {
        return inf_err_new(INF_ERR_INVALID_ARG, "input byte size mismatch for"
            " input '%s' for model '%s'. Expected %llu, got %llu", in->name,
            model->name, (unsigned long long) want,
            (unsigned long long) in->byte_size);
    }

    return NULL;
}

/* Checks wanted outputs; an array by output finds repeated names and sorts. */
static inf_err_t *
check_outputs(const inf_model_t *model, inf_request_t *req)
{
    const inf_config_tensors_t *tensors = model->tensors;
    uint32_t count = inf_config_tensors_output_count(tensors);

    if (req->output_count == 0) {
        req->outputs = inf_config_tensors_output_names(tensors);
        req->output_count = count;
        req->output_cap = count;
        return NULL;
    }

    const char **wanted = inf_arena_calloc(&req->arena, count + (size_t) 1,
        sizeof(*wanted));
    if (wanted == NULL) {
        return inf_err_nomem();
    }

    for (uint32_t i = 0; i < req->output_count; i++) {
        inf_slice_t name = inf_slice_str(req->outputs[i]);
        const inf_config_tensor_t *t = inf_config_tensors_find_output(tensors,
            name);
        if (t == NULL) {
            return unexpected(model, name);
        }
        if (wanted[t->rank] != NULL) {
            return inf_err_new(INF_ERR_INVALID_ARG,
                "output '%s' already requested", req->outputs[i]);
        }
        wanted[t->rank] = t->name.data;
    }

    uint32_t n = 0;
    for (uint32_t rank = 0; rank < count; rank++) {
        if (wanted[rank] != NULL) {
            wanted[n++] = wanted[rank];
        }
    }
    req->outputs = wanted;
    req->output_cap = n;
    return NULL;
}

static bool
element_count(const int64_t *shape, uint32_t dims, uint64_t *out)
{
    uint64_t n = 1;
    bool zero = false;

    for (uint32_t i = 0; i < dims; i++) {
        if (shape[i] < 0) {
            return false;
        }
        if (shape[i] == 0) {
            zero = true;
            continue;
        }
        if (__builtin_mul_overflow(n, (uint64_t) shape[i], &n)
            || n > INT64_MAX)
        {
            return false;
        }
    }

    *out = zero ? 0 : n;
    return true;
}

static void
put_shape(inf_buf_t *b, const int64_t *shape, uint32_t dims, bool leading)
{
    inf_buf_puts(b, leading ? "[-1" : "[");
    for (uint32_t i = 0; i < dims; i++) {
        inf_buf_printf(b, "%s%lld", i > 0 || leading ? "," : "",
            (long long) shape[i]);
    }
    inf_buf_putc(b, ']');
}
