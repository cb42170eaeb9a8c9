/* Loads whose backend doesn't return in time. */

#include "repository/lifecycle_world.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/repository/lifecycle_parts.h"
#include "core/repository/load_threads.h"

#define LIMIT_MS 200

static lifecycle_world_t w;

typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t  came;
    bool            done;
    inf_err_t      *err;
} caller_t;

static int
begin(void **state)
{
    (void) state;
    lifecycle_world_begin(&w, (const char *const[]) { "repo", NULL });
    w.core_config->values->load_timeout_ms = LIMIT_MS;
    assert_ok(inf_repositories_open(w.places, 1, false, inf_storage_open,
        &w.repositories));
    assert_ok(inf_lifecycle_new(&w.options, &w.lc));
    return 0;
}

static void
on_done(void *userp, inf_err_t *err)
{
    caller_t *c = userp;

    pthread_mutex_lock(&c->lock);
    assert_false(c->done);
    c->done = true;
    c->err = err;
    pthread_cond_signal(&c->came);
    pthread_mutex_unlock(&c->lock);
}

static void
start(caller_t *c, const char *name)
{
    *c = (caller_t) {
        .lock = PTHREAD_MUTEX_INITIALIZER, .came = PTHREAD_COND_INITIALIZER
    };
    inf_lifecycle_load_async(w.lc, name, NULL, false, on_done, c);
}

static inf_err_t *
answer(caller_t *c)
{
    pthread_mutex_lock(&c->lock);
    while (!c->done) {
        pthread_cond_wait(&c->came, &c->lock);
    }
    pthread_mutex_unlock(&c->lock);
    return c->err;
}

static const char *
rows(void)
{
    return index_rows(&w.index, w.lc);
}

static void
wait_returned(uint64_t left)
{
    while (inf_lifecycle_stuck_loads(w.lc) != left) {
        usleep(1000);
    }
}

static int
end(void **state)
{
    (void) state;
    fake_release();
    wait_returned(0);
    lifecycle_world_end(&w);
    return 0;
}

static void
expect_given_up(caller_t *c)
{
    inf_err_t *err = answer(c);

    assert_non_null(err);
    assert_int_equal(inf_err_code(err), INF_ERR_INVALID_ARG);
    assert_non_null(strstr(inf_err_msg(err), "load failed for model 'm':"
        " version 1 is at UNAVAILABLE state: Unavailable: its load has not"
        " returned for 0.2 s (inference_model_load timeout=); the model can"
        " be loaded again"));
    inf_err_free(err);
}

static void
a_load_that_does_not_return_fails_and_is_finalized_when_it_does(void **state)
{
    (void) state;
    caller_t c;

    lifecycle_world_add_model(&w, "repo", "m", "backend: 'x' ");
    fake_hold("init m/1");
    start(&c, "m");
    expect_given_up(&c);
    assert_int_equal(inf_lifecycle_stuck_loads(w.lc), 1);
    assert_non_null(strstr(rows(), "m/1 UNAVAILABLE Unavailable: its load has"
        " not returned for 0.2 s"));
    inf_lifecycle_wait(w.lc);           /* nothing waits for its thread      */

    fake_release();
    wait_returned(0);
    assert_non_null(strstr(rows(), "m/1 UNAVAILABLE Unavailable: its load"));
    while (fake_count("fini m/1") == 0) {
        usleep(1000);
    }
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    assert_string_equal(rows(), "m/1 READY \n");
}

/* The reaper looks at calls while others begin. */
static void
loads_within_their_limit_are_not_given_up(void **state)
{
    (void) state;
    caller_t callers[16];
    char name[16];
    char path[32];

    w.core_config->values->load_timeout_ms = 1800000;
    for (int i = 0; i < 16; i++) {
        snprintf(name, sizeof(name), "m%d", i);
        lifecycle_world_add_model(&w, "repo", name, "backend: 'x' ");
    }
    for (int round = 0; round < 400; round++) {
        for (int i = 0; i < 16; i++) {
            snprintf(name, sizeof(name), "m%d", i);
            snprintf(path, sizeof(path), "repo/%s/1/data", name);
            tree_file(w.tree, path, round % 2 ? "1" : "22");
            start(&callers[i], name);
        }
        for (int i = 0; i < 16; i++) {
            assert_ok(answer(&callers[i]));
        }
    }
}

static void
the_old_version_serves_on_and_tells_the_reason(void **state)
{
    (void) state;
    caller_t c;

    lifecycle_world_add_model(&w, "repo", "m", "backend: 'x' ");
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    tree_file(w.tree, "repo/m/1/data", "22");
    fake_hold("init m/1");
    start(&c, "m");
    expect_given_up(&c);
    assert_non_null(strstr(rows(), "m/1 READY Unavailable: its load has"));
    assert_true(inf_lifecycle_all_ready(w.lc));
    fake_release();
    wait_returned(0);
    assert_non_null(strstr(rows(), "m/1 READY Unavailable: its load has"));
    assert_true(inf_lifecycle_all_ready(w.lc));
}

/* It is loaded, and unloaded, while its first load is stuck. */
static void
the_model_can_be_loaded_and_unloaded_meanwhile(void **state)
{
    (void) state;
    caller_t c;

    lifecycle_world_add_model(&w, "repo", "m", "backend: 'x' ");
    fake_hold("init m/1");
    start(&c, "m");
    expect_given_up(&c);
    fake_hold(NULL);                    /* the first one still sleeps        */
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    assert_string_equal(rows(), "m/1 READY \n");
    assert_int_equal(inf_lifecycle_stuck_loads(w.lc), 1);
    assert_ok(inf_lifecycle_unload(w.lc, "m", false));
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    fake_release();
    wait_returned(0);
    assert_string_equal(rows(), "m/1 READY \n");
}

