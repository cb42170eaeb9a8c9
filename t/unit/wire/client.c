#include "wire/link.h"

typedef struct {
    inf_slot_id_t    id;
    inf_client_t    *client;
    inf_completion_t last;
    uint32_t         calls;
    bool             release;
} waiter_t;

static void
on_completion(const inf_completion_t *cpl, void *userp)
{
    waiter_t *w = userp;

    w->last = *cpl;
    w->calls++;
    if (w->release && (cpl->flags & INF_COMPLETE_RESPONSE)
        && cpl->length > 0)
    {
        inf_client_release(w->client, cpl->offset);
    }
}

static void
submit(link_t_ *l, waiter_t *w, inf_region_t *g)
{
    w->client = l->client;
    assert_true(inf_client_take(l->client, w, &w->id));
    assert_int_equal(inf_client_submit(l->client, &(inf_submission_t) {
        .op = INF_SUBMIT_CALL,
        .method = INF_METHOD_SERVER_LIVE,
        .slot = w->id.slot,
        .generation = w->id.generation,
        .offset = g != NULL ? g->offset : 0,
        .length = g != NULL ? g->charged : 0
    }), INF_CLIENT_OK);
}

static inf_submission_t
pop_entry(link_t_ *l)
{
    inf_submission_t s;
    inf_channel_result_t rc;

    while ((rc = inf_channel_pop(l->channel, &s)) == INF_CHANNEL_SKIPPED) {
        continue;
    }
    assert_int_equal(rc, INF_CHANNEL_ENTRY);
    return s;
}

static void
expect_empty(link_t_ *l)
{
    inf_submission_t s;
    inf_channel_result_t rc;

    while ((rc = inf_channel_pop(l->channel, &s)) == INF_CHANNEL_SKIPPED) {
        continue;
    }
    assert_int_equal(rc, INF_CHANNEL_EMPTY);
}

static void
answer(link_t_ *l, inf_submission_t s, uint8_t flags, const char *text)
{
    inf_channel_region_t *g = NULL;
    uint64_t len = text != NULL ? strlen(text) : 0;

    if (len > 0) {
        g = inf_channel_alloc(l->channel, len);
        assert_non_null(g);
        memcpy(inf_channel_region_data(g), text, len);
    }
    inf_channel_complete(l->channel, &(inf_completion_t) { .flags = flags,
        .slot = s.slot, .generation = s.generation }, g, len);
}

static uint64_t
responses_in_use(link_t_ *l)
{
    inf_regions_stats_t stats;
    inf_channel_arena_stats(l->channel, &stats);
    return stats.in_use;
}

static void
request_goes_there_and_its_answer_comes_back(void **state)
{
    (void) state;
    int before = link_open_fds();
    link_t_ l;
    link_open(&l, 16, 8, MIB);
    assert_int_equal(inf_client_core_pid(l.client), getpid());
    assert_int_equal(inf_channel_pid(l.channel), getpid());
    assert_true(inf_client_core_fd(l.client) >= 0);

    inf_region_t *g = inf_client_alloc(l.client, 100);
    memcpy(inf_client_data(l.client, g), "question", 8);

    waiter_t w = { .calls = 0 };
    submit(&l, &w, g);
    assert_ptr_equal(inf_client_find(l.client, w.id), &w);

    inf_submission_t s = pop_entry(&l);
    assert_memory_equal(inf_channel_request(l.channel, s.offset, 8),
        "question", 8);
    inf_channel_set_slot(l.channel, s.slot,
        INF_SLOT_EXECUTING | INF_SLOT_RETRYABLE);
    assert_int_equal(inf_client_slot_state(l.client, w.id),
        INF_SLOT_EXECUTING | INF_SLOT_RETRYABLE);

    answer(&l, s, INF_COMPLETE_RESPONSE | INF_COMPLETE_FINAL
        | INF_COMPLETE_RELEASED, "answer");
    assert_int_equal(inf_client_drain(l.client, 10, on_completion),
        INF_CLIENT_OK);
    assert_int_equal(w.calls, 1);
    assert_memory_equal(inf_client_response(l.client, w.last.offset,
        w.last.length), "answer", 6);
    assert_int_equal(responses_in_use(&l), 64);
    inf_client_release(l.client, w.last.offset);
    expect_empty(&l);
    assert_int_equal(responses_in_use(&l), 0);

    inf_client_free_region(l.client, g);
    inf_client_give(l.client, w.id);
    assert_null(inf_client_find(l.client, w.id));
    assert_int_equal(inf_client_slots_taken(l.client), 0);
    link_close(&l);
    assert_int_equal(link_open_fds(), before);
}

