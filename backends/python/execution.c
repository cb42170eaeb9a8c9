/* execution.c - see execution.h */

#include "execution.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "messages.h"

/* Outputs larger than this are released before the next batch. */
#define TAKEN_LEAST (UINT64_C(4) << 20)

static TRITONSERVER_Error *batch_write(py_interpreter_t *in, py_batch_t *b,
    TRITONBACKEND_Request **requests, uint32_t count);
static void request_write(py_interpreter_t *in, py_batch_t *b,
    TRITONBACKEND_Request *request);
static bool is_zero_copy(const py_model_t *m);
static void batch_await(py_interpreter_t *in);
static bool is_untaken(py_interpreter_t *in, const py_batch_t *b);
static void batch_forget(py_interpreter_t *in, const py_batch_t *b);
static void batch_answer(py_interpreter_t *in, py_batch_t *b);
static bool result_apply(py_interpreter_t *in, py_batch_t *b,
    py_answer_t *a, py_reader_t *r);
static bool response_is_error(const py_reader_t *at);
static void request_end(py_interpreter_t *in, py_batch_t *b,
    py_answer_t *a, bool success);
static void request_again(py_interpreter_t *in, py_batch_t *b,
    py_answer_t *a);
static void batch_fail(py_interpreter_t *in, py_batch_t *b, uint32_t from,
    TRITONSERVER_Error_Code code, const char *text);

bool
py_execution_run(py_interpreter_t *in, py_batch_t *b,
    TRITONBACKEND_Request **requests, uint32_t count)
{
    *b = (py_batch_t) { .begin_ns = bk_now_ns() };

    TRITONSERVER_Error *err = batch_write(in, b, requests, count);
    b->compute_ns = bk_now_ns();
    if (err == NULL && b->count > 0) {
        in->done = false;
        in->task++;
        if (!py_link_push(in->link, &in->link->work, PY_TASK_EXECUTE,
            in->task, &in->writer))
        {
            err = bk_err_new(TRITONSERVER_ERROR_UNAVAILABLE, "no room for the"
                " requests in the memory shared with the interpreter");
        }
    }

    if (err != NULL) {
        py_blocks_free(in->link, in->writer.data, in->writer.len);
        batch_fail(in, b, 0, TRITONSERVER_ErrorCode(err),
            TRITONSERVER_ErrorMessage(err));
        bk_err_drop(err);

    } else if (b->count > 0) {
        batch_await(in);
        if (b->count == count && is_untaken(in, b)) {
            batch_forget(in, b);
            free(b->answers);
            return false;
        }
        b->end_ns = bk_now_ns();
        batch_answer(in, b);
        bk_err_log(TRITONBACKEND_ModelInstanceReportBatchStatistics(
            in->instance, b->rows, b->begin_ns, b->compute_ns, b->end_ns,
            bk_now_ns()), "batch statistics");
    }
    return true;
}

void
py_execution_answer(const py_interpreter_t *in, py_batch_t *b)
{
    for (uint32_t i = 0; i < b->count; i++) {
        py_answer_t *a = &b->answers[i];

        TRITONSERVER_Error *err = py_outgoing_send(&a->response);
        if (err != NULL) {
            bk_err_log(err, in->name);
        }
        if (a->request != NULL) {
            bk_request_release(a->request);
        }
    }
    free(b->answers);
}

void
py_execution_reject(py_interpreter_t *in, TRITONBACKEND_Request **requests,
    uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        bk_request_fail(requests[i], py_interpreter_unhealthy(in));
        bk_request_release(requests[i]);
    }
}

/* Writes the list of requests as one value; requests that cannot be written are
   answered at once. */
