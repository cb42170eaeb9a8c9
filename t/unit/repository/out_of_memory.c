/*
 * Every allocation between a directory and a model's parts fails once, in
 * turn: each time there is an error, or the whole result (asprintf has a
 * second way to get its memory), and nothing is left behind.
 */

#define SHRINKING_SUCCEEDS
#include "scarce_memory.h"

#include "temp_tree.h"

#include "core/model/config_complete.h"
#include "core/model/config_load.h"
#include "core/model/config_tensors.h"
#include "core/model/config_validate.h"
#include "core/model/instance_groups.h"
#include "core/model/labels.h"
#include "core/repository/agents.h"
#include "core/repository/backend_search.h"
#include "core/repository/instance_change.h"
#include "core/repository/inventory.h"
#include "core/repository/scan.h"
#include "core/storage/storage.h"
#include "core/storage/storage_local.h"
#include "core_config_of.h"
#include "repository/fake_plugin.h"

#if OWN_MALLOC

static const char config_text[] =
    "max_batch_size: 4\n"
    "input { name: \"I\" data_type: TYPE_FP32 dims: [ 2, 3 ] "
    "reshape { shape: 6 } }\n"
    "output { name: \"O\" data_type: TYPE_FP32 dims: 2 "
    "label_filename: \"labels.txt\" }\n"
    "batch_input { target_name: \"B\" data_type: TYPE_INT32 "
    "source_input: \"I\" }\n"
    "instance_group { count: 2 secondary_devices { device_id: 1 } }\n"
    "parameters { key: \"k\" value { string_value: \"v\" } }\n"
    "dynamic_batching { }\n";

static const char ensemble_text[] =
    "platform: \"ensemble\"\n"
    "input { name: \"A\" data_type: TYPE_FP32 dims: 1 }\n"
    "output { name: \"B\" data_type: TYPE_FP32 dims: 1 }\n"
    "ensemble_scheduling { step { model_name: \"x\" model_version: -1 "
    "input_map { key: \"I\" value: \"A\" } "
    "output_map { key: \"O\" value: \"B\" } } }\n";

static inf_err_t *
use_parts(const inf_storage_t *st, const char *dir, inf_model_config_t *c)
{
    static const inf_preferred_group_t preferred = {
        INF_INSTANCE_CPU, 1, NULL, 0
    };
    inf_instance_host_t host = { &preferred, 1, { .count = 0 } };
    static const char completion[] = "{\"max_batch_size\":4,\"input\":[{"
        "\"name\":\"I\",\"data_type\":\"TYPE_FP32\",\"dims\":[1]}],"
        "\"output\":[{\"name\":\"O\",\"data_type\":\"TYPE_FP32\",\"dims\":"
        "[1],\"label_filename\":\"labels.txt\"}],\"dynamic_batching\":{}}";

    inf_err_t *err = inf_model_config_merge_json(c, completion,
        sizeof(completion) - 1);
    if (err == NULL) {
        err = inf_instance_groups_normalize(c->msg, &host);
    }

    if (err == NULL) {
        err = inf_instance_groups_validate(c->msg, &host.gpus);
    }

    if (err == NULL) {
        err = inf_config_validate(c->msg, INF_RULES_ALL);
    }

    inf_config_tensors_t *tensors = NULL;
    if (err == NULL) {
        err = inf_config_tensors_new(c->msg, &tensors);
    }

    inf_labels_t *labels = NULL;
    if (err == NULL) {
        err = inf_labels_load(st, dir, c->msg, &labels);
    }

    inf_instance_specs_t specs = { NULL, 0 };
    if (err == NULL) {
        err = inf_instance_specs_make(c->msg, &specs);
    }

    inf_instance_specs_fini(&specs);
    inf_labels_unref(labels);
    inf_config_tensors_free(tensors);
    return err;
}

static inf_err_t *
use_model(const inf_storage_t *st, const char *tree,
    const inf_scan_model_t *model)
{
    inf_config_options_t opt = { .auto_complete = false };
    inf_model_config_t *c;

    inf_err_t *err = inf_model_config_read(st, model->dir, model->name, &opt,
        &c);
    if (err != NULL) {
        return err;
    }

    if (!inf_config_is_ensemble(c->msg)) {
        const char *globals[] = { tree };
        inf_backend_query_t q = { "m", model->dir, 1, "onnxruntime", "",
            globals, 1 };
        inf_backend_location_t where;

        err = inf_backend_search(&q, &where);
        if (err == NULL) {
            inf_backend_location_fini(&where);
            err = use_parts(st, model->dir, c);
        }
    }

    inf_model_config_free(c);
    return err;
}

