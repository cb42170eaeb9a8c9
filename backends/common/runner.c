/* runner.c - see runner.h */

#include "runner.h"

#include <stdlib.h>

static TRITONSERVER_Error *slots_reserve(bk_runner_t *r, uint32_t count);
static uint32_t group_end(bk_runner_t *r, uint32_t from, uint32_t count);
static void group_run(bk_runner_t *r, bk_slot_t *slots, uint32_t count,
    bk_times_t times);
static void run_together(bk_runner_t *r, bk_slot_t *slots, uint32_t count,
    bk_times_t *times);
static void run_half(bk_runner_t *r, bk_slot_t *slots, uint32_t count,
    bk_times_t *times);
static void run_alone(bk_runner_t *r, bk_slot_t *slot, bk_times_t *times);
static void run_bound(bk_runner_t *r, bk_slot_t *slots,
    uint32_t count, bk_times_t *times);
static void errors_spread(bk_slot_t *slots, uint32_t count,
    TRITONSERVER_Error *err);

TRITONSERVER_Error *
bk_runner_init(bk_runner_t *r, TRITONBACKEND_ModelInstance *handle,
    const bk_slot_rules_t *rules, const bk_runtime_t *runtime, void *self)
{
    *r = (bk_runner_t) { .handle = handle, .rules = *rules };

    return bk_batch_init(&r->batch, &r->rules, runtime, self);
}

void
bk_runner_fini(bk_runner_t *r)
{
    bk_batch_fini(&r->batch);
    free(r->slots);
    free(r->slot_inputs);
    free(r->slot_wanted);
    *r = (bk_runner_t) { 0 };
}

TRITONSERVER_Error *
bk_runner_execute(bk_runner_t *r, TRITONBACKEND_Request **requests,
    uint32_t count)
{
    bk_times_t times = { .start_ns = bk_now_ns() };

    TRITONSERVER_Error *err = slots_reserve(r, count);
    if (err != NULL) {
        return err;
    }

    for (uint32_t i = 0; i < count; i++) {
        bk_slot_open(&r->slots[i], &r->rules, requests[i]);
    }

    for (uint32_t i = 0; i < count; ) {
        uint32_t end = group_end(r, i, count);
        group_run(r, &r->slots[i], end - i, times);
        i = end;
    }

    return NULL;
}

/* grows and never shrinks: after the largest batch nothing is allocated */
static TRITONSERVER_Error *
slots_reserve(bk_runner_t *r, uint32_t count)
{
    size_t ins = (size_t) r->rules.tensors->input_count + 1;
    size_t outs = (size_t) r->rules.tensors->output_count + 1;

    if (count <= r->slot_cap) {
        return NULL;
    }

    bk_slot_t *slots = calloc(count, sizeof(*slots));
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

    free(r->slots);
    free(r->slot_inputs);
    free(r->slot_wanted);
    r->slots = slots;
    r->slot_inputs = inputs;
    r->slot_wanted = wanted;
    r->slot_cap = count;
    return NULL;
}

/* the first slot that cannot run together with slot from; clients that have
 * given up while earlier groups ran get no run */
static uint32_t
group_end(bk_runner_t *r, uint32_t from, uint32_t count)
{
    const bk_slot_t *first = &r->slots[from];
    uint32_t end = from + 1;

    bk_slot_check_cancelled(&r->slots[from]);
    if (first->err != NULL || !r->rules.batching) {
        return end;
    }

    for (; end < count; end++) {
        bk_slot_t *next = &r->slots[end];

        bk_slot_check_cancelled(next);
        if (next->err != NULL || !bk_slot_joins(first, next,
            r->rules.tensors))
        {
            break;
        }
    }

    return end;
}

static void
group_run(bk_runner_t *r, bk_slot_t *slots, uint32_t count,
    bk_times_t times)
{
    uint64_t rows = 0;
    bool runs = slots[0].err == NULL;

    times.compute_start_ns = bk_now_ns();
    times.compute_end_ns = times.compute_start_ns;
    if (runs) {
        run_together(r, slots, count, &times);
    }
    times.end_ns = bk_now_ns();

    for (uint32_t i = 0; i < count; i++) {
        rows += slots[i].rows;
    }

    if (runs) {
        bk_err_log(TRITONBACKEND_ModelInstanceReportBatchStatistics(
            r->handle, rows, times.start_ns, times.compute_start_ns,
            times.compute_end_ns, times.end_ns), "batch statistics");
    }

    for (uint32_t i = 0; i < count; i++) {
        bk_slot_finish(&slots[i], r->handle, &times);
    }
}

/* A runtime's error does not say whose data is wrong, and only that request is
 * to have it: a batch that has failed runs once more in halves, and so on. */
static void
run_together(bk_runner_t *r, bk_slot_t *slots, uint32_t count,
    bk_times_t *times)
{
    TRITONSERVER_Error *err = bk_batch_run(&r->batch, slots, count, times);

    if (count > 1 && err != NULL && r->batch.run_failed
        && TRITONSERVER_ErrorCode(err) != TRITONSERVER_ERROR_CANCELLED
        && TRITONSERVER_ErrorCode(err) != TRITONSERVER_ERROR_UNAVAILABLE)
    {
        bk_log(TRITONSERVER_LOG_VERBOSE, "%u requests run again, in two"
            " halves, after: %s", count, TRITONSERVER_ErrorMessage(err));
        bk_err_drop(err);
        run_half(r, slots, count / 2, times);
        run_half(r, slots + count / 2, count - count / 2, times);
        return;
    }

    errors_spread(slots, count, err);
    if (count > 1 && r->rules.device_id != BK_NO_DEVICE) {
        run_bound(r, slots, count, times);
    }
}

static void
run_half(bk_runner_t *r, bk_slot_t *slots, uint32_t count, bk_times_t *times)
{
    uint64_t start_ns = times->compute_start_ns;

    if (count == 1) {
        run_alone(r, slots, times);
    } else {
        run_together(r, slots, count, times);
    }
    times->compute_start_ns = start_ns;
}

static void
run_alone(bk_runner_t *r, bk_slot_t *slot, bk_times_t *times)
{
    uint64_t start_ns = times->compute_start_ns;

    bk_slot_check_cancelled(slot);
    if (slot->err == NULL) {
        errors_spread(slot, 1, bk_batch_run(&r->batch, slot, 1, times));
    }
    times->compute_start_ns = start_ns;
}

/*
 * Outputs of a batch are copied on the host.  A response whose memory is the
 * GPU's own, a client's region most often, shows that only when it is
 * allocated; such a request is bound in place by itself.
 */
static void
run_bound(bk_runner_t *r, bk_slot_t *slots, uint32_t count,
    bk_times_t *times)
{
    for (uint32_t i = 0; i < count; i++) {
        if (slots[i].err != NULL && TRITONSERVER_ErrorCode(slots[i].err)
            == TRITONSERVER_ERROR_UNSUPPORTED)
        {
            bk_err_drop(slots[i].err);
            bk_slot_restart(&slots[i]);
            run_alone(r, &slots[i], times);
        }
    }
}

/* every slot without an error of its own gets err; takes err */
static void
errors_spread(bk_slot_t *slots, uint32_t count, TRITONSERVER_Error *err)
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
