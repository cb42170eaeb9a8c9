/* instance.c - see instance.h */

#include "instance.h"

#include <stdlib.h>
#include <string.h>

static TRITONSERVER_Error *instance_setup(trees_instance_t *inst,
    TRITONBACKEND_ModelInstance *handle);
static TRITONSERVER_Error *device_setup(trees_instance_t *inst,
    TRITONBACKEND_ModelInstance *handle, int32_t *device_id);
static TRITONSERVER_Error *run(void *self, bk_run_t *run);
static TRITONSERVER_Error *output_make(trees_instance_t *inst,
    const trees_rows_t *rows, bk_value_t *v);
static TRITONSERVER_Error *output_fill(const trees_instance_t *inst,
    trees_output_t output, const trees_rows_t *rows, void *to);

static const bk_runtime_t functions = { .run = run };

TRITONSERVER_Error *
trees_instance_new(void **out, TRITONBACKEND_ModelInstance *handle,
    void *model)
{
    trees_instance_t *inst = calloc(1, sizeof(*inst));
    if (inst == NULL) {
        return bk_err_nomem("state of an instance");
    }

    inst->model = model;
    TRITONSERVER_Error *err = instance_setup(inst, handle);
    if (err != NULL) {
        trees_instance_free(inst);
        return err;
    }

    *out = inst;
    return NULL;
}

void
trees_instance_free(void *instance)
{
    trees_instance_t *inst = instance;

    bk_runner_fini(&inst->runner);
    trees_predict_fini(&inst->predict);
    trees_device_free(inst->device);
    for (int i = 0; i < TREES_OUTPUT_COUNT; i++) {
        bk_scratch_fini(&inst->room[i]);
    }
    free(inst);
}

TRITONSERVER_Error *
trees_instance_execute(void *instance, TRITONBACKEND_Request **requests,
    uint32_t count)
{
    trees_instance_t *inst = instance;

    return bk_runner_execute(&inst->runner, requests, count);
}

static TRITONSERVER_Error *
instance_setup(trees_instance_t *inst, TRITONBACKEND_ModelInstance *handle)
{
    int32_t device_id = BK_NO_DEVICE;

    TRITONSERVER_Error *err = device_setup(inst, handle, &device_id);
    if (err == NULL) {
        err = trees_predict_init(&inst->predict, inst->model->forest,
            &inst->model->answer, inst->device,
            (uint64_t) inst->model->options.transfer_threshold);
    }
    if (err != NULL) {
        return err;
    }

    const bk_instance_config_t config = {
        .tensors = &inst->model->tensors,
        .batching = inst->model->config.max_batch_size > 0,
        .device_id = device_id
    };
    return bk_runner_init(&inst->runner, handle, &config, &functions, inst);
}

static TRITONSERVER_Error *
device_setup(trees_instance_t *inst, TRITONBACKEND_ModelInstance *handle,
    int32_t *device_id)
{
    TRITONSERVER_InstanceGroupKind kind;
    const gpu_compiler_t *compiler;
    gpu_device_t *gpu;

    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceKind(handle, &kind);
    if (err != NULL || kind != TRITONSERVER_INSTANCEGROUPKIND_GPU) {
        return err;
    }

    err = TRITONBACKEND_ModelInstanceDeviceId(handle, device_id);
    if (err == NULL) {
        err = trees_runtime_gpu(inst->model->runtime, *device_id, &gpu,
            &compiler);
    }
    return err != NULL ? err : trees_device_new(&inst->device,
        inst->model->forest, gpu, compiler);
}

static TRITONSERVER_Error *
run(void *self, bk_run_t *run)
{
    trees_instance_t *inst = self;
    const bk_value_t *in = &run->inputs[0];
    const trees_rows_t rows = {
        .data = in->data,
        .count = in->elements / inst->model->forest->features,
        .on_device = in->on_device
    };
    TRITONSERVER_Error *err = NULL;

    for (uint32_t i = 0; err == NULL && i < run->output_count; i++) {
        err = output_make(inst, &rows, &run->outputs[i]);
    }

    return err;
}

/* On a device an output is made on the host, and copied. */
static TRITONSERVER_Error *
output_make(trees_instance_t *inst, const trees_rows_t *rows, bk_value_t *v)
{
    const bk_tensor_t *t = v->tensor;
    trees_output_t output = (trees_output_t) (t
        - inst->model->tensors.outputs);
    uint64_t bytes = TRITONSERVER_DataTypeByteSize(t->datatype);
    bk_scratch_t *room = &inst->room[output];

    if (v->preallocated && !v->on_device) {
        return output_fill(inst, output, rows, v->data);
    }

    v->dims_count = t->dims_count;
    memcpy(v->dims, t->dims, t->dims_count * sizeof(*t->dims));
    v->dims[0] = (int64_t) rows->count;
    for (uint32_t i = 0; i < v->dims_count; i++) {
        if (__builtin_mul_overflow(bytes, (uint64_t) v->dims[i], &bytes)) {
            return bk_err_nomem(t->name);
        }
    }

    TRITONSERVER_Error *err = bk_scratch_reserve(room, bytes, t->name);
    if (err == NULL) {
        err = output_fill(inst, output, rows, room->data);
    }
    if (err == NULL && v->preallocated) {
        return trees_device_put(inst->device, v->data, room->data, bytes);
    }

    v->data = room->data;
    return err;
}

static TRITONSERVER_Error *
output_fill(const trees_instance_t *inst, trees_output_t output,
    const trees_rows_t *rows, void *to)
{
    switch (output) {

    case TREES_OUTPUT:
        return trees_predict(&inst->predict, rows, to);

    case TREES_RAW:
        return trees_predict_raw(&inst->predict, rows, to);

    case TREES_LEAF_IDS:
        return trees_predict_leaves(&inst->predict, rows, to);

    case TREES_SCORES:
        return trees_predict_trees(&inst->predict, rows, to);

    case TREES_OUTPUT_COUNT:
        break;
    }

    return NULL;
}
