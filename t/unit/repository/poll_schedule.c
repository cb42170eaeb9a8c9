/* When repositories are polled, in virtual time. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/repository/poll_schedule.h"

#define MS     UINT64_C(1000000)
#define SECOND (1000 * MS)
#define HOUR   (3600 * SECOND)
#define START  (7 * HOUR)
#define SETTLE SECOND

static inf_poll_schedule_t s;

static void
begin_at(uint64_t interval_ns)
{
    inf_poll_schedule_init(&s, SETTLE, START);
    inf_poll_schedule_set_interval(&s, interval_ns);
}

static void
assert_waits(uint64_t now_ns, uint64_t until_ns, bool events)
{
    const inf_poll_decision_t d = inf_poll_schedule_next(&s, now_ns);
    assert_int_equal(d.action, INF_POLL_WAIT);
    assert_int_equal(d.until_ns, until_ns);
    assert_int_equal(d.events, events);
}

static void
assert_begins(uint64_t now_ns, bool early, bool remote)
{
    const inf_poll_decision_t d = inf_poll_schedule_next(&s, now_ns);
    assert_int_equal(d.action, INF_POLL_BEGIN);
    assert_int_equal(d.early, early);
    assert_int_equal(d.remote, remote);
}

static void
assert_compares(uint64_t now_ns)
{
    assert_int_equal(inf_poll_schedule_next(&s, now_ns).action,
        INF_POLL_COMPARE);
}

static void
nothing_is_polled_without_an_interval(void **state)
{
    (void) state;
    begin_at(0);
    inf_poll_schedule_hasten(&s, true);
    assert_waits(START, INF_POLL_NEVER, false);
    assert_waits(START + 99 * HOUR, INF_POLL_NEVER, false);
    inf_poll_schedule_set_interval(&s, HOUR);
    assert_begins(START + 99 * HOUR, false, true);
}

static void
a_full_poll_comes_an_interval_after_the_last_one_has_ended(void **state)
{
    (void) state;
    begin_at(HOUR);
    assert_waits(START + 5 * SECOND, START + HOUR, true);
    assert_waits(START + HOUR - 1, START + HOUR, true);
    assert_begins(START + HOUR, false, true);
    inf_poll_schedule_compared(&s, 0, START + HOUR + 3 * SECOND);
    assert_waits(START + HOUR + 100 * SECOND, START + 2 * HOUR + 3 * SECOND,
        true);
    assert_begins(START + 2 * HOUR + 3 * SECOND, false, true);
}

static void
a_change_brings_a_poll_forward_but_for_the_gap(void **state)
{
    (void) state;
    begin_at(HOUR);
    inf_poll_schedule_hasten(&s, false);
    assert_waits(START, START + INF_POLL_GAP_NS, false);
    assert_begins(START + INF_POLL_GAP_NS, true, false);
    inf_poll_schedule_compared(&s, 0, START + INF_POLL_GAP_NS + MS);
    assert_waits(START + 5 * SECOND, START + HOUR, true);   /* once          */
}

static void
remote_repositories_are_polled_early_when_that_was_asked_for(void **state)
{
    (void) state;
    begin_at(HOUR);
    inf_poll_schedule_hasten(&s, true);
    inf_poll_schedule_hasten(&s, false);
    assert_begins(START + 2 * SECOND, true, true);
    inf_poll_schedule_compared(&s, 0, START + 2 * SECOND);
    inf_poll_schedule_hasten(&s, false);
    assert_begins(START + 4 * SECOND, true, false);         /* once          */
}

static void
early_polls_do_not_put_off_the_full_one(void **state)
{
    (void) state;
    uint64_t now = START;

    begin_at(HOUR);
    while (now < START + HOUR - 10 * SECOND) {
        now += 2 * SECOND;
        inf_poll_schedule_hasten(&s, false);
        assert_begins(now, true, false);
        inf_poll_schedule_compared(&s, 0, now);
    }
    assert_waits(START + HOUR - SECOND, START + HOUR, true);
    assert_begins(START + HOUR, false, true);
}

