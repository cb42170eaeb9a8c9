#include "sched/batcher_world.h"

#include "core/include/datatype.h"

#define PREFER_2_6 "preferred_batch_size: [ 2, 6 ]" \
    " max_queue_delay_microseconds: 10000000"
#define VARIABLE "{ name: 'IN' data_type: TYPE_INT32 dims: -1 }"

static world_t w;

static void
give_input(int i, const char *name, int64_t rows, int64_t size)
{
    const int64_t shape[] = { rows, size };
    assert_non_null(inf_request_add_input(&w.requests[i], name, strlen(name),
        INF_TYPE_INT32, shape, 2));
}

/* ---- scheduling.md 3.1 to 3.3: preferred sizes and the delay ------------- */

static void
a_preferred_size_leaves_at_once_others_after_the_delay(void **state)
{
    (void) state;
    world_open(&w, 8, NULL, PREFER_2_6);
    push(&w, 0, 2, 0);
    assert_string_equal(next_at(&w, 0), "0");
    push(&w, 1, 6, 1);
    assert_string_equal(next_at(&w, 1), "1");
    push(&w, 2, 1, 5);
    assert_string_equal(next_at(&w, 5), "wait 10005");
    assert_string_equal(next_at(&w, 10004), "wait 10005");
    assert_string_equal(next_at(&w, 10005), "2");
    push(&w, 3, 3, 20000);
    assert_string_equal(next_at(&w, 20000), "wait 30000");
    assert_string_equal(next_at(&w, 30000), "3");
    push(&w, 4, 7, 40000);                  /* more than any preferred size  */
    assert_string_equal(next_at(&w, 40000), "4");
    assert_string_equal(next_at(&w, 40000), "nothing");
    world_close(&w);
}

static void
what_jumps_over_a_preferred_size_sends_what_was_there(void **state)
{
    (void) state;
    world_open(&w, 8, NULL, PREFER_2_6);
    push(&w, 0, 3, 0);
    assert_string_equal(next_at(&w, 0), "wait 10000");
    push(&w, 1, 7, 1000);
    assert_string_equal(next_at(&w, 1000), "0");
    assert_string_equal(next_at(&w, 1000), "1");

    push(&w, 2, 3, 20000);
    push(&w, 3, 4, 21000);
    assert_string_equal(next_at(&w, 21000), "2");
    assert_string_equal(next_at(&w, 21000), "wait 31000");
    assert_string_equal(next_at(&w, 31000), "3");
    world_close(&w);
}

static void
what_has_waited_too_long_takes_all_that_fit(void **state)
{
    (void) state;
    world_open(&w, 8, NULL, PREFER_2_6);
    push(&w, 0, 3, 0);
    push(&w, 1, 4, 0);
    push(&w, 2, 1, 10000);
    assert_string_equal(next_at(&w, 10000), "0 1 2");
    world_close(&w);
}

/* ---- scheduling.md 3.4: shapes ------------------------------------------- */

static void
different_shapes_do_not_share_a_batch_unless_ragged(void **state)
{
    (void) state;
    static const struct {
        const char *inputs, *first, *second;
    } cases[] = {
        { VARIABLE, "0", "wait 10001" },
        { "{ name: 'IN' data_type: TYPE_INT32 dims: -1"
          " allow_ragged_batch: true }", "0 1", "nothing" }
    };

    for (int i = 0; i < 2; i++) {
        world_open(&w, 8, cases[i].inputs, PREFER_2_6);
        give_input(0, "IN", 1, 4);
        give_input(1, "IN", 1, 5);
        push(&w, 0, 1, 0);
        push(&w, 1, 1, 1);
        assert_string_equal(next_at(&w, 1), cases[i].first);
        assert_string_equal(next_at(&w, 1), cases[i].second);
        world_close(&w);
    }
}

/* The batch dimension may differ, and a fixed shape is not even looked at. */
static void
equal_shapes_share_a_batch_whatever_their_rows(void **state)
{
    (void) state;
    world_open(&w, 8, VARIABLE, "");
    give_input(0, "IN", 1, 4);
    give_input(1, "IN", 3, 4);
    give_input(2, "IN", 1, 9);
    push(&w, 0, 1, 0);
    push(&w, 1, 3, 0);
    push(&w, 2, 1, 0);
    assert_string_equal(next_at(&w, 0), "0 1");
    assert_string_equal(next_at(&w, 0), "2");
    world_close(&w);
}

