/* One library for all models that name it, in any order. */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "core/repository/agent_table.h"
#include "temp_tree.h"

#define THREADS 8
#define ROUNDS  200

struct inf_agent_s {
    _Atomic bool open;
};

static struct {
    char              *tree;
    char              *dirs[2];
    inf_agent_dirs_t   all;
    inf_agent_table_t *table;
    struct inf_agent_s agent;
    _Atomic int        opened;
    _Atomic int        closed;
    _Atomic bool       fails;
    char               library[4096];
} w;

/* Never two at a time, never open twice. */
static inf_err_t *
fake_open(const char *name, const char *library, inf_agent_t **out)
{
    (void) name;
    snprintf(w.library, sizeof(w.library), "%s", library);
    assert_false(atomic_exchange(&w.agent.open, true));
    sched_yield();
    atomic_fetch_add(&w.opened, 1);
    if (atomic_load(&w.fails)) {
        atomic_store(&w.agent.open, false);
        return inf_err_new(INF_ERR_UNAVAILABLE, "not today");
    }
    *out = &w.agent;
    return NULL;
}

static void
fake_close(inf_agent_t *agent)
{
    sched_yield();
    atomic_fetch_add(&w.closed, 1);
    assert_true(atomic_exchange(&agent->open, false));
}

static const inf_agent_ops_t fake_ops = {
    .open = fake_open, .close = fake_close
};

static int
setup(void **state)
{
    (void) state;
    memset(&w, 0, sizeof(w));
    w.tree = tree_new();
    tree_dir(w.tree, "one");
    tree_file(w.tree, "two/a/libtritonrepoagent_a.so", "");
    w.dirs[0] = strdup(tree_path(w.tree, "one"));
    w.dirs[1] = strdup(tree_path(w.tree, "two"));
    w.all = (inf_agent_dirs_t) { w.dirs, 2 };
    assert_null(inf_agent_table_new(&fake_ops, &w.table));
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    inf_agent_table_free(w.table);
    free(w.dirs[0]);
    free(w.dirs[1]);
    tree_free(w.tree);
    return 0;
}

static void
the_first_opens_and_the_last_closes(void **state)
{
    (void) state;
    inf_agent_t *x, *y;

    assert_ok(inf_agent_table_ref(w.table, &w.all, "a", &x));
    assert_ok(inf_agent_table_ref(w.table, &w.all, "a", &y));
    assert_ptr_equal(x, y);
    assert_int_equal(w.opened, 1);
    inf_agent_table_unref(w.table, x);
    assert_int_equal(w.closed, 0);
    inf_agent_table_unref(w.table, y);
    assert_int_equal(w.closed, 1);

    assert_ok(inf_agent_table_ref(w.table, &w.all, "a", &x));
    assert_int_equal(w.opened, 2);
    inf_agent_table_unref(w.table, x);
}

static void
the_first_folder_that_has_it_wins(void **state)
{
    (void) state;
    inf_agent_t *x;

    assert_ok(inf_agent_table_ref(w.table, &w.all, "a", &x));
    assert_string_equal(w.library, tree_path(w.tree,
        "two/a/libtritonrepoagent_a.so"));
    inf_agent_table_unref(w.table, x);

    tree_file(w.tree, "one/a/libtritonrepoagent_a.so", "");
    assert_ok(inf_agent_table_ref(w.table, &w.all, "a", &x));
    assert_string_equal(w.library, tree_path(w.tree,
        "one/a/libtritonrepoagent_a.so"));
    inf_agent_table_unref(w.table, x);
}

static void
what_is_missing_is_named_with_every_folder(void **state)
{
    (void) state;
    char text[9000];
    inf_agent_t *x;

    snprintf(text, sizeof(text), "unable to find 'libtritonrepoagent_b.so'"
        " for repo agent 'b', searched: %s/b, %s/b", w.dirs[0], w.dirs[1]);
    assert_error(inf_agent_table_ref(w.table, &w.all, "b", &x), INF_ERR_NOT_FOUND,
        text);

    tree_dir(w.tree, "two/c/libtritonrepoagent_c.so");
    assert_error(inf_agent_table_ref(w.table, &w.all, "c", &x), INF_ERR_NOT_FOUND,
        "libtritonrepoagent_c.so");
    assert_int_equal(w.opened, 0);
}

static void
without_folders_or_functions_the_error_says_so(void **state)
{
    (void) state;
    const inf_agent_dirs_t nowhere = { NULL, 0 };
    inf_agent_table_t *none;
    inf_agent_t *x;

    assert_ok(inf_agent_table_new(&fake_ops, &none));
    assert_error(inf_agent_table_ref(none, &nowhere, "a", &x), INF_ERR_NOT_FOUND,
        "no directory of agents is set");
    inf_agent_table_free(none);

    assert_ok(inf_agent_table_new(NULL, &none));
    assert_error(inf_agent_table_ref(none, &w.all, "a", &x), INF_ERR_UNSUPPORTED,
        "loads no agents");
    inf_agent_table_free(none);
}

static void
one_that_failed_is_tried_again(void **state)
{
    (void) state;
    inf_agent_t *x;

    atomic_store(&w.fails, true);
    assert_error(inf_agent_table_ref(w.table, &w.all, "a", &x), INF_ERR_UNAVAILABLE,
        "not today");
    atomic_store(&w.fails, false);
    assert_ok(inf_agent_table_ref(w.table, &w.all, "a", &x));
    assert_int_equal(w.opened, 2);
    inf_agent_table_unref(w.table, x);
    assert_int_equal(w.closed, 1);
}

static void *
use_often(void *arg)
{
    (void) arg;
    for (int i = 0; i < ROUNDS; i++) {
        inf_agent_t *x;
        assert_null(inf_agent_table_ref(w.table, &w.all, "a", &x));
        assert_true(atomic_load(&x->open));
        inf_agent_table_unref(w.table, x);
    }
    return NULL;
}

static void
threads_never_see_it_closed(void **state)
{
    (void) state;
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, use_often, NULL),
            0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(w.opened, w.closed);
    assert_false(w.agent.open);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(the_first_opens_and_the_last_closes),
        T(the_first_folder_that_has_it_wins),
        T(what_is_missing_is_named_with_every_folder),
        T(without_folders_or_functions_the_error_says_so),
        T(one_that_failed_is_tried_again),
        T(threads_never_see_it_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
