/*
 * Completions as a worker reads them.  The input is a row of steps: those of a
 * worker that keeps the rules of client.h, and those of a core that keeps
 * none: entries with any flags, slots, generations and places, indices that
 * jump.  The calls of the handler must fit those of the worker, every response
 * is released once, and no region or slot is lost.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "t/fuzz/channel.h"

#define ENTRIES   8u
#define RESPONSES (64u << 10)
#define KEPT_MAX  4096u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef enum {
    REQUEST_NONE,
    REQUEST_TAKEN,
    REQUEST_SUBMITTED
} request_state_t;

typedef struct {
    struct world_s  *world;
    inf_slot_id_t    id;
    inf_region_t    *region;
    request_state_t  state;
    uint8_t          seen;
} request_t;

typedef struct world_s {
    input_t              in;

    inf_client_t        *client;
    request_t            requests[SLOTS];
    uint64_t             kept[KEPT_MAX];    /* offsets not released yet    */
    uint32_t             kept_count;
    bool                 release_at_once;

    /* the core's side: what it may write, and what it has been told */
    rings_t              rings;
    inf_ring_consumer_t  submissions;
    bool                 jumped;            /* what it counts is no use    */
    uint32_t             generations[SLOTS];    /* submitted last; 0: none */
    uint64_t             lent;              /* responses, and the sum of   */
    uint64_t             lent_offsets;      /* their places                */
    uint64_t             returned;
    uint64_t             returned_offsets;
    unsigned             touched;
} world_t;

/* ---- how both sides meet ---- */

static void
core_open(world_t *w, int *fds)
{
    inf_welcome_t welcome = {
        .magic = INF_CHANNEL_MAGIC,
        .version = INF_CHANNEL_VERSION,
        .size = sizeof(welcome),
        .status = INF_OK,
        .response_arena_size = RESPONSES
    };
    int mine[INF_WELCOME_FDS];
    inf_socket_result_t result;

    inf_rings_header_t *h = (void *) w->rings.base;
    inf_ring_consumer_init(&w->submissions,
        w->rings.base + w->rings.layout.submit_offset, &h->submit_tail, &h->submit_head,
        &h->submit_sleeping, ENTRIES);

    ok(inf_memfd_new("responses", RESPONSES,
        &mine[INF_WELCOME_FD_RESPONSES]));
    ok(inf_eventfd_new(&mine[INF_WELCOME_FD_CORE]));
    ok(inf_eventfd_new(&mine[INF_WELCOME_FD_EVENTFD]));
    ok(inf_socket_send(fds[INF_FD_CONTROL], &welcome, sizeof(welcome), mine,
        INF_WELCOME_FDS, &result));
    check(result == INF_SOCKET_DONE);
    inf_fds_close(mine, INF_WELCOME_FDS);
}

static void
world_open(world_t *w)
{
    int fds[INF_SOCKET_MAX_FDS];
    inf_hello_t hello;
    size_t count;
    bool again;

    rings_open(&w->rings, ENTRIES, &w->client, &hello, fds, &count);
    core_open(w, fds);
    inf_fds_close(fds, count);
    ok(inf_client_welcome(w->client, &again));
    check(!again);

    for (uint32_t i = 0; i < SLOTS; i++) {
        w->requests[i].world = w;
    }
}

/* ---- the worker, which keeps the rules ---- */

/* A finished request is given back, as the service does. */
static void
worker_finish(request_t *r)
{
    inf_client_t *c = r->world->client;

    if (r->seen & INF_COMPLETE_RELEASED) {
        inf_client_free_region(c, r->region);
        r->region = NULL;
    }

    if (r->seen == (INF_COMPLETE_FINAL | INF_COMPLETE_RELEASED)) {
        inf_client_give(c, r->id);
        r->state = REQUEST_NONE;
    }
}

static void
on_completion(const inf_completion_t *cpl, void *userp)
{
    request_t *r = userp;
    world_t *w = r->world;

    check(r->state == REQUEST_SUBMITTED);
    check(cpl->slot == r->id.slot);
    check(cpl->generation == r->id.generation);
    check(cpl->cause <= INF_CAUSE_LAST);
    check((cpl->flags & ~(INF_COMPLETE_RESPONSE | INF_COMPLETE_FINAL
        | INF_COMPLETE_RELEASED | INF_COMPLETE_DECOUPLED)) == 0);
    check(!(r->seen & INF_COMPLETE_FINAL)
        || !(cpl->flags & (INF_COMPLETE_RESPONSE | INF_COMPLETE_FINAL)));

    if ((cpl->flags & INF_COMPLETE_RESPONSE) && cpl->length > 0) {
        const unsigned char *p = inf_client_response(w->client, cpl->offset,
            cpl->length);
        check(p != NULL);
        w->touched += p[0] + (unsigned) p[cpl->length - 1];

        if (w->release_at_once || w->kept_count == KEPT_MAX) {
            inf_client_release(w->client, cpl->offset);
        } else {
            w->kept[w->kept_count++] = cpl->offset;
        }
    }

    r->seen |= cpl->flags & (INF_COMPLETE_FINAL | INF_COMPLETE_RELEASED);
    worker_finish(r);
}

