/* runtime_leave.c - requests that leave the queue without execution, or return
   to it. */

#include "core/sched/runtime.h"

#include "core/base/clock.h"
#include "core/sched/rejection.h"
#include "core/sched/runtime_parts.h"
#include "core/tensor/response.h"

inf_err_t *
inf_runner_reschedule(inf_runner_t *runner, inf_request_t *req)
{
    inf_policy_t *policy = runner->policy;
    uint64_t now = inf_clock_ns();
    inf_link_t gone;
    inf_link_init(&gone);

    inf_lock(&runner->lock);
    void (*leaves)(inf_request_t *) = req->sched.leaves;
    req->sched.leaves = NULL;
    inf_err_t *err = policy->ops->again(policy, req, now);
    if (err != NULL) {
        req->sched.leaves = leaves;     /* released in another way           */
    } else if (atomic_load_explicit(&req->factory->cancelled,
            memory_order_relaxed)   /* cancelled while it ran: reported only
                                       once                                  */
        && policy->ops->cancel(policy, req, now, &gone))
    {
        inf_list_push_front(&gone, &req->link);
    }
    inf_instance_thread_t *called = err == NULL
        ? inf_runner_call_touched_locked(runner) : NULL;
    inf_unlock(&runner->lock);

    inf_instance_thread_wake(called);
    inf_reject_gone(&gone);
    return err;
}

bool
inf_runner_cancel(inf_runner_t *runner, inf_request_t *req)
{
    inf_instance_thread_t *called = NULL;
    inf_policy_t *policy = runner->policy;
    uint64_t now = policy->ops->gathers ? inf_clock_ns() : 0;
    inf_link_t gone;
    inf_link_init(&gone);

    inf_lock(&runner->lock);
    bool unlinked = policy->ops->cancel(policy, req, now, &gone);
    if (unlinked && policy->ops->gathers) {
        called = inf_runner_call_idle_locked(runner, now);
    }
    uint64_t at_ns = inf_runner_arm_locked(runner);
    inf_unlock(&runner->lock);

    inf_instance_thread_wake(called);
    inf_runner_arm(runner, at_ns);
    inf_runner_call_touched(runner);
    inf_reject_gone(&gone);
    return unlinked;
}

uint64_t
inf_runner_rejects_at(const inf_runner_t *runner, const inf_request_t *req,
    uint64_t now_ns)
{
    const inf_policy_t *policy = runner->policy;
    return policy->ops->rejects_at != NULL
        ? policy->ops->rejects_at(policy, req, now_ns) : INF_NEVER;
}

void
inf_runner_released(inf_request_t *req)
{
    inf_runner_t *runner = req->model->sched.runner;
    inf_policy_t *policy = runner->policy;
    inf_link_t gone;
    inf_link_init(&gone);

    inf_lock(&runner->lock);
    policy->ops->released(policy, req, inf_clock_ns(), &gone);
    uint64_t at_ns = inf_runner_arm_locked(runner);
    inf_unlock(&runner->lock);

    inf_runner_arm(runner, at_ns);
    inf_runner_call_touched(runner);
    inf_reject_gone(&gone);
}

void
inf_runner_tick(void *userp)
{
    inf_runner_t *runner = userp;
    inf_link_t gone;
    inf_link_init(&gone);

    inf_lock(&runner->lock);
    inf_policy_t *policy = runner->policy;
    uint64_t now = inf_clock_ns();
    policy->ops->expire(policy, now, &gone);
    runner->armed_ns = INF_NEVER;
    uint64_t at_ns = inf_runner_arm_locked(runner);
    inf_instance_thread_t *called = inf_runner_call_idle_locked(runner, now);
    inf_unlock(&runner->lock);

    inf_instance_thread_wake(called);
    inf_runner_arm(runner, at_ns);
    inf_runner_call_touched(runner);
    inf_reject_gone(&gone);
}
