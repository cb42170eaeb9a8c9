/* instance_thread.c - what an instance's thread does: it takes payloads from
   the policy and executes them, or is idle. */

#include "core/sched/runtime_parts.h"

#include <assert.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/points.h"
#include "core/model/private_inputs.h"
#include "core/model/string_check.h"
#include "core/sched/rejection.h"

static bool instance_take(inf_instance_thread_t *t, inf_payload_t *payload,
    uint64_t *start_ns);
static uint64_t watch_locked(inf_runner_t *runner, inf_instance_thread_t *t,
    inf_next_t next, uint64_t until_ns) INF_NEEDS(runner->lock);
static void instance_ask(inf_instance_thread_t *t, uint64_t now_ns);
static void payload_take_locked(inf_runner_t *runner, inf_payload_t *payload)
    INF_NEEDS(runner->lock);
static void instance_run(inf_instance_thread_t *t, inf_payload_t *payload,
    uint64_t start_ns);
static void take_inputs(inf_payload_t *payload);
static void add_controls(inf_instance_thread_t *t, inf_payload_t *payload);
static uint32_t requests_take(inf_instance_thread_t *t,
    inf_payload_t *payload, uint64_t start_ns);
static void requests_reserve(inf_instance_thread_t *t, uint32_t count);
static void link_idle_locked(inf_instance_thread_t *t);
static void instance_idle(inf_instance_thread_t *t, uint64_t until_ns);
static void instance_done(inf_instance_thread_t *t, uint32_t count,
    uint64_t start_ns);

/* Of which runner this thread is. */
static _Thread_local inf_runner_t *runner_of_thread;

void *
inf_instance_thread_main(void *thread)
{
    inf_instance_thread_t *t = thread;
    inf_payload_t payload;
    uint64_t start_ns;

    runner_of_thread = t->runner;
    if (!inf_instance_thread_begin(t)) {
        return NULL;
    }

    while (instance_take(t, &payload, &start_ns)) {
        uint32_t count = payload.count;
        instance_run(t, &payload, start_ns);
        instance_done(t, count, start_ns);
    }

    return NULL;
}

/* The next payload, its requests EXECUTING; false: the thread ends. */
static bool
instance_take(inf_instance_thread_t *t, inf_payload_t *payload,
    uint64_t *start_ns)
{
    inf_runner_t *runner = t->runner;
    inf_policy_t *policy = runner->policy;
    bool asked = false;             /* the policy waits for it to come back  */
    inf_link_t gone;
    inf_link_init(&gone);

    for (;;) {
        inf_instance_thread_t *called = NULL;
        uint64_t until_ns = INF_NEVER;
        uint64_t now = 0;
        inf_payload_init(payload);

        inf_lock(&runner->lock);
        inf_link_remove(&t->idle);  /* it has woken, called or by itself     */
        inf_instance_thread_rest_locked(runner, t, INF_THREAD_UNMARKED);
        if (policy->ops->gathers) {
            now = inf_clock_ns();
        }

        bool leaves = t->state == INF_THREAD_LEAVES && (runner->stopping
            || !policy->ops->occupied(policy, t->number));
        bool may_take = inf_rate_permit_may_take(&t->permit);
        inf_next_t next = leaves && !asked ? INF_NEXT_NOTHING
            : may_take ? policy->ops->next(policy, t->number, now, payload,
                &gone, &until_ns)
            : policy->ops->ready(policy, t->number, now, &until_ns);
        bool work = next == INF_NEXT_PAYLOAD || next == INF_NEXT_ASK;
        bool asks = work && !may_take;
        bool ends = (leaves || runner->stopping) && !work;

        if (ends) {
            called = inf_runner_call_idle_locked(runner, now);  /* instead */

        } else if (asks) {
            inf_instance_thread_rest_locked(runner, t, INF_THREAD_ASKS);

        } else if (next == INF_NEXT_PAYLOAD) {
            payload_take_locked(runner, payload);
            if (policy->ops->gathers || runner->rate_gate != NULL) {
                called = inf_runner_call_idle_locked(runner, now);
            }

        } else if (!work) {
            link_idle_locked(t);
            until_ns = watch_locked(runner, t, next, until_ns);
        }
        uint64_t at_ns = inf_runner_arm_locked(runner);
        inf_unlock(&runner->lock);

        inf_instance_thread_wake(called);
        if (!inf_list_empty(&gone)) {
            inf_reject_gone(&gone);
        }
        inf_runner_arm(runner, at_ns);
        inf_runner_call_touched(runner);

        if (asks) {
            instance_ask(t, now);
            continue;
        }
        if (next == INF_NEXT_PAYLOAD) {
            if (runner->rate_gate != NULL) {
                t->instance = inf_rate_permit_use(&t->permit);
            }
            *start_ns = now != 0 ? now : inf_clock_ns();
            if (runner->idle_ops != NULL) {
                runner->idle_ops->leave(runner->idle_userp, runner);
            }
            return true;
        }
        asked = next == INF_NEXT_ASK;
        if (asked) {
            policy->ops->ask(policy);
            continue;
        }

        inf_rate_permit_return(&t->permit);
        if (ends) {
            if (leaves && runner->idle_ops != NULL) {
                runner->idle_ops->leave(runner->idle_userp, runner);
            }
            return false;
        }

        instance_idle(t, until_ns);
    }
}