static void
worker_take(world_t *w, uint8_t argument)
{
    request_t *r = &w->requests[argument % SLOTS];

    if (r->state != REQUEST_NONE
        || !inf_client_take(w->client, r, &r->id))
    {
        return;
    }

    check(inf_client_find(w->client, r->id) == r);
    r->seen = 0;
    r->state = REQUEST_TAKEN;
    r->region = argument & 0x80 ? NULL
        : inf_client_alloc(w->client, 1 + argument * 16u);
}

static void
worker_submit(world_t *w, uint8_t argument)
{
    request_t *r = &w->requests[argument % SLOTS];

    if (r->state != REQUEST_TAKEN) {
        return;
    }

    inf_client_result_t rc = inf_client_submit(w->client,
        &(inf_submission_t) {
            .op = argument & 0x80 ? INF_SUBMIT_CALL : INF_SUBMIT_INFER,
            .slot = r->id.slot,
            .generation = r->id.generation,
            .offset = r->region != NULL ? r->region->offset : 0
        });
    if (rc == INF_CLIENT_OK) {
        r->state = REQUEST_SUBMITTED;
    }
}

static void
worker_leave(world_t *w, uint8_t argument)
{
    request_t *r = &w->requests[argument % SLOTS];

    if (r->state == REQUEST_NONE) {
        return;
    }

    inf_client_abandon(w->client, r->id, r->region);
    inf_client_abandon(w->client, r->id, NULL);         /* no longer valid */
    r->region = NULL;
    r->state = REQUEST_NONE;
}

static void
worker_catch_up(world_t *w)
{
    while (w->kept_count > 0) {
        inf_client_release(w->client, w->kept[--w->kept_count]);
    }
}

/* ---- the core, which keeps none ---- */

static void
core_complete(world_t *w, const inf_completion_t *cpl)
{
    inf_rings_header_t *h = (void *) w->rings.base;

    /* what nobody has read yet is overwritten */
    w->jumped |= w->rings.tail - h->complete_head.value >= ENTRIES;

    rings_push(&w->rings, w->rings.layout.complete_offset, &h->complete_tail,
        cpl);

    if ((cpl->flags & INF_COMPLETE_RESPONSE) && cpl->length > 0) {
        w->lent++;
        w->lent_offsets += cpl->offset;
    }
}

/* Nearly right: for a slot in use as often as not. */
static void
core_answer(world_t *w)
{
    const request_t *r = &w->requests[input_next(&w->in, 1) % SLOTS];
    uint64_t how = input_next(&w->in, 1);

    core_complete(w, &(inf_completion_t) {
        .flags = (uint8_t) (how & (INF_COMPLETE_RESPONSE | INF_COMPLETE_FINAL
            | INF_COMPLETE_RELEASED | INF_COMPLETE_DECOUPLED
            | INF_COMPLETE_LAST)),
        .slot = r->id.slot,
        .generation = r->id.generation - (how >> 5 & 1),
        .offset = input_next(&w->in, 2),
        .length = how & 0x10 ? input_next(&w->in, 2) : 8
    });
}

static void
core_scribble(world_t *w)
{
    inf_completion_t cpl = { 0 };
    uint64_t how = input_next(&w->in, 1);

    cpl.flags = (uint8_t) input_next(&w->in, 1);
    cpl.slot = (uint32_t) input_next(&w->in, how & 1 ? 4 : 1);
    cpl.generation = (uint32_t) input_next(&w->in, how & 2 ? 4 : 1);
    cpl.offset = input_next(&w->in, how & 4 ? 8 : 2);
    cpl.length = input_next(&w->in, how & 8 ? 8 : 2);
    cpl.cause = (uint8_t) input_next(&w->in, how & 16 ? 1 : 0);
    core_complete(w, &cpl);
}

