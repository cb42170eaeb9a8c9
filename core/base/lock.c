#include "core/base/lock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOCK_MAX_HELD 16

static void lock_push_rank(uint32_t rank);
static void lock_pop_rank(uint32_t rank);
static void lock_die(const char *what, int rc);
static void lock_check(const char *what, int rc);

/* Ranks this thread holds, in the order taken. */
static _Thread_local uint32_t lock_held[LOCK_MAX_HELD];
static _Thread_local uint32_t lock_held_count;

void
inf_lock_init(inf_lock_t *l, uint32_t rank)
{
    lock_check("pthread_mutex_init", pthread_mutex_init(&l->mutex, NULL));
    l->rank = rank;
}

void
inf_lock_fini(inf_lock_t *l)
{
    lock_check("pthread_mutex_destroy", pthread_mutex_destroy(&l->mutex));
}

void
inf_lock(inf_lock_t *l) INF_UNCHECKED_LOCKS
{
    lock_push_rank(l->rank);
    lock_check("pthread_mutex_lock", pthread_mutex_lock(&l->mutex));
}

void
inf_unlock(inf_lock_t *l) INF_UNCHECKED_LOCKS
{
    uint32_t rank = l->rank;        /* another may free the lock at once     */

    lock_check("pthread_mutex_unlock", pthread_mutex_unlock(&l->mutex));
    lock_pop_rank(rank);
}

void
inf_cond_init(inf_cond_t *c)
{
    pthread_condattr_t attr;
    lock_check("pthread_condattr_init", pthread_condattr_init(&attr));
    lock_check("pthread_condattr_setclock",
        pthread_condattr_setclock(&attr, CLOCK_MONOTONIC));
    lock_check("pthread_cond_init", pthread_cond_init(&c->cond, &attr));
    pthread_condattr_destroy(&attr);
}

void
inf_cond_fini(inf_cond_t *c)
{
    lock_check("pthread_cond_destroy", pthread_cond_destroy(&c->cond));
}

void
inf_cond_signal(inf_cond_t *c)
{
    lock_check("pthread_cond_signal", pthread_cond_signal(&c->cond));
}

void
inf_cond_broadcast(inf_cond_t *c)
{
    lock_check("pthread_cond_broadcast", pthread_cond_broadcast(&c->cond));
}

void
inf_cond_wait(inf_cond_t *c, inf_lock_t *l) INF_UNCHECKED_LOCKS
{
    lock_check("pthread_cond_wait", pthread_cond_wait(&c->cond, &l->mutex));
}

bool
inf_cond_wait_until(inf_cond_t *c, inf_lock_t *l, uint64_t deadline_ns)
    INF_UNCHECKED_LOCKS
{
    struct timespec ts = {
        .tv_sec = (time_t) (deadline_ns / 1000000000u),
        .tv_nsec = (long) (deadline_ns % 1000000000u)
    };

    int rc = pthread_cond_timedwait(&c->cond, &l->mutex, &ts);
    if (rc == ETIMEDOUT) {
        return false;
    }

    lock_check("pthread_cond_timedwait", rc);
    return true;
}

static void
lock_push_rank(uint32_t rank)
{
    uint32_t n = lock_held_count;

    if (n == LOCK_MAX_HELD || (n > 0 && lock_held[n - 1] >= rank)) {
        fprintf(stderr, "lock of rank %u taken while holding rank %u\n",
            rank, lock_held[n - 1]);
        abort();
    }

    lock_held[n] = rank;
    lock_held_count = n + 1;
}

static void
lock_pop_rank(uint32_t rank)
{
    for (uint32_t i = lock_held_count; i-- > 0; ) {
        if (lock_held[i] == rank) {
            lock_held_count--;
            memmove(&lock_held[i], &lock_held[i + 1],
                (lock_held_count - i) * sizeof(lock_held[0]));
            return;
        }
    }

    fprintf(stderr, "lock of rank %u given up without holding it\n", rank);
    abort();
}

/* A failing mutex call is a bug of ours; going on would corrupt. */
static void
lock_die(const char *what, int rc)
{
    fprintf(stderr, "%s: error %d\n", what, rc);
    abort();
}

static void
lock_check(const char *what, int rc)
{
    if (rc != 0) {
        lock_die(what, rc);
    }
}
