#include "wire/link.h"

#include <pthread.h>

#include "core/service/session.h"

static const inf_response_patience_t impatient;

/* One ends when its request is released and its factory is free. */
static void
finish(inf_in_flight_t *in_flight)
{
    inf_in_flight_part_done(in_flight);
    inf_in_flight_part_done(in_flight);
}

static inf_session_t *
session_of(link_t_ *l)
{
    inf_session_t *s;

    link_open(l, 64, 8, MIB);
    assert_null(inf_session_new(inf_channel_ref(l->channel), &impatient, &s));
    assert_int_equal(s->slots, 8);
    return s;
}

static void
requests_on_one_call_share_a_flow(void **state)
{
    (void) state;
    link_t_ l;
    inf_session_t *s = session_of(&l);

    inf_response_flow_t *first = inf_session_flow(s, 8);
    inf_response_flow_t *second = inf_session_flow(s, 8);
    inf_response_flow_t *other = inf_session_flow(s, 7);
    assert_ptr_equal(first, second);
    assert_ptr_not_equal(first, other);

    /* no call, and a number that there is not: flows of their own */
    inf_response_flow_t *lone = inf_session_flow(s, 0);
    inf_response_flow_t *wrong = inf_session_flow(s, 9);
    assert_ptr_not_equal(lone, wrong);

    /* what is held outlives the session */
    inf_response_turn_t *turn = inf_response_turn_new(first, 0);
    inf_response_turn_t *beside = inf_response_turn_new(second, 0);
    inf_response_turn_t *apart = inf_response_turn_new(other, 0);
    inf_response_turn_send(turn, 0, INF_RESPONSE_FLOW_MAX, true);
    assert_false(inf_response_turn_admit(beside, 1, &impatient));
    assert_true(inf_response_turn_admit(apart, 1, &impatient));
    inf_response_turn_end(apart);
    inf_response_turn_end(beside);
    inf_response_turn_end(turn);
    inf_response_flow_unref(lone);
    inf_response_flow_unref(wrong);
    inf_session_unref(s);
    inf_response_turn_release(turn, INF_RESPONSE_FLOW_MAX);
    link_close(&l);
}

static void
one_is_used_again_after_both_parts_ended(void **state)
{
    (void) state;
    link_t_ l;
    inf_session_t *s = session_of(&l);

    inf_in_flight_t *a = inf_session_take(s, 0, 1);
    inf_in_flight_t *b = inf_session_take(s, 1, 1);
    assert_ptr_not_equal(a, b);
    assert_int_equal(s->made, 2);
    assert_int_equal(s->refs, 3);

    inf_in_flight_part_done(a);
    assert_int_equal(s->refs, 3);           /* one part is still out         */
    inf_in_flight_t *c = inf_session_take(s, 2, 1);
    assert_ptr_not_equal(c, a);
    inf_budget_t copies = { .bound = 9, .used = 9 };
    assert_non_null(inf_request_add_input(&a->request, "x", 1, INF_TYPE_BOOL,
        NULL, 0));
    a->request.copies = &copies;
    a->request.copied_bytes = 9;
    inf_in_flight_part_done(a);
    assert_int_equal(s->refs, 3);
    assert_int_equal(inf_budget_used(&copies), 0);  /* not when it is used
                                                       again                 */
    inf_in_flight_t *d = inf_session_take(s, 3, 9);
    assert_ptr_equal(d, a);
    assert_int_equal(d->slot, 3);
    assert_int_equal(d->generation, 9);
    assert_null(d->record);
    assert_int_equal(d->request.input_count, 0);
    assert_int_equal(d->request.state, INF_REQUEST_IDLE);
    assert_int_equal(s->made, 3);

    finish(b);
    finish(c);
    finish(d);
    assert_int_equal(s->refs, 1);
    inf_session_unref(s);
    link_close(&l);
}

static void
find_knows_slot_generation_and_life(void **state)
{
    (void) state;
    link_t_ l;
    inf_session_t *s = session_of(&l);

    assert_null(inf_session_find(s, 0, 1));
    inf_in_flight_t *a = inf_session_take(s, 0, 1);
    assert_ptr_equal(inf_session_find(s, 0, 1), a);
    assert_null(inf_session_find(s, 0, 2));
    assert_null(inf_session_find(s, 1, 1));
    assert_null(inf_session_find(s, 8, 1));         /* outside the table     */
    assert_null(inf_session_find(s, UINT32_MAX, 1));
    inf_in_flight_part_done(a);
    assert_ptr_equal(inf_session_find(s, 0, 1), a); /* may be under way      */
    inf_in_flight_part_done(a);
    assert_null(inf_session_find(s, 0, 1));

    /* used again by another slot: the old slot id finds it no more */
    assert_ptr_equal(inf_session_take(s, 5, 2), a);
    assert_null(inf_session_find(s, 0, 1));
    assert_null(inf_session_find(s, 0, 2));
    assert_ptr_equal(inf_session_find(s, 5, 2), a);
    finish(a);
    inf_session_unref(s);
    link_close(&l);
}

static void
one_keeps_its_session(void **state)
{
    (void) state;
    link_t_ l;
    inf_session_t *s = session_of(&l);

    inf_in_flight_t *a = inf_session_take(s, 0, 1);
    inf_session_unref(s);                   /* the intake has let go         */
    assert_int_equal(s->refs, 1);
    finish(a);                              /* the last one frees everything */
    link_close(&l);
}

/* ---- requests end on other threads --------------------------------------- */

enum { FLIGHTS = 8, TURNS = 20000 };

static _Atomic(inf_in_flight_t *) board[FLIGHTS];
static _Atomic bool            over;

static void *
finisher(void *arg)
{
    (void) arg;
    while (!atomic_load(&over)) {
        for (int i = 0; i < FLIGHTS; i++) {
            inf_in_flight_t *f = atomic_exchange(&board[i], NULL);
            if (f != NULL) {
                finish(f);
            }
        }
    }
    return NULL;
}

static void
requests_come_back_from_any_thread(void **state)
{
    (void) state;
    link_t_ l;
    inf_session_t *s = session_of(&l);
    pthread_t threads[2];
    uint32_t generation = 0;

    atomic_store(&over, false);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, finisher, NULL),
            0);
    }
    for (int turn = 0; turn < TURNS; turn++) {
        uint32_t slot = (uint32_t) turn % FLIGHTS;
        if (atomic_load(&board[slot]) != NULL) {
            continue;
        }
        inf_in_flight_t *f = inf_session_take(s, slot, ++generation);
        assert_int_equal(f->parts, 2);
        assert_ptr_equal(inf_session_find(s, slot, generation), f);
        atomic_store(&board[slot], f);
    }
    atomic_store(&over, true);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < FLIGHTS; i++) {
        if (board[i] != NULL) {
            finish(board[i]);
        }
    }
    assert_int_equal(s->refs, 1);
    assert_true(s->made <= FLIGHTS + 2);   /* two more in a finisher's
                                                   hands                     */
    inf_session_unref(s);
    link_close(&l);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_on_one_call_share_a_flow),
        cmocka_unit_test(one_is_used_again_after_both_parts_ended),
        cmocka_unit_test(find_knows_slot_generation_and_life),
        cmocka_unit_test(one_keeps_its_session),
        cmocka_unit_test(requests_come_back_from_any_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
