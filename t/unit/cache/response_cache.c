/* The gate before a model's runner: hits, misses, those who wait. */

#include "cache/cache_world.h"

/* scheduling.md 7.1 */
static void
a_second_request_is_answered_at_once(void **state)
{
    (void) state;
    inf_statistics_t *s = &model.statistics;

    assert_true(submit(&shots[0], 21, true));
    got(&shots[0]);
    assert_int_equal(w.executed, 1);
    assert_false(submit(&shots[1], 21, true));
    assert_int_equal(shots[1].released, 1);     /* before submit returned    */
    got(&shots[1]);
    assert_int_equal(w.executed, 1);

    assert_true(submit(&shots[2], 22, true));
    got(&shots[2]);
    assert_int_equal(w.executed, 2);
    assert_int_equal(s->cache_hit.count, 1);
    assert_int_equal(s->cache_miss.count, 2);
    assert_int_equal(s->success.count, 1);      /* others: the backend's     */
    assert_int_equal(s->queue.count, 1);
    assert_int_equal(s->inference_count, 0);
    assert_true(s->cache_hit.ns > 0 && s->cache_miss.ns > 0);

    inf_cache_counts_t c;
    assert_true(inf_response_cache_counts(cache, &c));
    assert_int_equal(c.hits, 7);
}

/* scheduling.md 7.5 and 10 */
static void
an_error_is_not_stored(void **state)
{
    (void) state;
    w.fail_with = INF_ERR_INTERNAL;
    w.fail_count = 1;
    submit(&shots[0], 5, true);
    failed(&shots[0], INF_ERR_INTERNAL);
    assert_int_equal(w.inserts, 0);
    assert_true(submit(&shots[1], 5, true));
    got(&shots[1]);
    assert_false(submit(&shots[2], 5, true));
    got(&shots[2]);
    assert_int_equal(w.executed, 2);
    assert_int_equal(model.statistics.cache_miss.count, 2);
}

static void
identical_requests_in_flight_run_once(void **state)
{
    (void) state;
    w.hold = true;
    assert_true(submit(&shots[0], 1, true));
    wait_inside(1);
    for (int i = 1; i < 10; i++) {
        assert_false(submit(&shots[i], 1, true));
        assert_int_equal(shots[i].request.state, INF_REQUEST_PARKED);
    }
    assert_true(submit(&shots[10], 2, true));
    wait_inside(2);
    set_hold(false);
    for (int i = 0; i <= 10; i++) {
        got(&shots[i]);
    }
    assert_int_equal(w.executed, 2);
    assert_int_equal(model.statistics.cache_hit.count, 9);
    assert_int_equal(model.statistics.cache_miss.count, 2);
    assert_true(model.statistics.queue.ns > 0);
}

static void
one_that_waits_is_cancelled_alone(void **state)
{
    (void) state;
    w.hold = true;
    submit(&shots[0], 1, true);
    wait_inside(1);
    submit(&shots[1], 1, true);
    submit(&shots[2], 1, true);
    atomic_store(&shots[1].factory.cancelled, true);
    assert_true(inf_gate_cancel(model.sched.gate, &shots[1].request));
    assert_false(inf_gate_cancel(model.sched.gate, &shots[1].request));
    assert_false(inf_gate_cancel(model.sched.gate, &shots[0].request));
    inf_factory_send_error(&shots[1].factory,
        inf_err_new(INF_ERR_CANCELLED, "%s", ""));
    inf_request_release(&shots[1].request, 1);
    failed(&shots[1], INF_ERR_CANCELLED);
    set_hold(false);
    got(&shots[0]);
    got(&shots[2]);
    assert_int_equal(w.executed, 1);
}

static void
when_the_first_gives_up_the_next_one_runs(void **state)
{
    (void) state;
    w.hold = true;
    submit(&shots[0], 1, true);
    wait_inside(1);
    for (int i = 1; i < 5; i++) {
        submit(&shots[i], 1, true);
    }
    atomic_store(&shots[0].factory.cancelled, true);
    set_hold(false);
    failed(&shots[0], INF_ERR_CANCELLED);
    for (int i = 1; i < 5; i++) {
        got(&shots[i]);
    }
    assert_int_equal(w.executed, 2);
}

