/*
 * waiter.h - the sleep of one thread: in a futex, or in an epoll set with an
 *            eventfd.
 *
 * Owner    The waiting thread; others only wake it.
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
    _Atomic int      eventfd;   /* relaxed: notified while polling; a waking
                                   thread may still read it when the owner
                                   polls again                               */
} inf_waiter_t;

/* Initializes w as running: a wake before the first wait is not lost. */
void inf_waiter_init(inf_waiter_t *w);

/* Sleeps until woken, after spinning for spin_ns; returns at once after a wake
   since the last wait. */
void inf_waiter_wait(inf_waiter_t *w, uint64_t spin_ns);

/* Waits without spinning, at most timeout_ns. */
void inf_waiter_wait_for(inf_waiter_t *w, uint64_t timeout_ns);

/*
 * Enclose a wait in epoll: a wake in between notifies eventfd, which is in the
 * epoll set.  begin returns false if the thread was woken before; end returns
 * true if it was woken meanwhile.
 */
bool inf_waiter_poll_begin(inf_waiter_t *w, int eventfd);
bool inf_waiter_poll_end(inf_waiter_t *w);

/* Whether the owner was woken since it last waited; for the owner. */
bool inf_waiter_woken(const inf_waiter_t *w);

/* Discards a wake. */
void inf_waiter_clear(inf_waiter_t *w);

/* Wakes the owner: its next wait returns at once.  Any thread, any number of
   times. */
void inf_waiter_wake(inf_waiter_t *w);

#endif /* INF_SCHED_WAITER_H */
