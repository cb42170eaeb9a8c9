/*
 * sequence_ends.c - how sequences end: cancels, timeouts, instances that go,
 *                   a model that stops; and who is told of work.  Numbers in
 *                   brackets are scenarios of the scheduling reference,
 *                   section 4.
 */

#include "sched/sequence_world.h"

/* ---- cancel -------------------------------------------------------------- */

static void
a_cancel_takes_what_is_behind_it(void **state)                  /* (16)      */
{
    (void) state;
    sequences_t w;

    sequences_open(&w, direct(1), 1);
    push(&w, 0, 1, "S", 0);
    assert_string_equal(next_of(&w, 1, 0), "0/1");
    push(&w, 1, 1, "", 1);
    push(&w, 2, 1, "", 1);
    push(&w, 3, 2, "S", 1);
    assert_null(cancel(&w, 0, 2));          /* it runs                       */
    assert_string_equal(cancel(&w, 1, 2), "2");
    assert_null(cancel(&w, 1, 2));
    assert_null(cancel(&w, 2, 2));
    push_unknown(&w, 2, 1, "", 2);
    push_unknown(&w, 2, 1, "E", 2);
    assert_string_equal(counts(&w), "1 1 0 0");     /* the backlog's turn    */
    assert_string_equal(next_of(&w, 1, 2), "nothing");
    release(&w, 0, 3);
    assert_string_equal(w.told, "1");
    assert_string_equal(run(&w, 1, 3), "3/1");
    sequences_close(&w);
}

static void
what_stands_before_a_cancelled_one_runs(void **state)
{
    (void) state;
    sequences_t w;

    for (int old = 0; old <= 1; old++) {
        sequences_open(&w, either(old, 1), 1);
        push_sequence(&w, 0, 4, 1, 0);
        push(&w, 4, 2, "S", 0);
        assert_string_equal(cancel(&w, 2, 1), "3");
        assert_string_equal(counts(&w), "1 1 0 1");
        push(&w, 5, 1, "S", 1);             /* another one                   */
        assert_string_equal(counts(&w), "2 1 0 2");
        assert_string_equal(run(&w, 1, 2), old ? "0" : "0/1");
        assert_string_equal(run(&w, 1, 2), old ? "1" : "1/1");
        assert_string_equal(counts(&w), "2 1 0 1");
        assert_string_equal(run(&w, 1, 2), old ? "4" : "4/1");
        assert_string_equal(cancel(&w, 5, 3), "");
        assert_string_equal(counts(&w), "1 1 0 0");
        sequences_close(&w);
    }
}

static void
a_cancelled_head_frees_the_slot(void **state)
{
    (void) state;
    sequences_t w;

    for (int old = 0; old <= 1; old++) {    /* oldest: it is in the batcher  */
        sequences_open(&w, either(old, 2), 1);
        push_sequence(&w, 0, 3, 1, 0);
        push(&w, 3, 2, "S", 0);
        push(&w, 4, 3, "S", 0);
        push(&w, 5, 3, "E", 0);
        assert_string_equal(cancel(&w, 0, 1), "1 2");
        assert_string_equal(w.told, "1");
        assert_string_equal(counts(&w), "1 2 0 0");
        assert_string_equal(run(&w, 1, 1), old ? "3 4" : "4 3/2");
        assert_int_equal(w.policy->queued, 1);
        assert_string_equal(cancel(&w, 5, 2), "");
        assert_string_equal(counts(&w), "1 1 1 0");
        assert_string_equal(run(&w, 1, 2), "nothing");
        sequences_close(&w);
    }
}

static void
a_cancel_in_the_backlog_is_done_at_once(void **state)   /* (16), 8 (12)      */
{
    (void) state;
    sequences_t w;

    sequences_open(&w, direct(1), 1);
    push(&w, 0, 1, "S", 0);
    assert_string_equal(run(&w, 1, 0), "0/1");
    push(&w, 1, 2, "S", 0);
    push(&w, 2, 2, "E", 0);
    push(&w, 3, 3, "S", 0);
    push(&w, 4, 3, "", 0);
    push(&w, 5, 3, "", 0);
    assert_string_equal(counts(&w), "2 1 0 2");
    assert_string_equal(cancel(&w, 1, 1), "2");
    assert_string_equal(w.told, "");
    assert_string_equal(counts(&w), "2 1 0 1");
    push_unknown(&w, 2, 2, "", 1);
    assert_string_equal(cancel(&w, 4, 1), "5");
    push_unknown(&w, 5, 3, "", 1);
    assert_string_equal(counts(&w), "1 1 0 1");
    assert_string_equal(cancel(&w, 3, 1), "");
    assert_string_equal(counts(&w), "1 1 0 0");
    assert_int_equal(w.policy->queued, 0);
    sequences_close(&w);
}