static void
when_a_queued_first_is_cancelled_the_next_one_runs(void **state)
{
    (void) state;
    w.hold = true;
    for (uint32_t i = 0; i < 4; i++) {          /* all instances are busy    */
        submit(&shots[i], 100 + i, true);
    }
    wait_inside(4);
    submit(&shots[10], 1, true);
    submit(&shots[11], 1, true);
    submit(&shots[12], 1, true);
    assert_true(inf_runner_cancel(model.sched.runner, &shots[10].request));
    inf_factory_send_error(&shots[10].factory,
        inf_err_new(INF_ERR_CANCELLED, "%s", ""));
    inf_request_release(&shots[10].request, 1);
    failed(&shots[10], INF_ERR_CANCELLED);
    assert_int_equal(shots[11].request.state, INF_REQUEST_PENDING);
    assert_int_equal(shots[12].request.state, INF_REQUEST_PARKED);
    set_hold(false);
    got(&shots[11]);
    got(&shots[12]);
    for (int i = 0; i < 4; i++) {
        got(&shots[i]);
    }
    assert_int_equal(w.executed, 5);
}

static void
when_the_first_fails_each_runs_by_itself(void **state)
{
    (void) state;
    w.hold = true;
    w.fail_with = INF_ERR_UNSUPPORTED;
    w.fail_count = 1;
    submit(&shots[0], 1, true);
    wait_inside(1);
    for (int i = 1; i < 4; i++) {
        submit(&shots[i], 1, true);
    }
    set_hold(false);
    failed(&shots[0], INF_ERR_UNSUPPORTED);
    for (int i = 1; i < 4; i++) {
        got(&shots[i]);
    }
    assert_int_equal(w.executed, 4);
    assert_int_equal(w.count, 1);
    assert_false(submit(&shots[5], 1, true));
    got(&shots[5]);
}

static void
a_response_in_device_memory_is_not_shared(void **state)
{
    (void) state;
    w.hold = true;
    w.device = true;
    submit(&shots[0], 1, true);
    wait_inside(1);
    submit(&shots[1], 1, true);
    set_hold(false);
    got(&shots[0]);
    got(&shots[1]);
    assert_int_equal(w.executed, 2);
    assert_int_equal(w.count, 0);
}

static void
one_without_memory_for_the_answer_gets_an_error(void **state)
{
    (void) state;
    w.hold = true;
    submit(&shots[0], 1, true);
    wait_inside(1);
    submit(&shots[1], 1, true);
    submit(&shots[2], 1, true);
    shots[1].reject = true;
    set_hold(false);
    got(&shots[0]);
    failed(&shots[1], INF_ERR_UNAVAILABLE);
    got(&shots[2]);
    assert_int_equal(model.statistics.fail.count, 1);
}

static void
a_cache_in_trouble_is_done_without(void **state)
{
    (void) state;
    w.lookup_fails = true;
    w.insert_fails = true;
    for (int i = 0; i < 3; i++) {
        assert_true(submit(&shots[i], 1, true));
        got(&shots[i]);
    }
    assert_int_equal(w.executed, 3);
    assert_int_equal(w.lookups, 3);
    assert_int_equal(w.inserts, 3);
}

static void
a_runner_that_is_closed_rejects_all_who_wait(void **state)
{
    (void) state;
    bool queued;

    w.hold = true;
    w.fail_with = INF_ERR_INTERNAL;
    w.fail_count = 1;
    submit(&shots[0], 1, true);
    wait_inside(1);
    submit(&shots[1], 1, true);
    submit(&shots[2], 1, true);
    inf_runner_close(model.sched.runner);
    set_hold(false);
    failed(&shots[0], INF_ERR_INTERNAL);
    failed(&shots[1], INF_ERR_UNAVAILABLE);
    failed(&shots[2], INF_ERR_UNAVAILABLE);

    /* a submit that is rejected leaves the request with its submitter */
    load(&shots[3], 9);
    inf_err_t *err = inf_gate_submit(model.sched.gate, &shots[3].request,
        inf_clock_ns(), true, &queued);
    assert_int_equal(inf_err_code(err), INF_ERR_UNAVAILABLE);
    inf_err_free(err);
    assert_int_equal(shots[3].request.state, INF_REQUEST_IDLE);
    assert_ptr_equal(shots[3].factory.sink, &shot_sink);
    assert_ptr_equal(shots[3].factory.userp, &shots[3]);
    inf_factory_unref(&shots[3].factory);
    assert_int_equal(shots[3].answers, 0);
}

