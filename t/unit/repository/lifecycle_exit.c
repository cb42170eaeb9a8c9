/* A backend's process dies: its version goes, is finalized and comes back.
   The processes are real, the backend isn't. */

#include "repository/index_rows.h"
#include "temp_tree.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/repository/lifecycle_parts.h"
#include "core/storage/storage.h"
#include "core_config_of.h"
#include "repository/fake_plugin.h"

#define SECOND UINT64_C(1000000000)

typedef struct {
    char                   *tree;
    inf_core_config_t      *core_config;
    inf_repositories_t      repositories;
    inf_registry_t          registry;
    inf_lifecycle_t        *lc;
    inf_plugin_ops_t        ops;
    inf_lifecycle_options_t options;
    index_rows_t            index;
    _Atomic int             child;          /* the last; 0: none             */
    _Atomic int             children;       /* forked so far                 */
    pthread_mutex_t         lock;
    pthread_cond_t          published;
    unsigned                changes;
} world_t;

static world_t w;

static void
changed(void *userp)
{
    (void) userp;
    pthread_mutex_lock(&w.lock);
    w.changes++;
    pthread_cond_broadcast(&w.published);
    pthread_mutex_unlock(&w.lock);
}

/* As a backend with stubs: one process an instance. */
static inf_err_t *
forking_init(inf_instance_t *i)
{
    inf_err_t *err = fake_instance_init(i);
    if (err != NULL) {
        return err;
    }

    pid_t pid = fork();
    if (pid == 0) {
        for (;;) {
            pause();
        }
    }
    i->state = (void *) (intptr_t) pid;
    w.child = pid;
    w.children++;
    return NULL;
}

/* It waits for its process itself. */
static void
forking_fini(inf_instance_t *i)
{
    pid_t pid = (pid_t) (intptr_t) i->state;

    if (i->abi.initialized && pid > 0) {
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    fake_instance_fini(i);
}

static int
setup(void **state)
{
    (void) state;

    fake_reset();
    memset(&w, 0, sizeof(w));
    pthread_mutex_init(&w.lock, NULL);
    pthread_cond_init(&w.published, NULL);
    w.tree = tree_new();
    tree_file(w.tree, "backends/x/libtriton_x.so", "");
    tree_file(w.tree, "repo/m/config.pbtxt", "backend: 'x' input { name: 'A'"
        " data_type: TYPE_FP32 dims: 1 } output { name: 'B' data_type:"
        " TYPE_FP32 dims: 1 } version_policy { all {} }");
    tree_dir(w.tree, "repo/m/1");
    w.core_config = core_config_of("backend_directories: '%s' auto_complete:"
        " false code_upload: true load_threads: 2",
        tree_path(w.tree, "backends"));
    char *address = strdup(tree_path(w.tree, "repo"));
    assert_ok(inf_repositories_open(&address, 1, false, inf_storage_open,
        &w.repositories));
    free(address);
    inf_registry_init(&w.registry);
    w.ops = fake_ops;
    w.ops.instance_init = forking_init;
    w.ops.instance_fini = forking_fini;
    w.options = (inf_lifecycle_options_t) {
        .plugins = &w.ops,
        .registry = &w.registry,
        .repositories = &w.repositories,
        .changed = changed,
        .core_config = w.core_config
    };
    assert_ok(inf_lifecycle_new(&w.options, &w.lc));
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    fake_release();
    assert_true(inf_lifecycle_stop(w.lc, 60 * SECOND));
    inf_lifecycle_free(w.lc);
    inf_registry_fini(&w.registry);
    inf_repositories_close(&w.repositories);
    tree_free(w.tree);
    inf_core_config_unref(w.core_config);
    fake_reset();
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);   /* none is left      */
    return 0;
}

static const char *
rows(void)
{
    return index_rows(&w.index, w.lc);
}

/* Every change of the index is published. */
static void
wait_rows(const char *part)
{
    pthread_mutex_lock(&w.lock);
    for (;;) {
        unsigned seen = w.changes;
        pthread_mutex_unlock(&w.lock);
        bool there = strstr(rows(), part) != NULL;
        pthread_mutex_lock(&w.lock);
        if (there) {
            break;
        }
        while (w.changes == seen) {
            pthread_cond_wait(&w.published, &w.lock);
        }
    }
    pthread_mutex_unlock(&w.lock);
}

