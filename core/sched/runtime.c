#include "core/sched/runtime.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/model/private_inputs.h"
#include "core/model/string_check.h"
#include "core/sched/bound_policy.h"
#include "core/sched/rejection.h"
#include "core/sched/runtime_parts.h"
#include "core/tensor/response.h"

#define RUNNER_LOCK_RANK 30
#define RUNNER_QUICK_NS  50000u     /* mean of an execution                  */
#define NOTICE_MAX       512u       /* bytes; longer ones are cut            */

static void runner_close(inf_runner_t *runner, bool serves);
static void runner_tick(void *userp);
static inf_instance_thread_t *call_idle_locked(inf_runner_t *runner,
    uint64_t now_ns) INF_NEEDS(runner->lock);
static inf_link_t *idle_to_ask_locked(inf_runner_t *runner)
    INF_NEEDS(runner->lock);
static void call_all_idle(inf_runner_t *runner);
static inf_instance_thread_t *call_touched_locked(inf_runner_t *runner)
    INF_NEEDS(runner->lock);
static void call_locked(inf_runner_t *runner, inf_instance_thread_t *t)
    INF_NEEDS(runner->lock);
static bool bound_cancel(inf_runner_t *runner, inf_request_t *req);
static void request_leaves(inf_request_t *req);
static void take_inputs(inf_payload_t *payload);
static void dress(inf_instance_thread_t *t, inf_payload_t *payload);
static void wake(inf_instance_thread_t *t);
static uint64_t arm_locked(inf_runner_t *runner) INF_NEEDS(runner->lock);
static void arm(inf_runner_t *runner, uint64_t at_ns);
static bool instance_take(inf_instance_thread_t *t, inf_payload_t *payload,
    uint64_t *start_ns);
static uint64_t watch_locked(inf_instance_thread_t *t, inf_next_t next,
    uint64_t until_ns);
static void looked_locked(inf_runner_t *runner, inf_instance_thread_t *t)
    INF_NEEDS(runner->lock);
static void asking_locked(inf_runner_t *runner, inf_instance_thread_t *t)
    INF_NEEDS(runner->lock);
static void instance_ask(inf_instance_thread_t *t, uint64_t now_ns);
static void payload_take_locked(inf_runner_t *runner, inf_payload_t *payload)
    INF_NEEDS(runner->lock);
static void instance_run(inf_instance_thread_t *t, inf_payload_t *payload,
    uint64_t start_ns);
static uint32_t requests_take(inf_instance_thread_t *t,
    inf_payload_t *payload, uint64_t start_ns);
static void requests_reserve(inf_instance_thread_t *t, uint32_t count);
static void link_idle_locked(inf_instance_thread_t *t);
static void instance_idle(inf_instance_thread_t *t, uint64_t until_ns);
static void instance_done(inf_instance_thread_t *t, uint32_t count,
    uint64_t start_ns);

/* Of which runner this thread is. */
static _Thread_local inf_runner_t *runner_of_thread;

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
    inf_link_init(&runner->kins);
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

    inf_err_t *err = inf_policy_new(model, &runner->policy);
    if (err == NULL && inf_policy_keeps_order(model)) {
        runner->order = inf_response_order_new();
        err = runner->order != NULL ? NULL : inf_err_nomem();
    }
    if (err == NULL && options->timekeeper != NULL
        && runner->policy->ops->expire != NULL)
    {
        runner->timer.fire = runner_tick;
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
    model->runner = runner;
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
        && (runner->policy->bound == NULL || runner->stopping
            || req->whole != NULL))
    {
        inf_unlock(&runner->lock);
        return inf_err_new(INF_ERR_UNAVAILABLE, "Server is stopping, scheduler"
            " for model has stopped accepting new inference requests");
    }

    inf_policy_t *policy = runner->policy;
    inf_err_t *err = policy->ops->push(policy, req, now_ns);
    if (err == NULL) {
        called = policy->bound != NULL ? call_touched_locked(runner)
            : call_idle_locked(runner, now_ns);
        at_ns = arm_locked(runner);
        noticed = policy->bound != NULL
            && policy->bound->notice(policy, notice, sizeof(notice));
    }

    inf_unlock(&runner->lock);

    wake(called);
    arm(runner, at_ns);
    if (noticed) {                  /* runner might be gone                  */
        inf_log(INF_LOG_WARN, "%s", notice);
    }
    return err;
}

