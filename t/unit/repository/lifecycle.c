#include "repository/lifecycle_world.h"

#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/repository/lifecycle_parts.h"
#include "core/storage/storage_local.h"

/* Fake backends "x" and "y". */
static lifecycle_world_t w;
static _Atomic int published;

static void
changed(void *userp)
{
    (void) userp;
    published++;
}

static void
world_open(uint32_t threads)
{
    static const char *const places[] = { "repo", NULL };

    lifecycle_world_begin(&w, places);
    published = 0;
    tree_file(w.tree, "backends/y/libtriton_y.so", "");
    assert_ok(inf_repositories_open(w.places, 1, false, inf_storage_open,
        &w.repositories));
    w.options.changed = changed;
    w.core_config->values->load_threads = threads;
}

static void
world_start(void)
{
    assert_ok(inf_lifecycle_new(&w.options, &w.lc));
}

static void
world_close(void)
{
    lifecycle_world_end(&w);
}

static void
add_model(const char *name, const char *config)
{
    char path[300];
    char text[1024];

    snprintf(path, sizeof(path), "repo/%s/config.pbtxt", name);
    snprintf(text, sizeof(text), "%s" TENSORS, config);
    tree_file(w.tree, path, text);
}

static void
add_versions(const char *name, size_t count, const int64_t *versions)
{
    char dir[300];

    for (size_t i = 0; i < count; i++) {
        snprintf(dir, sizeof(dir), "repo/%s/%lld", name,
            (long long) versions[i]);
        tree_dir(w.tree, dir);
    }
}

/* Queues it, as one of those at the start. */
static void
load(const char *name, size_t count, const int64_t *versions)
{
    char *names[] = { (char *) (uintptr_t) name };

    add_versions(name, count, versions);
    assert_ok(inf_lifecycle_start(w.lc, false, names, 1, NULL,
        0));
}

#define VERSIONS(...)                                                        \
    sizeof((int64_t[]) { __VA_ARGS__ }) / sizeof(int64_t),                   \
    (const int64_t[]) { __VA_ARGS__ }

static const char *
rows(void)
{
    return index_rows(&w.index, w.lc);
}

static void
wait_for_row(const char *row)
{
    index_rows_wait(&w.index, w.lc, row);
}

static inf_err_t *
find(const char *name, int64_t version, inf_model_t **out)
{
    inf_registry_reader_t reader;

    inf_registry_reader_init(&reader, &w.registry);
    inf_err_t *err = inf_registry_find(&reader, inf_slice_str(name), version,
        out);
    inf_registry_reader_fini(&reader);
    return err;
}

static void
a_model_is_loaded_served_and_taken_apart_in_order(void **state)
{
    (void) state;
    inf_model_t *m;

    world_open(1);
    add_model("m", "backend: 'x' version_policy { all {} }"
        " instance_group { count: 2 kind: KIND_CPU } ");
    world_start();
    load("m", VERSIONS(1, 7));
    inf_lifecycle_wait(w.lc);

    assert_string_equal(fake.trace, "open x;init m/1;iinit m_0_0/1;"
        "iinit m_0_1/1;init m/7;iinit m_0_0/7;iinit m_0_1/7;");
    assert_string_equal(rows(), "m/1 READY \nm/7 READY \n");
    assert_true(inf_lifecycle_settled(w.lc));
    assert_true(inf_lifecycle_all_ready(w.lc));
    assert_true(published >= 2);
    assert_ok(find("m", -1, &m));
    assert_int_equal(m->version, 7);
    assert_int_equal(m->instance_count, 2);
    assert_string_equal(m->backend->name, "x");
    assert_non_null(m->sched.runner);
    inf_model_unref(m);

    assert_true(inf_lifecycle_stop(w.lc, 60 * SECOND));
    assert_int_equal(fake_count("ifini m_0_0/1"), 1);
    assert_int_equal(fake_count("ifini m_0_1/1"), 1);
    assert_int_equal(fake_count("fini m/1"), 1);
    assert_int_equal(fake_count("fini m/7"), 1);
    assert_true(fake_before("ifini m_0_0/1;", ";fini m/1;"));
    assert_true(fake_before("ifini m_0_1/1;", ";fini m/1;"));
    assert_true(fake_before("ifini m_0_1/7;", ";fini m/7;"));
    assert_int_equal(fake_count("close x"), 0);
    assert_string_equal(rows(),
        "m/1 UNAVAILABLE unloaded\nm/7 UNAVAILABLE unloaded\n");
    assert_error(find("m", 7, &m), INF_ERR_UNAVAILABLE,
        "Request for unknown model: 'm' version 7 is not at ready state");

    world_close();
}

