/* control.c - the control thread: runs calls one after another. */

#include "core/service/calls.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/lock.h"

#define CONTROL_RANK  8
#define CONTROL_LIMIT 4096u     /* queued calls; then UNAVAILABLE            */

typedef struct {
    inf_link_t     link;
    inf_session_t *session;     /* a reference                               */
    uint32_t       slot;
    uint32_t       generation;
    uint16_t       method;
    size_t         len;
    char           request[];
} control_call_t;

struct inf_control_s {
    inf_server_t         *server;
    inf_registry_reader_t models;       /* the control thread's              */
    pthread_t             thread;

    inf_lock_t            lock;         /* rank 8; guards the rest           */
    inf_cond_t            work;
    inf_link_t            calls;
    uint32_t              queued;
    bool                  stopping;
};

static void *control_main(void *arg);
static void control_run(inf_control_t *control, control_call_t *call);
static void answer(inf_session_t *session, uint32_t slot, uint32_t generation,
    const inf_err_t *err, inf_slice_t bytes);

inf_err_t *
inf_control_new(inf_server_t *server, inf_control_t **out)
{
    inf_control_t *control = calloc(1, sizeof(*control));
    if (control == NULL) {
        return inf_err_nomem();
    }

    control->server = server;
    inf_registry_reader_init(&control->models, &server->registry);
    inf_lock_init(&control->lock, CONTROL_RANK);
    inf_cond_init(&control->work);
    inf_link_init(&control->calls);

    int rc = pthread_create(&control->thread, NULL, control_main, control);
    if (rc != 0) {
        free(control);
        return inf_err_os(rc, "cannot start the control thread");
    }

    pthread_setname_np(control->thread, "control");
    *out = control;
    return NULL;
}

void
inf_control_free(inf_control_t *control)
{
    if (control == NULL) {
        return;
    }

    inf_lock(&control->lock);
    control->stopping = true;
    inf_unlock(&control->lock);
    inf_cond_broadcast(&control->work);
    pthread_join(control->thread, NULL);

    inf_registry_reader_fini(&control->models);
    inf_cond_fini(&control->work);
    inf_lock_fini(&control->lock);
    free(control);
}

void
inf_control_submit(inf_control_t *control, inf_session_t *session,
    const inf_submission_t *submission)
{
    size_t len = submission->length;
    const void *bytes = len > 0 ? inf_channel_request(session->channel,
        submission->offset, len) : "";
    inf_err_t *err = NULL;
    control_call_t *call = NULL;

    if (bytes == NULL || len > INF_RECORD_MAX) {
        err = inf_err_new(INF_ERR_INVALID_ARG,
            "call %u: its %zu bytes are not in the request arena",
            submission->method, len);
    } else {
        call = malloc(sizeof(*call) + len);
        err = call == NULL ? inf_err_nomem() : NULL;
    }
    if (err != NULL) {
        answer(session, submission->slot, submission->generation, err,
            inf_slice(NULL, 0));
        inf_err_free(err);
        return;
    }

    inf_link_init(&call->link);
    call->slot = submission->slot;
    call->generation = submission->generation;
    call->method = submission->method;
    call->len = len;
    memcpy(call->request, bytes, len);
    call->session = inf_session_ref(session);

    inf_lock(&control->lock);
    bool full = control->queued >= CONTROL_LIMIT;
    if (!full) {
        inf_list_push_back(&control->calls, &call->link);
        control->queued++;
    }
    inf_unlock(&control->lock);

    if (!full) {
        inf_cond_signal(&control->work);
        return;
    }

    err = inf_err_new(INF_ERR_UNAVAILABLE, "too many calls are queued");
    answer(session, call->slot, call->generation, err, inf_slice(NULL, 0));
    inf_err_free(err);
    inf_session_unref(session);
    free(call);
}

static void *
control_main(void *arg)
{
    inf_control_t *control = arg;

    inf_lock(&control->lock);
    for (;;) {
        inf_link_t *link = inf_list_pop_front(&control->calls);
        if (link == NULL) {
            if (control->stopping) {
                break;
            }
            /* an idle reader must not keep unloaded models alive */
            inf_unlock(&control->lock);
            inf_registry_reader_fini(&control->models);
            control->models.generation = 0;
            inf_lock(&control->lock);
            if (inf_list_empty(&control->calls) && !control->stopping) {
                inf_cond_wait(&control->work, &control->lock);
            }
            continue;
        }

        control->queued--;
        inf_unlock(&control->lock);
        control_run(control, inf_link_entry(link, control_call_t, link));
        inf_lock(&control->lock);
    }
    inf_unlock(&control->lock);
    return NULL;
}

static void
control_run(inf_control_t *control, control_call_t *call)
{
    inf_buf_t bytes;
    inf_buf_init(&bytes);

    inf_err_t *err = inf_call(control->server, &control->models, call->method,
        inf_slice(call->request, call->len), &bytes);
    if (err == NULL) {
        err = inf_buf_status(&bytes);
    }

    answer(call->session, call->slot, call->generation, err,
        inf_buf_slice(&bytes));

    inf_err_free(err);
    inf_buf_fini(&bytes);
    inf_session_unref(call->session);
    free(call);
}

static void
answer(inf_session_t *session, uint32_t slot, uint32_t generation,
    const inf_err_t *err, inf_slice_t bytes)
{
    inf_completion_t c = {
        .flags = INF_COMPLETE_RESPONSE | INF_COMPLETE_FINAL
            | INF_COMPLETE_RELEASED,
        .slot = slot,
        .generation = generation,
        .status = err != NULL ? INF_STATUS(inf_err_code(err)) : INF_OK
    };

    if (err != NULL) {
        bytes = inf_slice_str(inf_err_msg(err));
    }

    inf_channel_region_t *region = NULL;
    if (bytes.len > 0) {
        region = inf_channel_alloc(session->channel, bytes.len);
        if (region != NULL) {
            memcpy(inf_channel_region_data(region), bytes.data, bytes.len);
        } else {
            c.status = INF_STATUS(INF_ERR_UNAVAILABLE);
        }
    }

    inf_channel_set_slot(session->channel, slot, INF_SLOT_ANSWERED);
    inf_channel_complete(session->channel, &c, region, bytes.len);
}
