/* runtime_life.c - starts a runner, closes it to requests and stops it. */

#include "core/sched/runtime.h"

#include <stdlib.h>

#include "core/base/clock.h"
#include "core/sched/runtime_parts.h"

#define RUNNER_LOCK_RANK 30

static void runner_close(inf_runner_t *runner, bool serves);
static void call_all_idle(inf_runner_t *runner);

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

void
inf_runner_close(inf_runner_t *runner)
{
    runner_close(runner, false);
}

void
inf_runner_close_to_clients(inf_runner_t *runner)
{
    runner_close(runner, true);
}

static void
runner_close(inf_runner_t *runner, bool serves)
{
    inf_instance_thread_t *called = NULL;

    inf_lock(&runner->lock);
    runner->serves = serves && (runner->serves || !runner->closed);
    runner->closed = true;
    runner->policy->closing = true;
    if (runner->policy->queued > 0) {
        called = inf_runner_call_idle_locked(runner, inf_clock_ns());
    }
    inf_unlock(&runner->lock);

    inf_instance_thread_wake(called);
    call_all_idle(runner);
}

void
inf_runner_leave(inf_runner_t *runner)
{
    inf_runner_attend(runner, false);
}

void
inf_runner_attend(inf_runner_t *runner, bool attended)
{
    inf_policy_t *policy = runner->policy;
    bool left = atomic_load_explicit(&runner->model->sched.users,
        memory_order_acquire) == 0;

    inf_lock(&runner->lock);
    policy->ops->leave(policy, left || !attended);
    inf_instance_thread_t *called = inf_runner_call_idle_locked(runner,
        inf_clock_ns());
    inf_unlock(&runner->lock);

    inf_instance_thread_wake(called);
    inf_runner_call_touched(runner);
    call_all_idle(runner);
}

bool
inf_runner_is_closed(inf_runner_t *runner)
{
    inf_lock(&runner->lock);
    bool closed = runner->closed;
    inf_unlock(&runner->lock);
    return closed;
}

inf_request_t *
inf_runner_take_queued(inf_runner_t *runner)
{
    inf_lock(&runner->lock);
    inf_request_t *req = runner->closed
        ? runner->policy->ops->drop(runner->policy) : NULL;
    inf_unlock(&runner->lock);
    return req;
}

void
inf_runner_stop(inf_runner_t *runner)
{
    inf_lock(&runner->lock);
    runner->closed = true;
    runner->serves = false;
    runner->stopping = true;
    if (runner->policy != NULL) {
        runner->policy->closing = true;
    }
    while (inf_list_pop_front(&runner->idle) != NULL) {
        continue;
    }
    inf_unlock(&runner->lock);

    inf_runner_end_threads(runner, &runner->threads);   /* no other thread uses
                                                           it now            */
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

/* Calls all idle threads, whose reason to wait may be gone, where the policy
   binds requests. */
static void
call_all_idle(inf_runner_t *runner)
{
    inf_instance_thread_t *t;

    if (!runner->policy->ops->binds) {
        return;
    }

    do {
        t = NULL;
        inf_lock(&runner->lock);
        if (!inf_list_empty(&runner->idle)) {
            t = inf_link_entry(runner->idle.prev, inf_instance_thread_t,
                idle);
            inf_runner_call_locked(runner, t);
        }
        inf_unlock(&runner->lock);
        inf_instance_thread_wake(t);
    } while (t != NULL);
}