/* Until when the idle thread sleeps: the first that is told so watches. */
static uint64_t
watch_locked(inf_runner_t *runner, inf_instance_thread_t *t, inf_next_t next,
    uint64_t until_ns)
{
    if (next == INF_NEXT_WAIT && runner->policy->ops->binds) {
        return until_ns;            /* nobody can watch for it               */
    }
    if (next != INF_NEXT_WAIT || until_ns >= runner->watch_ns) {
        return INF_NEVER;
    }

    inf_instance_thread_rest_locked(runner, t, INF_THREAD_WATCHES);
    runner->watch_ns = until_ns;
    return until_ns;
}

void
inf_instance_thread_rest_locked(inf_runner_t *runner, inf_instance_thread_t *t,
    inf_thread_rest_t to)
{
    switch (t->rest) {
    case INF_THREAD_UNMARKED:
        break;
    case INF_THREAD_WATCHES:
        runner->watch_ns = INF_NEVER;
        break;
    case INF_THREAD_ASKS:
        runner->asking--;
        t->class->asking--;
        break;
    case INF_THREAD_CALLED:
        runner->called--;
        break;
    }

    assert(t->rest == INF_THREAD_UNMARKED || to != INF_THREAD_ASKS);
    t->rest = to;
    if (to == INF_THREAD_ASKS) {
        runner->asking++;
        t->class->asking++;
    } else if (to == INF_THREAD_CALLED) {
        runner->called++;
    }
}

/* Asks for the rate permit; if that takes time, another thread may get one
   sooner. */
static void
instance_ask(inf_instance_thread_t *t, uint64_t now_ns)
{
    inf_runner_t *runner = t->runner;

    if (inf_rate_permit_ask(&t->permit)) {
        return;
    }

    inf_lock(&runner->lock);
    inf_instance_thread_t *called = inf_runner_call_idle_locked(runner, now_ns);
    inf_unlock(&runner->lock);

    inf_instance_thread_wake(called);
    instance_idle(t, INF_NEVER);
}

static void
payload_take_locked(inf_runner_t *runner, inf_payload_t *payload)
{
    for (inf_link_t *l = payload->requests.next; l != &payload->requests;
        l = l->next)
    {
        inf_request_t *req = inf_link_entry(l, inf_request_t, link);
        inf_request_move(req, INF_REQUEST_EXECUTING);
        if (runner->policy->ops->released != NULL) {
            req->sched.leaves = inf_runner_released;
        }
        if (runner->order != NULL) {
            inf_response_order_enter(runner->order, req->factory);
        }
    }

    runner->running += payload->count;
}

/* In one piece, unless there is no memory for so many. */
static void
instance_run(inf_instance_thread_t *t, inf_payload_t *payload,
    uint64_t start_ns)
{
    const inf_executor_t *executor = t->runner->executor;

    INF_POINT(PAYLOAD_TAKEN);
    take_inputs(payload);
    if (payload->count > 0 && t->runner->policy->ops->add_controls != NULL) {
        add_controls(t, payload);
    }
    if (payload->count == 0) {
        return;
    }

    if (payload->count > t->cap) {
        requests_reserve(t, payload->count);
    }

    atomic_store_explicit(&t->begun_ns, start_ns, memory_order_relaxed);
    do {
        executor->execute(t->instance, t->requests, requests_take(t, payload,
            start_ns));
    } while (!inf_list_empty(&payload->requests));
    atomic_store_explicit(&t->begun_ns, 0, memory_order_relaxed);

    t->instance = t->instance->sched.peer;
}

/* The bytes of its requests are copied where the model wants that, and strings
   are read, here, where time is the model's own. */
