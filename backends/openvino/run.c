/* run.c - see run.h */

#include "run.h"

#include "texts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A run is polled so often: it ends, or all clients have given up. */
#define POLL_MS 20

/* of a run beside which others keep failing */
#define TRIES 16

static TRITONSERVER_Error *request_open(vino_run_t *r);
static void request_close(vino_run_t *r);
static TRITONSERVER_Error *run_model(void *self, bk_run_t *run);
static TRITONSERVER_Error *run_request(vino_run_t *r, bk_run_t *run,
    bool *own);
static void run_done(void *self, bk_run_t *run);
static TRITONSERVER_Error *rows_check(const vino_run_t *r,
    const bk_run_t *run, int64_t *rows);
static bool has_rows(const bk_value_t *v);
static TRITONSERVER_Error *input_set(vino_run_t *r, bk_value_t *v,
    int64_t rows);
static TRITONSERVER_Error *input_pad(vino_run_t *r, uint32_t i,
    const bk_value_t *v, const int64_t *dims, const void **data);
static TRITONSERVER_Error *tensor_over(const vino_run_t *r,
    const bk_tensor_t *t, int64_t *dims, const void *data,
    ov_tensor_t **tensor);
static TRITONSERVER_Error *outputs_set(vino_run_t *r, bk_run_t *run);
static TRITONSERVER_Error *infer(const vino_run_t *r, const bk_run_t *run);
static TRITONSERVER_Error *output_read(const vino_run_t *r, bk_value_t *v,
    int64_t rows);
static TRITONSERVER_Error *output_check(const vino_run_t *r,
    const bk_value_t *v, const ov_tensor_t *tensor, const ov_shape_t *shape);
static bool same_dims(const bk_value_t *v, const ov_shape_t *shape);
static TRITONSERVER_Error *output_take(const vino_run_t *r, bk_value_t *v,
    const ov_shape_t *shape, int64_t rows);

const bk_runtime_t vino_run_functions = {
    .run = run_model,
    .done = run_done,
    .text_size = vino_texts_size,
    .text_write = vino_texts_write
};

TRITONSERVER_Error *
vino_run_init(vino_run_t *r, vino_network_t *network, bool padding)
{
    const bk_tensors_t *tensors = &network->tensors;

    *r = (vino_run_t) {
        .network = network,
        .padding = padding,
        .own = calloc((size_t) tensors->output_count + 1, sizeof(*r->own)),
        .lent = calloc((size_t) tensors->output_count + 1, sizeof(*r->lent)),
        .padded = calloc((size_t) tensors->input_count + 1,
            sizeof(*r->padded))
    };
    vino_network_use(network, 1);
    if (r->own == NULL || r->lent == NULL || r->padded == NULL) {
        return bk_err_nomem("tables of an instance");
    }

    return request_open(r);
}

static TRITONSERVER_Error *
request_open(vino_run_t *r)
{
    const bk_tensors_t *tensors = &r->network->tensors;
    const vino_runtime_t *rt = r->network->rt;

    TRITONSERVER_Error *err = vino_network_request(r->network, &r->request,
        &r->generation);
    for (uint32_t i = 0; err == NULL && i < tensors->output_count; i++) {
        err = vino_err(rt, rt->f.ov_infer_request_get_output_tensor_by_index(
            r->request, i, &r->own[i]), "output \"%s\"",
            tensors->outputs[i].name);
    }

    return err;
}

void
vino_run_fini(vino_run_t *r)
{
    if (r->network == NULL) {
        return;
    }

    const bk_tensors_t *tensors = &r->network->tensors;

    vino_network_use(r->network, -1);
    request_close(r);
    for (uint32_t i = 0; r->padded != NULL && i < tensors->input_count; i++) {
        bk_scratch_fini(&r->padded[i]);
    }
    free(r->own);
    free(r->lent);
    free(r->padded);
    *r = (vino_run_t) { 0 };
}

static void
request_close(vino_run_t *r)
{
    const vino_functions_t *f = &r->network->rt->f;
    uint32_t count = r->network->tensors.output_count;

    for (uint32_t i = 0; r->own != NULL && r->lent != NULL && i < count;
         i++)
    {
        if (r->own[i] != NULL) {
            f->ov_tensor_free(r->own[i]);
        }
        r->own[i] = NULL;
        r->lent[i] = false;
    }
    if (r->request != NULL) {
        f->ov_infer_request_free(r->request);
    }
    r->request = NULL;
}

