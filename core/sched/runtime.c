/*
 * runtime.c - connects requests and instance threads: a request is queued and
 *             an idle thread is called; a thread takes a payload from the
 *             policy and executes it, or is idle.
 */

#include "core/sched/runtime_parts.h"

#include <assert.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/points.h"
#include "core/model/private_inputs.h"
#include "core/model/string_check.h"
#include "core/sched/rejection.h"
#include "core/tensor/memory.h"

#define RUNNER_QUICK_NS  50000u     /* mean of an execution                  */
#define NOTICE_MAX       512u       /* bytes of a notice                     */

static inf_instance_thread_t *call_one_locked(inf_runner_t *runner,
    uint64_t now_ns) INF_NEEDS(runner->lock);
static inf_link_t *idle_to_ask_locked(inf_runner_t *runner)
    INF_NEEDS(runner->lock);
static bool instance_take(inf_instance_thread_t *t, inf_payload_t *payload,
    uint64_t *start_ns);
static uint64_t watch_locked(inf_runner_t *runner, inf_instance_thread_t *t,
    inf_next_t next, uint64_t until_ns) INF_NEEDS(runner->lock);
static void rest_locked(inf_runner_t *runner, inf_instance_thread_t *t,
    inf_thread_rest_t to) INF_NEEDS(runner->lock);
static void instance_ask(inf_instance_thread_t *t, uint64_t now_ns);
static void payload_take_locked(inf_runner_t *runner, inf_payload_t *payload)
    INF_NEEDS(runner->lock);
static void instance_run(inf_instance_thread_t *t, inf_payload_t *payload,
    uint64_t start_ns);
static void take_inputs(const inf_instance_thread_t *t,
    inf_payload_t *payload);
static int64_t gpu_that_is_read(const inf_instance_t *instance);
static void add_controls(inf_instance_thread_t *t, inf_payload_t *payload);
static uint32_t requests_take(inf_instance_thread_t *t,
    inf_payload_t *payload, uint64_t start_ns);
static void requests_reserve(inf_instance_thread_t *t, uint32_t count);
static void link_idle_locked(inf_instance_thread_t *t);
static void instance_idle(inf_instance_thread_t *t, uint64_t until_ns);
static void instance_done(inf_instance_thread_t *t, uint32_t count,
    uint64_t start_ns);

/* The runner of this instance thread. */
static _Thread_local inf_runner_t *runner_of_thread;

/* ---- submission ---- */

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
        bool named = !runner->policy->ops->binds;   /* as in Triton          */
        inf_unlock(&runner->lock);
        inf_err_t *late = inf_err_new(INF_ERR_UNAVAILABLE, "Server is"
            " stopping, scheduler for model has stopped accepting new"
            " inference requests");
        return named ? inf_request_name_error(req, late) : late;
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
    if (noticed) {                  /* runner may be freed                   */
        inf_log(INF_LOG_WARN, "%s", notice);
    }
    return err;
}

/* The thread to wake for a new request; NULL: none. */
static inf_instance_thread_t *
call_one_locked(inf_runner_t *runner, uint64_t now_ns)
{
    return runner->policy->ops->binds
        ? inf_runner_call_touched_locked(runner)
        : inf_runner_call_idle_locked(runner, now_ns);
}

inf_instance_thread_t *
inf_runner_call_touched_locked(inf_runner_t *runner)
{
    inf_policy_t *policy = runner->policy;
    inf_instance_thread_t *t;

    while ((t = policy->ops->touched(policy)) != NULL) {
        if (!inf_list_empty(&t->idle)) {        /* otherwise it looks anyway */
            inf_runner_call_locked(runner, t);
            return t;
        }
    }
    return NULL;
}

/*
 * If requests gather, one thread may take them all; it calls the next one
 * itself.
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
 * With rate limits, the idle thread that should ask, too; NULL: none.  A thread
 * of a class that does not ask yet, or any thread if there are more requests
 * than asking threads and each may run alone.
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
inf_runner_call_locked(inf_runner_t *runner, inf_instance_thread_t *t)
{
    inf_link_remove(&t->idle);
    rest_locked(runner, t, INF_THREAD_CALLED);
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

void
inf_instance_thread_wake(inf_instance_thread_t *t)
{
    if (t != NULL) {
        inf_waiter_wake(&t->waiter);
    }
}

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

/* ---- instance threads ---- */

void *
inf_instance_thread_main(void *thread)
{
    inf_instance_thread_t *t = thread;
    inf_payload_t payload;
    uint64_t start_ns;

    runner_of_thread = t->runner;
    bool serves = inf_instance_thread_begin(t);

    while (serves && instance_take(t, &payload, &start_ns)) {
        uint32_t count = payload.count;
        instance_run(t, &payload, start_ns);
        instance_done(t, count, start_ns);
    }

    inf_instance_thread_end(t);
    return NULL;
}

