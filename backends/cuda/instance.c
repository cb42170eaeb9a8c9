/* instance.c - see instance.h */

#include "instance.h"

#include "late.h"

#include <stdlib.h>

typedef struct {
    gpu_model_t                 *model;
    TRITONBACKEND_ModelInstance *handle;
    gpu_batch_t                  batch;
    gpu_batch_request_t         *requests;
    bk_input_t                  *request_inputs;
    bool                        *request_wanted;
    TRITONBACKEND_State        **request_states;
    uint32_t                     request_cap;
    gpu_late_t                   late;
} gpu_instance_t;

static TRITONSERVER_Error *instance_setup(gpu_instance_t *inst);
static TRITONSERVER_Error *find_device(gpu_instance_t *inst, int32_t *device);
static TRITONSERVER_Error *start_library(gpu_instance_t *inst);
static TRITONSERVER_Error *requests_reserve(gpu_instance_t *inst,
    uint32_t count);
static uint32_t group_end(const gpu_instance_t *inst, uint32_t from,
    uint32_t count);
static void group_run(gpu_instance_t *inst, gpu_batch_request_t *reqs,
    uint32_t count, bk_times_t times);
static void run_one_by_one(gpu_instance_t *inst, gpu_batch_request_t *reqs,
    uint32_t count, bk_times_t times);
static void group_report(gpu_instance_t *inst, const gpu_batch_request_t *reqs,
    uint32_t count, const bk_times_t *times);

TRITONSERVER_Error *
gpu_instance_new(void **out, TRITONBACKEND_ModelInstance *handle,
    void *model)
{
    gpu_instance_t *inst = calloc(1, sizeof(*inst));
    if (inst == NULL) {
        return bk_err_nomem("state of an instance");
    }

    inst->handle = handle;
    inst->model = model;
    TRITONSERVER_Error *err = gpu_model_blame(inst->model,
        instance_setup(inst));
    if (err != NULL) {
        gpu_instance_free(inst);
        return err;
    }

    *out = inst;
    return NULL;
}

/* Of kernels that have not ended everything stays, until the process ends. */
void
gpu_instance_free(void *instance)
{
    gpu_instance_t *inst = instance;

    if (inst == NULL) {
        return;
    }

    gpu_late_stop(&inst->late);
    if (!gpu_late_release(&inst->late)) {
        bk_log(TRITONSERVER_LOG_ERROR, "an instance ends while its kernels"
            " run; its memory on the GPU is not given back");
        return;
    }

    if (inst->batch.library != NULL) {
        TRITONSERVER_Error *err = gpu_enter(inst->batch.device);
        inst->batch.library->fini(inst->batch.library_state);
        if (err == NULL) {
            gpu_leave(inst->batch.device);
        }
        bk_err_drop(err);
    }
    gpu_batch_fini(&inst->batch);
    free(inst->requests);
    free(inst->request_inputs);
    free(inst->request_wanted);
    free(inst->request_states);
    free(inst);
}

TRITONSERVER_Error *
gpu_instance_execute(void *instance, TRITONBACKEND_Request **requests,
    uint32_t count)
{
    gpu_instance_t *inst = instance;
    bk_times_t times = { .start_ns = bk_now_ns() };

    (void) gpu_late_release(&inst->late);
    TRITONSERVER_Error *err = requests_reserve(inst, count);
    if (err != NULL) {
        return err;
    }

    for (uint32_t i = 0; i < count; i++) {
        gpu_batch_request_open(&inst->requests[i],
            gpu_model_program(inst->model), requests[i]);
    }

    for (uint32_t i = 0; i < count; ) {
        uint32_t end = group_end(inst, i, count);
        group_run(inst, &inst->requests[i], end - i, times);
        i = end;
    }

    return NULL;
}

TRITONSERVER_Error *
gpu_instance_ready(void *instance)
{
    const gpu_instance_t *inst = instance;
    TRITONSERVER_Error *err = gpu_device_state(inst->batch.device);

    return err != NULL || !gpu_late_is_waiting(&inst->late) ? err
        : bk_err_new(TRITONSERVER_ERROR_UNAVAILABLE, "kernels of an earlier"
            " batch have not ended on GPU %d", inst->batch.device->ordinal);
}

static TRITONSERVER_Error *
instance_setup(gpu_instance_t *inst)
{
    const gpu_program_t *program = gpu_model_program(inst->model);
    gpu_loaded_t *loaded;
    int32_t device;

    TRITONSERVER_Error *err = find_device(inst, &device);
    if (err == NULL) {
        err = gpu_model_load(inst->model, device, &loaded);
    }
    if (err == NULL) {
        err = gpu_batch_init(&inst->batch, loaded->device, program, loaded);
    }
    if (err != NULL || gpu_model_library(inst->model) == NULL) {
        return err;
    }

    return start_library(inst);
}

static TRITONSERVER_Error *
find_device(gpu_instance_t *inst, int32_t *device)
{
    TRITONSERVER_InstanceGroupKind kind;

    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceKind(inst->handle,
        &kind);
    if (err == NULL) {
        err = TRITONBACKEND_ModelInstanceDeviceId(inst->handle, device);
    }
    if (err == NULL && kind != TRITONSERVER_INSTANCEGROUPKIND_GPU) {
        err = bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "backend cuda has"
            " instances of KIND_GPU only, this one is KIND_%s",
            TRITONSERVER_InstanceGroupKindString(kind));
    }
    return err;
}

