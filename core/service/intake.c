#include "core/service/intake.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "core/abi/plugins.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/os/events_wait.h"
#include "core/sched/waiter.h"
#include "core/service/admission.h"
#include "core/service/configuration_socket.h"
#include "core/service/infer.h"
#include "core/service/intake_role.h"
#include "core/service/suspect_queue.h"
#include "core/wire/sockets.h"

#define INTAKE_EVENTS     64
#define INTAKE_BATCH      256       /* entries of one session in a row,      */
#define INTAKE_BATCH_BYTES (UINT64_C(1) << 20)  /* unless they are large     */
#define INTAKE_TRIM_NS    UINT64_C(1000000000)
#define INTAKE_LEAVE_NS   UINT64_C(10000000)    /* between two looks at what
                                                   is still under way        */
#define INTAKE_STRANGE    2         /* then the role goes to the other model */

/* Kinds of epoll events.  An event's data is the address of such a value, in
   the object that the event concerns. */
typedef enum {
    INTAKE_WAKE,
    INTAKE_ADMISSION,
    INTAKE_CONFIGURE,
    INTAKE_EVENTFD,
    INTAKE_CONTROL
} intake_source_t;

typedef struct {
    inf_peer_t      peer;           /* in->sessions, later in->ended         */
    inf_session_t  *session;        /* a reference                           */
    intake_source_t eventfd;
    intake_source_t control;
} intake_session_t;

struct inf_intake_s {
    inf_intake_options_t  options;
    inf_server_t         *server;
    inf_control_t        *control;
    inf_admission_t      *admission;
    inf_registry_reader_t models;
    int                   epoll_fd;
    int                   wake_fd;
    intake_source_t       wake;
    intake_source_t       registration;
    intake_source_t       configure;
    inf_link_t            sessions;     /* intake_session_t                  */
    inf_link_t            ended;        /* to be freed after the event round */
    bool                  orphaned;     /* no master, no supervisor          */
    bool                  leaving;
    uint64_t              leave_until_ns;
    uint64_t              leave_look_ns;
    uint64_t              trimmed_ns;
    inf_suspect_queue_t   suspects;
    bool                  suspect_told; /* to all sessions: one is under way */
    uint64_t              leaving_ns;   /* since when all workers leave; 0:
                                           some worker stays                 */
    inf_infer_fed_t       fed;          /* where this poll's requests went   */
    bool                  fed_several;

    bool                  attached;
    bool                  closed;

    inf_intake_role_t     role;         /* all above belongs to the thread
                                           that has it                       */
    _Atomic bool          leave_asked;  /* relaxed: an eventfd follows       */
};

static inf_err_t *watch(inf_intake_t *in, int fd, uint32_t events,
    intake_source_t *source);
static inf_err_t *admission_open(inf_intake_t *in);
static bool hold(inf_intake_t *in, const inf_runner_t *own,
    inf_waiter_t *waiter, uint64_t until_ns);
static bool poll_rings(inf_intake_t *in);
static bool for_others(const inf_intake_t *in, const inf_runner_t *own);
static bool idle_lead(void *userp, inf_runner_t *runner,
    inf_waiter_t *waiter, uint64_t until_ns);
static void idle_leave(void *userp, inf_runner_t *runner);
static void idle_sleeps(void *userp);
static void host_changed(void *userp);
static bool drain_session(inf_intake_t *in, intake_session_t *is);
static void take_infer(inf_intake_t *in, inf_session_t *session,
    const inf_submission_t *s, uint64_t now_ns);
static void take_suspects(inf_intake_t *in);
static void tell_suspect(inf_intake_t *in, bool under_way);
static void note_fed(inf_intake_t *in, inf_infer_fed_t fed);
static void wake_for_suspects(void *userp);
static void dispatch(inf_intake_t *in, inf_session_t *session,
    const inf_submission_t *s);
static bool all_asleep(inf_intake_t *in);
static bool spin(inf_intake_t *in);
static void leave_begin(inf_intake_t *in, uint64_t now_ns);
static void leave_look(inf_intake_t *in);
static uint64_t longest_sleep_ns(const inf_intake_t *in);
static void wait_events(inf_intake_t *in, int timeout_ms);
static void wait_events_until(inf_intake_t *in, uint64_t until_ns);
static void on_events(inf_intake_t *in, const struct epoll_event *events,
    int count);
static void on_event(inf_intake_t *in, intake_source_t *source,
    uint32_t events);