/* Takes the next payload, its requests EXECUTING; false: the thread ends. */
static bool
instance_take(inf_instance_thread_t *t, inf_payload_t *payload,
    uint64_t *start_ns)
{
    inf_runner_t *runner = t->runner;
    inf_policy_t *policy = runner->policy;
    bool asked = false;             /* the policy expects the answer         */
    inf_link_t gone;
    inf_link_init(&gone);

    for (;;) {
        inf_instance_thread_t *called = NULL;
        uint64_t until_ns = INF_NEVER;
        uint64_t now = 0;
        inf_payload_init(payload);

        inf_lock(&runner->lock);
        inf_link_remove(&t->idle);  /* woken by a call, or by itself         */
        rest_locked(runner, t, INF_THREAD_UNMARKED);
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
            rest_locked(runner, t, INF_THREAD_ASKS);

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

/* The time until which the idle thread sleeps; the first one with a time
   watches. */
static uint64_t
watch_locked(inf_runner_t *runner, inf_instance_thread_t *t, inf_next_t next,
    uint64_t until_ns)
{
    if (next == INF_NEXT_WAIT && runner->policy->ops->binds) {
        return until_ns;            /* no other thread can watch             */
    }
    if (next != INF_NEXT_WAIT || until_ns >= runner->watch_ns) {
        return INF_NEVER;
    }

    rest_locked(runner, t, INF_THREAD_WATCHES);
    runner->watch_ns = until_ns;
    return until_ns;
}

/* The only function that writes t->rest; updates the runner's counts. */
static void
rest_locked(inf_runner_t *runner, inf_instance_thread_t *t,
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

/* Asks for the rate permit; while it waits, another thread may get one
   sooner. */
static void
instance_ask(inf_instance_thread_t *t, uint64_t now_ns)
{
    inf_runner_t *runner = t->runner;
    uint64_t at_ns = now_ns != 0 ? now_ns : inf_clock_ns();

    if (inf_rate_permit_ask(&t->permit, at_ns)) {
        return;
    }

    inf_lock(&runner->lock);
    inf_instance_thread_t *called = inf_runner_call_idle_locked(runner, now_ns);
    inf_unlock(&runner->lock);

    inf_instance_thread_wake(called);
    instance_idle(t, t->permit.review_ns);
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

/* Executes the payload at once, or in parts if memory is short. */
static void
instance_run(inf_instance_thread_t *t, inf_payload_t *payload,
    uint64_t start_ns)
{
    const inf_executor_t *executor = t->runner->executor;

    INF_POINT(PAYLOAD_TAKEN);
    take_inputs(t, payload);
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

/* Copies input bytes if the model wants private ones or the instance cannot
   read them, and checks strings; done here, in the model's own time. */
static void
take_inputs(const inf_instance_thread_t *t, inf_payload_t *payload)
{
    int64_t gpu = gpu_that_is_read(t->instance);

    for (inf_link_t *l = payload->requests.next; l != &payload->requests; ) {
        inf_request_t *req = inf_link_entry(l, inf_request_t, link);
        l = l->next;

        inf_err_t *failed = inf_private_inputs_make(req, gpu);
        inf_err_t *malformed = failed != NULL ? NULL
            : inf_request_check_strings(req);
        if (failed == NULL && malformed == NULL) {
            continue;
        }

        inf_link_remove(&req->link);
        payload->count--;
        if (malformed != NULL) {
            inf_reject_malformed(req, malformed);
        } else {
            inf_reject_failed(req, failed);
        }
    }
}

/* The GPU whose memory the instance reads, for inf_private_inputs_make; without
   a driver no tensor is on a GPU. */
static int64_t
gpu_that_is_read(const inf_instance_t *instance)
{
    if (inf_memory_driver(inf_memory_shared()) == NULL) {
        return INF_INPUTS_ANY_GPU;
    }
    if (instance->spec->kind != INF_INSTANCE_GPU) {
        return INF_INPUTS_NO_GPU;
    }
    return instance->model->own_gpu_inputs ? instance->spec->device_id
        : INF_INPUTS_ANY_GPU;
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

/* Moves requests from the payload to the thread's array; they are executing
   now. */
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
        atomic_store_explicit(&req->exec_ns, start_ns, memory_order_relaxed);
        atomic_store_explicit(&req->queued_ns, start_ns - req->queue_ns,
            memory_order_relaxed);
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
            " requests; smaller payloads are executed",
            t->instance->model->name, count);
        return;
    }

    if (t->requests != &t->one) {
        free(t->requests);
    }
    t->requests = wider;
    t->cap = cap;
}

/* Links an idle thread first (last idle, warm caches), but behind one that
   holds the intake role, which is cheapest to wake. */
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

/* Holds the intake role if it is free, or sleeps, until woken or until_ns. */
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

bool
inf_runner_is_quick(const inf_runner_t *runner)
{
    uint64_t mean = atomic_load_explicit(&runner->mean_ns,
        memory_order_relaxed);
    return mean != 0 && mean < RUNNER_QUICK_NS;
}
