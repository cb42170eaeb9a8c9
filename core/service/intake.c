#include "core/service/intake_parts.h"

#include "core/abi/plugins.h"
#include "core/base/clock.h"
#include "core/base/points.h"
#include "core/sched/waiter.h"

#define INTAKE_BATCH      256       /* entries of one session in a row,      */
#define INTAKE_BATCH_BYTES (UINT64_C(1) << 20)  /* fewer if they are large   */
#define INTAKE_STRANGE    2         /* then the role goes to the other model */

static bool hold(inf_intake_t *in, const inf_runner_t *own,
    inf_waiter_t *waiter, uint64_t until_ns);
static bool poll_rings(inf_intake_t *in);
static bool for_others(const inf_intake_t *in, const inf_runner_t *own);
static bool idle_lead(void *userp, inf_runner_t *runner,
    inf_waiter_t *waiter, uint64_t until_ns);
static void idle_leave(void *userp, inf_runner_t *runner);
static void idle_sleeps(void *userp);
static void host_changed(void *userp);
static bool drain_session(inf_intake_t *in, inf_intake_session_t *is);
static void take_suspects(inf_intake_t *in);
static void note_fed(inf_intake_t *in, inf_infer_fed_t fed);
static void dispatch(inf_intake_t *in, inf_session_t *session,
    const inf_submission_t *s);
static bool all_asleep(inf_intake_t *in);
static bool spin(inf_intake_t *in);

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

/*
 * The role's work, until waiter is woken or until_ns has come (true), or
 * another thread should have it or the core stops (false).  The main thread
 * has no waiter and no runner.
 */
static bool
hold(inf_intake_t *in, const inf_runner_t *own, inf_waiter_t *waiter,
    uint64_t until_ns)
{
    uint32_t busy = 0;
    uint32_t strange = 0;       /* consecutive polls that fed another runner */

    while (!inf_intake_role_is_stopping(&in->role)) {
        bool any = poll_rings(in);

        if (atomic_load_explicit(&in->leave, memory_order_relaxed)
            != INF_INTAKE_STAYS)
        {
            inf_intake_poll_leaving(in);
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
                inf_intake_wait(in, 0); /* control sockets must not starve   */
            }
            continue;
        }

        if ((in->options.spin_ns > 0 && spin(in)) || !all_asleep(in)) {
            continue;
        }
        if (waiter != NULL && !inf_waiter_poll_begin(waiter, in->wake_fd)) {
            return true;
        }

        inf_intake_upkeep(in);
        if (until_ns == INF_NEVER) {
            inf_intake_wait(in, inf_list_empty(&in->sessions)
                && !inf_intake_is_leaving(in)
                && !inf_admission_has_connections(in->admission) ? -1
                : (int) (inf_intake_longest_sleep(in) / 1000000));
        } else {
            inf_intake_wait_until(in, until_ns);
        }

        if (waiter != NULL && inf_waiter_poll_end(waiter)) {
            return true;
        }
    }

    return false;
}

/* Drains all rings once; true: there was an entry. */
static bool
poll_rings(inf_intake_t *in)
{
    bool any = false;
    in->fed = (inf_infer_fed_t) { 0 };
    in->fed_several = false;

    for (inf_link_t *l = in->sessions.next; l != &in->sessions; ) {
        inf_intake_session_t *is = inf_link_entry(l, inf_intake_session_t,
            peer.link);
        l = l->next;
        any |= drain_session(in, is);
        if (is->over != NULL) {
            inf_intake_end_session(in, is, is->over);
        }
    }
    if (inf_suspect_queue_pending(&in->suspects)) {
        take_suspects(in);
    }

    return any;
}

/* Whether a thread of the one runner that was fed should take the role: it is
   awake and soon idle. */
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

/* Gives up the role; no thread watches the rings for a moment. */
static void
idle_leave(void *userp, inf_runner_t *runner)
{
    inf_intake_t *in = userp;

    if (!inf_runner_is_quick(runner)) {
        inf_intake_role_check(&in->role);
    }
}

/* An instance thread that was expected to take the role sleeps. */
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

static bool
drain_session(inf_intake_t *in, inf_intake_session_t *is)
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
            is->over = inf_channel_is_overrun(channel)
                ? "it does not read its completions" : "its ring is broken";
            return true;
        case INF_CHANNEL_ENTRY:
            if (now == 0) {
                now = inf_clock_ns();
            }
            bytes += s.op != INF_SUBMIT_CANCEL ? s.length : 0;
            if (s.op == INF_SUBMIT_INFER) {
                INF_POINT(ENTRY_TAKEN);
                if (!inf_intake_is_leaving(in)) {   /* otherwise its slot is
                                                       freed                 */
                    note_fed(in, inf_infer_submit(is->session, &in->models,
                        &s, in->server, now));
                }
            } else {
                dispatch(in, is->session, &s);
            }
            break;
        }
    }

    return true;
}

/* Takes suspects; all workers are told before a suspect begins. */
static void
take_suspects(inf_intake_t *in)
{
    inf_suspect_queue_t *q = &in->suspects;
    uint64_t now = inf_clock_ns();
    inf_in_flight_t *in_flight;

    while ((in_flight = inf_suspect_queue_next(q, now)) != NULL) {
        inf_intake_tell_suspect(in, true);
        note_fed(in, inf_infer_go_on(in_flight, now));
    }

    inf_intake_tell_suspect(in, q->suspects.under_way > 0);
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
        if (s->method == INF_METHOD_METRICS) {
            inf_intake_count_responses(in);
        }
        inf_control_submit(in->control, session, s);
    } else if (s->op == INF_SUBMIT_CANCEL) {
        inf_infer_cancel(session, s->slot, s->generation);
    }
}

/* Makes every worker notify the core; false: entries arrived meanwhile. */
static bool
all_asleep(inf_intake_t *in)
{
    bool asleep = true;

    for (inf_link_t *l = in->sessions.next; l != &in->sessions; l = l->next) {
        inf_intake_session_t *is = inf_link_entry(l, inf_intake_session_t,
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