/* Agents that need no memory of their own: the first copies the model. */
struct inf_agent_s {
    const char *name;
};

static inf_err_t *
agent_open(const char *name, const char *library, inf_agent_t **out)
{
    static inf_agent_t agents[] = { { "a" }, { "b" } };

    (void) library;
    *out = &agents[name[0] == 'b'];
    return NULL;
}

static void
agent_close(inf_agent_t *agent)
{
    (void) agent;
}

static inf_err_t *
agent_model(inf_agent_t *agent, inf_agent_model_t *m)
{
    (void) agent;
    (void) m;
    return NULL;
}

static inf_err_t *
agent_act(inf_agent_t *agent, inf_agent_model_t *m, inf_agent_action_t action)
{
    const char *folder;

    if (action != INF_AGENT_LOAD || agent->name[0] == 'b') {
        return NULL;
    }

    inf_err_t *err = inf_agent_model_acquire(m, INF_ARTIFACT_FILESYSTEM,
        &folder);
    return err != NULL ? err
        : inf_agent_model_relocate(m, INF_ARTIFACT_FILESYSTEM, folder);
}

static inf_err_t *
use_agents(inf_storage_t *st, const char *tree)
{
    char *dir = (char *) (uintptr_t) tree;
    static const inf_agent_ops_t ops = {
        agent_open, agent_close, agent_model, agent_model, agent_act
    };
    static const inf_config_options_t opt = {
        .override_json = INF_SLICE("{\"model_repository_agents\":{\"agents\":"
            "[{\"name\":\"a\",\"parameters\":{\"k\":\"v\"}},{\"name\":"
            "\"b\"}]}}")
    };
    const inf_agents_model_t model = {
        .storage = st, .dir = tree, .name = "m", .config = &opt,
        .agent_dirs = { &dir, 1 }
    };
    inf_agent_table_t *table;
    inf_agents_t *c = NULL;
    inf_scan_t scan;

    inf_err_t *err = inf_agent_table_new(&ops, &table);
    if (err != NULL) {
        return err;
    }

    err = inf_agents_load(table, &model, &c);
    if (err == NULL) {
        inf_agents_complete(c);
        const inf_scan_root_t place = {
            .storage = inf_agents_storage(c),
            .root = inf_agents_dir(c)
        };
        err = inf_scan_model_dir(&place, "m", &scan);
    }
    if (err == NULL) {
        inf_scan_fini(&scan);
    }

    inf_agents_free(c);
    inf_agent_table_free(table);
    return err;
}

static inf_err_t *
use_repository(const char *tree)
{
    inf_storage_t *st;
    char *root;

    inf_err_t *err = inf_storage_open(tree, &st, &root);
    if (err != NULL) {
        return err;
    }

    inf_scan_root_t roots[] = { { .storage = st, .root = root } };
    inf_scan_t scan;
    err = inf_scan(roots, 1, &scan);
    if (err == NULL) {
        if (scan.model_count != 4 || scan.problem_count != 1) {
            /* listing failed for want of memory: the scan has said so */
            err = inf_err_new(INF_ERR_UNAVAILABLE, "out of memory");
        }

        for (size_t i = 0; err == NULL && i < scan.model_count; i++) {
            if (scan.models[i].version_count == 0
                && strcmp(scan.models[i].name, "ensemble") != 0)
            {
                continue;       /* directories of agents and their own       */
            }
            err = use_model(st, tree, &scan.models[i]);
        }

        inf_scan_fini(&scan);
    }
    if (err == NULL) {
        err = use_agents(st, tree);
    }

    free(root);
    inf_storage_close(st);
    return err;
}

/* The model that the alias has given a name. */
static inf_err_t *
scan_set(const inf_repository_list_t *list, const char *space)
{
    const inf_model_id_t id = { .space = space, .name = "n" };
    inf_scan_t scan;

    inf_err_t *err = inf_repository_list_scan(list, &id, &scan);
    if (err == NULL) {
        if (scan.model_count != 1 || scan.models[0].repository != 1
            || strcmp(scan.models[0].space, space) != 0)
        {
            err = inf_err_new(INF_ERR_INTERNAL, "another model");
        }
        inf_scan_fini(&scan);
    }
    return err;
}

