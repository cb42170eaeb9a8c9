#include "core/service/intake.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/channel/sockets.h"
#include "core/sched/waiter.h"
#include "core/service/infer.h"
#include "core/tensor/memory.h"

#define INTAKE_EVENTS     64
#define INTAKE_BATCH      256       /* entries of one session in a row,      */
#define INTAKE_BATCH_BYTES (UINT64_C(1) << 20)  /* unless they are large     */
#define INTAKE_TRIM_NS    UINT64_C(1000000000)
#define INTAKE_TICK_NS    UINT64_C(1000000)
#define INTAKE_QUIET_TICKS 16
#define INTAKE_SESSIONS   1024      /* channels, and connections, at most    */
#define INTAKE_SESSION_FDS 8        /* a channel's descriptors, and more     */
#define INTAKE_PER_PEER   4         /* of one process                        */
#define INTAKE_SILENCE_NS UINT64_C(10000000000) /* of a new connection       */
#define INTAKE_LINES      64        /* about workers, in a second's log      */
#define INTAKE_STRANGE    2         /* then the role goes to the other model */

/* Of each response arena: what was freed last is used first, so most outputs
   lie in its begin.  Only where there is a GPU. */
#define RESPONSE_PINNED   (UINT64_C(16) << 20)

/* What an epoll event is about; a session's address is its own tag. */
typedef enum {
    INTAKE_WAKE,
    INTAKE_REGISTRATION,
    INTAKE_CONFIGURE,
    INTAKE_LISTEN,
    INTAKE_BELL,
    INTAKE_CONTROL
} intake_source_t;

typedef struct {
    intake_source_t  source;
    int              fd;            /* REGISTRATION                          */
    inf_link_t       link;          /* in->guests: a connection from outside */
    uint32_t         peer;          /* whose connection; 0: unknown          */
    uint64_t         silent_ns;     /* since when; 0: it has registered      */
} intake_tag_t;

typedef struct {
    inf_link_t     link;
    inf_session_t *session;         /* a reference                           */
    uint32_t       peer;            /* whose, as the kernel says; 0: unknown */
    intake_tag_t   bell;
    intake_tag_t   control;
} intake_session_t;

struct inf_intake_s {
    inf_intake_options_t  options;
    inf_server_t         *server;
    inf_control_t        *control;
    inf_registry_reader_t models;
    int                   epoll_fd;
    int                   wake_fd;
    intake_tag_t          wake_tag;
    intake_tag_t          registration_tag;
    intake_tag_t          configure_tag;
    intake_tag_t          listen_tag;
    inf_link_t            sessions;     /* intake_session_t                  */
    inf_link_t            ended;        /* to be freed after the event round */
    inf_link_t            guests;       /* registrations over listen_fd      */
    uint32_t              limit;        /* of sessions; of guests            */
    bool                  orphaned;     /* no master, no supervisor          */
    uint64_t              trimmed_ns;
    uint64_t              lines_ns;     /* when this second's log began      */
    uint32_t              lines;        /* in it, with those left out        */
    inf_infer_fed_t       fed;          /* where this poll's requests went   */
    bool                  fed_several;

    bool                  attached;
    bool                  closed;

    _Atomic bool          taken;        /* somebody holds the role: all above
                                           belongs to that thread            */
    _Atomic uint64_t      turns;        /* how often it was taken            */
    _Atomic bool          standby_deep; /* the main thread doesn't look      */
    inf_waiter_t          standby;      /* the main thread's                 */
    _Atomic bool          stopping;
};

static inf_err_t *watch(inf_intake_t *in, int fd, uint32_t events,
    intake_tag_t *tag);
static uint32_t session_limit(void);
static bool role_take(inf_intake_t *in);
static void role_give(inf_intake_t *in);
static bool hold(inf_intake_t *in, const inf_runner_t *own,
    inf_waiter_t *waiter, uint64_t until_ns);
static bool poll_rings(inf_intake_t *in);
static bool for_others(const inf_intake_t *in, const inf_runner_t *own);
static void stand_by(inf_intake_t *in);
static bool idle_lead(void *userp, inf_runner_t *runner,
    inf_waiter_t *waiter, uint64_t until_ns);
static void idle_leave(void *userp, inf_runner_t *runner);
static void idle_sleeps(void *userp);
static void host_changed(void *userp);
static bool drain_session(inf_intake_t *in, intake_session_t *is);
static void note_fed(inf_intake_t *in, inf_infer_fed_t fed);
static void dispatch(inf_intake_t *in, inf_session_t *session,
    const inf_submission_t *s);
