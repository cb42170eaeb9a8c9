#include "core/sched/runtime.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/log.h"
#include "core/sched/default_scheduler.h"
#include "core/sched/waiter.h"

#define RUNNER_LOCK_RANK 30
#define RUNNER_QUICK_NS  50000u     /* mean of an execution                  */

typedef struct {
    inf_link_t      idle;       /* in runner->idle while it has no work      */
    inf_runner_t   *runner;
    inf_instance_t *instance;   /* whose turn it is; the thread's own        */
    inf_waiter_t    waiter;
    pthread_t       thread;
    _Atomic bool    leading;    /* relaxed: a hint who is woken first        */
} inf_instance_thread_t;

struct inf_runner_s {
    inf_lock_t               lock;      /* rank 30; guards down to failure   */
    inf_default_scheduler_t  policy;
    inf_link_t               idle;      /* instance threads, last idle first */
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
    _Atomic uint64_t         mean_ns;   /* relaxed: of an execution; a hint  */
    inf_instance_thread_t   *threads;
    uint32_t                 thread_count;
};

static inf_err_t *runner_start_threads(inf_runner_t *runner,
    const inf_runner_options_t *options);
static uint32_t runner_seat(inf_runner_t *runner, bool device_blocking);
static inf_instance_thread_t *thread_of_device(inf_runner_t *runner,
    uint32_t count, const inf_instance_t *instance);
static void runner_wait_prepared(inf_runner_t *runner);
static inf_err_t *runner_take_failure(inf_runner_t *runner);
static void *instance_main(void *arg);
static void instance_name_thread(const inf_instance_t *instance);
static void instance_prepare(inf_instance_thread_t *t);
static inf_request_t *instance_take(inf_instance_thread_t *t);
static void link_idle_locked(inf_instance_thread_t *t);
static void instance_idle(inf_instance_thread_t *t);
static void instance_done(inf_instance_thread_t *t, uint64_t start_ns);

inf_err_t *
inf_runner_start(inf_model_t *model, const inf_runner_options_t *options)
{
    inf_runner_t *runner = calloc(1, sizeof(*runner));
    if (runner == NULL) {
        return inf_err_nomem();
    }

    inf_lock_init(&runner->lock, RUNNER_LOCK_RANK);
    inf_cond_init(&runner->one_more);
    inf_default_scheduler_init(&runner->policy, 0);
    inf_link_init(&runner->idle);
    runner->model = model;
    runner->executor = options->executor;
    runner->spin_ns = options->spin_ns;
    runner->idle_ops = options->idle;
    runner->idle_userp = options->idle_userp;
    runner->prepare = options->prepare;
    runner->prepare_userp = options->prepare_userp;

    inf_err_t *err = runner_start_threads(runner, options);
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
    inf_instance_thread_t *wake = NULL;

    inf_lock(&runner->lock);

    if (runner->closed) {
        inf_unlock(&runner->lock);
        return inf_err_new(INF_ERR_UNAVAILABLE, "Server is stopping, scheduler"
            " for model has stopped accepting new inference requests");
    }

    inf_err_t *err = inf_default_scheduler_push(&runner->policy, req, now_ns);
    if (err == NULL) {
        inf_link_t *link = inf_list_pop_front(&runner->idle);
        if (link != NULL) {
            wake = inf_link_entry(link, inf_instance_thread_t, idle);
        }
    }

    inf_unlock(&runner->lock);

    if (wake != NULL) {
        inf_waiter_wake(&wake->waiter);
    }

    return err;
}

bool
inf_runner_cancel(inf_runner_t *runner, inf_request_t *req)
{
    inf_lock(&runner->lock);
    bool unlinked = inf_default_scheduler_cancel(&runner->policy, req);
    inf_unlock(&runner->lock);
    return unlinked;
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
    uint32_t n = runner->policy.queued + runner->running;
    inf_unlock(&runner->lock);
    return n;
}

uint32_t
inf_runner_queued(inf_runner_t *runner)
{
    inf_lock(&runner->lock);
    uint32_t n = runner->policy.queued;
    inf_unlock(&runner->lock);
    return n;
}

