#include "core/wire/sockets.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#define MEMFD_ALL_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

typedef union {
    char           bytes[CMSG_SPACE(sizeof(int) * INF_SOCKET_MAX_FDS)
                       + CMSG_SPACE(sizeof(struct ucred))];
    struct cmsghdr align;
} socket_control_t;

static inf_err_t *socket_take_fds(struct msghdr *msg, int *fds, size_t max,
    size_t *count);
static inf_err_t *socket_none_came(int errnum, inf_socket_result_t *result);
static uint32_t socket_sender(struct msghdr *msg);
static bool socket_is_closed(int fd);

inf_err_t *
inf_socket_pair(int fds[2])
{
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
            fds)
        < 0)
    {
        fds[0] = fds[1] = -1;
        return inf_err_os(errno, "cannot make a socket pair");
    }

    return NULL;
}

inf_err_t *
inf_socket_send(int fd, const void *data, size_t len, const int *fds,
    size_t fd_count, inf_socket_result_t *result)
{
    assert(fd_count <= INF_SOCKET_MAX_FDS);

    socket_control_t control;
    struct iovec iov = { .iov_base = (void *) (uintptr_t) data,
        .iov_len = len };
    struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

    if (fd_count > 0) {
        memset(&control, 0, sizeof(control));
        msg.msg_control = control.bytes;
        msg.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);

        struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
        cmsg->cmsg_level = SOL_SOCKET;
        cmsg->cmsg_type = SCM_RIGHTS;
        cmsg->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
        memcpy(CMSG_DATA(cmsg), fds, sizeof(int) * fd_count);
    }

    ssize_t n;
    do {
        n = sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);

    *result = INF_SOCKET_DONE;
    if (n == (ssize_t) len) {
        return NULL;
    }

    if (n >= 0) {
        return inf_err_new(INF_ERR_INTERNAL,
            "a message of %zu bytes was sent as %zd", len, n);
    }

    /* ETOOMANYREFS: too many descriptors are in flight, a temporary state. */
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS
        || errno == ETOOMANYREFS)
    {
        *result = INF_SOCKET_AGAIN;
        return NULL;
    }

    if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN) {
        *result = INF_SOCKET_CLOSED;
        return NULL;
    }

    return inf_err_os(errno, "cannot send a message of %zu bytes", len);
}

inf_err_t *
inf_socket_name_senders(int fd)
{
    const int on = 1;

    return setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) == 0
        ? NULL : inf_err_os(errno, "setsockopt(SO_PASSCRED)");
}

inf_err_t *
inf_socket_recv(int fd, void *data, size_t cap, size_t *len, int *fds,
    size_t max_fds, size_t *fd_count, inf_socket_result_t *result)
{
    uint32_t pid;

    return inf_socket_recv_from(fd, data, cap, len, fds, max_fds, fd_count,
        &pid, result);
}