static void
the_gap_is_twenty_times_the_work(void **state)
{
    (void) state;
    begin_at(HOUR);
    inf_poll_schedule_hasten(&s, false);
    assert_begins(START + SECOND, true, false);
    inf_poll_schedule_compared(&s, 0, START + 11 * SECOND);     /* 10 s      */
    inf_poll_schedule_hasten(&s, false);
    assert_waits(START + 12 * SECOND, START + 211 * SECOND, false);
    assert_begins(START + 211 * SECOND, true, false);
}

static void
the_gap_holds_up_no_full_poll(void **state)
{
    (void) state;
    begin_at(30 * SECOND);
    assert_begins(START + 30 * SECOND, false, true);
    inf_poll_schedule_compared(&s, 0, START + 40 * SECOND);
    assert_waits(START + 41 * SECOND, START + 70 * SECOND, false);
    assert_begins(START + 70 * SECOND, false, true);
}

static void
what_differs_is_compared_again_until_it_holds_still(void **state)
{
    (void) state;
    uint64_t now = START + HOUR;

    begin_at(HOUR);
    assert_begins(now, false, true);
    inf_poll_schedule_compared(&s, 3, now);
    inf_poll_schedule_hasten(&s, false);
    assert_waits(now, now + SETTLE, false);
    assert_waits(now + SETTLE - 1, now + SETTLE, false);
    assert_compares(now + SETTLE);
    inf_poll_schedule_compared(&s, 1, now + SETTLE + MS);
    assert_waits(now + SETTLE + MS, now + 2 * SETTLE + MS, false);
    assert_compares(now + 2 * SETTLE + MS);
    inf_poll_schedule_compared(&s, 0, now + 2 * SETTLE + MS);
    assert_begins(now + 4 * SETTLE, true, false);
}

static void
what_never_holds_still_is_left_to_the_next_poll(void **state)
{
    (void) state;
    uint64_t now = START + HOUR;

    begin_at(HOUR);
    assert_begins(now, false, true);
    inf_poll_schedule_compared(&s, 1, now);
    for (unsigned i = 1; i <= INF_POLL_COMPARISONS; i++) {
        now += SETTLE;
        assert_compares(now);
        inf_poll_schedule_compared(&s, 1, now);
    }
    assert_waits(now + INF_POLL_GAP_NS, now + HOUR, true);
    assert_begins(now + HOUR, false, true);
    inf_poll_schedule_compared(&s, 1, now + HOUR);          /* as before     */
    assert_compares(now + HOUR + SETTLE);
}

/* The gap depends on the CPU that was needed. */
static void
waiting_for_files_is_no_work(void **state)
{
    (void) state;
    uint64_t now = START + HOUR;

    begin_at(HOUR);
    assert_begins(now, false, true);
    inf_poll_schedule_compared(&s, 1, now + 60 * MS);
    assert_compares(now + 60 * MS + SETTLE);
    inf_poll_schedule_compared(&s, 0, now + 100 * MS + SETTLE);
    inf_poll_schedule_hasten(&s, false);
    assert_waits(now + 200 * MS + SETTLE, now + 2100 * MS + SETTLE, false);
    assert_begins(now + 2100 * MS + SETTLE, true, false);
}

static void
a_poll_that_is_given_up_counts_as_one(void **state)
{
    (void) state;
    begin_at(HOUR);
    assert_begins(START + HOUR, false, true);
    inf_poll_schedule_compared(&s, 1, START + HOUR);
    inf_poll_schedule_give_up(&s, START + HOUR + MS);
    assert_waits(START + HOUR + 9 * SECOND, START + 2 * HOUR + MS, true);
    inf_poll_schedule_give_up(&s, START + HOUR + 10 * SECOND);  /* none is   */
    assert_waits(START + HOUR + 10 * SECOND, START + 2 * HOUR + MS, true);
}

