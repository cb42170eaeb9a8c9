#include "core/service/admission.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/os/events.h"
#include "core/tensor/memory.h"
#include "core/wire/sockets.h"

#define ADMISSION_EVENTS  16
#define ADMISSION_LIMIT   1024      /* maximum of channels, and of
                                       connections                           */
#define ADMISSION_FDS     8         /* descriptors of a channel, with a
                                       reserve                               */
#define ADMISSION_PER_PEER 4        /* limit for one process                 */
#define ADMISSION_SILENCE_NS UINT64_C(10000000000) /* limit for a new
                                                      connection to register */
#define ADMISSION_LINES   64        /* log lines about workers in a second   */

/* A source of registrations: the socket pair shared by all workers of nginx, or
   an external connection of one process. */
typedef struct {
    inf_peer_t  peer;               /* in a->connections, except the pair    */
    int         fd;
    uint64_t    silent_ns;          /* since this time; 0: it has registered */
} admission_source_t;

struct inf_admission_s {
    inf_admission_options_t  options;
    int                      epoll_fd;
    uint32_t                 limit;         /* of channels, and of
                                               connections                   */
    admission_source_t       pair;
    admission_source_t       listening;     /* for its events only           */
    inf_link_t               connections;   /* external ones                 */
    uint64_t                 lines_ns;      /* start of this second of the
                                               log                           */
    uint32_t                 lines;         /* in this second, including
                                               dropped ones                  */
};

static const inf_channel_pin_ops_t arena_pin = {
    .pin = inf_memory_pin,
    .pin_read_only = inf_memory_pin_read_only,
    .unpin = inf_memory_unpin
};

static uint32_t channel_limit(void);
static void connection_accept(inf_admission_t *a);
static bool may_connect(const inf_admission_t *a, uid_t uid);
static void connection_free(inf_admission_t *a,
    admission_source_t *connection);
static void on_registration(inf_admission_t *a, admission_source_t *source);
static void pair_closed(inf_admission_t *a);
static inf_err_t *add_worker(inf_admission_t *a, const inf_hello_t *hello,
    size_t len, int *fds, size_t fd_count, uint32_t pid);
static inf_err_t *admit(const inf_admission_t *a, const inf_link_t *peers,
    uint32_t pid, const char *what);
static void rejected(inf_admission_t *a, inf_err_t *err);

inf_err_t *
inf_admission_new(const inf_admission_options_t *options,
    inf_admission_t **out)
{
    inf_admission_t *a = calloc(1, sizeof(*a));
    if (a == NULL) {
        return inf_err_nomem();
    }

    a->options = *options;
    a->limit = channel_limit();
    inf_link_init(&a->connections);
    a->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    inf_err_t *err = a->epoll_fd >= 0 ? NULL
        : inf_err_os(errno, "epoll_create1");

    if (err == NULL && options->registration_fd >= 0) {
        err = inf_socket_name_senders(options->registration_fd);
    }
    if (err == NULL && options->registration_fd >= 0) {
        a->pair.fd = options->registration_fd;
        err = inf_events_add(a->epoll_fd, a->pair.fd, EPOLLIN, &a->pair);
    }
    if (err == NULL && options->listen_fd >= 0) {
        err = inf_events_add(a->epoll_fd, options->listen_fd, EPOLLIN,
            &a->listening);
    }
    if (err != NULL) {
        inf_admission_free(a);
        return err;
    }

    *out = a;
    return NULL;
}

void
inf_admission_free(inf_admission_t *a)
{
    if (a == NULL) {
        return;
    }

    while (!inf_list_empty(&a->connections)) {
        connection_free(a, inf_link_entry(a->connections.next,
            admission_source_t, peer.link));
    }
    if (a->epoll_fd >= 0) {
        close(a->epoll_fd);
    }
    free(a);
}

/* The limit of channels, which leaves descriptors for models and files. */
static uint32_t
channel_limit(void)
{
    struct rlimit rl;

    if (getrlimit(RLIMIT_NOFILE, &rl) != 0
        || rl.rlim_cur / ADMISSION_FDS > ADMISSION_LIMIT)
    {
        return ADMISSION_LIMIT;
    }

    return (uint32_t) (rl.rlim_cur / ADMISSION_FDS);
}

int
inf_admission_fd(const inf_admission_t *a)
{
    return a->epoll_fd;
}

void
inf_admission_poll(inf_admission_t *a)
{
    struct epoll_event events[ADMISSION_EVENTS];
    int count = epoll_wait(a->epoll_fd, events, ADMISSION_EVENTS, 0);

    for (int i = 0; i < count; i++) {
        admission_source_t *source = events[i].data.ptr;
        if (source == &a->listening) {
            connection_accept(a);
        } else {
            on_registration(a, source);
        }
    }
}

bool
inf_admission_has_connections(const inf_admission_t *a)
{
    return !inf_list_empty(&a->connections);
}

void
inf_admission_trim(inf_admission_t *a, uint64_t now_ns)
{
    for (inf_link_t *l = a->connections.next; l != &a->connections; ) {
        admission_source_t *c = inf_link_entry(l, admission_source_t,
            peer.link);
        l = l->next;
        if (c->silent_ns != 0 && now_ns - c->silent_ns > ADMISSION_SILENCE_NS)
        {
            connection_free(a, c);
        }
    }
}

