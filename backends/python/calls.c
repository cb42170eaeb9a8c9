/* calls.c - see calls.h */

#include "calls.h"

#include <stdio.h>

#include "control.h"
#include "messages.h"
#include "sending.h"

static void hello(py_interpreter_t *in, py_reader_t *r);
static void done(py_interpreter_t *in, const py_entry_t *e,
    py_reader_t *r);
static void ready_done(py_interpreter_t *in, py_reader_t *r);
static void write_log(const py_interpreter_t *in, py_reader_t *r);
static void gpu_ready(py_interpreter_t *in, py_reader_t *r);
static TRITONSERVER_Error *gpu_new(py_interpreter_t *in, py_reader_t *r,
    py_writer_t *w);
static TRITONSERVER_Error *answer(py_interpreter_t *in,
    const py_entry_t *e, py_reader_t *r, py_writer_t *w);
static TRITONSERVER_Error *send_response(py_interpreter_t *in,
    const py_entry_t *e, py_reader_t *r);
static TRITONSERVER_Error *is_cancelled(py_interpreter_t *in, uint64_t id,
    py_writer_t *w);
static void close_sender(py_interpreter_t *in, uint64_t id);
static void forget_if_over(py_interpreter_t *in, py_live_t *live);
static void reply(py_interpreter_t *in, uint32_t slot,
    TRITONSERVER_Error *err, const py_writer_t *value);

void
py_call(py_interpreter_t *in, const py_entry_t *e)
{
    py_writer_t w = { 0 };
    TRITONSERVER_Error *err;
    py_reader_t r;

    py_reader_init(&r, in->link->message.data, in->link->message.len);
    switch (e->kind) {
    case PY_UP_HELLO:
        hello(in, &r);
        return;
    case PY_UP_DONE:
        done(in, e, &r);
        return;
    case PY_UP_FREE:
        py_link_free(in->link, e->id);
        return;
    case PY_UP_GPU_FREE:
        py_gpu_give_back(&in->link->gpu, e->id);
        return;
    case PY_UP_GPU_CLOSED:
        py_gpu_closed(&in->link->gpu, e->id);
        return;
    case PY_UP_GPU_READY:
        gpu_ready(in, &r);
        return;
    case PY_UP_LOG:
        write_log(in, &r);
        return;
    case PY_UP_CLOSE:
        close_sender(in, e->id);
        return;
    case PY_UP_STREAM_CANCEL:
        py_streams_cancel(&in->streams, e->id);
        return;
    case PY_UP_STREAM_CLOSE:
        py_streams_close(&in->streams, e->id);
        return;

    /* these reply by themselves, unless they fail */
    case PY_UP_SEND:
        err = send_response(in, e, &r);
        break;
    case PY_UP_EXEC:
        err = py_streams_start(&in->streams, in->link, in->model->server,
            &in->requests, e->slot, &r);
        break;
    case PY_UP_NEXT:
        err = py_streams_next(&in->streams, e->id, e->slot);
        break;
    case PY_UP_LOAD:
    case PY_UP_UNLOAD:
    case PY_UP_MODEL_READY:
        err = py_control_start(in->link, in->model->server,
            (py_up_t) e->kind, e->slot, &r);
        break;

    default:
        err = answer(in, e, &r, &w);
        reply(in, e->slot, err, &w);
        py_writer_fini(&w);
        return;
    }

    if (err != NULL) {
        reply(in, e->slot, err, NULL);
    }
}

/* Handles [bytes of its memory]: if they can be read, tensors come as
   addresses. */
static void
hello(py_interpreter_t *in, py_reader_t *r)
{
    py_data_t data;
    char bytes[2 * PY_INLINE_MAX];

    if (in->progress == PY_PROGRESS_NONE) {
        in->progress = PY_PROGRESS_HELLO;
    }
    if (!py_read_list_of(r, 1) || !py_read_data(r, &data)
        || data.length > sizeof(bytes))
    {
        return;
    }

    TRITONSERVER_Error *err = py_link_read(in->link, &data, bytes);
    if (err != NULL) {
        atomic_store(&in->link->header->copies, 1);
        bk_log(TRITONSERVER_LOG_WARN, "instance %s: outputs are copied once "
            "more, through shared memory: %s", in->name,
            TRITONSERVER_ErrorMessage(err));
    }
    bk_err_drop(err);
}

static void
done(py_interpreter_t *in, const py_entry_t *e, py_reader_t *r)
{
    if (e->id == 0) {
        ready_done(in, r);
        return;
    }
    if (e->id != in->task || in->done) {
        return;
    }

    /* the messages are exchanged: pop reuses the old one's memory */
    py_message_t old = in->result;
    in->result = in->link->message;
    in->link->message = old;
    in->done = true;
}

/* Handles [why it is not ready, or none]. */
static void
ready_done(py_interpreter_t *in, py_reader_t *r)
{
    const char *why = NULL;

    if (!py_read_list_of(r, 1) || !py_read_optional(r, &why)) {
        why = "the interpreter has sent an answer that is none";
    }

    pthread_mutex_lock(&in->lock);
    snprintf(in->ready.why_not, sizeof(in->ready.why_not), "%s",
        why == NULL ? "" : why);
    in->ready.probing = false;
    in->ready.answers++;
    pthread_cond_broadcast(&in->changed);
    pthread_mutex_unlock(&in->lock);
}

