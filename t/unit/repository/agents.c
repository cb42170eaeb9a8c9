/* The chain of agents of one model, with agents that are functions here. */

#include <dirent.h>
#include <stdbool.h>

#include "core/base/log.h"
#include "core/repository/agents.h"
#include "core/storage/storage_local.h"
#include "temp_tree.h"

#define TRACE_SIZE 8192

/* The calls so far, "open a;init a;LOAD a;...", and the faults to inject. */
static struct {
    char        trace[TRACE_SIZE];
    const char *fail;                   /* "LOAD b"                          */
    const char *when;                   /* call that does something          */
    void      (*then)(inf_agent_model_t *m);
    const char *when_too;               /* a second one                      */
    void      (*then_too)(inf_agent_model_t *m);
    const char *action;                 /* of the model, as an error says    */
    char        seen[TRACE_SIZE];       /* locations in LOAD, "/x;/y;"       */
} fake;

static struct {
    char               *tree;
    char               *dir;
    char               *temp;
    char               *agent_dirs[1];
    inf_storage_t      *storage;
    inf_agent_table_t  *table;
} w;

struct inf_agent_s {
    char name[32];
};

static void
add(char *to, const char *text)
{
    strncat(to, text, TRACE_SIZE - strlen(to) - 1);
    strncat(to, ";", TRACE_SIZE - strlen(to) - 1);
}

static inf_err_t *
call(const char *what, const inf_agent_t *agent, inf_agent_model_t *m)
{
    char text[100];

    snprintf(text, sizeof(text), "%s %s", what, agent->name);
    add(fake.trace, text);
    if (fake.when != NULL && strcmp(fake.when, text) == 0) {
        fake.then(m);
    }
    if (fake.when_too != NULL && strcmp(fake.when_too, text) == 0) {
        fake.then_too(m);
    }
    return fake.fail != NULL && strcmp(fake.fail, text) == 0
        ? inf_err_new(INF_ERR_INVALID_ARG, "told to fail") : NULL;
}

static inf_err_t *
fake_open(const char *name, const char *library, inf_agent_t **out)
{
    inf_agent_t *agent = calloc(1, sizeof(*agent));

    (void) library;
    snprintf(agent->name, sizeof(agent->name), "%s", name);
    inf_err_t *err = call("open", agent, NULL);
    if (err != NULL) {
        free(agent);
        return err;
    }
    *out = agent;
    return NULL;
}

static void
fake_close(inf_agent_t *agent)
{
    inf_err_free(call("close", agent, NULL));
    free(agent);
}

static inf_err_t *
fake_model_init(inf_agent_t *agent, inf_agent_model_t *m)
{
    return call("init", agent, m);
}

static inf_err_t *
fake_model_fini(inf_agent_t *agent, inf_agent_model_t *m)
{
    return call("fini", agent, m);
}

static inf_err_t *
fake_act(inf_agent_t *agent, inf_agent_model_t *m, inf_agent_action_t action)
{
    static const char *const names[] = {
        "LOAD", "LOAD_COMPLETE", "LOAD_FAIL", "UNLOAD", "UNLOAD_COMPLETE"
    };
    inf_artifact_t artifact;
    const char *location;

    if (action == INF_AGENT_LOAD) {
        assert_null(inf_agent_model_location(m, &artifact, &location));
        add(fake.seen, location);
    }
    return call(names[action], agent, m);
}

static const inf_agent_ops_t fake_ops = {
    .open = fake_open,
    .close = fake_close,
    .model_init = fake_model_init,
    .model_fini = fake_model_fini,
    .act = fake_act
};

