/* Actions of agents in a running lifecycle, between the calls of backends. */

#include "repository/index_rows.h"
#include "repository/process_exit.h"
#include "temp_tree.h"

#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/repository/agents.h"
#include "core/repository/lifecycle.h"
#include "core/storage/storage.h"
#include "core_config_of.h"
#include "repository/fake_plugin.h"

#define SECOND UINT64_C(1000000000)

/* How often the log had it. */
typedef struct {
    pthread_mutex_t lock;
    const char     *text;
    int             lines;
} told_t;

static told_t told = { .lock = PTHREAD_MUTEX_INITIALIZER };

typedef struct {
    char                   *tree;
    inf_core_config_t      *core_config;
    inf_repositories_t      repositories;
    inf_registry_t          registry;
    inf_lifecycle_t        *lc;
    index_rows_t            index;
} world_t;

static world_t w;

struct inf_agent_s {
    char name[32];
};

/* ---- agents that are functions; parameters "goto" and "fail" */

static inf_err_t *
call(const char *what, const inf_agent_t *agent)
{
    char text[100];

    snprintf(text, sizeof(text), "%s %s", what, agent->name);
    return fake_call(text) ? inf_err_new(INF_ERR_INVALID_ARG, "told to fail")
        : NULL;
}

static inf_err_t *
agent_open(const char *name, const char *library, inf_agent_t **out)
{
    (void) library;
    inf_agent_t *agent = calloc(1, sizeof(*agent));
    snprintf(agent->name, sizeof(agent->name), "%s", name);
    *out = agent;
    return NULL;
}

static void
agent_close(inf_agent_t *agent)
{
    free(agent);
}

static inf_err_t *
agent_model_init(inf_agent_t *agent, inf_agent_model_t *m)
{
    (void) agent;
    (void) m;
    return NULL;
}

static inf_err_t *
agent_model_fini(inf_agent_t *agent, inf_agent_model_t *m)
{
    (void) m;
    return call("END", agent);
}

static inf_err_t *
agent_act(inf_agent_t *agent, inf_agent_model_t *m, inf_agent_action_t action)
{
    static const char *const names[] = {
        "LOAD", "COMPLETE", "FAIL", "UNLOAD", "GONE"
    };
    const char *name, *value;

    inf_err_t *err = call(names[action], agent);
    if (action == INF_AGENT_LOAD && err == NULL
        && inf_agent_model_parameter_count(m) > 0)
    {
        assert_null(inf_agent_model_parameter(m, 0, &name, &value));
        err = inf_agent_model_relocate(m, INF_ARTIFACT_FILESYSTEM, value);
    }
    return err;
}

static const inf_agent_ops_t agent_ops = {
    .open = agent_open,
    .close = agent_close,
    .model_init = agent_model_init,
    .model_fini = agent_model_fini,
    .act = agent_act
};

/* ---- the log */

static void
note_line(void *userp, inf_log_level_t level, const char *file, int line_no,
    const char *line)
{
    (void) userp;
    (void) level;
    (void) file;
    (void) line_no;
    pthread_mutex_lock(&told.lock);
    told.lines += told.text != NULL && strstr(line, told.text) != NULL;
    pthread_mutex_unlock(&told.lock);
}

static void
expect_told(const char *text)
{
    pthread_mutex_lock(&told.lock);
    told.text = text;
    told.lines = 0;
    pthread_mutex_unlock(&told.lock);
}

static int
count_told(void)
{
    pthread_mutex_lock(&told.lock);
    int lines = told.lines;
    pthread_mutex_unlock(&told.lock);
    return lines;
}

/* ---- a lifecycle over one repository */

static void
changed(void *userp)
{
    (void) userp;
}

static void
start(void)
{
    const inf_lifecycle_options_t options = {
        .plugins = &fake_ops,
        .registry = &w.registry,
        .repositories = &w.repositories,
        .changed = changed,
        .core_config = w.core_config,
        .agents = &agent_ops
    };
    assert_ok(inf_lifecycle_new(&options, &w.lc));
}

static void
stop(void)
{
    assert_true(inf_lifecycle_stop(w.lc, 60 * SECOND));
    inf_lifecycle_free(w.lc);
    w.lc = NULL;
}

