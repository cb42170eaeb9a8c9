#include "core/channel/client.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/channel/ring.h"
#include "core/channel/sockets.h"
#include "core/include/build_id.h"

#define CLIENT_ARENA_FACTOR 16u                 /* address space per bound  */
#define CLIENT_ARENA_MIN    (UINT64_C(1) << 30)
#define CLIENT_TRIM_BYTES   (UINT64_C(4) << 20) /* about 1 ms               */
#define CLIENT_NO_SLOT      UINT32_MAX
#define CLIENT_UNRUNG_MAX   8u                  /* then the core is woken   */

#define CLIENT_FLAGS (INF_COMPLETE_RESPONSE | INF_COMPLETE_FINAL            \
    | INF_COMPLETE_RELEASED | INF_COMPLETE_LAST)

typedef enum {
    CLIENT_SLOT_FREE,
    CLIENT_SLOT_TAKEN,          /* not submitted                           */
    CLIENT_SLOT_SUBMITTED,
    CLIENT_SLOT_ABANDONED       /* submitted, and nobody waits             */
} client_slot_state_t;

typedef struct {
    void                *userp;
    inf_region_t        *region;        /* ABANDONED: to be freed          */
    uint32_t             generation;
    uint32_t             next_free;
    client_slot_state_t  state;
    uint8_t              seen;          /* of FINAL and RELEASED           */
    bool                 cancelled;
} client_slot_t;

/* CANCELs and RELEASEs that found the ring full; a circular buffer. */
typedef struct {
    inf_submission_t *entries;
    uint32_t          first;
    uint32_t          count;
    uint32_t          cap;
} client_pending_t;

struct inf_client_s {
    int                  rings_fd;
    int                  arena_fd;
    int                  submit_bell;
    int                  complete_bell;
    int                  control;
    int                  core_control;  /* the core's end, until sent      */
    int                  core_fd;

    void                *rings;
    uint64_t             rings_size;
    unsigned char       *arena;
    unsigned char       *slot_states;
    const unsigned char *responses;
    uint64_t             responses_size;

    uint32_t             core_pid;
    uint64_t             core_generation;
    uint32_t             ring_entries;

    inf_ring_producer_t  submissions;
    inf_ring_consumer_t  completions;
    bool                 broken;
    bool                 bell_due;      /* the core may hold more          */
    bool                 defer;
    bool                 unrung_releases;
    uint32_t             unrung;        /* pushed since the core was woken */

    client_slot_t       *slots;
    uint32_t             slot_count;
    uint32_t             slots_taken;
    uint32_t             free_slot;     /* taken last, given first         */

    uint32_t             held;          /* response regions not released   */
    client_pending_t     pending;
    inf_regions_t        regions;
    inf_client_stats_t   stats;
};

static inf_err_t *client_open(inf_client_t *c, const inf_client_conf_t *conf);
static inf_err_t *client_map_rings(inf_client_t *c, uint32_t entries);
static inf_err_t *client_map_arena(inf_client_t *c, uint64_t size,
    uint64_t bound);
static inf_err_t *client_make_slots(inf_client_t *c);
static inf_err_t *client_check_welcome(const inf_welcome_t *w, size_t len,
    size_t fd_count);
static inf_err_t *client_take_responses(inf_client_t *c,
    const inf_welcome_t *w, int *fds);
static client_slot_t *client_slot(const inf_client_t *c, uint32_t slot,
    uint32_t generation);
static void client_give_slot(inf_client_t *c, client_slot_t *s);
static void client_finish_abandoned(inf_client_t *c, client_slot_t *s);
static inf_ring_result_t client_push(inf_client_t *c,
    const inf_submission_t *entry);
static void client_push_pending(inf_client_t *c);
static void client_wake(inf_client_t *c);
static void client_push_or_keep(inf_client_t *c,
    const inf_submission_t *entry);
static bool client_pending_room(inf_client_t *c);
static bool client_completion_sane(const inf_client_t *c,
    const inf_completion_t *cpl);
static void client_dispatch(inf_client_t *c, const inf_completion_t *cpl,
    inf_client_handler_fn handler);

