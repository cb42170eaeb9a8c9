#include "core/wire/server.h"

#include <assert.h>
#include <stdlib.h>

#include "core/base/points.h"
#include "core/wire/server_parts.h"
#include "core/wire/sockets.h"

#define CHANNEL_SPILL_CHUNK 63u
#define CHANNEL_SPILL_MAX   (UINT64_C(1) << 20)     /* 64 MiB of entries   */

#define CHANNEL_FLAGS (INF_COMPLETE_RESPONSE | INF_COMPLETE_FINAL           \
    | INF_COMPLETE_RELEASED | INF_COMPLETE_DECOUPLED)

/* Completions that found the ring full. */
struct inf_channel_spill_s {
    inf_channel_spill_t    *next;
    uint32_t                first;
    uint32_t                end;
    inf_completion_t        entries[CHANNEL_SPILL_CHUNK];
};

static void channel_push(inf_channel_t *ch, const inf_completion_t *cpl);
static inf_ring_result_t channel_push_locked(inf_channel_t *ch,
    const inf_completion_t *cpl) INF_NEEDS(ch->ring_lock);
static inf_ring_result_t channel_ring_push(inf_channel_t *ch,
    const inf_completion_t *cpl) INF_NEEDS(ch->ring_lock);
static bool channel_spill_locked(inf_channel_t *ch,
    const inf_completion_t *cpl, inf_channel_spill_t **fresh)
    INF_NEEDS(ch->ring_lock);
static void channel_flush_locked(inf_channel_t *ch)
    INF_NEEDS(ch->ring_lock);
static void channel_wake(inf_channel_t *ch);

void
inf_channel_complete(inf_channel_t *ch, const inf_completion_t *cpl,
    inf_channel_region_t *region, uint64_t length)
{
    inf_completion_t entry = *cpl;

    assert((cpl->flags & ~CHANNEL_FLAGS) == 0 && cpl->slot < ch->slots);
    assert(region == NULL || (region->channel == ch
        && length <= region->size));

    if (region != NULL) {
        entry.flags |= INF_COMPLETE_RESPONSE;
    }
    if (region != NULL && length == 0) {
        inf_channel_region_unref(region);
        region = NULL;
    }

    entry.offset = region != NULL ? region->offset : 0;
    entry.length = region != NULL ? length : 0;

    if (region != NULL && !inf_channel_publish(ch, region)) {
        inf_channel_region_unref(region);
        return;
    }

    channel_push(ch, &entry);
}

void
inf_channel_flush(inf_channel_t *ch)
{
    inf_lock(&ch->ring_lock);
    uint64_t before = ch->spill_count;
    channel_flush_locked(ch);
    bool moved = ch->spill_count != before;
    bool broken = ch->completions.broken;
    inf_unlock(&ch->ring_lock);

    if (moved) {
        channel_wake(ch);
    }
    if (broken) {
        inf_channel_dead(ch);
    }
}

bool
inf_channel_end_completions(inf_channel_t *ch)
{
    inf_lock(&ch->ring_lock);
    bool again = atomic_exchange_explicit(&ch->dead, true,
        memory_order_release);
    inf_channel_spill_t *spill = ch->spill_first;
    ch->spill_first = ch->spill_last = NULL;
    ch->spill_count = 0;
    atomic_store_explicit(&ch->spilling, false, memory_order_relaxed);
    inf_unlock(&ch->ring_lock);

    while (spill != NULL) {
        inf_channel_spill_t *next = spill->next;
        free(spill);
        spill = next;
    }
    return !again;
}