/* A repository that can't be opened is left out: that is no error, but
   reported here. */
static inf_err_t *
use_set(char *tree, char *other, bool namespacing, bool once)
{
    static char *const dirs[] = { "m" };
    static const inf_scan_alias_t alias = { .dir = "m", .name = "n" };
    char *addresses[] = { tree, other };
    inf_repositories_t set;
    const inf_inventory_query_t q = {
        .occasion = INF_INVENTORY_INDEX,
        .desired = { .names = addresses, .count = 2 }
    };
    inf_inventory_t *l;
    bool changed;

    inf_err_t *err = inf_repositories_open(addresses, 1, namespacing,
        inf_storage_open, &set);
    if (err != NULL) {
        return err;
    }

    err = inf_repositories_replace(&set, addresses, 2, &changed);
    if (err == NULL) {
        err = inf_repositories_replace(&set, addresses, 1, &changed);
    }
    if (err == NULL) {
        const inf_registration_t what = {
            .address = other, .aliases = &alias, .count = 1,
            .dirs = once ? dirs : NULL, .dir_count = once
        };
        err = inf_repositories_add(&set, &what, NULL);
    }
    if (err == NULL) {
        err = inf_inventory_new(&set, &q, &l);
    }
    if (err == NULL) {
        err = l->list->count != 2
            ? inf_err_new(INF_ERR_UNAVAILABLE, "out of memory")
            : scan_set(l->list, namespacing ? other : "");
        inf_inventory_unref(l);
    }
    if (err == NULL) {
        err = inf_repositories_remove(&set, other);
    }
    inf_repositories_close(&set);
    return err;
}

static void
fail_all_of_set(char *tree, char *other, bool namespacing, bool once)
{
    long n = 1;

    assert_ok(use_set(tree, other, namespacing, once));
    for (bool reached = true; reached; n++) {
        long before = live;
        countdown = n;
        inf_err_t *err = use_set(tree, other, namespacing, once);
        reached = countdown == 0;
        countdown = 0;
        if (err != NULL && strstr(inf_err_msg(err), "out of memory") == NULL
            && strstr(inf_err_msg(err), "Cannot allocate memory") == NULL)
        {
            fail_msg("allocation %ld failed: \"%s\"", n, inf_err_msg(err));
        }
        assert_true(reached || err == NULL);
        inf_err_free(err);
        assert_int_equal(live, before);
    }
    assert_true(n > 30);
}

static void
a_set_of_repositories_survives_every_failed_allocation(void **state)
{
    (void) state;
    char *tree = tree_new();
    char *other = tree_new();

    tree_dir(tree, "m");
    tree_dir(other, "m");
    fail_all_of_set(tree, other, false, false);
    fail_all_of_set(tree, other, true, false);
    fail_all_of_set(tree, other, false, true);
    tree_free(other);
    tree_free(tree);
}

