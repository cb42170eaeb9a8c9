/*
 * Submissions as the core reads them.  The input is a row of steps: those of a
 * core that keeps the rules of server.h, and those of a worker that keeps none:
 * a registration with any sizes, entries with any fields, releases of what was
 * never sent, indices that jump.  An entry that the core gets lies within its
 * bounds, and each response is freed once, when worker and core are done with
 * it.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/wire/server.h"
#include "t/fuzz/channel.h"

#define ENTRIES   16u
#define RESPONSES 256u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct {
    inf_channel_region_t *own;      /* the core's reference                */
    uint64_t              offset;
    bool                  freed;
} response_t;

typedef struct {
    input_t             in;
    inf_client_t       *client;
    inf_channel_t      *channel;    /* NULL: the core did not accept       */

    rings_t             rings;      /* the worker's side                   */

    /* the core's side */
    response_t          responses[RESPONSES];
    uint32_t            response_count;
    unsigned            touched;
} world_t;

/* ---- how both sides meet ---- */

static void
core_accept(world_t *w, const inf_hello_t *hello, int *fds, size_t count)
{
    const inf_channel_conf_t conf = { .response_bound = BOUND,
        .response_size = 4 * BOUND };

    inf_err_t *err = inf_channel_accept(hello, sizeof(*hello), fds, count,
        &conf, &w->channel);
    if (err != NULL) {
        w->channel = NULL;
        inf_err_free(err);
    }
}

/* The first byte: how many words of the registration are not the client's. */
static void
world_open(world_t *w)
{
    int fds[INF_SOCKET_MAX_FDS];
    inf_hello_t hello;
    size_t count;

    rings_open(&w->rings, ENTRIES, &w->client, &hello, fds, &count);

    for (uint64_t n = input_next(&w->in, 1) % 4; n > 0; n--) {
        uint64_t at = input_next(&w->in, 1) % (sizeof(hello) / 4) * 4;
        uint32_t word = (uint32_t) input_next(&w->in, 4);
        memcpy((char *) &hello + at, &word, sizeof(word));
    }
    core_accept(w, &hello, fds, count);
}

/* ---- the worker, which keeps no rule ---- */

static void
worker_submit(world_t *w, const inf_submission_t *s)
{
    inf_rings_header_t *h = (void *) w->rings.base;

    rings_push(&w->rings, w->rings.layout.submit_offset, &h->submit_tail, s);
}

static void
worker_scribble(world_t *w)
{
    uint64_t how = input_next(&w->in, 1);
    inf_submission_t s = {
        .op = (uint8_t) input_next(&w->in, how & 1 ? 1 : 0),
        .flags = (uint8_t) input_next(&w->in, 1),
        .method = (uint16_t) input_next(&w->in, how & 2 ? 2 : 1),
        .slot = (uint32_t) input_next(&w->in, how & 4 ? 4 : 1),
        .generation = (uint32_t) input_next(&w->in, 1),
        .offset = input_next(&w->in, how & 8 ? 8 : 2),
        .length = input_next(&w->in, how & 16 ? 8 : 2)
    };

    if (!(how & 1)) {
        s.op = (uint8_t) (INF_SUBMIT_INFER + (how >> 5) % 3);
    }
    worker_submit(w, &s);
}

/* Of responses that there are, as often as not. */
static void
worker_release(world_t *w)
{
    uint64_t how = input_next(&w->in, 1);
    uint64_t offsets[1 + INF_RELEASE_MORE] = { 0 };
    inf_submission_t s = {
        .op = INF_SUBMIT_RELEASE, .flags = (uint8_t) (how & 7)
    };

    for (uint32_t i = 0; i < 1 + INF_RELEASE_MORE; i++) {
        offsets[i] = how & 8 || w->response_count == 0
            ? input_next(&w->in, 2)
            : w->responses[input_next(&w->in, 1) % w->response_count].offset;
    }
    s.offset = offsets[0];
    memcpy(&s.length, &offsets[1], INF_RELEASE_MORE * sizeof(offsets[0]));
    worker_submit(w, &s);
}

