#include "core/channel/server.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/lock.h"
#include "core/channel/ring.h"
#include "core/channel/sockets.h"
#include "core/include/build_id.h"

#define CHANNEL_ARENA_FACTOR 16u
#define CHANNEL_ARENA_MIN    (UINT64_C(1) << 30)
#define CHANNEL_REQUESTS_MAX (UINT64_C(1) << 46)
#define CHANNEL_TRIM_BYTES   (UINT64_C(4) << 20)
#define CHANNEL_SPILL_CHUNK  63u
#define CHANNEL_MIN_BUCKETS  256u

#define CHANNEL_FLAGS (INF_COMPLETE_RESPONSE | INF_COMPLETE_FINAL           \
    | INF_COMPLETE_RELEASED)

/* Completions that found the ring full. */
typedef struct channel_spill_s {
    struct channel_spill_s *next;
    uint32_t                first;
    uint32_t                end;
    inf_completion_t        entries[CHANNEL_SPILL_CHUNK];
} channel_spill_t;

struct inf_channel_region_s {
    inf_channel_t          *channel;    /* a reference                     */
    inf_region_t           *region;     /* inside: under arena_lock        */
    uint64_t                offset;     /* set in alloc, read by anyone    */
    uint64_t                size;       /* the owner's until published     */
    _Atomic uint32_t        refs;
    uint32_t                published;  /* under arena_lock: of refs, how
                                           many are the worker's           */
    inf_channel_region_t   *next;       /* under arena_lock: in its bucket */
    uint32_t                part_count; /* set once, before publishing     */
    inf_channel_region_t  **parts;
};

struct inf_channel_s {
    _Atomic uint32_t      refs;
    _Atomic bool          dead;

    int                   fds[INF_HELLO_WORKER_FDS];   /* set in accept    */
    int                   responses_fd;
    uint32_t              pid;
    uint32_t              version;
    uint32_t              slots;
    uint32_t              ring_entries;
    bool                  writable;
    void                 *rings;
    uint64_t              rings_size;
    unsigned char        *slot_states;
    unsigned char        *requests;
    uint64_t              requests_size;
    unsigned char        *responses;
    uint64_t              responses_size;
    uint64_t              pinned;           /* of responses, from the begin */
    void                (*unpin)(void *base);

    inf_ring_consumer_t   submissions;      /* the intake's                */

    inf_lock_t            ring_lock;        /* guards the next five        */
    inf_ring_producer_t   completions;
    channel_spill_t      *spill_first;
    channel_spill_t      *spill_last;
    uint64_t              spill_count;
    bool                  ring_dead;

    _Atomic bool          spilling;         /* stored under ring_lock; the
                                               intake looks without it     */

    inf_lock_t            arena_lock;       /* guards the next five        */
    inf_regions_t         regions;
    inf_channel_region_t **buckets;         /* published, by offset        */
    uint32_t              bucket_count;
    uint32_t              published_count;
    bool                  arena_dead;

    _Atomic uint64_t      submitted;        /* relaxed: statistics         */
    _Atomic uint64_t      completed;
    _Atomic uint64_t      spilled;
    _Atomic uint64_t      bells;
    _Atomic uint64_t      invalid;
    _Atomic uint64_t      bad_releases;
};

static inf_err_t *channel_open(inf_channel_t *ch, const inf_hello_t *hello,
    const inf_channel_conf_t *conf);
static inf_err_t *channel_check_hello(const void *data, size_t len,
    size_t fd_count, inf_hello_t *hello);
static inf_err_t *channel_map_rings(inf_channel_t *ch,
    const inf_hello_t *hello);
static inf_err_t *channel_map_requests(inf_channel_t *ch,
    const inf_hello_t *hello, bool writable);
static inf_err_t *channel_make_responses(inf_channel_t *ch,
    const inf_channel_conf_t *conf);
static void channel_pin_responses(inf_channel_t *ch,
    const inf_channel_conf_t *conf);
