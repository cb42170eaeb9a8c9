#include "wire/link.h"

#include <malloc.h>
#include <stdlib.h>
#include <sys/socket.h>

static uint32_t seed = 7;

static uint32_t
next_random(void)
{
    seed = seed * 1664525u + 1013904223u;
    return seed >> 4;
}

/* A registration as the core receives it, for the test to damage. */
typedef struct {
    inf_client_t *client;
    inf_hello_t   hello;
    int           fds[INF_SOCKET_MAX_FDS];
    size_t        len;
    size_t        fd_count;
} offer_t;

static const inf_channel_conf_t core_conf = { .response_bound = MIB,
    .response_size = 4 * MIB };

static void
offer_open(offer_t *o)
{
    const inf_client_conf_t conf = { .arena_bound = MIB, .slots = 8,
        .arena_size = 4 * MIB, .ring_entries = 16 };
    int pair[2];
    bool again;
    inf_socket_result_t result;

    link_assert_ok(inf_client_new(&conf, &o->client));
    link_assert_ok(inf_socket_pair(pair));
    link_assert_ok(inf_client_hello(o->client, pair[0], &again));
    link_assert_ok(inf_socket_recv(pair[1], &o->hello, sizeof(o->hello),
        &o->len, o->fds, INF_SOCKET_MAX_FDS, &o->fd_count, &result));
    assert_int_equal(o->fd_count, INF_HELLO_WORKER_FDS);
    inf_fds_close(pair, 2);
}

/* Rejected, with nothing left open; the worker reads why where it can. */
static void
offer_rejected(offer_t *o, const char *part, bool told)
{
    inf_channel_t *ch = (void *) o;
    bool again;

    inf_err_t *err = inf_channel_accept(&o->hello, o->len, o->fds,
        o->fd_count, &core_conf, &ch);
    assert_non_null(err);
    assert_null(ch);
    if (strstr(inf_err_msg(err), part) == NULL) {
        print_error("\"%s\" lacks \"%s\"\n", inf_err_msg(err), part);
    }
    assert_non_null(strstr(inf_err_msg(err), part));
    inf_err_free(err);

    for (size_t i = 0; i < o->fd_count; i++) {
        assert_int_equal(o->fds[i], -1);
    }

    err = inf_client_welcome(o->client, &again);
    assert_non_null(err);
    assert_false(again);
    assert_int_equal(strstr(inf_err_msg(err), part) != NULL, told);
    inf_err_free(err);
    assert_false(inf_client_connected(o->client));
    inf_client_free(o->client);
}

static void
registration_with_a_wrong_field_is_rejected_with_a_reason(void **state)
{
    (void) state;
    int before = link_open_fds();
    offer_t o;

#define REJECTED(part, told, change)                                           \
    do {                                                                      \
        offer_open(&o);                                                       \
        change;                                                               \
        offer_rejected(&o, part, told);                                        \
    } while (0)

    REJECTED("too short", true, o.len = sizeof(o.hello) - 1);
    REJECTED("too short", true, o.len = 0);
    REJECTED("format", true, o.hello.magic++);
    REJECTED("format", true, o.hello.size = 8);
    REJECTED("restart nginx", true, o.hello.version = 0);
    REJECTED("restart nginx", true, o.hello.min_version = 99);
    REJECTED("restart nginx", true,
        o.hello.version = o.hello.min_version = INF_CHANNEL_MIN_VERSION - 1);
    REJECTED("restart nginx", true,
        o.hello.version = o.hello.min_version = INF_CHANNEL_VERSION + 1);
    REJECTED("kind", true, o.hello.kind = INF_HELLO_CONFIG);
    REJECTED("layout", true, o.hello.ring_entries = 32);
    REJECTED("layout", true, o.hello.ring_entries = 0);
    REJECTED("layout", true, o.hello.entry_size = 32);
    REJECTED("layout", true, o.hello.slots = 9);
    REJECTED("rings", true, o.hello.rings_size -= 4096);
    REJECTED("rings", true, o.hello.rings_size = UINT64_MAX);
    REJECTED("request arena", true, o.hello.request_arena_size = 0);
    REJECTED("request arena", true, o.hello.request_arena_size *= 2);
    assert_int_equal(link_open_fds(), before);
}