/* ---- scheduling.md 3.5: preferred sizes without delay -------------------- */

static void
without_delay_the_largest_preferred_size_goes_first(void **state)
{
    (void) state;
    static const struct {
        int         waiting;
        const char *first, *second;
    } cases[] = {
        { 7, "0 1 2 3 4 5", "6" }, { 5, "0 1 2 3", "4" },
        { 3, "0 1 2", "nothing" }
    };

    for (int i = 0; i < 3; i++) {
        world_open(&w, 8, NULL, "preferred_batch_size: [ 4, 6 ]");
        for (int k = 0; k < cases[i].waiting; k++) {
            push(&w, k, 1, 0);
        }
        assert_string_equal(next_at(&w, 0), cases[i].first);
        assert_string_equal(next_at(&w, 0), cases[i].second);
        world_close(&w);
    }
}

/* scheduling.md 3.6: the instance is busy, so the batch is open until it is
   not */
static void
requests_join_until_an_instance_takes_the_batch(void **state)
{
    (void) state;
    world_open(&w, 8, NULL, "");
    push(&w, 0, 1, 0);
    assert_string_equal(next_at(&w, 0), "0");
    for (int i = 1; i < 5; i++) {
        push(&w, i, 1, (uint64_t) i);
    }
    assert_string_equal(next_at(&w, 100), "1 2 3 4");
    world_close(&w);
}

/* scheduling.md 3.7, and the second half of 3.16 */
static void
outputs_and_parameters_may_differ_within_a_batch(void **state)
{
    (void) state;
    world_open(&w, 8, NULL, "");
    assert_ok(inf_request_add_output(&w.requests[0], "OUT", 3));
    inf_parameter_t *p = inf_parameter_add(&w.requests[1].parameters,
        &w.requests[1].arena, "k", 1, INF_PARAMETER_INT);
    p->i = 7;
    push(&w, 0, 1, 0);
    push(&w, 1, 1, 0);
    assert_string_equal(next_at(&w, 0), "0 1");
    world_close(&w);
}

/* scheduling.md 3.8 */
static void
a_full_queue_rejects_and_what_runs_does_not_count(void **state)
{
    (void) state;
    world_open(&w, 8, NULL, "default_queue_policy { max_queue_size: 8 }");
    push(&w, 0, 8, 0);
    assert_string_equal(next_at(&w, 0), "0");
    for (int i = 1; i < 9; i++) {
        push(&w, i, 1, 1);
    }
    push_rejected(&w, 9, 1, 2);
    push_rejected(&w, 10, 1, 2);
    assert_int_equal(w.policy->queued, 8);
    assert_true(cancel(&w, 3));
    push(&w, 9, 1, 3);
    push_rejected(&w, 10, 1, 3);
    assert_string_equal(next_at(&w, 5000), "1 2 4 5 6 7 8 9");
    push(&w, 10, 1, 5000);
    world_close(&w);
}

/* ---- scheduling.md 3.9 to 3.12: timeouts --------------------------------- */

#define PREFER_4_8 "preferred_batch_size: [ 4, 8 ]" \
    " max_queue_delay_microseconds: 10000000 "

static void
a_delayed_request_lets_others_pass_and_waits_on(void **state)
{
    (void) state;
    world_open(&w, 8, NULL, PREFER_4_8 "default_queue_policy {"
        " timeout_action: DELAY default_timeout_microseconds: 100000 }");
    push(&w, 0, 1, 0);
    assert_int_equal(w.policy->deadline_ns, 100 * MS);
    assert_string_equal(expire_at(&w, 99), "");
    assert_string_equal(expire_at(&w, 100), "");
    assert_true(w.policy->deadline_ns == INF_NEVER);
    push(&w, 1, 2, 200);
    assert_string_equal(next_at(&w, 200), "wait 10000");
    push(&w, 2, 2, 200);
    assert_string_equal(next_at(&w, 200), "1 2");
    assert_string_equal(next_at(&w, 200), "wait 10000");
    assert_string_equal(next_at(&w, 10000), "0");
    world_close(&w);
}