static bool all_asleep(inf_intake_t *in);
static bool spin(inf_intake_t *in);
static void wait_events(inf_intake_t *in, int timeout_ms);
static void wait_events_until(inf_intake_t *in, uint64_t until_ns);
static void on_events(inf_intake_t *in, const struct epoll_event *events,
    int count);
static void on_event(inf_intake_t *in, intake_tag_t *tag, uint32_t events);
static void on_registration(inf_intake_t *in, intake_tag_t *tag);
static void registration_closed(inf_intake_t *in);
static void on_configure(inf_intake_t *in);
static void stop_if_alone(inf_intake_t *in);
static void on_listen(inf_intake_t *in);
static bool may_connect(const inf_intake_t *in, uid_t uid);
static void guest_free(intake_tag_t *tag);
static uint32_t count_tags(const inf_link_t *tags, uint32_t peer,
    uint32_t *total);
static inf_err_t *admit(const inf_intake_t *in, uint32_t peer);
static bool add_session(inf_intake_t *in, const inf_hello_t *hello,
    size_t len, int *fds, size_t fd_count, uint32_t peer);
static uint32_t worker_pid(const intake_session_t *is);
static void rejected(inf_intake_t *in, inf_err_t *err);
static bool may_log(inf_intake_t *in);
static void end_session(inf_intake_t *in, intake_session_t *is,
    const char *why);
static void free_ended(inf_intake_t *in);
static void trim(inf_intake_t *in);

inf_err_t *
inf_intake_new(const inf_intake_options_t *options, inf_intake_t **out)
{
    inf_intake_t *in = calloc(1, sizeof(*in));
    if (in == NULL) {
        return inf_err_nomem();
    }

    in->options = *options;
    in->limit = session_limit();
    inf_link_init(&in->sessions);
    inf_link_init(&in->ended);
    inf_link_init(&in->guests);
    inf_waiter_init(&in->standby);
    atomic_init(&in->taken, true);      /* nobody's turn before attach       */
    in->wake_fd = -1;
    in->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    inf_err_t *err = in->epoll_fd >= 0 ? NULL
        : inf_err_os(errno, "epoll_create1");

    if (err == NULL) {
        err = inf_bell_new(&in->wake_fd);
    }
    if (err == NULL) {
        in->wake_tag.source = INTAKE_WAKE;
        err = watch(in, in->wake_fd, EPOLLIN, &in->wake_tag);
    }
    if (err == NULL && options->registration_fd >= 0) {
        err = inf_socket_name_senders(options->registration_fd);
    }
    if (err == NULL && options->registration_fd >= 0) {
        in->registration_tag = (intake_tag_t) {
            .source = INTAKE_REGISTRATION, .fd = options->registration_fd
        };
        err = watch(in, options->registration_fd, EPOLLIN,
            &in->registration_tag);
    }
    if (err == NULL && options->configure_fd >= 0) {
        in->configure_tag.source = INTAKE_CONFIGURE;
        err = watch(in, options->configure_fd, EPOLLIN, &in->configure_tag);
    }
    if (err == NULL && options->listen_fd >= 0) {
        in->listen_tag.source = INTAKE_LISTEN;
        err = watch(in, options->listen_fd, EPOLLIN, &in->listen_tag);
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
        role_give(in);
    }
    return err;
}

void
inf_intake_close(inf_intake_t *in)
{
    /* a leader sees stopping and gives the role back, for good */
    inf_intake_stop(in);
    while (in->attached && !role_take(in)) {
        inf_waiter_wait_for(&in->standby, INTAKE_TICK_NS);
    }

    while (!inf_list_empty(&in->sessions)) {
        end_session(in, inf_link_entry(in->sessions.next, intake_session_t,
            link), "the core ends");
    }
    free_ended(in);
    while (!inf_list_empty(&in->guests)) {
        guest_free(inf_link_entry(in->guests.next, intake_tag_t, link));
    }

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
    while (!atomic_load_explicit(&in->stopping, memory_order_relaxed)) {
        if (role_take(in)) {
            hold(in, NULL, NULL, INF_NEVER);
            role_give(in);
        }
        stand_by(in);
    }
}

void
inf_intake_wake(inf_intake_t *in)
{
    inf_bell_ring(in->wake_fd);
}

void
inf_intake_stop(inf_intake_t *in)
{
    atomic_store(&in->stopping, true);
    inf_bell_ring(in->wake_fd);
    inf_waiter_wake(&in->standby);
}