inf_err_t *
inf_client_new(const inf_client_conf_t *conf, inf_client_t **out)
{
    *out = NULL;

    inf_client_t *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        return inf_err_nomem();
    }

    c->rings_fd = c->arena_fd = c->submit_bell = c->complete_bell = -1;
    c->control = c->core_control = c->core_fd = -1;
    inf_regions_init(&c->regions, -1, 0, 0);

    inf_err_t *err = client_open(c, conf);
    if (err != NULL) {
        inf_client_free(c);
        return inf_err_add(err, "cannot make a channel");
    }

    *out = c;
    return NULL;
}

void
inf_client_free(inf_client_t *c)
{
    if (c == NULL) {
        return;
    }

    if (c->rings != NULL) {
        munmap(c->rings, c->rings_size);
    }
    if (c->arena != NULL) {
        munmap(c->arena, c->regions.size);
    }
    if (c->responses != NULL) {
        munmap((void *) (uintptr_t) c->responses, c->responses_size);
    }

    int fds[] = { c->rings_fd, c->arena_fd, c->submit_bell, c->complete_bell,
        c->control, c->core_control, c->core_fd };
    inf_fds_close(fds, sizeof(fds) / sizeof(fds[0]));

    inf_regions_fini(&c->regions);
    free(c->pending.entries);
    free(c->slots);
    free(c);
}

inf_err_t *
inf_client_hello(inf_client_t *c, int registration_fd, bool *again)
{
    *again = false;

    inf_hello_t hello = {
        .magic = INF_CHANNEL_MAGIC,
        .version = INF_CHANNEL_VERSION,
        .min_version = INF_CHANNEL_MIN_VERSION,
        .size = sizeof(hello),
        .kind = INF_HELLO_WORKER,
        .pid = (uint32_t) getpid(),
        .ring_entries = c->ring_entries,
        .entry_size = INF_RING_ENTRY_SIZE,
        .slots = c->slot_count,
        .rings_size = c->rings_size,
        .request_arena_size = c->regions.size,
        .build = INF_BUILD
    };

    const int fds[INF_HELLO_WORKER_FDS] = {
        [INF_FD_RINGS] = c->rings_fd,
        [INF_FD_REQUEST_ARENA] = c->arena_fd,
        [INF_FD_SUBMIT_BELL] = c->submit_bell,
        [INF_FD_COMPLETE_BELL] = c->complete_bell,
        [INF_FD_CONTROL] = c->core_control
    };

    if (c->core_control == -1) {
        return inf_err_new(INF_ERR_INTERNAL,
            "this channel has been registered before");
    }

    inf_socket_result_t result;
    inf_err_t *err = inf_socket_send(registration_fd, &hello, sizeof(hello),
        fds, INF_HELLO_WORKER_FDS, &result);
    if (err != NULL) {
        return inf_err_add(err, "cannot register the channel");
    }

    if (result == INF_SOCKET_CLOSED) {
        return inf_err_new(INF_ERR_UNAVAILABLE,
            "cannot register the channel: the registration socket is closed");
    }

    if (result == INF_SOCKET_AGAIN) {
        *again = true;
        return NULL;
    }

    /* Only the core may hold its end, or its death would not show. */
    inf_fds_close(&c->core_control, 1);
    return NULL;
}

inf_err_t *
inf_client_welcome(inf_client_t *c, bool *again)
{
    inf_welcome_t w;
    int fds[INF_WELCOME_FDS];
    size_t len;
    size_t fd_count;
    inf_socket_result_t result;

    *again = false;
    if (c->responses != NULL) {
        return inf_err_new(INF_ERR_INTERNAL, "the channel is connected");
    }

    memset(&w, 0, sizeof(w));
    inf_err_t *err = inf_socket_recv(c->control, &w, sizeof(w), &len, fds,
        INF_WELCOME_FDS, &fd_count, &result);
    if (err != NULL) {
        return inf_err_add(err, "cannot read the core's answer");
    }

    if (result == INF_SOCKET_AGAIN) {
        *again = true;
        return NULL;
    }

    if (result == INF_SOCKET_CLOSED) {
        return inf_err_new(INF_ERR_UNAVAILABLE,
            "the core has closed the channel without an answer");
    }

    err = client_check_welcome(&w, len, fd_count);
    if (err == NULL) {
        err = client_take_responses(c, &w, fds);
    }

    inf_fds_close(fds, INF_WELCOME_FDS);
    return err;
}