static inf_err_t *
find(inf_model_t **out)
{
    inf_registry_reader_t reader;

    inf_registry_reader_init(&reader, &w.registry);
    inf_err_t *err = inf_registry_find(&reader, INF_SLICE("m"), -1, out);
    inf_registry_reader_fini(&reader);
    return err;
}

static void
tell_fake(const char **what, const char *call)
{
    pthread_mutex_lock(&fake.lock);
    *what = call;
    pthread_mutex_unlock(&fake.lock);
}

static void
wait_count(const char *call, int count)
{
    while (fake_count(call) < count) {
        usleep(1000);
    }
}

static void
a_version_whose_process_died_comes_back(void **state)
{
    (void) state;
    inf_model_t *m;
    char text[200];

    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    int first = w.child;
    tell_fake(&fake.hold, "init m/1");      /* the next one             */
    kill(first, SIGKILL);
    fake_wait_held(1);
    wait_count("fini m/1", 1);
    assert_int_equal(fake_count("ifini m_0/1"), 1);

    snprintf(text, sizeof(text), "m/1 LOADING \n");
    assert_string_equal(rows(), text);
    inf_err_t *err = find(&m);
    assert_int_equal(inf_err_code(err), INF_ERR_UNAVAILABLE);
    snprintf(text, sizeof(text), "is not at ready state: it is loaded again,"
        " process %d (", first);
    assert_non_null(strstr(inf_err_msg(err), text));
    assert_non_null(strstr(inf_err_msg(err),
        ") of instance 'm_0' was killed by signal 9 (Killed)"));
    inf_err_free(err);

    fake_release();
    wait_rows("m/1 READY \n");
    assert_int_not_equal(w.child, first);
    assert_ok(find(&m));
    inf_model_unref(m);
}

/* A client or a backend that holds on to the model holds up nothing. */
static void
references_don_t_keep_the_backend(void **state)
{
    (void) state;
    inf_model_t *held;

    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    assert_ok(find(&held));
    kill(w.child, SIGKILL);
    wait_count("fini m/1", 1);
    wait_rows("m/1 READY \n");
    assert_false(inf_model_enter(held));
    assert_int_equal(w.children, 2);
    inf_model_unref(held);
}

static void
the_second_death_waits(void **state)
{
    (void) state;

    assert_int_equal(inf_reconcile_delay_ns(1), 0);
    assert_int_equal(inf_reconcile_delay_ns(2), SECOND);
    assert_int_equal(inf_reconcile_delay_ns(3), 2 * SECOND);
    assert_int_equal(inf_reconcile_delay_ns(7), 32 * SECOND);
    assert_int_equal(inf_reconcile_delay_ns(8), 60 * SECOND);
    assert_int_equal(inf_reconcile_delay_ns(UINT32_MAX), 60 * SECOND);

    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    kill(w.child, SIGKILL);
    wait_count("fini m/1", 1);
    wait_rows("m/1 READY \n");
    kill(w.child, SIGKILL);
    wait_rows("m/1 UNAVAILABLE process ");
    assert_non_null(strstr(rows(), "was killed by signal 9"));
    wait_rows("m/1 READY \n");
    assert_int_equal(w.children, 3);
}

static void
a_load_that_fails_is_tried_again(void **state)
{
    (void) state;

    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    tell_fake(&fake.fail, "init m/1");
    kill(w.child, SIGKILL);
    wait_rows("m/1 UNAVAILABLE Unsupported: told to fail");
    tell_fake(&fake.fail, NULL);
    wait_rows("m/1 READY \n");
    assert_int_equal(w.children, 2);
}

static void
an_unload_ends_the_waiting(void **state)
{
    (void) state;

    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    kill(w.child, SIGKILL);
    wait_count("fini m/1", 1);
    wait_rows("m/1 READY \n");
    kill(w.child, SIGKILL);                 /* a second until it is loaded   */
    wait_rows("m/1 UNAVAILABLE process ");
    assert_ok(inf_lifecycle_unload(w.lc, "m", false));
    usleep(1500000);
    assert_int_equal(w.children, 2);
}

static void
a_load_is_quicker_than_the_waiting(void **state)
{
    (void) state;

    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    kill(w.child, SIGKILL);
    wait_count("fini m/1", 1);
    wait_rows("m/1 READY \n");
    kill(w.child, SIGKILL);
    wait_rows("m/1 UNAVAILABLE process ");
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    assert_string_equal(rows(), "m/1 READY \n");
    assert_int_equal(w.children, 3);
}

