/*
 * instance_threads.c - adds and removes threads of a runner: new threads are
 *                      prepared and held until they are admitted, removed
 *                      threads end after their present work.
 */

#include "core/base/os/thread.h"
#include "core/sched/runtime_parts.h"

#include <pthread.h>
#include <stdlib.h>

/* Threads added together; on the adder's stack. */
typedef struct inf_new_threads_s {
    inf_err_t *(*prepare)(void *userp, inf_instance_t *instance);
    void        *userp;
    inf_link_t   threads;
    uint32_t     started;
    uint32_t     prepared;          /* runner's lock, like failure           */
    inf_err_t   *failure;           /* the first failure                     */
} threads_t;

static inf_err_t *assign_threads(inf_runner_t *runner, threads_t *fresh,
    inf_instance_t *const *instances, uint32_t count, bool device_blocking);
static inf_instance_thread_t *thread_of_device(const threads_t *fresh,
    const inf_instance_t *instance);
static void join_ring(inf_instance_thread_t *t, inf_instance_t *instance);
static inf_instance_thread_t *thread_new(inf_runner_t *runner);
static inf_err_t *open_permits(inf_runner_t *runner, const threads_t *fresh);
static inf_err_t *attach_all(inf_runner_t *runner, const threads_t *fresh);
static inf_err_t *join_class(inf_runner_t *runner, inf_instance_thread_t *t);
static void leave_class(inf_runner_t *runner, inf_instance_thread_t *t);
static inf_err_t *start_held(inf_runner_t *runner, threads_t *fresh,
    bool parallel);
static void wait_prepared(inf_runner_t *runner, const threads_t *fresh);
static void move_threads(inf_link_t *to, inf_link_t *from);
static void tell_to_leave(inf_runner_t *runner, const inf_link_t *threads);
static uint32_t first_ended(inf_instance_t *const *instances, uint32_t count);
static inf_err_t *prepare_all(inf_instance_thread_t *t);
static void thread_end(inf_runner_t *runner, inf_instance_thread_t *t);

inf_err_t *
inf_runner_add(inf_runner_t *runner, inf_instance_t *const *instances,
    uint32_t count, const inf_runner_options_t *options)
{
    threads_t fresh = {
        .prepare = options->prepare, .userp = options->prepare_userp
    };
    inf_link_init(&fresh.threads);

    inf_err_t *err = assign_threads(runner, &fresh, instances, count,
        options->device_blocking);
    if (err == NULL) {
        err = open_permits(runner, &fresh);
    }
    if (err == NULL) {
        err = attach_all(runner, &fresh);
    }
    if (err == NULL) {
        err = start_held(runner, &fresh, options->parallel);
    }

    wait_prepared(runner, &fresh);
    if (err == NULL) {
        err = fresh.failure;
    } else {
        inf_err_free(fresh.failure);
    }
    if (err != NULL) {
        tell_to_leave(runner, &fresh.threads);
        inf_runner_end_threads(runner, &fresh.threads);
        return err;
    }

    inf_lock(&runner->lock);
    move_threads(&runner->threads, &fresh.threads);
    inf_unlock(&runner->lock);
    return NULL;
}

void
inf_runner_admit(inf_runner_t *runner)
{
    inf_policy_t *policy = runner->policy;

    inf_lock(&runner->lock);
    for (inf_link_t *l = runner->threads.next; l != &runner->threads;
        l = l->next)
    {
        inf_instance_thread_t *t = inf_link_entry(l, inf_instance_thread_t,
            link);
        if (t->state == INF_THREAD_HELD) {
            t->state = INF_THREAD_SERVES;
            policy->ops->open(policy, t->number);
        }
    }
    inf_unlock(&runner->lock);
    inf_cond_broadcast(&runner->moved);
    inf_runner_call_touched(runner);
}

