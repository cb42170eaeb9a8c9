/* runtime_load.c - counts of a runner's requests and executions, for metrics,
   unloads, health and ensembles. */

#include "core/sched/runtime.h"

#include "core/base/clock.h"
#include "core/sched/runtime_parts.h"

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

inf_sequence_counts_t
inf_runner_slots(inf_runner_t *runner)
{
    inf_sequence_counts_t count = { .slots = 0 };

    inf_lock(&runner->lock);
    const inf_policy_t *policy = runner->policy;
    if (policy->ops->count != NULL) {
        policy->ops->count(policy, &count);
    }
    inf_unlock(&runner->lock);
    return count;
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
