/* control.c - the control threads.  One runs calls one after another; one,
   calls that ask for readiness; one parses loads and unloads and passes them to
   the loaders; one lists repositories, which may be slow remote ones; one
   registers archives, whose file systems may be slow; one parses long generate
   requests; one has settings of clients: regions, log and traces. */

#include "core/service/control.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/lock.h"
#include "core/base/os/thread.h"
#include "core/base/points.h"
#include "core/server/archives.h"
#include "core/server/calls.h"
#include "core/server/client_settings.h"
#include "core/server/model_control.h"
#include "core/server/ready_calls.h"
#include "core/server/rest_request.h"
#include "core/service/infer.h"

#define CONTROL_RANK  8
#define CONTROL_LIMIT 16384u    /* maximum of queued calls; then UNAVAILABLE */
#define CONTROL_SHARE 1024u     /* unanswered calls of one channel; and as many
                                   that ask for readiness                    */
#define CONTROL_SMALL 65536u    /* larger calls are copied by the control
                                   thread                                    */

/* A load's call includes its files. */
#define CONTROL_LOAD_MAX ((size_t) 1 << 30)

typedef struct {
    inf_link_t     link;
    inf_session_t *session;     /* a reference                               */
    uint32_t       slot;
    uint32_t       generation;
    uint16_t       method;
    inf_in_flight_t *in_flight; /* a request to be parsed; NULL: a call      */
    bool           rest;        /* the request is a REST body                */
    bool           rest_answer; /* the answer is a REST body                 */
    bool           again;       /* an earlier core had taken it              */
    const void    *shared;      /* still in the request arena; NULL: copied  */
    size_t         len;
    char           request[];
} control_call_t;

/* A thread and its queued calls. */
typedef struct {
    inf_control_t        *control; /* these are set in new()                 */
    inf_registry_reader_t models;       /* thread's own                      */
    pthread_t             thread;

    inf_lock_t            lock;         /* rank 8; guards the rest           */
    inf_cond_t            work;
    inf_link_t            turns;        /* queues of sessions with calls,
                                           served in turn                    */
    uint32_t              queued;       /* calls of all sessions             */
    inf_core_config_t    *configured;   /* SETTINGS: configuration of a reload
                                           to apply, a reference; NULL: none */
    bool                  log_configured;   /* the reload changed the log    */
    bool                  stopping;
} control_lane_t;

typedef enum {
    CONTROL_QUICK,              /* reads present state                       */
    CONTROL_READY,              /* asked by load balancers, which do not wait
                                   long                                      */
    CONTROL_MODELS,             /* loads, unloads: large, answered later     */
    CONTROL_LISTS,              /* index, status: may take long              */
    CONTROL_ARCHIVES,           /* their loads and unloads: may take long    */
    CONTROL_GENERATE,           /* JSON of generate                          */
    CONTROL_SETTINGS            /* client_settings.h; maps memory of clients
                                   and of the last core's clients            */
} control_kind_t;

static_assert(CONTROL_SETTINGS + 1 == INF_SESSION_CALL_QUEUES,
    "each thread has a queue in each session");

struct inf_control_s {
    inf_server_t   *server;
    control_lane_t  lanes[INF_SESSION_CALL_QUEUES];
    uint32_t        lane_count;         /* started ones                      */
};

static inf_err_t *lane_start(inf_control_t *control, const char *name);
static void lane_stop(control_lane_t *lane);
static void *lane_main(void *arg);
static void run(control_lane_t *lane, control_call_t *call);
static void queue_locked(control_lane_t *lane, control_call_t *call)
    INF_NEEDS(lane->lock);
static control_call_t *take_locked(control_lane_t *lane)
    INF_NEEDS(lane->lock);
static inf_session_calls_t *calls_of(const control_lane_t *lane,
    inf_session_t *session);
static _Atomic uint32_t *unanswered(const control_call_t *call);
static inf_err_t *new_call(const inf_submission_t *submission,
    const void *bytes, control_call_t **out);
static void call_queue(control_lane_t *lane, control_call_t *call);
static void run_call(control_lane_t *lane, control_call_t *call);
static inf_err_t *from_rest(const control_call_t *call, inf_buf_t *copy,
    inf_slice_t *request);
static void hand_over(control_lane_t *lane, control_call_t *call);
static void ready_done(void *userp, inf_err_t *err, inf_slice_t bytes);
static inf_err_t *own_bytes(const control_call_t *call, inf_buf_t *copy,
    inf_slice_t *bytes);