void
inf_runner_dismiss(inf_runner_t *runner, inf_instance_t *const *instances,
    uint32_t count)
{
    inf_policy_t *policy = runner->policy;

    inf_lock(&runner->lock);
    for (uint32_t i = 0; i < count; i++) {
        inf_instance_thread_t *t = instances[i]->sched.thread;
        if (t != NULL) {
            t->state = INF_THREAD_LEAVES;
            inf_link_remove(&t->idle);
            policy->ops->retire(policy, t->number);
        }
    }
    inf_unlock(&runner->lock);

    inf_cond_broadcast(&runner->moved);
    for (uint32_t i = 0; i < count; i++) {
        inf_instance_thread_t *t = instances[i]->sched.thread;
        if (t != NULL) {
            inf_waiter_wake(&t->waiter);
        }
    }
}

void
inf_runner_collect(inf_runner_t *runner, inf_instance_t *const *instances,
    uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        inf_instance_thread_t *t = instances[i]->sched.thread;
        if (t == NULL) {                /* passive, or removed with its
                                           peers                             */
            continue;
        }

        inf_lock(&runner->lock);
        inf_link_remove(&t->link);
        inf_unlock(&runner->lock);
        thread_end(runner, t);
    }
}

uint32_t
inf_runner_collect_next(inf_runner_t *runner, inf_instance_t *const *instances,
    uint32_t count)
{
    inf_lock(&runner->lock);
    uint32_t i = first_ended(instances, count);
    while (i == count) {
        inf_cond_wait(&runner->moved, &runner->lock);
        i = first_ended(instances, count);
    }
    inf_unlock(&runner->lock);

    inf_runner_collect(runner, &instances[i], 1);
    return i;
}

void
inf_instance_thread_end(inf_instance_thread_t *t)
{
    inf_lock(&t->runner->lock);
    t->state = INF_THREAD_ENDED;
    inf_cond_broadcast(&t->runner->moved);
    inf_unlock(&t->runner->lock);
}

bool
inf_instance_thread_begin(inf_instance_thread_t *t)
{
    inf_runner_t *runner = t->runner;
    const inf_policy_t *policy = runner->policy;
    threads_t *fresh = t->fresh;
    inf_err_t *err = NULL;

    if (fresh != NULL) {
        err = prepare_all(t);
    }

    inf_lock(&runner->lock);
    if (fresh != NULL) {
        if (fresh->failure == NULL) {
            fresh->failure = err;
            err = NULL;
        }
        fresh->prepared++;               /* fresh may be freed after the
                                            lock                             */
        t->fresh = NULL;
        inf_cond_broadcast(&runner->moved);
    }
    while (t->state == INF_THREAD_HELD && !runner->stopping) {
        inf_cond_wait(&runner->moved, &runner->lock);
    }
    /* if dismissed meanwhile, it finishes the work it was given */
    bool serves = t->state == INF_THREAD_SERVES
        || (t->state == INF_THREAD_LEAVES
            && policy->ops->occupied(policy, t->number));
    inf_unlock(&runner->lock);

    inf_err_free(err);
    return serves;
}

void
inf_runner_end_threads(inf_runner_t *runner, inf_link_t *threads)
{
    inf_link_t *link;

    inf_cond_broadcast(&runner->moved);
    for (inf_link_t *l = threads->next; l != threads; l = l->next) {
        inf_waiter_wake(&inf_link_entry(l, inf_instance_thread_t,
            link)->waiter);
    }

    while ((link = inf_list_pop_front(threads)) != NULL) {
        thread_end(runner, inf_link_entry(link, inf_instance_thread_t, link));
    }
}

void
inf_runner_free_threads(inf_runner_t *runner)
{
    inf_link_t *link;

    while ((link = inf_list_pop_front(&runner->spares)) != NULL) {
        inf_instance_thread_t *t = inf_link_entry(link, inf_instance_thread_t,
            link);
        if (t->requests != &t->one) {
            free(t->requests);
        }
        free(t);
    }
}

/* Gives every instance that is not passive a held thread. */
static inf_err_t *
assign_threads(inf_runner_t *runner, threads_t *fresh,
    inf_instance_t *const *instances, uint32_t count, bool device_blocking)
{
    for (uint32_t i = 0; i < count; i++) {
        inf_instance_t *instance = instances[i];
        instance->sched.peer = instance;
        instance->sched.thread = NULL;
        if (instance->spec->passive) {
            continue;
        }

        inf_instance_thread_t *t = device_blocking
            ? thread_of_device(fresh, instance) : NULL;
        if (t != NULL) {
            join_ring(t, instance);
            continue;
        }

        t = thread_new(runner);
        if (t == NULL) {
            return inf_err_nomem();
        }
        t->instance = instance;
        t->instances = 1;
        instance->sched.thread = t;
        inf_list_push_back(&fresh->threads, &t->link);
    }

    return NULL;
}

