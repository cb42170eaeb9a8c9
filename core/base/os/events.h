/*
 * events.h - epoll: adding descriptors, and waiting with a timeout in ns.
 *
 * Owner    The caller owns the descriptor and the events.
 * Thread   any.
 * Units    ns.
 * Errors   add: the system's; wait: as epoll_wait, -1 and errno.
 * Route    intake -> [events] -> kernel
 */

#ifndef INF_BASE_OS_EVENTS_H
#define INF_BASE_OS_EVENTS_H

#include <stdint.h>
#include <sys/epoll.h>

#include "core/base/error.h"

/* Adds fd; its events carry data. */
INF_CHECK inf_err_t *inf_events_add(int epoll_fd, int fd, uint32_t events,
    void *data);

/* Waits with ns resolution if the system can, otherwise up to the next ms.
   Returns the number of events. */
int inf_events_wait(int epoll_fd, struct epoll_event *events, int max,
    uint64_t timeout_ns);

#endif /* INF_BASE_OS_EVENTS_H */