static void
a_nonblocking_submitter_leaves_slow_lookups_to_threads(void **state)
{
    (void) state;
    w.hold_lookups = true;
    for (uint32_t i = 0; i < 20; i++) {
        assert_false(submit(&shots[i], i % 5, true));
    }
    /* one that no thread has yet can be taken back */
    assert_true(inf_gate_cancel(model.sched.gate, &shots[19].request));
    inf_factory_send_error(&shots[19].factory,
        inf_err_new(INF_ERR_CANCELLED, "%s", ""));
    inf_request_release(&shots[19].request, 1);
    failed(&shots[19], INF_ERR_CANCELLED);
    hold_lookups(false);
    for (int i = 0; i < 19; i++) {
        got(&shots[i]);
    }
    assert_in_range(w.executed, 5, 19);
    for (uint32_t i = 0; i < 5; i++) {
        assert_false(submit(&shots[20 + i], i, false));
        assert_int_equal(shots[20 + i].released, 1);
    }
}

static void
one_cancelled_during_its_lookup_does_not_run(void **state)
{
    (void) state;
    w.hold_lookups = true;
    submit(&shots[0], 1, true);
    pthread_mutex_lock(&w.lock);
    while (w.looking == 0) {
        pthread_cond_wait(&w.changed, &w.lock);
    }
    pthread_mutex_unlock(&w.lock);
    atomic_store(&shots[0].factory.cancelled, true);
    assert_false(inf_gate_cancel(model.sched.gate, &shots[0].request));
    hold_lookups(false);
    failed(&shots[0], INF_ERR_CANCELLED);
    assert_int_equal(w.executed, 0);
    assert_int_equal(model.statistics.fail.count, 1);
}

/* scheduling.md 10: nothing is kept under an empty key */
static void
what_cannot_be_read_goes_straight_to_the_runner(void **state)
{
    (void) state;
    inf_host_data_t host = { .policy = "p" };
    bool queued;

    for (int i = 0; i < 2; i++) {
        load(&shots[i], 3);
        shots[i].request.inputs[0].host_data = &host;
        assert_null(inf_gate_submit(model.sched.gate, &shots[i].request,
            inf_clock_ns(), true, &queued));
        assert_true(queued);
        got(&shots[i]);
    }
    assert_int_equal(w.lookups, 0);
    assert_int_equal(w.inserts, 0);
    assert_int_equal(w.executed, 2);
}

static void
each_of_a_crowd_is_answered_once(void **state)
{
    (void) state;
    w.fail_with = INF_ERR_INTERNAL;
    w.fail_count = 200;
    run_crowd(100, 0);
    assert_true(w.executed < 6 * 100 * 8);
}

#define TEST(f, setup) cmocka_unit_test_setup_teardown(f, setup, end)

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_second_request_is_answered_at_once, quick),
        TEST(an_error_is_not_stored, quick),
        TEST(identical_requests_in_flight_run_once, quick),
        TEST(one_that_waits_is_cancelled_alone, quick),
        TEST(when_the_first_gives_up_the_next_one_runs, quick),
        TEST(when_a_queued_first_is_cancelled_the_next_one_runs, quick),
        TEST(when_the_first_fails_each_runs_by_itself, quick),
        TEST(a_response_in_device_memory_is_not_shared, quick),
        TEST(one_without_memory_for_the_answer_gets_an_error, quick),
        TEST(a_cache_in_trouble_is_done_without, quick),
        TEST(a_runner_that_is_closed_rejects_all_who_wait, quick),
        TEST(a_nonblocking_submitter_leaves_slow_lookups_to_threads, slow),
        TEST(one_cancelled_during_its_lookup_does_not_run, slow),
        TEST(what_cannot_be_read_goes_straight_to_the_runner, slow),
        TEST(each_of_a_crowd_is_answered_once, quick),
        TEST(each_of_a_crowd_is_answered_once, slow)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
