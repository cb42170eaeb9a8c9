#include "core/sched/runtime.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/sched/runtime_parts.h"

#define RUNNER_LOCK_RANK 30
#define RUNNER_QUICK_NS  50000u     /* mean of an execution                  */
#define NOTICE_MAX       512u       /* bytes; longer ones are cut            */

static inf_link_t *idle_to_ask_locked(inf_runner_t *runner)
    INF_NEEDS(runner->lock);
static inf_instance_thread_t *call_one_locked(inf_runner_t *runner,
    uint64_t now_ns) INF_NEEDS(runner->lock);

inf_err_t *
inf_runner_start(inf_model_t *model, const inf_runner_options_t *options)
{
    inf_runner_t *runner = calloc(1, sizeof(*runner));
    if (runner == NULL) {
        return inf_err_nomem();
    }

    inf_lock_init(&runner->lock, RUNNER_LOCK_RANK);
    inf_cond_init(&runner->moved);
    inf_link_init(&runner->idle);
    inf_link_init(&runner->classes);
    inf_link_init(&runner->threads);
    inf_link_init(&runner->spares);
    runner->watch_ns = INF_NEVER;
    runner->armed_ns = INF_NEVER;
    runner->model = model;
    runner->executor = options->executor;
    runner->spin_ns = options->spin_ns;
    runner->idle_ops = options->idle;
    runner->idle_userp = options->idle_userp;
    runner->rate_gate = options->rate_gate;
    runner->stuck_limit = options->stuck_limit;

    inf_err_t *err = inf_policy_new(model, &runner->policy);
    if (err == NULL && inf_policy_keeps_order(model)) {
        runner->order = inf_response_order_new();
        err = runner->order != NULL ? NULL : inf_err_nomem();
    }
    if (err == NULL && options->timekeeper != NULL
        && runner->policy->ops->expire != NULL)
    {
        runner->timer.fire = inf_runner_tick;
        runner->timer.userp = runner;
        err = inf_timekeeper_add(options->timekeeper, &runner->timer);
        runner->timekeeper = err == NULL ? options->timekeeper : NULL;
    }
    if (err == NULL) {
        err = inf_runner_add(runner, model->instances, model->instance_count,
            options);
    }
    if (err != NULL) {
        inf_runner_free(runner);
        return err;
    }

    inf_runner_admit(runner);
    model->sched.runner = runner;
    return NULL;
}

inf_err_t *
inf_runner_submit(inf_runner_t *runner, inf_request_t *req, uint64_t now_ns)
{
    inf_instance_thread_t *called = NULL;
    uint64_t at_ns = INF_NEVER;
    bool noticed = false;
    char notice[NOTICE_MAX];

    inf_lock(&runner->lock);

    if (runner->closed && !(runner->serves && req->whole != NULL)
        && (!runner->policy->ops->binds || runner->stopping
            || req->whole != NULL))
    {
        inf_unlock(&runner->lock);
        return inf_err_new(INF_ERR_UNAVAILABLE, "Server is stopping, scheduler"
            " for model has stopped accepting new inference requests");
    }

    inf_policy_t *policy = runner->policy;
    inf_err_t *err = policy->ops->push(policy, req, now_ns);
    if (err == NULL) {
        called = call_one_locked(runner, now_ns);
        at_ns = inf_runner_arm_locked(runner);
        noticed = policy->ops->notice != NULL
            && policy->ops->notice(policy, notice, sizeof(notice));
    }

    inf_unlock(&runner->lock);

    inf_instance_thread_wake(called);
    inf_runner_arm(runner, at_ns);
    if (noticed) {                  /* runner might be gone                  */
        inf_log(INF_LOG_WARN, "%s", notice);
    }
    return err;
}

bool
inf_runner_is_quick(const inf_runner_t *runner)
{
    uint64_t mean = atomic_load_explicit(&runner->mean_ns,
        memory_order_relaxed);
    return mean != 0 && mean < RUNNER_QUICK_NS;
}

uint32_t
inf_runner_pending(inf_runner_t *runner)
{
    inf_lock(&runner->lock);
    uint32_t n = runner->policy->queued + runner->running;
    inf_unlock(&runner->lock);
    return n;
}

uint32_t
inf_runner_sequences(inf_runner_t *runner)
{
    inf_lock(&runner->lock);
    uint32_t n = runner->policy->live;
    inf_unlock(&runner->lock);
    return n;
}

uint32_t
inf_runner_queued(inf_runner_t *runner)
{
    inf_lock(&runner->lock);
    uint32_t n = runner->policy->queued - runner->policy->again;
    inf_unlock(&runner->lock);
    return n;
}

inf_stuck_t
inf_runner_stuck(inf_runner_t *runner)
{
    inf_stuck_t count = { .serving = 0 };
    uint64_t now = inf_clock_ns();
    uint64_t limit_ns = runner->stuck_limit == NULL ? 0
        : atomic_load_explicit(&runner->stuck_limit->ns,
            memory_order_relaxed);

    inf_lock(&runner->lock);
    for (inf_link_t *l = runner->threads.next; l != &runner->threads;
        l = l->next)
    {
        const inf_instance_thread_t *t = inf_link_entry(l,
            inf_instance_thread_t, link);
        if (t->state == INF_THREAD_SERVES) {
            inf_stuck_count(&count, t->instances, atomic_load_explicit(
                &t->begun_ns, memory_order_relaxed), now, limit_ns);
        }
    }
    inf_unlock(&runner->lock);
    return count;
}

