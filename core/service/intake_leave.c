/* intake_leave.c - the leaving core: requests that have begun end, others are
   left to the next core. */

#include "core/service/intake_parts.h"

#include <sys/epoll.h>

#include "core/base/clock.h"
#include "core/base/log.h"

#define INTAKE_LEAVE_NS UINT64_C(10000000)      /* interval of polls for
                                                   executions                */
#define INTAKE_SLEEP_NS UINT64_C(1000000000)    /* then memory is released   */

static void leave_begin(inf_intake_t *in, uint64_t now_ns);

void
inf_intake_poll_leaving(inf_intake_t *in)
{
    uint64_t now = inf_clock_ns();
    uint32_t under_way = 0;

    if (!inf_intake_is_leaving(in)) {
        leave_begin(in, now);
    }
    if (now < in->leave_poll_ns) {
        return;
    }

    in->leave_poll_ns = now + INTAKE_LEAVE_NS;
    for (inf_link_t *l = in->sessions.next; l != &in->sessions; l = l->next) {
        inf_session_t *session = inf_link_entry(l, inf_intake_session_t,
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

/* Begins to leave.  New workers register with the next core: their messages
   stay in the socket. */
static void
leave_begin(inf_intake_t *in, uint64_t now_ns)
{
    atomic_store_explicit(&in->leave, INF_INTAKE_LEAVES, memory_order_relaxed);
    in->leave_until_ns = now_ns + in->options.leaves(in->options.userp);
    epoll_ctl(in->epoll_fd, EPOLL_CTL_DEL, inf_admission_fd(in->admission),
        NULL);

    for (inf_link_t *l = in->sessions.next; l != &in->sessions; l = l->next) {
        inf_intake_session_t *is = inf_link_entry(l, inf_intake_session_t,
            peer.link);
        atomic_store_explicit(&is->session->core_leaves, true,
            memory_order_relaxed);
    }
    inf_log(INF_LOG_NOTICE, "the core leaves: what it has begun ends, what"
        " waits goes to the next core");
}

uint64_t
inf_intake_longest_sleep(const inf_intake_t *in)
{
    return inf_intake_is_leaving(in) ? INTAKE_LEAVE_NS : INTAKE_SLEEP_NS;
}