static void on_configure(inf_intake_t *in);
static void stop_if_alone(inf_intake_t *in);
static inf_err_t *add_session(void *userp, inf_channel_t *channel,
    uint32_t pid);
static uint32_t worker_pid(const intake_session_t *is);
static void end_session(inf_intake_t *in, intake_session_t *is,
    const char *why);
static void free_ended(inf_intake_t *in);
static void trim(inf_intake_t *in);
static void attend(inf_intake_t *in, uint64_t now_ns);

inf_err_t *
inf_intake_new(const inf_intake_options_t *options, inf_intake_t **out)
{
    inf_intake_t *in = calloc(1, sizeof(*in));
    if (in == NULL) {
        return inf_err_nomem();
    }

    in->options = *options;
    inf_link_init(&in->sessions);
    inf_link_init(&in->ended);
    inf_suspect_queue_init(&in->suspects, wake_for_suspects, in);
    inf_intake_role_init(&in->role);
    in->wake_fd = -1;
    in->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    inf_err_t *err = in->epoll_fd >= 0 ? NULL
        : inf_err_os(errno, "epoll_create1");

    if (err == NULL) {
        err = inf_eventfd_new(&in->wake_fd);
    }
    if (err == NULL) {
        in->wake = INTAKE_WAKE;
        err = watch(in, in->wake_fd, EPOLLIN, &in->wake);
    }
    if (err == NULL) {
        err = admission_open(in);
    }
    if (err == NULL && options->configure_fd >= 0) {
        in->configure = INTAKE_CONFIGURE;
        err = watch(in, options->configure_fd, EPOLLIN, &in->configure);
    }
    if (err != NULL) {
        inf_intake_free(in);
        return err;
    }

    *out = in;
    return NULL;
}

inf_err_t *
inf_intake_attach(inf_intake_t *in, inf_server_t *server)
{
    in->server = server;
    inf_registry_reader_init(&in->models, &server->registry);

    inf_err_t *err = inf_control_new(server, &in->control);
    if (err == NULL) {
        in->attached = true;
        inf_intake_role_give(&in->role);
    }
    return err;
}

void
inf_intake_configure(inf_intake_t *in, inf_core_config_t *config, bool log)
{
    inf_control_configure(in->control, config, log);
}

void
inf_intake_close(inf_intake_t *in)
{
    inf_intake_stop(in);
    if (in->attached) {
        inf_intake_role_take_last(&in->role);
    }

    while (!inf_list_empty(&in->sessions)) {
        end_session(in, inf_link_entry(in->sessions.next, intake_session_t,
            peer.link), "the core ends");
    }
    free_ended(in);
    inf_admission_free(in->admission);
    in->admission = NULL;

    in->closed = true;
    inf_control_free(in->control);
    in->control = NULL;
    if (in->server != NULL) {
        inf_registry_reader_fini(&in->models);
        in->server = NULL;
    }
}

void
inf_intake_free(inf_intake_t *in)
{
    if (in == NULL) {
        return;
    }

    if (!in->closed) {
        inf_intake_close(in);
    }
    if (in->wake_fd >= 0) {
        close(in->wake_fd);
    }
    if (in->epoll_fd >= 0) {
        close(in->epoll_fd);
    }
    free(in);
}

void
inf_intake_run(inf_intake_t *in)
{
    while (!inf_intake_role_is_stopping(&in->role)) {
        if (inf_intake_role_take(&in->role)) {
            hold(in, NULL, NULL, INF_NEVER);
            inf_intake_role_give(&in->role);
        }
        inf_intake_role_stand_by(&in->role);
    }
}

void
inf_intake_wake(inf_intake_t *in)
{
    inf_eventfd_notify(in->wake_fd);
}

void
inf_intake_leave(inf_intake_t *in)
{
    atomic_store_explicit(&in->leave_asked, true, memory_order_relaxed);
    inf_eventfd_notify(in->wake_fd);
}

void
inf_intake_stop(inf_intake_t *in)
{
    inf_intake_role_stop(&in->role);
    inf_eventfd_notify(in->wake_fd);
}

static inf_err_t *
admission_open(inf_intake_t *in)
{
    const inf_admission_options_t options = {
        .registration_fd = in->options.registration_fd,
        .configure_fd = in->options.configure_fd,
        .listen_fd = in->options.listen_fd,
        .users = in->options.users,
        .user_count = in->options.user_count,
        .response_bound = in->options.response_bound,
        .generation = in->options.generation,
        .channels = &in->sessions,
        .admitted = add_session,
        .userp = in
    };

    inf_err_t *err = inf_admission_new(&options, &in->admission);
    if (err != NULL) {
        return err;
    }

    in->registration = INTAKE_ADMISSION;
    return watch(in, inf_admission_fd(in->admission), EPOLLIN,
        &in->registration);
}