/* Logs [level, file, line, text]. */
static void
write_log(const py_interpreter_t *in, py_reader_t *r)
{
    const char *file, *text;
    int64_t level, line;

    if (!py_read_list_of(r, 4) || !py_read_int(r, &level)
        || !py_read_text(r, &file, NULL) || !py_read_int(r, &line)
        || !py_read_text(r, &text, NULL) || level < TRITONSERVER_LOG_INFO
        || level > TRITONSERVER_LOG_VERBOSE)
    {
        bk_log(TRITONSERVER_LOG_WARN, "instance %s has sent a log line that "
            "is none", in->name);
        return;
    }

    bk_err_drop(TRITONSERVER_LogMessage((TRITONSERVER_LogLevel) level, file,
        (int) line, text));
}

/* Handles [why inputs cannot lie on a GPU, or none]. */
static void
gpu_ready(py_interpreter_t *in, py_reader_t *r)
{
    const char *why = NULL;

    in->gpu_inputs = py_read_list_of(r, 1) && py_read_optional(r, &why)
        && why == NULL && !in->model->settings.cpu_inputs;
    if (!in->gpu_inputs) {
        bk_log(TRITONSERVER_LOG_WARN, "instance %s: inputs that lie on a GPU"
            " are copied to the CPU: %s", in->name,
            why != NULL ? why : "the interpreter has not said why");
    }
}

/* Handles [GPU, size]: a piece of memory there. */
static TRITONSERVER_Error *
gpu_new(py_interpreter_t *in, py_reader_t *r, py_writer_t *w)
{
    py_gpu_place_t place;
    bk_buffer_t at;
    uint64_t size;
    int64_t gpu;

    if (!py_read_list_of(r, 2) || !py_read_int(r, &gpu)
        || !py_read_uint(r, &size))
    {
        return py_error_message("size of memory");
    }

    TRITONSERVER_Error *err = py_gpu_alloc(&in->link->gpu, gpu, size, &place,
        &at);
    if (err == NULL) {
        py_write_gpu(w, &place);
        if (w->failed) {
            py_gpu_give_back(&in->link->gpu, place.piece);
        }
        py_gpu_unref(&in->link->gpu, place.piece);
    }
    return err;
}

static TRITONSERVER_Error *
answer(py_interpreter_t *in, const py_entry_t *e, py_reader_t *r,
    py_writer_t *w)
{
    switch (e->kind) {
    case PY_UP_CANCELLED:
        return is_cancelled(in, e->id, w);
    case PY_UP_GPU_NEW:
        return gpu_new(in, r, w);
    case PY_UP_FAMILY_NEW:
    case PY_UP_FAMILY_DELETE:
    case PY_UP_METRIC_NEW:
    case PY_UP_METRIC_DELETE:
    case PY_UP_METRIC_SET:
    case PY_UP_METRIC_VALUE:
        return py_metrics_call(&in->metrics, (py_up_t) e->kind, e->id, r,
            w);
    default:
        return py_error_message("call");
    }
}

/* Sends [final, response or none]. */
static TRITONSERVER_Error *
send_response(py_interpreter_t *in, const py_entry_t *e, py_reader_t *r)
{
    py_live_t *live = py_requests_find(&in->requests, e->id);
    TRITONSERVER_Error *err;
    bool final;

    if (!py_read_list_of(r, 2) || !py_read_bool(r, &final)) {
        return py_error_message("response");
    }

    bool flags_alone = py_read_none(r);
    if (flags_alone && !final) {
        return py_error_message("response");
    }
    if (live == NULL || live->state == PY_LIVE_CLOSED) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "Unable to send "
            "response. Response sender has been closed.");
    }

    if (flags_alone) {
        err = py_live_end(live);
        if (err == NULL) {
            py_reply(in->link, e->slot, NULL, NULL);
        }
    } else {
        err = py_sending_start(in->link, live, e->slot, final, r);
    }
    forget_if_over(in, live);
    return err;
}

static TRITONSERVER_Error *
is_cancelled(py_interpreter_t *in, uint64_t id, py_writer_t *w)
{
    py_live_t *live = py_requests_find(&in->requests, id);
    bool cancelled = false;

    TRITONSERVER_Error *err = live == NULL ? NULL
        : py_live_is_cancelled(live, &cancelled);
    py_write_bool(w, cancelled);
    return err;
}

static void
close_sender(py_interpreter_t *in, uint64_t id)
{
    py_live_t *live = py_requests_find(&in->requests, id);

    if (live != NULL) {
        live->dropped = true;
        forget_if_over(in, live);
    }
}

/* Forgets a request whose batch has ended, after its last response or if it has
   no sender any more; the server answers it then. */
static void
forget_if_over(py_interpreter_t *in, py_live_t *live)
{
    bool over = live->state == PY_LIVE_CLOSED || live->dropped;

    if (live->lasting && over) {
        TRITONBACKEND_Request *request;
        bk_err_log(py_live_take(live, &request), in->name);
        bk_request_release(request);
    }
    if (live->request == NULL && over) {
        py_requests_remove(&in->requests, live);
    }
}

/* Replies [error or none, value]; takes err. */
static void
reply(py_interpreter_t *in, uint32_t slot, TRITONSERVER_Error *err,
    const py_writer_t *value)
{
    if (slot == PY_NO_SLOT) {
        bk_err_log(err, in->name);
        return;
    }

    py_reply(in->link, slot, err, value);
    bk_err_drop(err);
}