static int
setup(void **state)
{
    (void) state;
    memset(&fake, 0, sizeof(fake));
    w.tree = tree_new();
    tree_dir(w.tree, "m/1");
    tree_dir(w.tree, "temp");
    tree_file(w.tree, "agents/a/libtritonrepoagent_a.so", "");
    tree_file(w.tree, "agents/b/libtritonrepoagent_b.so", "");
    tree_file(w.tree, "agents/c/libtritonrepoagent_c.so", "");
    w.dir = strdup(tree_path(w.tree, "m"));
    w.temp = strdup(tree_path(w.tree, "temp"));
    w.agent_dirs[0] = strdup(tree_path(w.tree, "agents"));
    setenv("TMPDIR", w.temp, 1);
    assert_null(inf_storage_local_open(&w.storage));
    assert_null(inf_agent_table_new(&fake_ops, &w.table));
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    unsetenv("TMPDIR");
    inf_agent_table_free(w.table);
    inf_storage_close(w.storage);
    free(w.dir);
    free(w.temp);
    free(w.agent_dirs[0]);
    tree_free(w.tree);
    return 0;
}

static inf_err_t *
load(const char *config, inf_agents_t **out)
{
    static const inf_config_options_t opt = { .auto_complete = true };
    const inf_agents_model_t model = {
        .storage = w.storage, .dir = w.dir, .name = "m", .config = &opt,
        .agent_dirs = { w.agent_dirs, 1 }
    };

    if (config != NULL) {
        tree_file(w.tree, "m/config.pbtxt", config);
    }
    return inf_agents_load(w.table, &model, out);
}

#define AGENTS(list) "model_repository_agents { agents [" list "] }"
#define AB AGENTS("{ name: 'a' }, { name: 'b' }")
#define ABC AGENTS("{ name: 'a' }, { name: 'b' }, { name: 'c' }")

#define BEGUN "open a;init a;LOAD a;open b;init b;LOAD b;"
#define ENDED "fini b;close b;fini a;close a;"

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
    return n - 2;
}

static void
a_model_without_agents_has_no_chain(void **state)
{
    (void) state;
    inf_agents_t *c = (void *) 1;

    assert_ok(load(NULL, &c));
    assert_null(c);
    assert_ok(load("backend: 'x'", &c));
    assert_null(c);
    assert_ok(load(AGENTS(""), &c));
    assert_null(c);
    assert_string_equal(fake.trace, "");
}

static void
a_configuration_that_cannot_be_parsed_calls_no_agent(void **state)
{
    (void) state;
    inf_agents_t *c;

    assert_error(load("model_repository_agents { agents {", &c),
        INF_ERR_INTERNAL, "config.pbtxt");
    assert_null(c);
    assert_string_equal(fake.trace, "");
}

static void
actions_go_in_order_and_back(void **state)
{
    (void) state;
    inf_agents_t *c;

    assert_ok(load(AB, &c));
    assert_string_equal(inf_agents_dir(c), w.dir);
    assert_ptr_equal(inf_agents_storage(c), w.storage);
    inf_agents_complete(c);
    inf_agents_unload(c);
    inf_agents_free(c);
    assert_string_equal(fake.trace, BEGUN "LOAD_COMPLETE b;LOAD_COMPLETE a;"
        "UNLOAD a;UNLOAD b;UNLOAD_COMPLETE b;UNLOAD_COMPLETE a;" ENDED);
}

static void
each_step_is_taken_once(void **state)
{
    (void) state;
    inf_agents_t *c;

    assert_ok(load(AB, &c));
    inf_agents_unload(c);               /* nothing was completed             */
    inf_agents_complete(c);
    inf_agents_complete(c);
    inf_agents_fail(c);
    inf_agents_unload(c);
    inf_agents_unload(c);
    inf_agents_complete(c);
    inf_agents_free(c);
    assert_string_equal(fake.trace, BEGUN "LOAD_COMPLETE b;LOAD_COMPLETE a;"
        "UNLOAD a;UNLOAD b;UNLOAD_COMPLETE b;UNLOAD_COMPLETE a;" ENDED);
}

static void
a_failed_load_is_told_in_reverse(void **state)
{
    (void) state;
    inf_agents_t *c;

    assert_ok(load(AB, &c));
    inf_agents_fail(c);
    assert_string_equal(fake.trace, BEGUN "LOAD_FAIL b;LOAD_FAIL a;");
    inf_agents_complete(c);
    inf_agents_unload(c);
    inf_agents_free(c);
    assert_string_equal(fake.trace, BEGUN "LOAD_FAIL b;LOAD_FAIL a;" ENDED);
}