bool
inf_client_connected(const inf_client_t *c)
{
    return c->responses != NULL;
}

uint32_t
inf_client_core_pid(const inf_client_t *c)
{
    return c->core_pid;
}

uint64_t
inf_client_core_generation(const inf_client_t *c)
{
    return c->core_generation;
}

int
inf_client_control_fd(const inf_client_t *c)
{
    return c->control;
}

int
inf_client_bell_fd(const inf_client_t *c)
{
    return c->complete_bell;
}

int
inf_client_core_fd(const inf_client_t *c)
{
    return c->core_fd;
}

bool
inf_client_take(inf_client_t *c, void *userp, inf_ticket_t *out)
{
    if (c->free_slot == CLIENT_NO_SLOT) {
        *out = (inf_ticket_t) { 0, 0 };
        return false;
    }

    uint32_t i = c->free_slot;
    client_slot_t *s = &c->slots[i];
    c->free_slot = s->next_free;
    c->slots_taken++;

    s->userp = userp;
    s->state = CLIENT_SLOT_TAKEN;
    s->seen = 0;
    s->cancelled = false;

    /* The core stores nothing here before it has the submission. */
    __atomic_store_n(&c->slot_states[i], (unsigned char) INF_SLOT_FREE,
        __ATOMIC_RELAXED);

    *out = (inf_ticket_t) { i, s->generation };
    return true;
}

void
inf_client_give(inf_client_t *c, inf_ticket_t ticket)
{
    client_slot_t *s = client_slot(c, ticket.slot, ticket.generation);

    if (s != NULL && s->state != CLIENT_SLOT_ABANDONED) {
        client_give_slot(c, s);
    }
}

void *
inf_client_find(const inf_client_t *c, inf_ticket_t ticket)
{
    const client_slot_t *s = client_slot(c, ticket.slot, ticket.generation);

    return s != NULL ? s->userp : NULL;
}

void
inf_client_set_userp(inf_client_t *c, inf_ticket_t ticket, void *userp)
{
    client_slot_t *s = client_slot(c, ticket.slot, ticket.generation);

    if (s != NULL && s->state != CLIENT_SLOT_ABANDONED) {
        s->userp = userp;
    }
}

void
inf_client_abandon(inf_client_t *c, inf_ticket_t ticket, inf_region_t *region)
{
    client_slot_t *s = client_slot(c, ticket.slot, ticket.generation);

    if (s == NULL || s->state != CLIENT_SLOT_SUBMITTED) {
        inf_regions_free(&c->regions, region);
        inf_client_give(c, ticket);
        return;
    }

    if (!(s->seen & INF_COMPLETE_FINAL)) {
        inf_client_cancel(c, ticket);
    }

    s->state = CLIENT_SLOT_ABANDONED;
    s->userp = NULL;
    s->region = region;
    client_finish_abandoned(c, s);
}