static void
others_are_loaded_though_every_loader_is_stuck(void **state)
{
    (void) state;
    caller_t a, b;

    lifecycle_world_add_model(&w, "repo", "m", "backend: 'x' ");
    lifecycle_world_add_model(&w, "repo", "n", "backend: 'x' ");
    lifecycle_world_add_model(&w, "repo", "other", "backend: 'x' ");
    fake.hold_prefix = "init m";
    fake_hold("init n/1");
    start(&a, "m");                     /* there are two loaders             */
    start(&b, "n");
    fake_wait_held(2);
    assert_ok(inf_lifecycle_load(w.lc, "other", NULL));
    inf_err_free(answer(&a));
    inf_err_free(answer(&b));
    assert_int_equal(inf_lifecycle_stuck_loads(w.lc), 2);
}

static void
no_more_than_three_loads_of_a_model_are_stuck(void **state)
{
    (void) state;
    caller_t c;

    lifecycle_world_add_model(&w, "repo", "m", "backend: 'x' ");
    fake_hold("init m/1");
    for (int i = 0; i < 3; i++) {
        start(&c, "m");
        expect_given_up(&c);
    }
    assert_error(inf_lifecycle_load(w.lc, "m", NULL), INF_ERR_INVALID_ARG,
        "load failed for model 'm': 3 loads of it were given up and have not"
        " returned: it can be loaded again when one of them has, or by the"
        " next core\n");
    fake_release();
    wait_returned(0);
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
}

static void
the_stop_does_not_wait_for_a_stuck_load(void **state)
{
    (void) state;
    caller_t c;

    lifecycle_world_add_model(&w, "repo", "m", "backend: 'x' ");
    lifecycle_world_add_model(&w, "repo", "other", "backend: 'x' ");
    assert_ok(inf_lifecycle_load(w.lc, "other", NULL));
    fake_hold("init m/1");
    start(&c, "m");
    expect_given_up(&c);
    assert_false(inf_lifecycle_stop(w.lc, 60 * SECOND));
    assert_int_equal(fake_count("fini other/1"), 1);
}

static void
without_a_limit_a_load_may_take_any_time(void **state)
{
    (void) state;
    caller_t c;

    w.core_config->values->load_timeout_ms = 0;
    lifecycle_world_add_model(&w, "repo", "m", "backend: 'x' ");
    fake_hold("init m/1");
    start(&c, "m");
    fake_wait_held(1);
    usleep(3000 * LIMIT_MS);
    assert_int_equal(inf_lifecycle_stuck_loads(w.lc), 0);
    fake_release();
    assert_ok(answer(&c));
}

/* ---- processes ----------------------------------------------------------- */

static void
processes_of_a_load_are_found_and_killed(void **state)
{
    (void) state;
    inf_load_threads_t threads;
    inf_load_thread_t me;
    char why[128];
    int status;

    inf_load_threads_init(&threads);
    pid_t before = fork();
    if (before == 0) {
        pause();
        _exit(0);
    }
    inf_load_threads_enter(&threads, &me, 7);
    pid_t dies = fork();
    if (dies == 0) {
        _exit(3);
    }
    pid_t lives = fork();
    if (lives == 0) {
        pause();
        _exit(0);
    }

    siginfo_t info;
    assert_int_equal(waitid(P_PID, (id_t) dies, &info, WEXITED | WNOWAIT), 0);
    assert_int_equal(inf_load_threads_find_failed(&threads, SECOND,
        SECOND, why, sizeof(why)), 0);          /* seen first                */
    assert_int_equal(inf_load_threads_find_failed(&threads, 2 * SECOND - 1,
        SECOND, why, sizeof(why)), 0);
    assert_int_equal(inf_load_threads_find_failed(&threads, 2 * SECOND,
        SECOND, why, sizeof(why)), 7);
    assert_non_null(strstr(why, ") exited with status 3"));
    assert_int_equal(waitpid(dies, &status, 0), dies);      /* reaped        */
    assert_int_equal(inf_load_threads_find_failed(&threads, 9 * SECOND,
        SECOND, why, sizeof(why)), 0);

    assert_int_equal(inf_load_threads_kill(&threads, 8), 0);
    assert_int_equal(inf_load_threads_kill(&threads, 7), 1);
    assert_int_equal(waitpid(lives, &status, 0), lives);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(kill(before, 0), 0);
    kill(before, SIGKILL);
    waitpid(before, &status, 0);
    inf_load_threads_leave(&threads, &me);
    inf_load_threads_fini(&threads);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            loads_within_their_limit_are_not_given_up, begin, end),
        cmocka_unit_test_setup_teardown(
            a_load_that_does_not_return_fails_and_is_finalized_when_it_does,
            begin, end),
        cmocka_unit_test_setup_teardown(
            the_old_version_serves_on_and_tells_the_reason, begin, end),
        cmocka_unit_test_setup_teardown(
            the_model_can_be_loaded_and_unloaded_meanwhile, begin, end),
        cmocka_unit_test_setup_teardown(
            others_are_loaded_though_every_loader_is_stuck, begin, end),
        cmocka_unit_test_setup_teardown(
            no_more_than_three_loads_of_a_model_are_stuck, begin, end),
        cmocka_unit_test_setup_teardown(
            the_stop_does_not_wait_for_a_stuck_load, begin, end),
        cmocka_unit_test_setup_teardown(
            without_a_limit_a_load_may_take_any_time, begin, end),
        cmocka_unit_test(processes_of_a_load_are_found_and_killed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
