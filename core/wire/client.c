#include "core/wire/client.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/points.h"
#include "core/wire/client_parts.h"
#include "core/wire/sockets.h"

#define CLIENT_TRIM_BYTES (UINT64_C(4) << 20)   /* about 1 ms               */
#define CLIENT_UNRUNG_MAX 8u                    /* after so many the core is
                                                   woken                    */
#define CLIENT_REQUESTS   4u    /* this fraction of the ring is not used by
                                   releases: the releases of a fast backend must
                                   not delay others' requests               */

#define CLIENT_FLAGS (INF_COMPLETE_RESPONSE | INF_COMPLETE_FINAL            \
    | INF_COMPLETE_RELEASED | INF_COMPLETE_DECOUPLED | INF_COMPLETE_LAST)

static bool client_take(inf_client_t *c, uint32_t leave, void *userp,
    inf_slot_id_t *out);
static inf_client_slot_t *client_slot(const inf_client_t *c, uint32_t slot,
    uint32_t generation);
static void client_give_slot(inf_client_t *c, inf_client_slot_t *s);
static void client_finish_abandoned(inf_client_t *c, inf_client_slot_t *s);
static inf_ring_result_t client_push(inf_client_t *c,
    const inf_submission_t *entry);
static void client_push_pending(inf_client_t *c);
static void client_wake(inf_client_t *c);
static void client_push_or_keep(inf_client_t *c,
    const inf_submission_t *entry);
static bool client_join_release(inf_client_t *c, uint64_t offset);
static bool client_completion_sane(const inf_client_t *c,
    const inf_completion_t *cpl);
static void client_dispatch(inf_client_t *c, const inf_completion_t *cpl,
    inf_client_handler_fn handler);

bool
inf_client_take(inf_client_t *c, void *userp, inf_slot_id_t *out)
{
    return client_take(c, c->slot_count / INF_CLIENT_CALL_SLOTS, userp, out);
}

bool
inf_client_take_call(inf_client_t *c, void *userp, inf_slot_id_t *out)
{
    return client_take(c, 0, userp, out);
}

static bool
client_take(inf_client_t *c, uint32_t leave, void *userp, inf_slot_id_t *out)
{
    if (c->slots_taken + leave >= c->slot_count) {
        *out = (inf_slot_id_t) { 0, 0 };
        return false;
    }

    uint32_t i = c->free_slot;
    inf_client_slot_t *s = &c->slots[i];
    c->free_slot = s->next_free;
    c->slots_taken++;

    s->userp = userp;
    s->state = INF_CLIENT_SLOT_TAKEN;
    s->seen = 0;
    s->cancelled = false;

    /* The core stores nothing here before the submission. */
    __atomic_store_n(&c->slot_states[i], (unsigned char) INF_SLOT_FREE,
        __ATOMIC_RELAXED);

    *out = (inf_slot_id_t) { i, s->generation };
    return true;
}

void
inf_client_give(inf_client_t *c, inf_slot_id_t id)
{
    inf_client_slot_t *s = client_slot(c, id.slot, id.generation);

    if (s != NULL && s->state != INF_CLIENT_SLOT_ABANDONED) {
        client_give_slot(c, s);
    }
}

void *
inf_client_find(const inf_client_t *c, inf_slot_id_t id)
{
    const inf_client_slot_t *s = client_slot(c, id.slot, id.generation);

    return s != NULL ? s->userp : NULL;
}

void
inf_client_set_userp(inf_client_t *c, inf_slot_id_t id, void *userp)
{
    inf_client_slot_t *s = client_slot(c, id.slot, id.generation);

    if (s != NULL && s->state != INF_CLIENT_SLOT_ABANDONED) {
        s->userp = userp;
    }
}

void
inf_client_abandon(inf_client_t *c, inf_slot_id_t id, inf_region_t *region)
{
    inf_client_slot_t *s = client_slot(c, id.slot, id.generation);

    if (s == NULL || s->state != INF_CLIENT_SLOT_SUBMITTED) {
        inf_regions_free(&c->regions, region);
        inf_client_give(c, id);
        return;
    }

    if (!(s->seen & INF_COMPLETE_FINAL)) {
        inf_client_cancel(c, id);
    }

    s->state = INF_CLIENT_SLOT_ABANDONED;
    s->userp = NULL;
    s->region = region;
    client_finish_abandoned(c, s);
}

