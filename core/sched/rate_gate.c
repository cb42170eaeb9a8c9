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

static inf_err_t *find_in_group(inf_rate_gate_t *gate,
    const Inference__ModelInstanceGroup *group, size_t number,
    inf_findings_t *f);
static int32_t group_device(const Inference__ModelInstanceGroup *group,
    size_t number);
static inf_err_t *needs_new(const Inference__ModelRateLimiter *msg,
    inf_rate_need_t **out, size_t *count);
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

inf_err_t *
inf_rate_gate_from_config(const NginxInference__CoreConfig *config,
    inf_rate_gate_t **out)
{
    size_t count = config->n_rate_limit_resources;

    *out = NULL;
    if (config->rate_limit == NGINX_INFERENCE__RATE_LIMIT__RATE_LIMIT_OFF) {
        return NULL;
    }

    inf_rate_resource_t *resources = calloc(count + 1, sizeof(*resources));
    if (resources == NULL) {
        return inf_err_nomem();
    }

    for (size_t i = 0; i < count; i++) {
        const NginxInference__RateLimitResource *r =
            config->rate_limit_resources[i];
        resources[i] = (inf_rate_resource_t) {
            .name = r->name,
            .count = r->count,
            .device = r->device >= 0 ? r->device : INF_RATE_EVERY_DEVICE
        };
    }

    inf_err_t *err = inf_rate_gate_new(resources, count, out);
    free(resources);
    return err;
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
inf_rate_gate_find(inf_rate_gate_t *gate, const Inference__ModelConfig *msg,
    inf_findings_t *f)
{
    inf_err_t *err = NULL;

    for (size_t i = 0; err == NULL && i < msg->n_instance_group; i++) {
        if (!msg->instance_group[i]->passive) {
            err = find_in_group(gate, msg->instance_group[i], i, f);
        }
    }

    return err;
}

inf_err_t *
inf_rate_gate_add(inf_rate_gate_t *gate, inf_rate_instance_t *i,
    const Inference__ModelInstanceGroup *group)
{
    inf_rate_need_t *needs;
    size_t count;

    inf_err_t *err = needs_new(group->rate_limiter, &needs, &count);
    if (err == NULL) {
        inf_lock(&gate->lock);
        err = inf_rate_limiter_add(gate->limiter, i, group_device(group, 0),
            0, needs, count);
        inf_unlock(&gate->lock);
        free(needs);
    }
    return err;
}

void
inf_rate_gate_remove(inf_rate_gate_t *gate, inf_rate_instance_t *i)
{
    inf_lock(&gate->lock);
    inf_rate_limiter_remove(gate->limiter, i);
    inf_unlock(&gate->lock);
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
        instance = instance->sched.peer;
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
        instance = instance->sched.peer;
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

/* On each of its devices; the first lack is the finding. */
static inf_err_t *
find_in_group(inf_rate_gate_t *gate,
    const Inference__ModelInstanceGroup *group, size_t number,
    inf_findings_t *f)
{
    inf_rate_need_t *needs;
    inf_err_t *lack = NULL;
    const char *field = NULL;
    size_t count;
    size_t at = 0;
    size_t device = 0;

    inf_err_t *err = needs_new(group->rate_limiter, &needs, &count);
    if (err != NULL) {
        return err;
    }

    inf_lock(&gate->lock);
    do {
        lack = inf_rate_limiter_check(gate->limiter,
            group_device(group, device), needs, count, &at, &field);
    } while (lack == NULL && ++device < group->n_gpus);
    inf_unlock(&gate->lock);

    if (lack != NULL) {
        char key[INF_KEY_MAX];
        inf_findings_add(f, inf_err_code(lack), inf_key(key,
            "instance_group[%zu].rate_limiter.resources[%zu].%s", number, at,
            field), "%s", inf_err_msg(lack));
        inf_err_free(lack);
    }
    free(needs);
    return NULL;
}

/* Of its first GPU, its second, ... */
static int32_t
group_device(const Inference__ModelInstanceGroup *group, size_t number)
{
    if (group->kind != INFERENCE__MODEL_INSTANCE_GROUP__KIND__KIND_GPU
        && group->kind != INFERENCE__MODEL_INSTANCE_GROUP__KIND__KIND_AUTO)
    {
        return 0;
    }

    return number < group->n_gpus ? group->gpus[number] : INF_RATE_ANY_DEVICE;
}

/* msg NULL: nothing is needed. */
static inf_err_t *
needs_new(const Inference__ModelRateLimiter *msg, inf_rate_need_t **out,
    size_t *count)
{
    *count = msg != NULL ? msg->n_resources : 0;
    *out = calloc(*count + 1, sizeof(**out));
    if (*out == NULL) {
        return inf_err_nomem();
    }

    for (size_t k = 0; k < *count; k++) {
        (*out)[k].name = msg->resources[k]->name;
        (*out)[k].count = msg->resources[k]->count;
        (*out)[k].global = msg->resources[k]->global;
    }
    return NULL;
}

static inf_err_t *
entry_add_locked(inf_rate_gate_t *gate, inf_rate_entry_t *entry)
{
    const inf_instance_spec_t *spec = entry->instance->spec;
    const Inference__ModelRateLimiter *msg = spec->settings != NULL
        ? spec->settings->rate_limiter : NULL;
    inf_rate_need_t *needs;
    size_t count;

    inf_err_t *err = needs_new(msg, &needs, &count);
    if (err != NULL) {
        return err;
    }

    entry->limited.userp = entry;
    err = inf_rate_limiter_add(gate->limiter, &entry->limited,
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

        withdraw_locked(gate, seat);    /* its peers                         */
        atomic_store(&seat->leave, entry);
        if (seat != own) {
            inf_waiter_wake(seat->waiter);
        }
    }
}
