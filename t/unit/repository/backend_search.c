#include "temp_tree.h"

#include "core/repository/backend_search.h"

/* Directories g0, g1 are global, m is the model; the query is of version 2. */
static inf_err_t *
search(const char *tree, const char *backend, const char *runtime,
    inf_backend_location_t *out)
{
    char *g0 = strdup(tree_path(tree, "g0"));
    char *g1 = strdup(tree_path(tree, "g1"));
    char *dir = strdup(tree_path(tree, "m"));
    const char *globals[] = { g0, g1 };
    inf_backend_query_t q = {
        .model_name = "m", .model_dir = dir, .version = 2,
        .backend = backend, .runtime = runtime,
        .global_dirs = globals, .global_count = 2,
    };

    inf_err_t *err = inf_backend_search(&q, out);
    free(g0);
    free(g1);
    free(dir);
    return err;
}

static void
assert_found(const char *tree, const char *backend, const char *runtime,
    const char *library)
{
    inf_backend_location_t where;

    assert_ok(search(tree, backend, runtime, &where));
    assert_string_equal(where.library, tree_path(tree, library));
    assert_false(where.python_based);
    inf_backend_location_fini(&where);
}

static void
the_nearest_library_wins(void **state)
{
    (void) state;
    char *tree = tree_new();
    inf_backend_location_t where;

    tree_dir(tree, "m/2");
    tree_file(tree, "g1/x/libtriton_x.so", "");
    assert_found(tree, "x", NULL, "g1/x/libtriton_x.so");
    tree_file(tree, "g0/x/libtriton_x.so", "");
    assert_found(tree, "x", "", "g0/x/libtriton_x.so");
    tree_file(tree, "m/libtriton_x.so", "");
    assert_found(tree, "x", "", "m/libtriton_x.so");
    tree_file(tree, "m/2/libtriton_x.so", "");
    assert_found(tree, "x", "", "m/2/libtriton_x.so");
    tree_file(tree, "m/1/libtriton_y.so", "");

    assert_error(search(tree, "y", "", &where), INF_ERR_INVALID_ARG,
        "unable to find backend library for backend 'y', try specifying "
        "runtime on the model configuration.");
    assert_null(where.library);

    assert_ok(search(tree, "x", "", &where));
    assert_string_equal(where.dir, tree_path(tree, "m/2"));
    inf_backend_location_fini(&where);
    tree_free(tree);
}

static void
runtime_names_the_library(void **state)
{
    (void) state;
    char *tree = tree_new();
    inf_backend_location_t where;

    tree_file(tree, "g0/x/libtriton_x.so", "");
    tree_file(tree, "g1/x/special.so", "");
    tree_file(tree, "g1/x/sub/deep.so", "");
    tree_dir(tree, "g0/x/a_dir.so");

    assert_found(tree, "x", "special.so", "g1/x/special.so");
    assert_found(tree, "x", "sub/deep.so", "g1/x/sub/deep.so");
    assert_error(search(tree, "x", "other.so", &where), INF_ERR_INVALID_ARG,
        "unable to find backend library 'other.so' for model 'm', searched: "
        "'");
    assert_error(search(tree, "x", "a_dir.so", &where), INF_ERR_INVALID_ARG,
        "unable to find backend library 'a_dir.so'");
    tree_free(tree);
}

static void
the_text_lists_where_it_looked_in_order(void **state)
{
    (void) state;
    char *tree = tree_new();
    inf_backend_location_t where;
    char expected[1024];

    tree_dir(tree, "m");
    snprintf(expected, sizeof(expected),
        "searched: '%s/m/2' '%s/m' '%s/g0/x' '%s/g1/x' ", tree, tree, tree,
        tree);
    assert_error(search(tree, "x", "l.so", &where), INF_ERR_INVALID_ARG,
        expected);
    tree_free(tree);
}

static void
names_do_not_leave_their_directory(void **state)
{
    (void) state;
    char *tree = tree_new();
    inf_backend_location_t where;

    tree_file(tree, "g0/x/libtriton_x.so", "");
    tree_file(tree, "evil/lib.so", "");
    tree_link(tree, "../../evil/lib.so", "g0/x/linked.so");
    tree_link(tree, "libtriton_x.so", "g0/x/inside.so");
    tree_dir(tree, "g0/y");
    tree_link(tree, "../../evil/lib.so", "g0/y/libtriton_y.so");

    static const char *const runtimes[] = {
        "../x/lib.so", "../../evil/lib.so", "/etc/passwd", "a/../../b",
        "..", "linked.so",
    };
    for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++) {
        char expected[128];
        snprintf(expected, sizeof(expected), "backend library name '%s' "
            "escapes backend directory '", runtimes[i]);
        assert_error(search(tree, "x", runtimes[i], &where),
            INF_ERR_INVALID_ARG, expected);
    }

    assert_found(tree, "x", "inside.so", "g0/x/inside.so");
    assert_found(tree, "y", "", "g0/y/libtriton_y.so");

    static const char *const backends[] = { "", ".", "..", "../evil",
        "a/b" };
    for (size_t i = 0; i < sizeof(backends) / sizeof(backends[0]); i++) {
        assert_error(search(tree, backends[i], "", &where),
            INF_ERR_INVALID_ARG, "must be the name of a backend");
    }

    tree_free(tree);
}

static void
a_model_py_makes_a_backend_of_python(void **state)
{
    (void) state;
    char *tree = tree_new();
    inf_backend_location_t where;

    tree_dir(tree, "m/2");
    tree_file(tree, "g1/vllm/model.py", "");
    assert_error(search(tree, "vllm", "", &where), INF_ERR_INVALID_ARG,
        "unable to find backend library 'libtriton_python.so' for model 'm', "
        "which backend 'vllm'");

    tree_file(tree, "g0/python/libtriton_python.so", "");
    assert_ok(search(tree, "vllm", "", &where));
    assert_true(where.python_based);
    assert_string_equal(where.library,
        tree_path(tree, "g0/python/libtriton_python.so"));
    assert_string_equal(where.dir, tree_path(tree, "g1/vllm"));
    assert_null(where.environment);
    inf_backend_location_fini(&where);

    tree_file(tree, "g1/vllm/pb_exec_env_model.py.tar.gz", "");
    assert_ok(search(tree, "vllm", "model.py", &where));
    assert_true(where.python_based);
    assert_string_equal(where.environment,
        tree_path(tree, "g1/vllm/pb_exec_env_model.py.tar.gz"));
    inf_backend_location_fini(&where);

    /* a library of its own goes first, unless model.py is asked for */
    tree_file(tree, "g0/vllm/libtriton_vllm.so", "");
    assert_found(tree, "vllm", "", "g0/vllm/libtriton_vllm.so");
    assert_ok(search(tree, "vllm", "model.py", &where));
    assert_true(where.python_based);
    inf_backend_location_fini(&where);

    assert_error(search(tree, "other", "model.py", &where),
        INF_ERR_INVALID_ARG, "unable to find backend library 'model.py' for "
        "model 'm', searched: '");
    assert_found(tree, "python", "", "g0/python/libtriton_python.so");
    tree_free(tree);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nearest_library_wins),
        cmocka_unit_test(runtime_names_the_library),
        cmocka_unit_test(the_text_lists_where_it_looked_in_order),
        cmocka_unit_test(names_do_not_leave_their_directory),
        cmocka_unit_test(a_model_py_makes_a_backend_of_python),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