static void
a_rejected_request_leaves_at_its_time_to_the_tick(void **state)
{
    (void) state;
    world_open(&w, 8, NULL, PREFER_4_8 "default_queue_policy {"
        " default_timeout_microseconds: 100000 }");
    push(&w, 0, 1, 0);
    assert_string_equal(next_at(&w, 99), "wait 10000");
    assert_int_equal(w.policy->deadline_ns, 100 * MS);
    assert_string_equal(next_at(&w, 100), "nothing -0");
    push(&w, 1, 2, 200);
    push(&w, 2, 2, 200);
    assert_string_equal(next_at(&w, 200), "1 2");
    assert_true(w.policy->deadline_ns == INF_NEVER);
    world_close(&w);
}

static void
a_request_may_shorten_its_timeout_but_not_lengthen_it(void **state)
{
    (void) state;
    world_open(&w, 1, NULL, "default_queue_policy {"
        " default_timeout_microseconds: 1000000"
        " allow_timeout_override: true }");
    w.requests[0].timeout_us = 100000;
    w.requests[1].timeout_us = 10000000;
    push(&w, 0, 1, 0);
    push(&w, 1, 1, 0);
    assert_int_equal(w.policy->deadline_ns, 100 * MS);
    assert_string_equal(expire_at(&w, 99), "");
    assert_string_equal(expire_at(&w, 100), "-0");
    assert_string_equal(expire_at(&w, 999), "");
    assert_string_equal(expire_at(&w, 1000), "-1");
    world_close(&w);
}

/* scheduling.md 3.12: Triton ignores it; we honour it */
static void
a_request_may_name_a_timeout_where_the_model_has_none(void **state)
{
    (void) state;
    world_open(&w, 1, NULL,
        "default_queue_policy { allow_timeout_override: true }");
    w.requests[0].timeout_us = 100000;
    push(&w, 0, 1, 0);
    push(&w, 1, 1, 0);
    assert_string_equal(expire_at(&w, 100), "-0");
    assert_true(w.policy->deadline_ns == INF_NEVER);
    world_close(&w);

    world_open(&w, 1, NULL, "");            /* not allowed: no effect        */
    w.requests[0].timeout_us = 1;
    push(&w, 0, 1, 0);
    assert_true(w.policy->deadline_ns == INF_NEVER);
    assert_string_equal(next_at(&w, 1000000), "0");
    world_close(&w);
}

/* A delayed request lets others pass, but not where responses keep their
   order. */
static void
a_request_names_no_timeout_that_would_break_the_order(void **state)
{
    (void) state;
    static const struct {
        const char *batching;
        bool        counts;
    } cases[] = {
        { "default_queue_policy { timeout_action: DELAY"
          " allow_timeout_override: true }", true },
        { "preserve_ordering: true default_queue_policy {"
          " timeout_action: DELAY allow_timeout_override: true }", false },
        { "preserve_ordering: true default_queue_policy {"
          " allow_timeout_override: true }", true },
        { "preserve_ordering: true priority_levels: 1"
          " default_priority_level: 1 priority_queue_policy [ { key: 1 value {"
          " timeout_action: DELAY allow_timeout_override: true } } ]", false }
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        world_open(&w, 1, NULL, cases[i].batching);
        w.requests[0].timeout_us = 100000;
        push(&w, 0, 1, 0);
        assert_int_equal(w.policy->deadline_ns != INF_NEVER, cases[i].counts);
        world_close(&w);
    }
}

/* scheduling.md 3.14 and 8.9: nobody needs to be idle */
static void
a_timeout_does_not_wait_for_an_instance(void **state)
{
    (void) state;
    world_open(&w, 1, NULL, "default_queue_policy {"
        " default_timeout_microseconds: 1000000 }");
    push(&w, 0, 1, 0);
    assert_string_equal(next_at(&w, 0), "0");       /* runs for 8 s          */
    push(&w, 1, 1, 10);
    assert_int_equal(w.policy->deadline_ns, 1010 * MS);
    assert_string_equal(expire_at(&w, 1010), "-1");
    assert_int_equal(w.policy->queued, 0);
    world_close(&w);
}

static void
a_timeout_beyond_all_time_is_none(void **state)
{
    (void) state;
    world_open(&w, 1, NULL, "max_queue_delay_microseconds:"
        " 18446744073709551615 preferred_batch_size: 1"
        " default_queue_policy {"
        " default_timeout_microseconds: 18446744073709551615 }");
    push(&w, 0, 1, 5);
    assert_true(w.policy->deadline_ns == INF_NEVER);
    assert_string_equal(next_at(&w, 5), "0");
    world_close(&w);
}

/* ---- scheduling.md 3.13 and 1.9: priorities ---------------- */

