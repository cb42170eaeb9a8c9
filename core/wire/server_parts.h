/*
 * server_parts.h - what the files of the core's side of a channel share:
 *                  server (life, submissions), server_open (registration),
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
    inf_region_t           *region;     /* inside: under arena_lock        */
    uint64_t                offset;     /* set in alloc, read by anyone    */
    uint64_t                size;       /* the owner's until published     */
    _Atomic uint32_t        refs;       /* up relaxed, down acq_rel        */
    uint32_t                published;  /* under arena_lock: of refs, how
                                           many are the worker's           */
    inf_channel_region_t   *next;       /* under arena_lock: in its bucket */
    uint32_t                part_count; /* set once, before publishing     */
    inf_channel_region_t  **parts;
    inf_channel_on_free_t   on_free[INF_CHANNEL_ON_FREE];   /* the same    */
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
    const inf_channel_pin_ops_t *pin;       /* NULL: nothing is to be pinned */
    uint64_t              to_pin;           /* of responses, from the begin */
    uint64_t              requests_to_pin;  /* of each half of requests    */

    _Atomic uint64_t      pinned;           /* to_pin once that is done, 0
                                               before; release, acquire    */
    _Atomic uint64_t      requests_pinned;  /* likewise; release, acquire  */

    inf_ring_consumer_t   submissions;      /* the intake's                */

    inf_lock_t            ring_lock;    /* rank 90; guards the next four   */
    inf_ring_producer_t   completions;
    inf_channel_spill_t  *spill_first;
    inf_channel_spill_t  *spill_last;
    uint64_t              spill_count;

    _Atomic bool          spilling;         /* stored under ring_lock; the
                                               intake looks without it     */

    inf_lock_t            arena_lock;   /* rank 95; guards the next four   */
    inf_regions_t         regions;
    inf_channel_region_t **buckets;         /* published, by offset; NULL:
                                               the channel is dead         */
    uint32_t              bucket_count;
    uint32_t              published_count;

    _Atomic uint64_t      submitted;        /* relaxed: statistics         */
    _Atomic uint64_t      completed;
    _Atomic uint64_t      spilled;
    _Atomic uint64_t      notifications;
    _Atomic uint64_t      invalid;
    _Atomic uint64_t      bad_releases;
};

/* The last reference is gone; descriptors that are -1 stay whose they are. */
void inf_channel_free(inf_channel_t *ch);

/* The caller's reference becomes the worker's; false: the channel is dead. */
bool inf_channel_publish(inf_channel_t *ch, inf_channel_region_t *region);

/* The worker gives back one reference of one published region; anything else
   is only counted. */
void inf_channel_release(inf_channel_t *ch, uint64_t offset);

/* Nothing is pushed any more, what waits is dropped; false: that was before. */
bool inf_channel_end_completions(inf_channel_t *ch);

/* Nothing is published any more, the worker holds nothing; once. */
void inf_channel_end_regions(inf_channel_t *ch);

static inline void
inf_channel_count(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

#endif /* INF_WIRE_SERVER_PARTS_H */
