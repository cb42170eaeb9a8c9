/* life.c - see life.h */

#include "life.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include "messages.h"

#define EXIT_LIMIT_MS   5000
#define PAUSE_MS        100
#define PAUSE_MAX_MS    30000

/* Result of a wait of the interpreter's own thread. */
typedef enum {
    EVENT_NONE,             /* the time is over                              */
    EVENT_CALLS,
    EVENT_STOP,
    EVENT_DEATH
} event_t;

static TRITONSERVER_Error *life(py_interpreter_t *in, bool *served);
static TRITONSERVER_Error *life_begin(py_interpreter_t *in);
static TRITONSERVER_Error *process_begin(py_interpreter_t *in);
static TRITONSERVER_Error *greet(py_interpreter_t *in);
static TRITONSERVER_Error *not_begun(py_interpreter_t *in, const char *how,
    const char *before);
static TRITONSERVER_Error *initialize(py_interpreter_t *in);
static TRITONSERVER_Error *task_await(py_interpreter_t *in,
    int64_t limit_ms, const char *what);
static int64_t limit_of(const py_model_t *m);
static TRITONSERVER_Error *stopped(void);
static void write_paths(py_writer_t *w, const py_interpreter_t *in);
static TRITONSERVER_Error *write_arguments(const py_interpreter_t *in,
    py_writer_t *w);
static event_t serve(py_interpreter_t *in);
static event_t event_wait(py_interpreter_t *in, int64_t limit_ms,
    bool has_role);
static event_t event_before(py_interpreter_t *in, uint64_t begin_ns,
    int64_t limit_ms);
static void finalize(py_interpreter_t *in);
static void life_end(py_interpreter_t *in, char *how, size_t size);
static void process_end(py_interpreter_t *in, char *how, size_t size);
static void requests_fail(py_interpreter_t *in);
static bool stop_comes(py_interpreter_t *in, int limit_ms,
    TRITONSERVER_Error *err);
static int pause_of(unsigned failures, bool failed);
static void state_set(py_interpreter_t *in, py_state_t state,
    TRITONSERVER_Error *reason);

/* The thread: starts the process, and again after its end once the model has
   run. */
void *
py_life_main(void *arg)
{
    py_interpreter_t *in = arg;
    unsigned failures = 0;
    bool served = false;

    pthread_setname_np(pthread_self(), "python");
    for ( ;; ) {
        TRITONSERVER_Error *err = life(in, &served);
        if (stop_comes(in, served && in->instance != NULL ? 0 : -1, err)) {
            bk_err_drop(err);
            return NULL;
        }

        failures = in->progress == PY_PROGRESS_USEFUL ? 0 : failures + 1;
        state_set(in, err == NULL || failures <= 1
            ? PY_STARTING : PY_FAILED, err);
        if (stop_comes(in, pause_of(failures, err != NULL), NULL)) {
            return NULL;
        }
        state_set(in, PY_STARTING, NULL);
    }
}

/* A process from its start to its end; an error: it did not serve. */
static TRITONSERVER_Error *
life(py_interpreter_t *in, bool *served)
{
    char how[128];
    event_t event = EVENT_DEATH;

    pthread_mutex_lock(&in->role);
    TRITONSERVER_Error *err = life_begin(in);
    pthread_mutex_unlock(&in->role);

    if (err == NULL) {
        *served = true;
        state_set(in, PY_SERVING, NULL);
        event = serve(in);
    }
    if (event == EVENT_STOP) {
        finalize(in);
    }

    if (err == NULL && event == EVENT_DEATH) {
        py_link_die(in->link);          /* an execution ends now             */
    }
    pthread_mutex_lock(&in->role);
    life_end(in, how, sizeof(how));
    pthread_mutex_unlock(&in->role);

    if (err != NULL) {
        bk_log(TRITONSERVER_LOG_ERROR, "instance %s: %s", in->name,
            TRITONSERVER_ErrorMessage(err));
    } else if (event != EVENT_STOP && in->instance != NULL) {
        bk_log(TRITONSERVER_LOG_ERROR, "instance %s: its interpreter %s; "
            "another one is started", in->name, how);
    }
    return err;
}

/* Starts a process and its model; on error life_end cleans up. */
static TRITONSERVER_Error *
life_begin(py_interpreter_t *in)
{
    py_link_t *link = NULL;

    TRITONSERVER_Error *err = py_link_new(&link);
    if (err != NULL) {
        return err;
    }

    link->gpu.gpus = py_gpus_ref(in->model->backend->gpus);
    pthread_mutex_lock(&in->lock);
    in->link = link;
    in->ready.probing = false;
    in->ready.defined = false;
    pthread_mutex_unlock(&in->lock);
    in->progress = PY_PROGRESS_NONE;
    in->gpu_inputs = false;
    in->arenas = (py_arenas_t) { 0 };

    err = process_begin(in);
    if (err == NULL) {
        err = greet(in);
    }
    return err != NULL ? err : initialize(in);
}

