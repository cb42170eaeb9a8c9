#include "core/sched/rate_gate.h"

#include <stdlib.h>

#include "core/base/lock.h"

#define GATE_LOCK_RANK 36

struct inf_rate_entry_s {
    inf_rate_instance_t  limited;       /* its userp is the entry            */
    inf_rate_seat_t     *seat;
    inf_instance_t      *instance;
};

struct inf_rate_gate_s {
    inf_lock_t           lock;          /* rank 36; guards the limiter       */
    inf_rate_limiter_t  *limiter;
};

static inf_err_t *entry_add_locked(inf_rate_gate_t *gate,
    inf_rate_entry_t *entry) INF_NEEDS(gate->lock);
static void give_back_locked(inf_rate_gate_t *gate, inf_rate_seat_t *seat)
    INF_NEEDS(gate->lock);
static void withdraw_locked(inf_rate_gate_t *gate, inf_rate_seat_t *seat)
    INF_NEEDS(gate->lock);
static void settle_locked(inf_rate_gate_t *gate, const inf_rate_seat_t *own)
    INF_NEEDS(gate->lock);

inf_err_t *
inf_rate_gate_new(const inf_rate_resource_t *resources, size_t count,
    inf_rate_gate_t **out)
{
    inf_rate_gate_t *gate = calloc(1, sizeof(*gate));
    if (gate == NULL) {
        return inf_err_nomem();
    }

    inf_err_t *err = inf_rate_limiter_new(resources, count, &gate->limiter);
    if (err != NULL) {
        free(gate);
        return err;
    }

    inf_lock_init(&gate->lock, GATE_LOCK_RANK);
    *out = gate;
    return NULL;
}

void
inf_rate_gate_free(inf_rate_gate_t *gate)
{
    if (gate == NULL) {
        return;
    }

    inf_rate_limiter_free(gate->limiter);
    inf_lock_fini(&gate->lock);
    free(gate);
}

inf_err_t *
inf_rate_seat_open(inf_rate_seat_t *seat, inf_rate_gate_t *gate,
    inf_instance_t *first, inf_waiter_t *waiter)
{
    inf_instance_t *instance = first;
    uint32_t count = 0;
    inf_err_t *err = NULL;

    if (gate == NULL) {
        return NULL;
    }

    do {
        count++;
        instance = instance->mate;
    } while (instance != first);

    seat->entries = calloc(count, sizeof(*seat->entries));
    if (seat->entries == NULL) {
        return inf_err_nomem();
    }

    seat->gate = gate;
    seat->waiter = waiter;
    inf_lock(&gate->lock);
    for (uint32_t i = 0; err == NULL && i < count; i++) {
        seat->entries[i].seat = seat;
        seat->entries[i].instance = instance;
        err = entry_add_locked(gate, &seat->entries[i]);
        seat->count += err == NULL;
        instance = instance->mate;
    }
    settle_locked(gate, NULL);
    inf_unlock(&gate->lock);

    if (err != NULL) {
        inf_rate_seat_close(seat);
    }
    return err;
}

void
inf_rate_seat_close(inf_rate_seat_t *seat)
{
    inf_rate_gate_t *gate = seat->gate;
    if (gate == NULL) {
        return;
    }

    inf_rate_seat_rest(seat);
    inf_lock(&gate->lock);
    for (uint32_t i = 0; i < seat->count; i++) {
        inf_rate_limiter_remove(gate->limiter, &seat->entries[i].limited);
    }
    settle_locked(gate, NULL);
    inf_unlock(&gate->lock);

    free(seat->entries);
    seat->gate = NULL;
}

const void *
inf_rate_seat_kin(const inf_rate_seat_t *seat)
{
    return seat->count == 1 ? (const void *) seat->entries[0].limited.cls
        : seat;
}

bool
inf_rate_seat_ask(inf_rate_seat_t *seat)
{
    inf_rate_gate_t *gate = seat->gate;

    if (!seat->asking) {
        bool again = seat->spent;

        inf_lock(&gate->lock);
        give_back_locked(gate, seat);
        for (uint32_t i = 0; i < seat->count; i++) {
            inf_rate_limiter_ask(gate->limiter, &seat->entries[i].limited,
                again);
        }
        seat->asking = true;
        settle_locked(gate, seat);
        inf_unlock(&gate->lock);
    }

    return inf_rate_seat_may_take(seat);
}