static void
what_is_missing_follows_an_early_end(void **state)
{
    (void) state;
    inf_agents_t *c;

    assert_ok(load(AB, &c));
    inf_agents_free(c);
    assert_string_equal(fake.trace, BEGUN "LOAD_FAIL b;LOAD_FAIL a;" ENDED);

    fake.trace[0] = '\0';
    assert_ok(load(AB, &c));
    inf_agents_complete(c);
    inf_agents_free(c);
    assert_string_equal(fake.trace, BEGUN "LOAD_COMPLETE b;LOAD_COMPLETE a;"
        "UNLOAD a;UNLOAD b;UNLOAD_COMPLETE b;UNLOAD_COMPLETE a;" ENDED);
}

static void
the_end_of_the_source_ends_the_chain(void **state)
{
    (void) state;
    inf_agents_t *c;

    assert_ok(load(AB, &c));
    inf_agents_complete(c);
    inf_agents_unload(c);
    inf_agents_free(NULL);
    assert_null(strstr(fake.trace, "UNLOAD_COMPLETE"));
    inf_agents_free(c);
    assert_non_null(strstr(fake.trace, "UNLOAD_COMPLETE a;fini b;"));
}

/* Each step of the second of three, in turn. */
static void
a_failure_at_each_step_undoes_what_was_done(void **state)
{
    (void) state;
    inf_agents_t *c;

    fake.fail = "open b";
    assert_error(load(ABC, &c), INF_ERR_INVALID_ARG,
        "told to fail (repo agent 'b')");
    assert_null(c);
    assert_string_equal(fake.trace, "open a;init a;LOAD a;open b;"
        "LOAD_FAIL a;fini a;close a;");

    fake.trace[0] = '\0';
    fake.fail = "init b";
    assert_error(load(ABC, &c), INF_ERR_INVALID_ARG,
        "told to fail (repo agent 'b')");
    assert_string_equal(fake.trace, "open a;init a;LOAD a;open b;init b;"
        "LOAD_FAIL a;" ENDED);

    fake.trace[0] = '\0';
    fake.fail = "LOAD b";
    assert_error(load(ABC, &c), INF_ERR_INVALID_ARG,
        "told to fail (repo agent 'b')");
    assert_string_equal(fake.trace, BEGUN "LOAD_FAIL b;LOAD_FAIL a;" ENDED);
}

/* Errors of later actions stop nothing. */
static void
an_error_after_load_is_only_logged(void **state)
{
    (void) state;
    const char *calls[] = {
        "LOAD_COMPLETE b", "UNLOAD a", "UNLOAD_COMPLETE b", "fini b"
    };

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        inf_agents_t *c;
        fake.trace[0] = '\0';
        fake.fail = calls[i];
        assert_ok(load(AB, &c));
        inf_agents_complete(c);
        inf_agents_unload(c);
        inf_agents_free(c);
        assert_string_equal(fake.trace, BEGUN
            "LOAD_COMPLETE b;LOAD_COMPLETE a;UNLOAD a;UNLOAD b;"
            "UNLOAD_COMPLETE b;UNLOAD_COMPLETE a;" ENDED);
    }

    inf_agents_t *c;
    fake.trace[0] = '\0';
    fake.fail = "LOAD_FAIL b";
    assert_ok(load(AB, &c));
    inf_agents_fail(c);
    inf_agents_free(c);
    assert_string_equal(fake.trace, BEGUN "LOAD_FAIL b;LOAD_FAIL a;" ENDED);
}