static inf_err_t *channel_welcome(inf_channel_t *ch, uint64_t generation);
static void channel_refuse(int control, const inf_err_t *err);
static inf_err_t *channel_send_welcome(int control, inf_welcome_t *w,
    const int *fds, size_t fd_count);
static void channel_free(inf_channel_t *ch);
static void channel_drop_spill(channel_spill_t *spill);
static void channel_release(inf_channel_t *ch, uint64_t offset);
static void channel_reject(inf_channel_t *ch, const inf_submission_t *s);
static bool channel_submission_sane(const inf_channel_t *ch,
    const inf_submission_t *s);
static bool channel_publish(inf_channel_t *ch, inf_channel_region_t *region);
static void channel_publish_locked(inf_channel_t *ch,
    inf_channel_region_t *region) INF_NEEDS(ch->arena_lock);
static void channel_rehash_locked(inf_channel_t *ch,
    inf_channel_region_t **buckets, uint32_t count)
    INF_NEEDS(ch->arena_lock);
static inf_channel_region_t **channel_find_locked(inf_channel_t *ch,
    uint64_t offset) INF_NEEDS(ch->arena_lock);
static uint32_t channel_hash(uint64_t offset);
static void channel_push(inf_channel_t *ch, const inf_completion_t *cpl);
static inf_ring_result_t channel_push_locked(inf_channel_t *ch,
    const inf_completion_t *cpl) INF_NEEDS(ch->ring_lock);
static inf_ring_result_t channel_ring_push(inf_channel_t *ch,
    const inf_completion_t *cpl) INF_NEEDS(ch->ring_lock);
static bool channel_spill_locked(inf_channel_t *ch,
    const inf_completion_t *cpl, channel_spill_t **fresh)
    INF_NEEDS(ch->ring_lock);
static void channel_flush_locked(inf_channel_t *ch)
    INF_NEEDS(ch->ring_lock);
static void channel_wake(inf_channel_t *ch);
static bool channel_range_ok(uint64_t offset, uint64_t len, uint64_t size);
static void channel_count(_Atomic uint64_t *counter);

inf_err_t *
inf_channel_accept(const void *hello, size_t len, int *fds, size_t fd_count,
    const inf_channel_conf_t *conf, inf_channel_t **out)
{
    inf_hello_t h;
    inf_channel_t *ch = NULL;
    int control = fd_count == INF_HELLO_WORKER_FDS ? fds[INF_FD_CONTROL] : -1;

    *out = NULL;

    inf_err_t *err = channel_check_hello(hello, len, fd_count, &h);
    if (err != NULL) {
        goto fail;
    }

    ch = calloc(1, sizeof(*ch));
    if (ch == NULL) {
        err = inf_err_nomem();
        goto fail;
    }

    atomic_init(&ch->refs, 1);
    inf_lock_init(&ch->ring_lock, INF_RANK_CHANNEL_RING);
    inf_lock_init(&ch->arena_lock, INF_RANK_CHANNEL_ARENA);
    inf_regions_init(&ch->regions, -1, 0, 0);
    ch->responses_fd = -1;
    for (int i = 0; i < INF_HELLO_WORKER_FDS; i++) {
        ch->fds[i] = -1;
    }
    memcpy(ch->fds, fds, sizeof(ch->fds));

    err = channel_open(ch, &h, conf);
    if (err != NULL) {
        goto fail;
    }

    for (size_t i = 0; i < fd_count; i++) {
        fds[i] = -1;
    }
    *out = ch;
    return NULL;

fail:

    channel_refuse(control, err);
    if (ch != NULL) {
        /* They are closed below, with those that came too many. */
        for (int i = 0; i < INF_HELLO_WORKER_FDS; i++) {
            ch->fds[i] = -1;
        }
        channel_free(ch);
    }
    inf_fds_close(fds, fd_count);
    return inf_err_add(err, "cannot accept a worker's channel");
}

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

    if (atomic_fetch_sub_explicit(&ch->refs, 1, memory_order_acq_rel) == 1) {
        channel_free(ch);
    }
}

