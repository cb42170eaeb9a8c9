/* instance.c - see instance.h */

#include "instance.h"

#include "texts.h"

#include "common/runner.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* An asynchronous run is polled so often: it ends, or all clients have given
 * up. */
#define POLL_MS 20
#define LONG_NS (POLL_MS * UINT64_C(1000000))

#define MARK     0xa5
#define MARK_LEN 16u

typedef struct {
    vino_model_t         *model;
    const vino_network_t *network;
    bk_runner_t           runner;
    ov_infer_request_t   *request;
    ov_tensor_t         **own;          /* of each output, the library's     */
    bool                 *lent;         /* output lies in memory of a run    */
    bk_scratch_t         *padded;       /* one per input                     */
    uint64_t              took_ns;      /* the last run                      */
} instance_t;

static TRITONSERVER_Error *instance_setup(instance_t *inst,
    TRITONBACKEND_ModelInstance *handle);
static TRITONSERVER_Error *check_kind(TRITONBACKEND_ModelInstance *handle);
static TRITONSERVER_Error *tables_make(instance_t *inst);
static TRITONSERVER_Error *run_model(void *self, bk_run_t *run);
static void run_done(void *self, bk_run_t *run);
static TRITONSERVER_Error *rows_check(const instance_t *inst,
    const bk_run_t *run, int64_t *rows);
static bool has_rows(const bk_value_t *v);
static TRITONSERVER_Error *input_set(instance_t *inst, bk_value_t *v,
    int64_t rows);
static TRITONSERVER_Error *input_pad(instance_t *inst, uint32_t i,
    const bk_value_t *v, const int64_t *dims, const void **data);
static TRITONSERVER_Error *tensor_over(const instance_t *inst,
    const bk_tensor_t *t, int64_t *dims, const void *data,
    ov_tensor_t **tensor);
static TRITONSERVER_Error *outputs_set(instance_t *inst, bk_run_t *run);
static TRITONSERVER_Error *infer(instance_t *inst, const bk_run_t *run);
static bool may_infer_sync(const instance_t *inst, const bk_run_t *run);
static TRITONSERVER_Error *infer_sync(const instance_t *inst,
    const bk_run_t *run, bool *written);
static TRITONSERVER_Error *infer_async(const instance_t *inst,
    const bk_run_t *run);
static void mark(const bk_value_t *v);
static bool is_marked(const bk_value_t *v);
static TRITONSERVER_Error *output_read(const instance_t *inst, bk_value_t *v,
    int64_t rows);
static TRITONSERVER_Error *output_check(const instance_t *inst,
    const bk_value_t *v, const ov_tensor_t *tensor, const ov_shape_t *shape);
static TRITONSERVER_Error *output_take(const instance_t *inst, bk_value_t *v,
    const ov_shape_t *shape, int64_t rows);

static const bk_runtime_t runtime = {
    .run = run_model,
    .done = run_done,
    .text_size = vino_texts_size,
    .text_write = vino_texts_write
};

TRITONSERVER_Error *
vino_instance_new(void **out, TRITONBACKEND_ModelInstance *handle,
    void *model)
{
    instance_t *inst = calloc(1, sizeof(*inst));
    if (inst == NULL) {
        return bk_err_nomem("state of an instance");
    }

    inst->model = model;
    inst->network = inst->model->network;
    TRITONSERVER_Error *err = instance_setup(inst, handle);
    if (err != NULL) {
        vino_instance_free(inst);
        return err;
    }

    *out = inst;
    return NULL;
}

void
vino_instance_free(void *instance)
{
    instance_t *inst = instance;

    if (inst == NULL) {
        return;
    }

    const vino_functions_t *f = &inst->network->rt->f;
    const bk_tensors_t *tensors = &inst->network->tensors;

    bk_runner_fini(&inst->runner);
    for (uint32_t i = 0; inst->own != NULL && i < tensors->output_count; i++)
    {
        if (inst->own[i] != NULL) {
            f->ov_tensor_free(inst->own[i]);
        }
    }
    for (uint32_t i = 0; inst->padded != NULL && i < tensors->input_count;
         i++)
    {
        bk_scratch_fini(&inst->padded[i]);
    }
    if (inst->request != NULL) {
        f->ov_infer_request_free(inst->request);
    }
    free(inst->own);
    free(inst->lent);
    free(inst->padded);
    free(inst);
}