static void call_done(void *userp, inf_err_t *err);
static void call_free(control_call_t *call);
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
    inf_err_t *err = lane_start(control, "control");
    if (err == NULL) {
        err = lane_start(control, "control ready");
    }
    if (err == NULL) {
        err = lane_start(control, "control models");
    }
    if (err == NULL) {
        err = lane_start(control, "control lists");
    }
    if (err == NULL) {
        err = lane_start(control, "control archive");
    }
    if (err == NULL) {
        err = lane_start(control, "control read");
    }
    if (err == NULL) {
        err = lane_start(control, "control set");
    }
    if (err != NULL) {
        inf_control_free(control);
        return err;
    }

    *out = control;
    return NULL;
}

void
inf_control_free(inf_control_t *control)
{
    if (control == NULL) {
        return;
    }

    /* interrupts waits for remote repositories */
    inf_repository_change_stop(control->server->change);
    for (uint32_t i = 0; i < control->lane_count; i++) {
        lane_stop(&control->lanes[i]);
    }
    free(control);
}

void
inf_control_submit(inf_control_t *control, inf_session_t *session,
    const inf_submission_t *submission)
{
    bool settings = inf_client_settings_have(submission->method);
    bool lists = submission->method == INF_METHOD_REPOSITORY_INDEX
        || submission->method == INF_METHOD_STATUS;
    bool archives = inf_archive_is_change(submission->method);
    bool models = !settings && !archives
        && (inf_model_control_is_call(submission->method)
            || (submission->flags & INF_SUBMIT_FLAG_REST
                && submission->length > CONTROL_SMALL));
    control_lane_t *lane = &control->lanes[settings ? CONTROL_SETTINGS
        : models ? CONTROL_MODELS
        : lists ? CONTROL_LISTS
        : archives ? CONTROL_ARCHIVES
        : inf_ready_calls_have(submission->method) ? CONTROL_READY
        : CONTROL_QUICK];
    size_t len = submission->length;
    const void *bytes = len > 0 ? inf_channel_request(session->channel,
        submission->offset, len) : "";
    control_call_t *call = NULL;
    inf_err_t *err = NULL;

    if (bytes == NULL || len > (models ? CONTROL_LOAD_MAX : INF_RECORD_MAX)) {
        err = inf_err_new(INF_ERR_INVALID_ARG,
            "call %u: its %zu bytes are not in the request arena, or too many",
            submission->method, len);
    } else {
        err = new_call(submission, bytes, &call);
    }
    if (err != NULL) {
        answer(session, submission->slot, submission->generation, err,
            inf_slice(NULL, 0));
        inf_err_free(err);
        return;
    }

    inf_channel_set_slot(session->channel, submission->slot, INF_SLOT_QUEUED);
    INF_POINT(CALL_TAKEN);
    call->session = inf_session_ref(session);
    call_queue(lane, call);
}

void
inf_control_read(inf_control_t *control, inf_in_flight_t *in_flight)
{
    control_call_t *call = calloc(1, sizeof(*call));
    if (call == NULL) {
        inf_infer_read(in_flight, inf_err_nomem());
        return;
    }

    inf_link_init(&call->link);
    call->in_flight = in_flight;
    call->session = inf_session_ref(in_flight->session);
    call_queue(&control->lanes[CONTROL_GENERATE], call);
}

void
inf_control_configure(inf_control_t *control, inf_core_config_t *config,
    bool log)
{
    control_lane_t *lane = &control->lanes[CONTROL_SETTINGS];

    inf_lock(&lane->lock);
    inf_core_config_t *before = lane->configured;
    lane->configured = inf_core_config_ref(config);
    lane->log_configured |= log;
    inf_unlock(&lane->lock);
    inf_cond_signal(&lane->work);
    inf_core_config_unref(before);
}

/* Queues the call, which is taken; rejects it at once if there are too many.
   Requests are limited by their channel's slots. */
static void
call_queue(control_lane_t *lane, control_call_t *call)
{
    bool full = call->in_flight == NULL
        && atomic_fetch_add_explicit(unanswered(call), 1,
            memory_order_relaxed) >= CONTROL_SHARE;

    inf_lock(&lane->lock);
    full |= lane->queued >= CONTROL_LIMIT;
    if (!full) {
        queue_locked(lane, call);
    }
    inf_unlock(&lane->lock);

    if (!full) {
        inf_cond_signal(&lane->work);
        return;
    }

    call_done(call, inf_err_because(inf_err_new(INF_ERR_UNAVAILABLE,
        "too many calls are queued"), INF_CAUSE_FULL));
}

static void
queue_locked(control_lane_t *lane, control_call_t *call)
{
    inf_session_calls_t *q = calls_of(lane, call->session);

    if (inf_list_empty(&q->calls)) {
        inf_list_push_back(&lane->turns, &q->turn);
    }
    inf_list_push_back(&q->calls, &call->link);
    lane->queued++;
}

