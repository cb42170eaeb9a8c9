/* runner.c - see runner.h */

#include "runner.h"

#include <stdlib.h>

static TRITONSERVER_Error *requests_reserve(bk_runner_t *r, uint32_t count);
static uint32_t group_end(bk_runner_t *r, uint32_t from, uint32_t count);
static void group_run(bk_runner_t *r, bk_batch_request_t *reqs, uint32_t count,
    bk_times_t times);
static void run_together(bk_runner_t *r, bk_batch_request_t *reqs,
    uint32_t count, bk_times_t *times);
static void run_half(bk_runner_t *r, bk_batch_request_t *reqs, uint32_t count,
    bk_times_t *times);
static void run_alone(bk_runner_t *r, bk_batch_request_t *req,
    bk_times_t *times);
static void run_rejected_alone(bk_runner_t *r, bk_batch_request_t *reqs,
    uint32_t count, bk_times_t *times);
static void errors_spread(bk_batch_request_t *reqs, uint32_t count,
    TRITONSERVER_Error *err);

TRITONSERVER_Error *
bk_runner_init(bk_runner_t *r, TRITONBACKEND_ModelInstance *handle,
    const bk_instance_config_t *config, const bk_runtime_t *runtime, void *self)
{
    *r = (bk_runner_t) { .handle = handle, .config = *config };

    return bk_batch_init(&r->batch, &r->config, runtime, self);
}

void
bk_runner_fini(bk_runner_t *r)
{
    bk_batch_fini(&r->batch);
    free(r->requests);
    free(r->request_inputs);
    free(r->request_wanted);
    *r = (bk_runner_t) { 0 };
}

TRITONSERVER_Error *
bk_runner_execute(bk_runner_t *r, TRITONBACKEND_Request **requests,
    uint32_t count)
{
    bk_times_t times = { .start_ns = bk_now_ns() };

    TRITONSERVER_Error *err = requests_reserve(r, count);
    if (err != NULL) {
        return err;
    }

    for (uint32_t i = 0; i < count; i++) {
        bk_batch_request_open(&r->requests[i], &r->config, requests[i]);
    }

    for (uint32_t i = 0; i < count; ) {
        uint32_t end = group_end(r, i, count);
        group_run(r, &r->requests[i], end - i, times);
        i = end;
    }

    return NULL;
}

/* grows and never shrinks: after the largest batch nothing is allocated */
static TRITONSERVER_Error *
requests_reserve(bk_runner_t *r, uint32_t count)
{
    size_t ins = (size_t) r->config.tensors->input_count + 1;
    size_t outs = (size_t) r->config.tensors->output_count + 1;

    if (count <= r->request_cap) {
        return NULL;
    }

    bk_batch_request_t *reqs = calloc(count, sizeof(*reqs));
    bk_input_t *inputs = calloc(count, ins * sizeof(*inputs));
    bool *wanted = calloc(count, outs * sizeof(*wanted));
    if (reqs == NULL || inputs == NULL || wanted == NULL) {
        free(reqs);
        free(inputs);
        free(wanted);
        return bk_err_nomem("requests of a batch");
    }

    for (uint32_t i = 0; i < count; i++) {
        reqs[i].inputs = inputs + i * ins;
        reqs[i].wanted = wanted + i * outs;
    }

    free(r->requests);
    free(r->request_inputs);
    free(r->request_wanted);
    r->requests = reqs;
    r->request_inputs = inputs;
    r->request_wanted = wanted;
    r->request_cap = count;
    return NULL;
}

/* the first request that cannot run together with request from; requests that
 * were cancelled while earlier groups ran do not run */
static uint32_t
group_end(bk_runner_t *r, uint32_t from, uint32_t count)
{
    const bk_batch_request_t *first = &r->requests[from];
    uint32_t end = from + 1;

    bk_batch_request_check_cancelled(&r->requests[from]);
    if (first->err != NULL || !r->config.batching) {
        return end;
    }

    for (; end < count; end++) {
        bk_batch_request_t *next = &r->requests[end];

        bk_batch_request_check_cancelled(next);
        if (next->err != NULL || !bk_batch_requests_compatible(first, next,
            r->config.tensors))
        {
            break;
        }
    }

    return end;
}