/*
 * The role's work, until waiter is woken or until_ns has come (true), or
 * somebody else should hold it or the core stops (false).  The main thread
 * has no waiter and no runner.
 */
static bool
hold(inf_intake_t *in, const inf_runner_t *own, inf_waiter_t *waiter,
    uint64_t until_ns)
{
    uint32_t busy = 0;
    uint32_t strange = 0;       /* polls in a row that fed another runner    */

    while (!inf_intake_role_is_stopping(&in->role)) {
        bool any = poll_rings(in);

        if (atomic_load_explicit(&in->leave_asked, memory_order_relaxed)) {
            leave_look(in);
        }
        if (waiter != NULL && inf_waiter_woken(waiter)) {
            return true;
        }
        if (until_ns != INF_NEVER && inf_clock_ns() >= until_ns) {
            return true;
        }
        if (any) {
            strange = for_others(in, own) ? strange + 1 : 0;
            if (strange >= INTAKE_STRANGE) {
                return false;
            }
            if (++busy % 64 == 0) {
                wait_events(in, 0);     /* control sockets must not starve   */
            }
            continue;
        }

        if ((in->options.spin_ns > 0 && spin(in)) || !all_asleep(in)) {
            continue;
        }
        if (waiter != NULL && !inf_waiter_poll_begin(waiter, in->wake_fd)) {
            return true;
        }

        trim(in);
        if (until_ns == INF_NEVER) {
            wait_events(in, inf_list_empty(&in->sessions) && !in->leaving
                && !inf_admission_has_connections(in->admission) ? -1
                : (int) (longest_sleep_ns(in) / 1000000));
        } else {
            wait_events_until(in, until_ns);
        }

        if (waiter != NULL && inf_waiter_poll_end(waiter)) {
            return true;
        }
    }

    return false;
}

/* Drains all rings once; true: something was there. */
static bool
poll_rings(inf_intake_t *in)
{
    bool any = false;
    in->fed = (inf_infer_fed_t) { 0 };
    in->fed_several = false;

    for (inf_link_t *l = in->sessions.next; l != &in->sessions; ) {
        intake_session_t *is = inf_link_entry(l, intake_session_t,
            peer.link);
        l = l->next;
        any |= drain_session(in, is);
    }
    if (inf_suspect_queue_pending(&in->suspects)) {
        take_suspects(in);
    }

    free_ended(in);
    return any;
}

/* Whether a thread of the one runner that was fed had better hold the role:
   it is awake now, and soon idle. */
static bool
for_others(const inf_intake_t *in, const inf_runner_t *own)
{
    return in->fed.runner != NULL && in->fed.runner != own && in->fed.quick
        && !in->fed_several;
}

static const inf_idle_ops_t intake_idle_ops = {
    .lead = idle_lead,
    .leave = idle_leave,
    .sleeps = idle_sleeps
};

const inf_server_host_t inf_intake_host = {
    .plugins = &inf_abi_plugins,
    .changed = host_changed,
    .idle = &intake_idle_ops,
    .polls = true
};

static bool
idle_lead(void *userp, inf_runner_t *runner, inf_waiter_t *waiter,
    uint64_t until_ns)
{
    inf_intake_t *in = userp;

    if (inf_intake_role_is_stopping(&in->role)
        || !inf_intake_role_take(&in->role))
    {
        return false;
    }

    bool work = hold(in, runner, waiter, until_ns);
    inf_intake_role_give(&in->role);
    return work;
}

/* Nobody watches the rings now: for a moment that is fine. */
static void
idle_leave(void *userp, inf_runner_t *runner)
{
    inf_intake_t *in = userp;

    if (!inf_runner_is_quick(runner)) {
        inf_intake_role_check(&in->role);
    }
}

/* A thread that was to be back soon will not be. */
static void
idle_sleeps(void *userp)
{
    inf_intake_t *in = userp;
    inf_intake_role_check(&in->role);
}

static void
host_changed(void *userp)
{
    inf_intake_wake(userp);
}

static inf_err_t *
watch(inf_intake_t *in, int fd, uint32_t events, intake_source_t *source)
{
    struct epoll_event ev = { .events = events, .data = { .ptr = source } };

    return epoll_ctl(in->epoll_fd, EPOLL_CTL_ADD, fd, &ev) == 0 ? NULL
        : inf_err_os(errno, "epoll_ctl");
}