static void
what_is_left_of_a_cancelled_one_has_its_turn(void **state)
{
    (void) state;
    sequences_t w;

    sequences_open(&w, direct(1), 1);
    push_sequence(&w, 0, 1, 1, 0);
    push(&w, 1, 2, "S", 0);
    push(&w, 2, 2, "", 0);
    push_sequence(&w, 3, 1, 3, 0);
    assert_string_equal(cancel(&w, 2, 0), "");
    assert_string_equal(run(&w, 1, 0), "0/1");
    assert_string_equal(run(&w, 1, 0), "1/1");
    assert_string_equal(run(&w, 1, 0), "3/1");
    assert_string_equal(counts(&w), "0 0 1 0");
    sequences_close(&w);
}

static void
nothing_of_a_cancelled_sequence_stays(void **state)     /* section 8 (5)     */
{
    (void) state;
    sequences_t w;

    sequences_open(&w, direct(2), 1);
    push(&w, 0, 1, "S", 0);
    assert_string_equal(run(&w, 1, 0), "0/1");
    push(&w, 1, 1, "", 1);
    assert_string_equal(cancel(&w, 1, 1), "");
    assert_string_equal(counts(&w), "0 0 2 0");
    assert_int_equal(w.policy->deadline_ns, INF_NEVER);
    assert_string_equal(expire(&w, 5000), "");
    push(&w, 2, 1, "S", 5000);
    push(&w, 3, 2, "S", 5000);
    assert_string_equal(next_of(&w, 1, 5000), "2 3/2");
    assert_int_equal(w.requests[2].flags, INF_REQUEST_SEQUENCE_START);
    assert_int_equal(w.requests[3].flags, INF_REQUEST_SEQUENCE_START);
    release(&w, 2, 5000);
    release(&w, 3, 5000);
    sequences_close(&w);
}

/* ---- timeouts ------------------------------------------------------------ */

static void
a_silent_sequence_loses_its_slot(void **state)                  /* (10)      */
{
    (void) state;
    sequences_t w;

    sequences_open(&w, (inf_sequence_batcher_options_t) { .limit = 4,
        .idle_us = 5000000 }, 1);
    for (int s = 0; s < 4; s++) {
        push(&w, s, 1 + (uint64_t) s, "S", 0);
    }
    assert_string_equal(run(&w, 1, 0), "0 1 2 3/4");
    assert_int_equal(deadline_ms(&w), 5000);
    push(&w, 10, 5, "S", 1000);
    for (int s = 1; s < 4; s++) {
        push(&w, s, 1 + (uint64_t) s, "", 3000);
    }
    assert_string_equal(run(&w, 1, 3000), "1 2 3/4");
    assert_int_equal(deadline_ms(&w), 5000);
    assert_string_equal(expire(&w, 4999), "");
    assert_string_equal(counts(&w), "5 4 0 1");
    assert_string_equal(expire(&w, 5000), "");
    assert_string_equal(w.told, "1");
    assert_string_equal(counts(&w), "4 4 0 0");
    push_unknown(&w, 0, 1, "", 6000);
    assert_string_equal(run(&w, 1, 6000), "10/1");
    assert_int_equal(deadline_ms(&w), 8000);
    assert_string_equal(expire(&w, 8000), "");
    assert_string_equal(counts(&w), "1 1 3 0");
    assert_int_equal(deadline_ms(&w), 11000);
    sequences_close(&w);
}