static void
replace(offer_t *o, int which, int fd)
{
    close(o->fds[which]);
    o->fds[which] = fd;
}

static int
memfd(uint64_t size, int seals)
{
    int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t) size), 0);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

static void
registration_with_wrong_descriptors_is_rejected(void **state)
{
    (void) state;
    int before = link_open_fds();
    offer_t o;
    int pipes[2];

    REJECTED("descriptors", false, inf_fds_close(&o.fds[3], 1);
        o.fd_count = 3);
    REJECTED("descriptors", false, o.fds[4] = dup(o.fds[0]);
        o.fd_count = 5);
    REJECTED("descriptors", false, inf_fds_close(o.fds, INF_HELLO_WORKER_FDS);
        o.fd_count = 0);
    REJECTED("shrink", true, replace(&o, INF_FD_RINGS,
        memfd(o.hello.rings_size, F_SEAL_GROW)));
    REJECTED("shrink", true, replace(&o, INF_FD_REQUEST_ARENA,
        memfd(o.hello.request_arena_size, 0)));
    REJECTED("announced", true, replace(&o, INF_FD_REQUEST_ARENA,
        memfd(4096, F_SEAL_SHRINK)));
    REJECTED("not a memfd", true, replace(&o, INF_FD_REQUEST_ARENA,
        open("/dev/zero", O_RDWR)));
    REJECTED("not a memfd", true, replace(&o, INF_FD_RINGS,
        dup(o.fds[INF_FD_SUBMIT_EVENTFD])));
    REJECTED("layout", true, replace(&o, INF_FD_RINGS,
        memfd(o.hello.rings_size, F_SEAL_SHRINK)));
    REJECTED("not an eventfd", true, assert_int_equal(pipe(pipes), 0);
        close(pipes[0]); replace(&o, INF_FD_SUBMIT_EVENTFD, pipes[1]));
    REJECTED("not an eventfd", true, replace(&o, INF_FD_SUBMIT_EVENTFD,
        dup(o.fds[INF_FD_RINGS])));
    REJECTED("not a socket", false, replace(&o, INF_FD_CONTROL,
        dup(o.fds[INF_FD_RINGS])));
    REJECTED("seqpacket", false, assert_int_equal(socketpair(AF_UNIX,
        SOCK_STREAM, 0, pipes), 0); close(pipes[0]);
        replace(&o, INF_FD_CONTROL, pipes[1]));
    assert_int_equal(link_open_fds(), before);
}

static void
newer_worker_that_still_speaks_our_version_is_accepted(void **state)
{
    (void) state;
    offer_t o;
    inf_channel_t *ch;
    bool again;

    offer_open(&o);
    o.hello.version = 7;
    link_assert_ok(inf_channel_accept(&o.hello, o.len, o.fds, o.fd_count,
        &core_conf, &ch));
    link_assert_ok(inf_client_welcome(o.client, &again));
    assert_true(inf_client_connected(o.client));
    inf_channel_unref(ch);
    inf_client_free(o.client);
}

static void
put_raw(link_t_ *l, const inf_submission_t *s)
{
    inf_rings_header_t *h = link_rings(l);
    uint32_t tail = h->submit_tail.value;

    memcpy(l->rings + h->submit_offset
        + (tail % h->ring_entries) * INF_RING_ENTRY_SIZE, s, sizeof(*s));
    __atomic_store_n(&h->submit_tail.value, tail + 1, __ATOMIC_RELEASE);
}