static void
an_agent_that_is_not_there_is_named(void **state)
{
    (void) state;
    inf_agents_t *c;

    assert_error(load(AGENTS("{ name: 'a' }, { name: 'gone' }"), &c),
        INF_ERR_NOT_FOUND, "unable to find 'libtritonrepoagent_gone.so' for"
        " repo agent 'gone', searched: ");
    assert_string_equal(fake.trace, "open a;init a;LOAD a;LOAD_FAIL a;"
        "fini a;close a;");

    const char *names[] = { "", ".", "..", "a/b", "../a" };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char config[200];
        snprintf(config, sizeof(config), AGENTS("{ name: '%s' }"), names[i]);
        assert_error(load(config, &c), INF_ERR_INVALID_ARG, "not a path");
    }
}

static void
one_agent_twice_in_a_chain_is_one_library(void **state)
{
    (void) state;
    inf_agents_t *c;

    assert_ok(load(AGENTS("{ name: 'a' }, { name: 'a' }"), &c));
    inf_agents_free(c);
    assert_string_equal(fake.trace, "open a;init a;LOAD a;init a;LOAD a;"
        "LOAD_FAIL a;LOAD_FAIL a;fini a;fini a;close a;");
}

/* ---- location */

static void
go_to_other(inf_agent_model_t *m)
{
    assert_ok(inf_agent_model_relocate(m, INF_ARTIFACT_FILESYSTEM,
        tree_path(w.tree, "other//")));
}

static void
the_next_agent_sees_where_the_last_left_the_model(void **state)
{
    (void) state;
    inf_agents_t *c;
    char seen[TRACE_SIZE];

    tree_dir(w.tree, "other/1");
    fake.when = "LOAD a";
    fake.then = go_to_other;
    assert_ok(load(AB, &c));
    snprintf(seen, sizeof(seen), "%s;%s;", w.dir, tree_path(w.tree,
        "other//"));
    assert_string_equal(fake.seen, seen);
    assert_string_equal(inf_agents_dir(c), tree_path(w.tree, "other"));
    assert_ptr_not_equal(inf_agents_storage(c), w.storage);
    inf_agents_free(c);
}

static void
go_nowhere(inf_agent_model_t *m)
{
    assert_error(inf_agent_model_relocate(m, INF_ARTIFACT_FILESYSTEM, ""),
        INF_ERR_INVALID_ARG, "is empty");
    assert_error(inf_agent_model_relocate(m, INF_ARTIFACT_FILESYSTEM, NULL),
        INF_ERR_INVALID_ARG, "is empty");
    assert_error(inf_agent_model_relocate(m, 2, "/tmp"), INF_ERR_INVALID_ARG,
        "unknown artifact type 2");
    assert_ok(inf_agent_model_relocate(m, INF_ARTIFACT_FILESYSTEM,
        tree_path(w.tree, "gone")));
}

static void
go_to_file(inf_agent_model_t *m)
{
    assert_ok(inf_agent_model_relocate(m, INF_ARTIFACT_FILESYSTEM,
        tree_path(w.tree, "m/config.pbtxt")));
}

static void
go_to_moon(inf_agent_model_t *m)
{
    assert_ok(inf_agent_model_relocate(m, INF_ARTIFACT_REMOTE_FILESYSTEM,
        "as://crater"));
}

static void
a_location_that_is_no_folder_fails_the_load(void **state)
{
    (void) state;
    inf_agents_t *c;

    fake.when = "LOAD b";
    fake.then = go_nowhere;
    assert_error(load(AB, &c), INF_ERR_NOT_FOUND,
        "repo agent 'b' left the model at '");
    assert_string_equal(fake.trace, BEGUN "LOAD_FAIL b;LOAD_FAIL a;" ENDED);

    fake.then = go_to_file;
    assert_error(load(AB, &c), INF_ERR_INVALID_ARG, "that is not a directory");
    fake.then = go_to_moon;
    assert_error(load(AB, &c), INF_ERR_INVALID_ARG,
        "left the model at 'as://crater'");
    assert_null(c);
}

/* Also where nothing can be read the next agent is asked, and may help. */
static void
a_later_agent_may_repair_the_location(void **state)
{
    (void) state;
    inf_agents_t *c;

    tree_dir(w.tree, "other/1");
    fake.when = "LOAD a";
    fake.then = go_to_moon;
    fake.when_too = "LOAD b";
    fake.then_too = go_to_other;
    assert_ok(load(AB, &c));
    assert_non_null(strstr(fake.seen, "as://crater;"));
    assert_string_equal(inf_agents_dir(c), tree_path(w.tree, "other"));
    inf_agents_free(c);
}