void
inf_channel_dead(inf_channel_t *ch)
{
    inf_lock(&ch->ring_lock);
    bool again = ch->ring_dead;
    channel_spill_t *spill = ch->spill_first;
    ch->ring_dead = true;
    ch->spill_first = ch->spill_last = NULL;
    ch->spill_count = 0;
    atomic_store_explicit(&ch->spilling, false, memory_order_relaxed);
    inf_unlock(&ch->ring_lock);

    if (again) {
        return;
    }

    atomic_store_explicit(&ch->dead, true, memory_order_release);
    shutdown(ch->fds[INF_FD_CONTROL], SHUT_RDWR);
    channel_drop_spill(spill);

    inf_lock(&ch->arena_lock);
    inf_channel_region_t **buckets = ch->buckets;
    uint32_t bucket_count = ch->bucket_count;
    ch->arena_dead = true;
    ch->buckets = NULL;
    ch->bucket_count = 0;
    ch->published_count = 0;
    inf_unlock(&ch->arena_lock);

    /* Nobody else finds these any more, so their fields are ours. */
    for (uint32_t i = 0; i < bucket_count; i++) {
        inf_channel_region_t *region = buckets[i];
        while (region != NULL) {
            inf_channel_region_t *next = region->next;
            for (uint32_t n = region->published; n > 0; n--) {
                inf_channel_region_unref(region);
            }
            region = next;
        }
    }
    free(buckets);
}

