/* interpreter.c - see interpreter.h */

#include "interpreter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "calls.h"
#include "execution.h"
#include "life.h"
#include "messages.h"

#define READY_LIMIT_S   5
#define TRIES_MAX       3
#define GIVE_WAY_S      1

static TRITONSERVER_Error *open_all(py_interpreter_t *in,
    const py_instance_name_t *name);
static bool role_take(py_interpreter_t *in);
static void give_way(py_interpreter_t *in);
static TRITONSERVER_Error *completed(py_interpreter_t *in, char **config);

TRITONSERVER_Error *
py_interpreter_new(py_interpreter_t **out, const py_model_t *model,
    TRITONBACKEND_ModelInstance *instance, const py_instance_name_t *name)
{
    py_interpreter_t *in = calloc(1, sizeof(*in));

    if (in == NULL) {
        return bk_err_nomem("an interpreter");
    }

    in->model = model;
    in->instance = instance;
    in->kind = name->kind;
    in->device = name->device;
    in->stop_fd = -1;
    in->wake_fd = -1;
    in->process.fd = -1;
    in->process.socket = -1;
    in->process.errors.fd = -1;
    pthread_mutex_init(&in->lock, NULL);
    pthread_mutex_init(&in->role, NULL);
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&in->changed, &attributes);
    pthread_condattr_destroy(&attributes);

    TRITONSERVER_Error *err = open_all(in, name);
    if (err != NULL) {
        in->state = PY_ENDED;
        py_interpreter_free(in);
        return err;
    }

    pthread_mutex_lock(&in->lock);
    while (in->state == PY_STARTING) {
        pthread_cond_wait(&in->changed, &in->lock);
    }
    if (in->state == PY_FAILED) {
        err = bk_err_new(TRITONSERVER_ERROR_INTERNAL, "%s", in->reason);
    }
    pthread_mutex_unlock(&in->lock);

    if (err != NULL) {
        py_interpreter_free(in);
        return err;
    }
    *out = in;
    return NULL;
}

void
py_interpreter_free(py_interpreter_t *in)
{
    if (in == NULL) {
        return;
    }

    pthread_mutex_lock(&in->lock);
    bool runs = in->stop_fd != -1 && in->state != PY_ENDED;
    pthread_mutex_unlock(&in->lock);
    if (runs) {
        (void) eventfd_write(in->stop_fd, 1);
        pthread_join(in->thread, NULL);
    }
    if (in->stop_fd != -1) {
        (void) close(in->stop_fd);
    }
    if (in->wake_fd != -1) {
        (void) close(in->wake_fd);
    }
    py_requests_fini(&in->requests);
    py_writer_fini(&in->writer);
    free(in->result.data);
    free(in->name);
    pthread_cond_destroy(&in->changed);
    pthread_mutex_destroy(&in->role);
    pthread_mutex_destroy(&in->lock);
    free(in);
}

void
py_interpreter_run(py_interpreter_t *in, TRITONBACKEND_Request **requests,
    uint32_t count)
{
    py_batch_t batch;

    for (unsigned tries = 1; ; tries++) {
        if (tries > TRIES_MAX || !role_take(in)) {
            py_execution_reject(in, requests, count);
            give_way(in);
            return;
        }

        atomic_store(&in->link->header->back.waiting, PY_WAIT_NONE);
        if (py_execution_run(in, &batch, requests, count)) {
            break;
        }
        pthread_mutex_unlock(&in->role);
    }

    /* the interpreter's own thread may have found the role taken: wake it
       again */
    (void) py_link_sleep(in->link);
    py_link_t *link = py_link_ref(in->link);
    pthread_mutex_unlock(&in->role);
    if (py_link_has_entries(link) && !py_link_is_dead(link)) {
        (void) eventfd_write(in->wake_fd, 1);
    }
    py_link_unref(link);

    py_execution_answer(in, &batch);
}

/* Takes the consumer role when a process serves; false: none will soon. */
static bool
role_take(py_interpreter_t *in)
{
    for ( ;; ) {
        pthread_mutex_lock(&in->lock);
        while (in->state == PY_STARTING || (in->state == PY_SERVING
            && (in->link == NULL || py_link_is_dead(in->link))))
        {
            pthread_cond_wait(&in->changed, &in->lock);
        }
        bool serves = in->state == PY_SERVING;
        pthread_mutex_unlock(&in->lock);
        if (!serves) {
            return false;
        }

        pthread_mutex_lock(&in->role);
        if (in->link != NULL && !py_link_is_dead(in->link)) {
            return true;
        }
        pthread_mutex_unlock(&in->role);
    }
}