inf_err_t *
inf_runner_reschedule(inf_runner_t *runner, inf_request_t *req)
{
    inf_policy_t *policy = runner->policy;
    uint64_t now = inf_clock_ns();
    inf_link_t gone;
    inf_link_init(&gone);

    inf_lock(&runner->lock);
    void (*leaves)(inf_request_t *) = req->leaves;
    req->leaves = NULL;
    inf_err_t *err = policy->bound->again(policy, req, now);
    if (err != NULL) {
        req->leaves = leaves;       /* it is released in another way then    */
    } else if (atomic_load_explicit(&req->factory->cancelled,
            memory_order_relaxed)   /* while it ran: nobody says so again    */
        && policy->bound->cancel(policy, req, now, &gone))
    {
        inf_list_push_front(&gone, &req->link);
    }
    inf_instance_thread_t *called = err == NULL ? call_touched_locked(runner)
        : NULL;
    inf_unlock(&runner->lock);

    wake(called);
    inf_reject_gone(&gone);
    return err;
}

bool
inf_runner_cancel(inf_runner_t *runner, inf_request_t *req)
{
    inf_instance_thread_t *called = NULL;
    inf_policy_t *policy = runner->policy;

    if (policy->bound != NULL) {
        return bound_cancel(runner, req);
    }

    inf_lock(&runner->lock);
    bool unlinked = policy->ops->cancel(policy, req);
    if (unlinked && policy->ops->gathers) {
        called = call_idle_locked(runner, inf_clock_ns());
    }
    inf_unlock(&runner->lock);

    wake(called);
    return unlinked;
}

static bool
bound_cancel(inf_runner_t *runner, inf_request_t *req)
{
    inf_policy_t *policy = runner->policy;
    inf_link_t gone;
    inf_link_init(&gone);

    inf_lock(&runner->lock);
    bool unlinked = policy->bound->cancel(policy, req, inf_clock_ns(), &gone);
    uint64_t at_ns = arm_locked(runner);
    inf_unlock(&runner->lock);

    arm(runner, at_ns);
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
        called = call_idle_locked(runner, inf_clock_ns());
    }
    inf_unlock(&runner->lock);

    wake(called);
    if (runner->policy->bound != NULL) {
        call_all_idle(runner);
    }
}

void
inf_runner_leave(inf_runner_t *runner)
{
    inf_policy_t *policy = runner->policy;
    inf_instance_thread_t *called = NULL;

    inf_lock(&runner->lock);
    if (policy->bound != NULL) {
        policy->bound->leave(policy);
    } else {
        policy->closing = true;
        called = call_idle_locked(runner, inf_clock_ns());
    }
    inf_unlock(&runner->lock);

    wake(called);
    if (policy->bound != NULL) {
        inf_runner_call_touched(runner);
        call_all_idle(runner);
    }
}