static int
setup(void **state)
{
    (void) state;
    char repo[4200];
    char *addresses[] = { repo };

    fake_reset();
    memset(&w, 0, sizeof(w));
    w.tree = tree_new();
    tree_file(w.tree, "backends/x/libtriton_x.so", "");
    tree_file(w.tree, "agents/a/libtritonrepoagent_a.so", "");
    tree_file(w.tree, "agents/b/libtritonrepoagent_b.so", "");
    tree_dir(w.tree, "repo");
    w.core_config = core_config_of("backend_directories: '%s/backends'"
        " agent_directories: '%s/agents' auto_complete: false code_upload:"
        " true load_threads: 2", w.tree, w.tree);
    snprintf(repo, sizeof(repo), "%s/repo", w.tree);
    assert_ok(inf_repositories_open(addresses, 1, false, inf_storage_open,
        &w.repositories));
    inf_registry_init(&w.registry);
    start();
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    if (w.lc != NULL) {
        stop();
    }
    inf_registry_fini(&w.registry);
    inf_repositories_close(&w.repositories);
    tree_free(w.tree);
    inf_core_config_unref(w.core_config);
    fake_reset();
    return 0;
}

#define TENSORS "input { name: 'A' data_type: TYPE_FP32 dims: 1 }"            \
    " output { name: 'B' data_type: TYPE_FP32 dims: 1 } "
#define AGENTS(list) " model_repository_agents { agents [ " list " ] } "
#define AB AGENTS("{ name: 'a' }, { name: 'b' }")
#define JSON "{\"backend\":\"x\",\"input\":[{\"name\":\"A\",\"data_type\":"   \
    "\"TYPE_FP32\",\"dims\":[1]}],\"output\":[{\"name\":\"B\",\"data_type\":" \
    "\"TYPE_FP32\",\"dims\":[1]}],\"model_repository_agents\":{\"agents\":["  \
    "{\"name\":\"b\"}]}}"

/* directory with versions 1 to count and that configuration. */
static void
write_model(const char *folder, const char *config, int count)
{
    char path[300], text[2048];

    snprintf(path, sizeof(path), "%s/config.pbtxt", folder);
    snprintf(text, sizeof(text), "backend: 'x' version_policy { all {} } %s"
        TENSORS, config);
    tree_file(w.tree, path, text);
    for (int i = 1; i <= count; i++) {
        snprintf(path, sizeof(path), "%s/%d/data", folder, i);
        tree_file(w.tree, path, "1");
    }
}

/* Agents' calls, and init and fini of versions, with ';' after each. */
static const char *
heard(void)
{
    static char text[FAKE_TRACE_SIZE];
    char all[FAKE_TRACE_SIZE];
    char *rest;

    pthread_mutex_lock(&fake.lock);
    memcpy(all, fake.trace, sizeof(all));
    pthread_mutex_unlock(&fake.lock);

    text[0] = '\0';
    for (char *one = strtok_r(all, ";", &rest); one != NULL;
        one = strtok_r(NULL, ";", &rest))
    {
        if (strncmp(one, "open", 4) != 0 && strncmp(one, "close", 5) != 0
            && strncmp(one, "iinit", 5) != 0
            && strncmp(one, "ifini", 5) != 0)
        {
            strcat(text, one);
            strcat(text, ";");
        }
    }
    return text;
}

/* And forgets it. */
static void
expect_heard(const char *expected)
{
    uint64_t until = inf_clock_ns() + 60 * SECOND;

    while (strcmp(heard(), expected) != 0) {
        if (inf_clock_ns() > until) {
            assert_string_equal(heard(), expected);
        }
        usleep(1000);
    }

    pthread_mutex_lock(&fake.lock);
    fake.trace[0] = '\0';
    pthread_mutex_unlock(&fake.lock);
}

/* In any order. */
static void
expect_either(const char *one, const char *other)
{
    uint64_t until = inf_clock_ns() + 60 * SECOND;

    while (strcmp(heard(), one) != 0 && strcmp(heard(), other) != 0
        && inf_clock_ns() < until)
    {
        usleep(1000);
    }
    expect_heard(strcmp(heard(), other) == 0 ? other : one);
}

static const char *
rows(void)
{
    return index_rows(&w.index, w.lc);
}

static void
expect_row(const char *row)
{
    if (strstr(rows(), row) == NULL) {
        fail_msg("no \"%s\" in \"%s\"", row, w.index.text);
    }
}

/* ---- tests */

static void
a_load_is_completed_when_all_versions_serve(void **state)
{
    (void) state;
    write_model("repo/m", AB, 2);
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    expect_heard("LOAD a;LOAD b;init m/1;init m/2;COMPLETE b;COMPLETE a;");
    expect_row("m/2 READY");
}