uint8_t
inf_client_slot_state(const inf_client_t *c, inf_slot_id_t id)
{
    if (client_slot(c, id.slot, id.generation) == NULL) {
        return INF_SLOT_FREE;
    }

    return __atomic_load_n(&c->slot_states[id.slot], __ATOMIC_ACQUIRE);
}

void
inf_client_crash(const inf_client_t *c, char text[INF_CRASH_MAX])
{
    const char *shared = (const char *) c->rings + INF_CRASH_OFFSET;

    memcpy(text, shared, INF_CRASH_MAX);
    text[INF_CRASH_MAX - 1] = '\0';
    for (char *p = text; *p != '\0'; p++) {
        if ((unsigned char) *p < 0x20 || *p == 0x7f) {
            *p = '?';
        }
    }
}

bool
inf_client_has_suspect(const inf_client_t *c)
{
    const inf_rings_header_t *shared = c->rings;
    return __atomic_load_n(&shared->suspect.value, __ATOMIC_ACQUIRE) != 0;
}

uint32_t
inf_client_slots_taken(const inf_client_t *c)
{
    return c->slots_taken;
}

inf_region_t *
inf_client_alloc(inf_client_t *c, uint64_t size)
{
    return inf_regions_alloc(&c->regions, size);
}

inf_region_t *
inf_client_alloc_call(inf_client_t *c, uint64_t size)
{
    return inf_regions_alloc_beyond(&c->regions, size, INF_CLIENT_CALL_ROOM);
}

inf_region_t *
inf_client_reserve(inf_client_t *c, uint64_t size)
{
    return inf_regions_reserve(&c->regions, size);
}

bool
inf_client_charge(inf_client_t *c, inf_region_t *region, uint64_t len)
{
    return len <= region->size
        && inf_regions_charge(&c->regions, region, len);
}

void
inf_client_free_region(inf_client_t *c, inf_region_t *region)
{
    inf_regions_free(&c->regions, region);
}

bool
inf_client_grow(inf_client_t *c, inf_region_t *region, uint64_t size)
{
    return inf_regions_grow(&c->regions, region, size);
}

inf_region_t *
inf_client_replace(inf_client_t *c, inf_region_t *from, uint64_t size)
{
    return inf_regions_replace(&c->regions, from, size);
}

void *
inf_client_data(const inf_client_t *c, const inf_region_t *region)
{
    return c->arena + region->offset;
}

const inf_regions_stats_t *
inf_client_arena_stats(const inf_client_t *c)
{
    return &c->regions.stats;
}

uint64_t
inf_client_trim(inf_client_t *c, uint64_t now_ns)
{
    return inf_regions_trim(&c->regions, now_ns, CLIENT_TRIM_BYTES);
}

inf_client_result_t
inf_client_submit(inf_client_t *c, const inf_submission_t *submission)
{
    inf_client_slot_t *s = client_slot(c, submission->slot,
        submission->generation);

    assert(s != NULL && s->state == INF_CLIENT_SLOT_TAKEN);
    assert(submission->op == INF_SUBMIT_INFER
        || submission->op == INF_SUBMIT_CALL);

    /* Pending entries go first, except releases that leave room. */
    client_push_pending(c);
    if (c->broken || client_push(c, submission) != INF_RING_DONE) {
        c->stats.busy += !c->broken;
        return c->broken ? INF_CLIENT_BROKEN : INF_CLIENT_AGAIN;
    }

    s->state = INF_CLIENT_SLOT_SUBMITTED;
    c->stats.submitted++;
    return INF_CLIENT_OK;
}

void
inf_client_cancel(inf_client_t *c, inf_slot_id_t id)
{
    inf_client_slot_t *s = client_slot(c, id.slot, id.generation);

    if (s == NULL || s->state != INF_CLIENT_SLOT_SUBMITTED || s->cancelled) {
        return;
    }

    s->cancelled = true;
    client_push_or_keep(c, &(inf_submission_t) {
        .op = INF_SUBMIT_CANCEL,
        .slot = id.slot,
        .generation = id.generation
    });
}

void
inf_client_release(inf_client_t *c, uint64_t response_offset)
{
    assert(c->held > 0);

    c->held--;
    client_push_or_keep(c, &(inf_submission_t) {
        .op = INF_SUBMIT_RELEASE,
        .offset = response_offset
    });
    INF_POINT(RELEASE_WRITTEN);
}