static TRITONSERVER_Error *
batch_write(py_interpreter_t *in, py_batch_t *b,
    TRITONBACKEND_Request **requests, uint32_t count)
{
    b->answers = calloc(count, sizeof(*b->answers));
    if (b->answers == NULL) {
        for (uint32_t i = 0; i < count; i++) {
            bk_request_fail(requests[i], bk_err_nomem("a batch"));
            bk_request_release(requests[i]);
        }
        return NULL;
    }

    py_writer_reset(&in->writer);
    py_write_list(&in->writer, count);
    for (uint32_t i = 0; i < count; i++) {
        request_write(in, b, requests[i]);
    }

    if (b->count != count) {            /* the list's count                  */
        memcpy(in->writer.data + 1, &b->count, sizeof(b->count));
    }
    return in->writer.failed ? bk_err_nomem("a batch") : NULL;
}

static void
request_write(py_interpreter_t *in, py_batch_t *b,
    TRITONBACKEND_Request *request)
{
    const py_way_t way = {
        .link = in->link,
        .zero_copy = is_zero_copy(in->model),
        .socket_fd = in->process.socket, .arenas = &in->arenas,
        .gpus = in->model->backend->gpus, .on_gpu = in->gpu_inputs
    };
    size_t begin = in->writer.len;
    uint64_t id;

    TRITONSERVER_Error *err = py_requests_add(&in->requests, request, &id);
    if (err == NULL) {
        err = py_request_write(&in->writer, &way, request, id);
        if (err != NULL) {
            py_blocks_free(in->link, in->writer.data + begin,
                in->writer.len - begin);
            in->writer.len = begin;
            py_requests_remove(&in->requests,
                py_requests_find(&in->requests, id));
        }
    }
    if (err != NULL) {
        bk_request_fail(request, err);
        bk_request_release(request);
        return;
    }

    b->answers[b->count++].id = id;
    b->rows += py_request_rows(request, in->model->batching);
}

/* Whether inputs are views; not for decoupled models, which may read after the
   request was released. */
static bool
is_zero_copy(const py_model_t *m)
{
    return m->settings.zero_copy && !m->decoupled;
}

/* Waits for the result, or until none can come. */
static void
batch_await(py_interpreter_t *in)
{
    for ( ;; ) {
        bool dead = py_link_is_dead(in->link);

        py_interpreter_drain(in);
        if (in->done || dead) {
            return;
        }
        py_link_wait(in->link);
    }
}

/* Whether the process has not taken the batch, which is the ring's last task; a
   process that has answered one of its requests has taken it, even if the ring
   differs. */
static bool
is_untaken(py_interpreter_t *in, const py_batch_t *b)
{
    bool untaken = !in->done && atomic_load(&in->link->header->work.head)
        != in->link->work.tail;

    for (uint32_t i = 0; untaken && i < b->count; i++) {
        const py_live_t *live = py_requests_find(&in->requests,
            b->answers[i].id);
        untaken = live->state == PY_LIVE_OPEN;
    }
    return untaken;
}

static void
batch_forget(py_interpreter_t *in, const py_batch_t *b)
{
    for (uint32_t i = 0; i < b->count; i++) {
        py_requests_remove(&in->requests, py_requests_find(&in->requests,
            b->answers[i].id));
    }
}

/* Applies [error or none, [[release flags, response or none]...]]. */
static void
batch_answer(py_interpreter_t *in, py_batch_t *b)
{
    const char *error = NULL;
    uint32_t count = 0;
    py_reader_t r;

    if (!in->done) {
        char text[BK_ERR_MAX];
        TRITONSERVER_Error *err = py_interpreter_unhealthy(in);
        snprintf(text, sizeof(text), "%s", TRITONSERVER_ErrorMessage(err));
        batch_fail(in, b, 0, TRITONSERVER_ErrorCode(err), text);
        bk_err_drop(err);
        return;
    }

    in->progress = PY_PROGRESS_USEFUL;
    b->read = in->link->read;
    py_reader_init(&r, in->result.data, in->result.len);
    bool valid = py_read_list_of(&r, 2) && py_read_optional(&r, &error);
    if (valid && error != NULL) {
        batch_fail(in, b, 0, TRITONSERVER_ERROR_INTERNAL, error);
        return;
    }

    uint32_t i = 0;
    if (valid && py_read_list(&r, &count) && count == b->count) {
        while (i < count && result_apply(in, b, &b->answers[i], &r)) {
            i++;
        }
    }
    if (i < b->count) {
        batch_fail(in, b, i, TRITONSERVER_ERROR_INTERNAL,
            "the interpreter has sent a result that is none");
    }

    if (in->link->read - b->read >= TAKEN_LEAST) {
        (void) py_link_push(in->link, &in->link->work, PY_TASK_TAKEN, 0,
            NULL);
    }
}