bool
inf_channel_is_dead(const inf_channel_t *ch)
{
    return atomic_load_explicit(&ch->dead, memory_order_acquire);
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
inf_channel_bell_fd(const inf_channel_t *ch)
{
    return ch->fds[INF_FD_SUBMIT_BELL];
}

int
inf_channel_control_fd(const inf_channel_t *ch)
{
    return ch->fds[INF_FD_CONTROL];
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

    channel_count(&ch->submitted);

    if (out->op == INF_SUBMIT_RELEASE) {
        channel_release(ch, out->offset);
        return INF_CHANNEL_SKIPPED;
    }

    if (!channel_submission_sane(ch, out)) {
        channel_count(&ch->invalid);
        channel_reject(ch, out);
        return INF_CHANNEL_SKIPPED;
    }

    return INF_CHANNEL_ENTRY;
}

bool
inf_channel_sleep(inf_channel_t *ch)
{
    if (!inf_ring_sleep(&ch->submissions)) {
        return false;
    }

    /* After its fence; see channel_ring_push. */
    if (atomic_load_explicit(&ch->spilling, memory_order_relaxed)) {
        inf_channel_flush(ch);
    }

    return true;
}

const void *
inf_channel_request(const inf_channel_t *ch, uint64_t offset, uint64_t len)
{
    return channel_range_ok(offset, len, ch->requests_size)
        ? ch->requests + offset : NULL;
}

void *
inf_channel_request_writable(const inf_channel_t *ch, uint64_t offset,
    uint64_t len)
{
    return ch->writable && channel_range_ok(offset, len, ch->requests_size)
        ? ch->requests + offset : NULL;
}

uint64_t
inf_channel_request_size(const inf_channel_t *ch)
{
    return ch->requests_size;
}

void
inf_channel_set_slot(inf_channel_t *ch, uint32_t slot, uint8_t state)
{
    assert(slot < ch->slots);
    __atomic_store_n(&ch->slot_states[slot], state, __ATOMIC_RELEASE);
}

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

    if (region != NULL && !channel_publish(ch, region)) {
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

inf_channel_region_t *
inf_channel_alloc(inf_channel_t *ch, uint64_t size)
{
    inf_channel_region_t *region = calloc(1, sizeof(*region));
    if (region == NULL) {
        return NULL;
    }

    inf_lock(&ch->arena_lock);
    if (!ch->arena_dead) {
        region->region = inf_regions_alloc(&ch->regions, size);
    }
    inf_unlock(&ch->arena_lock);

    if (region->region == NULL) {
        free(region);
        return NULL;
    }

    atomic_init(&region->refs, 1);
    region->channel = inf_channel_ref(ch);
    region->offset = region->region->offset;
    region->size = region->region->size;
    return region;
}

inf_channel_region_t *
inf_channel_region_ref(inf_channel_region_t *region)
{
    atomic_fetch_add_explicit(&region->refs, 1, memory_order_relaxed);
    return region;
}

void
inf_channel_region_unref(inf_channel_region_t *region)
{
    if (region == NULL
        || atomic_fetch_sub_explicit(&region->refs, 1, memory_order_acq_rel)
           != 1)
    {
        return;
    }

    inf_channel_t *ch = region->channel;
    inf_lock(&ch->arena_lock);
    inf_regions_free(&ch->regions, region->region);
    inf_unlock(&ch->arena_lock);

    for (uint32_t i = 0; i < region->part_count; i++) {
        inf_channel_region_unref(region->parts[i]);
    }

    free(region->parts);
    free(region);
    inf_channel_unref(ch);
}

void *
inf_channel_region_data(const inf_channel_region_t *region)
{
    return region->channel->responses + region->offset;
}

uint64_t
inf_channel_region_offset(const inf_channel_region_t *region)
{
    return region->offset;
}

bool
inf_channel_region_pinned(const inf_channel_region_t *region)
{
    return region->offset + region->size <= region->channel->pinned;
}

uint64_t
inf_channel_region_size(const inf_channel_region_t *region)
{
    return region->size;
}

inf_channel_t *
inf_channel_region_channel(const inf_channel_region_t *region)
{
    return region->channel;
}

void
inf_channel_region_shrink(inf_channel_region_t *region, uint64_t len)
{
    inf_channel_t *ch = region->channel;

    assert(len <= region->size);
    inf_lock(&ch->arena_lock);
    inf_regions_shrink(&ch->regions, region->region, len);
    region->size = region->region->size;
    inf_unlock(&ch->arena_lock);
}

inf_err_t *
inf_channel_region_attach(inf_channel_region_t *record,
    inf_channel_region_t *const *parts, uint32_t count)
{
    assert(record->parts == NULL);
    if (count == 0) {
        return NULL;
    }

    record->parts = malloc(count * sizeof(record->parts[0]));
    if (record->parts == NULL) {
        return inf_err_nomem();
    }

    for (uint32_t i = 0; i < count; i++) {
        record->parts[i] = inf_channel_region_ref(parts[i]);
    }

    record->part_count = count;
    return NULL;
}

uint64_t
inf_channel_trim(inf_channel_t *ch, uint64_t now_ns)
{
    inf_lock(&ch->arena_lock);
    uint64_t n = inf_regions_trim(&ch->regions, now_ns, CHANNEL_TRIM_BYTES);
    inf_unlock(&ch->arena_lock);
    return n;
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
        .bells = atomic_load_explicit(&ch->bells, memory_order_relaxed),
        .invalid = atomic_load_explicit(&ch->invalid, memory_order_relaxed),
        .bad_releases = atomic_load_explicit(&ch->bad_releases,
            memory_order_relaxed),
        .waiting = waiting
    };
}

void
inf_channel_arena_stats(inf_channel_t *ch, inf_regions_stats_t *out)
{
    inf_lock(&ch->arena_lock);
    *out = ch->regions.stats;
    inf_unlock(&ch->arena_lock);
}

static inf_err_t *
channel_open(inf_channel_t *ch, const inf_hello_t *hello,
    const inf_channel_conf_t *conf)
{
    inf_err_t *err = inf_socket_check(ch->fds[INF_FD_CONTROL]);

    if (err == NULL) {
        err = inf_bell_check(ch->fds[INF_FD_SUBMIT_BELL]);
    }
    if (err == NULL) {
        err = inf_bell_check(ch->fds[INF_FD_COMPLETE_BELL]);
    }
    if (err == NULL) {
        err = channel_map_rings(ch, hello);
    }
    if (err == NULL) {
        err = channel_map_requests(ch, hello, conf->writable);
    }
    if (err == NULL) {
        err = channel_make_responses(ch, conf);
    }
    if (err == NULL) {
        channel_pin_responses(ch, conf);
        ch->pid = hello->pid;
        ch->version = hello->version < INF_CHANNEL_VERSION ? hello->version
            : INF_CHANNEL_VERSION;
        err = channel_welcome(ch, conf->generation);
    }

    return err;
}

static inf_err_t *
channel_check_hello(const void *data, size_t len, size_t fd_count,
    inf_hello_t *hello)
{
    if (len < sizeof(*hello)) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "a registration of %zu bytes is too short", len);
    }

    memcpy(hello, data, sizeof(*hello));

    if (hello->magic != INF_CHANNEL_MAGIC || hello->size < sizeof(*hello)) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "a registration is not in our format");
    }

    if (hello->min_version > INF_CHANNEL_VERSION
        || hello->version < INF_CHANNEL_MIN_VERSION
        || hello->min_version > hello->version)
    {
        return inf_err_new(INF_ERR_UNSUPPORTED,
            "the worker speaks versions %u to %u of the channel, this core %u"
            " to %u: restart nginx", hello->min_version, hello->version,
            INF_CHANNEL_MIN_VERSION, INF_CHANNEL_VERSION);
    }

    if (hello->kind != INF_HELLO_WORKER) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "a registration is of kind %u, expected a worker's", hello->kind);
    }

    if (fd_count != INF_HELLO_WORKER_FDS) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "a registration has %zu descriptors, expected %d", fd_count,
            INF_HELLO_WORKER_FDS);
    }

    return NULL;
}