uint8_t
inf_client_slot_state(const inf_client_t *c, inf_ticket_t ticket)
{
    if (client_slot(c, ticket.slot, ticket.generation) == NULL) {
        return INF_SLOT_FREE;
    }

    return __atomic_load_n(&c->slot_states[ticket.slot], __ATOMIC_ACQUIRE);
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
inf_client_shrink(inf_client_t *c, inf_region_t *region, uint64_t len)
{
    inf_regions_shrink(&c->regions, region, len);
}

void
inf_client_free_region(inf_client_t *c, inf_region_t *region)
{
    inf_regions_free(&c->regions, region);
}

bool
inf_client_grow(inf_client_t *c, inf_region_t **region, uint64_t size,
    uint64_t used)
{
    inf_region_t *old = *region;

    assert(used <= old->size);
    if (inf_regions_grow(&c->regions, old, size)) {
        return true;
    }

    inf_region_t *new = inf_regions_reserve(&c->regions, size);
    if (new == NULL) {
        return false;
    }

    memcpy(c->arena + new->offset, c->arena + old->offset, used);
    inf_regions_move_charge(&c->regions, old, new);
    inf_regions_free(&c->regions, old);
    *region = new;
    return true;
}

void *
inf_client_data(const inf_client_t *c, const inf_region_t *region)
{
    return c->arena + region->offset;
}

bool
inf_client_offset(const inf_client_t *c, const void *p, uint64_t len,
    uint64_t *offset)
{
    uintptr_t base = (uintptr_t) c->arena;
    uintptr_t at = (uintptr_t) p;

    if (at < base || !inf_range_ok(at - base, len, c->regions.size)) {
        return false;
    }

    *offset = at - base;
    return true;
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
    client_slot_t *s = client_slot(c, submission->slot,
        submission->generation);

    assert(s != NULL && s->state == CLIENT_SLOT_TAKEN);
    assert(submission->op == INF_SUBMIT_INFER
        || submission->op == INF_SUBMIT_CALL);

    client_push_pending(c);
    if (c->broken) {
        return INF_CLIENT_BROKEN;
    }

    /* Who waits goes first, or a busy ring would starve it. */
    if (c->pending.count > 0
        || client_push(c, submission) != INF_RING_DONE)
    {
        c->stats.busy++;
        return c->broken ? INF_CLIENT_BROKEN : INF_CLIENT_AGAIN;
    }

    s->state = CLIENT_SLOT_SUBMITTED;
    c->stats.submitted++;
    return INF_CLIENT_OK;
}

void
inf_client_cancel(inf_client_t *c, inf_ticket_t ticket)
{
    client_slot_t *s = client_slot(c, ticket.slot, ticket.generation);

    if (s == NULL || s->state != CLIENT_SLOT_SUBMITTED || s->cancelled) {
        return;
    }

    s->cancelled = true;
    client_push_or_keep(c, &(inf_submission_t) {
        .op = INF_SUBMIT_CANCEL,
        .slot = ticket.slot,
        .generation = ticket.generation
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
    client_pending_t *p = &c->pending;

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

    client_push_pending(c);
    while (budget-- > 0 && client_pending_room(c)) {
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
            c->bell_due = true;
            cpl.flags &= (uint8_t) ~INF_COMPLETE_LAST;
        }

        client_dispatch(c, &cpl, handler);
    }

    if (c->bell_due) {
        c->bell_due = false;
        inf_bell_ring(c->submit_bell);
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

static inf_err_t *
client_open(inf_client_t *c, const inf_client_conf_t *conf)
{
    c->defer = conf->defer;

    uint64_t size = conf->arena_size;
    if (size == 0) {
        size = conf->arena_bound > UINT64_MAX / 2 / CLIENT_ARENA_FACTOR
            ? UINT64_MAX / 2 : conf->arena_bound * CLIENT_ARENA_FACTOR;
        size = size > CLIENT_ARENA_MIN ? size : CLIENT_ARENA_MIN;
    }

    c->slot_count = conf->slots != 0 ? conf->slots : INF_MAX_SLOTS;

    inf_err_t *err = client_map_rings(c, conf->ring_entries != 0
        ? conf->ring_entries : INF_RING_ENTRIES);
    if (err == NULL) {
        err = client_map_arena(c, size, conf->arena_bound);
    }
    if (err == NULL) {
        err = inf_bell_new(&c->submit_bell);
    }
    if (err == NULL) {
        err = inf_bell_new(&c->complete_bell);
    }
    if (err == NULL) {
        int pair[2];
        err = inf_socket_pair(pair);
        c->control = pair[0];
        c->core_control = pair[1];
    }
    if (err == NULL) {
        err = client_make_slots(c);
    }

    return err;
}

static inf_err_t *
client_map_rings(inf_client_t *c, uint32_t entries)
{
    inf_rings_header_t h;
    c->rings_size = inf_rings_layout(&h, entries, c->slot_count);
    c->ring_entries = entries;

    if (!inf_rings_check(&h, c->rings_size)) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "%u ring entries and %u slots are not possible", entries,
            c->slot_count);
    }

    inf_err_t *err = inf_memfd_new("inference-rings", c->rings_size,
        &c->rings_fd);
    if (err != NULL) {
        return err;
    }

    void *p = mmap(NULL, c->rings_size, PROT_READ | PROT_WRITE, MAP_SHARED,
        c->rings_fd, 0);
    if (p == MAP_FAILED) {
        return inf_err_os(errno, "cannot map the rings");
    }

    c->rings = p;
    memcpy(p, &h, sizeof(h));

    inf_rings_header_t *shared = p;
    unsigned char *base = p;
    inf_ring_producer_init(&c->submissions, base + h.submit_offset,
        &shared->submit_tail, &shared->submit_head,
        &shared->submit_sleeping, entries);
    inf_ring_consumer_init(&c->completions, base + h.complete_offset,
        &shared->complete_tail, &shared->complete_head,
        &shared->complete_sleeping, entries);
    c->slot_states = base + h.slot_state_offset;
    return NULL;
}

static inf_err_t *
client_map_arena(inf_client_t *c, uint64_t size, uint64_t bound)
{
    inf_regions_init(&c->regions, -1, size, bound);
    size = c->regions.size & ~UINT64_C(4095);
    if (size == 0) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "a request arena of %llu bytes is too small",
            (unsigned long long) c->regions.size);
    }

    inf_err_t *err = inf_memfd_new("inference-requests", size, &c->arena_fd);
    if (err != NULL) {
        return err;
    }

    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
        MAP_SHARED | MAP_NORESERVE, c->arena_fd, 0);
    if (p == MAP_FAILED) {
        return inf_err_os(errno, "cannot map a request arena of %llu bytes",
            (unsigned long long) size);
    }

    c->arena = p;
    inf_regions_init(&c->regions, c->arena_fd, size, bound);
    return NULL;
}

