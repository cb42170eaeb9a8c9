#include "core/sched/runtime.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/log.h"
#include "core/sched/refusal.h"
#include "core/tensor/response.h"

#define RUNNER_LOCK_RANK 30
#define RUNNER_QUICK_NS  50000u     /* mean of an execution                  */

typedef struct {
    inf_link_t      idle;       /* in runner->idle while it has no work      */
    bool            called;     /* woken, has not looked yet; runner's lock  */
    bool            watching;   /* looks at watch_ns; runner's lock          */
    bool            asking;     /* for leave; runner's lock                  */
    uint32_t        kin;        /* first thread that needs the same; set in
                                   start(), then constant                    */
    uint32_t        kin_asking; /* of the first: such threads that ask;
                                   runner's lock                             */
    inf_runner_t   *runner;
    inf_instance_t *instance;   /* whose turn it is; the thread's own        */
    inf_waiter_t    waiter;
    inf_rate_seat_t seat;       /* the thread's own                          */
    pthread_t       thread;
    _Atomic bool    leading;    /* relaxed: a hint who is woken first        */
    inf_request_t **requests;   /* of its payload; grows                     */
    uint32_t        cap;
    inf_request_t  *one;        /* the usual array                           */
} inf_instance_thread_t;

struct inf_runner_s {
    inf_lock_t               lock;      /* rank 30; guards down to failure   */
    inf_policy_t            *policy;
    inf_link_t               idle;      /* instance threads, last idle first */
    uint32_t                 called;    /* threads woken, not yet looking    */
    uint32_t                 asking;    /* threads that ask for leave        */
    uint64_t                 watch_ns;  /* an idle thread looks then         */
    uint64_t                 armed_ns;  /* the timekeeper ticks then         */
    uint32_t                 running;   /* requests taken, not yet returned  */
    bool                     closed;    /* refuses new requests              */
    bool                     stopping;  /* idle threads end                  */
    uint32_t                 prepared;  /* threads that are                  */
    inf_err_t               *failure;   /* the first one's                   */
    inf_cond_t               one_more;  /* is prepared                       */

    inf_model_t             *model;     /* set in start(), then constant     */
    const inf_executor_t    *executor;
    uint64_t                 spin_ns;
    const inf_idle_ops_t    *idle_ops;
    void                    *idle_userp;
    inf_err_t             *(*prepare)(void *userp, inf_instance_t *instance);
    void                    *prepare_userp;
    inf_rate_gate_t         *rate_gate;     /* or NULL: nothing is limited   */
    bool                     same_kin;      /* all its threads are           */
    inf_response_order_t    *order;         /* or NULL: as they come         */
    inf_timekeeper_t        *timekeeper;    /* or NULL                       */
    inf_timer_t              timer;
    _Atomic uint64_t         mean_ns;   /* relaxed: of an execution; a hint  */
    inf_instance_thread_t   *threads;
    uint32_t                 thread_count;
    uint32_t                 seat_count;    /* open ones                     */
};

static inf_err_t *runner_start_threads(inf_runner_t *runner,
    const inf_runner_options_t *options);
static uint32_t runner_seat(inf_runner_t *runner, bool device_blocking);
static inf_instance_thread_t *thread_of_device(inf_runner_t *runner,
    uint32_t count, const inf_instance_t *instance);
static inf_err_t *runner_open_seats(inf_runner_t *runner, uint32_t count);
static void runner_wait_prepared(inf_runner_t *runner);
static inf_err_t *runner_take_failure(inf_runner_t *runner);
static void runner_tick(void *userp);
static inf_instance_thread_t *call_idle_locked(inf_runner_t *runner,
    uint64_t now_ns) INF_NEEDS(runner->lock);
static inf_link_t *idle_to_ask_locked(inf_runner_t *runner)
    INF_NEEDS(runner->lock);
static void wake(inf_instance_thread_t *t);
static uint64_t arm_locked(inf_runner_t *runner) INF_NEEDS(runner->lock);
static void arm(inf_runner_t *runner, uint64_t at_ns);
static void *instance_main(void *arg);
static void instance_name_thread(const inf_instance_t *instance);
static void instance_prepare(inf_instance_thread_t *t);
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