static inf_err_t *
channel_map_rings(inf_channel_t *ch, const inf_hello_t *hello)
{
    int fd = ch->fds[INF_FD_RINGS];

    inf_err_t *err = inf_memfd_check(fd, hello->rings_size);
    if (err != NULL) {
        return inf_err_add(err, "rings");
    }

    if (hello->rings_size < sizeof(inf_rings_header_t)) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "rings of %llu bytes are too small",
            (unsigned long long) hello->rings_size);
    }

    void *p = mmap(NULL, hello->rings_size, PROT_READ | PROT_WRITE,
        MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) {
        return inf_err_os(errno, "cannot map the rings");
    }

    ch->rings = p;
    ch->rings_size = hello->rings_size;

    inf_rings_header_t h;
    memcpy(&h, p, sizeof(h));
    if (!inf_rings_check(&h, hello->rings_size)
        || h.ring_entries != hello->ring_entries
        || h.entry_size != hello->entry_size || h.slots != hello->slots)
    {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "the layout of the rings (%u entries of %u bytes, %u slots) does"
            " not fit their %llu bytes", hello->ring_entries,
            hello->entry_size, hello->slots,
            (unsigned long long) hello->rings_size);
    }

    inf_rings_header_t *shared = p;
    unsigned char *base = p;
    inf_ring_consumer_init(&ch->submissions, base + h.submit_offset,
        &shared->submit_tail, &shared->submit_head,
        &shared->submit_sleeping, h.ring_entries);
    inf_ring_producer_init(&ch->completions, base + h.complete_offset,
        &shared->complete_tail, &shared->complete_head,
        &shared->complete_sleeping, h.ring_entries);
    ch->slot_states = base + h.slot_state_offset;
    ch->slots = h.slots;
    ch->ring_entries = h.ring_entries;
    return NULL;
}

static inf_err_t *
channel_map_requests(inf_channel_t *ch, const inf_hello_t *hello,
    bool writable)
{
    int fd = ch->fds[INF_FD_REQUEST_ARENA];
    uint64_t size = hello->request_arena_size;

    inf_err_t *err = inf_memfd_check(fd, size);
    if (err != NULL) {
        return inf_err_add(err, "request arena");
    }

    if (size == 0 || size > CHANNEL_REQUESTS_MAX) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "a request arena of %llu bytes is not possible",
            (unsigned long long) size);
    }

    void *p = mmap(NULL, size, writable ? PROT_READ | PROT_WRITE : PROT_READ,
        MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (p == MAP_FAILED) {
        return inf_err_os(errno, "cannot map a request arena of %llu bytes",
            (unsigned long long) size);
    }

    ch->requests = p;
    ch->requests_size = size;
    ch->writable = writable;
    return NULL;
}