static void
sides_ring_only_a_sleeping_peer(void **state)
{
    (void) state;
    link_t_ l;
    waiter_t w = { .calls = 0 };
    link_open(&l, 16, 8, MIB);
    int core_eventfd = inf_channel_event_fd(l.channel);
    int eventfd = inf_client_event_fd(l.client);

    submit(&l, &w, NULL);
    assert_false(link_notified(core_eventfd));
    assert_false(inf_channel_sleep(l.channel));
    inf_submission_t s = pop_entry(&l);
    assert_true(inf_channel_sleep(l.channel));
    submit(&l, &w, NULL);
    assert_true(link_notified(core_eventfd));

    answer(&l, s, INF_COMPLETE_FINAL, NULL);
    assert_false(link_notified(eventfd));
    assert_false(inf_client_arm(l.client));
    assert_int_equal(inf_client_drain(l.client, 10, on_completion),
        INF_CLIENT_OK);
    assert_true(inf_client_arm(l.client));
    answer(&l, s, INF_COMPLETE_RELEASED, NULL);
    assert_true(link_notified(eventfd));
    link_close(&l);
}

static void
slots_run_out_and_come_back_with_a_new_generation(void **state)
{
    (void) state;
    link_t_ l;
    link_open(&l, 16, 4, MIB);
    inf_slot_id_t t[5];
    int x;

    for (int i = 0; i < 4; i++) {
        assert_true(inf_client_take(l.client, &x, &t[i]));
        assert_int_not_equal(t[i].generation, 0);
    }
    assert_false(inf_client_take(l.client, &x, &t[4]));
    assert_null(inf_client_find(l.client, t[4]));
    inf_client_give(l.client, t[2]);
    inf_client_give(l.client, t[2]);
    assert_true(inf_client_take(l.client, &x, &t[4]));
    assert_int_equal(t[4].slot, t[2].slot);
    assert_int_not_equal(t[4].generation, t[2].generation);
    assert_null(inf_client_find(l.client, t[2]));
    assert_null(inf_client_find(l.client, (inf_slot_id_t) { 4, 1 }));
    assert_int_equal(inf_client_slot_state(l.client, t[2]), INF_SLOT_FREE);
    link_close(&l);
}

static void
calls_have_slots_and_room_that_inferences_leave(void **state)
{
    (void) state;
    link_t_ l;
    link_open(&l, 256, 128, 2 * MIB);
    inf_slot_id_t t;

    for (int i = 0; i < 126; i++) {
        assert_true(inf_client_take(l.client, &t, &t));
    }
    assert_false(inf_client_take(l.client, &t, &t));
    assert_true(inf_client_take_call(l.client, &t, &t));
    assert_false(inf_client_take(l.client, &t, &t));
    inf_slot_id_t last;
    assert_true(inf_client_take_call(l.client, &t, &last));
    assert_false(inf_client_take_call(l.client, &t, &t));
    inf_client_give(l.client, last);
    assert_false(inf_client_take(l.client, &t, &t));
    assert_true(inf_client_take_call(l.client, &t, &t));

    assert_non_null(inf_client_alloc(l.client, 2 * MIB));
    assert_null(inf_client_alloc(l.client, 1));
    inf_region_t *call = inf_client_alloc_call(l.client,
        INF_CLIENT_CALL_ROOM - INF_ARENA_ALIGN);
    assert_non_null(call);
    assert_null(inf_client_alloc(l.client, 1));
    assert_non_null(inf_client_alloc_call(l.client, 1));
    assert_null(inf_client_alloc_call(l.client, 1));
    inf_client_free_region(l.client, call);
    assert_null(inf_client_alloc(l.client, 1));
    assert_non_null(inf_client_alloc_call(l.client, 1));
    link_close(&l);
}

