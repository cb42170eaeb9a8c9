#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "core/service/response_flow.h"

#define MAX  INF_RESPONSE_FLOW_MAX
#define HALF (INF_RESPONSE_FLOW_MAX / 2)
#define AGAIN INF_RESPONSE_FLOW_AGAIN_NS

static void
no_poll(void *userp)
{
    (void) userp;
}

static const inf_response_patience_t none = { .poll = no_poll };
static const inf_response_patience_t little = {
    .patience_ns = 1000, .poll = no_poll
};
static const inf_response_patience_t much = {
    .patience_ns = UINT64_C(60) * 1000000000, .poll = no_poll
};

/* A request of flow; order 0: its model is decoupled. */
static inf_response_turn_t *
turn_of(inf_response_flow_t *flow, uint64_t order)
{
    inf_response_turn_t *turn = inf_response_turn_new(
        inf_response_flow_ref(flow), order);

    assert_non_null(turn);
    return turn;
}

/* The only response of a request, which ends. */
static void
answer(inf_response_turn_t *turn, uint64_t bytes)
{
    inf_response_turn_send(turn, 0, bytes, true);
    inf_response_turn_end(turn);
}

/* Whether a response of one byte, which is not sent, would be admitted. */
static bool
admits(inf_response_turn_t *turn, const inf_response_patience_t *patience)
{
    bool admitted = inf_response_turn_admit(turn, 1, patience);

    if (admitted) {
        inf_response_turn_send(turn, 1, 0, false);
    }
    return admitted;
}

/* Whether a response has to wait now. */
static bool
must_wait(inf_response_flow_t *flow)
{
    inf_response_turn_t *turn = turn_of(flow, 0);
    bool admitted = admits(turn, &none);

    inf_response_turn_end(turn);
    return !admitted;
}

static void
release_half(void *userp)
{
    inf_response_turn_release(userp, HALF);
}

static void *
releases(void *userp)
{
    release_half(userp);
    return NULL;
}

/* ---- responses in no order ----------------------------------------------- */

static void
a_backend_waits_until_its_worker_has_released(void **state)
{
    (void) state;
    inf_response_flow_t *flow = inf_response_flow_new(AGAIN);
    inf_response_turn_t *turn = turn_of(flow, 0);
    pthread_t thread;

    inf_response_flow_unref(flow);
    assert_true(admits(turn, &none));
    inf_response_turn_send(turn, 0, HALF, false);
    assert_true(admits(turn, &none));
    inf_response_turn_send(turn, 0, HALF, false);

    assert_int_equal(pthread_create(&thread, NULL, releases, turn), 0);
    assert_true(admits(turn, &much));
    pthread_join(thread, NULL);

    inf_response_turn_send(turn, 0, 0, true);
    inf_response_turn_end(turn);
    inf_response_turn_release(turn, HALF);  /* the last reference            */
}

static void *
waits(void *userp)
{
    return admits(userp, &much) ? userp : NULL;
}

/* The worker does not say that it has released something. */
static void
a_backend_that_waits_asks_for_releases(void **state)
{
    (void) state;
    inf_response_flow_t *flow = inf_response_flow_new(AGAIN);
    inf_response_turn_t *turn = turn_of(flow, 0);
    inf_response_patience_t asks = much;

    asks.poll = release_half;
    asks.userp = turn;
    inf_response_flow_unref(flow);
    inf_response_turn_send(turn, 0, HALF, false);
    inf_response_turn_send(turn, 0, HALF, false);
    assert_true(admits(turn, &asks));
    assert_true(admits(turn, &none));

    inf_response_turn_end(turn);
    inf_response_turn_release(turn, HALF);
}

static void
a_worker_that_releases_nothing_stalls_the_call(void **state)
{
    (void) state;
    inf_response_flow_t *flow = inf_response_flow_new(AGAIN);
    inf_response_turn_t *turn = turn_of(flow, 0);
    inf_response_turn_t *other = turn_of(flow, 1);
    pthread_t thread;
    void *admitted;

    /* the flow stalls for all that wait, and for those that come later */
    inf_response_turn_send(turn, 0, HALF, false);
    inf_response_turn_send(turn, 0, HALF, false);
    assert_true(inf_response_turn_may_send(other));
    assert_int_equal(pthread_create(&thread, NULL, waits, other), 0);
    assert_false(admits(turn, &little));
    pthread_join(thread, &admitted);
    assert_null(admitted);
    assert_false(admits(turn, &much));
    assert_false(admits(other, &much));
    assert_false(inf_response_turn_may_send(other));

    /* it goes on when the client has taken some of it */
    inf_response_turn_release(turn, HALF);
    assert_true(inf_response_turn_may_send(other));
    assert_true(admits(turn, &much));
    inf_response_turn_release(turn, HALF);
    inf_response_turn_end(other);
    inf_response_turn_end(turn);
    inf_response_flow_unref(flow);
}