static void
a_better_level_goes_first_into_the_batch(void **state)
{
    (void) state;
    world_open(&w, 8, NULL, PREFER_4_8
        "priority_levels: 2 default_priority_level: 2");
    push(&w, 0, 2, 0);
    push(&w, 1, 1, 0);
    assert_string_equal(next_at(&w, 0), "wait 10000");
    w.requests[2].priority = 1;
    push(&w, 2, 2, 10);
    assert_string_equal(next_at(&w, 10), "2 0");
    assert_string_equal(next_at(&w, 10), "wait 10000");
    assert_string_equal(next_at(&w, 10000), "1");
    world_close(&w);
}

static void
an_unknown_priority_is_the_standard_one(void **state)
{
    (void) state;
    world_open(&w, 1, NULL, "priority_levels: 2 default_priority_level: 2");
    w.requests[0].priority = 7;
    w.requests[1].priority = 0;
    w.requests[2].priority = 1;
    push(&w, 0, 1, 0);
    push(&w, 1, 1, 0);
    push(&w, 2, 1, 0);
    assert_int_equal(w.requests[0].priority, 2);
    assert_int_equal(w.requests[1].priority, 2);
    assert_string_equal(next_at(&w, 0), "2");
    assert_string_equal(next_at(&w, 0), "0");
    assert_string_equal(next_at(&w, 0), "1");
    world_close(&w);

    world_open(&w, 1, NULL, "");
    w.requests[0].priority = 7;
    push(&w, 0, 1, 0);
    assert_int_equal(w.requests[0].priority, 0);
    world_close(&w);
}

static void
levels_without_number_can_be_many(void **state)
{
    (void) state;
    world_open(&w, 1, NULL, "priority_levels: 18446744073709551615"
        " default_priority_level: 1000");
    for (int i = 0; i < 60; i++) {
        w.requests[i].priority = UINT64_MAX - (uint64_t) (i * 7919) % 60;
        push(&w, i, 1, 0);
    }
    push(&w, 60, 1, 0);                     /* level 1000                    */
    uint64_t before = 0;
    for (int i = 0; i <= 60; i++) {
        int id = atoi(next_at(&w, 0));
        assert_true(w.requests[id].priority >= before);
        before = w.requests[id].priority;
    }
    assert_string_equal(next_at(&w, 0), "nothing");
    world_close(&w);
}

static void
each_level_has_its_own_policy(void **state)
{
    (void) state;
    world_open(&w, 4, NULL, "priority_levels: 3 default_priority_level: 2"
        " default_queue_policy { max_queue_size: 1 }"
        " priority_queue_policy [ { key: 3 value { timeout_action: DELAY"
        "   default_timeout_microseconds: 5000 } },"
        " { key: 1 value { default_timeout_microseconds: 7000 } } ]");
    for (int i = 0; i < 6; i++) {
        w.requests[i].priority = (uint64_t) i / 2 + 1;
    }
    push(&w, 0, 1, 0);
    push(&w, 1, 1, 0);
    push(&w, 2, 1, 0);
    push_rejected(&w, 3, 1, 0);
    push(&w, 4, 1, 0);
    push(&w, 5, 1, 2);
    assert_string_equal(expire_at(&w, 5), "");      /* 4 is delayed          */
    assert_string_equal(expire_at(&w, 7), "-0 1");
    assert_string_equal(next_at(&w, 7), "2 4 5");   /* 4 before 5: both are  */
    world_close(&w);
}

/* ---- scheduling.md 3.16, first half -------------------------------------- */

static void
a_set_of_optional_inputs_has_its_own_batch(void **state)
{
    (void) state;
    world_open(&w, 8, "{ name: 'IN' data_type: TYPE_INT32 dims: 4 },"
        " { name: 'MAY' data_type: TYPE_INT32 dims: 4 optional: true }", "");
    for (int i = 0; i < 4; i++) {
        give_input(i, i == 1 ? "MAY" : "IN", 1, 4);
        if (i < 2) {
            give_input(i, i == 1 ? "IN" : "MAY", 1, 4);
        }
        push(&w, i, 1, 0);
    }
    assert_string_equal(next_at(&w, 0), "0 1");     /* in any order          */
    assert_string_equal(next_at(&w, 0), "2 3");
    world_close(&w);
}