static void
who_left_the_backlog_late_is_not_idle(void **state)             /* sec. 10   */
{
    (void) state;
    sequences_t w;

    sequences_open(&w, (inf_sequence_batcher_options_t) { .limit = 1,
        .idle_us = 1000000 }, 1);
    push(&w, 0, 1, "S", 0);
    push(&w, 1, 2, "S", 0);
    assert_string_equal(next_of(&w, 1, 0), "0/1");
    assert_string_equal(expire(&w, 9000), "");      /* it runs: not idle     */
    push(&w, 2, 1, "E", 9000);
    release(&w, 0, 9000);
    assert_string_equal(expire(&w, 12000), "");     /* it is queued          */
    assert_string_equal(run(&w, 1, 12000), "2/1");
    assert_string_equal(expire(&w, 12999), "");
    assert_string_equal(run(&w, 1, 13500), "1/1");
    assert_string_equal(expire(&w, 14499), "");
    push(&w, 3, 2, "", 14499);
    assert_string_equal(expire(&w, 20000), "");
    assert_string_equal(run(&w, 1, 20000), "3/1");
    assert_string_equal(expire(&w, 21000), "");
    assert_string_equal(counts(&w), "0 0 1 0");
    sequences_close(&w);
}

static void
idle_counts_from_the_last_release(void **state)
{
    (void) state;
    sequences_t w;

    sequences_open(&w, direct(1), 1);
    push(&w, 0, 1, "S", 0);
    push(&w, 1, 1, "", 0);
    assert_string_equal(next_of(&w, 1, 10), "0/1");
    assert_string_equal(next_of(&w, 1, 20), "1/1");
    assert_int_equal(w.policy->deadline_ns, INF_NEVER);
    release(&w, 1, 30);
    assert_int_equal(w.policy->deadline_ns, INF_NEVER);
    release(&w, 0, 500);
    assert_int_equal(deadline_ms(&w), 1500);
    push(&w, 2, 1, "", 600);
    assert_int_equal(w.policy->deadline_ns, INF_NEVER);
    assert_string_equal(run(&w, 1, 700), "2/1");
    assert_int_equal(deadline_ms(&w), 1700);
    sequences_close(&w);
}

static void
a_backlogged_sequence_times_out(void **state)                   /* (11)      */
{
    (void) state;
    sequences_t w;

    sequences_open(&w, (inf_sequence_batcher_options_t) { .limit = 1,
        .idle_us = 60000000 }, 1);
    for (int i = 0; i < 8; i++) {
        w.requests[i].timeout_us = 3000000;
    }
    push(&w, 0, 1, "S", 0);
    push(&w, 1, 1, "", 0);                  /* a slot: no timeout counts     */
    push(&w, 2, 2, "S", 1000);
    push(&w, 3, 2, "", 2000);
    push(&w, 4, 3, "S", 1500);
    assert_string_equal(next_of(&w, 1, 0), "0/1");
    assert_int_equal(deadline_ms(&w), 4000);
    assert_string_equal(expire(&w, 3999), "");
    assert_string_equal(expire(&w, 4000), "2 3");
    assert_string_equal(counts(&w), "2 1 0 1");
    assert_int_equal(deadline_ms(&w), 4500);
    push_unknown(&w, 2, 2, "", 4000);
    push_unknown(&w, 2, 2, "E", 4000);
    assert_string_equal(expire(&w, 4500), "4");
    release(&w, 0, 5000);
    assert_string_equal(run(&w, 1, 5000), "1/1");
    assert_string_equal(run(&w, 1, 5000), "nothing");
    sequences_close(&w);
}

static void
the_least_timeout_of_its_requests_counts(void **state)
{
    (void) state;
    sequences_t w;

    sequences_open(&w, (inf_sequence_batcher_options_t) { .limit = 1,
        .idle_us = 60000000 }, 1);
    push(&w, 0, 1, "S", 0);
    push(&w, 1, 2, "S", 0);                 /* 2 and 3: no timeout, yet      */
    push(&w, 2, 3, "S", 0);
    assert_int_equal(w.policy->deadline_ns, INF_NEVER);
    w.requests[3].timeout_us = 900000;
    push(&w, 3, 2, "", 100);
    assert_int_equal(deadline_ms(&w), 1000);
    w.requests[4].timeout_us = 500000;
    push(&w, 4, 2, "", 200);
    w.requests[5].timeout_us = 5000000;
    push(&w, 5, 2, "E", 300);
    assert_int_equal(deadline_ms(&w), 700);
    assert_string_equal(cancel(&w, 4, 400), "5");
    assert_int_equal(deadline_ms(&w), 1000);
    assert_string_equal(expire(&w, 1000), "1 3");
    assert_string_equal(counts(&w), "2 1 0 1");
    assert_string_equal(run(&w, 1, 1000), "0/1");
    sequences_close(&w);
}