inf_err_t *
inf_runner_start(inf_model_t *model, const inf_runner_options_t *options)
{
    inf_runner_t *runner = calloc(1, sizeof(*runner));
    if (runner == NULL) {
        return inf_err_nomem();
    }

    inf_lock_init(&runner->lock, RUNNER_LOCK_RANK);
    inf_cond_init(&runner->one_more);
    inf_link_init(&runner->idle);
    runner->watch_ns = INF_NEVER;
    runner->armed_ns = INF_NEVER;
    runner->model = model;
    runner->executor = options->executor;
    runner->spin_ns = options->spin_ns;
    runner->idle_ops = options->idle;
    runner->idle_userp = options->idle_userp;
    runner->prepare = options->prepare;
    runner->prepare_userp = options->prepare_userp;
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
        err = runner_start_threads(runner, options);
    }
    if (err != NULL) {
        inf_runner_free(runner);
        return err;
    }

    model->runner = runner;
    return NULL;
}

inf_err_t *
inf_runner_submit(inf_runner_t *runner, inf_request_t *req, uint64_t now_ns)
{
    inf_instance_thread_t *called = NULL;
    uint64_t at_ns = INF_NEVER;

    inf_lock(&runner->lock);

    if (runner->closed) {
        inf_unlock(&runner->lock);
        return inf_err_new(INF_ERR_UNAVAILABLE, "Server is stopping, scheduler"
            " for model has stopped accepting new inference requests");
    }

    inf_policy_t *policy = runner->policy;
    inf_err_t *err = policy->ops->push(policy, req, now_ns);
    if (err == NULL) {
        called = call_idle_locked(runner, now_ns);
        at_ns = arm_locked(runner);
    }

    inf_unlock(&runner->lock);

    wake(called);
    arm(runner, at_ns);
    return err;
}

bool
inf_runner_cancel(inf_runner_t *runner, inf_request_t *req)
{
    inf_instance_thread_t *called = NULL;

    inf_lock(&runner->lock);
    inf_policy_t *policy = runner->policy;
    bool unlinked = policy->ops->cancel(policy, req);
    if (unlinked && policy->ops->gathers) {
        called = call_idle_locked(runner, inf_clock_ns());
    }
    inf_unlock(&runner->lock);

    wake(called);
    return unlinked;
}

