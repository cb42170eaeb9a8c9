#include "core/wire/server.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "core/base/os/mapped_files.h"
#include "core/base/refs.h"
#include "core/wire/server_parts.h"
#include "core/wire/sockets.h"

static void channel_release(inf_channel_t *ch, const inf_submission_t *s);
static bool channel_submission_sane(const inf_channel_t *ch,
    const inf_submission_t *s);

inf_channel_t *
inf_channel_ref(inf_channel_t *ch)
{
    atomic_fetch_add_explicit(&ch->refs, 1, memory_order_relaxed);
    return ch;
}

void
inf_channel_unref(inf_channel_t *ch)
{
    if (ch == NULL) {
        return;
    }

    if (inf_refs_drop(&ch->refs)) {
        inf_channel_free(ch);
    }
}

void
inf_channel_dead(inf_channel_t *ch)
{
    if (!inf_channel_end_completions(ch)) {
        return;
    }

    shutdown(ch->fds[INF_FD_CONTROL], SHUT_RDWR);
    inf_channel_end_regions(ch);
}

bool
inf_channel_is_dead(const inf_channel_t *ch)
{
    return atomic_load_explicit(&ch->dead, memory_order_acquire);
}

bool
inf_channel_is_overrun(const inf_channel_t *ch)
{
    return atomic_load_explicit(&ch->overrun, memory_order_relaxed);
}

uint32_t
inf_channel_pid(const inf_channel_t *ch)
{
    return ch->pid;
}

uint32_t
inf_channel_slots(const inf_channel_t *ch)
{
    return ch->slots;
}

int
inf_channel_event_fd(const inf_channel_t *ch)
{
    return ch->fds[INF_FD_SUBMIT_EVENTFD];
}

int
inf_channel_control_fd(const inf_channel_t *ch)
{
    return ch->fds[INF_FD_CONTROL];
}

bool
inf_channel_is_leaving(const inf_channel_t *ch)
{
    const inf_rings_header_t *shared = ch->rings;
    return __atomic_load_n(&shared->leaving.value, __ATOMIC_RELAXED) != 0;
}

inf_channel_result_t
inf_channel_pop(inf_channel_t *ch, inf_submission_t *out)
{
    if (inf_channel_is_dead(ch)) {
        return INF_CHANNEL_BROKEN;
    }

    if (atomic_load_explicit(&ch->spilling, memory_order_relaxed)) {
        inf_channel_flush(ch);
    }

    inf_ring_result_t rc = inf_ring_pop(&ch->submissions, out);
    if (rc != INF_RING_DONE) {
        return rc == INF_RING_WAIT ? INF_CHANNEL_EMPTY : INF_CHANNEL_BROKEN;
    }

    inf_channel_count(&ch->submitted);

    if (out->op == INF_SUBMIT_RELEASE) {
        channel_release(ch, out);
        return INF_CHANNEL_SKIPPED;
    }

    if (!channel_submission_sane(ch, out)) {
        inf_channel_reject(ch, out);
        return INF_CHANNEL_SKIPPED;
    }

    return INF_CHANNEL_ENTRY;
}

/* Releases the regions of an entry; one with too many offsets is invalid. */
static void
channel_release(inf_channel_t *ch, const inf_submission_t *s)
{
    uint64_t offset;

    if (s->flags > INF_RELEASE_MORE) {
        inf_channel_count(&ch->invalid);
        return;
    }

    inf_channel_release(ch, s->offset);
    for (uint32_t i = 0; i < s->flags; i++) {
        memcpy(&offset, (const char *) &s->length + i * sizeof(offset),
            sizeof(offset));
        inf_channel_release(ch, offset);
    }
}

void
inf_channel_reject(inf_channel_t *ch, const inf_submission_t *s)
{
    inf_channel_count(&ch->invalid);

    if (s->slot >= ch->slots
        || (s->op != INF_SUBMIT_INFER && s->op != INF_SUBMIT_CALL))
    {
        return;                     /* no request to answer                */
    }

    inf_channel_complete(ch, &(inf_completion_t) {
        .flags = INF_COMPLETE_FINAL | INF_COMPLETE_RELEASED,
        .status = INF_STATUS(INF_ERR_INVALID_ARG),
        .slot = s->slot,
        .generation = s->generation
    }, NULL, 0);
}

bool
inf_channel_sleep(inf_channel_t *ch)
{
    if (!inf_ring_sleep(&ch->submissions)) {
        return false;
    }

    /* Comes after the fence of pop; see channel_ring_push. */
    if (atomic_load_explicit(&ch->spilling, memory_order_relaxed)) {
        inf_channel_flush(ch);
    }

    return true;
}