void
inf_runner_close(inf_runner_t *runner)
{
    inf_lock(&runner->lock);
    runner->closed = true;
    inf_unlock(&runner->lock);
}

inf_request_t *
inf_runner_take_queued(inf_runner_t *runner)
{
    inf_lock(&runner->lock);
    inf_request_t *req = runner->closed
        ? inf_default_scheduler_next(&runner->policy) : NULL;
    inf_unlock(&runner->lock);
    return req;
}

void
inf_runner_stop(inf_runner_t *runner)
{
    inf_lock(&runner->lock);
    runner->closed = true;
    runner->stopping = true;
    while (inf_list_pop_front(&runner->idle) != NULL) {
        continue;
    }
    inf_unlock(&runner->lock);

    for (uint32_t i = 0; i < runner->thread_count; i++) {
        inf_waiter_wake(&runner->threads[i].waiter);
    }

    for (uint32_t i = 0; i < runner->thread_count; i++) {
        pthread_join(runner->threads[i].thread, NULL);
    }
    runner->thread_count = 0;
}

void
inf_runner_free(inf_runner_t *runner)
{
    if (runner == NULL) {
        return;
    }

    inf_runner_stop(runner);
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

static void *
instance_main(void *arg)
{
    inf_instance_thread_t *t = arg;
    instance_name_thread(t->instance);
    instance_prepare(t);

    for (;;) {
        inf_request_t *req = instance_take(t);
        if (req == NULL) {
            return NULL;
        }

        uint64_t start = req->exec_ns;
        t->runner->executor->execute(t->instance, &req, 1);
        t->instance = t->instance->mate;
        instance_done(t, start);
    }
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
        inf_err_t *err = runner->prepare(runner->prepare_userp, instance);
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

/* The next request, state EXECUTING; NULL: the thread ends. */
static inf_request_t *
instance_take(inf_instance_thread_t *t)
{
    inf_runner_t *runner = t->runner;

    for (;;) {
        inf_lock(&runner->lock);
        inf_link_remove(&t->idle);

        inf_request_t *req = inf_default_scheduler_next(&runner->policy);
        if (req != NULL) {
            inf_request_move(req, INF_REQUEST_EXECUTING);
            runner->running++;
            inf_unlock(&runner->lock);

            req->exec_ns = inf_clock_ns();
            if (runner->idle_ops != NULL) {
                runner->idle_ops->leave(runner->idle_userp, runner);
            }
            if (req->ops->executing != NULL) {
                req->ops->executing(req->userp, req);
            }
            return req;
        }

        if (runner->stopping) {
            inf_unlock(&runner->lock);
            return NULL;
        }

        link_idle_locked(t);
        inf_unlock(&runner->lock);
        instance_idle(t);
    }
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

/* Leads if nobody does, else sleeps, until there may be work. */
static void
instance_idle(inf_instance_thread_t *t)
{
    inf_runner_t *runner = t->runner;
    const inf_idle_ops_t *ops = runner->idle_ops;

    if (ops != NULL) {
        atomic_store_explicit(&t->leading, true, memory_order_relaxed);
        bool work = ops->lead(runner->idle_userp, runner, &t->waiter);
        atomic_store_explicit(&t->leading, false, memory_order_relaxed);
        if (work) {
            inf_waiter_clear(&t->waiter);
            return;
        }
    }

    inf_waiter_wait(&t->waiter, runner->spin_ns);
}

static void
instance_done(inf_instance_thread_t *t, uint64_t start_ns)
{
    inf_runner_t *runner = t->runner;
    uint64_t took = inf_clock_ns() - start_ns;
    uint64_t mean = atomic_load_explicit(&runner->mean_ns,
        memory_order_relaxed);

    mean = mean == 0 ? took : mean - mean / 8 + took / 8;
    atomic_store_explicit(&runner->mean_ns, mean, memory_order_relaxed);

    inf_lock(&runner->lock);
    runner->running--;
    inf_unlock(&runner->lock);
}
