/* instance.c - see instance.h */

#include "instance.h"

#include "element_type.h"
#include "script.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static TRITONSERVER_Error *instance_setup(pt_instance_t *inst,
    TRITONBACKEND_ModelInstance *handle);
static TRITONSERVER_Error *engine_open(pt_instance_t *inst,
    TRITONBACKEND_ModelInstance *handle);
static TRITONSERVER_Error *run(void *self, bk_run_t *run);
static void run_done(void *self, bk_run_t *run);
static void argument_fill(pt_argument_t *a, const bk_value_t *v);
static TRITONSERVER_Error *output_read(const pt_instance_t *inst,
    bk_value_t *v);

static const bk_runtime_t run_functions = {
    .run = run,
    .done = run_done,
    .allocates_outputs = true
};

TRITONSERVER_Error *
pt_instance_new(void **out, TRITONBACKEND_ModelInstance *handle, void *model)
{
    pt_instance_t *inst = calloc(1, sizeof(*inst));
    if (inst == NULL) {
        return bk_err_nomem("state of an instance");
    }

    inst->model = model;
    TRITONSERVER_Error *err = instance_setup(inst, handle);
    if (err != NULL) {
        pt_instance_free(inst);
        return err;
    }

    *out = inst;
    return NULL;
}

void
pt_instance_free(void *instance)
{
    pt_instance_t *inst = instance;

    bk_runner_fini(&inst->runner);
    free(inst->arguments);
    free(inst->results.items);
    pt_places_fini(&inst->places);
    if (inst->own) {
        pt_engine_free(inst->engine);
    }
    free(inst);
}

TRITONSERVER_Error *
pt_instance_execute(void *instance, TRITONBACKEND_Request **requests,
    uint32_t count)
{
    pt_instance_t *inst = instance;

    pt_threads_use((int) inst->model->options.intra_threads);
    return bk_runner_execute(&inst->runner, requests, count);
}

static TRITONSERVER_Error *
instance_setup(pt_instance_t *inst, TRITONBACKEND_ModelInstance *handle)
{
    pt_model_t *m = inst->model;

    TRITONSERVER_Error *err = engine_open(inst, handle);
    if (err == NULL) {
        err = pt_places_find(&inst->places, &m->config, &m->tensors,
            &inst->engine->signature);
    }
    if (err != NULL) {
        return err;
    }

    inst->arguments = calloc((size_t) inst->places.argument_count + 1,
        sizeof(*inst->arguments));
    inst->results.items = calloc(
        (size_t) inst->engine->signature.output_count + 1,
        sizeof(*inst->results.items));
    if (inst->arguments == NULL || inst->results.items == NULL) {
        return bk_err_nomem("tables of a run");
    }

    const bk_instance_config_t config = {
        .tensors = &m->tensors,
        .batching = m->config.max_batch_size > 0,
        .device_id = BK_NO_DEVICE
    };
    return bk_runner_init(&inst->runner, handle, &config, &run_functions,
        inst);
}

static TRITONSERVER_Error *
engine_open(pt_instance_t *inst, TRITONBACKEND_ModelInstance *handle)
{
    TRITONSERVER_InstanceGroupKind kind;
    int32_t device_id = 0;

    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceKind(handle, &kind);
    if (err == NULL) {
        err = TRITONBACKEND_ModelInstanceDeviceId(handle, &device_id);
    }
    if (err != NULL) {
        return err;
    }

    int device = kind == TRITONSERVER_INSTANCEGROUPKIND_GPU ? device_id
        : kind == TRITONSERVER_INSTANCEGROUPKIND_MODEL ? PT_ANY_DEVICE
        : PT_CPU;
    return pt_model_open(inst->model, device, &inst->engine, &inst->own);
}

static TRITONSERVER_Error *
run(void *self, bk_run_t *run)
{
    pt_instance_t *inst = self;
    const bk_tensor_t *inputs = inst->model->tensors.inputs;

    memset(inst->arguments, 0, inst->places.argument_count
        * sizeof(*inst->arguments));
    for (uint32_t i = 0; i < run->input_count; i++) {
        const bk_value_t *v = &run->inputs[i];

        argument_fill(&inst->arguments[inst->places.inputs[v->tensor
            - inputs]], v);
    }

    TRITONSERVER_Error *err = inst->engine->functions->run(
        inst->engine->self, inst->arguments, inst->places.argument_count,
        &inst->results);
    for (uint32_t i = 0; err == NULL && i < run->output_count; i++) {
        err = output_read(inst, &run->outputs[i]);
    }

    return err;
}

static void
run_done(void *self, bk_run_t *run)
{
    pt_instance_t *inst = self;

    (void) run;
    if (inst->results.held != NULL) {
        inst->engine->functions->release(inst->engine->self, &inst->results);
    }
}

static void
argument_fill(pt_argument_t *a, const bk_value_t *v)
{
    *a = (pt_argument_t) {
        .name = v->tensor->name,
        .dims = v->dims,
        .data = v->data,
        .len_bytes = v->len_bytes,
        .elements = v->elements,
        .dims_count = v->dims_count,
        .type = v->tensor->datatype == TRITONSERVER_TYPE_BYTES ? PT_TEXTS
            : pt_type_of(v->tensor->datatype),
        .given = true
    };
}

static TRITONSERVER_Error *
output_read(const pt_instance_t *inst, bk_value_t *v)
{
    const bk_tensor_t *t = v->tensor;
    const pt_result_t *r = &inst->results.items[inst->places.outputs[t
        - inst->model->tensors.outputs]];
    TRITONSERVER_DataType datatype = r->type == PT_TEXTS
        ? TRITONSERVER_TYPE_BYTES : pt_datatype_of(r->type);

    if (datatype != t->datatype) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "configuration expects datatype TYPE_%s for output '%s', model "
            "provides TYPE_%s", TRITONSERVER_DataTypeString(t->datatype),
            t->name, TRITONSERVER_DataTypeString(datatype));
    }

    if (r->dims_count > BK_MAX_DIMS) {
        return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
            "output \"%s\" has %" PRIu32 " dimensions, more than %d", t->name,
            r->dims_count, BK_MAX_DIMS);
    }

    memcpy(v->dims, r->dims, r->dims_count * sizeof(*r->dims));
    v->dims_count = r->dims_count;
    v->data = (void *) (uintptr_t) r->data;
    v->len_bytes = r->len_bytes;
    return NULL;
}