/* Two threads that send at the same time do not share the last room. */
static void
a_response_counts_from_its_admission_on(void **state)
{
    (void) state;
    inf_response_flow_t *flow = inf_response_flow_new(AGAIN);
    inf_response_turn_t *turn = turn_of(flow, 0);

    inf_response_turn_send(turn, 0, 1, false);
    assert_true(inf_response_turn_admit(turn, MAX - 1, &none));
    assert_true(must_wait(flow));

    /* it took less than it was admitted with */
    inf_response_turn_send(turn, MAX - 1, HALF, false);
    inf_response_turn_release(turn, 1);
    assert_false(must_wait(flow));
    assert_false(inf_response_turn_admit(turn, HALF + 1, &none));
    inf_response_turn_release(turn, HALF);

    /* a response that is larger than the limit has it for itself */
    assert_true(inf_response_turn_admit(turn, 2 * MAX, &none));
    inf_response_turn_send(turn, 2 * MAX, 2 * MAX, true);
    assert_true(must_wait(flow));
    inf_response_turn_end(turn);
    inf_response_turn_release(turn, 2 * MAX);
    assert_false(must_wait(flow));
    inf_response_flow_unref(flow);
}

typedef struct {
    inf_response_turn_t *turn;
    bool                 passed;
} passing_t;

/* While the large response waits: a small one may not pass it. */
static void
offers_a_small_one(void *userp)
{
    passing_t *p = userp;

    p->passed = admits(p->turn, &none);
    inf_response_turn_release(p->turn, HALF);
}

static void
a_small_response_does_not_pass_a_large_one(void **state)
{
    (void) state;
    inf_response_flow_t *flow = inf_response_flow_new(AGAIN);
    passing_t p = { .turn = turn_of(flow, 0), .passed = true };
    inf_response_patience_t passing = much;

    passing.poll = offers_a_small_one;
    passing.userp = &p;
    inf_response_turn_send(p.turn, 0, HALF, false);
    assert_true(inf_response_turn_admit(p.turn, HALF + 1, &passing));
    assert_false(p.passed);

    inf_response_turn_end(p.turn);
    inf_response_flow_unref(flow);
}

/* ---- responses in the order of their requests ---------------------------- */

static void
nobody_waits_for_an_earlier_request(void **state)
{
    (void) state;
    inf_response_flow_t *flow = inf_response_flow_new(AGAIN);
    inf_response_turn_t *turns[4];

    for (uint64_t i = 0; i < 4; i++) {
        turns[i] = turn_of(flow, i + 1);
    }

    /* the first one is slow: its own response waits for nobody, either */
    answer(turns[1], MAX);
    answer(turns[2], MAX);
    assert_false(must_wait(flow));
    assert_true(admits(turns[0], &none));

    /* then the client has to take it, and the two behind it */
    inf_response_turn_send(turns[0], 0, HALF, true);
    assert_true(must_wait(flow));
    inf_response_turn_end(turns[0]);
    inf_response_turn_release(turns[0], HALF);
    assert_true(must_wait(flow));
    inf_response_turn_release(turns[1], MAX);
    assert_true(must_wait(flow));
    inf_response_turn_release(turns[2], MAX);
    assert_false(must_wait(flow));

    answer(turns[3], 0);
    inf_response_flow_unref(flow);
}

static void
requests_may_come_in_any_order(void **state)
{
    (void) state;
    inf_response_flow_t *flow = inf_response_flow_new(AGAIN);
    inf_response_turn_t *second = turn_of(flow, 7);
    inf_response_turn_t *third = turn_of(flow, 9);

    answer(third, MAX);
    inf_response_turn_send(second, 0, HALF, true);
    assert_true(must_wait(flow));

    /* one that belongs before them: what stalled the call was not the client */
    inf_response_turn_t *first = turn_of(flow, 5);
    assert_false(must_wait(flow));
    answer(first, 0);
    assert_true(must_wait(flow));

    inf_response_turn_end(second);
    inf_response_turn_release(second, HALF);
    inf_response_turn_release(third, MAX);
    inf_response_flow_unref(flow);
}

