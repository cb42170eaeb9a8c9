/* Those who wait at the response cache are under the queue policy of their
   model too: timeouts, cancels, ages. */

#include "cache/cache_world.h"

#define BATCHING(policy) "dynamic_batching { default_queue_policy { " policy \
    " } }"

/* Each instance runs a request of its own and is held. */
static void
occupy_all(void)
{
    w.hold = true;
    for (uint32_t i = 0; i < 4; i++) {
        submit(&shots[i], 100 + i, true);
    }
    wait_inside(4);
}

static void
all_got(int count)
{
    set_hold(false);
    for (int i = 0; i < count; i++) {
        got(&shots[i]);
    }
}

static int
delaying(void **state)
{
    (void) state;
    return start(true, BATCHING("timeout_action: DELAY"
        " default_timeout_microseconds: 1000"));
}

static int
overriding(void **state)
{
    (void) state;
    return start(true, BATCHING("allow_timeout_override: true"));
}

static int
overriding_slow(void **state)
{
    (void) state;
    return start(false, BATCHING("allow_timeout_override: true"));
}

static int
without_batching(void **state)
{
    (void) state;
    return start(true, NULL);
}

static void
one_that_waits_for_another_times_out_alone(void **state)
{
    (void) state;
    w.hold = true;
    submit(&shots[0], 1, true);
    wait_inside(1);
    assert_false(submit_for(&shots[1], 1, true, 20000));
    assert_false(submit_for(&shots[2], 1, true, 1000));
    failed(&shots[1], INF_ERR_UNAVAILABLE);
    failed(&shots[2], INF_ERR_UNAVAILABLE);
    assert_int_equal(model.statistics.failures[INF_FAILURE_REJECTED], 2);
    assert_int_equal(shots[0].answers, 0);
    all_got(1);
    assert_int_equal(w.executed, 1);
}

static void
one_that_waits_for_its_lookup_times_out(void **state)
{
    (void) state;
    w.hold_lookups = true;
    for (uint32_t i = 0; i < 4; i++) {
        submit(&shots[i], i, true);
    }
    pthread_mutex_lock(&w.lock);
    while (w.looking < 4) {                 /* all the cache's threads       */
        pthread_cond_wait(&w.changed, &w.lock);
    }
    pthread_mutex_unlock(&w.lock);
    for (uint32_t i = 4; i < 10; i++) {
        submit_for(&shots[i], i, true, 10000);
    }
    for (int i = 4; i < 10; i++) {
        failed(&shots[i], INF_ERR_UNAVAILABLE);
    }
    hold_lookups(false);
    for (int i = 0; i < 4; i++) {
        got(&shots[i]);
    }
    assert_int_equal(w.lookups, 4);
}

static void
a_timeout_that_only_delays_rejects_nobody_here(void **state)
{
    (void) state;
    w.hold = true;
    submit(&shots[0], 1, true);
    wait_inside(1);
    assert_false(submit(&shots[1], 1, true));
    assert_false(shots[1].request.timeout.queued);
    all_got(2);
    assert_int_equal(w.executed, 1);
}

static void
without_a_queue_policy_nobody_times_out(void **state)
{
    (void) state;
    w.hold = true;
    submit(&shots[0], 1, true);
    wait_inside(1);
    assert_false(submit_for(&shots[1], 1, true, 1));
    assert_false(shots[1].request.timeout.queued);
    all_got(2);
}

static void
a_client_names_its_timeout(void **state)
{
    (void) state;
    w.hold = true;
    submit(&shots[0], 1, true);
    wait_inside(1);
    assert_false(submit_for(&shots[1], 1, true, 3600000000));
    assert_false(submit_for(&shots[2], 1, true, 5000));
    assert_false(submit_for(&shots[3], 1, true, 1000));
    assert_false(submit(&shots[4], 1, true));
    failed(&shots[3], INF_ERR_UNAVAILABLE);
    failed(&shots[2], INF_ERR_UNAVAILABLE);
    assert_int_equal(shots[1].answers, 0);
    set_hold(false);
    got(&shots[0]);
    got(&shots[1]);
    got(&shots[4]);
}

static void
when_a_queued_first_times_out_the_next_one_runs(void **state)
{
    (void) state;
    occupy_all();
    assert_true(submit_for(&shots[10], 1, true, 300000));
    assert_false(submit(&shots[11], 1, true));
    assert_false(submit(&shots[12], 1, true));
    failed(&shots[10], INF_ERR_UNAVAILABLE);
    while (atomic_load(&shots[11].request.state) != INF_REQUEST_PENDING) {
        usleep(100);
    }
    assert_int_equal(shots[12].request.state, INF_REQUEST_PARKED);
    all_got(4);
    got(&shots[11]);
    got(&shots[12]);
    assert_int_equal(w.executed, 5);
}

static void
one_that_goes_to_the_queue_keeps_its_age(void **state)
{
    (void) state;
    uint64_t hour_us = 3600000000;

    occupy_all();
    submit_for(&shots[10], 1, true, 2 * hour_us);
    submit_for(&shots[11], 1, true, hour_us);
    uint64_t arrived = shots[11].request.queue_ns;
    cancel(&shots[10]);
    failed(&shots[10], INF_ERR_CANCELLED);
    assert_int_equal(shots[11].request.state, INF_REQUEST_PENDING);
    assert_int_equal(shots[11].request.queue_ns, arrived);
    assert_int_equal(shots[11].request.timeout.key,
        arrived + hour_us * 1000);
    all_got(4);
    got(&shots[11]);
}

/* scheduling.md 9.1: the first that runs answers those who wait for it. */
static void
a_closed_runner_answers_those_who_wait(void **state)
{
    (void) state;
    occupy_all();
    submit(&shots[4], 1, true);
    submit(&shots[5], 1, true);
    submit(&shots[6], 100, true);           /* waits for a running one       */
    inf_runner_close(model.sched.runner);
    all_got(7);
    assert_int_equal(w.executed, 5);
}

static void
a_crowd_with_short_patience_is_answered(void **state)
{
    (void) state;
    w.fail_with = INF_ERR_INTERNAL;
    w.fail_count = 100;
    w.pause_us = 500;
    uint32_t timed_out = run_crowd(60, 3000);
    assert_true(timed_out > 0);
    assert_int_equal(model.statistics.failures[INF_FAILURE_REJECTED],
        timed_out);
}

#define TEST(f, setup) cmocka_unit_test_setup_teardown(f, setup, end)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_that_waits_for_another_times_out_alone, overriding),
        TEST(one_that_waits_for_its_lookup_times_out, overriding_slow),
        TEST(a_timeout_that_only_delays_rejects_nobody_here, delaying),
        TEST(without_a_queue_policy_nobody_times_out, without_batching),
        TEST(a_client_names_its_timeout, overriding),
        TEST(when_a_queued_first_times_out_the_next_one_runs, overriding),
        TEST(one_that_goes_to_the_queue_keeps_its_age, overriding),
        TEST(a_closed_runner_answers_those_who_wait, overriding),
        TEST(a_closed_runner_answers_those_who_wait, without_batching),
        TEST(a_crowd_with_short_patience_is_answered, overriding),
        TEST(a_crowd_with_short_patience_is_answered, overriding_slow)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