static void
backends_are_opened_once_and_closed_last(void **state)
{
    (void) state;

    world_open(4);
    add_model("a", "backend: 'x' ");
    add_model("b", "backend: 'x' ");
    add_model("c", "backend: 'y' ");
    world_start();
    load("c", VERSIONS(1));
    load("a", VERSIONS(1));
    load("b", VERSIONS(1));
    inf_lifecycle_wait(w.lc);
    assert_string_equal(rows(), "a/1 READY \nb/1 READY \nc/1 READY \n");
    assert_int_equal(fake_count("open x"), 1);
    assert_int_equal(fake_count("open y"), 1);

    assert_true(inf_lifecycle_stop(w.lc, 60 * SECOND));
    inf_lifecycle_free(w.lc);
    assert_int_equal(fake_count("close x"), 1);
    assert_int_equal(fake_count("close y"), 1);
    assert_true(fake_before("fini a/1;", "close x;"));
    assert_true(fake_before("fini b/1;", "close x;"));
    world_start();
    world_close();
}

static void
settings_are_sorted_and_a_backends_own_win(void **state)
{
    (void) state;
    char want[4300];

    world_open(1);
    lifecycle_world_core_config(&w, core_config_of("backend_directories: '%s'"
        " backend_settings { key: 'zeta' value: 'all' }"
        " backend_settings { backend: 'y' key: 'zeta' value: 'y-s' }"
        " backend_settings { backend: 'x' key: 'zeta' value: 'x-s' }"
        " backend_settings { backend: 'x' key: 'default-max-batch-size'"
        " value: '8' } backend_settings { key: 'alpha' value: '1' }"
        " backend_settings { backend: 'x' key: 'alpha' value: '2' }"
        " backend_settings { key: 'alpha' value: '3' }", w.backends));
    add_model("m", "backend: 'x' ");
    world_start();
    load("m", VERSIONS(1));
    inf_lifecycle_wait(w.lc);
    snprintf(want, sizeof(want), "alpha=2;auto-complete-config=true;"
        "backend-directory=%s;default-max-batch-size=8;"
        "min-compute-capability=7.500000;zeta=x-s;", w.backends);
    assert_string_equal(fake.settings, want);
    world_close();
}

/* The python backend compares "<backend-directory>/python" with where it is. */
static void
the_setting_names_the_folder_the_library_is_in(void **state)
{
    (void) state;
    char first[4200];
    char second[4300];

    world_open(1);
    snprintf(first, sizeof(first), "%s/", w.backends);
    snprintf(second, sizeof(second), "%s2/", w.backends);
    tree_file(w.tree, "backends2/z/libtriton_z.so", "");
    lifecycle_world_core_config(&w, core_config_of("backend_directories: '%s'"
        " backend_directories: '%s'", first, second));
    add_model("a", "backend: 'x' ");
    add_model("b", "backend: 'z' ");
    world_start();

    load("a", VERSIONS(1));
    inf_lifecycle_wait(w.lc);
    first[strlen(first) - 1] = ';';
    assert_non_null(strstr(fake.settings, "backend-directory="));
    assert_non_null(strstr(fake.settings, first));
    first[strlen(first) - 1] = '/';

    load("b", VERSIONS(1));
    inf_lifecycle_wait(w.lc);
    second[strlen(second) - 1] = ';';
    assert_non_null(strstr(fake.settings, second));
    second[strlen(second) - 1] = '/';
    world_close();
}