inf_err_t *
inf_socket_recv_from(int fd, void *data, size_t cap, size_t *len, int *fds,
    size_t max_fds, size_t *fd_count, uint32_t *pid,
    inf_socket_result_t *result)
{
    assert(max_fds <= INF_SOCKET_MAX_FDS);

    socket_control_t control;
    struct iovec iov = { .iov_base = data, .iov_len = cap };
    struct msghdr msg = {
        .msg_iov = &iov,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = sizeof(control.bytes)
    };

    *len = 0;
    *fd_count = 0;
    *pid = 0;
    *result = INF_SOCKET_DONE;
    for (size_t i = 0; i < max_fds; i++) {
        fds[i] = -1;
    }

    ssize_t n;
    do {
        n = recvmsg(fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);

    if (n < 0) {
        return socket_none_came(errno, result);
    }

    if (n == 0 && msg.msg_controllen == 0 && socket_is_closed(fd)) {
        *result = INF_SOCKET_CLOSED;
        return NULL;
    }

    *pid = socket_sender(&msg);
    inf_err_t *err = socket_take_fds(&msg, fds, max_fds, fd_count);
    if (err != NULL) {
        return err;
    }

    if ((msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) || n == 0) {
        inf_fds_close(fds, max_fds);
        *fd_count = 0;
        return inf_err_new(INF_ERR_INVALID_ARG, n == 0
            ? "an empty message arrived (limit %zu bytes)"
            : "a message was cut, longer than %zu bytes or too many"
              " descriptors", cap);
    }

    *len = (size_t) n;
    return NULL;
}

static inf_err_t *
socket_none_came(int errnum, inf_socket_result_t *result)
{
    switch (errnum) {
    case EAGAIN:
        *result = INF_SOCKET_AGAIN;
        return NULL;
    case ECONNRESET:
        *result = INF_SOCKET_CLOSED;
        return NULL;
    default:
        return inf_err_os(errnum, "cannot receive a message");
    }
}

inf_err_t *
inf_socket_check(int fd)
{
    int domain = 0;
    int type = 0;
    socklen_t domain_len = sizeof(domain);
    socklen_t type_len = sizeof(type);

    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &domain_len) < 0
        || getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_len) < 0)
    {
        return inf_err_os(errno, "descriptor %d is not a socket", fd);
    }

    if (domain != AF_UNIX || type != SOCK_SEQPACKET) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "descriptor %d is not a UNIX seqpacket socket", fd);
    }

    return NULL;
}

void
inf_fds_close(int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (fds[i] != -1) {
            close(fds[i]);
            fds[i] = -1;
        }
    }
}

inf_err_t *
inf_memfd_new(const char *name, uint64_t size, int *out)
{
    *out = -1;

    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) {
        return inf_err_os(errno, "cannot make memfd \"%s\"", name);
    }

    if (size > INT64_MAX || ftruncate(fd, (off_t) size) < 0
        || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
           < 0)
    {
        int errnum = size > INT64_MAX ? EFBIG : errno;
        close(fd);
        return inf_err_os(errnum, "cannot size memfd \"%s\" to %llu bytes",
            name, (unsigned long long) size);
    }

    *out = fd;
    return NULL;
}

inf_err_t *
inf_memfd_sealed(const char *name, const void *data, size_t len, int *out)
{
    *out = -1;

    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) {
        return inf_err_os(errno, "cannot make memfd \"%s\"", name);
    }

    const char *at = data;
    while (len > 0) {
        ssize_t n = write(fd, at, len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            int errnum = n < 0 ? errno : ENOSPC;
            close(fd);
            return inf_err_os(errnum, "cannot fill memfd \"%s\"", name);
        }
        at += n;
        len -= (size_t) n;
    }

    if (fcntl(fd, F_ADD_SEALS, MEMFD_ALL_SEALS | F_SEAL_SEAL) < 0) {
        int errnum = errno;
        close(fd);
        return inf_err_os(errnum, "cannot seal memfd \"%s\"", name);
    }

    *out = fd;
    return NULL;
}

inf_err_t *
inf_memfd_check_sealed(int fd)
{
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0) {
        return inf_err_os(errno, "descriptor %d is not a memfd", fd);
    }

    if ((seals & MEMFD_ALL_SEALS) != MEMFD_ALL_SEALS) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "memfd %d is not sealed against changes", fd);
    }

    return NULL;
}

inf_err_t *
inf_memfd_check(int fd, uint64_t size)
{
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0) {
        return inf_err_os(errno, "descriptor %d is not a memfd", fd);
    }

    if (!(seals & F_SEAL_SHRINK)) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "memfd %d is not sealed against shrinking", fd);
    }

    /* A read of a huge page can fail with SIGBUS. */
    struct statfs fs;
    if (fstatfs(fd, &fs) < 0) {
        return inf_err_os(errno, "cannot examine memfd %d", fd);
    }

    if (fs.f_type != TMPFS_MAGIC) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "memfd %d is not made of ordinary pages", fd);
    }

    struct stat st;
    if (fstat(fd, &st) < 0) {
        return inf_err_os(errno, "cannot examine memfd %d", fd);
    }

    if (st.st_size < 0 || (uint64_t) st.st_size != size) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "memfd %d has %lld bytes, announced were %llu", fd,
            (long long) st.st_size, (unsigned long long) size);
    }

    return NULL;
}