static void
take_inputs(inf_payload_t *payload)
{
    for (inf_link_t *l = payload->requests.next; l != &payload->requests; ) {
        inf_request_t *req = inf_link_entry(l, inf_request_t, link);
        l = l->next;

        inf_err_t *out_of_memory = inf_private_inputs_make(req);
        inf_err_t *malformed = out_of_memory != NULL ? NULL
            : inf_request_check_strings(req);
        if (out_of_memory == NULL && malformed == NULL) {
            continue;
        }

        inf_link_remove(&req->link);
        payload->count--;
        if (malformed != NULL) {
            inf_reject_malformed(req, malformed);
        } else {
            inf_reject_failed(req, out_of_memory);
        }
    }
}

static void
add_controls(inf_instance_thread_t *t, inf_payload_t *payload)
{
    inf_policy_t *policy = t->runner->policy;
    inf_link_t failed;
    inf_link_t *link;
    inf_link_init(&failed);

    inf_err_t *err = policy->ops->add_controls(policy, payload, &failed);
    while ((link = inf_list_pop_front(&failed)) != NULL) {
        inf_reject_failed(inf_link_entry(link, inf_request_t, link),
            inf_err_copy(err));
    }
    inf_err_free(err);
}

/* Off the payload into the array of the thread; they are executing now. */
static uint32_t
requests_take(inf_instance_thread_t *t, inf_payload_t *payload,
    uint64_t start_ns)
{
    inf_link_t *link;
    uint32_t n = 0;

    while (n < t->cap
        && (link = inf_list_pop_front(&payload->requests)) != NULL)
    {
        inf_request_t *req = inf_link_entry(link, inf_request_t, link);
        req->exec_ns = start_ns;
        if (req->ops->executing != NULL) {
            req->ops->executing(req->userp, req);
        }
        t->requests[n++] = req;
    }

    return n;
}

static void
requests_reserve(inf_instance_thread_t *t, uint32_t count)
{
    uint32_t cap = count + count / 2;
    inf_request_t **wider = calloc(cap, sizeof(*wider));
    if (wider == NULL) {
        inf_log(INF_LOG_WARN, "model=%s: no memory for a payload of %u"
            " requests, it runs in pieces", t->instance->model->name, count);
        return;
    }

    if (t->requests != &t->one) {
        free(t->requests);
    }
    t->requests = wider;
    t->cap = cap;
}

/* Last idle is first woken (its caches are warm), after the one that leads:
   waking that one costs nothing. */
static void
link_idle_locked(inf_instance_thread_t *t)
{
    inf_link_t *head = &t->runner->idle;
    inf_link_t *first = head->next;

    if (first != head && atomic_load_explicit(&inf_link_entry(first,
            inf_instance_thread_t, idle)->leading, memory_order_relaxed))
    {
        inf_link_insert(first->next, &t->idle);
        return;
    }

    inf_list_push_front(head, &t->idle);
}

/* Leads if nobody does, else sleeps, until there may be work or until_ns has
   come. */
static void
instance_idle(inf_instance_thread_t *t, uint64_t until_ns)
{
    inf_runner_t *runner = t->runner;
    const inf_idle_ops_t *ops = runner->idle_ops;

    if (ops != NULL) {
        atomic_store_explicit(&t->leading, true, memory_order_relaxed);
        bool work = ops->lead(runner->idle_userp, runner, &t->waiter,
            until_ns);
        atomic_store_explicit(&t->leading, false, memory_order_relaxed);
        if (work) {
            inf_waiter_clear(&t->waiter);
            return;
        }
    }

    if (until_ns == INF_NEVER) {
        inf_waiter_wait(&t->waiter, runner->spin_ns);
        return;
    }

    uint64_t now = inf_clock_ns();
    if (now < until_ns) {
        inf_waiter_wait_for(&t->waiter, until_ns - now);
    }
}

static void
instance_done(inf_instance_thread_t *t, uint32_t count, uint64_t start_ns)
{
    inf_runner_t *runner = t->runner;
    uint64_t now = inf_clock_ns();
    uint64_t took = now - start_ns;
    uint64_t mean = atomic_load_explicit(&runner->mean_ns,
        memory_order_relaxed);

    mean = mean == 0 ? took : mean - mean / 8 + took / 8;
    atomic_store_explicit(&runner->mean_ns, mean, memory_order_relaxed);

    inf_lock(&runner->lock);
    runner->running -= count;
    if (runner->policy->ops->done != NULL) {
        runner->policy->ops->done(runner->policy, count, now);
    }
    inf_unlock(&runner->lock);
}

const inf_model_t *
inf_runner_of_thread(void)
{
    return runner_of_thread != NULL ? runner_of_thread->model : NULL;
}

void
inf_runner_sleeps(void)
{
    const inf_runner_t *runner = runner_of_thread;
    if (runner != NULL && runner->idle_ops != NULL
        && runner->idle_ops->sleeps != NULL)
    {
        runner->idle_ops->sleeps(runner->idle_userp);
    }
}
