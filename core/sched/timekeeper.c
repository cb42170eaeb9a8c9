#include "core/sched/timekeeper.h"

#include "core/base/clock.h"
#include "core/base/os/thread.h"

#define TIMEKEEPER_RANK 34

static void *timekeeper_main(void *arg);
static void fire_locked(inf_timekeeper_t *k, inf_timer_t *timer)
    INF_NEEDS(k->lock);

void
inf_timekeeper_init(inf_timekeeper_t *k)
{
    inf_lock_init(&k->lock, TIMEKEEPER_RANK);
    inf_cond_init(&k->changed);
    k->timers = (inf_heap_t) { 0 };
    k->firing = NULL;
    k->stopping = false;
    k->running = false;
}

void
inf_timekeeper_fini(inf_timekeeper_t *k)
{
    inf_lock(&k->lock);
    k->stopping = true;
    bool running = k->running;
    inf_unlock(&k->lock);

    if (running) {
        inf_cond_broadcast(&k->changed);
        pthread_join(k->thread, NULL);
    }

    inf_cond_fini(&k->changed);
    inf_lock_fini(&k->lock);
}

inf_err_t *
inf_timekeeper_add(inf_timekeeper_t *k, inf_timer_t *timer)
{
    inf_err_t *err = NULL;
    timer->node = (inf_heap_node_t) { 0 };

    inf_lock(&k->lock);
    if (!k->running) {
        err = inf_thread_start(&k->thread, "timekeeper", timekeeper_main, k);
        k->running = err == NULL;
    }
    inf_unlock(&k->lock);

    return err;
}

void
inf_timekeeper_arm(inf_timekeeper_t *k, inf_timer_t *timer, uint64_t at_ns)
{
    inf_lock(&k->lock);
    bool earlier = !timer->node.queued || at_ns < timer->node.key;
    bool first = k->timers.top == NULL || at_ns < k->timers.top->key;
    if (earlier) {
        inf_heap_remove(&k->timers, &timer->node);
        inf_heap_push(&k->timers, &timer->node, at_ns);
    }
    inf_unlock(&k->lock);

    if (earlier && first) {
        inf_cond_broadcast(&k->changed);
    }
}

void
inf_timekeeper_remove(inf_timekeeper_t *k, inf_timer_t *timer)
{
    inf_lock(&k->lock);
    while (k->firing == timer) {
        inf_cond_wait(&k->changed, &k->lock);
    }
    inf_heap_remove(&k->timers, &timer->node);
    inf_unlock(&k->lock);
}

static void *
timekeeper_main(void *arg)
{
    inf_timekeeper_t *k = arg;

    inf_lock(&k->lock);
    while (!k->stopping) {
        inf_heap_node_t *first = k->timers.top;

        if (first == NULL) {
            inf_cond_wait(&k->changed, &k->lock);

        } else if (inf_clock_ns() < first->key) {
            inf_cond_wait_until(&k->changed, &k->lock, first->key);

        } else {
            fire_locked(k, inf_heap_entry(first, inf_timer_t, node));
        }
    }
    inf_unlock(&k->lock);
    return NULL;
}

/* Calls the timer's callback with the lock released. */
static void
fire_locked(inf_timekeeper_t *k, inf_timer_t *timer)
{
    inf_heap_remove(&k->timers, &timer->node);
    k->firing = timer;
    inf_unlock(&k->lock);

    timer->fire(timer->userp);

    inf_lock(&k->lock);
    k->firing = NULL;
    inf_cond_broadcast(&k->changed);
}
