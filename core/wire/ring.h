/*
 * ring.h - one direction of the channel: fixed entries, one producer, one
 *          consumer, each in its own process.
 *
 * Owner    The rings memfd's mapping belongs to client or server; a producer
 *          or consumer is that side's private view of it.
 * Thread   each view one thread at a time.
 * Units    entries of INF_RING_ENTRY_SIZE bytes; indices are monotonic modulo
 *          2^32.
 * Errors   INF_RING_BROKEN: the other side's index is impossible.  The view
 *          stays broken; the channel is to be torn down.
 * Route    submission ring: worker -> core; completion ring: core -> worker.
 *
 * The side's own index is kept privately and only stored to shared memory;
 * the other side's is read from there and believed only within bounds.
 */

#ifndef INF_WIRE_RING_H
#define INF_WIRE_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "core/include/channel.h"

typedef enum {
    INF_RING_DONE,      /* pushed, or popped                               */
    INF_RING_WAIT,      /* full, or empty                                  */
    INF_RING_BROKEN
} inf_ring_result_t;

typedef struct {
    unsigned char    *entries;
    inf_ring_index_t *tail_word;    /* we write                            */
    inf_ring_index_t *head_word;    /* the consumer writes                 */
    inf_ring_index_t *sleeping;
    uint32_t          count;
    uint32_t          tail;         /* our own index                       */
    uint32_t          head;         /* cached: the consumer's index        */
    bool              broken;
} inf_ring_producer_t;

typedef struct {
    unsigned char    *entries;
    inf_ring_index_t *tail_word;    /* the producer writes                 */
    inf_ring_index_t *head_word;    /* we write                            */
    inf_ring_index_t *sleeping;
    uint32_t          count;
    uint32_t          head;         /* our own index                       */
    uint32_t          tail;         /* cached: the producer's index        */
    bool              broken;
} inf_ring_consumer_t;

#define INF_RINGS_MAX_ENTRIES 65536u

/* Fills in the header for these sizes; returns the memfd's size. */
uint64_t inf_rings_layout(inf_rings_header_t *h, uint32_t ring_entries,
    uint32_t slots);

/* Is this (a private copy) exactly the layout of its own sizes, in size? */
bool inf_rings_check(const inf_rings_header_t *h, uint64_t size);

/* count is a power of two; all words start at 0. */
void inf_ring_producer_init(inf_ring_producer_t *p, void *entries,
    inf_ring_index_t *tail, inf_ring_index_t *head,
    inf_ring_index_t *sleeping, uint32_t count);
void inf_ring_consumer_init(inf_ring_consumer_t *c, void *entries,
    inf_ring_index_t *tail, inf_ring_index_t *head,
    inf_ring_index_t *sleeping, uint32_t count);

/* Copies one entry in; the consumer may see it at once. */
inf_ring_result_t inf_ring_push(inf_ring_producer_t *p, const void *entry);

/* INF_RING_DONE: there is room; *last: for one entry only. */
inf_ring_result_t inf_ring_room(inf_ring_producer_t *p, bool *last);

/* Are more than so many places free? */
bool inf_ring_has_more(inf_ring_producer_t *p, uint32_t places);

/* After pushing: is the consumer to be woken?  True once per sleep. */
bool inf_ring_wake(inf_ring_producer_t *p);

/* Orders our stores before our loads, as wake and sleep do. */
void inf_ring_fence(void);

/* Copies one entry out; its place is the producer's again. */
inf_ring_result_t inf_ring_pop(inf_ring_consumer_t *c, void *entry);

/*
 * Announces that we go to sleep.  False: there is something to pop (or the
 * ring is broken, which pop will say), and the announcement is withdrawn.
 */
bool inf_ring_sleep(inf_ring_consumer_t *c);

#endif /* INF_WIRE_RING_H */
