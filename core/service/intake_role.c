#include "core/service/intake_role.h"

#define ROLE_TICK_NS     UINT64_C(1000000)
#define ROLE_QUIET_TICKS 16

static _Thread_local bool has_role;     /* whether this thread has a role    */

void
inf_intake_role_init(inf_intake_role_t *role)
{
    inf_waiter_init(&role->standby);
    atomic_init(&role->taken, true);
    atomic_init(&role->turns, 0);
    atomic_init(&role->standby_deep, false);
    atomic_init(&role->stopping, false);
    has_role = true;
}

bool
inf_intake_role_take(inf_intake_role_t *role)
{
    if (atomic_load_explicit(&role->taken, memory_order_relaxed)
        || atomic_exchange_explicit(&role->taken, true, memory_order_acquire))
    {
        return false;
    }

    atomic_fetch_add_explicit(&role->turns, 1, memory_order_relaxed);
    has_role = true;
    return true;
}

/* Gives the role up.  The next thread may have checked just before and sleep,
   so the main thread must not sleep then. */
void
inf_intake_role_give(inf_intake_role_t *role)
{
    has_role = false;
    atomic_store(&role->taken, false);
    if (atomic_load(&role->standby_deep)) {
        inf_waiter_wake(&role->standby);
    }
}

bool
inf_intake_role_is_mine(void)
{
    return has_role;
}

/* After a while without change the main thread sleeps until
   inf_intake_role_check finds the rings unattended. */
void
inf_intake_role_stand_by(inf_intake_role_t *role)
{
    uint64_t turns = atomic_load(&role->turns);
    uint32_t quiet = 0;

    while (!inf_intake_role_is_stopping(role)) {
        inf_waiter_wait_for(&role->standby, ROLE_TICK_NS);

        uint64_t now = atomic_load(&role->turns);
        bool taken = atomic_load(&role->taken);
        if (!taken && (now == turns || atomic_load(&role->stopping))) {
            return;
        }

        quiet = now == turns ? quiet + 1 : 0;
        turns = now;
        if (quiet < ROLE_QUIET_TICKS) {
            continue;
        }

        atomic_store(&role->standby_deep, true);
        if (atomic_load(&role->taken) && !atomic_load(&role->stopping)) {
            inf_waiter_wait(&role->standby, 0);
        }
        atomic_store(&role->standby_deep, false);
        quiet = 0;
    }
}

void
inf_intake_role_check(inf_intake_role_t *role)
{
    if (!atomic_load(&role->taken)) {
        inf_waiter_wake(&role->standby);
    }
}

void
inf_intake_role_stop(inf_intake_role_t *role)
{
    atomic_store(&role->stopping, true);
    inf_waiter_wake(&role->standby);
}

void
inf_intake_role_take_last(inf_intake_role_t *role)
{
    while (!inf_intake_role_take(role)) {
        inf_waiter_wait_for(&role->standby, ROLE_TICK_NS);
    }
}