TRITONSERVER_Error *
vino_instance_execute(void *instance, TRITONBACKEND_Request **requests,
    uint32_t count)
{
    instance_t *inst = instance;

    return bk_runner_execute(&inst->runner, requests, count);
}

static TRITONSERVER_Error *
instance_setup(instance_t *inst, TRITONBACKEND_ModelInstance *handle)
{
    const vino_functions_t *f = &inst->network->rt->f;
    bk_slot_rules_t rules = {
        .tensors = &inst->network->tensors,
        .batching = inst->model->config.max_batch_size > 0,
        .device_id = BK_NO_DEVICE
    };

    TRITONSERVER_Error *err = check_kind(handle);
    if (err == NULL) {
        err = vino_model_compile(inst->model);
    }
    if (err == NULL) {
        err = vino_err(inst->network->rt,
            f->ov_compiled_model_create_infer_request(
            inst->network->compiled, &inst->request),
            "model \"%s\": cannot make a request", inst->model->config.name);
    }
    if (err == NULL) {
        err = tables_make(inst);
    }
    if (err == NULL) {
        err = bk_runner_init(&inst->runner, handle, &rules, &runtime, inst);
    }

    return err;
}

static TRITONSERVER_Error *
check_kind(TRITONBACKEND_ModelInstance *handle)
{
    TRITONSERVER_InstanceGroupKind kind;

    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceKind(handle, &kind);
    if (err != NULL || kind != TRITONSERVER_INSTANCEGROUPKIND_GPU) {
        return err;
    }

    return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "backend "
        "openvino takes instances of KIND_CPU, not KIND_GPU; the parameter "
        "'TARGET_DEVICE' names the device that it computes on");
}

static TRITONSERVER_Error *
tables_make(instance_t *inst)
{
    const bk_tensors_t *tensors = &inst->network->tensors;
    const vino_runtime_t *rt = inst->network->rt;

    inst->own = calloc((size_t) tensors->output_count + 1,
        sizeof(*inst->own));
    inst->lent = calloc((size_t) tensors->output_count + 1,
        sizeof(*inst->lent));
    inst->padded = calloc((size_t) tensors->input_count + 1,
        sizeof(*inst->padded));
    if (inst->own == NULL || inst->lent == NULL || inst->padded == NULL) {
        return bk_err_nomem("tables of an instance");
    }

    TRITONSERVER_Error *err = NULL;
    for (uint32_t i = 0; err == NULL && i < tensors->output_count; i++) {
        err = vino_err(rt, rt->f.ov_infer_request_get_output_tensor_by_index(
            inst->request, i, &inst->own[i]), "output \"%s\"",
            tensors->outputs[i].name);
    }

    return err;
}

static TRITONSERVER_Error *
run_model(void *self, bk_run_t *run)
{
    instance_t *inst = self;
    int64_t rows = 0;

    /* an output that is an input has one tensor with it, the one set last */
    TRITONSERVER_Error *err = rows_check(inst, run, &rows);
    if (err == NULL) {
        err = outputs_set(inst, run);
    }
    for (uint32_t i = 0; err == NULL && i < run->input_count; i++) {
        err = input_set(inst, &run->inputs[i], rows);
    }
    if (err == NULL) {
        err = infer(inst, run);
    }
    for (uint32_t i = 0; err == NULL && i < run->output_count; i++) {
        err = output_read(inst, &run->outputs[i], rows);
    }

    return err;
}

