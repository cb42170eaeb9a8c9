/* The thread that polls the repositories: when, and how often. */

#include "repository/lifecycle_world.h"

#include <sys/resource.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/log.h"

#define HOUR      (UINT64_C(3600) * SECOND)
#define SETTLE_NS 1000000u

static lifecycle_world_t w;

static int
setup(void **state)
{
    static const char *const places[] = { "repo", NULL };

    (void) state;
    lifecycle_world_begin(&w, places);
    assert_ok(inf_repositories_open(w.places, 1, false, inf_storage_open,
        &w.repositories));
    assert_ok(inf_lifecycle_new(&w.options, &w.lc));
    assert_ok(inf_poll_new(w.lc, w.pollers, SETTLE_NS, &w.poll));
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    lifecycle_world_end(&w);
    return 0;
}

static void
add_model(const char *name)
{
    lifecycle_world_add_model(&w, "repo", name, "backend: 'x'");
}

static uint64_t
polls(bool early)
{
    uint64_t all, soon;

    inf_poll_counts(w.poll, &all, &soon);
    return early ? soon : all - soon;
}

/* The gap after a poll is 20 times as long as that took, so that no bound would
   hold on a machine that is full: main's alarm ends what hangs. */
static void
wait_for_polls(bool early, uint64_t count)
{
    while (polls(early) < count) {
        usleep(1000);
    }
}

static void
wait_for_row(const char *row)
{
    while (strstr(index_rows(&w.index, w.lc), row) == NULL) {
        usleep(1000);
    }
}

static void
a_change_is_followed_long_before_the_interval_has_passed(void **state)
{
    (void) state;
    assert_ok(inf_poll_set(w.poll, HOUR, true));
    add_model("m");
    wait_for_row("m/1 READY \n");
    tree_file(w.tree, "repo/m/1/data", "other");
    while (fake_count("init m/1") < 2) {
        usleep(1000);
    }
    assert_int_equal(rename(tree_path(w.tree, "repo/m"),
        tree_path(w.tree, "away")), 0);
    wait_for_row("m/1 UNAVAILABLE unloaded\n");
    assert_int_equal(rename(tree_path(w.tree, "away"),
        tree_path(w.tree, "repo/m")), 0);
    wait_for_row("m/1 READY \n");           /* though it is just the same    */
    assert_int_equal(polls(false), 0);
}

static void
what_lay_there_before_the_watch_is_seen(void **state)
{
    (void) state;
    add_model("m");
    assert_ok(inf_poll_set(w.poll, HOUR, true));
    wait_for_row("m/1 READY \n");
}

static void
the_interval_counts_without_a_watch(void **state)
{
    (void) state;
    assert_ok(inf_poll_set(w.poll, SECOND / 100, false));
    wait_for_polls(false, 3);
    add_model("m");
    wait_for_row("m/1 READY \n");
    assert_int_equal(polls(true), 0);
}

static void
the_interval_counts_when_inotify_fails(void **state)
{
    (void) state;
    struct rlimit old, none;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    int next = dup(0);
    assert_true(next >= 0);
    close(next);
    none = old;                             /* room for listings, no more    */
    none.rlim_cur = (rlim_t) next;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_ok(inf_poll_set(w.poll, SECOND / 20, true));
    wait_for_polls(false, 2);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    add_model("m");
    wait_for_row("m/1 READY \n");
}

/* Early polls don't put off the others either. */
static void
a_storm_of_events_does_not_make_it_poll_all_the_time(void **state)
{
    (void) state;
    add_model("m");
    uint64_t start = inf_clock_ns();
    assert_ok(inf_poll_set(w.poll, 3 * SECOND, true));

    for (int i = 0; polls(false) < 2 || polls(true) < 1; i++) {
        tree_file(w.tree, i % 2 ? "repo/m/log" : "repo/other", "x");
    }
    uint64_t early = polls(true), whole = polls(false);
    uint64_t seconds = (inf_clock_ns() - start) / SECOND;
    assert_in_range(early, 1, seconds + 1);
    assert_in_range(whole, 2, seconds / 3 + 1);
}

static void
what_failed_is_not_tried_again_by_events_elsewhere(void **state)
{
    (void) state;
    fake.fail = "init m/1";
    add_model("m");
    assert_ok(inf_poll_set(w.poll, HOUR, true));
    wait_for_row("m/1 UNAVAILABLE ");
    int tried = fake_count("init m/1");

    for (uint64_t i = 1; i <= 2; i++) {
        uint64_t before = polls(true);
        tree_file(w.tree, "repo/notes", "x");
        wait_for_polls(true, before + 1);
    }
    inf_lifecycle_wait(w.lc);
    assert_int_equal(fake_count("init m/1"), tried);

    fake.fail = NULL;
    tree_file(w.tree, "repo/m/1/data", "mended");
    wait_for_row("m/1 READY \n");
}

static void
what_failed_is_tried_again_when_the_interval_has_passed(void **state)
{
    (void) state;
    fake.fail = "init m/1";
    add_model("m");
    assert_ok(inf_poll_set(w.poll, SECOND / 50, true));
    while (fake_count("init m/1") < 3) {
        usleep(1000);
    }
    fake.fail = NULL;
    wait_for_row("m/1 READY \n");
}

static void
it_is_turned_off_and_on_and_off(void **state)
{
    (void) state;
    for (int i = 0; i < 20; i++) {
        uint64_t before = polls(false);
        assert_ok(inf_poll_set(w.poll, SECOND / 1000, i % 2 == 0));
        wait_for_polls(false, before + 1);
        assert_ok(inf_poll_set(w.poll, 0, true));
    }
    add_model("m");
    usleep(50000);
    inf_lifecycle_wait(w.lc);
    assert_string_equal(index_rows(&w.index, w.lc), "");
    assert_ok(inf_poll_set(w.poll, SECOND / 1000, false));
    wait_for_row("m/1 READY \n");
}

/* It waits for the files to hold still. */
static void
a_poll_in_progress_is_given_up(void **state)
{
    (void) state;
    inf_poll_free(w.poll);
    assert_ok(inf_poll_new(w.lc, w.pollers, HOUR, &w.poll));
    add_model("m");
    while (polls(false) == 0) {
        assert_ok(inf_poll_set(w.poll, SECOND / 1000, false));
        usleep(50000);
        assert_ok(inf_poll_set(w.poll, 0, false));
        usleep(50000);
    }
    assert_int_equal(fake_count("init m/1"), 0);
    inf_poll_stop(w.poll);
    assert_ok(inf_poll_set(w.poll, SECOND, false));     /* too late          */
}

int
main(void)
{
    alarm(540);
    inf_log_set_levels(false, false, false, 0);
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_change_is_followed_long_before_the_interval_has_passed),
        T(what_lay_there_before_the_watch_is_seen),
        T(the_interval_counts_without_a_watch),
        T(the_interval_counts_when_inotify_fails),
        T(a_storm_of_events_does_not_make_it_poll_all_the_time),
        T(what_failed_is_not_tried_again_by_events_elsewhere),
        T(what_failed_is_tried_again_when_the_interval_has_passed),
        T(it_is_turned_off_and_on_and_off),
        T(a_poll_in_progress_is_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