static TRITONSERVER_Error *
process_begin(py_interpreter_t *in)
{
    const py_model_t *m = in->model;
    char script[4096];

    if ((size_t) snprintf(script, sizeof(script), "%s/_host_main.py",
        m->backend->package) >= sizeof(script))
    {
        return bk_err_new(TRITONSERVER_ERROR_INTERNAL,
            "the path of the backend is too long");
    }

    const char *const arguments[] = {
        py_environment_python(m->environment), script, "3", "4", "5", "6",
        "7", m->backend->package, in->name, NULL
    };
    TRITONSERVER_Error *err = py_process_start(&in->process, in->name,
        arguments, py_environment_variables(m->environment), in->link->fd,
        in->link->event_fd);
    in->link->pid = in->process.pid;
    return err;
}

/* Handles the process's hello. */
static TRITONSERVER_Error *
greet(py_interpreter_t *in)
{
    uint64_t begin_ns = bk_now_ns();
    char how[128];

    while (in->progress == PY_PROGRESS_NONE) {
        event_t event = event_before(in, begin_ns, limit_of(in->model));
        switch (in->progress != PY_PROGRESS_NONE ? EVENT_CALLS : event) {
        case EVENT_CALLS:
            break;

        case EVENT_STOP:
            return stopped();

        case EVENT_DEATH:
            process_end(in, how, sizeof(how));
            return not_begun(in, how, " before it could load the model");

        case EVENT_NONE:
            snprintf(how, sizeof(how), "has not begun within the %lld s of "
                "stub-timeout-seconds",
                (long long) limit_of(in->model) / 1000);
            return not_begun(in, how, "");
        }
    }
    return NULL;
}

/* With the end of what the process has written to stderr. */
static TRITONSERVER_Error *
not_begun(py_interpreter_t *in, const char *how, const char *before)
{
    const char *text = py_stderr_last(&in->process.errors);

    return bk_err_new(TRITONSERVER_ERROR_INTERNAL,
        "the interpreter \"%s\" %s%s%s%s",
        py_environment_python(in->model->environment), how, before,
        text[0] != '\0' ? ": " : "", text);
}

/* Sends [paths, arguments]: imports and initializes the model, without a time
   limit. */
static TRITONSERVER_Error *
initialize(py_interpreter_t *in)
{
    TRITONSERVER_Error *err = NULL;
    bool has_ready = false;
    py_reader_t r;

    py_writer_reset(&in->writer);
    py_write_list(&in->writer, 2);
    write_paths(&in->writer, in);
    err = write_arguments(in, &in->writer);
    if (err != NULL) {
        return err;
    }

    in->done = false;
    in->task++;
    if (!py_link_push(in->link, &in->link->work, in->instance == NULL
        ? PY_TASK_COMPLETE : PY_TASK_INITIALIZE, in->task, &in->writer))
    {
        return bk_err_nomem("the model's configuration");
    }

    err = task_await(in, -1, "initialized its model");
    if (err != NULL) {
        return err;
    }

    /* [error or none, has is_ready], or the result of a completion */
    py_reader_init(&r, in->result.data, in->result.len);
    if (!py_read_list_of(&r, 2) || !py_error_read(&r, &err)) {
        return py_error_message("result");
    }
    if (err == NULL && in->instance != NULL && py_read_bool(&r, &has_ready)) {
        pthread_mutex_lock(&in->lock);
        in->ready.defined = has_ready;
        pthread_mutex_unlock(&in->lock);
    }
    return err;
}

static TRITONSERVER_Error *
task_await(py_interpreter_t *in, int64_t limit_ms, const char *what)
{
    uint64_t begin_ns = bk_now_ns();
    char how[128];

    while (!in->done) {
        event_t event = event_before(in, begin_ns, limit_ms);

        /* an answer counts even if the process ended right after it */
        switch (in->done ? EVENT_CALLS : event) {
        case EVENT_CALLS:
            break;

        case EVENT_STOP:
            return stopped();

        case EVENT_DEATH:
            process_end(in, how, sizeof(how));
            pthread_mutex_lock(&in->lock);
            in->says_unhealthy = true;
            pthread_mutex_unlock(&in->lock);
            return bk_err_new(TRITONSERVER_ERROR_INTERNAL,
                PY_UNHEALTHY " The interpreter %s before it had %s",
                in->name, how, what);

        case EVENT_NONE:
            return bk_err_new(TRITONSERVER_ERROR_INTERNAL, "the interpreter "
                "has not %s within %lld s", what,
                (long long) limit_ms / 1000);
        }
    }
    return NULL;
}