static void
channel_push(inf_channel_t *ch, const inf_completion_t *cpl)
{
    inf_channel_spill_t *fresh = NULL;
    inf_ring_result_t rc;
    bool kept = false;
    bool overrun = false;

    do {
        inf_lock(&ch->ring_lock);
        channel_flush_locked(ch);
        rc = channel_push_locked(ch, cpl);
        if (rc == INF_RING_WAIT) {
            overrun = ch->spill_count >= CHANNEL_SPILL_MAX;
            kept = !overrun && channel_spill_locked(ch, cpl, &fresh);
        }
        bool dead = inf_channel_is_dead(ch);
        inf_unlock(&ch->ring_lock);

        if (dead || overrun) {
            break;
        }

        /* Allocated without the lock; meanwhile the ring may have room
           again. */
        if (rc == INF_RING_WAIT && !kept) {
            fresh = calloc(1, sizeof(*fresh));
        }
    } while (rc == INF_RING_WAIT && !kept && fresh != NULL);

    INF_POINT(COMPLETION_WRITTEN);
    /* Also for a spilled one: the flush may have moved others. */
    channel_wake(ch);
    INF_POINT(WORKER_NOTIFIED);

    if (overrun) {
        atomic_store_explicit(&ch->overrun, true, memory_order_relaxed);
    }

    /* A lost completion would leave its request waiting forever; ending the
       channel does not. */
    if (rc == INF_RING_BROKEN || (rc == INF_RING_WAIT && !kept)) {
        inf_channel_dead(ch);
    }

    free(fresh);
}

static inf_ring_result_t
channel_push_locked(inf_channel_t *ch, const inf_completion_t *cpl)
{
    if (inf_channel_is_dead(ch)) {
        return INF_RING_BROKEN;
    }

    return ch->spill_count > 0 ? INF_RING_WAIT : channel_ring_push(ch, cpl);
}

static inf_ring_result_t
channel_ring_push(inf_channel_t *ch, const inf_completion_t *cpl)
{
    bool last;
    inf_ring_result_t rc = inf_ring_room(&ch->completions, &last);

    if (rc == INF_RING_WAIT
        && !atomic_load_explicit(&ch->spilling, memory_order_relaxed))
    {
        /*
         * Announces a spill to the intake, then checks the ring again:
         * either this thread sees the worker's last pop, or the
         * intake, woken after it, sees the flag.
         */
        atomic_store_explicit(&ch->spilling, true, memory_order_relaxed);
        inf_ring_fence();
        rc = inf_ring_room(&ch->completions, &last);
    }

    if (rc != INF_RING_DONE) {
        return rc;
    }

    inf_completion_t entry = *cpl;
    if (last) {
        entry.flags |= INF_COMPLETE_LAST;
    }

    inf_channel_count(&ch->completed);
    return inf_ring_push(&ch->completions, &entry);
}

/* Spills a completion; false: a chunk is needed and *fresh is NULL. */
static bool
channel_spill_locked(inf_channel_t *ch, const inf_completion_t *cpl,
    inf_channel_spill_t **fresh)
{
    inf_channel_spill_t *last = ch->spill_last;

    if (last == NULL || last->end == CHANNEL_SPILL_CHUNK) {
        if (*fresh == NULL) {
            return false;
        }

        if (last == NULL) {
            ch->spill_first = *fresh;
        } else {
            last->next = *fresh;
        }
        last = ch->spill_last = *fresh;
        *fresh = NULL;
    }

    last->entries[last->end++] = *cpl;
    ch->spill_count++;
    inf_channel_count(&ch->spilled);
    return true;
}

static void
channel_flush_locked(inf_channel_t *ch)
{
    if (!atomic_load_explicit(&ch->spilling, memory_order_relaxed)) {
        return;
    }

    while (ch->spill_count > 0) {
        inf_channel_spill_t *first = ch->spill_first;

        if (first->first == first->end) {
            ch->spill_first = first->next;
            free(first);
            continue;
        }

        if (channel_ring_push(ch, &first->entries[first->first])
            != INF_RING_DONE)
        {
            return;
        }

        first->first++;
        ch->spill_count--;
    }

    /* One used-up chunk is left. */
    free(ch->spill_first);
    ch->spill_first = ch->spill_last = NULL;
    atomic_store_explicit(&ch->spilling, false, memory_order_relaxed);
}

/* Wakes the worker; needs no lock, since it uses only the sleeping word. */
static void
channel_wake(inf_channel_t *ch)
{
    if (inf_ring_wake(&ch->completions)) {
        inf_eventfd_notify(ch->complete_eventfd);
        inf_channel_count(&ch->notifications);
    }
}