static void
worker_jump(world_t *w)
{
    inf_rings_header_t *h = (void *) w->rings.base;
    uint64_t which = input_next(&w->in, 1);
    uint32_t value = (uint32_t) input_next(&w->in, which & 0x80 ? 4 : 1);

    switch (which & 7) {

    case 6:
        rings_store(&h->leaving, value);
        break;

    case 7:                     /* it has read all                         */
        rings_store(&h->complete_head,
            __atomic_load_n(&h->complete_tail.value, __ATOMIC_ACQUIRE));
        break;

    default:
        rings_jump(&w->rings, which & 7, value,
            (ring_t) { &h->submit_tail, &h->submit_head },
            (ring_t) { &h->complete_tail, &h->complete_head });
        break;
    }
}

/* ---- the core, which keeps its rules ---- */

static void
on_free(void *userp, uint64_t bytes)
{
    response_t *r = userp;

    check(!r->freed && bytes == 1);
    r->freed = true;
}

/* Sends one, and keeps a reference for as long as it likes. */
static void
core_answer(world_t *w, const inf_submission_t *s)
{
    if (w->response_count == RESPONSES) {
        return;
    }

    inf_channel_region_t *region = inf_channel_alloc(w->channel,
        1 + s->generation * 16u);
    if (region == NULL) {
        return;
    }

    response_t *r = &w->responses[w->response_count++];
    r->offset = inf_channel_region_offset(region);
    r->own = s->flags & 1 ? inf_channel_region_ref(region) : NULL;
    inf_channel_region_on_free(region, on_free, r, 1);
    memset(inf_channel_region_data(region), 'r',
        inf_channel_region_size(region));
    inf_channel_complete(w->channel, &(inf_completion_t) {
        .flags = INF_COMPLETE_FINAL | INF_COMPLETE_RELEASED,
        .slot = s->slot,
        .generation = s->generation
    }, region, 1);
}

static void
core_pop(world_t *w)
{
    inf_submission_t s;

    if (inf_channel_pop(w->channel, &s) != INF_CHANNEL_ENTRY) {
        return;
    }

    check(s.slot < SLOTS);
    check(s.op == INF_SUBMIT_INFER || s.op == INF_SUBMIT_CALL
        || s.op == INF_SUBMIT_CANCEL);
    if (s.op == INF_SUBMIT_CANCEL) {
        return;
    }

    const unsigned char *p = inf_channel_request(w->channel, s.offset,
        s.length);
    check(p != NULL);
    if (s.length > 0) {
        w->touched += p[0] + (unsigned) p[s.length - 1];
    }

    inf_channel_set_slot(w->channel, s.slot, INF_SLOT_EXECUTING);
    if (s.flags & 2) {
        inf_channel_reject(w->channel, &s);
    } else {
        core_answer(w, &s);
    }
}

static void
core_let_go(world_t *w)
{
    for (uint32_t i = 0; i < w->response_count; i++) {
        inf_channel_region_t *own = w->responses[i].own;
        check(own == NULL || !w->responses[i].freed);
        w->responses[i].own = NULL;
        inf_channel_region_unref(own);
    }
}

static void
step(world_t *w)
{
    switch (input_next(&w->in, 1) % 10) {

    case 0:
    case 1:
        worker_scribble(w);
        break;

    case 2:
        worker_release(w);
        break;

    case 3:
        worker_jump(w);
        break;

    case 4:
        core_let_go(w);
        break;

    case 5:
        inf_channel_flush(w->channel);
        (void) inf_channel_sleep(w->channel);
        break;

    case 6:
        (void) inf_channel_trim(w->channel, input_next(&w->in, 8));
        (void) inf_channel_is_leaving(w->channel);
        break;

    default:
        core_pop(w);
        break;
    }
}

/* The worker is gone: nothing of what it was sent is left. */
static void
world_close(world_t *w)
{
    if (w->channel != NULL) {
        inf_regions_stats_t arena;

        inf_channel_dead(w->channel);
        core_let_go(w);
        inf_channel_arena_stats(w->channel, &arena);
        check(arena.regions == 0 && arena.in_use == 0);
        inf_channel_unref(w->channel);
    }

    for (uint32_t i = 0; i < w->response_count; i++) {
        check(w->responses[i].freed);
    }
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

    while (w.in.size > 0 && w.channel != NULL) {
        step(&w);
    }

    world_close(&w);
    return 0;
}