uint64_t
inf_runner_refuses_at(const inf_runner_t *runner, const inf_request_t *req,
    uint64_t now_ns)
{
    const inf_policy_t *policy = runner->policy;
    return policy->ops->refuses_at != NULL
        ? policy->ops->refuses_at(policy, req, now_ns) : INF_NEVER;
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
inf_runner_queued(inf_runner_t *runner)
{
    inf_lock(&runner->lock);
    uint32_t n = runner->policy->queued;
    inf_unlock(&runner->lock);
    return n;
}

void
inf_runner_close(inf_runner_t *runner)
{
    inf_instance_thread_t *called = NULL;

    inf_lock(&runner->lock);
    runner->closed = true;
    runner->policy->closing = true;
    if (runner->policy->queued > 0) {
        called = call_idle_locked(runner, inf_clock_ns());
    }
    inf_unlock(&runner->lock);

    wake(called);
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
    runner->stopping = true;
    if (runner->policy != NULL) {
        runner->policy->closing = true;
    }
    while (inf_list_pop_front(&runner->idle) != NULL) {
        continue;
    }
    inf_unlock(&runner->lock);

    for (uint32_t i = 0; i < runner->thread_count; i++) {
        inf_waiter_wake(&runner->threads[i].waiter);
    }

    for (uint32_t i = 0; i < runner->thread_count; i++) {
        inf_instance_thread_t *t = &runner->threads[i];
        pthread_join(t->thread, NULL);
        if (t->requests != &t->one) {
            free(t->requests);
        }
    }
    runner->thread_count = 0;

    for (uint32_t i = 0; i < runner->seat_count; i++) {
        inf_rate_seat_close(&runner->threads[i].seat);
    }
    runner->seat_count = 0;
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
    inf_err_free(runner->failure);
    inf_cond_fini(&runner->one_more);
    inf_lock_fini(&runner->lock);
    free(runner->threads);
    free(runner);
}

static inf_err_t *
runner_start_threads(inf_runner_t *runner, const inf_runner_options_t *options)
{
    inf_model_t *model = runner->model;
    runner->threads = calloc(model->instance_count,
        sizeof(*runner->threads));
    if (runner->threads == NULL && model->instance_count > 0) {
        return inf_err_nomem();
    }

    uint32_t count = runner_seat(runner, options->device_blocking);
    inf_err_t *err = runner_open_seats(runner, count);
    if (err != NULL) {
        return err;
    }

    while (runner->thread_count < count) {
        inf_instance_thread_t *t = &runner->threads[runner->thread_count];
        int rc = pthread_create(&t->thread, NULL, instance_main, t);
        if (rc != 0) {
            return inf_err_os(rc, "cannot start the thread of instance \"%s\"",
                t->instance->spec->name);
        }

        runner->thread_count++;
        if (!options->parallel) {
            runner_wait_prepared(runner);
        }
    }

    runner_wait_prepared(runner);
    return runner_take_failure(runner);
}

/* Gives every instance that isn't passive a thread; how many there are. */
static uint32_t
runner_seat(inf_runner_t *runner, bool device_blocking)
{
    inf_model_t *model = runner->model;
    uint32_t count = 0;

    for (uint32_t i = 0; i < model->instance_count; i++) {
        inf_instance_t *instance = &model->instances[i];
        if (instance->spec->passive) {
            continue;
        }

        inf_instance_thread_t *t = device_blocking
            ? thread_of_device(runner, count, instance) : NULL;
        if (t != NULL) {
            inf_instance_t *last = t->instance;
            while (last->mate != t->instance) {
                last = last->mate;
            }
            instance->mate = last->mate;
            last->mate = instance;
            continue;
        }

        instance->mate = instance;
        t = &runner->threads[count++];
        t->runner = runner;
        t->instance = instance;
        t->requests = &t->one;
        t->cap = 1;
        inf_link_init(&t->idle);
        inf_waiter_init(&t->waiter);
    }

    return count;
}

/* The thread that has the instance's GPU already; NULL: none. */
static inf_instance_thread_t *
thread_of_device(inf_runner_t *runner, uint32_t count,
    const inf_instance_t *instance)
{
    if (instance->spec->kind != INF_INSTANCE_GPU) {
        return NULL;
    }

    for (uint32_t i = 0; i < count; i++) {
        const inf_instance_spec_t *spec = runner->threads[i].instance->spec;
        if (spec->kind == INF_INSTANCE_GPU
            && spec->device_id == instance->spec->device_id)
        {
            return &runner->threads[i];
        }
    }

    return NULL;
}

/* Where rates are limited: may what they need be had at all? */
static inf_err_t *
runner_open_seats(inf_runner_t *runner, uint32_t count)
{
    runner->same_kin = true;
    for (uint32_t i = 0; runner->rate_gate != NULL && i < count; i++) {
        inf_instance_thread_t *t = &runner->threads[i];

        inf_err_t *err = inf_rate_seat_open(&t->seat, runner->rate_gate,
            t->instance, &t->waiter);
        if (err != NULL) {
            return err;
        }

        runner->seat_count++;
        while (inf_rate_seat_kin(&runner->threads[t->kin].seat)
            != inf_rate_seat_kin(&t->seat))
        {
            t->kin++;
        }
        runner->same_kin = runner->same_kin && t->kin == 0;
    }

    return NULL;
}

/* Until every thread that was started is prepared. */
static void
runner_wait_prepared(inf_runner_t *runner)
{
    if (runner->prepare == NULL) {
        return;
    }

    inf_lock(&runner->lock);
    while (runner->prepared < runner->thread_count) {
        inf_cond_wait(&runner->one_more, &runner->lock);
    }
    inf_unlock(&runner->lock);
}

static inf_err_t *
runner_take_failure(inf_runner_t *runner)
{
    inf_lock(&runner->lock);
    inf_err_t *err = runner->failure;
    runner->failure = NULL;
    inf_unlock(&runner->lock);
    return err;
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
    inf_refuse_gone(&gone);
}

/*
 * The idle thread that should look now, NULL: none.  Where requests gather,
 * the one that looks may take them all; it calls the next by itself.
 */
static inf_instance_thread_t *
call_idle_locked(inf_runner_t *runner, uint64_t now_ns)
{
    inf_policy_t *policy = runner->policy;
    inf_link_t *link = runner->rate_gate == NULL ? runner->idle.next
        : idle_to_ask_locked(runner);

    if (inf_list_empty(&runner->idle)) {
        return NULL;
    }

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
    inf_link_remove(link);
    t->called = true;
    runner->called++;
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

    for (inf_link_t *l = first; !runner->same_kin && l != &runner->idle;
        l = l->next)
    {
        const inf_instance_thread_t *t = inf_link_entry(l,
            inf_instance_thread_t, idle);
        if (runner->threads[t->kin].kin_asking == 0) {
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

static void *
instance_main(void *arg)
{
    inf_instance_thread_t *t = arg;
    inf_payload_t payload;
    uint64_t start_ns;

    instance_name_thread(t->instance);
    instance_prepare(t);

    while (instance_take(t, &payload, &start_ns)) {
        uint32_t count = payload.count;
        instance_run(t, &payload, start_ns);
        instance_done(t, count, start_ns);
    }

    return NULL;
}

static void
instance_name_thread(const inf_instance_t *instance)
{
    char name[16];
    snprintf(name, sizeof(name), "%s", instance->spec->name);
    pthread_setname_np(pthread_self(), name);
}

/* All instances of the thread, whatever becomes of the first. */
static void
instance_prepare(inf_instance_thread_t *t)
{
    inf_runner_t *runner = t->runner;
    inf_instance_t *instance = t->instance;
    inf_err_t *first = NULL;

    if (runner->prepare == NULL) {
        return;
    }

    do {
        inf_rate_seat_wait(&t->seat, instance);
        inf_err_t *err = runner->prepare(runner->prepare_userp, instance);
        inf_rate_seat_rest(&t->seat);
        if (err != NULL && first == NULL) {
            first = inf_err_add(err, "instance '%s'", instance->spec->name);
        } else {
            inf_err_free(err);
        }
        instance = instance->mate;
    } while (instance != t->instance);

    inf_lock(&runner->lock);
    if (runner->failure == NULL) {
        runner->failure = first;
        first = NULL;
    }
    runner->prepared++;
    inf_unlock(&runner->lock);
    inf_cond_signal(&runner->one_more);
    inf_err_free(first);
}

/* The next payload, its requests EXECUTING; false: the thread ends. */
static bool
instance_take(inf_instance_thread_t *t, inf_payload_t *payload,
    uint64_t *start_ns)
{
    inf_runner_t *runner = t->runner;
    inf_policy_t *policy = runner->policy;
    uint32_t index = (uint32_t) (t - runner->threads);
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

        bool may_take = inf_rate_seat_may_take(&t->seat);
        inf_next_t next = may_take ? policy->ops->next(policy, index, now,
                payload, &gone, &until_ns)
            : policy->ops->ready(policy, now, &until_ns);
        bool work = next == INF_NEXT_PAYLOAD || next == INF_NEXT_ASK;
        bool asks = work && !may_take;
        bool ends = runner->stopping && !work;

        if (asks) {
            asking_locked(runner, t);

        } else if (next == INF_NEXT_PAYLOAD) {
            payload_take_locked(runner, payload);
            if (policy->ops->gathers || runner->rate_gate != NULL) {
                called = call_idle_locked(runner, now);
            }

        } else if (!work && !ends) {
            link_idle_locked(t);
            until_ns = watch_locked(t, next, until_ns);
        }
        inf_unlock(&runner->lock);

        wake(called);
        if (!inf_list_empty(&gone)) {
            inf_refuse_gone(&gone);
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
        if (next == INF_NEXT_ASK) {
            policy->ops->ask(policy);
            continue;
        }

        inf_rate_seat_rest(&t->seat);
        if (ends) {
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
        runner->threads[t->kin].kin_asking--;
    }
}

static void
asking_locked(inf_runner_t *runner, inf_instance_thread_t *t)
{
    t->asking = true;
    runner->asking++;
    runner->threads[t->kin].kin_asking++;
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

    if (payload->count > t->cap) {
        requests_reserve(t, payload->count);
    }

    do {
        executor->execute(t->instance, t->requests, requests_take(t, payload,
            start_ns));
    } while (!inf_list_empty(&payload->requests));

    t->instance = t->instance->mate;
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