static bool
drain_session(inf_intake_t *in, intake_session_t *is)
{
    inf_channel_t *channel = is->session->channel;
    uint64_t now = 0;
    uint64_t bytes = 0;             /* of records, which are copied          */
    inf_submission_t s;

    for (uint32_t n = 0; n < INTAKE_BATCH && bytes < INTAKE_BATCH_BYTES; n++) {
        switch (inf_channel_pop(channel, &s)) {
        case INF_CHANNEL_EMPTY:
            return n > 0;
        case INF_CHANNEL_SKIPPED:
            break;
        case INF_CHANNEL_BROKEN:
            end_session(in, is, inf_channel_is_overrun(channel)
                ? "it does not read its completions" : "its ring is broken");
            return true;
        case INF_CHANNEL_ENTRY:
            if (now == 0) {
                now = inf_clock_ns();
            }
            bytes += s.op != INF_SUBMIT_CANCEL ? s.length : 0;
            if (s.op == INF_SUBMIT_INFER) {
                if (!in->leaving) {     /* else its slot stays free          */
                    take_infer(in, is->session, &s, now);
                }
            } else {
                dispatch(in, is->session, &s);
            }
            break;
        }
    }

    return true;
}

static void
take_infer(inf_intake_t *in, inf_session_t *session, const inf_submission_t *s,
    uint64_t now_ns)
{
    note_fed(in, inf_infer_submit(session, &in->models, s, in->server,
        now_ns));
}

/* All workers know of a suspect before it begins. */
static void
take_suspects(inf_intake_t *in)
{
    inf_suspect_queue_t *q = &in->suspects;
    uint64_t now = inf_clock_ns();
    inf_in_flight_t *in_flight;

    while ((in_flight = inf_suspect_queue_next(q, now)) != NULL) {
        tell_suspect(in, true);
        note_fed(in, inf_infer_go_on(in_flight, now));
    }

    tell_suspect(in, q->suspects.under_way > 0);
}

static void
tell_suspect(inf_intake_t *in, bool under_way)
{
    if (in->suspect_told == under_way) {
        return;
    }

    in->suspect_told = under_way;
    for (inf_link_t *l = in->sessions.next; l != &in->sessions; l = l->next) {
        intake_session_t *is = inf_link_entry(l, intake_session_t,
            peer.link);
        inf_channel_set_suspect(is->session->channel, under_way);
    }
}

static void
wake_for_suspects(void *userp)
{
    inf_intake_wake(userp);
}

static void
note_fed(inf_intake_t *in, inf_infer_fed_t fed)
{
    if (fed.unread != NULL) {
        inf_control_read(in->control, fed.unread);
        return;
    }
    if (fed.runner == NULL) {
        return;
    }

    in->fed_several |= in->fed.runner != NULL && in->fed.runner != fed.runner;
    in->fed = fed;
}

static void
dispatch(inf_intake_t *in, inf_session_t *session, const inf_submission_t *s)
{
    if (s->op == INF_SUBMIT_CALL) {
        inf_control_submit(in->control, session, s);
    } else if (s->op == INF_SUBMIT_CANCEL) {
        inf_infer_cancel(session, s->slot, s->generation);
    }
}

/* Tells every worker to ring; false: something came in meanwhile. */
static bool
all_asleep(inf_intake_t *in)
{
    bool asleep = true;

    for (inf_link_t *l = in->sessions.next; l != &in->sessions; l = l->next) {
        intake_session_t *is = inf_link_entry(l, intake_session_t,
            peer.link);
        asleep &= inf_channel_sleep(is->session->channel);
    }

    return asleep;
}

static bool
spin(inf_intake_t *in)
{
    uint64_t until = inf_clock_ns() + in->options.spin_ns;
    do {
        if (poll_rings(in)) {
            return true;
        }
    } while (inf_clock_ns() < until);

    return false;
}

/* New workers register with the next core: their messages stay where they
   are. */
static void
leave_begin(inf_intake_t *in, uint64_t now_ns)
{
    in->leaving = true;
    in->leave_until_ns = now_ns + in->options.leaves(in->options.userp);
    epoll_ctl(in->epoll_fd, EPOLL_CTL_DEL, inf_admission_fd(in->admission),
        NULL);

    for (inf_link_t *l = in->sessions.next; l != &in->sessions; l = l->next) {
        intake_session_t *is = inf_link_entry(l, intake_session_t,
            peer.link);
        atomic_store_explicit(&is->session->leaving, true,
            memory_order_relaxed);
    }
    inf_log(INF_LOG_INFO, "the core leaves: what it has begun ends, what waits"
        " goes to the next core");
}