/* The new thread of the same GPU; NULL: none. */
static inf_instance_thread_t *
thread_of_device(const threads_t *fresh, const inf_instance_t *instance)
{
    if (instance->spec->kind != INF_INSTANCE_GPU) {
        return NULL;
    }

    for (inf_link_t *l = fresh->threads.next; l != &fresh->threads; l = l->next)
    {
        inf_instance_thread_t *t = inf_link_entry(l, inf_instance_thread_t,
            link);
        const inf_instance_spec_t *spec = t->instance->spec;
        if (spec->kind == INF_INSTANCE_GPU
            && spec->device_id == instance->spec->device_id)
        {
            return t;
        }
    }

    return NULL;
}

static void
join_ring(inf_instance_thread_t *t, inf_instance_t *instance)
{
    inf_instance_t *last = t->instance;

    while (last->sched.peer != t->instance) {
        last = last->sched.peer;
    }
    instance->sched.peer = last->sched.peer;
    last->sched.peer = instance;
    instance->sched.thread = t;
    t->instances++;
}

static inf_instance_thread_t *
thread_new(inf_runner_t *runner)
{
    inf_lock(&runner->lock);
    inf_link_t *spare = inf_list_pop_front(&runner->spares);
    inf_unlock(&runner->lock);

    inf_instance_thread_t *t = spare != NULL
        ? inf_link_entry(spare, inf_instance_thread_t, link)
        : calloc(1, sizeof(*t));
    if (t == NULL) {
        return NULL;
    }

    if (spare == NULL) {
        inf_link_init(&t->link);
        inf_link_init(&t->idle);
        inf_waiter_init(&t->waiter);    /* once: another thread may be waking
                                           it                                */
        t->requests = &t->one;
        t->cap = 1;
    }

    t->runner = runner;
    t->state = INF_THREAD_HELD;
    t->number = ++runner->last_number;
    t->permit = (inf_rate_permit_t) { .gate = NULL };
    return t;
}

/* Opens permits; fails if needs of instances cannot be met. */
static inf_err_t *
open_permits(inf_runner_t *runner, const threads_t *fresh)
{
    inf_err_t *err = NULL;

    for (inf_link_t *l = fresh->threads.next; runner->rate_gate != NULL
        && err == NULL && l != &fresh->threads; l = l->next)
    {
        inf_instance_thread_t *t = inf_link_entry(l, inf_instance_thread_t,
            link);

        err = inf_rate_permit_open(&t->permit, runner->rate_gate, t->instance,
            &t->waiter);
        if (err == NULL) {
            err = join_class(runner, t);
        }
    }

    return err;
}

/* Attaches the instances to the policy. */
static inf_err_t *
attach_all(inf_runner_t *runner, const threads_t *fresh)
{
    inf_policy_t *policy = runner->policy;
    inf_err_t *err = NULL;

    for (inf_link_t *l = fresh->threads.next; err == NULL
        && l != &fresh->threads; l = l->next)
    {
        inf_instance_thread_t *t = inf_link_entry(l, inf_instance_thread_t,
            link);

        inf_lock(&runner->lock);
        err = policy->ops->attach(policy, t->number, t->instance, t);
        inf_unlock(&runner->lock);
    }

    return err;
}

static inf_err_t *
join_class(inf_runner_t *runner, inf_instance_thread_t *t)
{
    const void *id = inf_rate_permit_class(&t->permit);
    inf_resource_class_t *class = calloc(1, sizeof(*class));
    if (class == NULL) {
        return inf_err_nomem();
    }
    class->id = id;

    inf_lock(&runner->lock);
    for (inf_link_t *l = runner->classes.next; l != &runner->classes;
        l = l->next)
    {
        inf_resource_class_t *other = inf_link_entry(l, inf_resource_class_t,
            link);
        if (other->id == id) {
            t->class = other;
        }
    }
    if (t->class == NULL) {
        t->class = class;
        inf_list_push_back(&runner->classes, &class->link);
        runner->class_count++;
        class = NULL;
    }
    t->class->threads++;
    inf_unlock(&runner->lock);

    free(class);
    return NULL;
}