/* A model of count instances, more of them: all or none. */
static void
more_instances_come_or_none(void **state)
{
    (void) state;
    static const inf_model_ops_t ops = { NULL };
    inf_config_options_t opt = { .auto_complete = true };
    inf_backend_table_t *table;
    inf_instance_change_t *change;
    inf_model_config_t *config;
    inf_storage_t *st;
    inf_model_t *model;
    char *tree = tree_new();

    fake_reset();
    tree_file(tree, "backends/x/libtriton_x.so", "");
    tree_file(tree, "m/config.pbtxt", "backend: 'x' input { name: 'A'"
        " data_type: TYPE_FP32 dims: 1 } output { name: 'B' data_type:"
        " TYPE_FP32 dims: 1 }");
    inf_core_config_t *core_config = core_config_of("backend_directories:"
        " '%s'", tree_path(tree, "backends"));
    char *dir = strdup(tree_path(tree, "m"));
    assert_ok(inf_storage_local_open(&st));
    const inf_lifecycle_options_t options = {
        .plugins = &fake_ops
    };
    assert_ok(inf_backend_table_new(&fake_ops, &table));
    inf_model_load_t what = {
        .options = &options, .core_config = core_config,
        .backends = table, .storage = st, .name = "m", .dir = dir,
        .version = 1, .ops = &ops
    };
    assert_ok(inf_model_config_read(st, dir, "m", &opt, &what.config));
    assert_ok(inf_model_load(&what, &model));
    inf_model_config_free(what.config);
    tree_file(tree, "m/config.pbtxt", "backend: 'x' input { name: 'A'"
        " data_type: TYPE_FP32 dims: 1 } output { name: 'B' data_type:"
        " TYPE_FP32 dims: 1 } instance_group { kind: KIND_CPU count: 3"
        " host_policy: 'p' }");
    assert_ok(inf_model_config_read(st, dir, "m", &opt, &config));
    what.config = config;

    assert_ok(inf_instance_change_prepare(&what, model, &change));
    inf_instance_change_abort(change);      /* names and threads are kept    */
    long before = live;
    long n = 1;
    for (bool reached = true; reached; n++) {
        countdown = n;
        inf_err_t *err = inf_instance_change_prepare(&what, model, &change);
        reached = countdown == 0;
        countdown = 0;
        if (err == NULL) {
            inf_instance_change_abort(change);
        } else {
            assert_non_null(strstr(inf_err_msg(err), "memory"));
            inf_err_free(err);
        }
        assert_int_equal(model->instance_count, 1);
        assert_true(live <= before);    /* a thread that only begins now frees
                                           what it was started with          */
        before = live;
    }
    assert_true(n > 30);

    inf_model_config_free(config);
    inf_model_unload(model, &fake_ops, NULL);
    inf_backend_table_free(table);
    inf_storage_close(st);
    inf_core_config_unref(core_config);
    free(dir);
    tree_free(tree);
}

static void
a_failed_allocation_is_an_error_and_leaves_nothing(void **state)
{
    (void) state;
    char *tree = tree_new();
    char *temp = tree_new();

    tree_file(tree, "ensemble/config.pbtxt", ensemble_text);
    tree_file(tree, "m/config.pbtxt", config_text);
    tree_file(tree, "m/labels.txt", "a\nb\n");
    tree_file(tree, "m/1/model.onnx", "");
    tree_file(tree, "m/1/libtriton_onnxruntime.so", "");
    tree_link(tree, "nowhere", "dangling");
    tree_file(tree, "a/libtritonrepoagent_a.so", "");
    tree_file(tree, "b/libtritonrepoagent_b.so", "");
    setenv("TMPDIR", temp, 1);
    assert_ok(use_repository(tree));

    long survived = 0;
    long n = 1;
    for (;; n++) {
        long before = live;
        countdown = n;
        inf_err_t *err = use_repository(tree);
        bool reached = countdown == 0;
        countdown = 0;

        if (!reached) {
            assert_ok(err);
            assert_int_equal(live, before);
            break;
        }

        if (err == NULL) {
            survived++;

        } else if (strstr(inf_err_msg(err), "out of memory") == NULL
            && strstr(inf_err_msg(err), "Cannot allocate memory") == NULL)
        {
            fail_msg("allocation %ld failed: \"%s\"", n, inf_err_msg(err));
        }

        inf_err_free(err);
        if (live != before) {
            fail_msg("allocation %ld failed and left %ld behind", n,
                live - before);
        }
    }

    print_message("%ld allocations failed in turn, libc helped itself in "
        "%ld\n", n - 1, survived);
    assert_true(n > 100 && survived < n / 5);
    unsetenv("TMPDIR");
    tree_free(temp);
    tree_free(tree);
}

#else

static void
a_set_of_repositories_survives_every_failed_allocation(void **state)
{
    (void) state;
    skip();
}

static void
more_instances_come_or_none(void **state)
{
    (void) state;
    skip();
}

static void
a_failed_allocation_is_an_error_and_leaves_nothing(void **state)
{
    (void) state;
    print_message("skipped: a sanitizer's allocator can't be replaced\n");
    skip();
}

#endif

int
main(void)
{
    inf_log_set_levels(false, false, false, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_instances_come_or_none),
        cmocka_unit_test(
            a_failed_allocation_is_an_error_and_leaves_nothing),
        cmocka_unit_test(
            a_set_of_repositories_survives_every_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
