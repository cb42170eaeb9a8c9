/*
 * ring.h - one direction of the channel: fixed-size entries, one producer and
 *          one consumer, in different processes.
 *
 * Owner    The mapping of the rings memfd belongs to client or server; a
 *          producer or consumer is that side's private view of it.
 * Thread   one at a time for each view.
 * Units    entries of INF_RING_ENTRY_SIZE bytes; indices are monotonic modulo
 *          2^32.
 * Errors   INF_RING_BROKEN: the other side's index is impossible.  The view
 *          stays broken; the channel must be ended.
 * Route    submission ring: worker -> core; completion ring: core -> worker.
 *
 * Each side keeps its own index privately and only stores it to shared memory;
 * the other side's index is read from there and checked against bounds.
 */

#ifndef INF_WIRE_RING_H
#define INF_WIRE_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "core/include/channel.h"

typedef enum {
    INF_RING_DONE,      /* pushed, popped                                  */
    INF_RING_WAIT,      /* full, empty                                     */
    INF_RING_BROKEN
} inf_ring_result_t;

typedef struct {
    unsigned char    *entries;
    inf_ring_index_t *tail_word;    /* written by this side                */
    inf_ring_index_t *head_word;    /* written by the consumer             */
    inf_ring_index_t *sleeping;
    uint32_t          count;
    uint32_t          tail;         /* this side's index                   */
    uint32_t          head;         /* cached index of the consumer        */
    bool              broken;
} inf_ring_producer_t;

typedef struct {
    unsigned char    *entries;
    inf_ring_index_t *tail_word;    /* written by the producer             */
    inf_ring_index_t *head_word;    /* written by this side                */
    inf_ring_index_t *sleeping;
    uint32_t          count;
    uint32_t          head;         /* this side's index                   */
    uint32_t          tail;         /* cached index of the producer        */
    bool              broken;
} inf_ring_consumer_t;

#define INF_RINGS_MAX_ENTRIES 65536u

/* Fills in the header for these sizes; returns the memfd's size. */
uint64_t inf_rings_layout(inf_rings_header_t *h, uint32_t ring_entries,
    uint32_t slots);

/* Whether h, a private copy, is exactly the layout of its own sizes and fits in
   size bytes. */
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

/* Whether more than so many places are free. */
bool inf_ring_has_more(inf_ring_producer_t *p, uint32_t places);

/* Called after pushing: whether to wake the consumer; true once per sleep. */
bool inf_ring_wake(inf_ring_producer_t *p);

/* Orders earlier stores before later loads, as wake and sleep do. */
void inf_ring_fence(void);

/* Copies one entry out and gives its place back to the producer. */
inf_ring_result_t inf_ring_pop(inf_ring_consumer_t *c, void *entry);

/*
 * Announces that this side will sleep.  False: there is an entry to pop (or
 * the ring is broken, which pop reports), and the announcement is withdrawn.
 */
bool inf_ring_sleep(inf_ring_consumer_t *c);

#endif /* INF_WIRE_RING_H */