static void
a_timeout_ends_with_the_backlog(void **state)
{
    (void) state;
    sequences_t w;

    sequences_open(&w, (inf_sequence_batcher_options_t) { .limit = 1,
        .idle_us = 60000000 }, 1);
    push_sequence(&w, 0, 1, 1, 0);
    w.requests[1].timeout_us = 1000000;
    push(&w, 1, 2, "S", 0);
    assert_int_equal(deadline_ms(&w), 1000);
    assert_string_equal(run(&w, 1, 0), "0/1");
    assert_int_equal(w.policy->deadline_ns, INF_NEVER);
    assert_string_equal(expire(&w, 5000), "");
    assert_string_equal(run(&w, 1, 5000), "1/1");
    sequences_close(&w);
}

static void
times_beyond_the_end_of_time_never_come(void **state)
{
    (void) state;
    sequences_t w;

    sequences_open(&w, (inf_sequence_batcher_options_t) { .limit = 1,
        .idle_us = UINT64_MAX }, 1);
    push(&w, 0, 1, "S", 0);
    w.requests[1].timeout_us = UINT64_MAX;
    push(&w, 1, 2, "S", 0);
    assert_string_equal(run(&w, 1, 0), "0/1");
    assert_int_equal(w.policy->deadline_ns, INF_NEVER);
    assert_string_equal(cancel(&w, 1, 0), "");
    sequences_close(&w);
}

/* ---- instances come and go ----------------------------------------------- */

static void
a_new_instance_takes_the_backlog(void **state)
{
    (void) state;
    sequences_t w;

    sequences_open(&w, direct(2), 0);
    push(&w, 0, 1, "S", 0);                 /* before there is any           */
    push(&w, 1, 2, "S", 0);
    push(&w, 2, 3, "SE", 0);
    assert_string_equal(counts(&w), "2 0 0 3");
    attach(&w, 1);
    assert_string_equal(w.told, "");
    assert_string_equal(counts(&w), "2 0 0 3");
    assert_false(occupied(&w, 1));
    assert_string_equal(next_of(&w, 1, 0), "nothing");
    open_instance(&w, 1);
    assert_string_equal(w.told, "1");
    assert_true(occupied(&w, 1));
    assert_string_equal(counts(&w), "2 2 0 1");
    open_instance(&w, 1);                   /* once more does nothing        */
    assert_string_equal(counts(&w), "2 2 0 1");
    assert_string_equal(run(&w, 1, 1), "0 1/2");
    attach(&w, 2);
    open_instance(&w, 2);
    assert_string_equal(w.told, "2");
    assert_string_equal(counts(&w), "2 3 1 0");
    assert_string_equal(run(&w, 2, 2), "2/1");
    assert_string_equal(counts(&w), "2 2 2 0");
    sequences_close(&w);
}

static void
the_lowest_slot_then_the_lowest_number_goes_first(void **state)
{
    (void) state;
    sequences_t w;

    sequences_open(&w, direct(2), 0);
    attach(&w, 2);
    attach(&w, 5);
    attach(&w, 3);
    open_instance(&w, 5);
    open_instance(&w, 3);
    open_instance(&w, 2);
    static const char *const told[] = { "2", "3", "5", "2", "3", "5", "" };
    for (int i = 0; i < 7; i++) {
        push(&w, i, 1 + (uint64_t) i, "S", 0);
        assert_string_equal(w.told, told[i]);
    }
    assert_string_equal(run(&w, 3, 0), "1 4/2");
    assert_string_equal(cancel(&w, 6, 0), "");
    push(&w, 1, 2, "E", 0);                 /* slot 0 of 3 is free again     */
    push(&w, 4, 5, "E", 0);
    assert_string_equal(run(&w, 3, 0), "1 4/2");
    push(&w, 7, 8, "S", 0);
    assert_string_equal(w.told, "3");
    assert_string_equal(run(&w, 3, 0), "7/1");
    sequences_close(&w);
}

