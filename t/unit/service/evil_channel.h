/*
 * evil_channel.h - a worker's side of a channel of which every byte can be
 *                  damaged before and after the core has it.
 *
 * Owner    the test: evil_make or evil_join, then evil_free.
 * Thread   one.
 * Units    bytes, ms.
 * Errors   a test fails at once.
 * Route    unit tests only
 */

#ifndef INF_T_SERVICE_EVIL_CHANNEL_H
#define INF_T_SERVICE_EVIL_CHANNEL_H

#include "service/good_worker.h"

#include <sys/mman.h>

#include "core/wire/ring.h"

#define EVIL_ARENA (4 * MIB)
#define EVIL_SLOTS 16u

/* The shared memory of a worker, all of it open to damage. */
typedef struct {
    inf_hello_t         hello;
    int                 fds[INF_SOCKET_MAX_FDS];
    size_t              fd_count;
    int                 control;
    inf_rings_header_t *rings;
    inf_rings_header_t  layout;
    unsigned char      *arena;
    int                 welcome_fds[INF_WELCOME_FDS];
    uint64_t            responses_size;
    uint32_t            tail;
    uint32_t            head;
} evil_t;

typedef struct {
    inf_submission_t submission;
    _Alignas(8) unsigned char record[1024];
    size_t           size;
} request_t;

static inline void
evil_make(evil_t *e)
{
    int pair[2];

    memset(e, 0, sizeof(*e));
    uint64_t size = inf_rings_layout(&e->layout, 64, EVIL_SLOTS);
    assert_done(inf_memfd_new("rings", size, &e->fds[INF_FD_RINGS]));
    assert_done(inf_memfd_new("arena", EVIL_ARENA,
        &e->fds[INF_FD_REQUEST_ARENA]));
    assert_done(inf_eventfd_new(&e->fds[INF_FD_SUBMIT_EVENTFD]));
    assert_done(inf_socket_pair(pair));
    e->control = pair[0];
    e->fds[INF_FD_CONTROL] = pair[1];
    e->fd_count = INF_HELLO_WORKER_FDS;

    e->rings = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED,
        e->fds[INF_FD_RINGS], 0);
    e->arena = mmap(NULL, EVIL_ARENA, PROT_READ | PROT_WRITE, MAP_SHARED,
        e->fds[INF_FD_REQUEST_ARENA], 0);
    assert_true(e->rings != MAP_FAILED && e->arena != MAP_FAILED);
    memcpy(e->rings, &e->layout, sizeof(e->layout));

    e->hello = (inf_hello_t) {
        .magic = INF_CHANNEL_MAGIC, .version = INF_CHANNEL_VERSION,
        .min_version = INF_CHANNEL_VERSION, .size = sizeof(inf_hello_t),
        .kind = INF_HELLO_WORKER, .pid = (uint32_t) getpid(),
        .ring_entries = e->layout.ring_entries,
        .entry_size = INF_RING_ENTRY_SIZE, .slots = EVIL_SLOTS,
        .rings_size = size, .request_arena_size = EVIL_ARENA,
        .build = "evil"
    };
    memset(e->welcome_fds, 0xff, sizeof(e->welcome_fds));
}

static inline void
evil_free(evil_t *e)
{
    munmap(e->rings, inf_rings_layout(&e->layout, 64, EVIL_SLOTS));
    munmap(e->arena, EVIL_ARENA);
    inf_fds_close(e->fds, e->fd_count);
    inf_fds_close(&e->control, 1);
    inf_fds_close(e->welcome_fds, INF_WELCOME_FDS);
}

static inline void
send_hello(const void *data, size_t len, const int *fds, size_t count)
{
    inf_socket_result_t result = INF_SOCKET_AGAIN;

    for (int ms = 0; result == INF_SOCKET_AGAIN && ms < PATIENCE_MS; ms++) {
        assert_done(inf_socket_send(w.registration[0], data, len, fds, count,
            &result));
        if (result == INF_SOCKET_AGAIN) {
            read_log();
            poll(NULL, 0, 1);
        }
    }
    assert_int_equal(result, INF_SOCKET_DONE);
}

/* The core has its own copies then, as from a worker that is gone. */
static inline void
evil_register(evil_t *e)
{
    send_hello(&e->hello, sizeof(e->hello), e->fds, e->fd_count);
}