static void
group_run(bk_runner_t *r, bk_batch_request_t *reqs, uint32_t count,
    bk_times_t times)
{
    uint64_t rows = 0;
    bool runs = reqs[0].err == NULL;

    times.compute_start_ns = bk_now_ns();
    times.compute_end_ns = times.compute_start_ns;
    if (runs) {
        run_together(r, reqs, count, &times);
    }
    times.end_ns = bk_now_ns();

    for (uint32_t i = 0; i < count; i++) {
        rows += reqs[i].rows;
    }

    if (runs) {
        bk_err_log(TRITONBACKEND_ModelInstanceReportBatchStatistics(
            r->handle, rows, times.start_ns, times.compute_start_ns,
            times.compute_end_ns, times.end_ns), "batch statistics");
    }

    for (uint32_t i = 0; i < count; i++) {
        bk_batch_request_finish(&reqs[i], r->handle, &times);
    }
}

/* A runtime's error does not say whose data is wrong, and only that request is
 * to have it: a batch that has failed runs once more in halves, and so on. */
static void
run_together(bk_runner_t *r, bk_batch_request_t *reqs, uint32_t count,
    bk_times_t *times)
{
    TRITONSERVER_Error *err = bk_batch_run(&r->batch, reqs, count, times);

    if (count > 1 && err != NULL && r->batch.run_failed
        && TRITONSERVER_ErrorCode(err) != TRITONSERVER_ERROR_CANCELLED
        && TRITONSERVER_ErrorCode(err) != TRITONSERVER_ERROR_UNAVAILABLE)
    {
        bk_log(TRITONSERVER_LOG_VERBOSE, "%u requests run again, in two"
            " halves, after: %s", count, TRITONSERVER_ErrorMessage(err));
        bk_err_drop(err);
        run_half(r, reqs, count / 2, times);
        run_half(r, reqs + count / 2, count - count / 2, times);
        return;
    }

    errors_spread(reqs, count, err);
    if (count > 1 && r->config.device_id != BK_NO_DEVICE) {
        run_rejected_alone(r, reqs, count, times);
    }
}

static void
run_half(bk_runner_t *r, bk_batch_request_t *reqs, uint32_t count,
    bk_times_t *times)
{
    uint64_t start_ns = times->compute_start_ns;

    if (count == 1) {
        run_alone(r, reqs, times);
    } else {
        run_together(r, reqs, count, times);
    }
    times->compute_start_ns = start_ns;
}

static void
run_alone(bk_runner_t *r, bk_batch_request_t *req, bk_times_t *times)
{
    uint64_t start_ns = times->compute_start_ns;

    bk_batch_request_check_cancelled(req);
    if (req->err == NULL) {
        errors_spread(req, 1, bk_batch_run(&r->batch, req, 1, times));
    }
    times->compute_start_ns = start_ns;
}

/*
 * Outputs of a batch are copied on the host.  That a response takes an output
 * in GPU memory, most often a client's region, shows only when the output is
 * allocated: such a request runs again, alone, and writes there directly.
 */
static void
run_rejected_alone(bk_runner_t *r, bk_batch_request_t *reqs, uint32_t count,
    bk_times_t *times)
{
    for (uint32_t i = 0; i < count; i++) {
        if (reqs[i].err != NULL && TRITONSERVER_ErrorCode(reqs[i].err)
            == TRITONSERVER_ERROR_UNSUPPORTED)
        {
            bk_err_drop(reqs[i].err);
            bk_batch_request_restart(&reqs[i]);
            run_alone(r, &reqs[i], times);
        }
    }
}

/* every request without an error of its own gets err; takes err */
static void
errors_spread(bk_batch_request_t *reqs, uint32_t count, TRITONSERVER_Error *err)
{
    if (err == NULL) {
        return;
    }

    for (uint32_t i = 0; i < count; i++) {
        if (reqs[i].err == NULL) {
            reqs[i].err = bk_err_new(TRITONSERVER_ErrorCode(err), "%s",
                TRITONSERVER_ErrorMessage(err));
        }
    }

    bk_err_drop(err);
}