static void
update_late(inf_agent_model_t *m)
{
    inf_artifact_t artifact;
    const char *before, *after;

    assert_ok(inf_agent_model_location(m, &artifact, &before));
    assert_error(inf_agent_model_relocate(m, INF_ARTIFACT_FILESYSTEM, "/tmp"),
        INF_ERR_INVALID_ARG, fake.action);
    assert_ok(inf_agent_model_location(m, &artifact, &after));
    assert_string_equal(before, after);
}

static void
the_location_changes_in_load_only(void **state)
{
    (void) state;
#define DURING_LOAD "location can only be updated during"                     \
    " TRITONREPOAGENT_ACTION_LOAD, current action type is "
#define CALLED "TRITONREPOAGENT_ACTION_"
    static const char *const calls[][2] = {
        { "init a", DURING_LOAD "not set" },
        { "LOAD_COMPLETE a", DURING_LOAD CALLED "LOAD_COMPLETE (" },
        { "UNLOAD a", DURING_LOAD CALLED "UNLOAD (" },
        { "UNLOAD_COMPLETE a", DURING_LOAD CALLED "UNLOAD_COMPLETE (" },
        { "fini a", DURING_LOAD CALLED "UNLOAD_COMPLETE (" }
    };

    fake.then = update_late;
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        inf_agents_t *c;
        fake.when = calls[i][0];
        fake.action = calls[i][1];
        assert_ok(load(AB, &c));
        inf_agents_complete(c);
        inf_agents_free(c);
    }

    inf_agents_t *c;
    fake.when = "LOAD_FAIL a";
    fake.action = DURING_LOAD CALLED "LOAD_FAIL (";
    assert_ok(load(AB, &c));
    inf_agents_free(c);
}

/* ---- temporary directories */

static void
acquire(inf_agent_model_t *m)
{
    const char *folder, *again;
    char path[4096];

    assert_error(inf_agent_model_acquire(m, INF_ARTIFACT_REMOTE_FILESYSTEM,
        &folder), INF_ERR_INVALID_ARG, "Unexpected artifact type, expects"
        " 'TRITONREPOAGENT_ARTIFACT_FILESYSTEM'");
    assert_error(inf_agent_model_release(m), INF_ERR_UNAVAILABLE,
        "No mutable location to be deleted");
    assert_ok(inf_agent_model_acquire(m, INF_ARTIFACT_FILESYSTEM, &folder));
    assert_ok(inf_agent_model_acquire(m, INF_ARTIFACT_FILESYSTEM, &again));
    assert_string_equal(folder, again);
    assert_int_equal(strncmp(folder, w.temp, strlen(w.temp)), 0);

    snprintf(path, sizeof(path), "%s/1", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof(path), "%s/link", folder);
    assert_int_equal(symlink("/etc", path), 0);
    assert_ok(inf_agent_model_relocate(m, INF_ARTIFACT_FILESYSTEM, folder));
}

static void
a_folder_lives_as_long_as_the_model(void **state)
{
    (void) state;
    inf_agents_t *c;

    fake.when = "LOAD a";
    fake.then = acquire;
    assert_ok(load(AB, &c));
    assert_int_equal(entries_in(w.temp), 1);
    assert_int_equal(entries_in(inf_agents_dir(c)), 2);
    inf_agents_complete(c);
    inf_agents_unload(c);
    assert_int_equal(entries_in(w.temp), 1);
    inf_agents_free(c);
    assert_int_equal(entries_in(w.temp), 0);
    assert_true(entries_in("/etc") > 0);

    fake.fail = "LOAD b";
    assert_error(load(AB, &c), INF_ERR_INVALID_ARG, "told to fail");
    assert_int_equal(entries_in(w.temp), 0);
}