/* Models and their files need descriptors, too. */
static uint32_t
session_limit(void)
{
    struct rlimit rl;

    if (getrlimit(RLIMIT_NOFILE, &rl) != 0
        || rl.rlim_cur / INTAKE_SESSION_FDS > INTAKE_SESSIONS)
    {
        return INTAKE_SESSIONS;
    }

    return (uint32_t) (rl.rlim_cur / INTAKE_SESSION_FDS);
}

static bool
role_take(inf_intake_t *in)
{
    if (atomic_load_explicit(&in->taken, memory_order_relaxed)
        || atomic_exchange_explicit(&in->taken, true, memory_order_acquire))
    {
        return false;
    }

    atomic_fetch_add_explicit(&in->turns, 1, memory_order_relaxed);
    return true;
}

/* Whoever is to hold it next may have looked a moment too early and sleep
   now: the main thread must not sleep as well. */
static void
role_give(inf_intake_t *in)
{
    atomic_store(&in->taken, false);
    if (atomic_load(&in->standby_deep)) {
        inf_waiter_wake(&in->standby);
    }
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

    while (!atomic_load_explicit(&in->stopping, memory_order_relaxed)) {
        bool any = poll_rings(in);

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
            wait_events(in, inf_list_empty(&in->sessions)
                && inf_list_empty(&in->guests) ? -1 : 1000);
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
        intake_session_t *is = inf_link_entry(l, intake_session_t, link);
        l = l->next;
        any |= drain_session(in, is);
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

/*
 * The main thread while others hold the role.  It takes the role when nobody
 * has had it for a tick; after a while without any change it sleeps until a
 * thread leaves the rings alone (idle_leave).
 */
static void
stand_by(inf_intake_t *in)
{
    uint64_t turns = atomic_load(&in->turns);
    uint32_t quiet = 0;

    while (!atomic_load_explicit(&in->stopping, memory_order_relaxed)) {
        inf_waiter_wait_for(&in->standby, INTAKE_TICK_NS);

        uint64_t now = atomic_load(&in->turns);
        bool taken = atomic_load(&in->taken);
        if (!taken && (now == turns || in->stopping)) {
            return;
        }

        quiet = now == turns ? quiet + 1 : 0;
        turns = now;
        if (quiet < INTAKE_QUIET_TICKS) {
            continue;
        }

        atomic_store(&in->standby_deep, true);
        if (atomic_load(&in->taken) && !atomic_load(&in->stopping)) {
            inf_waiter_wait(&in->standby, 0);
        }
        atomic_store(&in->standby_deep, false);
        quiet = 0;
    }
}

static const inf_idle_ops_t intake_idle_ops = {
    .lead = idle_lead,
    .leave = idle_leave,
    .sleeps = idle_sleeps
};

static const inf_channel_pin_ops_t response_pin = {
    .pin = inf_memory_pin,
    .unpin = inf_memory_unpin
};

const inf_server_host_t inf_intake_host = {
    .changed = host_changed,
    .idle = &intake_idle_ops,
    .polls = true
};

static bool
idle_lead(void *userp, inf_runner_t *runner, inf_waiter_t *waiter,
    uint64_t until_ns)
{
    inf_intake_t *in = userp;

    if (atomic_load_explicit(&in->stopping, memory_order_relaxed)
        || !role_take(in))
    {
        return false;
    }

    bool work = hold(in, runner, waiter, until_ns);
    role_give(in);
    return work;
}

/* Nobody watches the rings now: for a moment that is fine. */
static void
idle_leave(void *userp, inf_runner_t *runner)
{
    inf_intake_t *in = userp;

    if (!atomic_load(&in->taken) && !inf_runner_is_quick(runner)) {
        inf_waiter_wake(&in->standby);
    }
}

/* A thread that was to be back soon will not be. */
static void
idle_sleeps(void *userp)
{
    inf_intake_t *in = userp;

    if (!atomic_load(&in->taken)) {
        inf_waiter_wake(&in->standby);
    }
}

static void
host_changed(void *userp)
{
    inf_intake_wake(userp);
}

static inf_err_t *
watch(inf_intake_t *in, int fd, uint32_t events, intake_tag_t *tag)
{
    struct epoll_event ev = { .events = events, .data = { .ptr = tag } };

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
                note_fed(in, inf_infer_submit(is->session, &in->models, &s,
                    now));
            } else {
                dispatch(in, is->session, &s);
            }
            break;
        }
    }

    return true;
}

