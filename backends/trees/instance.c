/* instance.c - see instance.h */

#include "instance.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static TRITONSERVER_Error *instance_setup(trees_instance_t *inst,
    TRITONBACKEND_ModelInstance *handle);
static TRITONSERVER_Error *run(void *self, bk_run_t *run);
static TRITONSERVER_Error *output_room(trees_instance_t *inst,
    trees_output_t output, uint64_t rows, bk_value_t *v);
static void output_fill(const trees_instance_t *inst, trees_output_t output,
    const float *rows, uint64_t count, void *to);

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
    for (int i = 0; i < TREES_OUTPUT_COUNT; i++) {
        free(inst->room[i]);
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
    TRITONSERVER_InstanceGroupKind kind;

    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceKind(handle, &kind);
    if (err != NULL) {
        return err;
    }

    if (kind == TRITONSERVER_INSTANCEGROUPKIND_GPU) {
        return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
            "instances of this backend are KIND_CPU");
    }

    err = trees_predict_init(&inst->predict, inst->model->forest,
        &inst->model->answer);
    if (err != NULL) {
        return err;
    }

    const bk_slot_rules_t rules = {
        .tensors = &inst->model->tensors,
        .batching = inst->model->config.max_batch_size > 0,
        .device_id = BK_NO_DEVICE
    };
    return bk_runner_init(&inst->runner, handle, &rules, &functions, inst);
}

static TRITONSERVER_Error *
run(void *self, bk_run_t *run)
{
    trees_instance_t *inst = self;
    const bk_value_t *in = &run->inputs[0];
    const trees_forest_t *f = inst->model->forest;
    uint64_t rows = in->elements / f->features;

    for (uint32_t i = 0; i < run->output_count; i++) {
        bk_value_t *v = &run->outputs[i];
        trees_output_t output = (trees_output_t) (v->tensor
            - inst->model->tensors.outputs);

        TRITONSERVER_Error *err = v->given ? NULL
            : output_room(inst, output, rows, v);
        if (err != NULL) {
            return err;
        }
        output_fill(inst, output, in->data, rows, v->data);
    }

    return NULL;
}

static TRITONSERVER_Error *
output_room(trees_instance_t *inst, trees_output_t output, uint64_t rows,
    bk_value_t *v)
{
    const bk_tensor_t *t = v->tensor;
    uint64_t bytes = 4;                 /* of FP32 and INT32                 */
    bool fits = true;

    v->dims_count = t->dims_count;
    memcpy(v->dims, t->dims, t->dims_count * sizeof(*t->dims));
    v->dims[0] = (int64_t) rows;
    for (uint32_t i = 0; i < v->dims_count; i++) {
        fits = fits && !__builtin_mul_overflow(bytes, (uint64_t) v->dims[i],
            &bytes);
    }

    if (fits && bytes > inst->room_bytes[output]) {
        void *room = realloc(inst->room[output], bytes);

        fits = room != NULL;
        inst->room[output] = fits ? room : inst->room[output];
        inst->room_bytes[output] = fits ? bytes : inst->room_bytes[output];
    }

    v->data = inst->room[output];
    return fits ? NULL : bk_err_new(TRITONSERVER_ERROR_UNAVAILABLE,
        "no memory for output \"%s\" of %" PRIu64 " rows", t->name, rows);
}

static void
output_fill(const trees_instance_t *inst, trees_output_t output,
    const float *rows, uint64_t count, void *to)
{
    switch (output) {

    case TREES_OUTPUT:
        trees_predict(&inst->predict, rows, count, to);
        break;

    case TREES_RAW:
        trees_predict_raw(&inst->predict, rows, count, to);
        break;

    case TREES_LEAF_IDS:
        trees_predict_leaves(&inst->predict, rows, count, to);
        break;

    case TREES_SCORES:
        trees_predict_trees(&inst->predict, rows, count, to);
        break;

    case TREES_OUTPUT_COUNT:
        break;
    }
}