static int64_t
limit_of(const py_model_t *m)
{
    return (int64_t) (m->backend->settings.start_timeout_ns / 1000000);
}

static TRITONSERVER_Error *
stopped(void)
{
    return bk_err_new(TRITONSERVER_ERROR_UNAVAILABLE,
        "the model is unloaded before it was loaded again");
}

static void
write_paths(py_writer_t *w, const py_interpreter_t *in)
{
    const py_model_t *m = in->model;

    py_write_list(w, 7);
    py_write_string(w, m->version_dir);
    py_write_string(w, m->directory);
    py_write_string(w, m->backend_dir);
    py_write_string(w, m->file);
    py_write_bool(w, m->decoupled);
    py_write_bool(w, m->settings.zero_copy);
    if (!m->settings.cpu_inputs && in->instance != NULL
        && strcmp(in->kind, "GPU") == 0)
    {
        py_write_int(w, in->device);    /* inputs on a GPU stay there        */
    } else {
        py_write_none(w);
    }
}

/* Writes the arguments, with the present configuration, which the server may
   have completed since the model was created. */
static TRITONSERVER_Error *
write_arguments(const py_interpreter_t *in, py_writer_t *w)
{
    TRITONSERVER_Message *config;
    char device[16], version[24];
    const char *text;
    size_t len;

    TRITONSERVER_Error *err = TRITONBACKEND_ModelConfig(in->model->handle, 1,
        &config);
    if (err != NULL) {
        return err;
    }

    err = TRITONSERVER_MessageSerializeToJson(config, &text, &len);
    if (err == NULL) {
        snprintf(device, sizeof(device), "%d", (int) in->device);
        snprintf(version, sizeof(version), "%llu",
            (unsigned long long) in->model->version);
        const char *pairs[][2] = {
            { "model_config", text },
            { "model_instance_kind", in->kind },
            { "model_instance_name", in->name },
            { "model_instance_device_id", device },
            { "model_repository", in->model->directory },
            { "model_version", version },
            { "model_name", in->model->name }
        };

        py_write_list(w, sizeof(pairs) / sizeof(pairs[0]));
        for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
            py_write_list(w, 2);
            py_write_string(w, pairs[i][0]);
            py_write_string(w, pairs[i][1]);
        }
    }
    bk_err_log(TRITONSERVER_MessageDelete(config), "a configuration");
    return err;
}

/* Serves until the end of the process, or a stop. */
static event_t
serve(py_interpreter_t *in)
{
    for ( ;; ) {
        event_t event = event_wait(in, -1, false);
        if (event == EVENT_STOP || event == EVENT_DEATH) {
            return event;
        }
    }
}

/* Handles what the process sends, without the role while an execution runs.  An
   endless sender hides neither its end nor a stop. */
static event_t
event_wait(py_interpreter_t *in, int64_t limit_ms, bool has_role)
{
    bool stops = !has_role || in->progress != PY_PROGRESS_FINALIZE;
    struct pollfd fds[] = {
        { .fd = in->link->event_fd, .events = POLLIN },
        { .fd = in->process.fd, .events = POLLIN },
        { .fd = stops ? in->stop_fd : -1, .events = POLLIN },
        { .fd = in->wake_fd, .events = POLLIN },
        { .fd = in->process.errors.fd, .events = POLLIN }
    };
    eventfd_t value;

    int n = poll(fds, sizeof(fds) / sizeof(fds[0]), limit_ms < 0
        || limit_ms > INT32_MAX ? -1 : (int) limit_ms);
    if (n == 0) {
        return EVENT_NONE;
    }
    if (n < 0) {
        return EVENT_CALLS;
    }

    if (fds[0].revents != 0 || fds[3].revents != 0) {
        py_link_hear(in->link);
        (void) eventfd_read(in->wake_fd, &value);
        if (has_role || pthread_mutex_trylock(&in->role) == 0) {
            py_interpreter_drain(in);
            if (py_link_sleep(in->link) && !py_link_is_dead(in->link)) {
                (void) eventfd_write(in->wake_fd, 1);
            }
            if (!has_role) {
                pthread_mutex_unlock(&in->role);
            }
        }
    }

    if (fds[4].revents != 0) {
        py_stderr_read(&in->process.errors);
    }

    return fds[1].revents != 0 ? EVENT_DEATH
        : fds[2].revents != 0 ? EVENT_STOP : EVENT_CALLS;
}