static inf_err_t *
channel_make_responses(inf_channel_t *ch, const inf_channel_conf_t *conf)
{
    uint64_t size = conf->response_size;
    if (size == 0) {
        size = conf->response_bound > CHANNEL_REQUESTS_MAX
            / CHANNEL_ARENA_FACTOR ? CHANNEL_REQUESTS_MAX
            : conf->response_bound * CHANNEL_ARENA_FACTOR;
        size = size > CHANNEL_ARENA_MIN ? size : CHANNEL_ARENA_MIN;
    }
    size &= ~UINT64_C(4095);

    if (size == 0) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "a response arena of %llu bytes is too small",
            (unsigned long long) conf->response_size);
    }

    inf_err_t *err = inf_memfd_new("inference-responses", size,
        &ch->responses_fd);
    if (err != NULL) {
        return err;
    }

    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
        MAP_SHARED | MAP_NORESERVE, ch->responses_fd, 0);
    if (p == MAP_FAILED) {
        return inf_err_os(errno, "cannot map a response arena of %llu bytes",
            (unsigned long long) size);
    }

    ch->responses = p;
    ch->responses_size = size;
    ch->buckets = calloc(CHANNEL_MIN_BUCKETS, sizeof(ch->buckets[0]));
    if (ch->buckets == NULL) {
        return inf_err_nomem();
    }

    ch->bucket_count = CHANNEL_MIN_BUCKETS;
    inf_regions_init(&ch->regions, ch->responses_fd, size,
        conf->response_bound);
    return NULL;
}

/* Pages that a device knows must stay the same ones: never trimmed. */
static void
channel_pin_responses(inf_channel_t *ch, const inf_channel_conf_t *conf)
{
    uint64_t size = conf->response_pinned < ch->responses_size
        ? conf->response_pinned : ch->responses_size;
    size &= ~UINT64_C(4095);

    if (conf->pin == NULL || size == 0
        || !conf->pin->pin(ch->responses, size))
    {
        return;
    }

    ch->pinned = size;
    ch->unpin = conf->pin->unpin;
    inf_regions_pin(&ch->regions, size);
}

static inf_err_t *
channel_welcome(inf_channel_t *ch, uint64_t generation)
{
    int fds[INF_WELCOME_FDS] = { ch->responses_fd, -1 };

    inf_err_t *err = inf_pidfd_open(getpid(), &fds[1]);
    if (err != NULL) {
        return err;
    }

    inf_welcome_t w = {
        .version = ch->version,
        .response_arena_size = ch->responses_size,
        .generation = generation
    };

    err = channel_send_welcome(ch->fds[INF_FD_CONTROL], &w, fds,
        INF_WELCOME_FDS);
    inf_fds_close(&fds[1], 1);
    return err;
}

/* Says why, as far as it can be said: the caller reports it anyway. */
static void
channel_refuse(int control, const inf_err_t *err)
{
    if (control == -1) {
        return;
    }

    inf_welcome_t w = {
        .version = INF_CHANNEL_VERSION,
        .status = INF_STATUS(inf_err_code(err))
    };
    const char *text = inf_err_msg(err);
    size_t len = strlen(text);

    memcpy(w.text, text, len < sizeof(w.text) ? len : sizeof(w.text) - 1);
    inf_err_free(channel_send_welcome(control, &w, NULL, 0));
}

static inf_err_t *
channel_send_welcome(int control, inf_welcome_t *w, const int *fds,
    size_t fd_count)
{
    w->magic = INF_CHANNEL_MAGIC;
    w->size = sizeof(*w);
    w->pid = (uint32_t) getpid();
    memcpy(w->build, INF_BUILD, sizeof(INF_BUILD));

    inf_socket_result_t result;
    inf_err_t *err = inf_socket_send(control, w, sizeof(*w), fds, fd_count,
        &result);
    if (err != NULL) {
        return err;
    }

    if (result != INF_SOCKET_DONE) {
        return inf_err_new(INF_ERR_UNAVAILABLE,
            "the worker's control socket is %s",
            result == INF_SOCKET_AGAIN ? "full" : "closed");
    }

    return NULL;
}

