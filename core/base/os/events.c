#include "core/base/os/events.h"

#include <errno.h>
#include <limits.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

inf_err_t *
inf_events_add(int epoll_fd, int fd, uint32_t events, void *data)
{
    struct epoll_event ev = { .events = events, .data = { .ptr = data } };

    return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &ev) == 0 ? NULL
        : inf_err_os(errno, "epoll_ctl");
}

int
inf_events_wait(int epoll_fd, struct epoll_event *events, int max,
    uint64_t timeout_ns)
{
#ifdef SYS_epoll_pwait2
    const struct timespec timeout = {
        .tv_sec = (time_t) (timeout_ns / 1000000000u),
        .tv_nsec = (long) (timeout_ns % 1000000000u)
    };

    int n = (int) syscall(SYS_epoll_pwait2, epoll_fd, events, max, &timeout,
        NULL, 0);
    if (n >= 0 || errno == EINTR) {
        return n;
    }
#endif                                  /* an old kernel, or not permitted   */

    uint64_t ms = timeout_ns / 1000000u + (timeout_ns % 1000000u != 0);
    return epoll_wait(epoll_fd, events, max, ms < INT_MAX ? (int) ms
        : INT_MAX);
}