/* As a worker may that was taken over: each comes before all others. */
static void
many_requests_against_their_order_take_little_time(void **state)
{
    enum { COUNT = 200000 };
    (void) state;
    inf_response_flow_t *flow = inf_response_flow_new(AGAIN);
    inf_response_turn_t **turns = calloc(COUNT, sizeof(*turns));

    assert_non_null(turns);
    for (uint32_t i = 0; i < COUNT; i++) {
        turns[i] = turn_of(flow, COUNT - i);
        inf_response_turn_send(turns[i], 0, 1, true);
        assert_true(clock() < 20 * CLOCKS_PER_SEC);
    }

    for (uint32_t i = 0; i < COUNT; i++) {
        inf_response_turn_end(turns[i]);
        inf_response_turn_release(turns[i], 1);
    }
    assert_false(must_wait(flow));
    free(turns);
    inf_response_flow_unref(flow);
}

static void *
comes_first(void *userp)
{
    return turn_of(userp, 1);
}

static void
an_earlier_request_ends_the_wait_of_later_ones(void **state)
{
    (void) state;
    inf_response_flow_t *flow = inf_response_flow_new(AGAIN);
    inf_response_turn_t *second = turn_of(flow, 2);
    inf_response_turn_t *third = turn_of(flow, 3);
    pthread_t thread;
    void *first;

    answer(second, MAX);
    assert_int_equal(pthread_create(&thread, NULL, comes_first, flow), 0);
    assert_true(admits(third, &much));
    pthread_join(thread, &first);

    answer(first, 0);
    answer(third, 0);
    inf_response_turn_release(second, MAX);
    inf_response_flow_unref(flow);
}

static void
a_request_that_comes_again_keeps_its_place(void **state)
{
    (void) state;
    inf_response_flow_t *flow = inf_response_flow_new(AGAIN);
    inf_response_turn_t *first = turn_of(flow, 1);
    inf_response_turn_t *second = turn_of(flow, 2);
    inf_response_turn_t *third = turn_of(flow, 3);

    /* told to try again, which is no answer */
    inf_response_turn_send(second, 0, HALF, false);
    inf_response_turn_end(second);
    inf_response_turn_release(second, HALF);
    answer(third, MAX);
    answer(first, 0);
    assert_false(must_wait(flow));

    second = turn_of(flow, 2);
    assert_false(must_wait(flow));
    answer(second, 0);
    assert_true(must_wait(flow));
    inf_response_turn_release(third, MAX);

    /* one that never comes is forgotten with the last that was there */
    first = turn_of(flow, 4);
    second = turn_of(flow, 5);
    inf_response_turn_end(first);
    answer(second, MAX);
    assert_false(must_wait(flow));
    inf_response_turn_release(second, MAX);
    first = turn_of(flow, 6);
    answer(first, MAX);
    assert_true(must_wait(flow));
    inf_response_turn_release(first, MAX);
    inf_response_flow_unref(flow);
}

/* Its client has left; another call has the number, and does not read. */
static void
a_request_that_does_not_come_again_is_forgotten(void **state)
{
    (void) state;
    inf_response_flow_t *flow = inf_response_flow_new(0);
    inf_response_turn_t *left = turn_of(flow, 1);

    inf_response_turn_end(left);
    inf_response_turn_t *first = turn_of(flow, 2);
    inf_response_turn_t *second = turn_of(flow, 3);
    answer(first, HALF);
    assert_false(must_wait(flow));
    answer(second, HALF);
    assert_true(must_wait(flow));

    /* nor does it hide a later one that is to come again */
    inf_response_turn_t *third = turn_of(flow, 4);
    inf_response_turn_end(third);
    assert_true(must_wait(flow));

    inf_response_turn_release(first, HALF);
    inf_response_turn_release(second, HALF);
    inf_response_flow_unref(flow);
}

static void
a_cancelled_request_keeps_no_place(void **state)
{
    (void) state;
    inf_response_flow_t *flow = inf_response_flow_new(AGAIN);
    inf_response_turn_t *first = turn_of(flow, 1);
    inf_response_turn_t *second = turn_of(flow, 2);

    answer(second, MAX);
    assert_false(must_wait(flow));
    inf_response_turn_send(first, 0, 0, true);
    assert_true(must_wait(flow));

    /* what its backend sends nevertheless */
    inf_response_turn_send(first, 0, HALF, true);
    inf_response_turn_release(first, HALF);
    inf_response_turn_end(first);
    inf_response_turn_release(second, MAX);
    inf_response_flow_unref(flow);
}

