/* Repositories that a program which embeds the core registers while it runs. */

#include "temp_tree.h"

#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

#include "core/abi/api.h"
#include "core/base/log.h"

#define FORM "backend: 'identity'"                                           \
    " input { name: 'IN' data_type: TYPE_FP32 dims: -1 }"                    \
    " output { name: 'OUT' data_type: TYPE_FP32 dims: -1 }"

static struct {
    char                *tree;
    char                *first;
    char                *second;
    char                 build[4096];
    TRITONSERVER_Server *server;
} w;

static void
succeeds(TRITONSERVER_Error *err)
{
    assert_ok(err);
}

static void
start(TRITONSERVER_ModelControlMode mode)
{
    TRITONSERVER_ServerOptions *o;
    char path[4200];

    succeeds(TRITONSERVER_ServerOptionsNew(&o));
    succeeds(TRITONSERVER_ServerOptionsSetModelControlMode(o, mode));
    succeeds(TRITONSERVER_ServerOptionsSetModelRepositoryPath(o, w.first));
    snprintf(path, sizeof(path), "%s/backends", w.build);
    succeeds(TRITONSERVER_ServerOptionsSetBackendDirectory(o, path));
    succeeds(TRITONSERVER_ServerNew(&w.server, o));
    succeeds(TRITONSERVER_ServerOptionsDelete(o));
}

static int
setup(void **state)
{
    (void) state;
    memset(&w, 0, sizeof(w));
    w.tree = tree_new();
    tree_dir(w.tree, "first");
    w.first = strdup(tree_path(w.tree, "first"));
    w.second = strdup(tree_path(w.tree, "second"));
    tree_file(w.tree, "first/own/config.pbtxt", FORM);
    tree_file(w.tree, "first/own/1/data", "");
    tree_file(w.tree, "second/box/config.pbtxt", FORM);
    tree_file(w.tree, "second/box/1/data", "");
    tree_file(w.tree, "second/plain/config.pbtxt", FORM);
    tree_file(w.tree, "second/plain/1/data", "");

    ssize_t len = readlink("/proc/self/exe", w.build, sizeof(w.build) - 1);
    assert_true(len > 0);
    w.build[len] = '\0';
    *strrchr(w.build, '/') = '\0';
    start(TRITONSERVER_MODEL_CONTROL_EXPLICIT);
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    succeeds(TRITONSERVER_ServerDelete(w.server));
    tree_free(w.tree);
    free(w.first);
    free(w.second);
    return 0;
}

static void
expect_index(const char *text)
{
    TRITONSERVER_Message *m;
    const char *base;
    size_t size;

    succeeds(TRITONSERVER_ServerModelIndex(w.server, 0, &m));
    succeeds(TRITONSERVER_MessageSerializeToJson(m, &base, &size));
    assert_string_equal(base, text);
    succeeds(TRITONSERVER_MessageDelete(m));
}

static bool
version_is_ready(const char *model, int64_t version)
{
    bool ready = false;
    inf_err_free(TRITONSERVER_ServerModelIsReady(w.server, model, version,
        &ready));
    return ready;
}

static bool
is_ready(const char *model)
{
    return version_is_ready(model, -1);
}

/* With box called as told; NULL: without mapping. */
static TRITONSERVER_Error *
add(const char *path, const char *box)
{
    TRITONSERVER_Parameter *p = TRITONSERVER_ParameterNew("box",
        TRITONSERVER_PARAMETER_STRING, box != NULL ? box : "");
    const TRITONSERVER_Parameter *list[1] = { p };
    TRITONSERVER_Error *err = TRITONSERVER_ServerRegisterModelRepository(
        w.server, path, list, box != NULL);
    TRITONSERVER_ParameterDelete(p);
    return err;
}

static void
models_of_a_registered_repository_can_be_loaded(void **state)
{
    (void) state;
    assert_error(TRITONSERVER_ServerLoadModel(w.server, "plain"),
        INF_ERR_INTERNAL, "failed to load 'plain'");
    succeeds(add(w.second, NULL));
    expect_index("[{\"name\":\"box\"},{\"name\":\"own\"},"
        "{\"name\":\"plain\"}]");
    succeeds(TRITONSERVER_ServerLoadModel(w.server, "plain"));
    assert_true(is_ready("plain"));

    succeeds(TRITONSERVER_ServerUnregisterModelRepository(w.server,
        w.second));
    expect_index("[{\"name\":\"own\"}]");
    assert_true(is_ready("plain"));             /* until it is unloaded      */
    succeeds(TRITONSERVER_ServerUnloadModel(w.server, "plain"));
    assert_false(is_ready("plain"));
    assert_error(TRITONSERVER_ServerLoadModel(w.server, "plain"),
        INF_ERR_INTERNAL, "failed to load 'plain'");
}