/* C API reference, section 3: failure paths. */
static void
a_failing_model_init_is_finalized_once(void **state)
{
    (void) state;
    inf_model_t *m;

    world_open(1);
    add_model("m", "backend: 'x' version_policy { all {} } ");
    fake.fail = "init m/2";
    world_start();
    load("m", VERSIONS(1, 2));
    inf_lifecycle_wait(w.lc);
    assert_int_equal(fake_count("fini m/2"), 1);
    assert_int_equal(fake_count("iinit m_0/2"), 0);
    wait_for_row("m/1 UNAVAILABLE unloaded\n");    /* all or none         */
    assert_string_equal(rows(), "m/1 UNAVAILABLE unloaded\n"
        "m/2 UNAVAILABLE Unsupported: told to fail\n");
    assert_true(inf_lifecycle_settled(w.lc));
    assert_false(inf_lifecycle_all_ready(w.lc));
    assert_error(find("m", -1, &m), INF_ERR_NOT_FOUND,
        "'m' has no available versions");
    assert_error(find("m", 2, &m), INF_ERR_UNAVAILABLE,
        "version 2 is not at ready state");
    assert_true(inf_lifecycle_stop(w.lc, 60 * SECOND));
    assert_int_equal(fake_count("fini m/2"), 1);
    assert_int_equal(fake_count("fini m/1"), 1);
    world_close();
}

static void
failing_instance(bool parallel)
{
    world_open(1);
    fake.parallel = parallel;
    add_model("m", "backend: 'x' instance_group { count: 3 kind: KIND_CPU } ");
    fake.fail = "iinit m_0_1/1";
    world_start();
    load("m", VERSIONS(1));
    inf_lifecycle_wait(w.lc);

    for (int i = 0; i < 3; i++) {
        char call[32], fini[32];
        snprintf(call, sizeof(call), "iinit m_0_%d/1", i);
        snprintf(fini, sizeof(fini), "ifini m_0_%d/1", i);
        assert_int_equal(fake_count(call), 1);
        assert_int_equal(fake_count(fini), 1);
        snprintf(fini, sizeof(fini), "ifini m_0_%d/1;", i);
        assert_true(fake_before(fini, ";fini m/1;"));
    }
    if (!parallel) {                        /* its own finalizer at once     */
        assert_string_equal(fake.trace, "open x;init m/1;iinit m_0_0/1;"
            "iinit m_0_1/1;ifini m_0_1/1;iinit m_0_2/1;ifini m_0_0/1;"
            "ifini m_0_2/1;fini m/1;");
    }
    assert_int_equal(fake_count("fini m/1"), 1);
    assert_string_equal(rows(),
        "m/1 UNAVAILABLE Unavailable: no room (instance 'm_0_1')\n");
    world_close();
}

/* scheduling.md 9.8 */
static void
a_failing_instance_finalizes_all_of_them_and_the_model(void **state)
{
    (void) state;
    failing_instance(false);
    failing_instance(true);
}

