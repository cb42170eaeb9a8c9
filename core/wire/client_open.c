#include "core/wire/client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/include/build_id.h"
#include "core/wire/client_parts.h"
#include "core/wire/sockets.h"

#define CLIENT_ARENA_FACTOR 16u                 /* address space per bound  */
#define CLIENT_ARENA_MIN    (UINT64_C(1) << 30)

static inf_err_t *client_open(inf_client_t *c, const inf_client_conf_t *conf);
static inf_err_t *client_map_rings(inf_client_t *c, uint32_t entries);
static inf_err_t *client_map_arena(inf_client_t *c, uint64_t size,
    uint64_t bound);
static inf_err_t *client_make_slots(inf_client_t *c);
static inf_err_t *client_check_welcome(const inf_welcome_t *w, size_t len,
    size_t fd_count);
static inf_err_t *client_take_responses(inf_client_t *c,
    const inf_welcome_t *w, int *fds);

inf_err_t *
inf_client_new(const inf_client_conf_t *conf, inf_client_t **out)
{
    *out = NULL;

    inf_client_t *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        return inf_err_nomem();
    }

    c->rings_fd = c->arena_fd = c->submit_eventfd = c->complete_eventfd = -1;
    c->control = c->core_control = c->core_fd = -1;
    inf_regions_init(&c->regions, -1, 0, 0, 0);

    inf_err_t *err = client_open(c, conf);
    if (err != NULL) {
        inf_client_free(c);
        return inf_err_add(err, "cannot make a channel");
    }

    *out = c;
    return NULL;
}

void
inf_client_leave(inf_client_t *c)
{
    inf_rings_header_t *shared = c->rings;
    __atomic_store_n(&shared->leaving.value, 1, __ATOMIC_RELAXED);
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

    int fds[] = {
        c->rings_fd, c->arena_fd, c->submit_eventfd, c->complete_eventfd,
        c->control, c->core_control, c->core_fd
    };
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
        [INF_FD_SUBMIT_EVENTFD] = c->submit_eventfd,
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

    /* Only the core may have its end, otherwise its exit would not be
       noticed. */
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

int
inf_client_control_fd(const inf_client_t *c)
{
    return c->control;
}

int
inf_client_event_fd(const inf_client_t *c)
{
    return c->complete_eventfd;
}

int
inf_client_core_fd(const inf_client_t *c)
{
    return c->core_fd;
}

static inf_err_t *
client_open(inf_client_t *c, const inf_client_conf_t *conf)
{
    c->defer = conf->defer;

    uint64_t size = conf->arena_size;
    if (size == 0) {
        size = conf->arena_bound > INF_ARENA_MAX / CLIENT_ARENA_FACTOR
            ? INF_ARENA_MAX : conf->arena_bound * CLIENT_ARENA_FACTOR;
        size = size > CLIENT_ARENA_MIN ? size : CLIENT_ARENA_MIN;
    }

    c->slot_count = conf->slots != 0 ? conf->slots : INF_MAX_SLOTS;

    inf_err_t *err = client_map_rings(c, conf->ring_entries != 0
        ? conf->ring_entries : INF_RING_ENTRIES);
    if (err == NULL) {
        err = client_map_arena(c, size, conf->arena_bound);
    }
    if (err == NULL) {
        err = inf_eventfd_new(&c->submit_eventfd);
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
    inf_regions_init(&c->regions, -1, size, 0, bound);
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
    /* nothing is trimmed before the core has reported its pinned bytes */
    inf_regions_init(&c->regions, -1, size, size - INF_ARENA_HALF(size),
        bound);
    return NULL;
}

static inf_err_t *
client_make_slots(inf_client_t *c)
{
    c->slots = calloc(c->slot_count, sizeof(c->slots[0]));
    if (c->slots == NULL || !inf_client_pending_room(c)) {
        return inf_err_nomem();
    }

    for (uint32_t i = 0; i < c->slot_count; i++) {
        c->slots[i].generation = 1;
        c->slots[i].next_free = i + 1 < c->slot_count ? i + 1
            : INF_CLIENT_NO_SLOT;
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
            "the core (%.*s) has rejected the channel: %.*s",
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
    inf_err_t *err = inf_memfd_check(fds[INF_WELCOME_FD_RESPONSES],
        w->response_arena_size);
    if (err != NULL) {
        return inf_err_add(err, "the core's response arena");
    }

    void *p = mmap(NULL, w->response_arena_size, PROT_READ,
        MAP_SHARED | MAP_NORESERVE, fds[INF_WELCOME_FD_RESPONSES], 0);
    if (p == MAP_FAILED) {
        return inf_err_os(errno, "cannot map a response arena of %llu bytes",
            (unsigned long long) w->response_arena_size);
    }

    inf_regions_pin(&c->regions, w->request_pinned);
    inf_regions_trim_from(&c->regions, c->arena_fd);
    c->responses = p;
    c->responses_size = w->response_arena_size;
    c->core_pid = w->pid;
    c->core_fd = fds[INF_WELCOME_FD_CORE];
    c->complete_eventfd = fds[INF_WELCOME_FD_EVENTFD];
    fds[INF_WELCOME_FD_CORE] = fds[INF_WELCOME_FD_EVENTFD] = -1;
    return NULL;
}