static void
a_directory_may_hold_a_model_of_another_name(void **state)
{
    (void) state;
    succeeds(add(w.second, "gift"));
    expect_index("[{\"name\":\"gift\"},{\"name\":\"own\"},"
        "{\"name\":\"plain\"}]");
    assert_error(TRITONSERVER_ServerLoadModel(w.server, "box"),
        INF_ERR_INTERNAL, "failed to load 'box'");
    succeeds(TRITONSERVER_ServerLoadModel(w.server, "gift"));
    assert_true(is_ready("gift"));
    succeeds(TRITONSERVER_ServerLoadModel(w.server, "gift"));
    tree_file(w.tree, "second/box/1/data", "other");
    succeeds(TRITONSERVER_ServerLoadModel(w.server, "gift"));
    assert_true(is_ready("gift"));
    succeeds(TRITONSERVER_ServerUnregisterModelRepository(w.server,
        w.second));

    /* it hides the one that is called so */
    succeeds(add(w.second, "plain"));
    expect_index("[{\"name\":\"own\"},{\"name\":\"plain\"}]");
    succeeds(TRITONSERVER_ServerUnregisterModelRepository(w.server,
        w.second));

    /* it is chosen before other repositories' directories of that name */
    tree_file(w.tree, "second/own/config.pbtxt", FORM);
    tree_file(w.tree, "second/own/3/data", "");
    tree_file(w.tree, "second/box/2/data", "");
    succeeds(add(w.second, "own"));
    expect_index("[{\"name\":\"own\"},{\"name\":\"plain\"}]");
    succeeds(TRITONSERVER_ServerLoadModel(w.server, "own"));
    expect_index("[{\"name\":\"own\",\"version\":\"2\",\"state\":"
        "\"READY\"},{\"name\":\"plain\"}]");
    succeeds(TRITONSERVER_ServerUnregisterModelRepository(w.server,
        w.second));
    succeeds(TRITONSERVER_ServerLoadModel(w.server, "own"));
    assert_true(version_is_ready("own", 1));
    assert_false(version_is_ready("own", 2));

    /* without a mapping two directories of a name are no model */
    succeeds(add(w.second, NULL));
    assert_error(TRITONSERVER_ServerLoadModel(w.server, "own"),
        INF_ERR_INTERNAL, "failed to load 'own'");
}

/* As multi-model endpoints do: the directory's own configuration has another
   name than each of the program's. */
static void
a_directory_may_hold_models_of_several_names(void **state)
{
    (void) state;
    const char *const names[3] = { "one", "box", "two" };
    TRITONSERVER_Parameter *p[3];
    const TRITONSERVER_Parameter *list[3];
    TRITONSERVER_Message *m;
    const char *base;
    size_t size;

    tree_file(w.tree, "second/box/config.pbtxt", "name: 'box' " FORM);
    for (int i = 0; i < 3; i++) {
        p[i] = TRITONSERVER_ParameterNew("box", TRITONSERVER_PARAMETER_STRING,
            names[i]);
        list[i] = p[i];
    }
    succeeds(TRITONSERVER_ServerRegisterModelRepository(w.server, w.second,
        list, 3));
    expect_index("[{\"name\":\"box\"},{\"name\":\"one\"},"
        "{\"name\":\"own\"},{\"name\":\"plain\"},{\"name\":\"two\"}]");
    for (int i = 0; i < 3; i++) {
        char name[32];

        succeeds(TRITONSERVER_ServerLoadModel(w.server, names[i]));
        assert_true(is_ready(names[i]));
        succeeds(TRITONSERVER_ServerModelConfig(w.server, names[i], -1, 1,
            &m));
        succeeds(TRITONSERVER_MessageSerializeToJson(m, &base, &size));
        snprintf(name, sizeof(name), "\"name\":\"%s\"", names[i]);
        assert_non_null(strstr(base, name));
        succeeds(TRITONSERVER_MessageDelete(m));
        TRITONSERVER_ParameterDelete(p[i]);
    }
    succeeds(TRITONSERVER_ServerUnloadModel(w.server, "one"));
    assert_false(is_ready("one"));
    assert_true(is_ready("two"));

    /* a name that no mapping gave must be the directory's */
    tree_file(w.tree, "second/plain/config.pbtxt", "name: 'other' " FORM);
    assert_error(TRITONSERVER_ServerLoadModel(w.server, "plain"),
        INF_ERR_INTERNAL, "failed to load 'plain'");
}

/* The format has the place of one path. */
static const char *
text(const char *format, const char *path)
{
    static char line[8192];

    snprintf(line, sizeof(line), format, path);
    return line;
}