static void
a_retired_instance_ends_its_sequences(void **state)     /* section 9 (7)     */
{
    (void) state;
    sequences_t w;

    sequences_open(&w, direct(2), 2);
    push(&w, 0, 1, "S", 0);
    push(&w, 1, 2, "S", 0);
    push(&w, 2, 3, "S", 0);                 /* 1 and 3 on the first          */
    assert_string_equal(run(&w, 1, 0), "0 2/2");
    assert_string_equal(run(&w, 2, 0), "1/1");
    retire(&w, 1);
    assert_string_equal(counts(&w), "3 3 1 0");
    assert_true(occupied(&w, 1));
    push(&w, 3, 4, "S", 1);
    assert_string_equal(w.told, "2");
    push(&w, 4, 5, "S", 1);
    assert_string_equal(w.told, "");
    assert_string_equal(counts(&w), "5 4 0 1");
    push(&w, 5, 1, "", 2);
    assert_string_equal(w.told, "1");
    push(&w, 6, 3, "E", 2);
    assert_string_equal(run(&w, 1, 2), "5 6/2");
    assert_string_equal(counts(&w), "4 3 0 1");     /* the slot is no more   */
    assert_true(occupied(&w, 1));
    push(&w, 7, 1, "E", 3);
    assert_string_equal(next_of(&w, 1, 3), "7/1");
    release(&w, 7, 3);
    assert_false(occupied(&w, 1));
    detach(&w, 1);
    assert_string_equal(counts(&w), "3 2 0 1");
    push(&w, 8, 2, "E", 4);
    assert_string_equal(run(&w, 2, 4), "8 3/2");
    assert_string_equal(run(&w, 2, 4), "4/1");
    sequences_close(&w);
}

/* Its thread sleeps: it must hear that it may go. */
static void
a_retired_instance_is_told_when_it_is_empty(void **state)
{
    (void) state;
    sequences_t w;

    for (int how = 0; how < 3; how++) {
        sequences_open(&w, direct(2), 1);
        push(&w, 0, 1, "S", 0);
        if (how < 2) {
            assert_string_equal(next_of(&w, 1, 0), "0/1");
        }
        if (how == 0) {
            release(&w, 0, 0);
        }
        retire(&w, 1);
        assert_true(occupied(&w, 1));
        switch (how) {
        case 0:
            assert_string_equal(expire(&w, 1000), "");
            break;
        case 1:
            push(&w, 1, 1, "", 0);
            assert_string_equal(cancel(&w, 1, 1), "");
            release(&w, 0, 1);
            break;
        case 2:
            assert_string_equal(cancel(&w, 0, 1), "");
            break;
        }
        assert_string_equal(w.told, "1");
        assert_false(occupied(&w, 1));
        detach(&w, 1);
        assert_string_equal(w.told, "");
        assert_string_equal(counts(&w), "0 0 0 0");
        sequences_close(&w);
    }
}

static void
an_instance_goes_with_idle_sequences(void **state)
{
    (void) state;
    sequences_t w;

    sequences_open(&w, direct(2), 2);
    push(&w, 0, 1, "S", 0);
    push(&w, 1, 2, "S", 0);
    assert_string_equal(run(&w, 1, 0), "0/1");
    assert_string_equal(run(&w, 2, 0), "1/1");
    detach(&w, 1);
    assert_string_equal(counts(&w), "1 1 1 0");
    push_unknown(&w, 0, 1, "", 1);
    assert_int_equal(deadline_ms(&w), 1000);
    assert_string_equal(expire(&w, 1000), "");
    assert_int_equal(w.policy->deadline_ns, INF_NEVER);
    assert_string_equal(counts(&w), "0 0 2 0");
    sequences_close(&w);
}