/* Waits until limit_ms after begin_ns, even if messages come meanwhile. */
static event_t
event_before(py_interpreter_t *in, uint64_t begin_ns, int64_t limit_ms)
{
    if (limit_ms < 0) {
        return event_wait(in, limit_ms, true);
    }

    int64_t left_ms = limit_ms - (int64_t) ((bk_now_ns() - begin_ns)
        / 1000000);
    event_t event = event_wait(in, left_ms < 0 ? 0 : left_ms, true);
    return event == EVENT_CALLS && left_ms <= 0 ? EVENT_NONE : event;
}

/* Calls the model's finalize(), and gives the process time to exit. */
static void
finalize(py_interpreter_t *in)
{
    struct pollfd end = { .fd = in->process.fd, .events = POLLIN };

    pthread_mutex_lock(&in->role);
    state_set(in, PY_FAILED, NULL);         /* no more executions            */
    in->progress = PY_PROGRESS_FINALIZE;
    in->done = false;
    in->task++;
    if (in->instance != NULL && py_link_push(in->link, &in->link->work,
        PY_TASK_FINALIZE, in->task, NULL))
    {
        bk_err_log(task_await(in, limit_of(in->model),
            "finalized its model"), in->name);
    }
    pthread_mutex_unlock(&in->role);

    if (in->process.pid != 0) {
        (void) poll(&end, 1, EXIT_LIMIT_MS);
    }
}

/* Ends the process and frees what it had. */
static void
life_end(py_interpreter_t *in, char *how, size_t size)
{
    snprintf(how, size, "has not begun");
    if (in->link == NULL) {
        return;
    }

    /* messages sent before its end count */
    py_link_die(in->link);
    py_interpreter_drain(in);
    process_end(in, how, size);
    requests_fail(in);
    py_streams_fini(&in->streams);
    py_metrics_fini(&in->metrics);

    py_link_t *link = in->link;
    pthread_mutex_lock(&in->lock);
    in->link = NULL;
    if (in->ready.probing) {
        in->ready.probing = false;
        in->ready.answers++;
        snprintf(in->ready.why_not, sizeof(in->ready.why_not),
            PY_UNHEALTHY, in->name);
        pthread_cond_broadcast(&in->changed);
    }
    pthread_mutex_unlock(&in->lock);
    py_link_unref(link);
}

/* Ends the process; its pid may be reused afterwards, so its memory is not read
   any more. */
static void
process_end(py_interpreter_t *in, char *how, size_t size)
{
    py_process_end(&in->process, how, size);
    in->link->pid = 0;
}

/* Fails the requests that senders were to answer. */
static void
requests_fail(py_interpreter_t *in)
{
    for (uint32_t i = 0; i < in->requests.capacity; i++) {
        py_live_t *live = &in->requests.live[i];
        if (live->state != PY_LIVE_FREE) {
            TRITONBACKEND_Request *request;
            py_outgoing_t response;

            py_live_fail(live, py_interpreter_unhealthy(in), &response);
            bk_err_log(py_outgoing_send(&response), in->name);
            bk_err_log(py_live_take(live, &request), in->name);
            if (request != NULL) {
                bk_request_release(request);
            }
            py_requests_remove(&in->requests, live);
        }
    }
}

/* Whether a stop comes within limit_ms; -1: waits for it, with err as the
   reason of the state. */
static bool
stop_comes(py_interpreter_t *in, int limit_ms, TRITONSERVER_Error *err)
{
    struct pollfd stop = { .fd = in->stop_fd, .events = POLLIN };

    if (limit_ms == -1 && err != NULL) {
        state_set(in, PY_FAILED, bk_err_new(TRITONSERVER_ErrorCode(err),
            "%s", TRITONSERVER_ErrorMessage(err)));
    }

    int n;
    do {
        n = poll(&stop, 1, limit_ms);
    } while (n < 0 && errno == EINTR);
    return n > 0;
}

/* Pause before the next start, in ms: grows with the number of lives in a row
   without an answered batch. */
static int
pause_of(unsigned failures, bool failed)
{
    if (failures <= 1) {
        return failed ? PAUSE_MS : 0;
    }

    return failures > 9 ? PAUSE_MAX_MS : PAUSE_MS << (failures - 2);
}

/* Sets the state; takes reason, which the next state drops. */
static void
state_set(py_interpreter_t *in, py_state_t state,
    TRITONSERVER_Error *reason)
{
    pthread_mutex_lock(&in->lock);
    *in->model->serving += (state == PY_SERVING) - (in->state == PY_SERVING);
    in->state = state;
    in->says_unhealthy = reason != NULL && in->says_unhealthy;
    snprintf(in->reason, sizeof(in->reason), "%s", reason != NULL
        ? TRITONSERVER_ErrorMessage(reason) : "");
    pthread_cond_broadcast(&in->changed);
    pthread_mutex_unlock(&in->lock);
    bk_err_drop(reason);
}
