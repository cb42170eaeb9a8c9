/*
 * link.h - a client and a server of the channel, joined in one process.
 *
 * Owner    the test.
 * Thread   any; each side as its header says.
 * Units    as channel.h.
 * Errors   fails the test.
 * Route    hello over a socket pair -> accept -> welcome
 */

#ifndef T_UNIT_CHANNEL_LINK_H
#define T_UNIT_CHANNEL_LINK_H

#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/wire/client.h"
#include "core/wire/server.h"
#include "core/wire/sockets.h"

#define MIB (UINT64_C(1) << 20)

typedef struct {
    inf_client_t  *client;
    inf_channel_t *channel;
    unsigned char *rings;       /* as either side could damage them        */
    uint64_t       rings_size;
} link_t_;

static inline void
link_assert_ok(inf_err_t *err)
{
    if (err != NULL) {
        print_error("%s\n", inf_err_msg(err));
    }
    assert_null(err);
}

static inline void
link_open(link_t_ *l, uint32_t entries, uint32_t slots, uint64_t bound)
{
    int pair[2];
    inf_hello_t hello;
    int fds[INF_SOCKET_MAX_FDS];
    size_t len, fd_count;
    inf_socket_result_t result;
    bool again = true;

    const inf_client_conf_t conf = { .arena_bound = bound,
        .arena_size = 4 * bound, .slots = slots, .ring_entries = entries };
    const inf_channel_conf_t core = { .response_bound = bound,
        .response_size = 4 * bound, .generation = 42 };

    link_assert_ok(inf_socket_pair(pair));
    link_assert_ok(inf_client_new(&conf, &l->client));
    link_assert_ok(inf_client_hello(l->client, pair[0], &again));
    assert_false(again);
    link_assert_ok(inf_client_welcome(l->client, &again));
    assert_true(again);

    link_assert_ok(inf_socket_recv(pair[1], &hello, sizeof(hello), &len, fds,
        INF_SOCKET_MAX_FDS, &fd_count, &result));
    assert_int_equal(result, INF_SOCKET_DONE);
    l->rings_size = hello.rings_size;
    l->rings = mmap(NULL, hello.rings_size, PROT_READ | PROT_WRITE,
        MAP_SHARED, fds[INF_FD_RINGS], 0);
    assert_true(l->rings != MAP_FAILED);
    link_assert_ok(inf_channel_accept(&hello, len, fds, fd_count, &core,
        &l->channel));
    inf_fds_close(pair, 2);

    assert_false(inf_client_connected(l->client));
    link_assert_ok(inf_client_welcome(l->client, &again));
    assert_false(again);
    assert_true(inf_client_connected(l->client));
}

static inline void
link_close(link_t_ *l)
{
    if (l->channel != NULL) {
        inf_channel_dead(l->channel);
        inf_channel_unref(l->channel);
    }
    inf_client_free(l->client);
    munmap(l->rings, l->rings_size);
}

static inline inf_rings_header_t *
link_rings(link_t_ *l)
{
    return (void *) l->rings;
}

static inline bool
link_notified(int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };
    return poll(&p, 1, 0) == 1;
}

static inline int
link_open_fds(void)
{
    int n = 0;

    for (int fd = 0; fd < 256; fd++) {
        n += fcntl(fd, F_GETFD) != -1;
    }

    return n;
}

#endif /* T_UNIT_CHANNEL_LINK_H */