static TRITONSERVER_Error *
start_library(gpu_instance_t *inst)
{
    gpu_batch_t *b = &inst->batch;
    gpu_model_options_t options = {
        .device = b->device->ordinal, .stream = b->stream
    };

    TRITONSERVER_Error *err = gpu_enter(b->device);
    if (err != NULL) {
        return err;
    }

    b->library = gpu_model_library(inst->model);
    gpu_model_describe(inst->model, &options);
    err = gpu_library_init(b->library, &b->library_state, &options);
    gpu_leave(b->device);
    if (err != NULL) {
        b->library = NULL;
    }
    return err;
}

/* Grows and never shrinks: after the largest batch nothing is allocated. */
static TRITONSERVER_Error *
requests_reserve(gpu_instance_t *inst, uint32_t count)
{
    const gpu_program_t *p = gpu_model_program(inst->model);
    size_t outputs = p->tensor_count - p->input_count;

    if (count <= inst->request_cap) {
        return NULL;
    }

    gpu_batch_request_t *reqs = calloc(count, sizeof(*reqs));
    bk_input_t *inputs = calloc(count, p->input_count * sizeof(*inputs));
    bool *wanted = calloc(count, outputs * sizeof(*wanted));
    TRITONBACKEND_State **states = calloc(count, outputs
        * sizeof(TRITONBACKEND_State *));
    if (reqs == NULL || inputs == NULL || wanted == NULL || states == NULL) {
        free(reqs);
        free(inputs);
        free(wanted);
        free(states);
        return bk_err_nomem("requests of a batch");
    }

    for (uint32_t i = 0; i < count; i++) {
        reqs[i].inputs = inputs + (size_t) i * p->input_count;
        reqs[i].wanted = wanted + i * outputs;
        reqs[i].states = states + i * outputs;
    }

    free(inst->requests);
    free(inst->request_inputs);
    free(inst->request_wanted);
    free(inst->request_states);
    inst->requests = reqs;
    inst->request_inputs = inputs;
    inst->request_wanted = wanted;
    inst->request_states = states;
    inst->request_cap = count;
    return NULL;
}

/* The first request that cannot run together with request from. */
static uint32_t
group_end(const gpu_instance_t *inst, uint32_t from, uint32_t count)
{
    const gpu_batch_request_t *first = &inst->requests[from];
    int64_t rows = first->rows;
    uint32_t end = from + 1;

    while (first->err == NULL && end < count
        && gpu_batch_requests_compatible(first, &inst->requests[end], rows,
            gpu_model_program(inst->model)))
    {
        rows += inst->requests[end++].rows;
    }
    return end;
}

static void
group_run(gpu_instance_t *inst, gpu_batch_request_t *reqs, uint32_t count,
    bk_times_t times)
{
    bool stuck = false, alone = false;

    times.compute_start_ns = bk_now_ns();
    times.compute_end_ns = times.compute_start_ns;
    if (reqs[0].err == NULL) {
        TRITONSERVER_Error *err = gpu_instance_ready(inst);
        if (err == NULL) {
            err = gpu_batch_run(&inst->batch, reqs, count, &times, &stuck);
            alone = err != NULL && count > 1 && !inst->batch.queued;
        }
        if (alone) {
            bk_err_drop(err);
            run_one_by_one(inst, reqs, count, times);
            return;
        }
        gpu_batch_requests_fail(reqs, count,
            gpu_model_blame_by_name(inst->model, err));
    }
    times.end_ns = bk_now_ns();

    if (stuck) {
        gpu_late_keep(&inst->late, &inst->batch, reqs, count, inst->handle,
            &times);
        return;
    }

    for (uint32_t i = 0; i < count; i++) {
        gpu_batch_request_keep_states(&reqs[i], gpu_model_program(inst->model));
    }
    group_report(inst, reqs, count, &times);
    for (uint32_t i = 0; i < count; i++) {
        gpu_batch_request_finish(&reqs[i], inst->handle, &times);
    }
}

/* Requests that are valid alone may not be together: geometry, memory and
   numbers of a batch grow with its rows. */
static void
run_one_by_one(gpu_instance_t *inst, gpu_batch_request_t *reqs, uint32_t count,
    bk_times_t times)
{
    for (uint32_t i = 0; i < count; i++) {
        group_run(inst, &reqs[i], 1, times);
    }
}

/* A batch counts if one of its requests was answered. */
static void
group_report(gpu_instance_t *inst, const gpu_batch_request_t *reqs,
    uint32_t count, const bk_times_t *times)
{
    uint64_t rows = 0;
    bool ran = false;

    for (uint32_t i = 0; i < count; i++) {
        rows += (uint64_t) reqs[i].rows;
        ran = ran || reqs[i].err == NULL;
    }

    if (ran) {
        bk_err_log(TRITONBACKEND_ModelInstanceReportBatchStatistics(
            inst->handle, rows, times->start_ns, times->compute_start_ns,
            times->compute_end_ns, times->end_ns), "batch statistics");
    }
}
