/* Polls of repositories of which some are remote. */

#include "repository/remote_storage.h"
#include "repository/lifecycle_world.h"

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/repository/repository_change.h"

#define SETTLE_NS 1000000u
#define OFTEN_NS  (SECOND / 100)

static const char *const places[] = { "local", "remote1", "remote2", NULL };

static lifecycle_world_t w;
static inf_repository_change_t *change;

static int
setup(void **state)
{
    (void) state;
    remote_reset();
    lifecycle_world_begin(&w, places);
    assert_ok(inf_repositories_open(w.places, 3, false, remote_open,
        &w.repositories));
    assert_ok(inf_lifecycle_new(&w.options, &w.lc));
    assert_ok(inf_poll_new(w.lc, w.pollers, SETTLE_NS, &w.poll));
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    fake_release();
    inf_repository_change_stop(change);
    inf_poll_stop(w.poll);
    inf_pollers_stop(w.pollers);
    assert_true(inf_lifecycle_stop(w.lc, 60 * SECOND));
    inf_repository_change_free(change);
    lifecycle_world_end(&w);
    assert_int_equal(remote_opened(), 0);
    return 0;
}

static void
add_model(int place, const char *name)
{
    lifecycle_world_add_model(&w, places[place], name, "backend: 'x'");
}

static void
move(const char *from, const char *to)
{
    char *source = strdup(tree_path(w.tree, from));
    assert_int_equal(rename(source, tree_path(w.tree, to)), 0);
    free(source);
}

/* All that lies there is loaded, as far as it can be listed. */
static void
start(void)
{
    const inf_repository_desired_t desired = {
        .addresses = w.places, .count = 3,
        .models = { .all = true }
    };
    assert_ok(inf_repository_change_new(w.lc, w.pollers, &desired,
        &change));
    assert_ok(inf_lifecycle_start(w.lc, true, NULL, 0, NULL, 0));
    inf_repository_change_begin(change);
    inf_repository_change_wait(change);
    inf_lifecycle_wait(w.lc);
}

static bool
has_row(const char *row)
{
    return strstr(index_rows(&w.index, w.lc), row) != NULL;
}

static void
wait_for_row(const char *row)
{
    index_rows_wait(&w.index, w.lc, row);
}

static void
wait_for_polls(unsigned count)
{
    uint64_t until = inf_clock_ns() + 60 * SECOND;
    uint64_t all, early, before;

    inf_poll_counts(w.poll, &before, &early);
    do {
        assert_true(inf_clock_ns() < until);
        usleep(1000);
        inf_poll_counts(w.poll, &all, &early);
    } while (all < before + count);
}

static void
a_silent_repository_holds_up_no_poll_of_the_others(void **state)
{
    (void) state;
    add_model(0, "local");
    add_model(1, "one");
    add_model(2, "two");
    start();
    assert_true(inf_lifecycle_all_ready(w.lc));
    remote_set("remote1", NULL);
    assert_ok(inf_poll_set(w.poll, OFTEN_NS, false));
    remote_wait_for(1);

    add_model(0, "local2");
    add_model(2, "two2");
    add_model(1, "one2");
    wait_for_row("local2/1 READY");
    wait_for_row("two2/1 READY");
    move("local/local", "gone");
    move("remote2/two", "gone2");
    wait_for_row("local/1 UNAVAILABLE unloaded");
    wait_for_row("two/1 UNAVAILABLE unloaded");
    wait_for_polls(3);
    assert_true(has_row("one/1 READY"));
    assert_false(has_row("one2"));

    remote_set(NULL, NULL);
    wait_for_row("one2/1 READY");
    assert_int_equal(fake_count("init one/1"), 1);
}

