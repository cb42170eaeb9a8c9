/*
 * lock.h - a mutex with a rank, and a condition on the monotonic clock.
 *
 * Owner    The owner of the memory: init, use, fini.
 * Thread   any.
 * Units    Ranks are small numbers; deadlines are ns on CLOCK_MONOTONIC.
 * Errors   Misuse is a bug: a thread that takes a lock whose rank is not above
 *          all held ones aborts, as an assert does.
 * Route    beside the fields a lock guards; clang's -Wthread-safety checks the
 *          annotations, other compilers ignore them.
 */

#ifndef INF_BASE_LOCK_H
#define INF_BASE_LOCK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#if defined(__clang__)
#define INF_ANNOTATE(x) __attribute__((x))
#else
#define INF_ANNOTATE(x)
#endif

#define INF_NEEDS(lock)     INF_ANNOTATE(requires_capability(lock))
#define INF_TAKES(lock)     INF_ANNOTATE(acquire_capability(lock))
#define INF_GIVES(lock)     INF_ANNOTATE(release_capability(lock))
#define INF_UNCHECKED_LOCKS INF_ANNOTATE(no_thread_safety_analysis)

/* Last in the order; the ranks of all other locks are lower. */
#define INF_RANK_CHANNEL_RING  90u
#define INF_RANK_CHANNEL_ARENA 95u

typedef struct INF_ANNOTATE(capability("mutex")) inf_lock_s {
    pthread_mutex_t mutex;              /* guards the fields named by its
                                           owner                            */
    uint32_t        rank;               /* set in init()                    */
} inf_lock_t;

typedef struct {
    pthread_cond_t cond;
} inf_cond_t;

/* rank: higher than those of all locks that may be held when this one is
   taken. */
void inf_lock_init(inf_lock_t *l, uint32_t rank);
void inf_lock_fini(inf_lock_t *l);

/* lock aborts unless its rank is higher than those of all locks held. */
void inf_lock(inf_lock_t *l) INF_TAKES(*l);
void inf_unlock(inf_lock_t *l) INF_GIVES(*l);

/* Conditions use the monotonic clock. */
void inf_cond_init(inf_cond_t *c);
void inf_cond_fini(inf_cond_t *c);
void inf_cond_signal(inf_cond_t *c);
void inf_cond_broadcast(inf_cond_t *c);

/* Releases the lock while waiting; it is held again on return. */
void inf_cond_wait(inf_cond_t *c, inf_lock_t *l) INF_NEEDS(*l);

/* Waits likewise; false: deadline_ns has passed. */
bool inf_cond_wait_until(inf_cond_t *c, inf_lock_t *l, uint64_t deadline_ns)
    INF_NEEDS(*l);

#endif /* INF_BASE_LOCK_H */