static void
run_done(void *self, bk_run_t *run)
{
    instance_t *inst = self;
    const vino_functions_t *f = &inst->network->rt->f;

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
rows_check(const instance_t *inst, const bk_run_t *run, int64_t *rows)
{
    int64_t fixed = inst->network->fixed_rows;
    uint32_t i = 0;

    while (i < run->input_count && !has_rows(&run->inputs[i])) {
        i++;
    }
    if (fixed == 0 || i == run->input_count) {
        return NULL;
    }

    *rows = run->inputs[i].dims[0];
    if (*rows == fixed || (*rows < fixed && inst->model->options.padding)) {
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
    return v->dims_count > 0 && !v->tensor->ragged && v->tensor->made == NULL;
}

static TRITONSERVER_Error *
input_set(instance_t *inst, bk_value_t *v, int64_t rows)
{
    const vino_runtime_t *rt = inst->network->rt;
    uint32_t i = (uint32_t) (v->tensor - inst->network->tensors.inputs);
    TRITONSERVER_Error *err = NULL;
    const void *data = v->data;
    ov_tensor_t *tensor = NULL;
    int64_t dims[BK_MAX_DIMS];
    bool padded = rows != 0 && has_rows(v)
        && v->dims[0] < inst->network->fixed_rows;

    memcpy(dims, v->dims, v->dims_count * sizeof(*dims));
    if (padded) {
        dims[0] = inst->network->fixed_rows;
    }

    if (v->tensor->datatype == TRITONSERVER_TYPE_BYTES) {
        err = vino_texts_new(rt, v, dims, &tensor);

    } else {
        if (padded) {
            err = input_pad(inst, i, v, dims, &data);
        }
        if (err == NULL) {
            err = tensor_over(inst, v->tensor, dims, data, &tensor);
        }
    }
    if (err != NULL) {
        return err;
    }

    v->handle = tensor;
    return vino_err(rt, rt->f.ov_infer_request_set_input_tensor_by_index(
        inst->request, i, tensor), "input \"%s\"", v->tensor->name);
}

/* Rows of zeros behind those that are there. */
static TRITONSERVER_Error *
input_pad(instance_t *inst, uint32_t i, const bk_value_t *v,
    const int64_t *dims, const void **data)
{
    bk_scratch_t *s = &inst->padded[i];
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
tensor_over(const instance_t *inst, const bk_tensor_t *t, int64_t *dims,
    const void *data, ov_tensor_t **tensor)
{
    static char nothing[BK_SCRATCH_ALIGNMENT];

    const vino_runtime_t *rt = inst->network->rt;
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
outputs_set(instance_t *inst, bk_run_t *run)
{
    const vino_runtime_t *rt = inst->network->rt;
    const bk_tensors_t *tensors = &inst->network->tensors;
    TRITONSERVER_Error *err = NULL;

    for (uint32_t i = 0; err == NULL && i < tensors->output_count; i++) {
        if (inst->lent[i]) {
            err = vino_err(rt,
                rt->f.ov_infer_request_set_output_tensor_by_index(
                inst->request, i, inst->own[i]), "output \"%s\"",
                tensors->outputs[i].name);
            inst->lent[i] = err != NULL;
        }
    }

    for (uint32_t k = 0; err == NULL && k < run->output_count; k++) {
        bk_value_t *v = &run->outputs[k];
        uint32_t i = (uint32_t) (v->tensor - tensors->outputs);
        ov_tensor_t *tensor = NULL;

        if (!v->given) {
            continue;
        }

        err = tensor_over(inst, v->tensor, v->dims, v->data, &tensor);
        if (err == NULL) {
            v->handle = tensor;
            inst->lent[i] = true;
            err = vino_err(rt,
                rt->f.ov_infer_request_set_output_tensor_by_index(
                inst->request, i, tensor), "output \"%s\"", v->tensor->name);
        }
    }

    return err;
}

/*
 * A synchronous run, on this thread, saves a change of threads.  But where the
 * library has one thread it loses the errors of such a run, and outputs stay as
 * they were (docs/decisions/0086).  So only models with more threads, whose
 * shapes cannot be wrong, run so, into marked memory; a run that has left a
 * mark is repeated on the library's thread.
 */
static TRITONSERVER_Error *
infer(instance_t *inst, const bk_run_t *run)
{
    uint64_t start_ns = bk_now_ns();
    TRITONSERVER_Error *err = NULL;
    bool written = false;

    if (may_infer_sync(inst, run)) {
        err = infer_sync(inst, run, &written);
    }
    if (err == NULL && !written) {
        err = infer_async(inst, run);
    }

    inst->took_ns = bk_now_ns() - start_ns;
    return err;
}

/* Only an asynchronous run can be cancelled, so a long one is. */
static bool
may_infer_sync(const instance_t *inst, const bk_run_t *run)
{
    bool sync = inst->network->plain && inst->took_ns < LONG_NS;

    for (uint32_t i = 0; sync && i < run->output_count; i++) {
        sync = run->outputs[i].given;
    }

    return sync;
}

static TRITONSERVER_Error *
infer_async(const instance_t *inst, const bk_run_t *run)
{
    const vino_runtime_t *rt = inst->network->rt;

    TRITONSERVER_Error *err = vino_err(rt,
        rt->f.ov_infer_request_start_async(inst->request),
        "execution failed");
    if (err != NULL) {
        return err;
    }

    while (rt->f.ov_infer_request_wait_for(inst->request, POLL_MS)
        == RESULT_NOT_READY)
    {
        if (bk_run_is_abandoned(run)) {
            bk_err_log(vino_err(rt, rt->f.ov_infer_request_cancel(
                inst->request), "cannot cancel a run"), "openvino");
            break;
        }
    }

    return vino_err(rt, rt->f.ov_infer_request_wait(inst->request),
        "execution failed");
}

static TRITONSERVER_Error *
infer_sync(const instance_t *inst, const bk_run_t *run, bool *written)
{
    const vino_runtime_t *rt = inst->network->rt;

    for (uint32_t i = 0; i < run->output_count; i++) {
        mark(&run->outputs[i]);
    }

    TRITONSERVER_Error *err = vino_err(rt,
        rt->f.ov_infer_request_infer(inst->request), "execution failed");

    *written = true;
    for (uint32_t i = 0; i < run->output_count; i++) {
        *written = *written && !is_marked(&run->outputs[i]);
    }

    return err;
}

/* The first and last MARK_LEN bytes, or all where there are fewer. */
static void
mark(const bk_value_t *v)
{
    size_t len = v->len_bytes < MARK_LEN ? (size_t) v->len_bytes : MARK_LEN;

    memset(v->data, MARK, len);
    memset((char *) v->data + v->len_bytes - len, MARK, len);
}

/* At either end: outputs may be written in parts.  A result may look like a
 * mark: then the run is repeated for nothing. */
static bool
is_marked(const bk_value_t *v)
{
    size_t len = v->len_bytes < MARK_LEN ? (size_t) v->len_bytes : MARK_LEN;
    const unsigned char *start = v->data;
    const unsigned char *end = start + v->len_bytes - len;
    bool at_start = true;
    bool at_end = true;

    for (size_t i = 0; i < len; i++) {
        at_start = at_start && start[i] == MARK;
        at_end = at_end && end[i] == MARK;
    }

    return at_start || at_end;
}

static TRITONSERVER_Error *
output_read(const instance_t *inst, bk_value_t *v, int64_t rows)
{
    const vino_runtime_t *rt = inst->network->rt;
    uint32_t i = (uint32_t) (v->tensor - inst->network->tensors.outputs);
    ov_shape_t shape = { 0 };
    ov_tensor_t *tensor = NULL;

    TRITONSERVER_Error *err = vino_err(rt,
        rt->f.ov_infer_request_get_output_tensor_by_index(inst->request, i,
        &tensor), "output \"%s\"", v->tensor->name);
    if (err != NULL) {
        return err;
    }

    err = vino_err(rt, rt->f.ov_tensor_get_shape(tensor, &shape),
        "shape of output \"%s\"", v->tensor->name);
    if (err == NULL) {
        if (v->given) {
            err = output_check(inst, v, tensor, &shape);
            rt->f.ov_tensor_free(tensor);

        } else {
            v->handle = tensor;
            err = output_take(inst, v, &shape, rows);
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
output_check(const instance_t *inst, const bk_value_t *v,
    const ov_tensor_t *tensor, const ov_shape_t *shape)
{
    const vino_runtime_t *rt = inst->network->rt;
    void *data = NULL;
    char expected[256];
    char got[256];

    if (shape->rank != (int64_t) v->dims_count || memcmp(shape->dims, v->dims,
        v->dims_count * sizeof(*v->dims)) != 0)
    {
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

static TRITONSERVER_Error *
output_take(const instance_t *inst, bk_value_t *v, const ov_shape_t *shape,
    int64_t rows)
{
    const vino_runtime_t *rt = inst->network->rt;

    if (shape->rank > BK_MAX_DIMS) {
        return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED, "output \"%s\" has "
            "%" PRId64 " dimensions, more than %d", v->tensor->name,
            shape->rank, BK_MAX_DIMS);
    }

    v->dims_count = (uint32_t) shape->rank;
    memcpy(v->dims, shape->dims, v->dims_count * sizeof(*v->dims));
    if (rows != 0 && v->dims_count > 0 && v->tensor->scattered == NULL
        && v->dims[0] == inst->network->fixed_rows)
    {
        v->dims[0] = rows;
    }

    return vino_err(rt, rt->f.ov_tensor_data(v->handle, &v->data),
        "data of output \"%s\"", v->tensor->name);
}
