#include "core/wire/ring.h"

#include <assert.h>
#include <string.h>

#if defined(__GNUC__) && !defined(__clang__) && defined(__SANITIZE_THREAD__)
#pragma GCC diagnostic ignored "-Wtsan"
#endif

#define RINGS_PAGE 4096u

_Static_assert(sizeof(inf_rings_header_t) <= INF_CRASH_OFFSET
    && INF_CRASH_OFFSET + INF_CRASH_MAX <= RINGS_PAGE, "header page");

static inf_ring_result_t refresh_head(inf_ring_producer_t *p);
static inf_ring_result_t refresh_tail(inf_ring_consumer_t *c);

uint64_t
inf_rings_layout(inf_rings_header_t *h, uint32_t ring_entries, uint32_t slots)
{
    uint64_t ring_size = (uint64_t) ring_entries * INF_RING_ENTRY_SIZE;

    *h = (inf_rings_header_t) {
        .magic = INF_CHANNEL_MAGIC,
        .version = INF_CHANNEL_VERSION,
        .ring_entries = ring_entries,
        .entry_size = INF_RING_ENTRY_SIZE,
        .slots = slots,
        .submit_offset = RINGS_PAGE,
        .complete_offset = RINGS_PAGE + ring_size,
        .slot_state_offset = RINGS_PAGE + 2 * ring_size
    };

    uint64_t size = h->slot_state_offset + slots;
    return (size + RINGS_PAGE - 1) / RINGS_PAGE * RINGS_PAGE;
}

bool
inf_rings_check(const inf_rings_header_t *h, uint64_t size)
{
    if (h->ring_entries < 2 || h->ring_entries > INF_RINGS_MAX_ENTRIES
        || (h->ring_entries & (h->ring_entries - 1)) != 0
        || h->slots == 0 || h->slots > INF_MAX_SLOTS)
    {
        return false;
    }

    inf_rings_header_t expected;
    return inf_rings_layout(&expected, h->ring_entries, h->slots) == size
        && h->magic == expected.magic
        && h->entry_size == expected.entry_size
        && h->submit_offset == expected.submit_offset
        && h->complete_offset == expected.complete_offset
        && h->slot_state_offset == expected.slot_state_offset;
}

void
inf_ring_producer_init(inf_ring_producer_t *p, void *entries,
    inf_ring_index_t *tail, inf_ring_index_t *head,
    inf_ring_index_t *sleeping, uint32_t count)
{
    assert(count > 0 && (count & (count - 1)) == 0);
    *p = (inf_ring_producer_t) {
        .entries = entries,
        .tail_word = tail,
        .head_word = head,
        .sleeping = sleeping,
        .count = count
    };
}

void
inf_ring_consumer_init(inf_ring_consumer_t *c, void *entries,
    inf_ring_index_t *tail, inf_ring_index_t *head,
    inf_ring_index_t *sleeping, uint32_t count)
{
    assert(count > 0 && (count & (count - 1)) == 0);
    *c = (inf_ring_consumer_t) {
        .entries = entries,
        .tail_word = tail,
        .head_word = head,
        .sleeping = sleeping,
        .count = count
    };
}

inf_ring_result_t
inf_ring_push(inf_ring_producer_t *p, const void *entry)
{
    bool last;
    inf_ring_result_t rc = inf_ring_room(p, &last);
    if (rc != INF_RING_DONE) {
        return rc;
    }

    memcpy(p->entries + (size_t) (p->tail & (p->count - 1))
        * INF_RING_ENTRY_SIZE, entry, INF_RING_ENTRY_SIZE);

    p->tail++;
    __atomic_store_n(&p->tail_word->value, p->tail, __ATOMIC_RELEASE);
    return INF_RING_DONE;
}

inf_ring_result_t
inf_ring_room(inf_ring_producer_t *p, bool *last)
{
    /* At the last entry the cached head is refreshed, so that *last is
       exact. */
    if (p->broken || p->tail - p->head >= p->count - 1) {
        inf_ring_result_t rc = refresh_head(p);
        if (rc != INF_RING_DONE) {
            return rc;
        }
    }

    *last = p->tail - p->head == p->count - 1;
    return INF_RING_DONE;
}

bool
inf_ring_has_more(inf_ring_producer_t *p, uint32_t places)
{
    if (p->count - (p->tail - p->head) <= places) {
        (void) refresh_head(p);
    }

    return p->count - (p->tail - p->head) > places;
}

bool
inf_ring_wake(inf_ring_producer_t *p)
{
    /* Stores the tail before reading the flag; the consumer does the
       reverse. */
    inf_ring_fence();

    return __atomic_load_n(&p->sleeping->value, __ATOMIC_RELAXED) != 0
        && __atomic_exchange_n(&p->sleeping->value, 0, __ATOMIC_ACQ_REL) != 0;
}

/*
 * Orders a store before a load.  The sanitizer does not model the fence, and
 * need not: data is published by the release and acquire of the indices.
 */
void
inf_ring_fence(void)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

inf_ring_result_t
inf_ring_pop(inf_ring_consumer_t *c, void *entry)
{
    if (c->head == c->tail || c->broken) {
        inf_ring_result_t rc = refresh_tail(c);
        if (rc != INF_RING_DONE) {
            return rc;
        }
    }

    memcpy(entry, c->entries + (size_t) (c->head & (c->count - 1))
        * INF_RING_ENTRY_SIZE, INF_RING_ENTRY_SIZE);

    c->head++;
    __atomic_store_n(&c->head_word->value, c->head, __ATOMIC_RELEASE);
    return INF_RING_DONE;
}

bool
inf_ring_sleep(inf_ring_consumer_t *c)
{
    __atomic_store_n(&c->sleeping->value, 1, __ATOMIC_RELAXED);
    inf_ring_fence();

    if (__atomic_load_n(&c->tail_word->value, __ATOMIC_RELAXED) == c->head) {
        return true;
    }

    __atomic_store_n(&c->sleeping->value, 0, __ATOMIC_RELAXED);
    return false;
}

static inf_ring_result_t
refresh_head(inf_ring_producer_t *p)
{
    uint32_t head = __atomic_load_n(&p->head_word->value, __ATOMIC_ACQUIRE);

    /* A valid head lies between the cached one and the tail. */
    if (p->broken || head - p->head > p->tail - p->head) {
        p->broken = true;
        return INF_RING_BROKEN;
    }

    p->head = head;
    return p->tail - head < p->count ? INF_RING_DONE : INF_RING_WAIT;
}

static inf_ring_result_t
refresh_tail(inf_ring_consumer_t *c)
{
    uint32_t tail = __atomic_load_n(&c->tail_word->value, __ATOMIC_ACQUIRE);

    if (c->broken || tail - c->head > c->count) {
        c->broken = true;
        return INF_RING_BROKEN;
    }

    c->tail = tail;
    return tail != c->head ? INF_RING_DONE : INF_RING_WAIT;
}