static void
a_release_after_its_instance_has_gone_is_harmless(void **state)
{
    (void) state;
    sequences_t w;

    for (int old = 0; old <= 1; old++) {
        sequences_open(&w, either(old, 2), 2);
        push(&w, 0, 1, "SE", 0);
        push(&w, 1, 2, "SE", 0);
        push(&w, 2, 3, "S", 0);
        assert_string_equal(next_of(&w, 1, 0), old ? "0 2" : "0 2/2");
        detach(&w, 1);
        push_unknown(&w, 3, 3, "", 0);
        release(&w, 2, 1);
        release(&w, 0, 2);
        assert_string_equal(w.told, "");
        assert_string_equal(run(&w, 2, 3), old ? "1" : "1/1");
        assert_string_equal(counts(&w), "0 0 2 0");
        sequences_close(&w);
    }
}

/* ---- the end ------------------------------------------------------------- */

static void
a_model_that_stops_ends_its_sequences(void **state)     /* section 9 (2, 3)  */
{
    (void) state;
    sequences_t w;

    sequences_open(&w, direct(2), 1);
    push(&w, 0, 1, "S", 0);
    push(&w, 1, 2, "S", 0);
    push(&w, 2, 3, "S", 0);                 /* waits                         */
    assert_string_equal(run(&w, 1, 0), "0 1/2");
    w.policy->closing = true;
    push_fails(&w, 5, 4, "S", 1, INF_ERR_UNAVAILABLE, "Server is stopping,"
        " scheduler for model has stopped accepting new inference requests");
    push_fails(&w, 5, 1, "S", 1, INF_ERR_UNAVAILABLE, "stop");
    push_fails(&w, 5, 1, "SE", 1, INF_ERR_UNAVAILABLE, "stop");
    push_unknown(&w, 5, 4, "", 1);
    w.requests[5].whole = &w.requests[6];  /* an ensemble's, begun before   */
    push(&w, 5, 4, "SE", 1);
    assert_string_equal(cancel(&w, 5, 1), "");
    push(&w, 3, 1, "", 1);
    push(&w, 4, 3, "E", 1);
    assert_string_equal(run(&w, 1, 1), "3/1");
    push(&w, 3, 1, "E", 2);
    assert_string_equal(run(&w, 1, 2), "3/1");
    assert_string_equal(run(&w, 1, 2), "2/1");
    assert_string_equal(run(&w, 1, 2), "4/1");
    assert_int_equal(w.policy->live, 1);
    assert_string_equal(expire(&w, 1000), "");      /* the silent one        */
    assert_int_equal(w.policy->live, 0);
    assert_string_equal(counts(&w), "0 0 2 0");
    sequences_close(&w);
}

static void
who_waits_takes_the_slots_of_the_silent(void **state)
{
    (void) state;

    for (int old = 0; old <= 1; old++) {
        sequences_t w;

        sequences_open(&w, either(old, 3), 1);
        for (int i = 0; i < 3; i++) {
            push(&w, i, 1 + (uint64_t) i, "S", 0);
        }
        assert_string_equal(next_of(&w, 1, 0), old ? "0 1 2" : "0 1 2/3");
        release(&w, 1, 1);                  /* silent for longest            */
        release(&w, 0, 2);
        push_sequence(&w, 3, 2, 4, 3);
        push(&w, 5, 5, "S", 3);
        release(&w, 2, 4);
        assert_string_equal(counts(&w), "4 3 0 2");
        leave(&w);
        assert_string_equal(w.told, "1");
        assert_string_equal(counts(&w), "2 3 0 0");
        push_unknown(&w, 6, 2, "", 4);
        push_unknown(&w, 6, 1, "", 4);
        push(&w, 6, 3, "", 4);              /* nobody needed its slot        */
        assert_string_equal(run(&w, 1, 5), old ? "3 5 6" : "5 3 6/3");
        assert_int_equal(deadline_ms(&w), 1005);
        assert_string_equal(run(&w, 1, 6), old ? "4" : "4/2");
        assert_string_equal(counts(&w), "2 2 1 0");
        sequences_close(&w);
    }
}