/* It begins when they are withdrawn and ends after the last was destroyed. */
static void
an_unload_spans_the_end_of_all_versions(void **state)
{
    (void) state;
    write_model("repo/m", AB, 1);
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    expect_heard("LOAD a;LOAD b;init m/1;COMPLETE b;COMPLETE a;");
    assert_ok(inf_lifecycle_unload(w.lc, "m", false));
    expect_heard("UNLOAD a;UNLOAD b;fini m/1;GONE b;GONE a;END b;END a;");
}

static void
a_stop_is_an_unload(void **state)
{
    (void) state;
    write_model("repo/m", AB, 1);
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    stop();
    expect_heard("LOAD a;LOAD b;init m/1;COMPLETE b;COMPLETE a;"
        "UNLOAD a;UNLOAD b;fini m/1;GONE b;GONE a;END b;END a;");
}

static void
a_version_that_fails_fails_the_load_for_the_agents(void **state)
{
    (void) state;
    write_model("repo/m", AB, 1);
    fake.fail = "init m/1";
    assert_error(inf_lifecycle_load(w.lc, "m", NULL), INF_ERR_INVALID_ARG,
        "version 1 is at UNAVAILABLE state");
    expect_heard("LOAD a;LOAD b;init m/1;fini m/1;FAIL b;FAIL a;END b;"
        "END a;");
}

/* Also the versions that did load are finalized before the agents end. */
static void
one_of_two_versions_is_enough_to_fail(void **state)
{
    (void) state;
    write_model("repo/m", AB, 2);
    fake.fail = "init m/2";
    assert_error(inf_lifecycle_load(w.lc, "m", NULL), INF_ERR_INVALID_ARG,
        "version 2 is at UNAVAILABLE state");
    expect_heard("LOAD a;LOAD b;init m/1;init m/2;fini m/2;FAIL b;FAIL a;"
        "fini m/1;END b;END a;");
}

static void
an_agent_that_fails_is_the_model_s_reason(void **state)
{
    (void) state;
    write_model("repo/m", AB, 1);
    fake.fail = "LOAD b";
    assert_error(inf_lifecycle_load(w.lc, "m", NULL), INF_ERR_INTERNAL,
        "failed to load 'm', failed to poll from model repository");
    expect_heard("LOAD a;LOAD b;FAIL b;FAIL a;END b;END a;");
    expect_row("m/-1 UNAVAILABLE told to fail (repo agent 'b')");

    fake.fail = NULL;
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    expect_row("m/1 READY");
}

/* A rejected model must not be shown as still loading. */
static void
a_model_that_was_rejected_at_the_start_is_not_loading(void **state)
{
    (void) state;
    inf_registry_reader_t reader;
    inf_model_t *model;
    char *names[] = { (char *) "m" };

    write_model("repo/m", AB, 1);
    fake.fail = "LOAD a";
    assert_ok(inf_lifecycle_start(w.lc, false, names, 1, NULL, 0));
    inf_lifecycle_wait(w.lc);
    inf_registry_reader_init(&reader, &w.registry);
    assert_error(inf_registry_find(&reader, INF_SLICE("m"), -1, &model),
        INF_ERR_NOT_FOUND, "m");
    inf_registry_reader_fini(&reader);
}

static void
a_configuration_that_is_wrong_ends_the_chain(void **state)
{
    (void) state;
    write_model("repo/m", " max_batch_size: -1 " AB, 1);
    assert_error(inf_lifecycle_load(w.lc, "m", NULL), INF_ERR_INTERNAL,
        "failed to load");
    expect_heard("LOAD a;LOAD b;FAIL b;FAIL a;END b;END a;");
}

/* The new versions serve before the old ones hear that they go. */
static void
a_reload_runs_a_chain_of_its_own(void **state)
{
    (void) state;
    write_model("repo/m", AGENTS("{ name: 'a' }"), 2);
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    expect_heard("LOAD a;init m/1;init m/2;COMPLETE a;");

    write_model("repo/m", AGENTS("{ name: 'b' }"), 1);
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    inf_lifecycle_wait(w.lc);
    uint64_t until = inf_clock_ns() + 60 * SECOND;
    while (fake_count("END a") == 0 && inf_clock_ns() < until) {
        usleep(1000);
    }
    assert_true(fake_before("LOAD b", "init m/1"));
    assert_true(fake_before("COMPLETE b", "UNLOAD a"));
    assert_true(fake_before("UNLOAD a", "fini m/1"));
    assert_true(fake_before("fini m/1", "GONE a"));
    assert_true(fake_before("fini m/2", "GONE a"));
    assert_true(fake_before("GONE a", "END a"));
    assert_int_equal(fake_count("LOAD a"), 0);
    assert_int_equal(fake_count("UNLOAD b"), 0);
}