static void
both_kinds_share_what_a_call_may_hold(void **state)
{
    (void) state;
    inf_response_flow_t *flow = inf_response_flow_new(AGAIN);
    inf_response_turn_t *slow = turn_of(flow, 1);
    inf_response_turn_t *loose = turn_of(flow, 2);
    inf_response_turn_t *third = turn_of(flow, 3);

    /* a decoupled model's request is passed by those behind it */
    inf_response_turn_unorder(loose);
    answer(third, MAX);
    assert_false(must_wait(flow));
    inf_response_turn_send(loose, 0, 1, false);
    assert_true(must_wait(flow));
    inf_response_turn_release(loose, 1);
    assert_false(must_wait(flow));

    answer(slow, 0);
    assert_true(must_wait(flow));
    inf_response_turn_release(third, MAX);
    inf_response_turn_send(loose, 0, MAX, true);
    assert_true(must_wait(flow));
    inf_response_turn_end(loose);
    inf_response_turn_release(loose, MAX);
    assert_false(must_wait(flow));
    inf_response_flow_unref(flow);
}

/* ---- against a list of everything ---------------------------------------- */

enum { CALLS = 3, OPEN = 6, STEPS = 60000 };

typedef struct {
    inf_response_turn_t *turn;      /* NULL: not here                        */
    uint64_t             order;
    bool                 loose;
    bool                 answered;
    bool                 held;      /* HALF bytes are not released           */
} request_t;

typedef struct {
    inf_response_flow_t *flow;
    uint64_t             orders;
    request_t            all[OPEN];
} call_t;

static bool
expected_to_wait(const call_t *call)
{
    const request_t *first = NULL;
    uint64_t held = 0;
    bool due = false;

    for (int i = 0; i < OPEN; i++) {
        const request_t *r = &call->all[i];
        if (r->turn == NULL) {
            continue;
        }
        held += r->held ? HALF : 0;
        due |= r->loose && r->held;
        if (!r->loose && (!r->answered || r->held)
            && (first == NULL || r->order < first->order))
        {
            first = r;
        }
    }

    due |= first != NULL && first->held;
    return due && held >= MAX;
}

static void
step(call_t *call)
{
    request_t *r = &call->all[rand() % OPEN];

    if (r->turn == NULL) {
        /* two neighbours may come in the other order */
        r->order = (call->orders += 2) - (rand() % 2) * 3 + 4;
        r->turn = turn_of(call->flow, r->order);
        r->loose = rand() % 8 == 0;
        r->answered = r->held = false;
        if (r->loose) {
            inf_response_turn_unorder(r->turn);
        }
    } else if (!r->answered) {
        r->held = rand() % 2;
        r->answered = true;
        answer(r->turn, r->held ? HALF : 0);
        r->turn = r->held ? r->turn : NULL;
    } else {
        inf_response_turn_release(r->turn, HALF);
        r->turn = NULL;
    }
}

static void
many_requests_of_several_calls(void **state)
{
    (void) state;
    call_t *calls = calloc(CALLS, sizeof(*calls));
    int waits_seen = 0;

    srand(16);
    for (int c = 0; c < CALLS; c++) {
        calls[c].flow = inf_response_flow_new(AGAIN);
    }
    for (int i = 0; i < STEPS; i++) {
        call_t *call = &calls[rand() % CALLS];
        step(call);
        if (i % 8 == 0) {
            /* a flow that has stalled says so at once */
            bool waited = must_wait(call->flow);
            assert_int_equal(waited, expected_to_wait(call));
            waits_seen += waited;
        }
    }
    assert_in_range(waits_seen, STEPS / 8 / 10, STEPS / 8 * 9 / 10);

    for (int c = 0; c < CALLS; c++) {
        for (int i = 0; i < OPEN; i++) {
            request_t *r = &calls[c].all[i];
            if (r->turn != NULL && !r->answered) {
                answer(r->turn, 0);
            } else if (r->turn != NULL) {
                inf_response_turn_release(r->turn, HALF);
            }
        }
        inf_response_flow_unref(calls[c].flow);
    }
    free(calls);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_backend_waits_until_its_worker_has_released),
        cmocka_unit_test(a_backend_that_waits_asks_for_releases),
        cmocka_unit_test(a_worker_that_releases_nothing_stalls_the_call),
        cmocka_unit_test(a_response_counts_from_its_admission_on),
        cmocka_unit_test(a_small_response_does_not_pass_a_large_one),
        cmocka_unit_test(nobody_waits_for_an_earlier_request),
        cmocka_unit_test(requests_may_come_in_any_order),
        cmocka_unit_test(many_requests_against_their_order_take_little_time),
        cmocka_unit_test(an_earlier_request_ends_the_wait_of_later_ones),
        cmocka_unit_test(a_request_that_comes_again_keeps_its_place),
        cmocka_unit_test(a_request_that_does_not_come_again_is_forgotten),
        cmocka_unit_test(a_cancelled_request_keeps_no_place),
        cmocka_unit_test(both_kinds_share_what_a_call_may_hold),
        cmocka_unit_test(many_requests_of_several_calls)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