/* Leaves the next requests to instances of the model that serve. */
static void
give_way(py_interpreter_t *in)
{
    struct timespec until;
    int rc = 0;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += GIVE_WAY_S;

    pthread_mutex_lock(&in->lock);
    while (rc == 0 && in->state == PY_FAILED && *in->model->serving > 0) {
        rc = pthread_cond_timedwait(&in->changed, &in->lock, &until);
    }
    pthread_mutex_unlock(&in->lock);
}

TRITONSERVER_Error *
py_interpreter_ready(py_interpreter_t *in)
{
    TRITONSERVER_Error *err = NULL;
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += READY_LIMIT_S;

    pthread_mutex_lock(&in->lock);
    if (in->state != PY_SERVING || in->link == NULL) {
        err = in->says_unhealthy && in->reason[0] != '\0'
            ? bk_err_new(TRITONSERVER_ERROR_UNAVAILABLE, "%s", in->reason)
            : bk_err_new(TRITONSERVER_ERROR_UNAVAILABLE, PY_UNHEALTHY "%s%s",
                in->name, in->reason[0] == '\0' ? "" : " ", in->reason);

    } else if (in->ready.defined) {
        if (!in->ready.probing) {
            in->ready.probing = py_link_push(in->link, &in->link->side,
                PY_TASK_READY, 0, NULL);
        }

        uint64_t seen = in->ready.answers;
        int rc = in->ready.probing ? 0 : ETIMEDOUT;
        while (rc == 0 && in->ready.answers == seen) {
            rc = pthread_cond_timedwait(&in->changed, &in->lock, &until);
        }

        if (in->ready.answers == seen) {
            err = bk_err_new(TRITONSERVER_ERROR_UNAVAILABLE, "is_ready of "
                "instance %s has not returned within %d s", in->name,
                READY_LIMIT_S);
        } else if (in->ready.why_not[0] != '\0') {
            err = bk_err_new(TRITONSERVER_ERROR_UNAVAILABLE, "%s",
                in->ready.why_not);
        }
    }
    pthread_mutex_unlock(&in->lock);
    return err;
}

TRITONSERVER_Error *
py_interpreter_complete(const py_model_t *model, char **config)
{
    const py_instance_name_t name = {
        .name = model->name, .kind = "CPU"
    };
    py_interpreter_t *in;

    *config = NULL;
    TRITONSERVER_Error *err = py_interpreter_new(&in, model, NULL, &name);
    if (err != NULL) {
        return err;
    }

    err = completed(in, config);
    py_interpreter_free(in);
    return err;
}

TRITONSERVER_Error *
py_interpreter_unhealthy(const py_interpreter_t *in)
{
    return bk_err_new(TRITONSERVER_ERROR_UNAVAILABLE, PY_UNHEALTHY, in->name);
}

static TRITONSERVER_Error *
open_all(py_interpreter_t *in, const py_instance_name_t *name)
{
    char text[128];

    in->name = strdup(name->name);
    if (in->name == NULL) {
        return bk_err_nomem("an interpreter");
    }

    in->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    in->wake_fd = in->stop_fd == -1 ? -1
        : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int rc = in->wake_fd == -1 ? errno
        : pthread_create(&in->thread, NULL, py_life_main, in);
    return rc == 0 ? NULL : bk_err_new(TRITONSERVER_ERROR_UNAVAILABLE,
        "cannot start the thread of instance %s: %s", in->name,
        strerror_r(rc, text, sizeof(text)));
}

void
py_interpreter_drain(py_interpreter_t *in)
{
    py_entry_t e;

    for (uint32_t n = 0; n < PY_RING_ENTRIES; n++) {
        switch (py_link_pop(in->link, &e)) {
        case PY_POP_EMPTY:
            return;

        case PY_POP_ENTRY:
            py_call(in, &e);
            break;

        case PY_POP_BROKEN:
            if (!py_link_is_dead(in->link)) {
                bk_log(TRITONSERVER_LOG_ERROR, "instance %s: its interpreter "
                    "has damaged the channel and is ended", in->name);
                py_link_die(in->link);
                py_process_kill(&in->process);
            }
            return;
        }
    }
}

static TRITONSERVER_Error *
completed(py_interpreter_t *in, char **config)
{
    const char *text;
    uint32_t len;
    py_reader_t r;

    /* [none, JSON] on success */
    py_reader_init(&r, in->result.data, in->result.len);
    if (!py_read_list_of(&r, 2) || !py_read_none(&r)
        || !py_read_text(&r, &text, &len))
    {
        return py_error_message("configuration");
    }

    *config = strdup(text);
    return *config != NULL ? NULL : bk_err_nomem("a configuration");
}