static void
a_poll_by_request_is_a_full_one(void **state)
{
    (void) state;
    begin_at(0);
    inf_poll_schedule_begin(&s, START);
    inf_poll_schedule_compared(&s, 1, START);
    assert_compares(START + SETTLE);
    inf_poll_schedule_compared(&s, 0, START + SETTLE);
    assert_waits(START + SETTLE, INF_POLL_NEVER, false);
}

/* One random life: changes, polls of random length, files that move. */
static void
live(void)
{
    uint64_t interval = (uint64_t) (1 + rand() % 200) * SECOND;
    uint64_t now = START, full = START, ended = START, worked = 0;
    uint64_t began = 0, changed_at = 0, work = 0;
    bool changed = false, early = false, open = false;
    unsigned comparisons = 0;

    begin_at(interval);
    while (now < START + HOUR) {
        const inf_poll_decision_t d = inf_poll_schedule_next(&s, now);
        uint64_t gap = worked * 20 > SECOND ? worked * 20 : SECOND;

        if (d.action == INF_POLL_WAIT) {
            assert_true(d.until_ns > now);
            assert_true(d.until_ns <= (open ? now + SETTLE
                : full + interval));
            assert_false(d.events && (changed || open));
            uint64_t event = now + (uint64_t) (rand() % 9000) * MS;
            if (event < d.until_ns && rand() % 2 == 0) {
                now = event;                /* noticed only when it listens  */
                changed_at = changed ? changed_at : now;
                changed = true;
                inf_poll_schedule_hasten(&s, false);
            } else {
                now = d.until_ns;
            }
            continue;
        }

        if (d.action == INF_POLL_BEGIN) {
            early = now < full + interval;
            assert_false(open);
            assert_int_equal(d.early, early);
            assert_int_equal(d.remote, !early);
            assert_true(!early || changed);
            assert_true(!early || now >= ended + gap);
            assert_true(now <= full + interval || now == ended);
            if (changed) {
                assert_true(now <= changed_at + gap + 7 * SETTLE
                    + 7 * 50 * MS);
            }
            changed = false;
            comparisons = 0;
            work = 0;
            open = true;
        } else {
            assert_true(open && now >= began + SETTLE);
            comparisons++;
            assert_in_range(comparisons, 1, INF_POLL_COMPARISONS);
        }
        uint64_t took = (uint64_t) (rand() % 50) * MS;
        size_t unsettled = (size_t) rand() % 3;
        now += took;
        began = now;
        work += took;
        inf_poll_schedule_compared(&s, unsettled, now);
        if (unsettled == 0 || comparisons == INF_POLL_COMPARISONS) {
            open = false;
            worked = work;
            ended = now;
            full = early ? full : now;
        }
    }
}

static void
random_lives_keep_the_promises(void **state)
{
    (void) state;
    for (unsigned seed = 0; seed < 300; seed++) {
        srand(seed);
        live();
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_polled_without_an_interval),
        cmocka_unit_test(
            a_full_poll_comes_an_interval_after_the_last_one_has_ended),
        cmocka_unit_test(a_change_brings_a_poll_forward_but_for_the_gap),
        cmocka_unit_test(
            remote_repositories_are_polled_early_when_that_was_asked_for),
        cmocka_unit_test(early_polls_do_not_put_off_the_full_one),
        cmocka_unit_test(the_gap_is_twenty_times_the_work),
        cmocka_unit_test(the_gap_holds_up_no_full_poll),
        cmocka_unit_test(what_differs_is_compared_again_until_it_holds_still),
        cmocka_unit_test(what_never_holds_still_is_left_to_the_next_poll),
        cmocka_unit_test(waiting_for_files_is_no_work),
        cmocka_unit_test(a_poll_that_is_given_up_counts_as_one),
        cmocka_unit_test(a_poll_by_request_is_a_full_one),
        cmocka_unit_test(random_lives_keep_the_promises),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