/* The core's answer; ours: the worker's end of the control socket. */
static inline inf_welcome_t
evil_welcome(evil_t *e)
{
    inf_welcome_t welcome = { 0 };
    size_t len, count;
    inf_socket_result_t result = INF_SOCKET_AGAIN;

    inf_fds_close(&e->fds[INF_FD_CONTROL], 1);
    for (int ms = 0; result == INF_SOCKET_AGAIN && ms < PATIENCE_MS; ms += 100)
    {
        struct pollfd p = { .fd = e->control, .events = POLLIN };
        poll(&p, 1, 100);
        read_log();
        assert_done(inf_socket_recv(e->control, &welcome, sizeof(welcome),
            &len, e->welcome_fds, INF_WELCOME_FDS, &count, &result));
    }
    assert_int_not_equal(result, INF_SOCKET_AGAIN);
    if (result == INF_SOCKET_CLOSED) {
        welcome.status = INF_STATUS(INF_ERR_UNAVAILABLE);
    }
    e->responses_size = welcome.response_arena_size;
    return welcome;
}

static inline void
evil_join(evil_t *e)
{
    evil_make(e);
    evil_register(e);
    assert_int_equal(evil_welcome(e).status, INF_OK);
}

static inline void
evil_notify(const evil_t *e)
{
    inf_eventfd_notify(e->fds[INF_FD_SUBMIT_EVENTFD]);
}

/* Waits for room; false: the core has closed the channel. */
static inline bool
evil_put(evil_t *e, const inf_submission_t *s)
{
    struct pollfd p = { .fd = e->control, .events = POLLIN };

    while (e->tail - __atomic_load_n(&e->rings->submit_head.value,
            __ATOMIC_ACQUIRE) >= e->layout.ring_entries)
    {
        evil_notify(e);
        if (poll(&p, 1, 1) == 1) {
            return false;
        }
    }

    memcpy((unsigned char *) e->rings + e->layout.submit_offset
        + (size_t) (e->tail & (e->layout.ring_entries - 1))
        * INF_RING_ENTRY_SIZE, s, sizeof(*s));
    __atomic_store_n(&e->rings->submit_tail.value, ++e->tail,
        __ATOMIC_RELEASE);
    if (__atomic_load_n(&e->rings->submit_sleeping.value, __ATOMIC_SEQ_CST)) {
        evil_notify(e);
    }
    return true;
}

/* The next completion; false: there is none, or the channel is closed. */
static inline bool
evil_take(evil_t *e, inf_completion_t *out, int timeout_ms)
{
    struct pollfd p = { .fd = e->control, .events = POLLIN };

    for (int ms = 0; __atomic_load_n(&e->rings->complete_tail.value,
            __ATOMIC_ACQUIRE) == e->head; ms++)
    {
        if (ms >= timeout_ms || poll(&p, 1, 1) == 1) {
            return false;
        }
    }

    memcpy(out, (unsigned char *) e->rings + e->layout.complete_offset
        + (size_t) (e->head & (e->layout.ring_entries - 1))
        * INF_RING_ENTRY_SIZE, sizeof(*out));
    __atomic_store_n(&e->rings->complete_head.value, ++e->head,
        __ATOMIC_RELEASE);
    if (out->flags & INF_COMPLETE_LAST) {
        evil_notify(e);
    }
    return true;
}

/* Until slot has had FINAL and RELEASED; the status of its response. */
static inline inf_status_t
evil_answer(evil_t *e, uint32_t slot, uint32_t generation)
{
    inf_status_t status = INF_OK;
    uint8_t flags = 0;
    inf_completion_t c;

    while ((flags & ALL) != ALL) {
        if (!evil_take(e, &c, PATIENCE_MS)) {
            fail_msg("slot %u is not answered", slot);
        }
        if (c.length > 0) {
            evil_put(e, &(inf_submission_t) { .op = INF_SUBMIT_RELEASE,
                .offset = c.offset });
        }
        if (c.slot == slot && c.generation == generation) {
            flags |= c.flags;
            status = c.status != INF_OK ? c.status : status;
        }
    }
    return status;
}

static inline void
expect_closed(evil_t *e)
{
    struct pollfd p = { .fd = e->control, .events = POLLIN };
    char byte;

    for (int ms = 0; ms < PATIENCE_MS; ms += 10) {
        read_log();
        if (poll(&p, 1, 10) == 1
            && recv(e->control, &byte, 1, MSG_DONTWAIT) <= 0)
        {
            return;
        }
    }
    fail_msg("the core has not closed the channel");
}

/* A right request for evil's arena, to be damaged. */
static inline request_t
evil_request(evil_t *e, const char *model, inf_datatype_t type,
    int64_t elements, size_t bytes)
{
    request_t r = { 0 };

    r.size = write_record(model, type, elements, 8192, bytes, r.record);
    memcpy(e->arena + 4096, r.record, r.size);
    r.submission = (inf_submission_t) {
        .op = INF_SUBMIT_INFER, .slot = 1, .generation = 1, .offset = 4096,
        .length = r.size
    };
    return r;
}

static inline request_t
evil_echo(evil_t *e)
{
    return evil_request(e, "echo", INF_TYPE_FP32, FLOATS,
        FLOATS * sizeof(float));
}

#endif /* INF_T_SERVICE_EVIL_CHANNEL_H */
