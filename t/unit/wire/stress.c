/*
 * Client and server under load: random sizes, streams, cancels, full rings,
 * spills and dead peers; in two threads of core, and in two processes.
 */

#include "wire/link.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>

#define SLOTS   64
#define ENTRIES 16              /* far fewer: rings are full all the time  */
#define BOUND   (4 * MIB)

/* ---- the core ------------------------------------------------------------ */

typedef struct {
    inf_channel_t   *channel;
    pthread_mutex_t  intake;
    _Atomic bool     stop;
    _Atomic uint64_t rejected;
} core_t;

static uint32_t
mix(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static void
respond(core_t *core, const inf_submission_t *s, uint8_t flags, uint64_t seq,
    uint32_t size)
{
    inf_completion_t cpl = { .flags = flags, .slot = s->slot,
        .generation = s->generation };
    inf_channel_region_t *g = NULL;

    if (flags & INF_COMPLETE_RESPONSE) {
        g = inf_channel_alloc(core->channel, size);
        if (g == NULL) {
            /* Over the bound: said without bytes. */
            cpl.flags &= (uint8_t) ~INF_COMPLETE_RESPONSE;
            cpl.status = INF_STATUS(INF_ERR_UNAVAILABLE);
            core->rejected++;
        } else {
            unsigned char *p = inf_channel_region_data(g);
            memcpy(p, &seq, sizeof(seq));
            p[size - 1] = (unsigned char) seq;
        }
    }

    inf_channel_complete(core->channel, &cpl, g, g != NULL ? size : 0);
}

static void
execute(core_t *core, const inf_submission_t *s, uint32_t *seed)
{
    uint64_t seq;
    const void *p = inf_channel_request(core->channel, s->offset, s->length);

    memcpy(&seq, p, sizeof(seq));
    inf_channel_set_slot(core->channel, s->slot, INF_SLOT_EXECUTING);

    for (uint32_t n = mix(seed) % 4; n > 0; n--) {
        respond(core, s, INF_COMPLETE_RESPONSE, seq, 16 + mix(seed) % 3000);
    }

    inf_channel_set_slot(core->channel, s->slot, INF_SLOT_ANSWERED);
    if (mix(seed) % 2) {
        respond(core, s, INF_COMPLETE_RESPONSE | INF_COMPLETE_FINAL
            | INF_COMPLETE_RELEASED, seq, 16 + mix(seed) % 20000);
        return;
    }

    respond(core, s, INF_COMPLETE_RESPONSE | INF_COMPLETE_FINAL, seq, 64);
    respond(core, s, INF_COMPLETE_RELEASED, seq, 0);
}

/* Holds the intake while taking one entry, then works unlocked. */
static bool
core_step(core_t *core, uint32_t *seed)
{
    inf_submission_t s;

    pthread_mutex_lock(&core->intake);
    inf_channel_result_t rc = core->stop ? INF_CHANNEL_BROKEN
        : inf_channel_pop(core->channel, &s);
    if (rc == INF_CHANNEL_EMPTY && inf_channel_sleep(core->channel)) {
        struct pollfd p[] = {
            { .fd = inf_channel_event_fd(core->channel), .events = POLLIN },
            { .fd = inf_channel_control_fd(core->channel),
              .events = POLLIN }
        };
        (void) poll(p, 2, 30000);
        inf_eventfd_clear(inf_channel_event_fd(core->channel));
        if (p[1].revents != 0) {
            inf_channel_dead(core->channel);
        }
    }
    pthread_mutex_unlock(&core->intake);

    if (rc == INF_CHANNEL_ENTRY && s.op != INF_SUBMIT_CANCEL) {
        execute(core, &s, seed);
    }

    return rc != INF_CHANNEL_BROKEN;
}

static void *
core_thread(void *arg)
{
    core_t *core = arg;
    static _Atomic uint32_t number;
    uint32_t seed = ++number;

    while (core_step(core, &seed)) {
        continue;
    }

    return NULL;
}

/* ---- the worker ---------------------------------------------------------- */

typedef struct worker_s worker_t;

typedef struct {
    worker_t     *worker;
    inf_slot_id_t id;
    inf_region_t *region;
    uint64_t      seq;
    uint8_t       seen;
    bool          busy;
} request_t;

struct worker_s {
    inf_client_t *client;
    request_t     requests[SLOTS];
    uint64_t      held[4096];
    uint32_t      held_count;
    uint64_t      seq;
    uint64_t      done;
    uint64_t      abandoned;
    uint64_t      responses;
    uint32_t      seed;
    bool          wrong;
};

static void
request_done(request_t *q)
{
    inf_client_free_region(q->worker->client, q->region);
    inf_client_give(q->worker->client, q->id);
    q->busy = false;
    q->worker->done++;
}

static void
on_completion(const inf_completion_t *cpl, void *userp)
{
    request_t *q = userp;
    worker_t *w = q->worker;

    if ((cpl->flags & INF_COMPLETE_RESPONSE) && cpl->length > 0) {
        const unsigned char *p = inf_client_response(w->client, cpl->offset,
            cpl->length);
        uint64_t seq;
        memcpy(&seq, p, sizeof(seq));
        w->wrong |= seq != q->seq
            || p[cpl->length - 1] != (unsigned char) seq;
        w->responses++;
        if (mix(&w->seed) % 4 == 0 && w->held_count < 4096) {
            w->held[w->held_count++] = cpl->offset;
        } else {
            inf_client_release(w->client, cpl->offset);
        }
    }

    q->seen |= cpl->flags;
    if ((q->seen & INF_COMPLETE_FINAL) && (q->seen & INF_COMPLETE_RELEASED)) {
        request_done(q);
    } else if (mix(&w->seed) % 8 == 0) {
        inf_client_abandon(w->client, q->id, q->region);
        q->busy = false;
        w->abandoned++;
    }
}

static void
worker_start(worker_t *w, request_t *q)
{
    inf_client_t *c = w->client;
    uint64_t size = 8 + mix(&w->seed) % 20000;

    q->region = inf_client_alloc(c, size);
    if (q->region == NULL || !inf_client_take(c, q, &q->id)) {
        inf_client_free_region(c, q->region);
        return;
    }

    q->worker = w;
    q->seq = ++w->seq;
    q->seen = 0;
    memcpy(inf_client_data(c, q->region), &q->seq, sizeof(q->seq));

    const inf_submission_t s = { .op = INF_SUBMIT_CALL,
        .method = INF_METHOD_SERVER_LIVE, .slot = q->id.slot,
        .generation = q->id.generation, .offset = q->region->offset,
        .length = size };
    if (inf_client_submit(c, &s) != INF_CLIENT_OK) {
        inf_client_abandon(c, q->id, q->region);
        return;
    }

    q->busy = true;
}

static bool
worker_wait(worker_t *w)
{
    struct pollfd p[] = {
        { .fd = inf_client_event_fd(w->client), .events = POLLIN },
        { .fd = inf_client_control_fd(w->client), .events = POLLIN },
        { .fd = inf_client_core_fd(w->client), .events = POLLIN }
    };

    /* With nothing in flight nothing comes; else a lost wake-up shows here. */
    int timeout = inf_client_slots_taken(w->client) == 0 ? 0
        : inf_client_pending(w->client) > 0 ? 1 : 20000;
    if (poll(p, 3, timeout) == 0 && timeout == 20000) {
        print_error("nothing happened for 20 s\n");
        w->wrong = true;
        return false;
    }

    inf_eventfd_watch_clear(inf_client_event_fd(w->client));
    return p[1].revents == 0 && p[2].revents == 0;
}

/* false: the core is gone. */
static bool
worker_turn(worker_t *w, bool more)
{
    for (int i = 0; more && i < SLOTS; i++) {
        if (!w->requests[i].busy && mix(&w->seed) % 2) {
            worker_start(w, &w->requests[i]);
        }
    }

    if (inf_client_drain(w->client, 1 + mix(&w->seed) % 40, on_completion)
        == INF_CLIENT_BROKEN)
    {
        return false;
    }

    while (w->held_count > (more ? 100u : 0u)) {
        inf_client_release(w->client, w->held[--w->held_count]);
    }

    return !inf_client_arm(w->client) || worker_wait(w);
}

static void
worker_run(worker_t *w, uint64_t count)
{
    while (w->done + w->abandoned < count && !w->wrong) {
        assert_true(worker_turn(w, true));
    }
    while ((inf_client_slots_taken(w->client) > 0
            || inf_client_pending(w->client) > 0) && !w->wrong)
    {
        assert_true(worker_turn(w, false));
    }
    while (w->held_count > 0) {         /* everything came at once           */
        inf_client_release(w->client, w->held[--w->held_count]);
    }
}

/* ---- tests --------------------------------------------------------------- */

static void
threads_of_a_core_serve_all_and_leave_nothing(void **state)
{
    (void) state;
    static core_t core;
    static worker_t w;
    link_t_ l;
    pthread_t threads[3];

    link_open(&l, ENTRIES, SLOTS, BOUND);
    core.channel = l.channel;
    pthread_mutex_init(&core.intake, NULL);
    w.client = l.client;
    w.seed = 99;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, core_thread,
            &core), 0);
    }

    worker_run(&w, 30000);
    core.stop = true;
    inf_eventfd_notify(inf_channel_event_fd(l.channel));
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
    }

    assert_false(w.wrong);
    assert_true(w.responses + core.rejected > w.done);
    assert_true(w.abandoned > 0);
    assert_int_equal(inf_client_slots_taken(l.client), 0);
    assert_int_equal(inf_client_arena_stats(l.client)->in_use, 0);
    assert_int_equal(inf_client_arena_stats(l.client)->regions, 0);

    /* The last releases may still be in the ring, or wait for room in it. */
    inf_submission_t s;
    inf_channel_result_t rc;
    do {
        while ((rc = inf_channel_pop(l.channel, &s)) != INF_CHANNEL_EMPTY) {
            assert_int_not_equal(rc, INF_CHANNEL_BROKEN);
        }
        inf_client_flush(l.client);
    } while ((rc = inf_channel_pop(l.channel, &s)) != INF_CHANNEL_EMPTY);
    inf_regions_stats_t arena;
    inf_channel_stats_t stats;
    inf_channel_arena_stats(l.channel, &arena);
    inf_channel_stats(l.channel, &stats);
    assert_int_equal(arena.regions, 0);
    assert_int_equal(arena.in_use, 0);
    assert_int_equal(stats.bad_releases, 0);
    assert_int_equal(stats.invalid, 0);
    assert_true(stats.spilled > 0);
    print_message("%lu completions, %lu spilled, %lu + %lu notifications,"
        " %lu busy, %lu rejected\n", stats.completions, stats.spilled,
        stats.notifications, inf_client_stats(l.client)->notifications,
        inf_client_stats(l.client)->busy,
        core.rejected);

    link_close(&l);
    pthread_mutex_destroy(&core.intake);
}