static void
malformed_entries_are_counted_and_answered_where_possible(void **state)
{
    (void) state;
    link_t_ l;
    link_open(&l, 32, 8, MIB);

    const struct {
        inf_submission_t s;
        bool             answered;
    } cases[] = {
        { { .op = 0 }, false },
        { { .op = 5 }, false },
        { { .op = 255 }, false },
        { { .op = INF_SUBMIT_INFER, .slot = 8 }, false },
        { { .op = INF_SUBMIT_CANCEL, .slot = UINT32_MAX }, false },
        { { .op = INF_SUBMIT_INFER, .offset = 4 * MIB, .length = 200 },
          true },
        { { .op = INF_SUBMIT_INFER, .offset = UINT64_MAX, .length = 200 },
          true },
        { { .op = INF_SUBMIT_INFER, .length = UINT64_MAX }, true },
        { { .op = INF_SUBMIT_INFER, .length = 3 }, true },
        { { .op = INF_SUBMIT_CALL, .method = 0 }, true },
        { { .op = INF_SUBMIT_CALL, .method = 999 }, true },
        { { .op = INF_SUBMIT_CALL, .method = 1, .offset = 1,
            .length = 4 * MIB }, true }
    };
    uint64_t answered = 0;
    inf_channel_stats_t stats;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        inf_submission_t s;
        put_raw(&l, &cases[i].s);
        assert_int_equal(inf_channel_pop(l.channel, &s),
            INF_CHANNEL_SKIPPED);
        assert_int_equal(inf_channel_pop(l.channel, &s), INF_CHANNEL_EMPTY);
        answered += cases[i].answered;
        inf_channel_stats(l.channel, &stats);
        assert_int_equal(stats.invalid, i + 1);
        assert_int_equal(stats.completions, answered);
    }
    link_close(&l);
}

static void
hostile_indices_end_the_channel_and_nothing_else(void **state)
{
    (void) state;

    for (int round = 0; round < 300; round++) {
        link_t_ l;
        link_open(&l, 16, 8, MIB);
        inf_rings_header_t *h = link_rings(&l);
        bool broken = false;

        for (int step = 0; step < 200 && !broken; step++) {
            unsigned char *e = l.rings + h->submit_offset
                + next_random() % 16 * INF_RING_ENTRY_SIZE;
            for (uint32_t k = 0; k < INF_RING_ENTRY_SIZE; k++) {
                e[k] = (unsigned char) (next_random()
                    & (k == 0 ? 3 : k >= 16 && k % 8 > 1 ? 0 : 7));
            }
            uint32_t jump = next_random() % 64 == 0 ? next_random()
                : next_random() % 9;
            h->submit_tail.value += jump;
            h->submit_sleeping.value = next_random();
            h->complete_sleeping.value = next_random();
            if (next_random() % 8 == 0) {
                h->complete_head.value = next_random() % 2 ? next_random()
                    : h->complete_tail.value;
            }
            h->magic = h->submit_offset = next_random();
            h->submit_offset = 4096;

            inf_submission_t s;
            inf_channel_result_t rc = INF_CHANNEL_SKIPPED;
            for (int n = 0; rc != INF_CHANNEL_EMPTY && !broken; n++) {
                assert_true(n <= 64);
                rc = inf_channel_pop(l.channel, &s);
                broken = rc == INF_CHANNEL_BROKEN;
                if (rc == INF_CHANNEL_ENTRY) {
                    assert_true(s.slot < 8);
                    inf_channel_region_t *g = inf_channel_alloc(l.channel,
                        next_random() % 1000);
                    inf_channel_complete(l.channel, &(inf_completion_t) {
                        .flags = INF_COMPLETE_FINAL, .slot = s.slot }, g,
                        g != NULL ? 1 : 0);
                }
            }
            (void) inf_channel_sleep(l.channel);
        }
        link_close(&l);
    }
}