static void
channel_free(inf_channel_t *ch)
{
    channel_drop_spill(ch->spill_first);

    if (ch->rings != NULL) {
        munmap(ch->rings, ch->rings_size);
    }
    if (ch->requests != NULL) {
        munmap(ch->requests, ch->requests_size);
    }
    if (ch->pinned > 0) {
        ch->unpin(ch->responses);
    }
    if (ch->responses != NULL) {
        munmap(ch->responses, ch->responses_size);
    }

    inf_fds_close(ch->fds, INF_HELLO_WORKER_FDS);
    inf_fds_close(&ch->responses_fd, 1);
    inf_regions_fini(&ch->regions);
    free(ch->buckets);
    inf_lock_fini(&ch->ring_lock);
    inf_lock_fini(&ch->arena_lock);
    free(ch);
}

static void
channel_drop_spill(channel_spill_t *spill)
{
    while (spill != NULL) {
        channel_spill_t *next = spill->next;
        free(spill);
        spill = next;
    }
}

/* One reference of one published region; anything else is only counted. */
static void
channel_release(inf_channel_t *ch, uint64_t offset)
{
    inf_lock(&ch->arena_lock);
    inf_channel_region_t **at = channel_find_locked(ch, offset);
    inf_channel_region_t *region = at != NULL ? *at : NULL;

    if (region != NULL && --region->published == 0) {
        *at = region->next;
        region->next = NULL;
        ch->published_count--;
    }
    inf_unlock(&ch->arena_lock);

    if (region == NULL) {
        channel_count(&ch->bad_releases);
        return;
    }

    inf_channel_region_unref(region);
}

/* Answers where there is someone to answer to. */
static void
channel_reject(inf_channel_t *ch, const inf_submission_t *s)
{
    if (s->slot >= ch->slots
        || (s->op != INF_SUBMIT_INFER && s->op != INF_SUBMIT_CALL))
    {
        return;
    }

    inf_channel_complete(ch, &(inf_completion_t) {
        .flags = INF_COMPLETE_FINAL | INF_COMPLETE_RELEASED,
        .status = INF_STATUS(INF_ERR_INVALID_ARG),
        .slot = s->slot,
        .generation = s->generation
    }, NULL, 0);
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

    if (!channel_range_ok(s->offset, s->length, ch->requests_size)) {
        return false;
    }

    if (s->op == INF_SUBMIT_INFER) {
        return s->length >= sizeof(inf_infer_record_t)
            && s->length <= INF_RECORD_MAX;
    }

    return s->op == INF_SUBMIT_CALL && s->method >= INF_METHOD_SERVER_LIVE
        && s->method <= INF_METHOD_METRICS;
}

/* The caller's reference becomes the worker's; false: the channel is dead. */
static bool
channel_publish(inf_channel_t *ch, inf_channel_region_t *region)
{
    inf_lock(&ch->arena_lock);
    bool alive = !ch->arena_dead;
    uint32_t grow = ch->published_count >= ch->bucket_count
        ? ch->bucket_count * 2 : 0;
    if (alive) {
        channel_publish_locked(ch, region);
    }
    inf_unlock(&ch->arena_lock);

    if (!alive || grow == 0) {
        return alive;
    }

    /* Long chains are only slow, so failing to grow is no error. */
    inf_channel_region_t **buckets = calloc(grow, sizeof(buckets[0]));
    if (buckets != NULL) {
        inf_lock(&ch->arena_lock);
        if (!ch->arena_dead && ch->bucket_count < grow) {
            inf_channel_region_t **old = ch->buckets;
            channel_rehash_locked(ch, buckets, grow);
            buckets = old;
        }
        inf_unlock(&ch->arena_lock);
        free(buckets);
    }

    return true;
}

static void
channel_publish_locked(inf_channel_t *ch, inf_channel_region_t *region)
{
    if (region->published++ > 0) {
        return;
    }

    uint32_t i = channel_hash(region->offset) & (ch->bucket_count - 1);
    region->next = ch->buckets[i];
    ch->buckets[i] = region;
    ch->published_count++;
}