uint32_t
inf_client_pending(const inf_client_t *c)
{
    return c->pending.count;
}

void
inf_client_ring(inf_client_t *c)
{
    if (c->unrung > 0) {
        client_wake(c);
        INF_POINT(CORE_NOTIFIED);
    }
}

void
inf_client_flush(inf_client_t *c)
{
    client_push_pending(c);

    if (c->unrung > 0 || c->unrung_releases) {
        client_wake(c);
    }
}

static void
client_push_pending(inf_client_t *c)
{
    inf_client_pending_t *p = &c->pending;

    while (p->count > 0
           && client_push(c, &p->entries[p->first]) == INF_RING_DONE)
    {
        p->first = p->first + 1 == p->cap ? 0 : p->first + 1;
        p->count--;
    }
}

inf_client_result_t
inf_client_drain(inf_client_t *c, uint32_t budget,
    inf_client_handler_fn handler)
{
    inf_client_result_t result = INF_CLIENT_AGAIN;
    bool more = false;                  /* the core may have some          */

    client_push_pending(c);
    while (budget-- > 0 && inf_client_pending_room(c)) {
        inf_completion_t cpl;
        inf_ring_result_t rc = inf_ring_pop(&c->completions, &cpl);

        if (rc == INF_RING_WAIT) {
            result = INF_CLIENT_OK;
            break;
        }

        if (rc == INF_RING_BROKEN || !client_completion_sane(c, &cpl)) {
            c->broken = true;
            break;
        }

        if (cpl.flags & INF_COMPLETE_LAST) {
            more = true;
            cpl.flags &= (uint8_t) ~INF_COMPLETE_LAST;
        }

        client_dispatch(c, &cpl, handler);
    }

    if (more) {
        inf_eventfd_notify(c->submit_eventfd);
    }

    return c->broken ? INF_CLIENT_BROKEN : result;
}

bool
inf_client_arm(inf_client_t *c)
{
    client_push_pending(c);
    return !c->broken && inf_ring_sleep(&c->completions);
}

const void *
inf_client_response(const inf_client_t *c, uint64_t offset, uint64_t len)
{
    return inf_range_ok(offset, len, c->responses_size)
        ? c->responses + offset : NULL;
}

uint64_t
inf_client_response_size(const inf_client_t *c)
{
    return c->responses_size;
}

const inf_client_stats_t *
inf_client_stats(const inf_client_t *c)
{
    return &c->stats;
}

/* The slot, or NULL if this use of it has ended. */
static inf_client_slot_t *
client_slot(const inf_client_t *c, uint32_t slot, uint32_t generation)
{
    if (slot >= c->slot_count) {
        return NULL;
    }

    inf_client_slot_t *s = &c->slots[slot];
    return s->state != INF_CLIENT_SLOT_FREE && s->generation == generation ? s
        : NULL;
}

static void
client_give_slot(inf_client_t *c, inf_client_slot_t *s)
{
    s->state = INF_CLIENT_SLOT_FREE;
    s->userp = NULL;
    s->region = NULL;
    s->generation = s->generation == UINT32_MAX ? 1 : s->generation + 1;
    s->next_free = c->free_slot;
    c->free_slot = (uint32_t) (s - c->slots);
    c->slots_taken--;
}

static void
client_finish_abandoned(inf_client_t *c, inf_client_slot_t *s)
{
    if (!(s->seen & INF_COMPLETE_RELEASED)) {
        return;
    }

    inf_regions_free(&c->regions, s->region);
    s->region = NULL;

    if (s->seen & INF_COMPLETE_FINAL) {
        client_give_slot(c, s);
    }
}

static inf_ring_result_t
client_push(inf_client_t *c, const inf_submission_t *entry)
{
    bool room = entry->op != INF_SUBMIT_RELEASE
        || inf_ring_has_more(&c->submissions,
            c->submissions.count / CLIENT_REQUESTS);
    inf_ring_result_t rc = room ? inf_ring_push(&c->submissions, entry)
        : c->submissions.broken ? INF_RING_BROKEN : INF_RING_WAIT;

    if (rc == INF_RING_BROKEN) {
        c->broken = true;
    }

    if (rc == INF_RING_WAIT) {
        client_wake(c);             /* the core must drain it              */
    }

    if (rc != INF_RING_DONE) {
        return rc;
    }

    if (!c->defer) {
        client_wake(c);

    } else if (entry->op == INF_SUBMIT_RELEASE) {
        c->unrung_releases = true;

    } else if (++c->unrung >= CLIENT_UNRUNG_MAX) {
        inf_client_ring(c);
    }

    return rc;
}