/* Takes the next call; NULL: none.  A session with more calls goes to the
   end. */
static control_call_t *
take_locked(control_lane_t *lane)
{
    inf_link_t *link = inf_list_pop_front(&lane->turns);
    if (link == NULL) {
        return NULL;
    }

    inf_session_calls_t *q = inf_link_entry(link, inf_session_calls_t, turn);
    link = inf_list_pop_front(&q->calls);
    if (!inf_list_empty(&q->calls)) {
        inf_list_push_back(&lane->turns, &q->turn);
    }
    lane->queued--;
    return inf_link_entry(link, control_call_t, link);
}

static inf_session_calls_t *
calls_of(const control_lane_t *lane, inf_session_t *session)
{
    return &session->queues[lane - lane->control->lanes];
}

/* The counter of the channel for this kind of call. */
static _Atomic uint32_t *
unanswered(const control_call_t *call)
{
    return inf_ready_calls_have(call->method) ? &call->session->ready_calls
        : &call->session->calls;
}

static inf_err_t *
lane_start(inf_control_t *control, const char *name)
{
    control_lane_t *lane = &control->lanes[control->lane_count];

    lane->control = control;
    inf_registry_reader_init(&lane->models, &control->server->registry);
    inf_lock_init(&lane->lock, CONTROL_RANK);
    inf_cond_init(&lane->work);
    inf_link_init(&lane->turns);

    inf_err_t *err = inf_thread_start(&lane->thread, name, lane_main, lane);
    control->lane_count += err == NULL;
    return err;
}

/* Stops a lane after its queued calls. */
static void
lane_stop(control_lane_t *lane)
{
    inf_lock(&lane->lock);
    lane->stopping = true;
    inf_unlock(&lane->lock);
    inf_cond_broadcast(&lane->work);
    pthread_join(lane->thread, NULL);

    inf_registry_reader_fini(&lane->models);
    inf_cond_fini(&lane->work);
    inf_lock_fini(&lane->lock);
}

static void *
lane_main(void *arg)
{
    control_lane_t *lane = arg;
    inf_server_t *server = lane->control->server;

    if (lane == &lane->control->lanes[CONTROL_SETTINGS]) {
        inf_client_settings_restore_regions(server);
    }

    inf_lock(&lane->lock);
    for (;;) {
        inf_core_config_t *configured = lane->configured;
        bool log = lane->log_configured;
        control_call_t *call = configured == NULL ? take_locked(lane) : NULL;
        lane->configured = NULL;
        lane->log_configured = false;

        if (configured == NULL && call == NULL) {
            if (lane->stopping) {
                break;
            }
            /* an idle reader must not keep unloaded models */
            inf_unlock(&lane->lock);
            inf_registry_reader_fini(&lane->models);
            lane->models.generation = 0;
            inf_lock(&lane->lock);
            if (inf_list_empty(&lane->turns) && lane->configured == NULL
                && !lane->stopping)
            {
                inf_cond_wait(&lane->work, &lane->lock);
            }
            continue;
        }

        inf_unlock(&lane->lock);
        if (configured != NULL) {
            inf_client_settings_configure(server, configured, log);
            inf_core_config_unref(configured);
        } else {
            run(lane, call);
        }
        inf_lock(&lane->lock);
    }
    inf_unlock(&lane->lock);
    return NULL;
}

/* Runs the call, which is taken. */
static void
run(control_lane_t *lane, control_call_t *call)
{
    if (call->in_flight != NULL) {
        call_done(call, NULL);
    } else if (inf_model_control_is_call(call->method)
        || inf_ready_calls_have(call->method))
    {
        hand_over(lane, call);
    } else {
        run_call(lane, call);
    }
}

/* Creates a call.  The intake copies small ones; the arena keeps others until
   the answer. */
static inf_err_t *
new_call(const inf_submission_t *submission, const void *bytes,
    control_call_t **out)
{
    size_t len = submission->length;
    bool small = len <= CONTROL_SMALL;
    control_call_t *call = malloc(sizeof(*call) + (small ? len : 0));
    if (call == NULL) {
        return inf_err_nomem();
    }

    inf_link_init(&call->link);
    call->slot = submission->slot;
    call->generation = submission->generation;
    call->method = submission->method;
    call->in_flight = NULL;
    call->rest = (submission->flags & INF_SUBMIT_FLAG_REST) != 0;
    call->rest_answer = (submission->flags & INF_SUBMIT_FLAG_REST_ANSWER)
        != 0;
    call->again = (submission->flags & INF_SUBMIT_FLAG_AGAIN) != 0;
    call->shared = small ? NULL : bytes;
    call->len = len;
    if (small) {
        memcpy(call->request, bytes, len);
    }

    *out = call;
    return NULL;
}