static void
instances_load_in_parallel_if_the_backend_says_so(void **state)
{
    (void) state;
    world_open(1);
    fake.parallel = true;
    fake.hold_prefix = "iinit";
    add_model("m", "backend: 'x' instance_group { count: 4 kind: KIND_CPU } ");
    world_start();
    load("m", VERSIONS(1));
    fake_wait_held(4);                      /* all four are inside at once   */
    fake_release();
    inf_lifecycle_wait(w.lc);
    assert_string_equal(rows(), "m/1 READY \n");
    world_close();

    setenv("TRITON_PARALLEL_INSTANCE_LOADING", "0", 1);
    world_open(1);
    fake.parallel = true;
    add_model("m", "backend: 'x' instance_group { count: 3 kind: KIND_CPU } ");
    world_start();
    load("m", VERSIONS(1));
    inf_lifecycle_wait(w.lc);
    assert_string_equal(fake.trace, "open x;init m/1;iinit m_0_0/1;"
        "iinit m_0_1/1;iinit m_0_2/1;");
    world_close();

    setenv("TRITON_PARALLEL_INSTANCE_LOADING", "1", 1);
    world_open(1);
    fake.hold_prefix = "iinit";
    add_model("m", "backend: 'x' instance_group { count: 2 kind: KIND_CPU } ");
    world_start();
    load("m", VERSIONS(1));
    fake_wait_held(2);
    fake_release();
    inf_lifecycle_wait(w.lc);
    unsetenv("TRITON_PARALLEL_INSTANCE_LOADING");
    world_close();
}

static void
a_backend_that_failed_is_tried_again_by_the_next_model(void **state)
{
    (void) state;
    world_open(1);
    add_model("a", "backend: 'x' ");
    add_model("b", "backend: 'x' ");
    fake.fail = "open x";
    world_start();
    load("a", VERSIONS(1));
    inf_lifecycle_wait(w.lc);
    assert_string_equal(rows(),
        "a/1 UNAVAILABLE Internal: told to fail: open x\n");
    fake.fail = NULL;
    load("b", VERSIONS(1));
    inf_lifecycle_wait(w.lc);
    assert_int_equal(fake_count("open x"), 2);
    assert_int_equal(fake_count("init a/1"), 0);
    assert_int_equal(fake_count("fini a/1"), 0);
    assert_non_null(strstr(rows(), "b/1 READY \n"));
    world_close();
}

static void
one_bad_model_never_holds_up_others(void **state)
{
    (void) state;
    inf_model_t *m;

    world_open(2);
    add_model("bad_text", "backend: 'x' max_batch_size: } ");
    add_model("good1", "backend: 'x' ");
    add_model("good2", "backend: 'x' ");
    add_model("hangs", "backend: 'x' ");
    add_model("no_backend", "backend: 'nowhere' ");
    add_model("no_version", "backend: 'x' ");
    fake.hold = "init hangs/1";
    world_start();
    load("hangs", VERSIONS(1));
    fake_wait_held(1);
    load("bad_text", VERSIONS(1));
    load("no_backend", VERSIONS(1));
    load("no_version", 0, NULL);
    load("good1", VERSIONS(1));
    load("good2", VERSIONS(3));

    wait_for_row("good2/3 READY");
    assert_non_null(strstr(w.index.text, "good1/1 READY \n"));
    assert_non_null(strstr(w.index.text, "hangs/1 LOADING \n"));
    assert_non_null(strstr(w.index.text, "bad_text/-1 UNAVAILABLE "));
    assert_non_null(strstr(w.index.text, "config.pbtxt:1:"));
    assert_non_null(strstr(w.index.text, "no_backend/1 UNAVAILABLE Invalid"
        " argument: unable to find backend library for backend 'nowhere'"));
    assert_non_null(strstr(w.index.text, "no_version/-1 UNAVAILABLE at least"
        " one version must be available under the version policy of model"
        " 'no_version'"));
    assert_false(inf_lifecycle_settled(w.lc));
    assert_false(inf_lifecycle_all_ready(w.lc));
    assert_ok(find("good1", -1, &m));
    inf_model_unref(m);
    assert_error(find("hangs", 1, &m), INF_ERR_UNAVAILABLE,
        "version 1 is not at ready state");
    assert_error(find("bad_text", -1, &m), INF_ERR_NOT_FOUND,
        "'bad_text' is not found");
    assert_error(find("no_version", -1, &m), INF_ERR_NOT_FOUND,
        "'no_version' has no available versions");
    assert_error(find("no_version", 1, &m), INF_ERR_NOT_FOUND,
        "'no_version' version 1 is not found");

    /* rows come by name */
    const char *last = "";
    for (char *line = strtok(w.index.text, "\n"); line != NULL;
        line = strtok(NULL, "\n"))
    {
        assert_true(strcmp(last, line) < 0);
        last = line;
    }

    fake_release();
    inf_lifecycle_wait(w.lc);
    assert_non_null(strstr(rows(), "hangs/1 READY \n"));
    world_close();
}