/* scheduling.md 10: Triton compares contents as C strings. */
static void
contents_of_shape_tensors_are_compared_to_the_last_byte(void **state)
{
    (void) state;
    static const int32_t data[3][2] = { { 3, 4 }, { 3, 4 }, { 3, 5 } };
    world_open(&w, 8, "{ name: 'IN' data_type: TYPE_INT32 dims: 2"
        " is_shape_tensor: true }", "");
    for (int i = 0; i < 3; i++) {
        give_input(i, "IN", 1, 2);
        assert_ok(inf_request_add_data(&w.requests[i],
            &w.requests[i].inputs[0], &(inf_buffer_t) {
                .base = data[i], .size = 8 }));
        push(&w, i, 1, 0);
    }
    assert_string_equal(next_at(&w, 0), "0 1");
    assert_string_equal(next_at(&w, 0), "2");
    world_close(&w);
}

/* ---- beyond the list ----------------------------------------------------- */

/* reference, "Algorithm": max_batch_size 0 */
static void
a_model_without_batches_runs_each_alone_but_by_priority(void **state)
{
    (void) state;
    world_open(&w, 0, NULL, "priority_levels: 2 default_priority_level: 2"
        " max_queue_delay_microseconds: 1000000");
    push(&w, 0, 0, 0);
    w.requests[1].priority = 1;
    push(&w, 1, 0, 0);
    assert_string_equal(next_at(&w, 0), "1");
    assert_string_equal(next_at(&w, 0), "0");
    world_close(&w);
}

/* A batch may pass the largest preferred size when one request jumps over. */
static void
a_late_batch_grows_up_to_the_maximum(void **state)
{
    (void) state;
    world_open(&w, 8, NULL, "preferred_batch_size: 4"
        " max_queue_delay_microseconds: 1000");
    push(&w, 0, 3, 0);
    push(&w, 1, 3, 0);
    push(&w, 2, 3, 0);
    assert_string_equal(next_at(&w, 1), "0 1");
    assert_string_equal(next_at(&w, 1), "2");
    world_close(&w);
}

static void
a_suspect_runs_alone(void **state)
{
    (void) state;
    world_open(&w, 8, NULL, PREFER_2_6);
    w.requests[1].suspect = true;
    push(&w, 0, 1, 0);
    push(&w, 1, 1, 0);
    push(&w, 2, 1, 0);
    assert_string_equal(next_at(&w, 0), "0");
    assert_string_equal(next_at(&w, 0), "1");
    assert_string_equal(next_at(&w, 0), "wait 10000");
    world_close(&w);
}

static void
a_cancelled_request_leaves_at_once_and_once(void **state)
{
    (void) state;
    world_open(&w, 8, NULL, "preferred_batch_size: [ 3, 6 ]"
        " max_queue_delay_microseconds: 10000000");
    push(&w, 0, 1, 0);
    push(&w, 1, 3, 1);
    assert_string_equal(next_at(&w, 1), "wait 10000");
    assert_true(cancel(&w, 0));
    assert_false(cancel(&w, 0));
    assert_int_equal(w.requests[0].state, INF_REQUEST_REJECTED);
    assert_string_equal(next_at(&w, 1), "1");       /* preferred now         */
    assert_false(cancel(&w, 1));
    world_close(&w);
}

/* scheduling.md 8.8 */
static void
a_delayed_request_can_be_cancelled(void **state)
{
    (void) state;
    world_open(&w, 8, NULL, PREFER_4_8 "default_queue_policy {"
        " timeout_action: DELAY default_timeout_microseconds: 1000 }");
    push(&w, 0, 1, 0);
    assert_string_equal(next_at(&w, 5), "wait 10000");
    assert_true(cancel(&w, 0));
    assert_string_equal(next_at(&w, 5), "nothing");
    world_close(&w);
}

/* scheduling.md 9.1: nothing waits for company when no company can come. */
static void
a_closing_batcher_waits_for_nobody(void **state)
{
    (void) state;
    world_open(&w, 8, NULL, PREFER_2_6);
    push(&w, 0, 3, 0);
    assert_string_equal(next_at(&w, 0), "wait 10000");
    w.policy->closing = true;
    assert_string_equal(next_at(&w, 0), "0");
    world_close(&w);
}