static void
a_listing_that_fails_unloads_nothing_and_holds_up_nothing_new(void **state)
{
    (void) state;
    add_model(1, "one");
    add_model(2, "two");
    start();
    remote_set(NULL, "remote1");
    move("remote1/one", "gone");
    add_model(0, "local");
    assert_ok(inf_poll_once(w.poll, true));
    assert_true(has_row("local/1 READY"));
    assert_true(has_row("one/1 READY"));
    remote_set(NULL, NULL);
    assert_ok(inf_poll_once(w.poll, true));
    wait_for_row("one/1 UNAVAILABLE unloaded");
}

static void
a_name_on_both_sides_is_found_and_released(void **state)
{
    (void) state;
    add_model(0, "m");
    start();
    add_model(1, "m");
    assert_ok(inf_poll_once(w.poll, true));
    wait_for_row("m/1 UNAVAILABLE unloaded");
    assert_ok(inf_poll_once(w.poll, true));
    assert_true(has_row("m/1 UNAVAILABLE unloaded"));
    move("local/m", "gone");
    assert_ok(inf_poll_once(w.poll, true));
    assert_true(has_row("m/1 READY"));
    move("remote1/m", "remote2/m");     /* no poll sees it in both           */
    assert_ok(inf_poll_once(w.poll, true));
    assert_ok(inf_poll_once(w.poll, true));
    assert_true(has_row("m/1 READY"));
    assert_int_equal(fake_count("init m/1"), 3);
}

/* It has gone from there and is local now: a poll of the local repositories
   doesn't take it for a name in two. */
static void
a_model_that_becomes_local_is_not_lost(void **state)
{
    (void) state;
    add_model(1, "m");
    start();
    assert_ok(inf_poll_set(w.poll, OFTEN_NS, false));
    wait_for_polls(2);
    move("remote1/m", "local/m");
    while (fake_count("init m/1") < 2) {
        usleep(1000);
    }
    wait_for_row("m/1 READY");
}

static void
what_was_never_listed_is_tried_with_each_poll(void **state)
{
    (void) state;
    add_model(1, "one");
    remote_set(NULL, "remote1");
    start();
    assert_true(inf_lifecycle_settled(w.lc));
    assert_false(inf_lifecycle_all_ready(w.lc));
    assert_ok(inf_poll_set(w.poll, OFTEN_NS, false));
    wait_for_polls(2);
    assert_false(has_row("one"));
    remote_set(NULL, NULL);
    wait_for_row("one/1 READY");
    while (!inf_lifecycle_all_ready(w.lc)) {
        usleep(1000);
    }
}

/* Its storage is closed; others go on being polled. */
static void
a_repository_that_went_is_not_polled(void **state)
{
    (void) state;
    const inf_repository_desired_t fewer = {
        .addresses = w.places, .count = 2,
        .models = { .all = true }
    };

    add_model(1, "one");
    add_model(2, "two");
    start();
    assert_ok(inf_poll_set(w.poll, OFTEN_NS, false));
    wait_for_polls(2);
    assert_ok(inf_repository_change_ask(change, &fewer));
    wait_for_row("two/1 UNAVAILABLE unloaded");
    while (remote_opened() > 1) {
        usleep(1000);
    }
    add_model(1, "one2");
    wait_for_row("one2/1 READY");
}

static void
the_end_cuts_a_poll_short(void **state)
{
    (void) state;
    start();
    remote_set("remote1", NULL);
    assert_ok(inf_poll_set(w.poll, OFTEN_NS, false));
    remote_wait_for(1);
}

int
main(void)
{
    alarm(540);
    inf_log_set_levels(false, false, false, 0);
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_silent_repository_holds_up_no_poll_of_the_others),
        T(a_listing_that_fails_unloads_nothing_and_holds_up_nothing_new),
        T(a_name_on_both_sides_is_found_and_released),
        T(a_model_that_becomes_local_is_not_lost),
        T(what_was_never_listed_is_tried_with_each_poll),
        T(a_repository_that_went_is_not_polled),
        T(the_end_cuts_a_poll_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
