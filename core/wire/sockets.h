/*
 * sockets.h - descriptors between processes: sending and receiving them,
 *             sealed memfds, eventfds, pidfds.
 *
 * Owner    The receiver of a descriptor owns it.  On any error the descriptors
 *          received with the message are closed.
 * Thread   any.
 * Units    bytes.
 * Errors   inf_err_t; "try again" and "closed" are results.
 * Route    registration socket and the private control socket.
 *
 * No function blocks, and every descriptor created or received is CLOEXEC.
 */

#ifndef INF_WIRE_SOCKETS_H
#define INF_WIRE_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

#define INF_SOCKET_MAX_FDS 8

typedef enum {
    INF_SOCKET_DONE,
    INF_SOCKET_AGAIN,
    INF_SOCKET_CLOSED       /* the other side is gone                      */
} inf_socket_result_t;

/* Creates two ends of a nonblocking SEQPACKET pair. */
INF_CHECK inf_err_t *inf_socket_pair(int fds[2]);

/* Sends a message; the descriptors stay the caller's. */
INF_CHECK inf_err_t *inf_socket_send(int fd, const void *data, size_t len,
    const int *fds, size_t fd_count, inf_socket_result_t *result);

/*
 * Receives one message of at most cap bytes with at most max_fds (<=
 * INF_SOCKET_MAX_FDS) descriptors; more of either is an error.
 */
INF_CHECK inf_err_t *inf_socket_recv(int fd, void *data, size_t cap,
    size_t *len, int *fds, size_t max_fds, size_t *fd_count,
    inf_socket_result_t *result);

/* Makes the kernel add the sender's process id to each message received from
   fd. */
INF_CHECK inf_err_t *inf_socket_name_senders(int fd);

/* Receives likewise, with the sender's process id; 0: unknown. */
INF_CHECK inf_err_t *inf_socket_recv_from(int fd, void *data, size_t cap,
    size_t *len, int *fds, size_t max_fds, size_t *fd_count, uint32_t *pid,
    inf_socket_result_t *result);

/* An error unless fd is a UNIX SEQPACKET socket. */
INF_CHECK inf_err_t *inf_socket_check(int fd);

/* Closes each that is not -1 and sets it to -1. */
void inf_fds_close(int *fds, size_t count);

/* Creates a memfd of size bytes, sealed against shrinking, growing and
   unsealing. */
INF_CHECK inf_err_t *inf_memfd_new(const char *name, uint64_t size, int *fd);

/* Creates a memfd with a copy of these bytes, sealed against every change. */
INF_CHECK inf_err_t *inf_memfd_sealed(const char *name, const void *data,
    size_t len, int *fd);

/* An error unless fd is a memfd whose size and bytes cannot change. */
INF_CHECK inf_err_t *inf_memfd_check_sealed(int fd);

/*
 * An error unless fd is a memfd of ordinary pages, exactly size bytes long,
 * that cannot shrink: reads of its mapping never fault.
 */
INF_CHECK inf_err_t *inf_memfd_check(int fd, uint64_t size);

/* Creates an eventfd, nonblocking and closed on exec. */
INF_CHECK inf_err_t *inf_eventfd_new(int *fd);

/* An error unless fd is an eventfd; makes it nonblocking. */
INF_CHECK inf_err_t *inf_eventfd_check(int fd);

/*
 * Creates an eventfd that only its owner can write: the process that gets
 * watch (an epoll descriptor over it) is notified, but can neither write to it
 * nor make it blocking.
 */
INF_CHECK inf_err_t *inf_eventfd_new_watched(int *fd, int *watch);

/* Makes the eventfd readable; never blocks. */
void inf_eventfd_notify(int fd);

/* Clears the eventfd, for level-triggered pollers. */
void inf_eventfd_clear(int fd);
void inf_eventfd_watch_clear(int watch);

/* Opens a descriptor that is readable after the process has ended. */
INF_CHECK inf_err_t *inf_pidfd_open(int pid, int *fd);

#endif /* INF_WIRE_SOCKETS_H */