static void
connection_accept(inf_admission_t *a)
{
    int fd = accept4(a->options.listen_fd, NULL, NULL,
        SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        return;
    }

    struct ucred peer;
    socklen_t len = sizeof(peer);
    admission_source_t *connection = NULL;
    inf_err_t *err = NULL;

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0) {
        err = inf_err_os(errno, "getsockopt(SO_PEERCRED)");
        goto fail;
    }
    if (!may_connect(a, peer.uid)) {
        err = inf_err_new(INF_ERR_INVALID_ARG, "uid %d may not connect",
            (int) peer.uid);
        goto fail;
    }
    err = admit(a, &a->connections, (uint32_t) peer.pid, "connections");
    if (err != NULL) {
        goto fail;
    }

    connection = calloc(1, sizeof(*connection));
    if (connection == NULL) {
        err = inf_err_nomem();
        goto fail;
    }

    connection->fd = fd;
    connection->peer.pid = (uint32_t) peer.pid;
    connection->silent_ns = inf_clock_ns();
    err = inf_events_add(a->epoll_fd, fd, EPOLLIN, connection);
    if (err != NULL) {
        goto fail;
    }

    inf_list_push_back(&a->connections, &connection->peer.link);
    return;

fail:

    rejected(a, err);
    free(connection);
    close(fd);
}

static bool
may_connect(const inf_admission_t *a, uid_t uid)
{
    for (size_t i = 0; i < a->options.user_count; i++) {
        if (a->options.users[i] == uid) {
            return true;
        }
    }

    return uid == geteuid() || uid == 0;
}

static void
connection_free(inf_admission_t *a, admission_source_t *connection)
{
    epoll_ctl(a->epoll_fd, EPOLL_CTL_DEL, connection->fd, NULL);
    inf_link_remove(&connection->peer.link);
    close(connection->fd);
    free(connection);
}

/* Reads one message in a turn, so that many of them do not delay the rings. */
static void
on_registration(inf_admission_t *a, admission_source_t *source)
{
    inf_hello_t hello;
    int fds[INF_SOCKET_MAX_FDS];
    size_t len = 0;
    size_t count = 0;
    uint32_t sender;
    inf_socket_result_t result;

    inf_err_t *err = inf_socket_recv_from(source->fd, &hello, sizeof(hello),
        &len, fds, INF_SOCKET_MAX_FDS, &count, &sender, &result);
    if (err != NULL) {
        rejected(a, err);
        return;
    }

    switch (result) {
    case INF_SOCKET_AGAIN:
        break;
    case INF_SOCKET_CLOSED:
        if (source == &a->pair) {
            pair_closed(a);
        } else {
            connection_free(a, source);
        }
        break;
    case INF_SOCKET_DONE:
        err = add_worker(a, &hello, len, fds, count,
            source == &a->pair ? sender : source->peer.pid);
        if (err == NULL) {
            source->silent_ns = 0;
        } else {
            rejected(a, err);
        }
        break;
    }
}

/* Handles the end of the pair: all workers hold the same end, and each can shut
   it down. */
static void
pair_closed(inf_admission_t *a)
{
    struct pollfd p = { .fd = a->options.configure_fd, .events = POLLIN };

    epoll_ctl(a->epoll_fd, EPOLL_CTL_DEL, a->pair.fd, NULL);
    if (poll(&p, 1, 0) == 0 || !(p.revents & POLLHUP)) {
        inf_log(INF_LOG_ERROR, "the registration socket was shut down by a"
            " worker; no further worker can connect before nginx is started"
            " again");
    }
}

static inf_err_t *
add_worker(inf_admission_t *a, const inf_hello_t *hello, size_t len, int *fds,
    size_t fd_count, uint32_t pid)
{
    const inf_channel_conf_t conf = {
        .response_bound = a->options.response_bound,
        .pinned = inf_memory_pins() ? a->options.pinned_bytes : 0,
        .pin = &arena_pin,
        .generation = a->options.generation
    };
    inf_channel_t *channel;

    inf_err_t *err = admit(a, a->options.channels, pid, "channels");
    if (err != NULL) {
        inf_fds_close(fds, fd_count);       /* the worker sees the end of its
                                               socket                        */
        return err;
    }

    err = inf_channel_accept(hello, len, fds, fd_count, &conf, &channel);
    if (err != NULL) {
        return err;
    }

    return a->options.admitted(a->options.userp, channel, pid);
}

/* Fails if a process has too many sessions, which take descriptors and address
   space. */
static inf_err_t *
admit(const inf_admission_t *a, const inf_link_t *peers, uint32_t pid,
    const char *what)
{
    uint32_t total = 0;
    uint32_t own = 0;               /* none if the process is unknown        */

    for (const inf_link_t *l = peers->next; l != peers; l = l->next) {
        const inf_peer_t *peer = inf_link_entry(l, inf_peer_t, link);
        own += pid != 0 && peer->pid == pid;
        total++;
    }

    if (own >= ADMISSION_PER_PEER) {
        return inf_err_new(INF_ERR_UNAVAILABLE, "process %u has %u %s", pid,
            own, what);
    }
    if (total >= a->limit) {
        return inf_err_new(INF_ERR_UNAVAILABLE, "there are %u %s", total,
            what);
    }

    return NULL;
}

/* Logs a rejection; takes err. */
static void
rejected(inf_admission_t *a, inf_err_t *err)
{
    if (inf_admission_may_log(a)) {
        inf_err_log(inf_err_add(err, "a worker is rejected"));
    } else {
        inf_err_free(err);
    }
}

/* Limits the log lines about workers that register repeatedly. */
bool
inf_admission_may_log(inf_admission_t *a)
{
    uint64_t now = inf_clock_ns();

    if (now - a->lines_ns >= UINT64_C(1000000000)) {
        if (a->lines > ADMISSION_LINES) {
            inf_log(INF_LOG_WARN, "%u lines about workers were left out",
                a->lines - ADMISSION_LINES);
        }
        a->lines_ns = now;
        a->lines = 0;
    }

    return ++a->lines <= ADMISSION_LINES;
}
