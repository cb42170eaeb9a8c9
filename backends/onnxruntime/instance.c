/* instance.c - see instance.h */

#include "instance.h"

#include <stdlib.h>

static TRITONSERVER_Error *instance_setup(ort_instance_t *inst);
static TRITONSERVER_Error *slots_reserve(ort_instance_t *inst,
    uint32_t count);
static uint32_t group_end(const ort_instance_t *inst, uint32_t from,
    uint32_t count);
static void group_run(ort_instance_t *inst, ort_slot_t *slots,
    uint32_t count, ort_times_t times);
static void run_again_alone(ort_instance_t *inst, ort_slot_t *slots,
    uint32_t count, ort_times_t *times);
static void errors_spread(ort_slot_t *slots, uint32_t count,
    TRITONSERVER_Error *err);

TRITONSERVER_Error *
ort_instance_new(ort_instance_t **out, TRITONBACKEND_ModelInstance *handle)
{
    ort_instance_t *inst = calloc(1, sizeof(*inst));
    if (inst == NULL) {
        return bk_err_nomem("state of an instance");
    }

    inst->handle = handle;
    TRITONSERVER_Error *err = instance_setup(inst);
    if (err != NULL) {
        ort_instance_free(inst);
        return err;
    }

    *out = inst;
    return NULL;
}

void
ort_instance_free(ort_instance_t *inst)
{
    if (inst == NULL) {
        return;
    }

    if (inst->batch.session != NULL) {
        ort_batch_fini(&inst->batch);
    }
    free(inst->slots);
    free(inst->slot_inputs);
    free(inst->slot_wanted);
    ort_session_free(inst->session);
    free(inst);
}

TRITONSERVER_Error *
ort_instance_execute(ort_instance_t *inst, TRITONBACKEND_Request **requests,
    uint32_t count)
{
    ort_times_t times = { .start_ns = bk_now_ns() };

    TRITONSERVER_Error *err = slots_reserve(inst, count);
    if (err != NULL) {
        return err;
    }

    for (uint32_t i = 0; i < count; i++) {
        ort_slot_open(&inst->slots[i], inst->model, inst->session,
            requests[i]);
    }

    for (uint32_t i = 0; i < count; ) {
        uint32_t end = group_end(inst, i, count);
        group_run(inst, &inst->slots[i], end - i, times);
        i = end;
    }

    return NULL;
}

static TRITONSERVER_Error *
instance_setup(ort_instance_t *inst)
{
    TRITONSERVER_InstanceGroupKind kind;
    TRITONBACKEND_Model *model;
    int32_t device_id = 0;
    void *state = NULL;

    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceModel(inst->handle,
        &model);
    if (err == NULL) {
        err = TRITONBACKEND_ModelState(model, &state);
    }
    if (err == NULL) {
        err = TRITONBACKEND_ModelInstanceKind(inst->handle, &kind);
    }
    if (err == NULL) {
        err = TRITONBACKEND_ModelInstanceDeviceId(inst->handle, &device_id);
    }
    if (err != NULL) {
        return err;
    }

    inst->model = state;
    err = ort_model_open_session(inst->model, kind, device_id,
        &inst->session);
    if (err != NULL) {
        return err;
    }

    return ort_batch_init(&inst->batch, inst->session,
        inst->model->config.max_batch_size > 0);
}

/* grows and never shrinks: after the largest batch nothing is allocated */
static TRITONSERVER_Error *
slots_reserve(ort_instance_t *inst, uint32_t count)
{
    size_t ins = (size_t) inst->session->input_count + 1;
    size_t outs = (size_t) inst->session->output_count + 1;

    if (count <= inst->slot_cap) {
        return NULL;
    }

    ort_slot_t *slots = calloc(count, sizeof(*slots));
    bk_input_t *inputs = calloc(count, ins * sizeof(*inputs));
    bool *wanted = calloc(count, outs * sizeof(*wanted));
    if (slots == NULL || inputs == NULL || wanted == NULL) {
        free(slots);
        free(inputs);
        free(wanted);
        return bk_err_nomem("requests of a batch");
    }

    for (uint32_t i = 0; i < count; i++) {
        slots[i].inputs = inputs + i * ins;
        slots[i].wanted = wanted + i * outs;
    }

    free(inst->slots);
    free(inst->slot_inputs);
    free(inst->slot_wanted);
    inst->slots = slots;
    inst->slot_inputs = inputs;
    inst->slot_wanted = wanted;
    inst->slot_cap = count;
    return NULL;
}

/* the first slot that cannot run together with slot from */
static uint32_t
group_end(const ort_instance_t *inst, uint32_t from, uint32_t count)
{
    const ort_slot_t *first = &inst->slots[from];
    uint32_t end = from + 1;

    if (first->err != NULL || !inst->batch.batching) {
        return end;
    }

    while (end < count && inst->slots[end].err == NULL
        && ort_slot_joins(first, &inst->slots[end], inst->session))
    {
        end++;
    }

    return end;
}

static void
group_run(ort_instance_t *inst, ort_slot_t *slots, uint32_t count,
    ort_times_t times)
{
    uint64_t rows = 0;
    bool runs = slots[0].err == NULL;

    times.compute_start_ns = bk_now_ns();
    times.compute_end_ns = times.compute_start_ns;
    if (runs) {
        errors_spread(slots, count, ort_batch_run(&inst->batch, slots, count,
            &times));
        if (count > 1 && inst->session->device != NULL) {
            run_again_alone(inst, slots, count, &times);
        }
    }
    times.end_ns = bk_now_ns();

    for (uint32_t i = 0; i < count; i++) {
        rows += slots[i].rows;
    }

    if (runs) {
        bk_err_log(TRITONBACKEND_ModelInstanceReportBatchStatistics(
            inst->handle, rows, times.start_ns, times.compute_start_ns,
            times.compute_end_ns, times.end_ns), "batch statistics");
    }

    for (uint32_t i = 0; i < count; i++) {
        ort_slot_finish(&slots[i], inst->handle, &times);
    }
}

/*
 * Outputs of a batch are copied on the host.  A response whose memory is the
 * GPU's own, a client's region most often, shows that only when it is
 * allocated; such a request runs once more by itself, bound in place.
 */
static void
run_again_alone(ort_instance_t *inst, ort_slot_t *slots, uint32_t count,
    ort_times_t *times)
{
    uint64_t start_ns = times->compute_start_ns;

    for (uint32_t i = 0; i < count; i++) {
        if (slots[i].err == NULL || TRITONSERVER_ErrorCode(slots[i].err)
            != TRITONSERVER_ERROR_UNSUPPORTED)
        {
            continue;
        }

        bk_err_drop(slots[i].err);
        ort_slot_restart(&slots[i]);
        if (slots[i].err == NULL) {
            errors_spread(&slots[i], 1, ort_batch_run(&inst->batch,
                &slots[i], 1, times));
        }
    }

    times->compute_start_ns = start_ns;
}

/* every slot without an error of its own gets err; takes err */
static void
errors_spread(ort_slot_t *slots, uint32_t count, TRITONSERVER_Error *err)
{
    if (err == NULL) {
        return;
    }

    for (uint32_t i = 0; i < count; i++) {
        if (slots[i].err == NULL) {
            slots[i].err = bk_err_new(TRITONSERVER_ErrorCode(err), "%s",
                TRITONSERVER_ErrorMessage(err));
        }
    }

    bk_err_drop(err);
}
