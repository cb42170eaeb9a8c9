/*
 * channel.h - a channel for fuzzers: a client that keeps its rules, and the
 *             rings as its peer, which keeps none, has them mapped.
 */

#ifndef T_FUZZ_CHANNEL_H
#define T_FUZZ_CHANNEL_H

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/wire/client.h"
#include "core/wire/ring.h"
#include "core/wire/sockets.h"
#include "t/fuzz/check.h"
#include "t/fuzz/input.h"

#define SLOTS 8u
#define BOUND (64u << 10)

typedef struct {
    unsigned char      *base;
    uint64_t            size;
    uint32_t            entries;
    inf_rings_header_t  layout;
    uint32_t            tail;       /* of the ring that is scribbled on    */
} rings_t;

/* Indices of a ring, as its owner's peer may write them. */
typedef struct {
    inf_ring_index_t *tail;
    inf_ring_index_t *head;
} ring_t;

static inline void
ok(inf_err_t *err)
{
    check(err == NULL);
}

/* hello and fds: the client's registration; the caller closes fds. */
static inline void
rings_open(rings_t *r, uint32_t entries, inf_client_t **client,
    inf_hello_t *hello, int fds[INF_SOCKET_MAX_FDS], size_t *count)
{
    const inf_client_conf_t conf = { .arena_bound = BOUND,
        .arena_size = 4 * BOUND, .slots = SLOTS, .ring_entries = entries };
    int pair[2];
    size_t len;
    inf_socket_result_t result;
    bool again;

    ok(inf_socket_pair(pair));
    ok(inf_client_new(&conf, client));
    ok(inf_client_hello(*client, pair[0], &again));
    ok(inf_socket_recv(pair[1], hello, sizeof(*hello), &len, fds,
        INF_SOCKET_MAX_FDS, count, &result));
    check(result == INF_SOCKET_DONE && *count == INF_HELLO_WORKER_FDS);
    inf_fds_close(pair, 2);

    r->entries = entries;
    r->size = hello->rings_size;
    r->base = mmap(NULL, r->size, PROT_READ | PROT_WRITE, MAP_SHARED,
        fds[INF_FD_RINGS], 0);
    check(r->base != MAP_FAILED);
    check(inf_rings_layout(&r->layout, entries, SLOTS) == r->size);
}

static inline void
rings_close(rings_t *r)
{
    munmap(r->base, r->size);
}

static inline void
rings_store(inf_ring_index_t *index, uint32_t value)
{
    __atomic_store_n(&index->value, value, __ATOMIC_RELEASE);
}

/* Behind the last entry, whether or not there is room. */
static inline void
rings_push(rings_t *r, uint64_t offset, inf_ring_index_t *tail,
    const void *entry)
{
    memcpy(r->base + offset
        + (size_t) (r->tail % r->entries) * INF_RING_ENTRY_SIZE, entry,
        INF_RING_ENTRY_SIZE);
    rings_store(tail, ++r->tail);
}

/* An index or the header gets any value; which is below 6.  own: the ring that
   is scribbled on, other: that which the peer reads. */
static inline void
rings_jump(rings_t *r, uint64_t which, uint32_t value, ring_t own,
    ring_t other)
{
    inf_rings_header_t *h = (void *) r->base;

    switch (which) {

    case 0:
        rings_store(own.tail, r->tail = value);
        break;

    case 1:
        rings_store(other.head, value);
        break;

    case 2:
        rings_store(own.head, value);
        break;

    case 3:
        rings_store(other.tail, value);
        break;

    case 4:
        rings_store(&h->complete_sleeping, value);
        rings_store(&h->submit_sleeping, value);
        break;

    default:                    /* the header is read by nobody any more   */
        h->ring_entries = value;
        h->slots = value;
        h->submit_offset = value;
        h->complete_offset = value;
        break;
    }
}

#endif /* T_FUZZ_CHANNEL_H */