static void
names_that_no_model_can_have_leave_nothing(void **state)
{
    (void) state;
    static const char *const names[] = { "..", "a/b", "a\nb", "\xff" };

    world_open(1);
    world_start();
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_error(inf_lifecycle_load(w.lc, names[i], NULL),
            INF_ERR_INTERNAL, "failed to poll");
    }
    assert_string_equal(rows(), "");
    world_close();
}

/* However many of them: who hangs too long is replaced, and no longer. */
static void
loads_that_hang_hold_up_no_others(void **state)
{
    (void) state;
    world_open(1);
    fake.hold_prefix = "init bad";
    add_model("bad_1", "backend: 'x'");
    add_model("bad_2", "backend: 'x'");
    add_model("good_1", "backend: 'x'");
    add_model("good_2", "backend: 'x'");
    world_start();
    inf_lock(&w.lc->lock);
    w.lc->patience_ns = SECOND / 50;
    inf_unlock(&w.lc->lock);

    load("bad_1", VERSIONS(1));
    load("bad_2", VERSIONS(1));
    fake_wait_held(2);
    load("good_1", VERSIONS(1));
    load("good_2", VERSIONS(1));
    wait_for_row("good_1/1 READY \n");
    wait_for_row("good_2/1 READY \n");
    inf_lock(&w.lc->lock);
    assert_int_equal(w.lc->running, 3);
    inf_unlock(&w.lc->lock);

    fake_release();
    inf_lifecycle_wait(w.lc);
    assert_string_equal(rows(), "bad_1/1 READY \nbad_2/1 READY \n"
        "good_1/1 READY \ngood_2/1 READY \n");
    inf_lock(&w.lc->lock);
    for (int i = 0; i < 3000 && w.lc->running > 1; i++) {
        inf_unlock(&w.lc->lock);
        usleep(1000);
        inf_lock(&w.lc->lock);
    }
    assert_int_equal(w.lc->running, 1);
    assert_int_equal(w.lc->enough, 1);
    inf_unlock(&w.lc->lock);
    world_close();
}

static void
stop_waits_for_references_held_elsewhere(void **state)
{
    (void) state;
    inf_model_t *m;

    world_open(1);
    add_model("m", "backend: 'x' ");
    world_start();
    load("m", VERSIONS(1));
    inf_lifecycle_wait(w.lc);
    assert_ok(find("m", -1, &m));

    assert_false(inf_lifecycle_stop(w.lc, 20000000));
    assert_int_equal(fake_count("fini m/1"), 0);
    assert_int_equal(fake_count("ifini m_0/1"), 0);
    assert_string_equal(rows(), "m/1 UNLOADING \n");
    inf_request_t r;                        /* the reference serves no more  */
    inf_request_init(&r);
    inf_err_t *err = inf_runner_submit(m->sched.runner, &r, 0);
    assert_error(err, INF_ERR_UNAVAILABLE, "Server is stopping");
    inf_request_fini(&r);

    inf_model_unref(m);
    assert_true(inf_lifecycle_stop(w.lc, 60 * SECOND));
    assert_int_equal(fake_count("fini m/1"), 1);
    world_close();
}

static void *
wait_for_idle(void *arg)
{
    inf_lifecycle_wait(arg);
    return NULL;
}

static void *
release_soon(void *arg)
{
    (void) arg;
    usleep(20000);
    fake_release();
    return NULL;
}