static void
a_failed_reload_keeps_the_old_chain(void **state)
{
    (void) state;
    write_model("repo/m", AGENTS("{ name: 'a' }"), 1);
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    expect_heard("LOAD a;init m/1;COMPLETE a;");

    write_model("repo/m", AGENTS("{ name: 'b' }"), 1);
    fake.fail = "init m/1";
    assert_error(inf_lifecycle_load(w.lc, "m", NULL), INF_ERR_INVALID_ARG,
        "load failed");
    expect_heard("LOAD b;init m/1;fini m/1;FAIL b;END b;");
    expect_row("m/1 READY");

    fake.fail = "LOAD b";
    assert_error(inf_lifecycle_load(w.lc, "m", NULL), INF_ERR_INTERNAL,
        "failed to load");
    expect_heard("LOAD b;FAIL b;END b;");
    expect_row("m/1 READY");

    assert_ok(inf_lifecycle_unload(w.lc, "m", false));
    expect_heard("UNLOAD a;fini m/1;GONE a;END a;");
}

static void
without_a_change_no_agent_is_asked_again(void **state)
{
    (void) state;
    char config[5000];

    tree_dir(w.tree, "elsewhere/1");
    snprintf(config, sizeof(config), AGENTS("{ name: 'a' parameters { key:"
        " 'goto' value: '%s/elsewhere' } }"), w.tree);
    write_model("repo/m", config, 1);
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    expect_heard("LOAD a;init m/1;COMPLETE a;");
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    assert_string_equal(heard(), "");
}

/* Only a version's own file: but who knows what agents made of it. */
static void
a_change_of_one_version_rebuilds_all(void **state)
{
    (void) state;
    write_model("repo/m", AGENTS("{ name: 'a' }"), 2);
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    expect_heard("LOAD a;init m/1;init m/2;COMPLETE a;");
    usleep(20000);
    tree_file(w.tree, "repo/m/2/data", "22");
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    assert_int_equal(fake_count("init m/1"), 1);
    assert_int_equal(fake_count("init m/2"), 1);
}

/* The files are the same: agents are not asked for them again. */
/* reference, edge case 27: the chain that was loaded stays, the one that was
   tried hears LOAD_FAIL */
static void
other_instances_leave_the_chain_alone(void **state)
{
    (void) state;
    write_model("repo/m", AB "instance_group { count: 1 kind: KIND_CPU }", 1);
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    expect_heard("LOAD a;LOAD b;init m/1;COMPLETE b;COMPLETE a;");
    for (int count = 2; count < 4; count++) {
        char config[200];
        snprintf(config, sizeof(config), AB "instance_group { count: %d kind:"
            " KIND_CPU }", count);
        write_model("repo/m", config, 0);
        assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
        expect_heard("LOAD a;LOAD b;FAIL b;FAIL a;END b;END a;");
        assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
        expect_heard("");                       /* nothing is new            */
    }
    expect_row("m/1 READY \n");

    tree_file(w.tree, "repo/m/2/data", "1");    /* a version came, too       */
    write_model("repo/m", AB "instance_group { count: 1 kind: KIND_CPU }", 0);
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    expect_heard("LOAD a;LOAD b;init m/1;init m/2;COMPLETE b;COMPLETE a;"
        "UNLOAD a;UNLOAD b;fini m/1;GONE b;GONE a;END b;END a;");
}

static void
a_broken_instance_is_none_of_the_agents_business(void **state)
{
    (void) state;
    const inf_model_id_t m_id = inf_model_id("m");
    write_model("repo/m", AB, 1);
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    expect_heard("LOAD a;LOAD b;init m/1;COMPLETE b;COMPLETE a;");
    process_exit_of(w.lc, &m_id, 1);
    expect_either("init m/1;fini m/1;", "fini m/1;init m/1;");
    assert_ok(inf_lifecycle_unload(w.lc, "m", false));
    expect_heard("UNLOAD a;UNLOAD b;fini m/1;GONE b;GONE a;END b;END a;");
}

static void
versions_are_those_of_the_new_place(void **state)
{
    (void) state;
    char config[5000];

    tree_dir(w.tree, "elsewhere/4");
    tree_dir(w.tree, "elsewhere/7");
    snprintf(config, sizeof(config), AGENTS("{ name: 'a' parameters { key:"
        " 'goto' value: '%s/elsewhere/' } }"), w.tree);
    write_model("repo/m", config, 0);
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    expect_heard("LOAD a;init m/4;init m/7;COMPLETE a;");
}

