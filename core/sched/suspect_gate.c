#include "core/sched/suspect_gate.h"

#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/lock.h"

#define GATE_RANK    36
#define GATE_LOOK_NS UINT64_C(1000000000)   /* a waiting thread looks        */

struct inf_suspect_gate_s {
    inf_lock_t     lock;            /* rank 36; guards suspects              */
    inf_suspects_t suspects;
};

static void settle_locked(inf_suspect_gate_t *gate, uint64_t now_ns,
    const inf_suspect_turn_t *own) INF_NEEDS(gate->lock);

inf_err_t *
inf_suspect_gate_new(inf_suspect_gate_t **out)
{
    inf_suspect_gate_t *gate = calloc(1, sizeof(*gate));
    if (gate == NULL) {
        return inf_err_nomem();
    }

    inf_lock_init(&gate->lock, GATE_RANK);
    inf_suspects_init(&gate->suspects);
    *out = gate;
    return NULL;
}

void
inf_suspect_gate_free(inf_suspect_gate_t *gate)
{
    if (gate != NULL) {
        inf_lock_fini(&gate->lock);
        free(gate);
    }
}

bool
inf_suspect_gate_enter(inf_suspect_gate_t *gate, inf_suspect_turn_t *turn,
    inf_waiter_t *waiter)
{
    uint64_t now = inf_clock_ns();

    turn->waiter = waiter;
    inf_lock(&gate->lock);
    inf_suspects_push(&gate->suspects, &turn->execution, now);
    settle_locked(gate, now, turn);
    inf_unlock(&gate->lock);
    return atomic_load(&turn->begun);
}

/* Time alone may let it begin, too, and which turn is first then is known
   there. */
void
inf_suspect_gate_wait(inf_suspect_gate_t *gate, inf_suspect_turn_t *turn)
{
    while (!atomic_load(&turn->begun)) {
        inf_waiter_wait_for(turn->waiter, GATE_LOOK_NS);
        if (!atomic_load(&turn->begun)) {
            inf_lock(&gate->lock);
            settle_locked(gate, inf_clock_ns(), turn);
            inf_unlock(&gate->lock);
        }
    }
}

void
inf_suspect_gate_leave(inf_suspect_gate_t *gate, inf_suspect_turn_t *turn)
{
    uint64_t now = inf_clock_ns();

    inf_lock(&gate->lock);
    inf_suspects_done(&gate->suspects, &turn->execution, now);
    settle_locked(gate, now, NULL);
    inf_unlock(&gate->lock);
}

/* Wakes under the lock: a turn that has begun is its thread's as soon as the
   lock is free. */
static void
settle_locked(inf_suspect_gate_t *gate, uint64_t now_ns,
    const inf_suspect_turn_t *own)
{
    inf_execution_t *e;

    while ((e = inf_suspects_next(&gate->suspects, now_ns)) != NULL) {
        inf_suspect_turn_t *turn = inf_link_entry(e, inf_suspect_turn_t,
            execution);
        inf_waiter_t *waiter = turn->waiter;
        bool wakes = turn != own;
        atomic_store(&turn->begun, true);
        if (wakes) {
            inf_waiter_wake(waiter);
        }
    }
}