/* Repeats a run beside which one of another instance has failed: it may have
 * had that one's shapes. */
static TRITONSERVER_Error *
run_model(void *self, bk_run_t *run)
{
    vino_run_t *r = self;

    for (int i = 0; i < TRIES; i++) {
        bool own = false;
        TRITONSERVER_Error *err = run_request(r, run, &own);
        if (own || vino_network_is_current(r->network, r->generation)) {
            return err;
        }
        bk_err_drop(err);
        run_done(r, run);
    }

    return bk_err_new(TRITONSERVER_ERROR_UNAVAILABLE, "given up after %d "
        "attempts: runs of other instances failed meanwhile", TRIES);
}

/* *own: the error is not another instance's. */
static TRITONSERVER_Error *
run_request(vino_run_t *r, bk_run_t *run, bool *own)
{
    int64_t rows = 0;

    if (r->request == NULL || !vino_network_is_current(r->network,
        r->generation))
    {
        request_close(r);
        TRITONSERVER_Error *err = request_open(r);
        if (err != NULL) {
            request_close(r);
            *own = true;
            return err;
        }
    }

    /* an output that is an input has one tensor with it, the one set last */
    TRITONSERVER_Error *err = rows_check(r, run, &rows);
    if (err == NULL) {
        err = outputs_set(r, run);
    }
    for (uint32_t i = 0; err == NULL && i < run->input_count; i++) {
        err = input_set(r, &run->inputs[i], rows);
    }
    if (err == NULL) {
        err = infer(r, run);
        if (err != NULL) {
            *own = vino_network_invalidate(r->network, r->generation);
        }
    }
    for (uint32_t i = 0; err == NULL && i < run->output_count; i++) {
        err = output_read(r, &run->outputs[i], rows);
    }

    return err;
}

static void
run_done(void *self, bk_run_t *run)
{
    vino_run_t *r = self;
    const vino_functions_t *f = &r->network->rt->f;

    for (uint32_t i = 0; i < run->input_count; i++) {
        if (run->inputs[i].handle != NULL) {
            f->ov_tensor_free(run->inputs[i].handle);
        }
        run->inputs[i].handle = NULL;
    }
    for (uint32_t i = 0; i < run->output_count; i++) {
        if (run->outputs[i].handle != NULL) {
            f->ov_tensor_free(run->outputs[i].handle);
        }
        run->outputs[i].handle = NULL;
    }
}

/* Of a model whose batch is fixed: the rows that are there, else 0. */
static TRITONSERVER_Error *
rows_check(const vino_run_t *r, const bk_run_t *run, int64_t *rows)
{
    int64_t fixed = r->network->fixed_rows;
    uint32_t i = 0;

    while (i < run->input_count && !has_rows(&run->inputs[i])) {
        i++;
    }
    if (fixed == 0 || i == run->input_count) {
        return NULL;
    }

    *rows = run->inputs[i].dims[0];
    if (*rows == fixed || (*rows < fixed && r->padding)) {
        return NULL;
    }

    return bk_err_new(TRITONSERVER_ERROR_INTERNAL,
        "expected requests with batch size '%" PRId64 "', got '%" PRId64
        "'... this error can be avoided by setting 'ENABLE_BATCH_PADDING' "
        "parameter in model configuration to 'YES' at a performance cost.",
        fixed, *rows);
}

/* As vino_ports_batched has it: the first dimension is the batch. */
static bool
has_rows(const bk_value_t *v)
{
    return v->dims_count > 0 && !v->tensor->ragged
        && v->tensor->batch_input == NULL;
}