static void
channel_may_die_while_its_core_works(void **state)
{
    (void) state;
    int before = link_open_fds();

    for (uint32_t round = 0; round < 20; round++) {
        core_t core = { .stop = false };
        worker_t *w = calloc(1, sizeof(*w));
        link_t_ l;
        pthread_t threads[3];

        link_open(&l, ENTRIES, SLOTS, BOUND);
        core.channel = inf_channel_ref(l.channel);
        pthread_mutex_init(&core.intake, NULL);
        w->client = l.client;
        w->seed = round;
        for (int i = 0; i < 3; i++) {
            assert_int_equal(pthread_create(&threads[i], NULL, core_thread,
                &core), 0);
        }
        for (uint32_t i = 0; i < 10 + round * 10; i++) {
            assert_true(worker_turn(w, true));
        }

        if (round % 2) {
            inf_channel_dead(l.channel);
        }
        inf_client_free(l.client);
        l.client = NULL;
        for (int i = 0; i < 3; i++) {
            pthread_join(threads[i], NULL);
        }

        inf_regions_stats_t arena;
        inf_channel_arena_stats(core.channel, &arena);
        assert_int_equal(arena.regions, 0);
        assert_false(w->wrong);
        inf_channel_unref(core.channel);
        link_close(&l);
        pthread_mutex_destroy(&core.intake);
        free(w);
    }

    assert_int_equal(link_open_fds(), before);
}

