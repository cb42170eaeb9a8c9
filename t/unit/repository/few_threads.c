/* Work is done later, or an error is told, where no thread can be started. */

#include "repository/remote_storage.h"
#include "repository/lifecycle_world.h"

#include <errno.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/repository/repository_change.h"

static const char *const places[] = { "local", "remote1", NULL };

static lifecycle_world_t w;
static inf_repository_change_t *change;
static inf_repository_desired_t desired;
static _Atomic int failing;             /* threads that won't start from now */

int __real_pthread_create(pthread_t *t, const pthread_attr_t *a,
    void *(*main)(void *arg), void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *a,
    void *(*main)(void *arg), void *arg);

/* Like the C library where there is no memory for a stack: *t stays. */
int
__wrap_pthread_create(pthread_t *t, const pthread_attr_t *a,
    void *(*main)(void *arg), void *arg)
{
    if (failing > 0) {
        failing--;
        return EAGAIN;
    }

    return __real_pthread_create(t, a, main, arg);
}

static int
setup(void **state)
{
    (void) state;
    remote_reset();
    lifecycle_world_begin(&w, places);
    assert_ok(inf_repositories_open(w.places, 2, false, remote_open,
        &w.repositories));
    assert_ok(inf_lifecycle_new(&w.options, &w.lc));
    desired = (inf_repository_desired_t) {
        .addresses = w.places, .count = 2,
        .models = { .all = true }
    };
    assert_ok(inf_repository_change_new(w.lc, w.pollers, &desired,
        &change));
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    failing = 0;
    inf_repository_change_stop(change);
    inf_pollers_stop(w.pollers);
    assert_true(inf_lifecycle_stop(w.lc, 60 * SECOND));
    inf_repository_change_free(change);
    lifecycle_world_end(&w);
    return 0;
}

static void
start(void)
{
    assert_ok(inf_lifecycle_start(w.lc, true, NULL, 0, NULL, 0));
    inf_repository_change_begin(change);
}

static void
wait_until_done(void)
{
    inf_repository_change_wait(change);
    inf_lifecycle_wait(w.lc);
}

static void
wait_for_call(const char *call)
{
    uint64_t until = inf_clock_ns() + 60 * SECOND;

    while (fake_count(call) == 0) {
        assert_true(inf_clock_ns() < until);
        usleep(1000);
    }
}

/* It has no row any more, and no thread to end in yet. */
static void
a_model_that_was_unloaded_is_destroyed_when_a_thread_can_start(void **state)
{
    (void) state;
    inf_registry_reader_t reader;
    inf_model_t *m;

    lifecycle_world_add_model(&w, "local", "m", "backend: 'x'");
    start();
    wait_until_done();
    inf_registry_reader_init(&reader, &w.registry);
    assert_ok(inf_registry_find(&reader, INF_SLICE("m"), -1, &m));
    inf_registry_reader_fini(&reader);
    assert_ok(inf_lifecycle_unload(w.lc, "m", false));
    assert_int_equal(fake_count("fini m/1"), 0);

    failing = 1;
    inf_model_unref(m);
    wait_for_call("fini m/1");
    assert_int_equal(failing, 0);
    index_rows_wait(&w.index, w.lc, "m/1 UNAVAILABLE unloaded");
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
}

/* The failure is reported, the start goes on, and another try finds what lies
   there. */
static void
a_repository_that_no_thread_lists_has_failed(void **state)
{
    (void) state;
    lifecycle_world_add_model(&w, "local", "local", "backend: 'x'");
    lifecycle_world_add_model(&w, "remote1", "away", "backend: 'x'");
    assert_ok(inf_lifecycle_start(w.lc, true, NULL, 0, NULL, 0));
    inf_lifecycle_wait(w.lc);
    failing = 1;
    inf_repository_change_begin(change);
    wait_until_done();
    assert_int_equal(failing, 0);
    assert_int_equal(remote_asked(), 0);
    assert_string_equal(index_rows(&w.index, w.lc), "local/1 READY \n");
    assert_true(inf_lifecycle_settled(w.lc));
    assert_false(inf_lifecycle_all_ready(w.lc));

    assert_error(inf_lifecycle_repository_index(w.lc, false, index_rows_add,
        &w.index), INF_ERR_INTERNAL, "remote1' can't be listed: cannot start"
        " thread");
    wait_until_done();
    assert_string_equal(index_rows(&w.index, w.lc), "away/1 READY \n"
        "local/1 READY \n");
    assert_true(inf_lifecycle_all_ready(w.lc));
}

int
main(void)
{
    alarm(540);
    inf_log_set_levels(false, false, false, 0);
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_model_that_was_unloaded_is_destroyed_when_a_thread_can_start),
        T(a_repository_that_no_thread_lists_has_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