static void
load_groups(int count)
{
    char text[400];

    snprintf(text, sizeof(text), "backend: 'x' input { name: 'A' data_type:"
        " TYPE_FP32 dims: 1 } output { name: 'B' data_type: TYPE_FP32 dims: 1"
        " } version_policy { all {} } instance_group { name: 'm' kind:"
        " KIND_CPU count: %d }", count);
    tree_file(w.tree, "repo/m/config.pbtxt", text);
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
}

/* Instances that come and go bring and take their processes along. */
static void
a_removed_instance_is_no_death_an_added_one_is_watched(void **state)
{
    (void) state;

    load_groups(1);
    load_groups(3);
    assert_int_equal(w.children, 3);
    load_groups(2);
    load_groups(1);
    wait_count("ifini m_1/1", 1);
    wait_count("ifini m_2/1", 1);
    usleep(20000);
    assert_string_equal(rows(), "m/1 READY \n");

    load_groups(2);
    assert_int_equal(w.children, 4);
    kill(w.child, SIGKILL);
    wait_count("fini m/1", 1);
    wait_rows("m/1 READY \n");
    assert_int_equal(w.children, 6);        /* as it was loaded last         */
}

static void *
load_three(void *unused)
{
    (void) unused;
    load_groups(3);
    return NULL;
}

static void
a_death_while_instances_are_made(void **state)
{
    (void) state;
    pthread_t loader;

    load_groups(1);
    tell_fake(&fake.hold, "iinit m_2/1");
    assert_int_equal(pthread_create(&loader, NULL, load_three, NULL), 0);
    fake_wait_held(1);
    pid_t first = w.child;                  /* of m_1, not armed yet         */
    inf_model_t *model;
    assert_ok(find(&model));
    pid_t old = (pid_t) (intptr_t) model->instances[0]->state;
    inf_model_unref(model);
    assert_int_not_equal(first, old);
    kill(old, SIGKILL);
    wait_rows("m/1 UNAVAILABLE process ");
    assert_int_equal(fake_count("fini m/1"), 0);    /* not under its feet    */
    fake_release();
    pthread_join(loader, NULL);
    wait_count("fini m/1", 1);
    wait_rows("m/1 READY \n");
    assert_int_equal(fake_count("ifini m_0/1"), 1);
    assert_int_equal(fake_count("ifini m_1/1"), 1);
    assert_int_equal(fake_count("ifini m_2/1"), 1);
    assert_int_equal(w.children, 6);
}

static void
an_unload_is_no_death(void **state)
{
    (void) state;

    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    assert_ok(inf_lifecycle_unload(w.lc, "m", false));
    wait_count("fini m/1", 1);
    assert_int_equal(fake_count("open x"), 1);
    assert_int_equal(w.children, 1);
}

/* The finalizer of a dead one that doesn't return holds up neither its
   successor nor, for more than a moment, the end. */
static void
a_stuck_finalizer_holds_up_nothing(void **state)
{
    (void) state;

    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    tell_fake(&fake.hold, "ifini m_0/1");
    int dead = w.child;
    kill(dead, SIGKILL);
    fake_wait_held(1);
    wait_rows("m/1 READY \n");

    tell_fake(&fake.hold_prefix, "ifini");
    uint64_t start = inf_clock_ns();
    kill(w.child, SIGKILL);
    fake_wait_held(2);
    assert_false(inf_lifecycle_stop(w.lc, 600 * SECOND));
    assert_true(inf_clock_ns() - start < 300 * SECOND);
    fake_release();
}

int
main(void)
{
    inf_log_set_levels(false, false, false, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            a_version_whose_process_died_comes_back, setup, teardown),
        cmocka_unit_test_setup_teardown(
            references_don_t_keep_the_backend, setup, teardown),
        cmocka_unit_test_setup_teardown(
            the_second_death_waits, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_load_that_fails_is_tried_again, setup, teardown),
        cmocka_unit_test_setup_teardown(
            an_unload_ends_the_waiting, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_load_is_quicker_than_the_waiting, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_removed_instance_is_no_death_an_added_one_is_watched, setup,
            teardown),
        cmocka_unit_test_setup_teardown(
            a_death_while_instances_are_made, setup, teardown),
        cmocka_unit_test_setup_teardown(
            an_unload_is_no_death, setup, teardown),
        cmocka_unit_test_setup_teardown(
            a_stuck_finalizer_holds_up_nothing, setup, teardown)
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