static void
release_of_what_was_not_published_is_only_counted(void **state)
{
    (void) state;
    link_t_ l;
    link_open(&l, 16, 8, MIB);
    inf_channel_stats_t stats;
    inf_submission_t s;

    inf_channel_region_t *kept = inf_channel_alloc(l.channel, 100);
    inf_channel_region_t *sent = inf_channel_alloc(l.channel, 100);
    uint64_t offset = inf_channel_region_offset(sent);
    inf_channel_complete(l.channel, &(inf_completion_t) { .slot = 1 },
        inf_channel_region_ref(sent), 100);

    const uint64_t offsets[] = { inf_channel_region_offset(kept), offset + 1,
        offset, offset, UINT64_MAX, 0, 64 };
    for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
        put_raw(&l, &(inf_submission_t) { .op = INF_SUBMIT_RELEASE,
            .offset = offsets[i], .slot = UINT32_MAX });
        assert_int_equal(inf_channel_pop(l.channel, &s),
            INF_CHANNEL_SKIPPED);
    }
    inf_channel_stats(l.channel, &stats);
    assert_int_equal(stats.bad_releases, 6);

    /* six in one, and one that says it has more than that */
    for (unsigned more = INF_RELEASE_MORE; more < INF_RELEASE_MORE + 2; more++)
    {
        put_raw(&l, &(inf_submission_t) { .op = INF_SUBMIT_RELEASE,
            .flags = (uint8_t) more, .offset = offset, .length = UINT64_MAX,
            .deadline_ns = 64 });
        assert_int_equal(inf_channel_pop(l.channel, &s),
            INF_CHANNEL_SKIPPED);
    }
    inf_channel_stats(l.channel, &stats);
    assert_int_equal(stats.bad_releases, 12);
    assert_int_equal(stats.invalid, 1);

    inf_regions_stats_t arena;
    inf_channel_arena_stats(l.channel, &arena);
    assert_int_equal(arena.regions, 2);
    memset(inf_channel_region_data(sent), 1, 100);
    inf_channel_region_unref(sent);
    inf_channel_region_unref(kept);
    inf_channel_arena_stats(l.channel, &arena);
    assert_int_equal(arena.regions, 0);
    link_close(&l);
}

static void
ignore(const inf_completion_t *cpl, void *userp)
{
    (void) cpl;
    (void) userp;
}