const void *
inf_channel_request(const inf_channel_t *ch, uint64_t offset, uint64_t len)
{
    return inf_range_ok(offset, len, ch->requests_size)
        ? ch->requests + offset : NULL;
}

uint64_t
inf_channel_request_size(const inf_channel_t *ch)
{
    return ch->requests_size;
}

bool
inf_channel_request_pinned(const inf_channel_t *ch, uint64_t offset,
    uint64_t len)
{
    uint64_t half = INF_ARENA_HALF(ch->requests_size);
    uint64_t pinned = inf_channel_pinned_requests(ch);

    return pinned > 0 && inf_range_ok(offset < half ? offset : offset - half,
        len, pinned);
}

uint64_t
inf_channel_pinned(const inf_channel_t *ch)
{
    return atomic_load_explicit(&ch->pinned, memory_order_acquire);
}

uint64_t
inf_channel_pinned_requests(const inf_channel_t *ch)
{
    return atomic_load_explicit(&ch->requests_pinned, memory_order_acquire);
}

void
inf_channel_set_slot(inf_channel_t *ch, uint32_t slot, uint8_t state)
{
    assert(slot < ch->slots);
    __atomic_store_n(&ch->slot_states[slot], state, __ATOMIC_RELEASE);
}

char *
inf_channel_crash(const inf_channel_t *ch)
{
    return (char *) ch->rings + INF_CRASH_OFFSET;
}

void
inf_channel_set_suspect(inf_channel_t *ch, bool under_way)
{
    inf_rings_header_t *shared = ch->rings;
    __atomic_store_n(&shared->suspect.value, under_way, __ATOMIC_RELEASE);
}

void
inf_channel_stats(inf_channel_t *ch, inf_channel_stats_t *out)
{
    inf_lock(&ch->ring_lock);
    uint64_t waiting = ch->spill_count;
    inf_unlock(&ch->ring_lock);

    *out = (inf_channel_stats_t) {
        .submissions = atomic_load_explicit(&ch->submitted,
            memory_order_relaxed),
        .completions = atomic_load_explicit(&ch->completed,
            memory_order_relaxed),
        .spilled = atomic_load_explicit(&ch->spilled, memory_order_relaxed),
        .notifications = atomic_load_explicit(&ch->notifications,
            memory_order_relaxed),
        .invalid = atomic_load_explicit(&ch->invalid, memory_order_relaxed),
        .bad_releases = atomic_load_explicit(&ch->bad_releases,
            memory_order_relaxed),
        .waiting = waiting
    };
}

void
inf_channel_free(inf_channel_t *ch)
{
    (void) inf_channel_end_completions(ch);

    if (ch->rings != NULL) {
        munmap(ch->rings, ch->rings_size);
    }
    if (inf_channel_pinned_requests(ch) > 0) {
        ch->pin->unpin(ch->requests);
        ch->pin->unpin(ch->requests + INF_ARENA_HALF(ch->requests_size));
    }
    inf_mapped_file_remove(ch->requests_file);
    if (ch->requests != NULL) {
        munmap(ch->requests, ch->requests_size);
    }
    if (inf_channel_pinned(ch) > 0) {
        ch->pin->unpin(ch->responses);
    }
    if (ch->responses != NULL) {
        munmap(ch->responses, ch->responses_size);
    }

    inf_fds_close(ch->fds, INF_HELLO_WORKER_FDS);
    inf_fds_close(&ch->responses_fd, 1);
    inf_fds_close(&ch->complete_eventfd, 1);
    inf_regions_fini(&ch->regions);
    free(ch->buckets);
    inf_lock_fini(&ch->ring_lock);
    inf_lock_fini(&ch->arena_lock);
    free(ch);
}

static bool
channel_submission_sane(const inf_channel_t *ch, const inf_submission_t *s)
{
    if (s->slot >= ch->slots) {
        return false;
    }

    if (s->op == INF_SUBMIT_CANCEL) {
        return true;
    }

    if (!inf_range_ok(s->offset, s->length, ch->requests_size)) {
        return false;
    }

    if (s->op == INF_SUBMIT_INFER) {
        return s->length >= sizeof(inf_infer_record_t)
            && s->length <= INF_RECORD_MAX;
    }

    return s->op == INF_SUBMIT_CALL && s->method >= INF_METHOD_SERVER_LIVE
        && s->method < INF_METHOD_END;
}

