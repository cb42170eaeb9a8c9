/* intake_sessions.c - adds and ends workers' sessions, and their upkeep. */

#include "core/service/intake_parts.h"

#include <stdlib.h>
#include <sys/epoll.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/os/events.h"
#include "core/base/points.h"
#include "core/service/last_words.h"

#define INTAKE_UPKEEP_NS UINT64_C(1000000000)

static void poll_for_releases(void *userp);
static uint32_t worker_pid(const inf_intake_session_t *is);
static void attend(inf_intake_t *in, uint64_t now_ns);

inf_err_t *
inf_intake_add_session(void *userp, inf_channel_t *channel, uint32_t pid)
{
    inf_intake_t *in = userp;
    inf_session_t *session;

    INF_POINT(CHANNEL_ADMITTED);
    inf_err_t *err = inf_session_new(channel, &(inf_response_patience_t) {
        .patience_ns = in->options.response_wait_ns,
        .poll = poll_for_releases,
        .userp = in
    }, &session);
    if (err != NULL) {
        inf_channel_dead(channel);
        inf_channel_unref(channel);
        return err;
    }

    session->tracer = in->server->tracer;
    session->regions = in->server->regions;
    session->max_json_bytes = &in->server->max_json_bytes;
    session->suspects = &in->suspects;
    inf_channel_set_suspect(channel, in->suspect_told);
    inf_intake_session_t *is = calloc(1, sizeof(*is));
    if (is == NULL) {
        err = inf_err_nomem();
        goto fail;
    }

    inf_link_init(&is->peer.link);
    is->peer.pid = pid;
    is->session = session;
    is->eventfd = INF_INTAKE_EVENTFD;
    is->control = INF_INTAKE_CONTROL;
    err = inf_events_add(in->epoll_fd, inf_channel_event_fd(channel),
        EPOLLIN | EPOLLET, &is->eventfd);
    if (err == NULL) {
        err = inf_events_add(in->epoll_fd, inf_channel_control_fd(channel),
            EPOLLIN, &is->control);
    }
    if (err != NULL) {
        goto fail;
    }

    inf_list_push_back(&in->sessions, &is->peer.link);
    inf_last_words_add(inf_channel_crash(channel));
    bool log = inf_admission_may_log(in->admission);
    if (log) {
        inf_log(INF_LOG_INFO, "worker %u is connected", worker_pid(is));
    }
    if (in->pinner != NULL) {
        inf_arena_pinner_push(in->pinner, channel, log ? worker_pid(is) : 0);
    }
    return NULL;

fail:

    inf_channel_dead(channel);
    inf_session_unref(session);
    free(is);
    return err;
}

/* Called while a backend waits for releases. */
static void
poll_for_releases(void *userp)
{
    inf_intake_wake(userp);
}

static uint32_t
worker_pid(const inf_intake_session_t *is)
{
    return is->peer.pid != 0 ? is->peer.pid
        : inf_channel_pid(is->session->channel);
}

void
inf_intake_end_session(inf_intake_t *in, inf_intake_session_t *is,
    const char *why)
{
    inf_session_t *session = is->session;
    inf_channel_t *channel = session->channel;

    if (inf_admission_may_log(in->admission)) {
        inf_log(INF_LOG_INFO, "worker %u is disconnected: %s", worker_pid(is),
            why);
    }

    epoll_ctl(in->epoll_fd, EPOLL_CTL_DEL, inf_channel_event_fd(channel), NULL);
    epoll_ctl(in->epoll_fd, EPOLL_CTL_DEL, inf_channel_control_fd(channel),
        NULL);

    inf_last_words_remove(inf_channel_crash(channel));
    inf_channel_dead(channel);
    if (in->pinner != NULL) {
        inf_arena_pinner_cancel(in->pinner, channel);
    }
    inf_infer_cancel_all(session);
    inf_link_remove(&is->peer.link);
    inf_session_unref(session);
    free(is);
    inf_intake_stop_if_alone(in);
}

void
inf_intake_tell_suspect(inf_intake_t *in, bool under_way)
{
    if (in->suspect_told == under_way) {
        return;
    }

    in->suspect_told = under_way;
    for (inf_link_t *l = in->sessions.next; l != &in->sessions; l = l->next) {
        inf_intake_session_t *is = inf_link_entry(l, inf_intake_session_t,
            peer.link);
        inf_channel_set_suspect(is->session->channel, under_way);
    }
}

void
inf_intake_count_responses(const inf_intake_t *in)
{
    uint64_t used = 0;
    uint64_t bound = 0;

    for (const inf_link_t *l = in->sessions.next; l != &in->sessions;
        l = l->next)
    {
        const inf_intake_session_t *is = inf_link_entry(l, inf_intake_session_t,
            peer.link);
        inf_regions_stats_t arena;
        inf_channel_arena_stats(is->session->channel, &arena);
        used += arena.in_use;
        bound += in->options.response_bound;
    }

    atomic_store_explicit(&in->server->responses_used, used,
        memory_order_relaxed);
    atomic_store_explicit(&in->server->responses_bound, bound,
        memory_order_relaxed);
}

void
inf_intake_stop_if_alone(inf_intake_t *in)
{
    if (in->orphaned && inf_list_empty(&in->sessions)) {
        inf_log(INF_LOG_INFO, "no nginx process is left");
        inf_intake_stop(in);
    }
}

void
inf_intake_upkeep(inf_intake_t *in)
{
    uint64_t now = inf_clock_ns();
    if (now - in->upkeep_ns < INTAKE_UPKEEP_NS) {
        return;
    }

    in->upkeep_ns = now;
    for (inf_link_t *l = in->sessions.next; l != &in->sessions; l = l->next) {
        inf_intake_session_t *is = inf_link_entry(l, inf_intake_session_t,
            peer.link);
        inf_channel_trim(is->session->channel, now);
    }

    inf_admission_trim(in->admission, now);
    attend(in, now);
}

/*
 * Notes when all workers leave: then no new clients can come whose requests
 * complete a batch or sequence.  Clients on open streams have half of the
 * drain time for further requests.
 */
static void
attend(inf_intake_t *in, uint64_t now_ns)
{
    uint64_t patience_ns = atomic_load(&in->server->exit_timeout_ns) / 2;
    bool leaves = !inf_list_empty(&in->sessions);

    for (inf_link_t *l = in->sessions.next; l != &in->sessions; l = l->next) {
        const inf_intake_session_t *is = inf_link_entry(l, inf_intake_session_t,
            peer.link);
        leaves &= inf_channel_is_leaving(is->session->channel);
    }

    if (!leaves && in->unattended_ns != 0) {
        in->unattended_ns = 0;
        inf_server_attend(in->server, true);
    } else if (leaves && in->unattended_ns == 0) {
        in->unattended_ns = now_ns;
    } else if (leaves && now_ns - in->unattended_ns >= patience_ns) {
        inf_server_attend(in->server, false);
    }
}