static void
leave_look(inf_intake_t *in)
{
    uint64_t now = inf_clock_ns();
    uint32_t under_way = 0;

    if (!in->leaving) {
        leave_begin(in, now);
    }
    if (now < in->leave_look_ns) {
        return;
    }

    in->leave_look_ns = now + INTAKE_LEAVE_NS;
    for (inf_link_t *l = in->sessions.next; l != &in->sessions; l = l->next) {
        inf_session_t *session = inf_link_entry(l, intake_session_t,
            peer.link)->session;
        under_way += inf_infer_withdraw(session)
            + atomic_load_explicit(&session->calls, memory_order_relaxed)
            + atomic_load_explicit(&session->ready_calls,
                memory_order_relaxed);
    }

    if (under_way > 0 && now >= in->leave_until_ns) {
        inf_log(INF_LOG_WARN, "the core leaves before %u requests have ended:"
            " its drain time is over", under_way);
    }
    if (under_way == 0 || now >= in->leave_until_ns) {
        inf_intake_stop(in);
    }
}

/* Idle memory is given back in the meantime. */
static uint64_t
longest_sleep_ns(const inf_intake_t *in)
{
    return in->leaving ? INTAKE_LEAVE_NS : INTAKE_TRIM_NS;
}

static void
wait_events(inf_intake_t *in, int timeout_ms)
{
    struct epoll_event events[INTAKE_EVENTS];

    on_events(in, events, epoll_wait(in->epoll_fd, events, INTAKE_EVENTS,
        timeout_ms));
}

static void
wait_events_until(inf_intake_t *in, uint64_t until_ns)
{
    struct epoll_event events[INTAKE_EVENTS];
    uint64_t now = inf_clock_ns();
    uint64_t left = until_ns > now ? until_ns - now : 0;

    if (left > longest_sleep_ns(in)) {
        left = longest_sleep_ns(in);
    }

    on_events(in, events, inf_events_wait(in->epoll_fd, events,
        INTAKE_EVENTS, left));
}

static void
on_events(inf_intake_t *in, const struct epoll_event *events, int count)
{
    for (int i = 0; i < count; i++) {
        on_event(in, events[i].data.ptr, events[i].events);
    }

    free_ended(in);
}

static void
on_event(inf_intake_t *in, intake_source_t *source, uint32_t events)
{
    switch (*source) {
    case INTAKE_WAKE:
        inf_eventfd_clear(in->wake_fd);
        if (in->server != NULL) {
            inf_registry_refresh(&in->models);
        }
        break;
    case INTAKE_ADMISSION:
        inf_admission_poll(in->admission);
        break;
    case INTAKE_CONFIGURE:
        on_configure(in);
        break;
    case INTAKE_EVENTFD:
        break;                  /* edge-triggered; the next poll drains      */
    case INTAKE_CONTROL:
        if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
            intake_session_t *is = inf_link_entry(source, intake_session_t,
                control);
            if (!is->session->closed) {
                drain_session(in, is);
            }
            if (!is->session->closed) {
                end_session(in, is, "its worker is gone");
            }
        }
        break;
    }
}

/* Once neither master nor supervisor is left, the core ends with the last of
   the workers, which may outlive them. */
static void
on_configure(inf_intake_t *in)
{
    int fd;
    uint64_t generation;

    switch (inf_configuration_receive(in->options.configure_fd, &fd,
        &generation))
    {
    case INF_CONFIGURATION_NONE:
        break;
    case INF_CONFIGURATION_BEAT:
        in->options.beat(in->options.userp);
        break;
    case INF_CONFIGURATION_CAME:
        in->options.configure(in->options.userp, fd, generation);
        break;
    case INF_CONFIGURATION_CLOSED:
        epoll_ctl(in->epoll_fd, EPOLL_CTL_DEL, in->options.configure_fd,
            NULL);
        in->orphaned = true;
        stop_if_alone(in);
        break;
    }
}

static void
stop_if_alone(inf_intake_t *in)
{
    if (in->orphaned && inf_list_empty(&in->sessions)) {
        inf_log(INF_LOG_INFO, "no nginx process is left");
        inf_intake_stop(in);
    }
}