static void
stop_finishes_the_running_load_and_drops_the_queued(void **state)
{
    (void) state;
    pthread_t waiter, releaser;

    world_open(1);
    add_model("a", "backend: 'x' ");
    add_model("b", "backend: 'x' ");
    fake.hold = "init a/1";
    world_start();
    load("a", VERSIONS(1));
    fake_wait_held(1);
    load("b", VERSIONS(1));
    assert_int_equal(pthread_create(&waiter, NULL, wait_for_idle, w.lc), 0);
    assert_int_equal(pthread_create(&releaser, NULL, release_soon, NULL), 0);
    assert_true(inf_lifecycle_stop(w.lc, 60 * SECOND));
    pthread_join(waiter, NULL);
    pthread_join(releaser, NULL);
    assert_int_equal(fake_count("fini a/1"), 1);
    assert_int_equal(fake_count("init b/1"), 0);
    assert_true(inf_lifecycle_settled(w.lc));

    /* nothing is queued any more that nobody would load */
    assert_error(inf_lifecycle_load(w.lc, "b", NULL), INF_ERR_UNAVAILABLE,
        "stopping");
    inf_lifecycle_wait(w.lc);
    world_close();
}

/* Sixty models on four loaders, requests meanwhile, every end exactly once. */
static void
many_models_load_and_end_exactly_once(void **state)
{
    (void) state;
    enum { COUNT = 60 };
    char name[32], call[64];

    world_open(4);
    fake.fail = "init m30/1";
    for (int i = 0; i < COUNT; i++) {
        snprintf(name, sizeof(name), "m%d", i);
        add_model(name, i % 2 ? "backend: 'x' " : "backend: 'y' ");
    }
    world_start();
    for (int i = COUNT; i-- > 0; ) {
        snprintf(name, sizeof(name), "m%d", i);
        load(name, VERSIONS(1));
        inf_model_t *m;
        inf_err_t *err = find("m59", -1, &m);
        if (err == NULL) {
            inf_model_unref(m);
        }
        inf_err_free(err);
    }
    inf_lifecycle_wait(w.lc);
    int ready = 0;
    for (const char *p = rows(); (p = strstr(p, "READY")) != NULL; p++) {
        ready++;
    }
    assert_int_equal(ready, COUNT - 1);
    assert_true(inf_lifecycle_stop(w.lc, 60 * SECOND));
    for (int i = 0; i < COUNT; i++) {
        snprintf(call, sizeof(call), "init m%d/1", i);
        assert_int_equal(fake_count(call), 1);
        snprintf(call, sizeof(call), "fini m%d/1", i);
        assert_int_equal(fake_count(call), 1);
        snprintf(call, sizeof(call), "ifini m%d_0/1", i);
        assert_int_equal(fake_count(call), i != 30);
    }
    world_close();
}

int
main(void)
{
    alarm(540);
    inf_log_set_levels(false, false, false, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_is_loaded_served_and_taken_apart_in_order),
        cmocka_unit_test(backends_are_opened_once_and_closed_last),
        cmocka_unit_test(settings_are_sorted_and_a_backends_own_win),
        cmocka_unit_test(the_setting_names_the_folder_the_library_is_in),
        cmocka_unit_test(a_failing_model_init_is_finalized_once),
        cmocka_unit_test(
            a_failing_instance_finalizes_all_of_them_and_the_model),
        cmocka_unit_test(instances_load_in_parallel_if_the_backend_says_so),
        cmocka_unit_test(
            a_backend_that_failed_is_tried_again_by_the_next_model),
        cmocka_unit_test(one_bad_model_never_holds_up_others),
        cmocka_unit_test(names_that_no_model_can_have_leave_nothing),
        cmocka_unit_test(loads_that_hang_hold_up_no_others),
        cmocka_unit_test(stop_waits_for_references_held_elsewhere),
        cmocka_unit_test(stop_finishes_the_running_load_and_drops_the_queued),
        cmocka_unit_test(many_models_load_and_end_exactly_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