/* Applies a request's result; false: it is invalid, nothing has happened. */
static bool
result_apply(py_interpreter_t *in, py_batch_t *b, py_answer_t *a,
    py_reader_t *r)
{
    py_live_t *live = py_requests_find(&in->requests, a->id);
    TRITONSERVER_Error *err = NULL;
    py_reader_t response;
    int64_t flags;

    if (live == NULL || !py_read_list_of(r, 2) || !py_read_int(r, &flags)) {
        return false;
    }

    if (py_read_none(r)) {
        if (flags == TRITONSERVER_REQUEST_RELEASE_RESCHEDULE) {
            request_again(in, b, a);
        } else {
            request_end(in, b, a, true);
        }
        return true;
    }

    response = *r;
    if (!py_read_skip(r)) {
        return false;
    }

    bool success = !response_is_error(&response);
    if (live->state == PY_LIVE_CLOSED) {
        err = bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "the model has "
            "answered a request twice");
    } else {
        err = py_live_respond(live, in->link, &response, true, &a->response);
    }
    if (err != NULL) {
        success = false;
        bk_err_log(err, in->name);
    }
    request_end(in, b, a, success);
    return true;
}

static bool
response_is_error(const py_reader_t *at)
{
    py_reader_t r = *at;

    return !py_read_list_of(&r, 3) || !py_read_none(&r);
}

/* Runs a request again, while a sender continues; if the core rejects that,
   answers it with the reason. */
static void
request_again(py_interpreter_t *in, py_batch_t *b, py_answer_t *a)
{
    py_live_t *live = py_requests_find(&in->requests, a->id);

    TRITONSERVER_Error *err = live->state == PY_LIVE_CLOSED
        ? bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "a request that was answered cannot run again")
        : py_live_reschedule(live);
    if (err == NULL) {
        if (live->dropped) {
            py_requests_remove(&in->requests, live);
        }
        return;
    }

    py_live_fail(live, err, &a->response);
    request_end(in, b, a, false);
}

/* Reports the request and takes it for release; a sender continues. */
static void
request_end(py_interpreter_t *in, py_batch_t *b, py_answer_t *a,
    bool success)
{
    py_live_t *live = py_requests_find(&in->requests, a->id);

    bk_err_log(TRITONBACKEND_ModelInstanceReportStatistics(in->instance,
        live->request, success, b->begin_ns, b->compute_ns, b->end_ns,
        bk_now_ns()), "statistics");

    /* a sender may still read inputs that are views */
    live->lasting = is_zero_copy(in->model)
        && live->state != PY_LIVE_CLOSED && !live->dropped;
    if (live->lasting) {
        return;
    }

    TRITONSERVER_Error *err = py_live_take(live, &a->request);
    if (err != NULL) {
        bk_err_log(err, "cannot answer a request later");
        live->state = PY_LIVE_CLOSED;
    }
    if (live->state == PY_LIVE_CLOSED || live->dropped) {
        py_requests_remove(&in->requests, live);
    }
}

static void
batch_fail(py_interpreter_t *in, py_batch_t *b, uint32_t from,
    TRITONSERVER_Error_Code code, const char *text)
{
    b->end_ns = bk_now_ns();
    for (uint32_t i = from; i < b->count; i++) {
        py_answer_t *a = &b->answers[i];

        py_live_fail(py_requests_find(&in->requests, a->id),
            bk_err_new(code, "%s", text), &a->response);
        request_end(in, b, a, false);
    }
}