static inf_err_t *
client_make_slots(inf_client_t *c)
{
    c->slots = calloc(c->slot_count, sizeof(c->slots[0]));
    if (c->slots == NULL || !client_pending_room(c)) {
        return inf_err_nomem();
    }

    for (uint32_t i = 0; i < c->slot_count; i++) {
        c->slots[i].generation = 1;
        c->slots[i].next_free = i + 1 < c->slot_count ? i + 1
            : CLIENT_NO_SLOT;
    }

    c->free_slot = 0;
    return NULL;
}

static inf_err_t *
client_check_welcome(const inf_welcome_t *w, size_t len, size_t fd_count)
{
    if (len < sizeof(*w) || w->magic != INF_CHANNEL_MAGIC
        || w->size < sizeof(*w))
    {
        return inf_err_new(INF_ERR_INTERNAL,
            "the core's answer of %zu bytes is not one we know: restart"
            " nginx", len);
    }

    if (w->status != INF_OK) {
        uint32_t code = INF_STATUS_CODE(w->status);
        return inf_err_new(code <= INF_ERR_CANCELLED
            ? (inf_err_code_t) code : INF_ERR_UNKNOWN,
            "the core (%.*s) has refused the channel: %.*s",
            (int) strnlen(w->build, sizeof(w->build)), w->build,
            (int) strnlen(w->text, sizeof(w->text)), w->text);
    }

    if (w->version < INF_CHANNEL_MIN_VERSION
        || w->version > INF_CHANNEL_VERSION)
    {
        return inf_err_new(INF_ERR_UNSUPPORTED,
            "the core speaks version %u of the channel, this module %u to"
            " %u: restart nginx", w->version, INF_CHANNEL_MIN_VERSION,
            INF_CHANNEL_VERSION);
    }

    if (fd_count != INF_WELCOME_FDS) {
        return inf_err_new(INF_ERR_INTERNAL,
            "the core's answer has %zu descriptors, expected %d", fd_count,
            INF_WELCOME_FDS);
    }

    return NULL;
}