static void
leave_class(inf_runner_t *runner, inf_instance_thread_t *t)
{
    inf_resource_class_t *class = t->class;
    if (class == NULL) {
        return;
    }

    t->class = NULL;
    inf_lock(&runner->lock);
    bool last = --class->threads == 0;
    if (last) {
        inf_link_remove(&class->link);
        runner->class_count--;
    }
    inf_unlock(&runner->lock);

    if (last) {
        free(class);
    }
}

static inf_err_t *
start_held(inf_runner_t *runner, threads_t *fresh, bool parallel)
{
    for (inf_link_t *l = fresh->threads.next; l != &fresh->threads; l = l->next)
    {
        inf_instance_thread_t *t = inf_link_entry(l, inf_instance_thread_t,
            link);

        t->fresh = fresh->prepare != NULL ? fresh : NULL;
        inf_err_t *err = inf_thread_start(&t->thread, t->instance->spec->name,
            inf_instance_thread_main, t);
        if (err != NULL) {
            return err;
        }

        t->started = true;
        fresh->started += fresh->prepare != NULL;
        if (!parallel) {
            wait_prepared(runner, fresh);
        }
    }

    return NULL;
}

/* Waits until every started thread is prepared. */
static void
wait_prepared(inf_runner_t *runner, const threads_t *fresh)
{
    inf_lock(&runner->lock);
    while (fresh->prepared < fresh->started) {
        inf_cond_wait(&runner->moved, &runner->lock);
    }
    inf_unlock(&runner->lock);
}

static void
move_threads(inf_link_t *to, inf_link_t *from)
{
    inf_link_t *link;

    while ((link = inf_list_pop_front(from)) != NULL) {
        inf_list_push_back(to, link);
    }
}

static void
tell_to_leave(inf_runner_t *runner, const inf_link_t *threads)
{
    inf_lock(&runner->lock);
    for (inf_link_t *l = threads->next; l != threads; l = l->next) {
        inf_link_entry(l, inf_instance_thread_t, link)->state
            = INF_THREAD_LEAVES;
    }
    inf_unlock(&runner->lock);
}

/* The place of the first instance without a thread that runs; count: none. */
static uint32_t
first_ended(inf_instance_t *const *instances, uint32_t count)
{
    uint32_t i = 0;

    while (i < count && instances[i]->sched.thread != NULL
        && instances[i]->sched.thread->state != INF_THREAD_ENDED)
    {
        i++;
    }
    return i;
}

/* Prepares all instances of the thread, even after a failure. */
static inf_err_t *
prepare_all(inf_instance_thread_t *t)
{
    inf_instance_t *instance = t->instance;
    inf_err_t *first = NULL;

    do {
        inf_rate_permit_wait(&t->permit, instance);
        inf_err_t *err = t->fresh->prepare(t->fresh->userp, instance);
        inf_rate_permit_return(&t->permit);
        if (err != NULL && first == NULL) {
            first = inf_err_note(err, "instance '%s'", instance->spec->name);
        } else {
            inf_err_free(err);
        }
        instance = instance->sched.peer;
    } while (instance != t->instance);

    return first;
}

static void
thread_end(inf_runner_t *runner, inf_instance_thread_t *t)
{
    if (t->started) {
        pthread_join(t->thread, NULL);
        t->started = false;
    }

    inf_rate_permit_close(&t->permit);
    leave_class(runner, t);
    for (inf_instance_t *i = t->instance; i != NULL && i->sched.thread != NULL;
        i = i->sched.peer)
    {
        i->sched.thread = NULL;
    }
    t->instance = NULL;

    inf_policy_t *policy = runner->policy;
    inf_lock(&runner->lock);
    if (policy != NULL) {
        policy->ops->detach(policy, t->number);
    }
    inf_list_push_back(&runner->spares, &t->link);
    inf_unlock(&runner->lock);
}