static void
what_is_wrong_in_the_new_place_is_all_told(void **state)
{
    (void) state;
    char config[5000];

    tree_dir(w.tree, "elsewhere/1");
    tree_dir(w.tree, "elsewhere/02");
    tree_dir(w.tree, "elsewhere/03");
    tree_dir(w.tree, "elsewhere/9223372036854775808");
    snprintf(config, sizeof(config), AGENTS("{ name: 'a' parameters { key:"
        " 'goto' value: '%s/elsewhere' } }"), w.tree);
    write_model("repo/m", config, 1);
    expect_told("model 'm': ignore version directory");
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));
    assert_int_equal(count_told(), 3);
    expect_heard("LOAD a;init m/1;COMPLETE a;");
}

static void
a_new_place_without_versions_is_rejected(void **state)
{
    (void) state;
    char config[5000];

    tree_dir(w.tree, "elsewhere");
    snprintf(config, sizeof(config), AGENTS("{ name: 'a' parameters { key:"
        " 'goto' value: '%s/elsewhere' } }"), w.tree);
    write_model("repo/m", config, 1);
    assert_error(inf_lifecycle_load(w.lc, "m", NULL), INF_ERR_INVALID_ARG,
        "at least one version must be available");
    expect_heard("LOAD a;FAIL a;END a;");
}

static void
the_configuration_of_the_new_place_goes_first(void **state)
{
    (void) state;
    char config[5000];

    write_model("elsewhere", " name: 'm' parameters { key: 'k' } ", 1);
    snprintf(config, sizeof(config), AGENTS("{ name: 'a' parameters { key:"
        " 'goto' value: '%s/elsewhere' } }"), w.tree);
    write_model("repo/m", config, 1);
    assert_ok(inf_lifecycle_load(w.lc, "m", NULL));

    inf_registry_reader_t reader;
    inf_model_t *model;
    inf_registry_reader_init(&reader, &w.registry);
    assert_ok(inf_registry_find(&reader, INF_SLICE("m"), -1, &model));
    assert_int_equal(model->config->msg->n_parameters, 1);
    assert_string_equal(model->dir, tree_path(w.tree, "elsewhere"));
    inf_model_unref(model);
    inf_registry_reader_fini(&reader);

    tree_file(w.tree, "elsewhere/config.pbtxt", "rubbish {");
    usleep(20000);
    write_model("repo/m", config, 1);
    assert_error(inf_lifecycle_load(w.lc, "m", NULL), INF_ERR_INTERNAL,
        "failed to load");
    expect_row("m/1 READY");
}

static void
files_of_a_request_go_through_its_agents(void **state)
{
    (void) state;
    inf_override_t *o;

    assert_ok(inf_override_new(&o));
    assert_ok(inf_override_set_config(o, INF_SLICE(JSON)));
    assert_ok(inf_override_add_file(o, "3/data", INF_SLICE("x")));
    write_model("repo/m", AGENTS("{ name: 'a' }"), 1);
    assert_ok(inf_lifecycle_load(w.lc, "m", o));
    expect_heard("LOAD b;init m/3;COMPLETE b;");
    assert_ok(inf_lifecycle_unload(w.lc, "m", false));
    expect_heard("UNLOAD b;fini m/3;GONE b;END b;");
}

int
main(void)
{
    inf_log_set_sink(note_line, NULL);
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_load_is_completed_when_all_versions_serve),
        T(an_unload_spans_the_end_of_all_versions),
        T(a_stop_is_an_unload),
        T(a_version_that_fails_fails_the_load_for_the_agents),
        T(one_of_two_versions_is_enough_to_fail),
        T(an_agent_that_fails_is_the_model_s_reason),
        T(a_model_that_was_rejected_at_the_start_is_not_loading),
        T(a_configuration_that_is_wrong_ends_the_chain),
        T(a_reload_runs_a_chain_of_its_own),
        T(a_failed_reload_keeps_the_old_chain),
        T(without_a_change_no_agent_is_asked_again),
        T(a_change_of_one_version_rebuilds_all),
        T(other_instances_leave_the_chain_alone),
        T(a_broken_instance_is_none_of_the_agents_business),
        T(versions_are_those_of_the_new_place),
        T(what_is_wrong_in_the_new_place_is_all_told),
        T(a_new_place_without_versions_is_rejected),
        T(the_configuration_of_the_new_place_goes_first),
        T(files_of_a_request_go_through_its_agents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