static void
note_fed(inf_intake_t *in, inf_infer_fed_t fed)
{
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
        intake_session_t *is = inf_link_entry(l, intake_session_t, link);
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

static void
wait_events(inf_intake_t *in, int timeout_ms)
{
    struct epoll_event events[INTAKE_EVENTS];

    on_events(in, events, epoll_wait(in->epoll_fd, events, INTAKE_EVENTS,
        timeout_ms));
}

/* To the ns where the system can, else to the next ms; a second at most, so
   that idle memory is given back in the meantime. */
static void
wait_events_until(inf_intake_t *in, uint64_t until_ns)
{
    struct epoll_event events[INTAKE_EVENTS];
    uint64_t now = inf_clock_ns();
    uint64_t left = until_ns > now ? until_ns - now : 0;
    int n = -1;

    if (left > INTAKE_TRIM_NS) {
        left = INTAKE_TRIM_NS;
    }

#ifdef SYS_epoll_pwait2
    const struct timespec timeout = {
        .tv_sec = (time_t) (left / 1000000000u),
        .tv_nsec = (long) (left % 1000000000u)
    };

    n = (int) syscall(SYS_epoll_pwait2, in->epoll_fd, events, INTAKE_EVENTS,
        &timeout, NULL, 0);
    if (n >= 0 || errno == EINTR) {
        on_events(in, events, n);
        return;
    }
#endif                                  /* old, or not allowed to us         */

    n = epoll_wait(in->epoll_fd, events, INTAKE_EVENTS,
        (int) ((left + 999999) / 1000000));
    on_events(in, events, n);
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
on_event(inf_intake_t *in, intake_tag_t *tag, uint32_t events)
{
    switch (tag->source) {
    case INTAKE_WAKE:
        inf_bell_clear(in->wake_fd);
        if (in->server != NULL) {
            inf_registry_refresh(&in->models);
        }
        break;
    case INTAKE_REGISTRATION:
        on_registration(in, tag);
        break;
    case INTAKE_CONFIGURE:
        on_configure(in);
        break;
    case INTAKE_LISTEN:
        on_listen(in);
        break;
    case INTAKE_BELL:
        break;                  /* edge-triggered; the next poll drains      */
    case INTAKE_CONTROL:
        if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
            intake_session_t *is = inf_link_entry(tag, intake_session_t,
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

/* One message in a turn: a flood of them holds up no ring for long. */
static void
on_registration(inf_intake_t *in, intake_tag_t *tag)
{
    inf_hello_t hello;
    int fds[INF_SOCKET_MAX_FDS];
    size_t len = 0;
    size_t count = 0;
    uint32_t sender;
    inf_socket_result_t result;

    inf_err_t *err = inf_socket_recv_from(tag->fd, &hello, sizeof(hello),
        &len, fds, INF_SOCKET_MAX_FDS, &count, &sender, &result);
    if (err != NULL) {
        rejected(in, err);
        return;
    }

    switch (result) {
    case INF_SOCKET_AGAIN:
        break;
    case INF_SOCKET_CLOSED:
        if (tag == &in->registration_tag) {
            registration_closed(in);
        } else {
            epoll_ctl(in->epoll_fd, EPOLL_CTL_DEL, tag->fd, NULL);
            guest_free(tag);
        }
        break;
    case INF_SOCKET_DONE:
        if (add_session(in, &hello, len, fds, count,
                tag == &in->registration_tag ? sender : tag->peer))
        {
            tag->silent_ns = 0;
        }
        break;
    }
}

/* All workers hold the same end, and each of them can shut it down. */
static void
registration_closed(inf_intake_t *in)
{
    struct pollfd p = { .fd = in->options.configure_fd, .events = POLLIN };

    epoll_ctl(in->epoll_fd, EPOLL_CTL_DEL, in->options.registration_fd, NULL);
    if (poll(&p, 1, 0) == 0 || !(p.revents & POLLHUP)) {
        inf_log(INF_LOG_ERROR, "the registration socket was shut down by a"
            " worker; no further worker can connect before nginx is started"
            " again");
    }
}

/* EOF: neither master nor supervisor is left.  The core ends with the last of
   the workers, which may outlive them. */
static void
on_configure(inf_intake_t *in)
{
    inf_hello_t hello;
    int fds[INF_HELLO_CONFIG_FDS];
    size_t len = 0;
    size_t count = 0;
    inf_socket_result_t result;

    inf_err_t *err = inf_socket_recv(in->options.configure_fd, &hello,
        sizeof(hello), &len, fds, INF_HELLO_CONFIG_FDS, &count, &result);
    if (err == NULL && result == INF_SOCKET_AGAIN) {
        return;
    }
    if (err == NULL && result == INF_SOCKET_CLOSED) {
        epoll_ctl(in->epoll_fd, EPOLL_CTL_DEL, in->options.configure_fd,
            NULL);
        in->orphaned = true;
        stop_if_alone(in);
        return;
    }

    if (err == NULL && (len != sizeof(hello) || count != INF_HELLO_CONFIG_FDS
        || hello.magic != INF_CHANNEL_MAGIC || hello.kind != INF_HELLO_CONFIG))
    {
        err = inf_err_new(INF_ERR_INVALID_ARG,
            "a message of %zu bytes with %zu descriptors is not a"
            " configuration", len, count);
    }
    if (err != NULL) {
        inf_fds_close(fds, count);
        inf_err_log(inf_err_add(err, "new configuration is ignored"));
        return;
    }

    in->options.configure(in->options.userp, fds[0], hello.generation);
}

static void
stop_if_alone(inf_intake_t *in)
{
    if (in->orphaned && inf_list_empty(&in->sessions)) {
        inf_log(INF_LOG_INFO, "no nginx process is left");
        inf_intake_stop(in);
    }
}

static void
on_listen(inf_intake_t *in)
{
    int fd = accept4(in->options.listen_fd, NULL, NULL,
        SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        return;
    }

    struct ucred peer;
    socklen_t len = sizeof(peer);
    uint32_t total;
    intake_tag_t *tag = NULL;
    inf_err_t *err = NULL;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0) {
        err = inf_err_os(errno, "getsockopt(SO_PEERCRED)");
        goto fail;
    }
    if (!may_connect(in, peer.uid)) {
        err = inf_err_new(INF_ERR_INVALID_ARG, "uid %d may not connect",
            (int) peer.uid);
        goto fail;
    }
    if (count_tags(&in->guests, (uint32_t) peer.pid, &total) >= INTAKE_PER_PEER
        || total >= in->limit)
    {
        err = inf_err_new(INF_ERR_UNAVAILABLE, "process %d has too many"
            " connections, or all %u have", (int) peer.pid, total);
        goto fail;
    }

    tag = calloc(1, sizeof(*tag));
    if (tag == NULL) {
        err = inf_err_nomem();
        goto fail;
    }

    tag->source = INTAKE_REGISTRATION;
    tag->fd = fd;
    tag->peer = (uint32_t) peer.pid;
    tag->silent_ns = inf_clock_ns();
    err = watch(in, fd, EPOLLIN, tag);
    if (err != NULL) {
        goto fail;
    }

    inf_list_push_back(&in->guests, &tag->link);
    return;

fail:

    rejected(in, err);
    free(tag);
    close(fd);
}

static bool
may_connect(const inf_intake_t *in, uid_t uid)
{
    for (size_t i = 0; i < in->options.user_count; i++) {
        if (in->options.users[i] == uid) {
            return true;
        }
    }

    return uid == geteuid() || uid == 0;
}

/* How many are of peer, none of them if it is unknown. */
static uint32_t
count_tags(const inf_link_t *tags, uint32_t peer, uint32_t *total)
{
    uint32_t count = 0;

    *total = 0;
    for (inf_link_t *l = tags->next; l != tags; l = l->next) {
        const intake_tag_t *tag = inf_link_entry(l, intake_tag_t, link);
        count += peer != 0 && tag->peer == peer;
        (*total)++;
    }

    return count;
}

static void
guest_free(intake_tag_t *tag)
{
    inf_link_remove(&tag->link);
    close(tag->fd);
    free(tag);
}

/* Channels take address space and descriptors: nobody may have them all. */
static inf_err_t *
admit(const inf_intake_t *in, uint32_t peer)
{
    uint32_t total = 0;
    uint32_t count = 0;

    for (inf_link_t *l = in->sessions.next; l != &in->sessions; l = l->next) {
        const intake_session_t *is = inf_link_entry(l, intake_session_t, link);
        count += peer != 0 && is->peer == peer;
        total++;
    }

    if (count >= INTAKE_PER_PEER) {
        return inf_err_new(INF_ERR_UNAVAILABLE, "process %u has %u channels",
            peer, count);
    }
    if (total >= in->limit) {
        return inf_err_new(INF_ERR_UNAVAILABLE, "there are %u channels",
            total);
    }

    return NULL;
}

static bool
add_session(inf_intake_t *in, const inf_hello_t *hello, size_t len, int *fds,
    size_t fd_count, uint32_t peer)
{
    const inf_channel_conf_t conf = {
        .response_bound = in->options.response_bound,
        .response_pinned = RESPONSE_PINNED,
        .pin = &response_pin,
        .generation = in->options.generation
    };
    inf_channel_t *channel = NULL;
    inf_session_t *session = NULL;
    intake_session_t *is = NULL;

    inf_err_t *err = admit(in, peer);
    if (err != NULL) {
        inf_fds_close(fds, fd_count);       /* its worker sees the end of it */
        goto fail;
    }

    err = inf_channel_accept(hello, len, fds, fd_count, &conf, &channel);
    if (err != NULL) {
        goto fail;
    }

    err = inf_session_new(channel, &session);
    if (err != NULL) {
        inf_channel_dead(channel);
        inf_channel_unref(channel);
        goto fail;
    }

    is = calloc(1, sizeof(*is));
    if (is == NULL) {
        err = inf_err_nomem();
        goto fail;
    }

    inf_link_init(&is->link);
    is->session = session;
    is->peer = peer;
    is->bell.source = INTAKE_BELL;
    is->control.source = INTAKE_CONTROL;
    err = watch(in, inf_channel_bell_fd(channel), EPOLLIN | EPOLLET,
        &is->bell);
    if (err == NULL) {
        err = watch(in, inf_channel_control_fd(channel), EPOLLIN,
            &is->control);
    }
    if (err != NULL) {
        goto fail;
    }

    inf_list_push_back(&in->sessions, &is->link);
    if (may_log(in)) {
        inf_log(INF_LOG_INFO, "worker %u is connected", worker_pid(is));
    }
    return true;

fail:

    if (session != NULL) {
        inf_channel_dead(channel);
        inf_session_unref(session);
    }
    free(is);
    rejected(in, err);
    return false;
}

static uint32_t
worker_pid(const intake_session_t *is)
{
    return is->peer != 0 ? is->peer : inf_channel_pid(is->session->channel);
}

/* Consumes err. */
static void
rejected(inf_intake_t *in, inf_err_t *err)
{
    if (may_log(in)) {
        inf_err_log(inf_err_add(err, "a worker is rejected"));
    } else {
        inf_err_free(err);
    }
}

/* A worker that comes and goes in a loop fills no log. */
static bool
may_log(inf_intake_t *in)
{
    uint64_t now = inf_clock_ns();

    if (now - in->lines_ns >= UINT64_C(1000000000)) {
        if (in->lines > INTAKE_LINES) {
            inf_log(INF_LOG_WARN, "%u lines about workers were left out",
                in->lines - INTAKE_LINES);
        }
        in->lines_ns = now;
        in->lines = 0;
    }

    return ++in->lines <= INTAKE_LINES;
}

/* Freed after the round: events of this round may still name it. */
static void
end_session(inf_intake_t *in, intake_session_t *is, const char *why)
{
    inf_session_t *session = is->session;
    inf_channel_t *channel = session->channel;

    if (may_log(in)) {
        inf_log(INF_LOG_INFO, "worker %u is disconnected: %s", worker_pid(is),
            why);
    }

    session->closed = true;
    epoll_ctl(in->epoll_fd, EPOLL_CTL_DEL, inf_channel_bell_fd(channel), NULL);
    epoll_ctl(in->epoll_fd, EPOLL_CTL_DEL, inf_channel_control_fd(channel),
        NULL);

    inf_channel_dead(channel);
    inf_infer_cancel_all(session);
    inf_link_remove(&is->link);
    inf_list_push_back(&in->ended, &is->link);
    stop_if_alone(in);
}

static void
free_ended(inf_intake_t *in)
{
    inf_link_t *link;
    while ((link = inf_list_pop_front(&in->ended)) != NULL) {
        intake_session_t *is = inf_link_entry(link, intake_session_t, link);
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
        intake_session_t *is = inf_link_entry(l, intake_session_t, link);
        inf_channel_trim(is->session->channel, now);
    }

    for (inf_link_t *l = in->guests.next; l != &in->guests; ) {
        intake_tag_t *tag = inf_link_entry(l, intake_tag_t, link);
        l = l->next;
        if (tag->silent_ns != 0 && now - tag->silent_ns > INTAKE_SILENCE_NS) {
            guest_free(tag);
        }
    }
}