/* A core of its own process: one channel, until it dies. */
static void
core_process(int registration)
{
    static core_t core;
    inf_hello_t hello;
    int fds[INF_SOCKET_MAX_FDS];
    size_t len, fd_count;
    inf_socket_result_t result;
    uint32_t seed = 5;
    const inf_channel_conf_t conf = { .response_bound = BOUND };
    struct pollfd p = { .fd = registration, .events = POLLIN };

    (void) poll(&p, 1, 20000);
    if (inf_socket_recv(registration, &hello, sizeof(hello), &len, fds,
            INF_SOCKET_MAX_FDS, &fd_count, &result) != NULL
        || result != INF_SOCKET_DONE
        || inf_channel_accept(&hello, len, fds, fd_count, &conf,
            &core.channel) != NULL)
    {
        _exit(1);
    }

    pthread_mutex_init(&core.intake, NULL);
    while (core_step(&core, &seed)) {
        continue;
    }

    inf_regions_stats_t arena;
    inf_channel_arena_stats(core.channel, &arena);
    inf_channel_unref(core.channel);
    _exit(arena.regions == 0 ? 0 : 2);
}

static pid_t
fork_core(inf_client_t **client)
{
    int pair[2];
    bool again;

    link_assert_ok(inf_socket_pair(pair));
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(pair[0]);
        core_process(pair[1]);
    }
    close(pair[1]);

    const inf_client_conf_t conf = { .arena_bound = BOUND, .slots = SLOTS,
        .ring_entries = ENTRIES };
    link_assert_ok(inf_client_new(&conf, client));
    link_assert_ok(inf_client_hello(*client, pair[0], &again));
    close(pair[0]);

    struct pollfd p = { .fd = inf_client_control_fd(*client),
        .events = POLLIN };
    assert_int_equal(poll(&p, 1, 20000), 1);
    link_assert_ok(inf_client_welcome(*client, &again));
    assert_false(again);
    assert_int_equal(inf_client_core_pid(*client), pid);
    return pid;
}