/* A worker is admitted. */
static inf_err_t *
add_session(void *userp, inf_channel_t *channel, uint32_t pid)
{
    inf_intake_t *in = userp;
    inf_session_t *session;

    inf_err_t *err = inf_session_new(channel, in->options.response_wait_ns,
        &session);
    if (err != NULL) {
        inf_channel_dead(channel);
        inf_channel_unref(channel);
        return err;
    }

    session->tracer = in->server->tracer;
    session->regions = in->server->regions;
    session->suspects = &in->suspects;
    inf_channel_set_suspect(channel, in->suspect_told);
    intake_session_t *is = calloc(1, sizeof(*is));
    if (is == NULL) {
        err = inf_err_nomem();
        goto fail;
    }

    inf_link_init(&is->peer.link);
    is->peer.pid = pid;
    is->session = session;
    is->eventfd = INTAKE_EVENTFD;
    is->control = INTAKE_CONTROL;
    err = watch(in, inf_channel_event_fd(channel), EPOLLIN | EPOLLET,
        &is->eventfd);
    if (err == NULL) {
        err = watch(in, inf_channel_control_fd(channel), EPOLLIN,
            &is->control);
    }
    if (err != NULL) {
        goto fail;
    }

    inf_list_push_back(&in->sessions, &is->peer.link);
    if (inf_admission_may_log(in->admission)) {
        inf_log(INF_LOG_INFO, "worker %u is connected", worker_pid(is));
    }
    return NULL;

fail:

    inf_channel_dead(channel);
    inf_session_unref(session);
    free(is);
    return err;
}

static uint32_t
worker_pid(const intake_session_t *is)
{
    return is->peer.pid != 0 ? is->peer.pid
        : inf_channel_pid(is->session->channel);
}

/* Freed after the round: events of this round may still name it. */
static void
end_session(inf_intake_t *in, intake_session_t *is, const char *why)
{
    inf_session_t *session = is->session;
    inf_channel_t *channel = session->channel;

    if (inf_admission_may_log(in->admission)) {
        inf_log(INF_LOG_INFO, "worker %u is disconnected: %s", worker_pid(is),
            why);
    }

    session->closed = true;
    epoll_ctl(in->epoll_fd, EPOLL_CTL_DEL, inf_channel_event_fd(channel), NULL);
    epoll_ctl(in->epoll_fd, EPOLL_CTL_DEL, inf_channel_control_fd(channel),
        NULL);

    inf_channel_dead(channel);
    inf_infer_cancel_all(session);
    inf_link_remove(&is->peer.link);
    inf_list_push_back(&in->ended, &is->peer.link);
    stop_if_alone(in);
}

static void
free_ended(inf_intake_t *in)
{
    inf_link_t *link;
    while ((link = inf_list_pop_front(&in->ended)) != NULL) {
        intake_session_t *is = inf_link_entry(link, intake_session_t,
            peer.link);
        inf_session_unref(is->session);
        free(is);
    }
}

static void
trim(inf_intake_t *in)
{
    uint64_t now = inf_clock_ns();
    if (now - in->trimmed_ns < INTAKE_TRIM_NS) {
        return;
    }

    in->trimmed_ns = now;
    for (inf_link_t *l = in->sessions.next; l != &in->sessions; l = l->next) {
        intake_session_t *is = inf_link_entry(l, intake_session_t,
            peer.link);
        inf_channel_trim(is->session->channel, now);
    }

    inf_admission_trim(in->admission, now);
    attend(in, now);
}

/*
 * Nginx ends: nobody may come any more for whom models wait.  Clients that are
 * there still, on streams, have half of the drain time for what they do next.
 */
static void
attend(inf_intake_t *in, uint64_t now_ns)
{
    uint64_t patience_ns = atomic_load(&in->server->exit_timeout_ns) / 2;
    bool leaves = !inf_list_empty(&in->sessions);

    for (inf_link_t *l = in->sessions.next; l != &in->sessions; l = l->next) {
        const intake_session_t *is = inf_link_entry(l, intake_session_t,
            peer.link);
        leaves &= inf_channel_is_leaving(is->session->channel);
    }

    if (!leaves && in->leaving_ns != 0) {
        in->leaving_ns = 0;
        inf_server_attend(in->server, true);
    } else if (leaves && in->leaving_ns == 0) {
        in->leaving_ns = now_ns;
    } else if (leaves && now_ns - in->leaving_ns >= patience_ns) {
        inf_server_attend(in->server, false);
    }
}