static void
late_completion_is_dropped_but_its_response_released(void **state)
{
    (void) state;
    link_t_ l;
    waiter_t w = { .calls = 0 };
    link_open(&l, 16, 8, MIB);

    submit(&l, &w, NULL);
    inf_submission_t s = pop_entry(&l);
    inf_client_give(l.client, w.id);
    answer(&l, s, INF_COMPLETE_RESPONSE, "late");
    assert_int_equal(inf_client_drain(l.client, 10, on_completion),
        INF_CLIENT_OK);
    expect_empty(&l);
    assert_int_equal(w.calls, 0);
    assert_int_equal(inf_client_stats(l.client)->late, 1);
    assert_int_equal(responses_in_use(&l), 0);

    /* A response after FINAL is as late. */
    submit(&l, &w, NULL);
    s = pop_entry(&l);
    answer(&l, s, INF_COMPLETE_FINAL, NULL);
    answer(&l, s, INF_COMPLETE_FINAL, "again");
    answer(&l, s, INF_COMPLETE_RELEASED, NULL);
    assert_int_equal(inf_client_drain(l.client, 10, on_completion),
        INF_CLIENT_OK);
    expect_empty(&l);
    assert_int_equal(w.calls, 2);
    assert_int_equal(inf_client_stats(l.client)->late, 2);
    assert_int_equal(responses_in_use(&l), 0);
    link_close(&l);
}

static void
abandoned_request_is_cancelled_and_cleaned_up_later(void **state)
{
    (void) state;
    link_t_ l;
    waiter_t w = { .calls = 0 };
    link_open(&l, 16, 8, MIB);

    /* In every order of what the core still sends. */
    for (int order = 0; order < 4; order++) {
        inf_region_t *g = inf_client_alloc(l.client, 1000);
        submit(&l, &w, g);
        inf_submission_t s = pop_entry(&l);
        if (order == 3) {
            answer(&l, s, INF_COMPLETE_FINAL, "seen before");
            w.release = true;
            (void) inf_client_drain(l.client, 10, on_completion);
            assert_int_equal(w.calls, 1);
        }
        inf_client_abandon(l.client, w.id, g);
        assert_null(inf_client_find(l.client, w.id));
        inf_client_give(l.client, w.id);
        assert_int_equal(inf_client_slots_taken(l.client), 1);
        if (order != 3) {
            inf_submission_t cancel = pop_entry(&l);
            assert_int_equal(cancel.op, INF_SUBMIT_CANCEL);
            assert_int_equal(cancel.slot, s.slot);
            assert_int_equal(cancel.generation, s.generation);
        }
        expect_empty(&l);
        assert_true(inf_client_arena_stats(l.client)->in_use > 0);

        answer(&l, s, order == 0
            ? INF_COMPLETE_FINAL | INF_COMPLETE_RELEASED
            : order == 1 ? INF_COMPLETE_FINAL : INF_COMPLETE_RELEASED,
            order == 1 ? "partial" : NULL);
        (void) inf_client_drain(l.client, 10, on_completion);
        assert_int_equal(inf_client_arena_stats(l.client)->in_use > 0,
            order == 1);
        if (order == 1 || order == 2) {
            assert_int_equal(inf_client_slots_taken(l.client), 1);
            answer(&l, s, order == 1 ? INF_COMPLETE_RELEASED
                : INF_COMPLETE_FINAL, NULL);
            (void) inf_client_drain(l.client, 10, on_completion);
        }
        expect_empty(&l);
        assert_int_equal(inf_client_slots_taken(l.client), 0);
        assert_int_equal(inf_client_arena_stats(l.client)->in_use, 0);
        assert_int_equal(responses_in_use(&l), 0);
    }

    assert_int_equal(w.calls, 1);

    /* Never submitted: gone at once. */
    inf_region_t *g = inf_client_alloc(l.client, 1000);
    assert_true(inf_client_take(l.client, &w, &w.id));
    inf_client_abandon(l.client, w.id, g);
    assert_int_equal(inf_client_slots_taken(l.client), 0);
    assert_int_equal(inf_client_arena_stats(l.client)->in_use, 0);
    expect_empty(&l);
    link_close(&l);
}

