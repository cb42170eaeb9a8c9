/* Repository agents as a program that embeds the core meets them: real
   libraries, the identity backend, explicit loads. */

#include "temp_tree.h"

#include <dirent.h>
#include <stdbool.h>

#include "core/abi/api.h"
#include "core/base/log.h"

static struct {
    char               *tree;
    char                build[4096];
    TRITONSERVER_Server *server;
} w;

static void
succeeds(TRITONSERVER_Error *err)
{
    assert_ok(err);
}

static int
setup(void **state)
{
    (void) state;
    TRITONSERVER_ServerOptions *o;
    char path[4200];

    w.tree = tree_new();
    tree_dir(w.tree, "repo");
    tree_dir(w.tree, "temp");
    setenv("TMPDIR", tree_path(w.tree, "temp"), 1);
    setenv("INF_T_AGENT_TRACE", tree_path(w.tree, "trace"), 1);
    ssize_t len = readlink("/proc/self/exe", w.build, sizeof(w.build) - 1);
    assert_true(len > 0);
    w.build[len] = '\0';
    *strrchr(w.build, '/') = '\0';

    succeeds(TRITONSERVER_ServerOptionsNew(&o));
    succeeds(TRITONSERVER_ServerOptionsSetModelControlMode(o,
        TRITONSERVER_MODEL_CONTROL_EXPLICIT));
    succeeds(TRITONSERVER_ServerOptionsSetModelRepositoryPath(o,
        tree_path(w.tree, "repo")));
    snprintf(path, sizeof(path), "%s/backends", w.build);
    succeeds(TRITONSERVER_ServerOptionsSetBackendDirectory(o, path));
    snprintf(path, sizeof(path), "%s/t-agents", w.build);
    succeeds(TRITONSERVER_ServerOptionsSetRepoAgentDirectory(o, path));
    succeeds(TRITONSERVER_ServerNew(&w.server, o));
    succeeds(TRITONSERVER_ServerOptionsDelete(o));
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    succeeds(TRITONSERVER_ServerDelete(w.server));
    unsetenv("TMPDIR");
    unsetenv("INF_T_AGENT_TRACE");
    assert_int_equal(rmdir(tree_path(w.tree, "temp")), 0);
    tree_free(w.tree);
    return 0;
}

static void
write_model(const char *agents)
{
    char text[2048];

    snprintf(text, sizeof(text), "backend: 'identity'\n"
        "input { name: 'IN' data_type: TYPE_FP32 dims: -1 }\n"
        "output { name: 'OUT' data_type: TYPE_FP32 dims: -1 }\n"
        "instance_group { kind: KIND_CPU }\n"
        "model_repository_agents { agents [ %s ] }\n", agents);
    tree_dir(w.tree, "repo/m/1");
    tree_file(w.tree, "repo/m/config.pbtxt", text);
}

/* Until the trace ends so; it grows on threads of the core. */
static void
expect_trace(const char *end)
{
    static char text[8192];

    for (int i = 0; i < 60000; i++) {
        FILE *f = fopen(tree_path(w.tree, "trace"), "r");
        size_t len = f == NULL ? 0 : fread(text, 1, sizeof(text) - 1, f);
        if (f != NULL) {
            fclose(f);
        }
        text[len] = '\0';
        if (len >= strlen(end) && strcmp(text + len - strlen(end), end) == 0) {
            return;
        }
        usleep(1000);
    }

    fail_msg("\"%s\" does not end with \"%s\"", text, end);
}

static bool
is_ready(void)
{
    bool ready = false;
    succeeds(TRITONSERVER_ServerModelIsReady(w.server, "m", -1, &ready));
    return ready;
}

static bool
index_has(const char *text)
{
    TRITONSERVER_Message *m;
    const char *json;
    size_t len;

    succeeds(TRITONSERVER_ServerModelIndex(w.server, 0, &m));
    succeeds(TRITONSERVER_MessageSerializeToJson(m, &json, &len));
    bool found = strstr(json, text) != NULL;
    succeeds(TRITONSERVER_MessageDelete(m));
    return found;
}