static void
channel_rehash_locked(inf_channel_t *ch, inf_channel_region_t **buckets,
    uint32_t count)
{
    for (uint32_t i = 0; i < ch->bucket_count; i++) {
        inf_channel_region_t *region = ch->buckets[i];
        while (region != NULL) {
            inf_channel_region_t *next = region->next;
            uint32_t to = channel_hash(region->offset) & (count - 1);
            region->next = buckets[to];
            buckets[to] = region;
            region = next;
        }
    }

    ch->buckets = buckets;
    ch->bucket_count = count;
}

/* The pointer that points to it, for taking it out. */
static inf_channel_region_t **
channel_find_locked(inf_channel_t *ch, uint64_t offset)
{
    if (ch->bucket_count == 0) {
        return NULL;
    }

    inf_channel_region_t **at =
        &ch->buckets[channel_hash(offset) & (ch->bucket_count - 1)];

    while (*at != NULL && (*at)->offset != offset) {
        at = &(*at)->next;
    }

    return *at != NULL ? at : NULL;
}

static uint32_t
channel_hash(uint64_t offset)
{
    return (uint32_t) ((offset / INF_ARENA_ALIGN
        * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

static void
channel_push(inf_channel_t *ch, const inf_completion_t *cpl)
{
    channel_spill_t *fresh = NULL;
    inf_ring_result_t rc;
    bool kept = false;

    do {
        inf_lock(&ch->ring_lock);
        channel_flush_locked(ch);
        rc = channel_push_locked(ch, cpl);
        if (rc == INF_RING_WAIT) {
            kept = channel_spill_locked(ch, cpl, &fresh);
        }
        bool dead = ch->ring_dead;
        inf_unlock(&ch->ring_lock);

        if (dead) {
            break;
        }

        /* Not under the lock; and then the ring may have room again. */
        if (rc == INF_RING_WAIT && !kept) {
            fresh = calloc(1, sizeof(*fresh));
        }
    } while (rc == INF_RING_WAIT && !kept && fresh != NULL);

    /* Even a kept one: the flush before it may have moved others. */
    channel_wake(ch);

    /* A lost completion would hang its request; the channel's end does not. */
    if (rc == INF_RING_BROKEN || (rc == INF_RING_WAIT && !kept)) {
        inf_channel_dead(ch);
    }

    free(fresh);
}

static inf_ring_result_t
channel_push_locked(inf_channel_t *ch, const inf_completion_t *cpl)
{
    if (ch->ring_dead) {
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
         * First tell the intake that something will wait, then look again:
         * either we see the worker's last pop, or the intake, woken after
         * it, sees this.
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

    channel_count(&ch->completed);
    return inf_ring_push(&ch->completions, &entry);
}

/* false: a chunk is needed and *fresh is none. */
static bool
channel_spill_locked(inf_channel_t *ch, const inf_completion_t *cpl,
    channel_spill_t **fresh)
{
    channel_spill_t *last = ch->spill_last;

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
    channel_count(&ch->spilled);
    return true;
}

static void
channel_flush_locked(inf_channel_t *ch)
{
    if (!atomic_load_explicit(&ch->spilling, memory_order_relaxed)) {
        return;
    }

    while (ch->spill_count > 0) {
        channel_spill_t *first = ch->spill_first;

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

    /* What is left is one used-up chunk. */
    free(ch->spill_first);
    ch->spill_first = ch->spill_last = NULL;
    atomic_store_explicit(&ch->spilling, false, memory_order_relaxed);
}

/* Without the lock: only the sleeping word is touched. */
static void
channel_wake(inf_channel_t *ch)
{
    if (inf_ring_wake(&ch->completions)) {
        inf_bell_ring(ch->fds[INF_FD_COMPLETE_BELL]);
        channel_count(&ch->bells);
    }
}

static bool
channel_range_ok(uint64_t offset, uint64_t len, uint64_t size)
{
    return offset <= size && len <= size - offset;
}

static void
channel_count(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}