static void
full_ring_rejects_requests_and_keeps_releases(void **state)
{
    (void) state;
    link_t_ l;
    waiter_t w[8];
    link_open(&l, 4, 8, MIB);
    inf_submission_t s[4];

    memset(w, 0, sizeof(w));
    for (int i = 0; i < 4; i++) {
        submit(&l, &w[i], NULL);
    }
    for (int i = 0; i < 4; i++) {
        s[i] = pop_entry(&l);
    }
    for (int k = 0; k < 12; k++) {
        answer(&l, s[k % 4], INF_COMPLETE_RESPONSE, "stream");
        w[k % 4].release = true;
        if (k == 3) {
            /* From here on the submission ring is full. */
            for (int i = 4; i < 8; i++) {
                submit(&l, &w[i], NULL);
            }
        }
        if (k >= 4) {
            (void) inf_client_drain(l.client, 10, on_completion);
        }
    }
    for (int i = 0; i < 4; i++) {
        inf_client_abandon(l.client, w[i].id, NULL);
        inf_client_abandon(l.client, w[i].id, NULL);
    }
    /* 12 releases as 2 entries, and 4 cancels */
    assert_int_equal(inf_client_pending(l.client), 6);

    inf_slot_id_t t;
    assert_false(inf_client_take(l.client, w, &t));
    int seen[5] = { 0 };
    for (int i = 0; i < 40; i++) {
        inf_submission_t e;
        if (inf_channel_pop(l.channel, &e) == INF_CHANNEL_ENTRY) {
            seen[e.op]++;
        }
        inf_client_flush(l.client);
    }
    assert_int_equal(inf_client_pending(l.client), 0);
    assert_int_equal(seen[INF_SUBMIT_CALL], 4);
    assert_int_equal(seen[INF_SUBMIT_CANCEL], 4);
    assert_int_equal(responses_in_use(&l), 0);

    inf_channel_stats_t stats;
    inf_channel_stats(l.channel, &stats);
    assert_int_equal(stats.bad_releases, 0);
    assert_int_equal(stats.submissions, 4 + 4 + 4 + 2);
    link_close(&l);
}

/* A backend that answers fast must not make others' requests wait. */
static void
releases_leave_room_for_requests(void **state)
{
    (void) state;
    link_t_ l;
    waiter_t w[8];
    uint64_t released = 0;
    link_open(&l, 16, 8, MIB);

    memset(w, 0, sizeof(w));
    submit(&l, &w[0], NULL);
    inf_submission_t s = pop_entry(&l);
    w[0].release = true;
    for (int i = 0; i < 100; i++) {
        answer(&l, s, INF_COMPLETE_RESPONSE, "stream");
        (void) inf_client_drain(l.client, 10, on_completion);
        inf_channel_flush(l.channel);
    }

    /* 12 in the ring; the others together, 6 an entry */
    assert_int_equal(inf_client_pending(l.client), (100 - 12 + 5) / 6);
    for (int i = 1; i < 5; i++) {
        submit(&l, &w[i], NULL);
    }

    while (inf_client_pending(l.client) > 0) {
        inf_submission_t e;
        released += inf_channel_pop(l.channel, &e) == INF_CHANNEL_SKIPPED;
        inf_client_flush(l.client);
    }
    assert_true(released > 0);
    while (responses_in_use(&l) != 0) {
        inf_submission_t e;
        (void) inf_channel_pop(l.channel, &e);
    }

    inf_channel_stats_t stats;
    inf_channel_stats(l.channel, &stats);
    assert_int_equal(stats.bad_releases, 0);
    assert_int_equal(stats.invalid, 0);
    link_close(&l);
}

static void
submit_into_a_full_ring_is_rejected_and_may_be_tried_again(void **state)
{
    (void) state;
    link_t_ l;
    waiter_t w = { .calls = 0 };
    link_open(&l, 2, 8, MIB);

    submit(&l, &w, NULL);
    submit(&l, &w, NULL);
    assert_true(inf_client_take(l.client, &w, &w.id));
    inf_submission_t s = { .op = INF_SUBMIT_CALL, .slot = w.id.slot,
        .generation = w.id.generation, .method = 1 };
    assert_int_equal(inf_client_submit(l.client, &s), INF_CLIENT_AGAIN);
    assert_int_equal(inf_client_stats(l.client)->busy, 1);
    (void) pop_entry(&l);
    assert_int_equal(inf_client_submit(l.client, &s), INF_CLIENT_OK);
    link_close(&l);
}

