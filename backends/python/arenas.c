/* arenas.c - see arenas.h */

#include "arenas.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* Provided by our server; without them (NVIDIA's server) every input is
   copied. */
bool inf_memory_file(const void *data, uint64_t len_bytes, uint64_t *id,
    int *fd, uint64_t *offset, uint64_t *size) __attribute__((weak));
bool inf_memory_file_ended(uint64_t id) __attribute__((weak));

static void drop_ended(py_arenas_t *a, int socket_fd);
static bool send_file(int socket_fd, uint64_t id, int fd, uint64_t size);
static bool send_words(int socket_fd, uint64_t id, uint64_t size, int fd);

bool
py_arenas_find(py_arenas_t *a, int socket_fd, const void *data,
    uint64_t len_bytes, py_arena_place_t *place)
{
    uint64_t size;
    int fd;

    if (inf_memory_file == NULL || inf_memory_file_ended == NULL
        || !inf_memory_file(data, len_bytes, &place->id, &fd, &place->offset,
            &size))
    {
        return false;
    }

    size_t oldest = 0;
    for (size_t i = 0; i < PY_ARENAS_MAX; i++) {
        if (a->used[i] != 0 && a->sent[i] == place->id) {
            a->used[i] = ++a->clock;
            return true;
        }
        if (a->used[i] < a->used[oldest]) {
            oldest = i;
        }
    }

    drop_ended(a, socket_fd);
    if (!send_file(socket_fd, place->id, fd, size)) {
        return false;
    }

    a->sent[oldest] = place->id;
    a->used[oldest] = ++a->clock;
    return true;
}

/* Tells the interpreter to unmap files that no input will be in any more. */
static void
drop_ended(py_arenas_t *a, int socket_fd)
{
    for (size_t i = 0; i < PY_ARENAS_MAX; i++) {
        if (a->used[i] != 0 && inf_memory_file_ended(a->sent[i])
            && send_words(socket_fd, a->sent[i], 0, -1))
        {
            a->used[i] = 0;
        }
    }
}

/* Sends a read-only descriptor of the file. */
static bool
send_file(int socket_fd, uint64_t id, int fd, uint64_t size)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    int readable = open(path, O_RDONLY | O_CLOEXEC);
    if (readable == -1) {
        return false;
    }

    bool sent = send_words(socket_fd, id, size, readable);
    (void) close(readable);
    return sent;
}

/* Sends a message, with fd unless it is -1. */
static bool
send_words(int socket_fd, uint64_t id, uint64_t size, int fd)
{
    uint64_t words[2] = { id, size };
    union {
        struct cmsghdr header;
        char           space[CMSG_SPACE(sizeof(int))];
    } control = { .space = { 0 } };
    struct iovec part = { words, sizeof(words) };
    struct msghdr m = { .msg_iov = &part, .msg_iovlen = 1 };

    if (fd != -1) {
        m.msg_control = &control;
        m.msg_controllen = sizeof(control);
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
    }
    return sendmsg(socket_fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL)
        == (ssize_t) sizeof(words);
}