/* Likewise while no client is there. */
static void
a_batcher_that_leaves_waits_for_nobody_until_it_stays(void **state)
{
    (void) state;
    world_open(&w, 8, NULL, PREFER_2_6);
    push(&w, 0, 3, 0);
    w.policy->ops->leave(w.policy, true);
    assert_string_equal(next_at(&w, 0), "0");
    w.policy->ops->leave(w.policy, false);
    push(&w, 1, 3, 0);
    assert_string_equal(next_at(&w, 0), "wait 10000");
    world_close(&w);
}

/* A model that has lost its backend's process answers what is queued. */
static void
what_is_queued_can_be_taken_back_one_by_one(void **state)
{
    (void) state;
    world_open(&w, 8, NULL, PREFER_2_6);
    push(&w, 0, 3, 0);
    push(&w, 1, 1, 0);
    for (int i = 0; i < 2; i++) {
        inf_request_t *r = w.policy->ops->drop(w.policy);
        assert_ptr_equal(r, &w.requests[i]);
        assert_int_equal(r->state, INF_REQUEST_REJECTED);
        assert_int_equal(w.policy->queued, 1 - i);
    }
    assert_null(w.policy->ops->drop(w.policy));
    assert_string_equal(next_at(&w, 0), "nothing");
    world_close(&w);
}

static void
a_batcher_can_be_held_until_enough_are_queued(void **state)
{
    (void) state;
    setenv("TRITONSERVER_DELAY_SCHEDULER", "3", 1);
    world_open(&w, 8, NULL, "");
    unsetenv("TRITONSERVER_DELAY_SCHEDULER");
    push(&w, 0, 1, 0);
    push(&w, 1, 1, 0);
    assert_string_equal(next_at(&w, 100), "nothing");
    push(&w, 2, 1, 0);
    assert_string_equal(next_at(&w, 100), "0 1 2");
    push(&w, 3, 1, 0);                      /* once                          */
    assert_string_equal(next_at(&w, 100), "3");
    world_close(&w);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            a_preferred_size_leaves_at_once_others_after_the_delay),
        cmocka_unit_test(
            what_jumps_over_a_preferred_size_sends_what_was_there),
        cmocka_unit_test(what_has_waited_too_long_takes_all_that_fit),
        cmocka_unit_test(different_shapes_do_not_share_a_batch_unless_ragged),
        cmocka_unit_test(equal_shapes_share_a_batch_whatever_their_rows),
        cmocka_unit_test(without_delay_the_largest_preferred_size_goes_first),
        cmocka_unit_test(requests_join_until_an_instance_takes_the_batch),
        cmocka_unit_test(outputs_and_parameters_may_differ_within_a_batch),
        cmocka_unit_test(a_full_queue_rejects_and_what_runs_does_not_count),
        cmocka_unit_test(a_delayed_request_lets_others_pass_and_waits_on),
        cmocka_unit_test(a_rejected_request_leaves_at_its_time_to_the_tick),
        cmocka_unit_test(
            a_request_may_shorten_its_timeout_but_not_lengthen_it),
        cmocka_unit_test(
            a_request_may_name_a_timeout_where_the_model_has_none),
        cmocka_unit_test(
            a_request_names_no_timeout_that_would_break_the_order),
        cmocka_unit_test(a_timeout_does_not_wait_for_an_instance),
        cmocka_unit_test(a_timeout_beyond_all_time_is_none),
        cmocka_unit_test(a_better_level_goes_first_into_the_batch),
        cmocka_unit_test(an_unknown_priority_is_the_standard_one),
        cmocka_unit_test(levels_without_number_can_be_many),
        cmocka_unit_test(each_level_has_its_own_policy),
        cmocka_unit_test(a_set_of_optional_inputs_has_its_own_batch),
        cmocka_unit_test(
            contents_of_shape_tensors_are_compared_to_the_last_byte),
        cmocka_unit_test(
            a_model_without_batches_runs_each_alone_but_by_priority),
        cmocka_unit_test(a_late_batch_grows_up_to_the_maximum),
        cmocka_unit_test(a_suspect_runs_alone),
        cmocka_unit_test(a_cancelled_request_leaves_at_once_and_once),
        cmocka_unit_test(a_delayed_request_can_be_cancelled),
        cmocka_unit_test(a_closing_batcher_waits_for_nobody),
        cmocka_unit_test(
            a_batcher_that_leaves_waits_for_nobody_until_it_stays),
        cmocka_unit_test(what_is_queued_can_be_taken_back_one_by_one),
        cmocka_unit_test(a_batcher_can_be_held_until_enough_are_queued),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
