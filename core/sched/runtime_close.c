#include "core/sched/runtime.h"

#include "core/base/clock.h"
#include "core/sched/runtime_parts.h"

static void runner_close(inf_runner_t *runner, bool serves);
static void call_all_idle(inf_runner_t *runner);

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

    inf_runner_end_threads(runner, &runner->threads);   /* nobody else's now */
}

/* Where requests belong to instances: the reason why each of these waits may
   be over. */
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