void
inf_rate_seat_wait(inf_rate_seat_t *seat, const inf_instance_t *instance)
{
    inf_rate_gate_t *gate = seat->gate;
    if (gate == NULL) {
        return;
    }

    inf_lock(&gate->lock);
    for (uint32_t i = 0; i < seat->count; i++) {
        if (seat->entries[i].instance == instance) {
            inf_rate_limiter_ask(gate->limiter, &seat->entries[i].limited,
                false);
        }
    }
    seat->asking = true;
    settle_locked(gate, seat);
    inf_unlock(&gate->lock);

    while (!inf_rate_seat_may_take(seat)) {
        inf_waiter_wait(seat->waiter, 0);
    }
}

inf_instance_t *
inf_rate_seat_spend(inf_rate_seat_t *seat)
{
    seat->asking = false;
    seat->spent = true;
    return atomic_load(&seat->leave)->instance;
}

void
inf_rate_seat_rest(inf_rate_seat_t *seat)
{
    inf_rate_gate_t *gate = seat->gate;

    if (gate == NULL || (!seat->asking && !seat->spent)) {
        return;
    }

    inf_lock(&gate->lock);
    give_back_locked(gate, seat);
    withdraw_locked(gate, seat);
    seat->asking = false;
    settle_locked(gate, seat);
    inf_unlock(&gate->lock);
}

static inf_err_t *
entry_add_locked(inf_rate_gate_t *gate, inf_rate_entry_t *entry)
{
    const inf_instance_spec_t *spec = entry->instance->spec;
    const Inference__ModelRateLimiter *msg = spec->settings != NULL
        ? spec->settings->rate_limiter : NULL;      /* NULL: needs nothing   */
    size_t count = msg != NULL ? msg->n_resources : 0;

    inf_rate_need_t *needs = calloc(count + 1, sizeof(*needs));
    if (needs == NULL) {
        return inf_err_nomem();
    }

    for (size_t k = 0; k < count; k++) {
        needs[k].name = msg->resources[k]->name;
        needs[k].count = msg->resources[k]->count;
        needs[k].global = msg->resources[k]->global;
    }

    entry->limited.userp = entry;
    inf_err_t *err = inf_rate_limiter_add(gate->limiter, &entry->limited,
        spec->kind == INF_INSTANCE_GPU ? spec->device_id : 0,
        msg != NULL ? msg->priority : 0, needs, count);
    free(needs);
    return err;
}

static void
give_back_locked(inf_rate_gate_t *gate, inf_rate_seat_t *seat)
{
    inf_rate_entry_t *entry = atomic_load_explicit(&seat->leave,
        memory_order_relaxed);

    if (entry != NULL) {
        inf_rate_limiter_release(gate->limiter, &entry->limited, seat->spent);
        atomic_store_explicit(&seat->leave, NULL, memory_order_relaxed);
    }
    seat->spent = false;
}

static void
withdraw_locked(inf_rate_gate_t *gate, inf_rate_seat_t *seat)
{
    for (uint32_t i = 0; i < seat->count; i++) {
        inf_rate_limiter_withdraw(gate->limiter, &seat->entries[i].limited);
    }
}

/* Wakes under the lock: a seat that has its leave may be closed as soon as
   the lock is free. */
static void
settle_locked(inf_rate_gate_t *gate, const inf_rate_seat_t *own)
{
    inf_rate_instance_t *limited;

    while ((limited = inf_rate_limiter_next(gate->limiter)) != NULL) {
        inf_rate_entry_t *entry = limited->userp;
        inf_rate_seat_t *seat = entry->seat;

        withdraw_locked(gate, seat);    /* its mates                         */
        atomic_store(&seat->leave, entry);
        if (seat != own) {
            inf_waiter_wake(seat->waiter);
        }
    }
}