/* Zero under a sanitizer, whose allocator is another. */
static size_t
memory_in_use(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

static void
record_keeps_its_parts_until_it_is_released(void **state)
{
    (void) state;
    link_t_ l;
    link_open(&l, 16, 8, MIB);
    inf_submission_t s;
    inf_regions_stats_t arena;
    inf_channel_region_t *parts[3];

    for (int i = 0; i < 3; i++) {
        parts[i] = inf_channel_alloc(l.channel, 5000);
    }
    inf_channel_region_t *record = inf_channel_alloc(l.channel, 300);
    link_assert_ok(inf_channel_region_attach(record, parts, 3));
    uint64_t offset = inf_channel_region_offset(record);
    inf_channel_complete(l.channel, &(inf_completion_t) { .slot = 1 },
        record, 300);
    inf_channel_region_unref(parts[0]);
    inf_channel_region_unref(parts[1]);
    inf_channel_arena_stats(l.channel, &arena);
    assert_int_equal(arena.regions, 4);

    put_raw(&l, &(inf_submission_t) { .op = INF_SUBMIT_RELEASE,
        .offset = offset });
    assert_int_equal(inf_channel_pop(l.channel, &s), INF_CHANNEL_SKIPPED);
    inf_channel_arena_stats(l.channel, &arena);
    assert_int_equal(arena.regions, 1);
    inf_channel_region_unref(parts[2]);
    inf_channel_arena_stats(l.channel, &arena);
    assert_int_equal(arena.in_use, 0);
    link_close(&l);
}

/* A core runs for months: what comes and goes must not grow anything. */
static void
responses_that_were_released_leave_nothing_behind(void **state)
{
    (void) state;
    link_t_ l;
    link_open(&l, 16, 8, MIB);
    inf_submission_t s;
    size_t before = 0;

    for (int i = 0; i < 40000; i++) {
        inf_channel_region_t *region = inf_channel_alloc(l.channel, 64);
        assert_non_null(region);
        inf_channel_complete(l.channel, &(inf_completion_t) { .slot = 1 },
            region, 64);
        assert_int_not_equal(inf_client_drain(l.client, 4, ignore),
            INF_CLIENT_BROKEN);
        inf_client_ring(l.client);
        while (inf_channel_pop(l.channel, &s) != INF_CHANNEL_EMPTY) {
            continue;
        }
        if (i == 100) {
            before = memory_in_use();
        }
    }
    assert_in_range(memory_in_use(), 0, before + 65536);
    link_close(&l);
}

static void
responses_have_a_bound(void **state)
{
    (void) state;
    link_t_ l;
    link_open(&l, 16, 8, MIB);

    inf_channel_region_t *g = inf_channel_alloc(l.channel, MIB);
    assert_non_null(g);
    assert_null(inf_channel_alloc(l.channel, 1));
    assert_true(inf_channel_region_size(g) >= MIB);
    inf_channel_region_unref(g);
    inf_channel_region_t *h = inf_channel_alloc(l.channel, MIB / 2);
    assert_non_null(h);
    inf_channel_region_unref(h);
    inf_channel_region_unref(NULL);
    link_close(&l);
}

/* Outputs never take the room of calls' answers, nor do these without end. */
static void
a_full_arena_takes_the_answers_of_calls(void **state)
{
    (void) state;
    link_t_ l;
    link_open(&l, 16, 8, 16 * MIB);

    inf_channel_region_t *full = inf_channel_alloc(l.channel, 16 * MIB);
    inf_channel_region_t *answers[INF_CHANNEL_ANSWER_ROOM / INF_CALL_COPIED];
    size_t count = sizeof(answers) / sizeof(answers[0]);

    /* a long one is held by its reader: it has no room of its own */
    assert_null(inf_channel_alloc_answer(l.channel, INF_CALL_COPIED + 1));
    for (size_t i = 0; i < count; i++) {
        answers[i] = inf_channel_alloc_answer(l.channel, INF_CALL_COPIED);
        assert_non_null(answers[i]);
    }
    assert_null(inf_channel_alloc_answer(l.channel, 1));
    inf_channel_region_unref(full);
    assert_null(inf_channel_alloc(l.channel, 16 * MIB));
    for (size_t i = 0; i < count; i++) {
        inf_channel_region_unref(answers[i]);
    }
    full = inf_channel_alloc(l.channel, 16 * MIB);
    assert_non_null(full);
    assert_null(inf_channel_alloc(l.channel, 1));
    inf_channel_region_unref(full);
    link_close(&l);
}

static void
dead_channel_lives_until_the_last_reference(void **state)
{
    (void) state;
    int before = link_open_fds();
    link_t_ l;
    link_open(&l, 2, 8, MIB);
    inf_submission_t s;
    inf_regions_stats_t arena;

    for (int i = 0; i < 600; i++) {
        /* Two in the ring, the others spilled; all published. */
        inf_channel_complete(l.channel, &(inf_completion_t) { .slot = 1 },
            inf_channel_alloc(l.channel, 64), 64);
    }
    inf_channel_region_t *held = inf_channel_alloc(l.channel, 4096);
    const unsigned char *input = inf_channel_request(l.channel, 0, 4096);
    inf_client_free(l.client);
    l.client = NULL;
    assert_true(link_notified(inf_channel_control_fd(l.channel)));

    inf_channel_dead(l.channel);
    inf_channel_dead(l.channel);
    assert_true(inf_channel_is_dead(l.channel));
    assert_int_equal(inf_channel_pop(l.channel, &s), INF_CHANNEL_BROKEN);
    assert_null(inf_channel_alloc(l.channel, 64));
    inf_channel_arena_stats(l.channel, &arena);
    assert_int_equal(arena.regions, 1);

    /* A backend still works with both arenas. */
    inf_channel_t *ch = l.channel;
    inf_channel_unref(ch);
    assert_int_equal(input[4095], 0);
    memset(inf_channel_region_data(held), 1, 4096);
    inf_channel_complete(ch, &(inf_completion_t) { .slot = 1 }, held, 4096);
    munmap(l.rings, l.rings_size);
    assert_int_equal(link_open_fds(), before);
}

#define PINS 3

/* As the room above pins, and the memory that it has pinned. */
static struct {
    int      possible;          /* so many times                           */
    int      pinned;            /* now                                     */
    struct {
        unsigned char *base;    /* NULL: free                              */
        uint64_t       size;
        bool           read_only;
    } list[PINS];
} pins;
static volatile unsigned touched;

static bool
pin_as(void *base, uint64_t size, bool read_only)
{
    if (pins.possible-- <= 0) {
        return false;
    }
    for (int i = 0; i < PINS; i++) {
        if (pins.list[i].base == NULL) {
            pins.list[i].base = base;
            pins.list[i].size = size;
            pins.list[i].read_only = read_only;
            pins.pinned++;
            return true;
        }
    }
    fail();
    return false;
}

static bool
pin(void *base, uint64_t size)
{
    return pin_as(base, size, false);
}

static bool
pin_read_only(void *base, uint64_t size)
{
    return pin_as(base, size, true);
}

/* The memory is still there. */
static void
unpin(void *base)
{
    for (int i = 0; i < PINS; i++) {
        if (pins.list[i].base == base) {
            touched += pins.list[i].base[pins.list[i].size - 1];
            pins.list[i].base = NULL;
            pins.pinned--;
            return;
        }
    }
    fail();
}

static const inf_channel_pin_ops_t pin_ops = { pin, pin_read_only, unpin };

static void
the_begin_of_the_responses_may_be_pinned(void **state)
{
    (void) state;
    offer_t o;
    inf_channel_t *ch;
    inf_channel_region_t *low, *across, *high;
    inf_channel_conf_t conf = core_conf;

    conf.response_bound = 3 * MIB;
    conf.response_size = 4 * MIB;
    conf.pinned = MIB + 5;                      /* whole pages of it       */
    conf.pin = &pin_ops;
    pins.possible = 1;
    offer_open(&o);
    link_assert_ok(inf_channel_accept(&o.hello, o.len, o.fds, o.fd_count,
        &conf, &ch));
    assert_int_equal(pins.pinned, 0);
    low = inf_channel_alloc(ch, MIB / 2);
    assert_false(inf_channel_region_pinned(low));
    inf_channel_pin(ch);
    assert_true(inf_channel_region_pinned(low));
    assert_int_equal(inf_channel_pinned(ch), MIB);
    assert_int_equal(pins.list[0].size, MIB);
    assert_false(pins.list[0].read_only);
    assert_int_equal(pins.pinned, 1);

    across = inf_channel_alloc(ch, MIB);
    high = inf_channel_alloc(ch, MIB);
    assert_ptr_equal(inf_channel_region_data(low), pins.list[0].base);
    assert_true(inf_channel_region_pinned(low));
    assert_false(inf_channel_region_pinned(across));
    assert_false(inf_channel_region_pinned(high));
    memset(inf_channel_region_data(low), 1, MIB / 2);
    memset(inf_channel_region_data(across), 2, MIB);
    memset(inf_channel_region_data(high), 3, MIB);
    inf_channel_region_unref(low);
    inf_channel_region_unref(across);
    inf_channel_region_unref(high);

    /* a minute later all that is not pinned has gone back, and no more */
    const unsigned char *bytes = pins.list[0].base;
    for (uint64_t s = 1; s < 60; s++) {
        inf_channel_trim(ch, s * 1000000000u);
    }
    assert_int_equal(bytes[0], 1);
    assert_int_equal(bytes[MIB / 2 - 1], 1);
    assert_int_equal(bytes[MIB - 1], 2);
    for (uint64_t i = MIB; i < 4 * MIB; i++) {
        assert_int_equal(bytes[i], 0);
    }

    inf_channel_unref(ch);
    assert_int_equal(pins.pinned, 0);
    inf_client_free(o.client);
}

/* The worker keeps those pages, and what it receives is put there first. */
static void
the_begin_of_both_halves_of_the_requests_may_be_pinned(void **state)
{
    (void) state;
    inf_channel_conf_t conf = core_conf;
    inf_channel_t *ch;
    bool again;
    offer_t o;

    conf.pinned = 64 << 10;
    conf.pin = &pin_ops;
    pins.possible = 3;
    offer_open(&o);
    inf_client_t *c = o.client;
    inf_region_t *early = inf_client_reserve(c, 16 << 10);
    memset(inf_client_data(c, early), 1, 16 << 10);
    assert_true(inf_client_charge(c, early, 16 << 10));
    link_assert_ok(inf_channel_accept(&o.hello, o.len, o.fds, o.fd_count,
        &conf, &ch));
    link_assert_ok(inf_client_welcome(c, &again));
    assert_false(again);
    assert_false(inf_channel_request_pinned(ch, early->offset, 1));
    inf_channel_pin(ch);
    assert_int_equal(inf_channel_pinned_requests(ch), 64 << 10);
    assert_int_equal(pins.pinned, 3);
    for (int i = 1; i < 3; i++) {
        assert_int_equal(pins.list[i].size, 64 << 10);
        assert_true(pins.list[i].read_only);
    }
    assert_ptr_equal(pins.list[2].base, inf_channel_request(ch, early->offset,
        1));

    inf_region_t *small = inf_client_alloc(c, 48 << 10);
    inf_region_t *across = inf_client_alloc(c, 48 << 10);
    assert_true(inf_channel_request_pinned(ch, small->offset, 48 << 10));
    assert_false(inf_channel_request_pinned(ch, across->offset, 48 << 10));
    assert_true(inf_channel_request_pinned(ch, across->offset, 16 << 10));
    assert_true(inf_channel_request_pinned(ch, early->offset, 16 << 10));
    assert_false(inf_channel_request_pinned(ch, early->offset - 64, 64));
    assert_false(inf_channel_request_pinned(ch, early->offset, 65 << 10));
    assert_false(inf_channel_request_pinned(ch, UINT64_MAX, 1));
    assert_false(inf_channel_request_pinned(ch, 0, UINT64_MAX));

    memset(inf_client_data(c, small), 2, 48 << 10);
    memset(inf_client_data(c, across), 3, 48 << 10);
    inf_client_free_region(c, early);
    inf_client_free_region(c, small);
    inf_client_free_region(c, across);
    for (uint64_t s = 1; s < 60; s++) {
        inf_client_trim(c, s * 1000000000u);
    }
    assert_int_equal(pins.list[2].base[(16 << 10) - 1], 1);
    assert_int_equal(pins.list[1].base[0], 2);
    assert_int_equal(pins.list[1].base[(64 << 10) - 1], 3);
    assert_int_equal(pins.list[1].base[64 << 10], 0);   /* went back       */

    /* the last one freed lies beyond: the pinned one comes all the same */
    inf_region_t *again_small = inf_client_alloc(c, 48 << 10);
    assert_true(inf_channel_request_pinned(ch, again_small->offset, 48 << 10));
    inf_client_free_region(c, again_small);

    inf_channel_unref(ch);
    assert_int_equal(pins.pinned, 0);
    inf_client_free(c);
}

static void
what_can_not_be_pinned_is_used_as_it_is(void **state)
{
    (void) state;

    for (int possible = 0; possible < 3; possible++) {
        inf_channel_conf_t conf = core_conf;
        bool again;
        offer_t o;
        inf_channel_t *ch;

        conf.pinned = MIB;
        conf.pin = &pin_ops;
        pins.possible = possible;
        offer_open(&o);
        link_assert_ok(inf_channel_accept(&o.hello, o.len, o.fds, o.fd_count,
            &conf, &ch));
        link_assert_ok(inf_client_welcome(o.client, &again));
        inf_channel_pin(ch);
        assert_int_equal(pins.pinned, possible > 0);
        inf_channel_region_t *r = inf_channel_alloc(ch, 64);
        assert_int_equal(inf_channel_region_pinned(r), possible > 0);
        assert_false(inf_channel_request_pinned(ch, 0, 1));
        inf_channel_region_unref(r);
        inf_channel_unref(ch);
        assert_int_equal(pins.pinned, 0);
        inf_client_free(o.client);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            registration_with_a_wrong_field_is_rejected_with_a_reason),
        cmocka_unit_test(registration_with_wrong_descriptors_is_rejected),
        cmocka_unit_test(
            newer_worker_that_still_speaks_our_version_is_accepted),
        cmocka_unit_test(
            malformed_entries_are_counted_and_answered_where_possible),
        cmocka_unit_test(hostile_indices_end_the_channel_and_nothing_else),
        cmocka_unit_test(release_of_what_was_not_published_is_only_counted),
        cmocka_unit_test(record_keeps_its_parts_until_it_is_released),
        cmocka_unit_test(responses_that_were_released_leave_nothing_behind),
        cmocka_unit_test(responses_have_a_bound),
        cmocka_unit_test(a_full_arena_takes_the_answers_of_calls),
        cmocka_unit_test(dead_channel_lives_until_the_last_reference),
        cmocka_unit_test(the_begin_of_the_responses_may_be_pinned),
        cmocka_unit_test(
            the_begin_of_both_halves_of_the_requests_may_be_pinned),
        cmocka_unit_test(what_can_not_be_pinned_is_used_as_it_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