static void
a_load_through_an_agent_serves_and_unloads(void **state)
{
    (void) state;
    char expected[4500];

    write_model("{ name: 'record' parameters { key: 'tag' value: 'a' } }");
    succeeds(TRITONSERVER_ServerLoadModel(w.server, "m"));
    assert_true(is_ready());
    snprintf(expected, sizeof(expected), "Initialize\na ModelInitialize\n"
        "a LOAD %1$s/repo/m\na LOAD_COMPLETE %1$s/repo/m\n", w.tree);
    expect_trace(expected);

    succeeds(TRITONSERVER_ServerUnloadModel(w.server, "m"));
    snprintf(expected, sizeof(expected), "a UNLOAD %1$s/repo/m\n"
        "a UNLOAD_COMPLETE %1$s/repo/m\na ModelFinalize\nFinalize\n", w.tree);
    expect_trace(expected);
    assert_false(is_ready());
}

static void
a_load_that_an_agent_rejects_says_why_in_the_index(void **state)
{
    (void) state;
    write_model("{ name: 'record' parameters { key: 'fail' value: 'LOAD' } }");
    assert_error(TRITONSERVER_ServerLoadModel(w.server, "m"),
        INF_ERR_INTERNAL, "failed to load 'm', failed to poll from model"
        " repository");
    assert_true(index_has("\"UNAVAILABLE\""));
    assert_true(index_has("failing on purpose: see parameters (repo agent"
        " 'record')"));

    write_model("{ name: 'record' }");
    succeeds(TRITONSERVER_ServerLoadModel(w.server, "m"));
    assert_true(is_ready());
}

/* A configuration that comes with the request names the agents, too. */
static void
an_override_goes_through_its_own_agents(void **state)
{
    (void) state;
    char expected[4500];
    const char *config = "{\"backend\":\"identity\",\"input\":[{\"name\":"
        "\"IN\",\"data_type\":\"TYPE_FP32\",\"dims\":[-1]}],\"output\":[{"
        "\"name\":\"OUT\",\"data_type\":\"TYPE_FP32\",\"dims\":[-1]}],"
        "\"instance_group\":[{\"kind\":\"KIND_CPU\"}],"
        "\"model_repository_agents\":{\"agents\":[{\"name\":\"record\","
        "\"parameters\":{\"tag\":\"override\"}}]}}";

    write_model("{ name: 'gone' }");
    TRITONSERVER_Parameter *p = TRITONSERVER_ParameterNew("config",
        TRITONSERVER_PARAMETER_STRING, config);
    const TRITONSERVER_Parameter *list[1] = { p };
    succeeds(TRITONSERVER_ServerLoadModelWithParameters(w.server, "m", list,
        1));
    TRITONSERVER_ParameterDelete(p);
    snprintf(expected, sizeof(expected), "override LOAD_COMPLETE %s/repo/m\n",
        w.tree);
    expect_trace(expected);
    assert_true(is_ready());
}

static int
entries_in(const char *dir)
{
    DIR *d = opendir(dir);
    int n = 0;

    assert_non_null(d);
    while (readdir(d) != NULL) {
        n++;
    }
    closedir(d);
    return n;
}

/* After the first, which opens what stays open (the backend). */
static void
many_loads_leave_neither_folder_nor_descriptor(void **state)
{
    (void) state;
    int before = 0;

    unsetenv("INF_T_AGENT_TRACE");
    write_model("{ name: 'xor' parameters { key: 'key' value: '1' } },"
        " { name: 'record' parameters { key: 'acquire' value: '1' } }");
    for (int i = 0; i < 50; i++) {
        succeeds(TRITONSERVER_ServerLoadModel(w.server, "m"));
        assert_int_equal(entries_in(tree_path(w.tree, "temp")), 2 + 2);
        succeeds(TRITONSERVER_ServerUnloadModel(w.server, "m"));
        for (int k = 0; k < 60000 && !index_has("unloaded"); k++) {
            usleep(1000);
        }
        assert_int_equal(entries_in(tree_path(w.tree, "temp")), 2);
        if (i == 0) {
            before = entries_in("/proc/self/fd");
        }
    }
    assert_int_equal(entries_in("/proc/self/fd"), before);
}

int
main(void)
{
    inf_log_set_levels(false, false, false, 0);
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_load_through_an_agent_serves_and_unloads),
        T(a_load_that_an_agent_rejects_says_why_in_the_index),
        T(an_override_goes_through_its_own_agents),
        T(many_loads_leave_neither_folder_nor_descriptor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
