#include "core/base/lock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define LOCK_MAX_HELD 16

/* Ranks of the locks held by this thread, in the order taken. */
typedef struct {
    uint32_t count;
    uint32_t rank[LOCK_MAX_HELD];
} lock_held_t;

/* The few bytes fit the reserve that every loader has in the static TLS block;
   access needs no call, also from a shared library. */
__attribute__((tls_model("initial-exec")))
static _Thread_local lock_held_t lock_held;

static void lock_push_rank(uint32_t rank);
static void lock_pop_rank(uint32_t rank);
static void lock_drop_rank(lock_held_t *held, uint32_t rank);
static void lock_die(const char *what, int rc);
static void lock_check(const char *what, int rc);

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
    uint32_t rank = l->rank;        /* another thread may free l at once     */

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
    lock_held_t *held = &lock_held;
    uint32_t n = held->count;

    if (n == LOCK_MAX_HELD || (n > 0 && held->rank[n - 1] >= rank)) {
        fprintf(stderr, "lock of rank %u taken while holding rank %u\n",
            rank, held->rank[n - 1]);
        abort();
    }

    held->rank[n] = rank;
    held->count = n + 1;
}

static void
lock_pop_rank(uint32_t rank)
{
    lock_held_t *held = &lock_held;
    uint32_t n = held->count;

    if (n != 0 && held->rank[n - 1] == rank) {
        held->count = n - 1;
    } else {
        lock_drop_rank(held, rank);
    }
}

/* Removes a rank that is not the last one. */
static void
lock_drop_rank(lock_held_t *held, uint32_t rank)
{
    uint32_t i = held->count;

    while (i != 0 && held->rank[i - 1] != rank) {
        i--;
    }

    if (i == 0) {
        fprintf(stderr, "lock of rank %u given up without holding it\n",
            rank);
        abort();
    }

    for (held->count--; i <= held->count; i++) {
        held->rank[i - 1] = held->rank[i];
    }
}

/* Ends the process: a failing mutex call is a bug, and continuing would corrupt
   data. */
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
