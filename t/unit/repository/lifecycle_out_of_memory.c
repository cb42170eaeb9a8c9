/* Every allocation of a load fails once, in turn: the load then fails or ends
   well all the same, other models serve on, and the next load ends well. */

#include "scarce_memory.h"

#include "repository/lifecycle_world.h"

#include "core/base/clock.h"
#include "core/base/log.h"

#if OWN_MALLOC

static lifecycle_world_t w;

static void
begin(void)
{
    static const char *const places[] = { "repo", NULL };

    lifecycle_world_begin(&w, places);
    assert_ok(inf_repositories_open(w.places, 1, false, inf_storage_open,
        &w.repositories));
    assert_ok(inf_lifecycle_new(&w.options, &w.lc));
    lifecycle_world_add_model(&w, "repo", "other", "backend: 'x'");
    lifecycle_world_add_model(&w, "repo", "m", "backend: 'x'"
        " parameters { key: 'k' value { string_value: 'v' } }");
    assert_ok(inf_lifecycle_load(w.lc, "other", NULL));
}

static bool
serves(const char *name)
{
    inf_registry_reader_t reader;
    inf_model_t *m;

    inf_registry_reader_init(&reader, &w.registry);
    inf_err_t *err = inf_registry_find(&reader, inf_slice_str(name), -1, &m);
    bool found = err == NULL;
    if (found) {
        inf_model_unref(m);
    }
    inf_err_free(err);
    inf_registry_reader_fini(&reader);
    return found;
}

/* Memory may have run out where it was to be published: then it comes when
   there is some. */
static void
wait_until_serving(void)
{
    uint64_t until = inf_clock_ns() + 60 * SECOND;

    while (!serves("m")) {
        assert_true(inf_clock_ns() < until);
        usleep(100);
    }
}

static void
wait_until_destroyed(void)
{
    uint64_t until = inf_clock_ns() + 60 * SECOND;

    while (fake_count("init m/1") != fake_count("fini m/1")) {
        assert_true(inf_clock_ns() < until);
        usleep(100);
    }
}

static void
unload(void)
{
    assert_ok(inf_lifecycle_unload(w.lc, "m", false));
    wait_until_destroyed();
    assert_false(serves("m"));
}

/* true: an allocation failed. */
static bool
load_with_failure(long n)
{
    countdown = n;
    inf_err_t *err = inf_lifecycle_load(w.lc, "m", NULL);
    bool reached = countdown <= 0;      /* two threads may count at once     */
    countdown = 0;

    assert_true(reached || err == NULL);
    if (err == NULL) {
        wait_until_serving();
    }
    inf_err_free(err);
    assert_true(serves("other"));
    return reached;
}

static void
fail_each_in_turn(void)
{
    long n = 1;

    while (load_with_failure(n)) {
        assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
        assert_true(serves("m"));
        unload();
        fake_reset();
        n++;
    }
    assert_true(n > 100);
    unload();
}

/* An object made once and kept is there after the first time; a block that one
   failure leaves behind is there twice after two more.  One more or less is
   the threads' own. */
static void
a_load_survives_every_failed_allocation(void **state)
{
    (void) state;
    uint64_t until = inf_clock_ns() + 300 * SECOND;

    begin();
    fail_each_in_turn();
    long before = live;
    fail_each_in_turn();
    fail_each_in_turn();
    while (live - before > 1) {         /* models may still be destroyed     */
        assert_true(inf_clock_ns() < until);
        usleep(1000);
    }
    lifecycle_world_end(&w);
}

#else

static void
a_load_survives_every_failed_allocation(void **state)
{
    (void) state;
    print_message("skipped: a sanitizer's allocator can't be replaced\n");
    skip();
}

#endif

int
main(void)
{
    alarm(540);
    inf_log_set_levels(false, false, false, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_load_survives_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