static void
more_completions_than_the_ring_holds_arrive_in_order(void **state)
{
    (void) state;
    link_t_ l;
    waiter_t w = { .calls = 0, .release = true };
    link_open(&l, 8, 8, MIB);
    enum { N = 1000 };

    submit(&l, &w, NULL);
    inf_submission_t s = pop_entry(&l);
    for (uint32_t i = 0; i < N; i++) {
        inf_channel_complete(l.channel, &(inf_completion_t) {
            .flags = INF_COMPLETE_RESPONSE, .slot = s.slot,
            .generation = s.generation, .batch_size = i }, NULL, 0);
    }
    inf_channel_stats_t stats;
    inf_channel_stats(l.channel, &stats);
    assert_int_equal(stats.waiting, N - 8);
    assert_true(inf_channel_sleep(l.channel));

    /* No more traffic: only the eventfd can keep it going. */
    for (uint32_t rounds = 0; w.calls < N; rounds++) {
        assert_true(rounds < N);
        uint32_t had = w.calls;
        inf_client_result_t rc = inf_client_drain(l.client, 5,
            on_completion);
        assert_int_not_equal(rc, INF_CLIENT_BROKEN);
        if (had != w.calls) {
            assert_int_equal(w.last.batch_size, w.calls - 1);
            assert_int_equal(w.last.flags, INF_COMPLETE_RESPONSE);
        }
        if (link_notified(inf_channel_event_fd(l.channel))) {
            inf_eventfd_clear(inf_channel_event_fd(l.channel));
            expect_empty(&l);
            (void) inf_channel_sleep(l.channel);
        }
    }
    inf_channel_stats(l.channel, &stats);
    assert_int_equal(stats.waiting, 0);
    assert_int_equal(stats.completions, N);
    link_close(&l);
}

static void
nonsense_from_the_core_breaks_the_client(void **state)
{
    (void) state;
    const inf_completion_t bad[] = {
        { .flags = 0x10 },
        { .flags = INF_COMPLETE_FINAL, .slot = 8 },
        { .flags = INF_COMPLETE_FINAL, .slot = UINT32_MAX },
        { .flags = INF_COMPLETE_FINAL, .cause = INF_CAUSE_LAST + 1 },
        { .flags = INF_COMPLETE_FINAL, .cause = UINT8_MAX },
        { .flags = INF_COMPLETE_RESPONSE, .offset = 4 * MIB, .length = 1 },
        { .flags = INF_COMPLETE_RESPONSE, .offset = 64,
          .length = UINT64_MAX },
        { .flags = INF_COMPLETE_RESPONSE, .offset = UINT64_MAX,
          .length = 64 }
    };

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        link_t_ l;
        waiter_t w = { .calls = 0 };
        link_open(&l, 8, 8, MIB);
        submit(&l, &w, NULL);
        inf_submission_t s = pop_entry(&l);
        answer(&l, s, INF_COMPLETE_FINAL, NULL);
        /* Written over the entry, as a damaged core would. */
        inf_completion_t e = bad[i];
        e.slot = e.slot == 0 ? s.slot : e.slot;
        e.generation = s.generation;
        memcpy(l.rings + link_rings(&l)->complete_offset, &e, sizeof(e));
        assert_int_equal(inf_client_drain(l.client, 10, on_completion),
            INF_CLIENT_BROKEN);
        assert_int_equal(w.calls, 0);
        assert_int_equal(inf_client_drain(l.client, 10, on_completion),
            INF_CLIENT_BROKEN);
        assert_false(inf_client_arm(l.client));
        link_close(&l);
    }
}

/* As a worker does it; NULL: no room. */
static inf_region_t *
grow(link_t_ *l, inf_region_t *from, uint64_t size, uint64_t used)
{
    if (inf_client_grow(l->client, from, size)) {
        return from;
    }

    inf_region_t *to = inf_client_replace(l->client, from, size);
    if (to != NULL) {
        memcpy(inf_client_data(l->client, to),
            inf_client_data(l->client, from), used);
        inf_client_free_region(l->client, from);
    }
    return to;
}