bool
inf_runner_is_limited(const inf_runner_t *runner)
{
    const Inference__ModelConfig *msg = runner->model->built;

    for (size_t i = 0; runner->rate_gate != NULL && msg != NULL
        && i < msg->n_instance_group; i++)
    {
        const Inference__ModelRateLimiter *limiter =
            msg->instance_group[i]->rate_limiter;
        if (limiter != NULL && limiter->n_resources > 0) {
            return true;
        }
    }
    return false;
}

void
inf_runner_free(inf_runner_t *runner)
{
    if (runner == NULL) {
        return;
    }

    inf_runner_stop(runner);
    if (runner->timekeeper != NULL) {
        inf_timekeeper_remove(runner->timekeeper, &runner->timer);
    }
    if (runner->policy != NULL) {
        runner->policy->ops->free(runner->policy);
    }
    inf_response_order_unref(runner->order);
    inf_runner_free_threads(runner);
    inf_cond_fini(&runner->moved);
    inf_lock_fini(&runner->lock);
    free(runner);
}

void
inf_runner_call_touched(inf_runner_t *runner)
{
    inf_instance_thread_t *called[8];
    uint32_t n;

    if (!runner->policy->ops->binds) {
        return;
    }

    do {
        inf_instance_thread_t *t = NULL;
        n = 0;
        inf_lock(&runner->lock);
        while (n < sizeof(called) / sizeof(called[0])
            && (t = inf_runner_call_touched_locked(runner)) != NULL)
        {
            called[n++] = t;
        }
        inf_unlock(&runner->lock);

        for (uint32_t i = 0; i < n; i++) {
            inf_instance_thread_wake(called[i]);
        }
    } while (n == sizeof(called) / sizeof(called[0]));
}

inf_instance_thread_t *
inf_runner_call_touched_locked(inf_runner_t *runner)
{
    inf_policy_t *policy = runner->policy;
    inf_instance_thread_t *t;

    while ((t = policy->ops->touched(policy)) != NULL) {
        if (!inf_list_empty(&t->idle)) {        /* else it looks anyway      */
            inf_runner_call_locked(runner, t);
            return t;
        }
    }
    return NULL;
}

void
inf_runner_call_locked(inf_runner_t *runner, inf_instance_thread_t *t)
{
    inf_link_remove(&t->idle);
    inf_instance_thread_rest_locked(runner, t, INF_THREAD_CALLED);
}

/* The thread that a new request is for; NULL: none has to look for it. */
static inf_instance_thread_t *
call_one_locked(inf_runner_t *runner, uint64_t now_ns)
{
    return runner->policy->ops->binds
        ? inf_runner_call_touched_locked(runner)
        : inf_runner_call_idle_locked(runner, now_ns);
}

/*
 * The idle thread that should look now, NULL: none.  Where requests gather,
 * the one that looks may take them all; it calls the next by itself.
 */
inf_instance_thread_t *
inf_runner_call_idle_locked(inf_runner_t *runner, uint64_t now_ns)
{
    inf_policy_t *policy = runner->policy;
    if (inf_list_empty(&runner->idle) || policy->ops->binds) {
        return NULL;
    }

    inf_link_t *link = runner->rate_gate == NULL ? runner->idle.next
        : idle_to_ask_locked(runner);

    if (policy->ops->gathers) {
        uint64_t until_ns = INF_NEVER;

        if (runner->called > 0) {
            return NULL;
        }

        switch (policy->ops->ready(policy, 0, now_ns, &until_ns)) {
        case INF_NEXT_NOTHING:
            return NULL;
        case INF_NEXT_WAIT:
            if (until_ns >= runner->watch_ns) {
                return NULL;
            }
            link = runner->idle.next;
            break;
        case INF_NEXT_PAYLOAD:
        case INF_NEXT_ASK:
            break;
        }
    }

    if (link == NULL) {
        return NULL;
    }

    inf_instance_thread_t *t = inf_link_entry(link, inf_instance_thread_t,
        idle);
    inf_runner_call_locked(runner, t);
    return t;
}

/*
 * Where rates are limited, the idle thread that should ask too; NULL: none.
 * That is one whose class doesn't ask yet, or any if there are more requests
 * than threads that ask and each of them may run alone.
 */
static inf_link_t *
idle_to_ask_locked(inf_runner_t *runner)
{
    const inf_policy_t *policy = runner->policy;
    inf_link_t *first = runner->idle.next;

    if (first == &runner->idle || policy->queued == 0) {
        return NULL;
    }
    if (runner->asking == 0 || (!policy->ops->gathers
            && policy->queued > runner->asking + runner->called))
    {
        return first;
    }

    for (inf_link_t *l = first; runner->class_count > 1 && l != &runner->idle;
        l = l->next)
    {
        const inf_instance_thread_t *t = inf_link_entry(l,
            inf_instance_thread_t, idle);
        if (t->class->asking == 0) {
            return l;
        }
    }

    return NULL;
}

void
inf_instance_thread_wake(inf_instance_thread_t *t)
{
    if (t != NULL) {
        inf_waiter_wake(&t->waiter);
    }
}

/* When the timekeeper is to call, if that is news; else INF_NEVER. */
uint64_t
inf_runner_arm_locked(inf_runner_t *runner)
{
    uint64_t at_ns = runner->policy->deadline_ns;

    if (at_ns >= runner->armed_ns || runner->timekeeper == NULL) {
        return INF_NEVER;
    }

    runner->armed_ns = at_ns;
    return at_ns;
}

void
inf_runner_arm(inf_runner_t *runner, uint64_t at_ns)
{
    if (at_ns != INF_NEVER) {
        inf_timekeeper_arm(runner->timekeeper, &runner->timer, at_ns);
    }
}
