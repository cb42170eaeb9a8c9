/*
 * waiter.h - one thread's place to sleep: a futex word that others set, or an
 *            epoll set with an eventfd that they notify.
 *
 * Owner    the thread that waits; others only wake it.
 * Thread   wait: the owner alone; wake: any.
 * Units    spin in ns.
 * Errors   none: a spurious return is allowed, callers re-check.
 * Route    runtime's instance threads sleep here between payloads.
 */

#ifndef INF_SCHED_WAITER_H
#define INF_SCHED_WAITER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    _Atomic uint32_t word;      /* seq_cst: running, sleeping, polling or
                                   woken                                     */
    _Atomic int      eventfd;   /* relaxed: notified instead while polling; a
                                   thread that woke the owner may still read
                                   this when the owner polls again           */
} inf_waiter_t;

/* Running: a wake before the first wait is not lost. */
void inf_waiter_init(inf_waiter_t *w);

/* Sleeps until woken (a wake since the last wait returns at once); spins
   spin_ns first. */
void inf_waiter_wait(inf_waiter_t *w, uint64_t spin_ns);

/* Without spinning, for at most timeout_ns. */
void inf_waiter_wait_for(inf_waiter_t *w, uint64_t timeout_ns);

/*
 * Around a wait in epoll instead: between the two a wake notifies eventfd,
 * which is in that epoll set.  begin false: the thread was woken already.
 * end true: the thread was woken meanwhile.
 */
bool inf_waiter_poll_begin(inf_waiter_t *w, int eventfd);
bool inf_waiter_poll_end(inf_waiter_t *w);

/* Whether it was woken since it last waited; the owner asks. */
bool inf_waiter_woken(const inf_waiter_t *w);

/* Forgets a wake without waiting. */
void inf_waiter_clear(inf_waiter_t *w);

/* Any thread, any number of times: the next wait returns at once. */
void inf_waiter_wake(inf_waiter_t *w);

#endif /* INF_SCHED_WAITER_H */