static void
acquire_and_release(inf_agent_model_t *m)
{
    const char *folder;

    acquire(m);
    assert_ok(inf_agent_model_release(m));
    assert_int_equal(entries_in(w.temp), 0);
    assert_error(inf_agent_model_release(m), INF_ERR_UNAVAILABLE,
        "No mutable location to be deleted");
    assert_ok(inf_agent_model_acquire(m, INF_ARTIFACT_FILESYSTEM, &folder));
    assert_int_equal(entries_in(folder), 0);
    assert_ok(inf_agent_model_relocate(m, INF_ARTIFACT_FILESYSTEM, folder));
}

static void
a_released_folder_is_gone_and_the_next_is_empty(void **state)
{
    (void) state;
    inf_agents_t *c;

    fake.when = "LOAD b";
    fake.then = acquire_and_release;
    assert_ok(load(AB, &c));
    inf_agents_free(c);
    assert_int_equal(entries_in(w.temp), 0);
}

static void
acquire_in_vain(inf_agent_model_t *m)
{
    const char *folder;

    assert_error(inf_agent_model_acquire(m, INF_ARTIFACT_FILESYSTEM, &folder),
        INF_ERR_INTERNAL, "cannot create a directory in /nonexistent/inf");
}

static void
a_folder_that_cannot_be_made_is_an_error(void **state)
{
    (void) state;
    inf_agents_t *c;

    setenv("TMPDIR", "/nonexistent/inf", 1);
    fake.when = "LOAD a";
    fake.then = acquire_in_vain;
    assert_ok(load(AB, &c));
    inf_agents_free(c);
}

/* ---- parameters, configuration, state */

static void
look_at_parameters(inf_agent_model_t *m)
{
    const char *expected[][2] = {
        { "z", "1" }, { "a", "two" }, { "", "no name" }, { "empty", "" }
    };
    const char *name, *value;

    assert_int_equal(inf_agent_model_parameter_count(m), 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_ok(inf_agent_model_parameter(m, i, &name, &value));
        assert_string_equal(name, expected[i][0]);
        assert_string_equal(value, expected[i][1]);
    }
    assert_error(inf_agent_model_parameter(m, 4, &name, &value),
        INF_ERR_INVALID_ARG, "index out of range for model parameters: 4 of 4");
}

static void
parameters_are_in_the_order_of_the_map(void **state)
{
    (void) state;
    inf_agents_t *c;

    fake.when = "LOAD b";
    fake.then = look_at_parameters;
    assert_ok(load(AGENTS("{ name: 'a' parameters { key: 'x' } }, { name: 'b'"
        " parameters [ { key: 'z' value: '1' }, { key: 'a' value: 'two' },"
        " { value: 'no name' }, { key: 'empty' } ] }"), &c));
    inf_agents_free(c);
}

static const char *config_backend;      /* NULL: no configuration            */

static void
check_config(inf_agent_model_t *m)
{
    const Inference__ModelConfig *config = inf_agent_model_config(m);

    if (config_backend == NULL) {
        assert_null(config);
    } else {
        assert_non_null(config);
        assert_string_equal(config->backend, config_backend);
    }
}

static void
the_first_agent_sees_the_configuration_as_written(void **state)
{
    (void) state;
    inf_agents_t *c;

    config_backend = "first";
    fake.when = "init a";
    fake.then = check_config;
    assert_ok(load("backend: 'first' " AB, &c));
    inf_agents_free(c);
}

/* And none where there is none, or none that can be read; the list of agents
   stays the first one's. */
static void
the_next_agent_sees_the_configuration_of_the_new_place(void **state)
{
    (void) state;
    const char *texts[] = { "backend: 'second'", "rubbish {", NULL };
    const char *seen[] = { "second", NULL, NULL };
    inf_agents_t *c;

    fake.when = "LOAD a";
    fake.then = go_to_other;
    fake.when_too = "LOAD b";
    fake.then_too = check_config;
    tree_dir(w.tree, "other");
    for (size_t i = 0; i < 3; i++) {
        if (texts[i] != NULL) {
            tree_file(w.tree, "other/config.pbtxt", texts[i]);
        } else {
            unlink(tree_path(w.tree, "other/config.pbtxt"));
        }
        config_backend = seen[i];
        fake.trace[0] = '\0';
        assert_ok(load("backend: 'first' " AB, &c));
        inf_agents_free(c);
        assert_string_equal(fake.trace, BEGUN "LOAD_FAIL b;LOAD_FAIL a;"
            ENDED);
    }
}

