#include "core/repository/poll_schedule.h"

#include <assert.h>

static inf_poll_decision_t next_idle(inf_poll_schedule_t *s, uint64_t now_ns);
static void work(inf_poll_schedule_t *s, uint64_t now_ns);
static void end(inf_poll_schedule_t *s, uint64_t now_ns);

void
inf_poll_schedule_init(inf_poll_schedule_t *s, uint64_t settle_ns,
    uint64_t now_ns)
{
    *s = (inf_poll_schedule_t) {
        .settle_ns = settle_ns, .full_ns = now_ns, .end_ns = now_ns
    };
}

void
inf_poll_schedule_set_interval(inf_poll_schedule_t *s, uint64_t interval_ns)
{
    s->interval_ns = interval_ns;
}

void
inf_poll_schedule_hasten(inf_poll_schedule_t *s, bool remote)
{
    s->changed = true;
    s->remote |= remote;
}

void
inf_poll_schedule_begin(inf_poll_schedule_t *s, uint64_t now_ns)
{
    assert(s->phase == INF_POLL_IDLE);
    s->early = false;
    s->work_ns = 0;
    s->comparisons = 0;
    work(s, now_ns);
}

void
inf_poll_schedule_compared(inf_poll_schedule_t *s, size_t unsettled,
    uint64_t now_ns)
{
    assert(s->phase == INF_POLL_BUSY);
    s->work_ns += now_ns - s->turn_ns;
    if (unsettled == 0 || s->comparisons == INF_POLL_COMPARISONS) {
        end(s, now_ns);
        return;
    }

    s->comparisons++;
    s->phase = INF_POLL_SETTLING;
    s->turn_ns = now_ns + s->settle_ns;
}

void
inf_poll_schedule_give_up(inf_poll_schedule_t *s, uint64_t now_ns)
{
    if (s->phase == INF_POLL_SETTLING) {
        end(s, now_ns);
    }
}

inf_poll_decision_t
inf_poll_schedule_next(inf_poll_schedule_t *s, uint64_t now_ns)
{
    assert(s->phase != INF_POLL_BUSY);
    if (s->phase == INF_POLL_IDLE) {
        return next_idle(s, now_ns);
    }
    if (now_ns < s->turn_ns) {
        return (inf_poll_decision_t) {
            .action = INF_POLL_WAIT, .until_ns = s->turn_ns
        };
    }

    work(s, now_ns);
    return (inf_poll_decision_t) { .action = INF_POLL_COMPARE };
}

/* The decision while idle; a change within the gap is found at its end. */
static inf_poll_decision_t
next_idle(inf_poll_schedule_t *s, uint64_t now_ns)
{
    inf_poll_decision_t d = {
        .action = INF_POLL_WAIT, .until_ns = INF_POLL_NEVER
    };
    if (s->interval_ns == 0) {
        return d;
    }

    uint64_t due_ns = s->full_ns + s->interval_ns;
    uint64_t gap_ns = s->work_ns * INF_POLL_GAP_FACTOR;
    uint64_t early_ns = s->end_ns + (gap_ns > INF_POLL_GAP_NS ? gap_ns
        : INF_POLL_GAP_NS);
    if (now_ns < early_ns && now_ns < due_ns) {
        d.until_ns = early_ns < due_ns ? early_ns : due_ns;
        return d;
    }
    if (now_ns < due_ns && !s->changed) {
        d.until_ns = due_ns;
        d.events = true;
        return d;
    }

    inf_poll_schedule_begin(s, now_ns);
    s->early = now_ns < due_ns;
    d = (inf_poll_decision_t) {
        .action = INF_POLL_BEGIN,
        .early = s->early,
        .remote = !s->early || s->remote
    };
    s->changed = false;
    s->remote = false;
    return d;
}

static void
work(inf_poll_schedule_t *s, uint64_t now_ns)
{
    s->phase = INF_POLL_BUSY;
    s->turn_ns = now_ns;
}

static void
end(inf_poll_schedule_t *s, uint64_t now_ns)
{
    s->phase = INF_POLL_IDLE;
    s->end_ns = now_ns;
    s->full_ns = s->early ? s->full_ns : now_ns;
}