static void
client_wake(inf_client_t *c)
{
    c->unrung = 0;
    c->unrung_releases = false;

    if (inf_ring_wake(&c->submissions)) {
        inf_eventfd_notify(c->submit_eventfd);
        c->stats.notifications++;
    }
}

/* Pushes an entry or keeps it as pending; inf_client_pending_room has made
   room. */
static void
client_push_or_keep(inf_client_t *c, const inf_submission_t *entry)
{
    inf_client_pending_t *p = &c->pending;
    bool release = entry->op == INF_SUBMIT_RELEASE;

    client_push_pending(c);
    if (c->broken
        || ((p->count == 0 || !release)
            && client_push(c, entry) == INF_RING_DONE)
        || (release && client_join_release(c, entry->offset)))
    {
        return;
    }

    assert(p->count < p->cap);
    uint32_t at = p->first + p->count;
    p->entries[at < p->cap ? at : at - p->cap] = *entry;
    p->count++;
}

/* Adds the offset to the last pending entry, if it is a release with a free
   place. */
static bool
client_join_release(inf_client_t *c, uint64_t offset)
{
    inf_client_pending_t *p = &c->pending;

    if (p->count == 0) {
        return false;
    }

    uint32_t at = p->first + p->count - 1;
    inf_submission_t *last = &p->entries[at < p->cap ? at : at - p->cap];

    if (last->op != INF_SUBMIT_RELEASE || last->flags == INF_RELEASE_MORE) {
        return false;
    }

    memcpy((char *) &last->length + last->flags * sizeof(offset), &offset,
        sizeof(offset));
    last->flags++;
    return true;
}

bool
inf_client_pending_grow(inf_client_t *c, uint64_t need)
{
    inf_client_pending_t *p = &c->pending;

    uint64_t cap = need + need / 2;
    if (cap > UINT32_MAX / sizeof(inf_submission_t)) {
        return false;
    }

    inf_submission_t *entries = malloc((size_t) cap * sizeof(*entries));
    if (entries == NULL) {
        return false;
    }

    for (uint32_t i = 0; i < p->count; i++) {
        entries[i] = p->entries[(p->first + i) % p->cap];
    }

    free(p->entries);
    p->entries = entries;
    p->first = 0;
    p->cap = (uint32_t) cap;
    return true;
}

static bool
client_completion_sane(const inf_client_t *c, const inf_completion_t *cpl)
{
    if ((cpl->flags & ~CLIENT_FLAGS) != 0 || cpl->slot >= c->slot_count
        || cpl->cause > INF_CAUSE_LAST)
    {
        return false;
    }

    return !(cpl->flags & INF_COMPLETE_RESPONSE) || cpl->length == 0
        || inf_range_ok(cpl->offset, cpl->length, c->responses_size);
}

static void
client_dispatch(inf_client_t *c, const inf_completion_t *cpl,
    inf_client_handler_fn handler)
{
    inf_client_slot_t *s = client_slot(c, cpl->slot, cpl->generation);
    bool holds = (cpl->flags & INF_COMPLETE_RESPONSE) && cpl->length > 0;

    c->held += holds;

    /* After FINAL only RELEASED is expected. */
    bool late = s == NULL || s->state == INF_CLIENT_SLOT_TAKEN
        || ((s->seen & INF_COMPLETE_FINAL)
            && (cpl->flags & (INF_COMPLETE_RESPONSE | INF_COMPLETE_FINAL)));

    if (late) {
        c->stats.late++;
    } else {
        s->seen |= cpl->flags & (INF_COMPLETE_FINAL | INF_COMPLETE_RELEASED);
    }

    if (late || s->state == INF_CLIENT_SLOT_ABANDONED) {
        if (holds) {
            inf_client_release(c, cpl->offset);
        }
        if (!late) {
            client_finish_abandoned(c, s);
        }
        return;
    }

    c->stats.completed++;
    handler(cpl, s->userp);
}