static void
run_call(control_lane_t *lane, control_call_t *call)
{
    inf_buf_t bytes, copy;
    inf_slice_t request;

    inf_buf_init(&bytes);
    inf_buf_init(&copy);
    inf_err_t *err = own_bytes(call, &copy, &request);
    if (err == NULL && call->rest) {
        err = from_rest(call, &copy, &request);
    }
    if (err == NULL) {
        err = inf_call(lane->control->server, &lane->models, call->method,
            request, call->rest_answer, &bytes);
    }
    if (err == NULL) {
        err = inf_buf_status(&bytes);
    }

    INF_POINT(CALL_RUN);
    answer(call->session, call->slot, call->generation, err,
        inf_buf_slice(&bytes));

    inf_err_free(err);
    inf_buf_fini(&bytes);
    inf_buf_fini(&copy);
    call_free(call);
}

/* Converts the REST body to the packed message. */
static inf_err_t *
from_rest(const control_call_t *call, inf_buf_t *copy, inf_slice_t *request)
{
    const ProtobufCMessageDescriptor *desc = NULL;
    ProtobufCMessage *m;

    inf_err_t *err = inf_call_request(call->method, &desc);
    if (err == NULL) {
        err = inf_rest_request(call->method, desc, *request, &m);
    }
    if (err != NULL) {
        return err;
    }

    inf_buf_reset(copy);
    err = inf_message_pack(m, copy);
    inf_message_free(m);
    *request = inf_buf_slice(copy);
    return err != NULL ? err : inf_buf_status(copy);
}

/* Passes the call on.  The thread that gets the result answers, so that this
   one does not wait for a loader or a backend. */
static void
hand_over(control_lane_t *lane, control_call_t *call)
{
    inf_buf_t copy;
    inf_slice_t request;

    inf_buf_init(&copy);
    inf_err_t *err = own_bytes(call, &copy, &request);
    if (err != NULL) {
        call_done(call, err);
    } else if (inf_ready_calls_have(call->method)) {
        inf_ready_call(lane->control->server, &lane->models, call->method,
            request, call->rest_answer, ready_done, call);
    } else {
        inf_model_control_call(lane->control->server, call->method,
            call->rest, call->again, request, call_done, call);
    }
    inf_buf_fini(&copy);
}

static void
ready_done(void *userp, inf_err_t *err, inf_slice_t bytes)
{
    control_call_t *call = userp;

    answer(call->session, call->slot, call->generation, err, bytes);
    inf_err_free(err);
    call_free(call);
}

/* Copies bytes that the worker can still write, before they are parsed. */
static inf_err_t *
own_bytes(const control_call_t *call, inf_buf_t *copy, inf_slice_t *bytes)
{
    if (call->shared == NULL) {
        *bytes = inf_slice(call->request, call->len);
        return NULL;
    }

    inf_buf_put(copy, call->shared, call->len);
    *bytes = inf_buf_slice(copy);
    return inf_buf_status(copy);
}

/* Ends a call that returns only success or an error, perhaps on a loader
   thread; or a request that was parsed or has failed. */
static void
call_done(void *userp, inf_err_t *err)
{
    control_call_t *call = userp;

    if (call->in_flight != NULL) {
        inf_infer_read(call->in_flight, err);
        call_free(call);
        return;
    }

    answer(call->session, call->slot, call->generation, err,
        inf_slice(NULL, 0));
    inf_err_free(err);
    call_free(call);
}

static void
call_free(control_call_t *call)
{
    if (call->in_flight == NULL) {
        atomic_fetch_sub_explicit(unanswered(call), 1, memory_order_relaxed);
    }
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
        .cause = err != NULL ? (uint8_t) inf_err_cause(err) : INF_CAUSE_NONE,
        .status = err != NULL ? INF_STATUS(inf_err_code(err)) : INF_OK
    };

    if (err != NULL) {
        bytes = inf_slice_str(inf_err_msg(err));
    }

    inf_channel_region_t *region = NULL;
    if (bytes.len > 0) {
        region = inf_channel_alloc_answer(session->channel, bytes.len);
        if (region != NULL) {
            memcpy(inf_channel_region_data(region), bytes.data, bytes.len);
        } else {
            c.cause = INF_CAUSE_FULL;
            c.status = INF_STATUS(INF_ERR_UNAVAILABLE);
        }
    }

    inf_channel_set_slot(session->channel, slot, INF_SLOT_ANSWERED);
    inf_channel_complete(session->channel, &c, region, bytes.len);
}
