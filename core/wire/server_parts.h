/*
 * server_parts.h - declarations shared by the core's side of a channel: server
 *                  (lifetime, submissions), server_open (registration),
 *                  server_regions and server_completions (responses).
 *
 * Owner    As server.h says.
 * Thread   As each field says; the two locks are never held together.
 * Units    bytes.
 * Errors   As server.h.
 * Route    accept -> [parts] -> free
 */

#ifndef INF_WIRE_SERVER_PARTS_H
#define INF_WIRE_SERVER_PARTS_H

#include <stdatomic.h>

#include "core/base/lock.h"
#include "core/wire/ring.h"
#include "core/wire/server.h"

typedef struct inf_channel_spill_s inf_channel_spill_t;

/* fn NULL: none. */
typedef struct {
    void                  (*fn)(void *userp, uint64_t bytes);
    void                   *userp;
    uint64_t                bytes;
} inf_channel_on_free_t;

struct inf_channel_region_s {
    inf_channel_t          *channel;    /* a reference                     */
    inf_region_t           *region;     /* fields under arena_lock         */
    uint64_t                offset;     /* set in alloc, then constant     */
    uint64_t                size;       /* the owner's until published     */
    _Atomic uint32_t        refs;       /* up relaxed, down acq_rel        */
    uint32_t                published;  /* under arena_lock: references of the
                                           worker                          */
    inf_channel_region_t   *next;       /* under arena_lock: next in the
                                           bucket */
    uint32_t                part_count; /* set once, before publishing     */
    inf_channel_region_t  **parts;
    inf_channel_on_free_t   on_free[INF_CHANNEL_ON_FREE];   /* likewise    */
};

struct inf_channel_s {
    _Atomic uint32_t      refs;             /* up relaxed, down acq_rel    */
    _Atomic bool          dead;             /* release, acquire; stored
                                               under ring_lock             */
    _Atomic bool          overrun;          /* relaxed: for the log        */

    /* set in accept() */
    int                   fds[INF_HELLO_WORKER_FDS];
    int                   responses_fd;
    int                   complete_eventfd;
    uint32_t              pid;
    uint32_t              version;
    uint32_t              slots;
    uint32_t              ring_entries;
    void                 *rings;
    uint64_t              rings_size;
    unsigned char        *slot_states;
    unsigned char        *requests;
    uint64_t              requests_size;
    uint64_t              requests_file;    /* of base's mapped files      */
    unsigned char        *responses;
    uint64_t              responses_size;
    const inf_channel_pin_ops_t *pin;       /* NULL: nothing to pin          */
    uint64_t              to_pin;           /* of responses, from the start */
    uint64_t              requests_to_pin;  /* of each half of requests    */

    _Atomic uint64_t      pinned;           /* to_pin after pinning, 0 before;
                                               release, acquire            */
    _Atomic uint64_t      requests_pinned;  /* likewise; release, acquire  */

    inf_ring_consumer_t   submissions;      /* of the intake               */

    inf_lock_t            ring_lock;    /* rank 90; guards the next four   */
    inf_ring_producer_t   completions;
    inf_channel_spill_t  *spill_first;
    inf_channel_spill_t  *spill_last;
    uint64_t              spill_count;

    _Atomic bool          spilling;         /* stored under ring_lock; the
                                               intake reads it without the
                                               lock                        */

    inf_lock_t            arena_lock;   /* rank 95; guards the next four   */
    inf_regions_t         regions;
    inf_channel_region_t **buckets;         /* published regions, by offset;
                                               NULL: the channel is dead   */
    uint32_t              bucket_count;
    uint32_t              published_count;

    _Atomic uint64_t      submitted;        /* relaxed: statistics         */
    _Atomic uint64_t      completed;
    _Atomic uint64_t      spilled;
    _Atomic uint64_t      notifications;
    _Atomic uint64_t      invalid;
    _Atomic uint64_t      bad_releases;
};

/* Frees the channel after the last unref; descriptors set to -1 are not
   closed. */
void inf_channel_free(inf_channel_t *ch);

/* Passes the caller's reference to the worker; false: the channel is dead. */
bool inf_channel_publish(inf_channel_t *ch, inf_channel_region_t *region);

/* Drops one reference of the worker to a published region; an invalid offset is
   only counted. */
void inf_channel_release(inf_channel_t *ch, uint64_t offset);

/* Ends pushing and drops spilled completions; false: already ended. */
bool inf_channel_end_completions(inf_channel_t *ch);

/* Ends publishing and drops the worker's references; called once. */
void inf_channel_end_regions(inf_channel_t *ch);

static inline void
inf_channel_count(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

#endif /* INF_WIRE_SERVER_PARTS_H */