static void
core_in_another_process_serves_all(void **state)
{
    (void) state;
    worker_t *w = calloc(1, sizeof(*w));
    w->seed = 3;

    pid_t pid = fork_core(&w->client);
    worker_run(w, 20000);
    assert_false(w->wrong);
    assert_int_equal(inf_client_arena_stats(w->client)->in_use, 0);
    inf_client_free(w->client);

    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    free(w);
}

static void
killed_core_is_noticed_and_another_one_serves(void **state)
{
    (void) state;
    int before = link_open_fds();

    for (uint32_t round = 0; round < 10; round++) {
        worker_t *w = calloc(1, sizeof(*w));
        w->seed = round + 1;
        pid_t pid = fork_core(&w->client);

        for (uint32_t i = 0; i < 20 * round; i++) {
            assert_true(worker_turn(w, true));
        }
        assert_int_equal(kill(pid, SIGKILL), 0);
        uint32_t turns = 0;
        while (worker_turn(w, true)) {
            assert_true(++turns < 100000);
        }

        assert_false(w->wrong);
        for (int i = 0; i < SLOTS; i++) {
            if (w->requests[i].busy) {
                uint8_t s = inf_client_slot_state(w->client,
                    w->requests[i].id);
                assert_true((s & INF_SLOT_STATE_MASK) <= INF_SLOT_ANSWERED);
            }
        }
        inf_client_free(w->client);
        free(w);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
    }

    assert_int_equal(link_open_fds(), before);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(core_in_another_process_serves_all),
        cmocka_unit_test(killed_core_is_noticed_and_another_one_serves),
        cmocka_unit_test(threads_of_a_core_serve_all_and_leave_nothing),
        cmocka_unit_test(channel_may_die_while_its_core_works),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