static void
write_config_in_place(inf_agent_model_t *m)
{
    (void) m;
    tree_file(w.tree, "m/config.pbtxt", "backend: 'written'");
}

static void
an_agent_may_write_the_configuration_in_place(void **state)
{
    (void) state;
    inf_agents_t *c;

    config_backend = "written";
    fake.when = "LOAD a";
    fake.then = write_config_in_place;
    fake.when_too = "LOAD b";
    fake.then_too = check_config;
    assert_ok(load("backend: 'first' " AB, &c));
    inf_agents_free(c);
}

static void
a_configuration_that_came_with_the_request_names_the_agents(void **state)
{
    (void) state;
    const inf_config_options_t opt = {
        .auto_complete = true,
        .override_json = INF_SLICE("{\"backend\":\"override\","
            "\"model_repository_agents\":{\"agents\":[{\"name\":\"c\"}]}}")
    };
    const inf_agents_model_t model = {
        .storage = w.storage, .dir = w.dir, .name = "m", .config = &opt,
        .agent_dirs = { w.agent_dirs, 1 }
    };
    inf_agents_t *c;

    tree_file(w.tree, "m/config.pbtxt", AB);
    config_backend = "override";
    fake.when = "LOAD c";
    fake.then = check_config;
    assert_ok(inf_agents_load(w.table, &model, &c));
    inf_agents_free(c);
    assert_string_equal(fake.trace, "open c;init c;LOAD c;LOAD_FAIL c;fini c;"
        "close c;");
}

static int mark;

static void
set_state(inf_agent_model_t *m)
{
    assert_null(inf_agent_model_state(m));
    inf_agent_model_set_state(m, &mark);
}

static void
get_state(inf_agent_model_t *m)
{
    assert_ptr_equal(inf_agent_model_state(m), &mark);
}

static void
a_state_is_kept_for_one_agent_and_model(void **state)
{
    (void) state;
    inf_agents_t *c;

    fake.when = "init a";
    fake.then = set_state;
    fake.when_too = "fini a";
    fake.then_too = get_state;
    assert_ok(load(AB, &c));
    inf_agents_free(c);
}

int
main(void)
{
    inf_log_set_levels(false, false, false, 0);
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_model_without_agents_has_no_chain),
        T(a_configuration_that_cannot_be_parsed_calls_no_agent),
        T(actions_go_in_order_and_back),
        T(each_step_is_taken_once),
        T(a_failed_load_is_told_in_reverse),
        T(what_is_missing_follows_an_early_end),
        T(the_end_of_the_source_ends_the_chain),
        T(a_failure_at_each_step_undoes_what_was_done),
        T(an_error_after_load_is_only_logged),
        T(an_agent_that_is_not_there_is_named),
        T(one_agent_twice_in_a_chain_is_one_library),
        T(the_next_agent_sees_where_the_last_left_the_model),
        T(a_location_that_is_no_folder_fails_the_load),
        T(a_later_agent_may_repair_the_location),
        T(the_location_changes_in_load_only),
        T(a_folder_lives_as_long_as_the_model),
        T(a_released_folder_is_gone_and_the_next_is_empty),
        T(a_folder_that_cannot_be_made_is_an_error),
        T(parameters_are_in_the_order_of_the_map),
        T(the_first_agent_sees_the_configuration_as_written),
        T(the_next_agent_sees_the_configuration_of_the_new_place),
        T(an_agent_may_write_the_configuration_in_place),
        T(a_configuration_that_came_with_the_request_names_the_agents),
        T(a_state_is_kept_for_one_agent_and_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