static TRITONSERVER_Error *
input_set(vino_run_t *r, bk_value_t *v, int64_t rows)
{
    const vino_runtime_t *rt = r->network->rt;
    uint32_t i = (uint32_t) (v->tensor - r->network->tensors.inputs);
    TRITONSERVER_Error *err = NULL;
    const void *data = v->data;
    ov_tensor_t *tensor = NULL;
    int64_t dims[BK_MAX_DIMS];
    bool padded = rows != 0 && has_rows(v)
        && v->dims[0] < r->network->fixed_rows;

    memcpy(dims, v->dims, v->dims_count * sizeof(*dims));
    if (padded) {
        dims[0] = r->network->fixed_rows;
    }

    if (v->tensor->datatype == TRITONSERVER_TYPE_BYTES) {
        err = vino_texts_new(rt, v, dims, &tensor);

    } else {
        if (padded) {
            err = input_pad(r, i, v, dims, &data);
        }
        if (err == NULL) {
            err = tensor_over(r, v->tensor, dims, data, &tensor);
        }
    }
    if (err != NULL) {
        return err;
    }

    v->handle = tensor;
    return vino_err(rt, rt->f.ov_infer_request_set_input_tensor_by_index(
        r->request, i, tensor), "input \"%s\"", v->tensor->name);
}

/* Rows of zeros behind those that are there. */
static TRITONSERVER_Error *
input_pad(vino_run_t *r, uint32_t i, const bk_value_t *v,
    const int64_t *dims, const void **data)
{
    bk_scratch_t *s = &r->padded[i];
    uint64_t elements = 0;
    uint64_t size = 0;

    if (!bk_elements(dims, v->dims_count, &elements)
        || __builtin_mul_overflow(elements,
            TRITONSERVER_DataTypeByteSize(v->tensor->datatype), &size)
        || size < v->len_bytes)
    {
        return bk_err_nomem("a padded batch");
    }

    TRITONSERVER_Error *err = bk_scratch_reserve(s, size, "a padded batch");
    if (err != NULL) {
        return err;
    }

    if (v->len_bytes != 0) {
        memcpy(s->data, v->data, v->len_bytes);
    }
    memset((char *) s->data + v->len_bytes, 0, size - v->len_bytes);
    *data = s->data;
    return NULL;
}

/* The library reads inputs only, though its function takes them as if not. */
static TRITONSERVER_Error *
tensor_over(const vino_run_t *r, const bk_tensor_t *t, int64_t *dims,
    const void *data, ov_tensor_t **tensor)
{
    static char nothing[BK_SCRATCH_ALIGNMENT];

    const vino_runtime_t *rt = r->network->rt;
    ov_shape_t shape = { .rank = t->dims_count, .dims = dims };

    return vino_err(rt, rt->f.ov_tensor_create_from_host_ptr(
        (ov_element_type_e) t->type, shape,
        data != NULL ? (void *) data : nothing, tensor),
        "tensor \"%s\"", t->name);
}

/*
 * An output that was lent memory in a run before gets the library's own back:
 * that memory is somebody else's now.
 */
static TRITONSERVER_Error *
outputs_set(vino_run_t *r, bk_run_t *run)
{
    const vino_runtime_t *rt = r->network->rt;
    const bk_tensors_t *tensors = &r->network->tensors;
    TRITONSERVER_Error *err = NULL;

    for (uint32_t i = 0; err == NULL && i < tensors->output_count; i++) {
        if (r->lent[i]) {
            err = vino_err(rt,
                rt->f.ov_infer_request_set_output_tensor_by_index(
                r->request, i, r->own[i]), "output \"%s\"",
                tensors->outputs[i].name);
            r->lent[i] = err != NULL;
        }
    }

    for (uint32_t k = 0; err == NULL && k < run->output_count; k++) {
        bk_value_t *v = &run->outputs[k];
        uint32_t i = (uint32_t) (v->tensor - tensors->outputs);
        ov_tensor_t *tensor = NULL;

        if (!v->preallocated) {
            continue;
        }

        err = tensor_over(r, v->tensor, v->dims, v->data, &tensor);
        if (err == NULL) {
            v->handle = tensor;
            r->lent[i] = true;
            err = vino_err(rt,
                rt->f.ov_infer_request_set_output_tensor_by_index(
                r->request, i, tensor), "output \"%s\"", v->tensor->name);
        }
    }

    return err;
}

/* On the library's thread: on the caller's own it loses errors, and no run can
 * be cancelled (docs/decisions, 0086 and 0116). */