inf_err_t *
inf_eventfd_new(int *fd)
{
    *fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (*fd < 0) {
        return inf_err_os(errno, "cannot make an eventfd");
    }

    return NULL;
}

inf_err_t *
inf_eventfd_check(int fd)
{
    static const char expected[] = "anon_inode:[eventfd]";
    char path[64];
    char target[sizeof(expected) + 1];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(path, target, sizeof(target));
    if (n < 0) {
        return inf_err_os(errno, "cannot examine descriptor %d", fd);
    }

    if ((size_t) n != sizeof(expected) - 1
        || memcmp(target, expected, sizeof(expected) - 1) != 0)
    {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "descriptor %d is not an eventfd", fd);
    }

    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) {
        return inf_err_os(errno, "cannot make eventfd %d nonblocking", fd);
    }

    return NULL;
}

inf_err_t *
inf_eventfd_new_watched(int *fd, int *watch)
{
    struct epoll_event ev = { .events = EPOLLIN | EPOLLET };

    *watch = -1;
    inf_err_t *err = inf_eventfd_new(fd);
    if (err != NULL) {
        return err;
    }

    *watch = epoll_create1(EPOLL_CLOEXEC);
    if (*watch < 0 || epoll_ctl(*watch, EPOLL_CTL_ADD, *fd, &ev) < 0) {
        err = inf_err_os(errno, "cannot make an epoll descriptor");
        inf_fds_close(fd, 1);
        inf_fds_close(watch, 1);
    }

    return err;
}

void
inf_eventfd_notify(int fd)
{
    uint64_t one = 1;
    ssize_t n;

    /* EAGAIN: the counter is at its maximum, so the reader is woken anyway. */
    do {
        n = write(fd, &one, sizeof(one));
    } while (n < 0 && errno == EINTR);
}

void
inf_eventfd_clear(int fd)
{
    uint64_t count;
    ssize_t n;

    do {
        n = read(fd, &count, sizeof(count));
    } while (n < 0 && errno == EINTR);
}

void
inf_eventfd_watch_clear(int watch)
{
    struct epoll_event ev;

    (void) epoll_wait(watch, &ev, 1, 0);
}

inf_err_t *
inf_pidfd_open(int pid, int *fd)
{
    long rc = syscall(SYS_pidfd_open, pid, 0);
    *fd = (int) rc;
    if (rc < 0) {
        *fd = -1;
        return inf_err_os(errno, "cannot open a pidfd of process %d", pid);
    }

    return NULL;
}

/* Takes the descriptors of a message; closes all if there are too many. */
static inf_err_t *
socket_take_fds(struct msghdr *msg, int *fds, size_t max, size_t *count)
{
    size_t seen = 0;

    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c != NULL;
         c = CMSG_NXTHDR(msg, c))
    {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) {
            continue;
        }

        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
            if (seen < max) {
                fds[seen] = fd;
            } else {
                close(fd);
            }
            seen++;
        }
    }

    if (seen > max) {
        inf_fds_close(fds, max);
        return inf_err_new(INF_ERR_INVALID_ARG,
            "a message brought %zu descriptors, expected at most %zu", seen,
            max);
    }

    *count = seen;
    return NULL;
}

static uint32_t
socket_sender(struct msghdr *msg)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c != NULL;
         c = CMSG_NXTHDR(msg, c))
    {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS) {
            struct ucred sender;
            memcpy(&sender, CMSG_DATA(c), sizeof(sender));
            return (uint32_t) sender.pid;
        }
    }

    return 0;
}

/* Whether the connection has ended, which reads like an empty message. */
static bool
socket_is_closed(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN | POLLRDHUP };

    return poll(&p, 1, 0) > 0 && (p.revents & (POLLHUP | POLLRDHUP)) != 0;
}