static void
what_cannot_be_registered_says_why(void **state)
{
    (void) state;
    char again[4200];
    char copy[4200];
    TRITONSERVER_Parameter *p = TRITONSERVER_ParameterNew("box",
        TRITONSERVER_PARAMETER_STRING, "x");
    TRITONSERVER_Parameter *q = TRITONSERVER_ParameterNew("plain",
        TRITONSERVER_PARAMETER_STRING, "x");
    const bool yes = true;
    TRITONSERVER_Parameter *b = TRITONSERVER_ParameterNew("box",
        TRITONSERVER_PARAMETER_BOOL, &yes);
    const TRITONSERVER_Parameter *twice[2] = { p, q };
    const TRITONSERVER_Parameter *wrong[1] = { b };

    snprintf(again, sizeof(again), "%s/", w.first);
    assert_error(add(again, NULL), INF_ERR_ALREADY_EXISTS,
        text("model repository '%s' has already been registered", w.first));
    assert_error(add("/nowhere/at/all", NULL), INF_ERR_INVALID_ARG,
        "failed to register '/nowhere/at/all', repository not found");
    assert_error(TRITONSERVER_ServerUnregisterModelRepository(w.server,
        w.second), INF_ERR_INVALID_ARG, "repository not found");
    assert_error(add(w.second, "a/b"), INF_ERR_INVALID_ARG,
        "mapping of 'box' to 'a/b'");
    assert_error(TRITONSERVER_ServerRegisterModelRepository(w.server,
        w.second, wrong, 1), INF_ERR_INVALID_ARG, "Mapped model name must be a"
        " string, found another type for box");
    assert_error(TRITONSERVER_ServerRegisterModelRepository(w.server,
        w.second, NULL, 1), INF_ERR_INVALID_ARG, "model mappings are not"
        " provided while mapping count is non-zero");
    assert_error(TRITONSERVER_ServerRegisterModelRepository(w.server,
        w.second, twice, 2), INF_ERR_INVALID_ARG, text("failed to register"
        " '%s', there is a conflicting mapping for 'x'", w.second));
    expect_index("[{\"name\":\"own\"}]");

    succeeds(add(w.second, "gift"));
    snprintf(copy, sizeof(copy), "%s/../second", w.first);
    assert_error(add(copy, "gift"), INF_ERR_ALREADY_EXISTS, text("failed to"
        " register '%s', there is a conflicting mapping for 'gift'", copy));
    assert_error(add(w.second, "gift"), INF_ERR_ALREADY_EXISTS, text("model"
        " repository '%s' has already been registered", w.second));
    TRITONSERVER_ParameterDelete(p);
    TRITONSERVER_ParameterDelete(q);
    TRITONSERVER_ParameterDelete(b);
}

static void
other_modes_have_no_registration(void **state)
{
    (void) state;
    succeeds(TRITONSERVER_ServerDelete(w.server));
    start(TRITONSERVER_MODEL_CONTROL_POLL);
    assert_error(add(w.second, NULL), INF_ERR_UNSUPPORTED, "not EXPLICIT");
    assert_error(TRITONSERVER_ServerUnregisterModelRepository(w.server,
        w.first), INF_ERR_UNSUPPORTED, "not EXPLICIT");
}

/* Each of two comes and goes; what is loaded meanwhile never misses. */
static void *
churn_main(void *arg)
{
    for (int i = 0; i < 50; i++) {
        inf_err_t *err = TRITONSERVER_ServerRegisterModelRepository(w.server,
            arg, NULL, 0);
        if (err == NULL) {
            err = TRITONSERVER_ServerUnregisterModelRepository(w.server, arg);
        }
        if (err != NULL) {
            fprintf(stderr, "%s\n", inf_err_msg(err));
            abort();
        }
    }
    return NULL;
}

static void
registrations_from_many_threads_lose_nothing(void **state)
{
    (void) state;
    pthread_t threads[2];
    char third[4200];

    tree_dir(w.tree, "third");
    snprintf(third, sizeof(third), "%s", tree_path(w.tree, "third"));
    assert_int_equal(pthread_create(&threads[0], NULL, churn_main, w.second),
        0);
    assert_int_equal(pthread_create(&threads[1], NULL, churn_main, third), 0);
    for (int i = 0; i < 20; i++) {
        succeeds(TRITONSERVER_ServerLoadModel(w.server, "own"));
        succeeds(TRITONSERVER_ServerUnloadModel(w.server, "own"));
    }
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    succeeds(TRITONSERVER_ServerLoadModel(w.server, "own"));
    expect_index("[{\"name\":\"own\",\"version\":\"1\",\"state\":"
        "\"READY\"}]");
}

int
main(void)
{
    alarm(540);
    inf_log_set_levels(false, false, false, 0);
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(models_of_a_registered_repository_can_be_loaded),
        T(a_directory_may_hold_a_model_of_another_name),
        T(a_directory_may_hold_models_of_several_names),
        T(what_cannot_be_registered_says_why),
        T(other_modes_have_no_registration),
        T(registrations_from_many_threads_lose_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