const inf_model_t *
inf_runner_of_thread(void)
{
    return runner_of_thread != NULL ? runner_of_thread->model : NULL;
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
inf_runner_sleeps(void)
{
    const inf_runner_t *runner = runner_of_thread;
    if (runner != NULL && runner->idle_ops != NULL
        && runner->idle_ops->sleeps != NULL)
    {
        runner->idle_ops->sleeps(runner->idle_userp);
    }
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

/* The timekeeper calls: requests have waited too long. */
static void
runner_tick(void *userp)
{
    inf_runner_t *runner = userp;
    inf_link_t gone;
    inf_link_init(&gone);

    inf_lock(&runner->lock);
    inf_policy_t *policy = runner->policy;
    uint64_t now = inf_clock_ns();
    policy->ops->expire(policy, now, &gone);
    runner->armed_ns = INF_NEVER;
    uint64_t at_ns = arm_locked(runner);
    inf_instance_thread_t *called = call_idle_locked(runner, now);
    inf_unlock(&runner->lock);

    wake(called);
    arm(runner, at_ns);
    if (policy->bound != NULL) {
        inf_runner_call_touched(runner);
    }
    inf_reject_gone(&gone);
}

void
inf_runner_call_touched(inf_runner_t *runner)
{
    inf_instance_thread_t *called[8];
    uint32_t n;

    do {
        inf_instance_thread_t *t = NULL;
        n = 0;
        inf_lock(&runner->lock);
        while (n < sizeof(called) / sizeof(called[0])
            && (t = call_touched_locked(runner)) != NULL)
        {
            called[n++] = t;
        }
        inf_unlock(&runner->lock);

        for (uint32_t i = 0; i < n; i++) {
            wake(called[i]);
        }
    } while (n == sizeof(called) / sizeof(called[0]));
}

/* The next that should look, called; NULL: none.  A request touches one at
   most: who submits needs no second call, for which runner might be gone. */
static inf_instance_thread_t *
call_touched_locked(inf_runner_t *runner)
{
    inf_policy_t *policy = runner->policy;
    inf_instance_thread_t *t;

    while ((t = policy->bound->touched(policy)) != NULL) {
        if (!inf_list_empty(&t->idle)) {        /* else it looks anyway      */
            call_locked(runner, t);
            return t;
        }
    }
    return NULL;
}

/* The reason why each of them waits may be over. */
static void
call_all_idle(inf_runner_t *runner)
{
    inf_instance_thread_t *t;

    do {
        t = NULL;
        inf_lock(&runner->lock);
        if (!inf_list_empty(&runner->idle)) {
            t = inf_link_entry(runner->idle.prev, inf_instance_thread_t,
                idle);
            call_locked(runner, t);
        }
        inf_unlock(&runner->lock);
        wake(t);
    } while (t != NULL);
}

static void
call_locked(inf_runner_t *runner, inf_instance_thread_t *t)
{
    inf_link_remove(&t->idle);
    t->called = true;
    runner->called++;
}

/*
 * The idle thread that should look now, NULL: none.  Where requests gather,
 * the one that looks may take them all; it calls the next by itself.
 */
static inf_instance_thread_t *
call_idle_locked(inf_runner_t *runner, uint64_t now_ns)
{
    inf_policy_t *policy = runner->policy;
    if (inf_list_empty(&runner->idle) || policy->bound != NULL) {
        return NULL;
    }

    inf_link_t *link = runner->rate_gate == NULL ? runner->idle.next
        : idle_to_ask_locked(runner);

    if (policy->ops->gathers) {
        uint64_t until_ns = INF_NEVER;

        if (runner->called > 0) {
            return NULL;
        }

        switch (policy->ops->ready(policy, now_ns, &until_ns)) {
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
    call_locked(runner, t);
    return t;
}

/*
 * Where rates are limited, the idle thread that should ask too; NULL: none.
 * That is one whose kin doesn't ask yet, or any if there are more requests
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

    for (inf_link_t *l = first; runner->kin_count > 1 && l != &runner->idle;
        l = l->next)
    {
        const inf_instance_thread_t *t = inf_link_entry(l,
            inf_instance_thread_t, idle);
        if (t->kin->asking == 0) {
            return l;
        }
    }

    return NULL;
}

static void
wake(inf_instance_thread_t *t)
{
    if (t != NULL) {
        inf_waiter_wake(&t->waiter);
    }
}

/* When the timekeeper is to call, if that is news; else INF_NEVER. */
static uint64_t
arm_locked(inf_runner_t *runner)
{
    uint64_t at_ns = runner->policy->deadline_ns;

    if (at_ns >= runner->armed_ns || runner->timekeeper == NULL) {
        return INF_NEVER;
    }

    runner->armed_ns = at_ns;
    return at_ns;
}

static void
arm(inf_runner_t *runner, uint64_t at_ns)
{
    if (at_ns != INF_NEVER) {
        inf_timekeeper_arm(runner->timekeeper, &runner->timer, at_ns);
    }
}

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
        looked_locked(runner, t);
        if (policy->ops->gathers) {
            now = inf_clock_ns();
        }

        const inf_bound_ops_t *bound = policy->bound;
        bool leaves = t->state == INF_THREAD_LEAVES && (bound == NULL
            || runner->stopping || !bound->occupied(policy, t->number));
        bool may_take = inf_rate_seat_may_take(&t->seat);
        inf_next_t next = leaves && !asked ? INF_NEXT_NOTHING
            : may_take ? policy->ops->next(policy, t->number, now, payload,
                &gone, &until_ns)
            : bound != NULL
            ? bound->ready(policy, t->number, now, &until_ns)
            : policy->ops->ready(policy, now, &until_ns);
        bool work = next == INF_NEXT_PAYLOAD || next == INF_NEXT_ASK;
        bool asks = work && !may_take;
        bool ends = (leaves || runner->stopping) && !work;

        if (ends) {
            called = call_idle_locked(runner, now);     /* instead of it     */

        } else if (asks) {
            asking_locked(runner, t);

        } else if (next == INF_NEXT_PAYLOAD) {
            payload_take_locked(runner, payload);
            if (policy->ops->gathers || runner->rate_gate != NULL) {
                called = call_idle_locked(runner, now);
            }

        } else if (!work) {
            link_idle_locked(t);
            until_ns = watch_locked(t, next, until_ns);
        }
        uint64_t at_ns = bound != NULL ? arm_locked(runner) : INF_NEVER;
        inf_unlock(&runner->lock);

        wake(called);
        if (!inf_list_empty(&gone)) {
            inf_reject_gone(&gone);
        }
        if (bound != NULL) {
            arm(runner, at_ns);
            inf_runner_call_touched(runner);
        }

        if (asks) {
            instance_ask(t, now);
            continue;
        }
        if (next == INF_NEXT_PAYLOAD) {
            if (runner->rate_gate != NULL) {
                t->instance = inf_rate_seat_spend(&t->seat);
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

        inf_rate_seat_rest(&t->seat);
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
watch_locked(inf_instance_thread_t *t, inf_next_t next, uint64_t until_ns)
{
    inf_runner_t *runner = t->runner;

    if (next == INF_NEXT_WAIT && runner->policy->bound != NULL) {
        return until_ns;            /* nobody can watch for it               */
    }
    if (next != INF_NEXT_WAIT || until_ns >= runner->watch_ns) {
        return INF_NEVER;
    }

    runner->watch_ns = until_ns;
    t->watching = true;
    return until_ns;
}

/* The thread has come to look, called or by itself. */
static void
looked_locked(inf_runner_t *runner, inf_instance_thread_t *t)
{
    inf_link_remove(&t->idle);
    if (t->called) {
        t->called = false;
        runner->called--;
    }
    if (t->watching) {
        t->watching = false;
        runner->watch_ns = INF_NEVER;
    }
    if (t->asking) {
        t->asking = false;
        runner->asking--;
        t->kin->asking--;
    }
}

static void
asking_locked(inf_runner_t *runner, inf_instance_thread_t *t)
{
    t->asking = true;
    runner->asking++;
    t->kin->asking++;
}

/* For leave; if that takes time another thread may get it sooner. */
static void
instance_ask(inf_instance_thread_t *t, uint64_t now_ns)
{
    inf_runner_t *runner = t->runner;

    if (inf_rate_seat_ask(&t->seat)) {
        return;
    }

    inf_lock(&runner->lock);
    inf_instance_thread_t *called = call_idle_locked(runner, now_ns);
    inf_unlock(&runner->lock);

    wake(called);
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
        if (runner->policy->bound != NULL) {
            req->leaves = request_leaves;
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

    take_inputs(payload);
    if (payload->count > 0 && t->runner->policy->bound != NULL) {
        dress(t, payload);
    }
    if (payload->count == 0) {
        return;
    }

    if (payload->count > t->cap) {
        requests_reserve(t, payload->count);
    }

    do {
        executor->execute(t->instance, t->requests, requests_take(t, payload,
            start_ns));
    } while (!inf_list_empty(&payload->requests));

    t->instance = t->instance->mate;
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
dress(inf_instance_thread_t *t, inf_payload_t *payload)
{
    inf_policy_t *policy = t->runner->policy;
    inf_link_t failed;
    inf_link_t *link;
    inf_link_init(&failed);

    inf_err_t *err = policy->bound->dress(policy, payload, &failed);
    while ((link = inf_list_pop_front(&failed)) != NULL) {
        inf_reject_failed(inf_link_entry(link, inf_request_t, link),
            inf_err_copy(err));
    }
    inf_err_free(err);
}

/* The thread that releases it may be any. */
static void
request_leaves(inf_request_t *req)
{
    inf_runner_t *runner = req->model->runner;
    inf_policy_t *policy = runner->policy;
    inf_link_t gone;
    inf_link_init(&gone);

    inf_lock(&runner->lock);
    policy->bound->released(policy, req, inf_clock_ns(), &gone);
    uint64_t at_ns = arm_locked(runner);
    inf_unlock(&runner->lock);

    arm(runner, at_ns);
    inf_runner_call_touched(runner);
    inf_reject_gone(&gone);
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