static inf_err_t *
client_take_responses(inf_client_t *c, const inf_welcome_t *w, int *fds)
{
    inf_err_t *err = inf_memfd_check(fds[0], w->response_arena_size);
    if (err != NULL) {
        return inf_err_add(err, "the core's response arena");
    }

    void *p = mmap(NULL, w->response_arena_size, PROT_READ,
        MAP_SHARED | MAP_NORESERVE, fds[0], 0);
    if (p == MAP_FAILED) {
        return inf_err_os(errno, "cannot map a response arena of %llu bytes",
            (unsigned long long) w->response_arena_size);
    }

    c->responses = p;
    c->responses_size = w->response_arena_size;
    c->core_pid = w->pid;
    c->core_generation = w->generation;
    c->core_fd = fds[1];
    fds[1] = -1;
    return NULL;
}

/* NULL unless this use of the slot is still on. */
static client_slot_t *
client_slot(const inf_client_t *c, uint32_t slot, uint32_t generation)
{
    if (slot >= c->slot_count) {
        return NULL;
    }

    client_slot_t *s = &c->slots[slot];
    return s->state != CLIENT_SLOT_FREE && s->generation == generation ? s
        : NULL;
}

static void
client_give_slot(inf_client_t *c, client_slot_t *s)
{
    s->state = CLIENT_SLOT_FREE;
    s->userp = NULL;
    s->region = NULL;
    s->generation = s->generation == UINT32_MAX ? 1 : s->generation + 1;
    s->next_free = c->free_slot;
    c->free_slot = (uint32_t) (s - c->slots);
    c->slots_taken--;
}

static void
client_finish_abandoned(inf_client_t *c, client_slot_t *s)
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
    inf_ring_result_t rc = inf_ring_push(&c->submissions, entry);

    if (rc == INF_RING_BROKEN) {
        c->broken = true;
    }

    if (rc == INF_RING_WAIT) {
        client_wake(c);             /* it is full: the core must drain it  */
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
        inf_bell_ring(c->submit_bell);
        c->stats.bells++;
    }
}

/* Room was made before the response came (client_pending_room). */
static void
client_push_or_keep(inf_client_t *c, const inf_submission_t *entry)
{
    client_pending_t *p = &c->pending;

    client_push_pending(c);
    if (c->broken
        || (p->count == 0 && client_push(c, entry) == INF_RING_DONE))
    {
        return;
    }

    assert(p->count < p->cap);
    uint32_t at = p->first + p->count;
    p->entries[at < p->cap ? at : at - p->cap] = *entry;
    p->count++;
}

/*
 * Room for all that may have to wait: one CANCEL for each slot, one RELEASE
 * for each response held, and for the one about to be read.
 */
static bool
client_pending_room(inf_client_t *c)
{
    client_pending_t *p = &c->pending;
    uint64_t need = (uint64_t) p->count + c->held + c->slot_count + 1;

    if (need <= p->cap) {
        return true;
    }

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
    if ((cpl->flags & ~CLIENT_FLAGS) != 0 || cpl->slot >= c->slot_count) {
        return false;
    }

    return !(cpl->flags & INF_COMPLETE_RESPONSE) || cpl->length == 0
        || inf_range_ok(cpl->offset, cpl->length, c->responses_size);
}

static void
client_dispatch(inf_client_t *c, const inf_completion_t *cpl,
    inf_client_handler_fn handler)
{
    client_slot_t *s = client_slot(c, cpl->slot, cpl->generation);
    bool holds = (cpl->flags & INF_COMPLETE_RESPONSE) && cpl->length > 0;

    c->held += holds;

    /* After FINAL nothing but RELEASED is expected. */
    bool late = s == NULL || s->state == CLIENT_SLOT_TAKEN
        || ((s->seen & INF_COMPLETE_FINAL)
            && (cpl->flags & (INF_COMPLETE_RESPONSE | INF_COMPLETE_FINAL)));

    if (late) {
        c->stats.late++;
    } else {
        s->seen |= cpl->flags & (INF_COMPLETE_FINAL | INF_COMPLETE_RELEASED);
    }

    if (late || s->state == CLIENT_SLOT_ABANDONED) {
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
