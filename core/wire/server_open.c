#include "core/wire/server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/os/mapped_files.h"
#include "core/include/build_id.h"
#include "core/wire/server_parts.h"
#include "core/wire/sockets.h"

#define CHANNEL_ARENA_FACTOR 16u
#define CHANNEL_ARENA_MIN    (UINT64_C(1) << 30)
#define CHANNEL_MIN_BUCKETS  256u           /* doubled as they fill up      */

static inf_err_t *channel_open(inf_channel_t *ch, const inf_hello_t *hello,
    const inf_channel_conf_t *conf);
static inf_err_t *channel_check_hello(const void *data, size_t len,
    size_t fd_count, inf_hello_t *hello);
static inf_err_t *channel_map_rings(inf_channel_t *ch,
    const inf_hello_t *hello);
static inf_err_t *channel_map_requests(inf_channel_t *ch,
    const inf_hello_t *hello);
static inf_err_t *channel_make_responses(inf_channel_t *ch,
    const inf_channel_conf_t *conf);
static void channel_set_aside(inf_channel_t *ch,
    const inf_channel_conf_t *conf);
static bool channel_pin_requests(inf_channel_t *ch);
static uint64_t pages_of(uint64_t size, uint64_t most);
static inf_err_t *channel_welcome(inf_channel_t *ch, uint64_t generation);
static void channel_reject(int control, const inf_err_t *err);
static inf_err_t *channel_send_welcome(int control, inf_welcome_t *w,
    const int *fds, size_t fd_count);

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
    inf_regions_init(&ch->regions, -1, 0, 0, 0);
    ch->responses_fd = -1;
    ch->complete_eventfd = -1;
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

    channel_reject(control, err);
    if (ch != NULL) {
        /* Closed below, together with excess descriptors. */
        for (int i = 0; i < INF_HELLO_WORKER_FDS; i++) {
            ch->fds[i] = -1;
        }
        inf_channel_free(ch);
    }
    inf_fds_close(fds, fd_count);
    return inf_err_add(err, "cannot accept a worker's channel");
}

static inf_err_t *
channel_open(inf_channel_t *ch, const inf_hello_t *hello,
    const inf_channel_conf_t *conf)
{
    inf_err_t *err = inf_socket_check(ch->fds[INF_FD_CONTROL]);

    if (err == NULL) {
        err = inf_eventfd_check(ch->fds[INF_FD_SUBMIT_EVENTFD]);
    }
    if (err == NULL) {
        err = channel_map_rings(ch, hello);
    }
    if (err == NULL) {
        err = channel_map_requests(ch, hello);
    }
    if (err == NULL) {
        err = channel_make_responses(ch, conf);
    }
    if (err == NULL) {
        ch->pid = hello->pid;
        ch->version = hello->version < INF_CHANNEL_VERSION ? hello->version
            : INF_CHANNEL_VERSION;
        channel_set_aside(ch, conf);
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
channel_map_requests(inf_channel_t *ch, const inf_hello_t *hello)
{
    int fd = ch->fds[INF_FD_REQUEST_ARENA];
    uint64_t size = hello->request_arena_size;

    inf_err_t *err = inf_memfd_check(fd, size);
    if (err != NULL) {
        return inf_err_add(err, "request arena");
    }

    if (size == 0 || size > INF_ARENA_MAX) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "a request arena of %llu bytes is not possible",
            (unsigned long long) size);
    }

    void *p = mmap(NULL, size, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (p == MAP_FAILED) {
        return inf_err_os(errno, "cannot map a request arena of %llu bytes",
            (unsigned long long) size);
    }

    ch->requests = p;
    ch->requests_size = size;
    ch->requests_file = inf_mapped_file_add(p, size, fd);
    return NULL;
}

static inf_err_t *
channel_make_responses(inf_channel_t *ch, const inf_channel_conf_t *conf)
{
    uint64_t size = conf->response_size;
    if (size == 0) {
        size = conf->response_bound > INF_ARENA_MAX
            / CHANNEL_ARENA_FACTOR ? INF_ARENA_MAX
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
    inf_regions_init(&ch->regions, ch->responses_fd, size, 0,
        conf->response_bound);
    return NULL;
}

/* Sets aside the pages to pin: they are never trimmed. */
static void
channel_set_aside(inf_channel_t *ch, const inf_channel_conf_t *conf)
{
    uint64_t half = INF_ARENA_HALF(ch->requests_size);

    if (conf->pin == NULL) {
        return;
    }

    ch->pin = conf->pin;
    ch->to_pin = pages_of(conf->pinned, ch->responses_size);
    inf_regions_pin(&ch->regions, ch->to_pin);
    if (half < ch->requests_size) {
        ch->requests_to_pin = pages_of(conf->pinned, ch->requests_size - half);
    }
}

void
inf_channel_pin(inf_channel_t *ch)
{
    if (ch->to_pin > 0 && ch->pin->pin(ch->responses, ch->to_pin)) {
        atomic_store_explicit(&ch->pinned, ch->to_pin, memory_order_release);
    }
    if (ch->requests_to_pin > 0 && channel_pin_requests(ch)) {
        atomic_store_explicit(&ch->requests_pinned, ch->requests_to_pin,
            memory_order_release);
    }
}

/* Pins the beginning of both halves, or neither. */
static bool
channel_pin_requests(inf_channel_t *ch)
{
    unsigned char *half = ch->requests + INF_ARENA_HALF(ch->requests_size);
    bool (*pin)(void *, uint64_t) = ch->pin->pin_read_only;

    if (!pin(ch->requests, ch->requests_to_pin)) {
        return false;
    }
    if (!pin(half, ch->requests_to_pin)) {
        ch->pin->unpin(ch->requests);
        /* pinning may have made it writable */
        (void) mprotect(ch->requests, ch->requests_to_pin, PROT_READ);
        return false;
    }

    return true;
}

static uint64_t
pages_of(uint64_t size, uint64_t most)
{
    return (size < most ? size : most) & ~UINT64_C(4095);
}

static inf_err_t *
channel_welcome(inf_channel_t *ch, uint64_t generation)
{
    int fds[INF_WELCOME_FDS] = {
        [INF_WELCOME_FD_RESPONSES] = ch->responses_fd,
        [INF_WELCOME_FD_CORE] = -1,
        [INF_WELCOME_FD_EVENTFD] = -1
    };

    inf_err_t *err = inf_pidfd_open(getpid(), &fds[INF_WELCOME_FD_CORE]);
    if (err == NULL) {
        err = inf_eventfd_new_watched(&ch->complete_eventfd,
            &fds[INF_WELCOME_FD_EVENTFD]);
    }
    if (err == NULL) {
        inf_welcome_t w = {
            .version = ch->version,
            .response_arena_size = ch->responses_size,
            .generation = generation,
            .request_pinned = ch->requests_to_pin
        };
        err = channel_send_welcome(ch->fds[INF_FD_CONTROL], &w, fds,
            INF_WELCOME_FDS);
    }

    inf_fds_close(&fds[INF_WELCOME_FD_CORE], 1);
    inf_fds_close(&fds[INF_WELCOME_FD_EVENTFD], 1);
    return err;
}

/* Sends the error if possible; the caller reports it in any case. */
static void
channel_reject(int control, const inf_err_t *err)
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