static TRITONSERVER_Error *
infer(const vino_run_t *r, const bk_run_t *run)
{
    const vino_runtime_t *rt = r->network->rt;
    uint64_t since_ns = bk_now_ns();

    TRITONSERVER_Error *err = vino_err(rt,
        rt->f.ov_infer_request_start_async(r->request),
        "execution failed");
    if (err != NULL) {
        return err;
    }

    while (rt->f.ov_infer_request_wait_for(r->request, POLL_MS)
        == RESULT_NOT_READY)
    {
        if (vino_network_may_cancel(r->network, since_ns)
            && bk_run_is_abandoned(run))
        {
            bk_err_log(vino_err(rt, rt->f.ov_infer_request_cancel(
                r->request), "cannot cancel a run"), "openvino");
            break;
        }
    }

    return vino_err(rt, rt->f.ov_infer_request_wait(r->request),
        "execution failed");
}

static TRITONSERVER_Error *
output_read(const vino_run_t *r, bk_value_t *v, int64_t rows)
{
    const vino_runtime_t *rt = r->network->rt;
    uint32_t i = (uint32_t) (v->tensor - r->network->tensors.outputs);
    ov_shape_t shape = { 0 };
    ov_tensor_t *tensor = NULL;

    TRITONSERVER_Error *err = vino_err(rt,
        rt->f.ov_infer_request_get_output_tensor_by_index(r->request, i,
        &tensor), "output \"%s\"", v->tensor->name);
    if (err != NULL) {
        return err;
    }

    /* the function has no shape of a scalar */
    if (v->tensor->dims_count > 0) {
        err = vino_err(rt, rt->f.ov_tensor_get_shape(tensor, &shape),
            "shape of output \"%s\"", v->tensor->name);
    }
    if (err == NULL) {
        if (v->preallocated) {
            err = output_check(r, v, tensor, &shape);
            rt->f.ov_tensor_free(tensor);

        } else {
            v->handle = tensor;
            err = output_take(r, v, &shape, rows);
        }
        rt->f.ov_shape_free(&shape);

    } else {
        rt->f.ov_tensor_free(tensor);
    }

    return err;
}

/* It lies where it was wanted, unless it has one tensor with an input or with
 * another output: then it lies with that. */
static TRITONSERVER_Error *
output_check(const vino_run_t *r, const bk_value_t *v,
    const ov_tensor_t *tensor, const ov_shape_t *shape)
{
    const vino_runtime_t *rt = r->network->rt;
    void *data = NULL;
    char expected[256];
    char got[256];

    if (!same_dims(v, shape)) {
        return bk_err_new(TRITONSERVER_ERROR_INTERNAL, "output \"%s\" has "
            "shape %s, the model promised %s", v->tensor->name, bk_dims_text(
            shape->dims, (uint32_t) shape->rank, got, sizeof(got)),
            bk_dims_text(v->dims, v->dims_count, expected, sizeof(expected)));
    }

    TRITONSERVER_Error *err = vino_err(rt, rt->f.ov_tensor_data(tensor,
        &data), "data of output \"%s\"", v->tensor->name);
    if (err == NULL && data != v->data) {
        memmove(v->data, data, v->len_bytes);
    }

    return err;
}

/* A scalar's shape has no dims to point to. */
static bool
same_dims(const bk_value_t *v, const ov_shape_t *shape)
{
    if (shape->rank != (int64_t) v->dims_count) {
        return false;
    }

    for (uint32_t i = 0; i < v->dims_count; i++) {
        if (shape->dims[i] != v->dims[i]) {
            return false;
        }
    }
    return true;
}

static TRITONSERVER_Error *
output_take(const vino_run_t *r, bk_value_t *v, const ov_shape_t *shape,
    int64_t rows)
{
    const vino_runtime_t *rt = r->network->rt;

    if (shape->rank > BK_MAX_DIMS) {
        return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED, "output \"%s\" has "
            "%" PRId64 " dimensions, more than %d", v->tensor->name,
            shape->rank, BK_MAX_DIMS);
    }

    v->dims_count = (uint32_t) shape->rank;
    for (uint32_t i = 0; i < v->dims_count; i++) {
        v->dims[i] = shape->dims[i];
    }
    if (rows != 0 && v->dims_count > 0 && v->tensor->batch_output == NULL
        && v->dims[0] == r->network->fixed_rows)
    {
        v->dims[0] = rows;
    }

    return vino_err(rt, rt->f.ov_tensor_data(v->handle, &v->data),
        "data of output \"%s\"", v->tensor->name);
}