static void
a_model_that_leaves_ends_who_falls_silent_while_others_wait(void **state)
{
    (void) state;
    sequences_t w;

    sequences_open(&w, (inf_sequence_batcher_options_t) { .limit = 1,
        .idle_us = UINT64_MAX }, 1);
    push(&w, 0, 1, "S", 0);
    push(&w, 1, 2, "S", 0);
    push(&w, 2, 2, "", 0);
    push(&w, 3, 3, "S", 0);
    leave(&w);
    assert_string_equal(w.told, "");        /* 1 isn't silent                */
    assert_string_equal(counts(&w), "3 1 0 2");
    assert_string_equal(next_of(&w, 1, 1), "0/1");
    push(&w, 4, 1, "", 1);                  /* what is running isn't either  */
    release(&w, 0, 2);
    assert_string_equal(counts(&w), "3 1 0 2");
    assert_string_equal(run(&w, 1, 3), "4/1");
    assert_string_equal(w.told, "1");
    assert_string_equal(counts(&w), "2 1 0 1");
    assert_string_equal(run(&w, 1, 4), "1/1");
    assert_string_equal(run(&w, 1, 4), "2/1");
    assert_string_equal(run(&w, 1, 4), "3/1");
    assert_string_equal(counts(&w), "1 1 0 0");     /* nobody waits          */
    push(&w, 5, 3, "", 5);
    assert_string_equal(run(&w, 1, 5), "5/1");
    push(&w, 6, 4, "S", 6);                 /* an ensemble's, still          */
    assert_string_equal(w.told, "1");
    assert_string_equal(counts(&w), "1 1 0 0");
    push_unknown(&w, 7, 3, "", 6);
    assert_string_equal(run(&w, 1, 6), "6/1");
    sequences_close(&w);
}

/* New workers came before anybody had to go. */
static void
a_model_that_stays_after_all_keeps_who_falls_silent(void **state)
{
    (void) state;
    sequences_t w;

    sequences_open(&w, (inf_sequence_batcher_options_t) { .limit = 1,
        .idle_us = UINT64_MAX }, 1);
    push(&w, 0, 1, "S", 0);
    push(&w, 1, 2, "S", 0);
    leave(&w);
    w.policy->ops->leave(w.policy, false);
    assert_string_equal(run(&w, 1, 1), "0/1");
    assert_string_equal(counts(&w), "2 1 0 1");
    push(&w, 2, 1, "E", 2);
    assert_string_equal(run(&w, 1, 2), "2/1");
    assert_string_equal(run(&w, 1, 3), "1/1");
    sequences_close(&w);
}

/* Its slot would be nobody's. */
static void
who_is_silent_on_a_retired_instance_makes_no_room(void **state)
{
    (void) state;
    sequences_t w;

    sequences_open(&w, direct(1), 2);
    push(&w, 0, 1, "S", 0);
    push(&w, 1, 2, "S", 0);
    assert_string_equal(run(&w, 1, 0), "0/1");
    retire(&w, 1);
    assert_string_equal(run(&w, 2, 1), "1/1");
    push(&w, 2, 3, "SE", 1);
    leave(&w);
    assert_string_equal(w.told, "2");
    push_unknown(&w, 3, 2, "", 1);
    push(&w, 3, 1, "", 1);
    assert_string_equal(run(&w, 1, 1), "3/1");
    assert_string_equal(run(&w, 2, 1), "2/1");
    sequences_close(&w);
}

static void
everything_queued_can_be_dropped(void **state)
{
    (void) state;

    for (int old = 0; old <= 1; old++) {
        sequences_t w;
        bool seen[WORLD_REQUESTS] = { false };
        inf_request_t *r;
        int count = 0;

        sequences_open(&w, either(old, 2), 2);
        assert_null(w.policy->ops->drop(w.policy));
        for (int s = 0; s < 7; s++) {
            push_sequence(&w, 4 * s, s == 6 ? 1 : 4, 1 + (uint64_t) s, 0);
        }
        assert_string_equal(next_of(&w, 1, 0), old ? "0 8" : "0 8/2");
        while ((r = w.policy->ops->drop(w.policy)) != NULL) {
            int i = (int) (r - w.requests);
            assert_int_equal(r->state, INF_REQUEST_REJECTED);
            assert_false(seen[i]);
            assert_true(i != 0 && i != 8 && i < 25);
            seen[i] = true;
            count++;
            inf_request_move(r, INF_REQUEST_RELEASED);
            hear(&w);
        }
        assert_int_equal(count, 23);
        assert_int_equal(w.policy->queued, 0);
        detach(&w, 1);
        detach(&w, 2);
        release(&w, 0, 1);
        release(&w, 8, 1);
        assert_string_equal(counts(&w), "0 0 0 0");
        assert_int_equal(w.policy->live, 0);
        sequences_close(&w);
    }
}

