#include "core/sched/rate_gate.h"

#include <stdlib.h>

#include "core/base/lock.h"
#include "core/sched/policy.h"

#define GATE_LOCK_RANK 36
#define REVIEW_NS      UINT64_C(5000000000)     /* resources are kept for once
                                                   to twice this time after
                                                   the last return, or for 60
                                                   times where none calls    */

struct inf_rate_entry_s {
    inf_rate_instance_t  limited;       /* userp is the entry                */
    inf_rate_permit_t     *permit;
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
static void review(inf_rate_permit_t *permit);
static void give_back_locked(inf_rate_gate_t *gate, inf_rate_permit_t *permit)
    INF_NEEDS(gate->lock);
static void withdraw_locked(inf_rate_gate_t *gate, inf_rate_permit_t *permit)
    INF_NEEDS(gate->lock);
static void settle_locked(inf_rate_gate_t *gate, const inf_rate_permit_t *own)
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

void
inf_rate_gate_expect_calls(inf_rate_gate_t *gate)
{
    if (gate != NULL) {
        inf_lock(&gate->lock);
        inf_rate_limiter_expect_calls(gate->limiter);
        inf_unlock(&gate->lock);
    }
}

void
inf_rate_gate_each(inf_rate_gate_t *gate, inf_rate_resource_fn fn,
    void *userp)
{
    inf_lock(&gate->lock);
    inf_rate_limiter_each(gate->limiter, fn, userp);
    inf_unlock(&gate->lock);
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
inf_rate_permit_open(inf_rate_permit_t *permit, inf_rate_gate_t *gate,
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

    permit->entries = calloc(count, sizeof(*permit->entries));
    if (permit->entries == NULL) {
        return inf_err_nomem();
    }

    permit->gate = gate;
    permit->waiter = waiter;
    inf_lock(&gate->lock);
    for (uint32_t i = 0; err == NULL && i < count; i++) {
        permit->entries[i].permit = permit;
        permit->entries[i].instance = instance;
        err = entry_add_locked(gate, &permit->entries[i]);
        permit->count += err == NULL;
        instance = instance->sched.peer;
    }
    settle_locked(gate, NULL);
    inf_unlock(&gate->lock);

    if (err != NULL) {
        inf_rate_permit_close(permit);
    }
    return err;
}

void
inf_rate_permit_close(inf_rate_permit_t *permit)
{
    inf_rate_gate_t *gate = permit->gate;
    if (gate == NULL) {
        return;
    }

    inf_rate_permit_return(permit);
    inf_lock(&gate->lock);
    for (uint32_t i = 0; i < permit->count; i++) {
        inf_rate_limiter_remove(gate->limiter, &permit->entries[i].limited);
    }
    settle_locked(gate, NULL);
    inf_unlock(&gate->lock);

    free(permit->entries);
    permit->gate = NULL;
}

const void *
inf_rate_permit_class(const inf_rate_permit_t *permit)
{
    return permit->count == 1 ? (const void *) permit->entries[0].limited.cls
        : permit;
}

bool
inf_rate_permit_ask(inf_rate_permit_t *permit, uint64_t now_ns)
{
    inf_rate_gate_t *gate = permit->gate;

    if (!permit->asking) {
        bool again = permit->used;

        inf_lock(&gate->lock);
        give_back_locked(gate, permit);
        for (uint32_t i = 0; i < permit->count; i++) {
            inf_rate_limiter_ask(gate->limiter, &permit->entries[i].limited,
                again);
        }
        permit->asking = true;
        permit->review_ns = inf_later(now_ns, REVIEW_NS);
        settle_locked(gate, permit);
        inf_unlock(&gate->lock);

    } else if (now_ns >= permit->review_ns) {
        review(permit);
        permit->review_ns = inf_later(now_ns, REVIEW_NS);
    }

    return inf_rate_permit_may_take(permit);
}

void
inf_rate_permit_wait(inf_rate_permit_t *permit, const inf_instance_t *instance)
{
    inf_rate_gate_t *gate = permit->gate;
    if (gate == NULL) {
        return;
    }

    inf_lock(&gate->lock);
    for (uint32_t i = 0; i < permit->count; i++) {
        if (permit->entries[i].instance == instance) {
            inf_rate_limiter_ask(gate->limiter, &permit->entries[i].limited,
                false);
        }
    }
    permit->asking = true;
    settle_locked(gate, permit);
    inf_unlock(&gate->lock);

    while (!inf_rate_permit_may_take(permit)) {
        inf_waiter_wait_for(permit->waiter, REVIEW_NS);
        review(permit);
    }
}

inf_instance_t *
inf_rate_permit_use(inf_rate_permit_t *permit)
{
    permit->asking = false;
    permit->used = true;
    return atomic_load(&permit->granted)->instance;
}

void
inf_rate_permit_return(inf_rate_permit_t *permit)
{
    inf_rate_gate_t *gate = permit->gate;

    if (gate == NULL || (!permit->asking && !permit->used)) {
        return;
    }

    inf_lock(&gate->lock);
    give_back_locked(gate, permit);
    withdraw_locked(gate, permit);
    permit->asking = false;
    settle_locked(gate, permit);
    inf_unlock(&gate->lock);
}

/* Checks the group on each of its devices; the first lack is the finding. */
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

/* The device of the group's instance of that number. */
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

/* The needs of msg; NULL: none. */
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
review(inf_rate_permit_t *permit)
{
    inf_rate_gate_t *gate = permit->gate;

    inf_lock(&gate->lock);
    for (uint32_t i = 0; i < permit->count; i++) {
        inf_rate_limiter_review(gate->limiter, &permit->entries[i].limited);
    }
    settle_locked(gate, permit);
    inf_unlock(&gate->lock);
}

static void
give_back_locked(inf_rate_gate_t *gate, inf_rate_permit_t *permit)
{
    inf_rate_entry_t *entry = atomic_load_explicit(&permit->granted,
        memory_order_relaxed);

    if (entry != NULL) {
        inf_rate_limiter_release(gate->limiter, &entry->limited, permit->used);
        atomic_store_explicit(&permit->granted, NULL, memory_order_relaxed);
    }
    permit->used = false;
}

static void
withdraw_locked(inf_rate_gate_t *gate, inf_rate_permit_t *permit)
{
    for (uint32_t i = 0; i < permit->count; i++) {
        inf_rate_limiter_withdraw(gate->limiter, &permit->entries[i].limited);
    }
}

/* Grants permits and wakes their threads.  Under the lock, because a granted
   permit may be closed once the lock is free. */
static void
settle_locked(inf_rate_gate_t *gate, const inf_rate_permit_t *own)
{
    inf_rate_instance_t *limited;

    while ((limited = inf_rate_limiter_next(gate->limiter)) != NULL) {
        inf_rate_entry_t *entry = limited->userp;
        inf_rate_permit_t *permit = entry->permit;

        withdraw_locked(gate, permit);  /* of its other instances            */
        atomic_store(&permit->granted, entry);
        if (permit != own) {
            inf_waiter_wake(permit->waiter);
        }
    }
}
