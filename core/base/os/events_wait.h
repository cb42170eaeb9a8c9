/*
 * events_wait.h - epoll_wait with a timeout in ns.
 *
 * Owner    The caller owns the descriptor and the events.
 * Thread   any.
 * Units    ns.
 * Errors   as epoll_wait: -1 and errno.
 * Route    intake -> [events wait] -> kernel
 */

#ifndef INF_BASE_OS_EVENTS_WAIT_H
#define INF_BASE_OS_EVENTS_WAIT_H

#include <stdint.h>
#include <sys/epoll.h>

/* To the ns where the system can, else to the next ms.  Returns how many
   events there are. */
int inf_events_wait(int epoll_fd, struct epoll_event *events, int max,
    uint64_t timeout_ns);

#endif /* INF_BASE_OS_EVENTS_WAIT_H */