static void
core_jump(world_t *w)
{
    inf_rings_header_t *h = (void *) w->rings.base;
    uint64_t which = input_next(&w->in, 1);
    uint32_t value = (uint32_t) input_next(&w->in, which & 0x80 ? 4 : 1);

    w->jumped |= (which & 7) < 4;
    if ((which & 7) > 5) {
        w->rings.base[w->rings.layout.slot_state_offset + value % SLOTS] =
            (unsigned char) which;
    } else {
        rings_jump(&w->rings, which & 7, value,
            (ring_t) { &h->complete_tail, &h->complete_head },
            (ring_t) { &h->submit_tail, &h->submit_head });
    }
}

/* Messages of the worker to a core that still listens. */
static void
core_listen(world_t *w)
{
    inf_submission_t s;

    while (!w->jumped && inf_ring_pop(&w->submissions, &s) == INF_RING_DONE) {
        switch (s.op) {

        case INF_SUBMIT_RELEASE:
            check(s.flags <= INF_RELEASE_MORE);
            w->returned += 1u + s.flags;
            w->returned_offsets += s.offset;
            for (uint32_t i = 0; i < s.flags; i++) {
                uint64_t offset;
                memcpy(&offset, (char *) &s.length + i * sizeof(offset),
                    sizeof(offset));
                w->returned_offsets += offset;
            }
            break;

        case INF_SUBMIT_INFER:
        case INF_SUBMIT_CALL:
            check(s.slot < SLOTS && s.generation != 0);
            w->generations[s.slot] = s.generation;
            break;

        case INF_SUBMIT_CANCEL:
            check(s.slot < SLOTS && w->generations[s.slot] == s.generation);
            break;

        default:
            abort();
        }
    }
}

static void
step(world_t *w)
{
    uint64_t op = input_next(&w->in, 1);
    uint8_t argument = (uint8_t) (op >> 4 | (op & 8) << 4);

    switch (op & 15) {

    case 0:
        worker_take(w, argument);
        break;

    case 1:
    case 2:
        worker_submit(w, argument);
        break;

    case 3:
        worker_leave(w, argument);
        break;

    case 4:
        inf_client_cancel(w->client, w->requests[argument % SLOTS].id);
        break;

    case 5:
        w->release_at_once = argument & 1;
        worker_catch_up(w);
        break;

    case 6:
        inf_client_flush(w->client);
        (void) inf_client_arm(w->client);
        break;

    case 7:
    case 8:
        inf_client_drain(w->client, argument, on_completion);
        break;

    case 9:
        core_listen(w);
        break;

    case 10:
        core_scribble(w);
        break;

    case 11:
        core_jump(w);
        break;

    default:
        core_answer(w);
        break;
    }
}

/* Everything is drained, told and released; whether the channel lives. */
static bool
world_settle(world_t *w)
{
    inf_client_result_t rc;

    do {
        rc = inf_client_drain(w->client, 2 * ENTRIES, on_completion);
        if (rc == INF_CLIENT_BROKEN || w->jumped) {
            return false;
        }

        worker_catch_up(w);
        core_listen(w);
        inf_client_flush(w->client);
    } while (rc != INF_CLIENT_OK || inf_client_pending(w->client) > 0);

    core_listen(w);
    return true;
}

/* The core ends all it was ever asked, by two entries each. */
static void
core_end(world_t *w)
{
    for (uint32_t i = 0; i < 2 * SLOTS; i++) {
        core_complete(w, &(inf_completion_t) {
            .flags = i & 1 ? INF_COMPLETE_FINAL : INF_COMPLETE_RELEASED,
            .slot = i / 2,
            .generation = w->generations[i / 2]
        });
        check(world_settle(w));
    }
}

/* Neither a slot nor a region is lost, and no response. */
static void
world_close(world_t *w)
{
    uint32_t slots = 0;
    uint32_t regions = 0;
    bool settled = world_settle(w);

    if (settled) {
        core_end(w);
        check(w->returned == w->lent);
        check(w->returned_offsets == w->lent_offsets);
    }

    for (uint32_t i = 0; i < SLOTS; i++) {
        request_t *r = &w->requests[i];

        slots += r->state != REQUEST_NONE;
        regions += r->region != NULL;
        check(!settled || r->state != REQUEST_SUBMITTED);
    }

    check(!settled || inf_client_slots_taken(w->client) == slots);
    check(!settled
        || inf_client_arena_stats(w->client)->regions == regions);

    inf_client_free(w->client);
    rings_close(&w->rings);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static world_t w;

    memset(&w, 0, sizeof(w));
    w.in = (input_t) { data, size < 4096 ? size : 4096 };
    world_open(&w);

    while (w.in.size > 0) {
        step(&w);
    }

    world_close(&w);
    return 0;
}