/* ---- who is told --------------------------------------------------------- */

static void
only_who_has_something_to_look_at_is_told(void **state)
{
    (void) state;
    sequences_t w;

    for (int old = 0; old <= 1; old++) {
        sequences_open(&w, either(old, 1), 3);
        push(&w, 0, 1, "S", 0);
        assert_string_equal(w.told, "1");
        push(&w, 1, 1, "", 0);              /* nothing new for it            */
        assert_string_equal(w.told, "");
        push(&w, 2, 2, "S", 0);
        assert_string_equal(w.told, "2");
        push(&w, 3, 3, "SE", 0);
        assert_string_equal(w.told, "3");
        push(&w, 4, 4, "S", 0);             /* waits                         */
        assert_string_equal(w.told, "");
        assert_string_equal(next_of(&w, 2, 0), old ? "2" : "2/1");
        assert_string_equal(w.told, "");
        release(&w, 2, 1);
        assert_string_equal(w.told, "");
        push(&w, 2, 2, "E", 1);
        assert_string_equal(w.told, "2");
        assert_string_equal(cancel(&w, 2, 1), "");
        assert_string_equal(w.told, "2");   /* the backlog's is there        */
        assert_string_equal(next_of(&w, 2, 1), old ? "4" : "4/1");
        assert_string_equal(w.told, "");
        release(&w, 4, 2);
        assert_string_equal(w.told, "");
        assert_string_equal(expire(&w, 1002), "");
        assert_string_equal(w.told, "");
        assert_string_equal(counts(&w), "1 2 1 0");
        assert_string_equal(run(&w, 3, 1002), old ? "3" : "3/1");
        assert_string_equal(run(&w, 1, 1002), old ? "0" : "0/1");
        assert_string_equal(run(&w, 1, 1002), old ? "1" : "1/1");
        sequences_close(&w);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cancel_takes_what_is_behind_it),
        cmocka_unit_test(what_stands_before_a_cancelled_one_runs),
        cmocka_unit_test(a_cancelled_head_frees_the_slot),
        cmocka_unit_test(a_cancel_in_the_backlog_is_done_at_once),
        cmocka_unit_test(what_is_left_of_a_cancelled_one_has_its_turn),
        cmocka_unit_test(nothing_of_a_cancelled_sequence_stays),
        cmocka_unit_test(a_silent_sequence_loses_its_slot),
        cmocka_unit_test(who_left_the_backlog_late_is_not_idle),
        cmocka_unit_test(idle_counts_from_the_last_release),
        cmocka_unit_test(a_backlogged_sequence_times_out),
        cmocka_unit_test(the_least_timeout_of_its_requests_counts),
        cmocka_unit_test(a_timeout_ends_with_the_backlog),
        cmocka_unit_test(times_beyond_the_end_of_time_never_come),
        cmocka_unit_test(a_new_instance_takes_the_backlog),
        cmocka_unit_test(the_lowest_slot_then_the_lowest_number_goes_first),
        cmocka_unit_test(a_retired_instance_ends_its_sequences),
        cmocka_unit_test(a_retired_instance_is_told_when_it_is_empty),
        cmocka_unit_test(an_instance_goes_with_idle_sequences),
        cmocka_unit_test(a_release_after_its_instance_has_gone_is_harmless),
        cmocka_unit_test(a_model_that_stops_ends_its_sequences),
        cmocka_unit_test(who_waits_takes_the_slots_of_the_silent),
        cmocka_unit_test(
            a_model_that_leaves_ends_who_falls_silent_while_others_wait),
        cmocka_unit_test(
            a_model_that_stays_after_all_keeps_who_falls_silent),
        cmocka_unit_test(who_is_silent_on_a_retired_instance_makes_no_room),
        cmocka_unit_test(everything_queued_can_be_dropped),
        cmocka_unit_test(only_who_has_something_to_look_at_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