static void
body_of_unknown_length_grows_and_keeps_its_bytes(void **state)
{
    (void) state;
    link_t_ l;
    link_open(&l, 8, 8, 8 * MIB);
    inf_region_t *g = inf_client_alloc(l.client, 64);
    inf_region_t *wall;
    unsigned char *p;
    uint64_t used = 0;

    for (int i = 0; i < 15; i++) {
        p = inf_client_data(l.client, g);
        for ( ; used < g->size; used++) {
            p[used] = (unsigned char) (used * 7);
        }
        assert_true(inf_client_charge(l.client, g, used));
        if (i % 3 == 0) {
            /* In the way, so that it must move. */
            wall = inf_client_alloc(l.client, 64);
            assert_non_null(wall);
        }
        uint64_t offset = g->offset;
        g = grow(&l, g, used * 2, used);
        assert_non_null(g);
        assert_true(i % 3 == 0 || g->offset == offset);
        assert_true(g->size >= used * 2);
        assert_true(g->charged >= used && g->charged < used + 64);
    }
    p = inf_client_data(l.client, g);
    for (uint64_t i = 0; i < used; i++) {
        assert_int_equal(p[i], (unsigned char) (i * 7));
    }
    assert_null(grow(&l, g, 1024 * MIB, used));
    assert_false(inf_client_charge(l.client, g, g->size + 1));
    inf_client_free_region(l.client, g);
    link_close(&l);
}

static void
core_that_hangs_up_or_rejects_is_reported(void **state)
{
    (void) state;
    const inf_client_conf_t conf = { .arena_bound = MIB };
    inf_client_t *c;
    int pair[2];
    bool again;
    int before = link_open_fds();

    link_assert_ok(inf_client_new(&conf, &c));
    link_assert_ok(inf_socket_pair(pair));
    link_assert_ok(inf_client_hello(c, pair[0], &again));
    inf_err_t *err = inf_client_hello(c, pair[0], &again);
    assert_non_null(err);
    inf_err_free(err);
    inf_fds_close(pair, 2);      /* the message and its descriptors with it */
    err = inf_client_welcome(c, &again);
    assert_non_null(err);
    assert_int_equal(inf_err_code(err), INF_ERR_UNAVAILABLE);
    inf_err_free(err);
    inf_client_free(c);

    link_assert_ok(inf_client_new(&conf, &c));
    link_assert_ok(inf_socket_pair(pair));
    close(pair[1]);
    err = inf_client_hello(c, pair[0], &again);
    assert_non_null(err);
    assert_int_equal(inf_err_code(err), INF_ERR_UNAVAILABLE);
    inf_err_free(err);
    close(pair[0]);
    inf_client_free(c);

    const inf_client_conf_t bad[] = {
        { .arena_bound = MIB, .ring_entries = 3 },
        { .arena_bound = MIB, .slots = INF_MAX_SLOTS + 1 },
        { .arena_bound = MIB, .arena_size = 100 }
    };
    for (size_t i = 0; i < 3; i++) {
        err = inf_client_new(&bad[i], &c);
        assert_non_null(err);
        assert_null(c);
        inf_err_free(err);
    }
    inf_client_free(NULL);
    assert_int_equal(link_open_fds(), before);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(request_goes_there_and_its_answer_comes_back),
        cmocka_unit_test(sides_ring_only_a_sleeping_peer),
        cmocka_unit_test(slots_run_out_and_come_back_with_a_new_generation),
        cmocka_unit_test(calls_have_slots_and_room_that_inferences_leave),
        cmocka_unit_test(late_completion_is_dropped_but_its_response_released),
        cmocka_unit_test(abandoned_request_is_cancelled_and_cleaned_up_later),
        cmocka_unit_test(full_ring_rejects_requests_and_keeps_releases),
        cmocka_unit_test(releases_leave_room_for_requests),
        cmocka_unit_test(
            submit_into_a_full_ring_is_rejected_and_may_be_tried_again),
        cmocka_unit_test(more_completions_than_the_ring_holds_arrive_in_order),
        cmocka_unit_test(nonsense_from_the_core_breaks_the_client),
        cmocka_unit_test(body_of_unknown_length_grows_and_keeps_its_bytes),
        cmocka_unit_test(core_that_hangs_up_or_rejects_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
