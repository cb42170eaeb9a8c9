#include "temp_tree.h"

#include <dirent.h>

#include "core/base/log.h"
#include "core/model/config_load.h"
#include "core/repository/model_load.h"
#include "core/storage/storage_local.h"
#include "core_config_of.h"
#include "repository/fake_plugin.h"

/* One load, straight: no loader threads, no registry. */
typedef struct {
    char                   *tree;
    char                   *dir;
    char                   *backends;
    inf_core_config_t      *core_config;
    inf_storage_t          *storage;
    inf_backend_table_t    *table;
    inf_lifecycle_options_t options;
} world_t;

static world_t w;

static const inf_model_ops_t ops = { NULL };

static int
setup(void **state)
{
    (void) state;
    fake_reset();
    memset(&w, 0, sizeof(w));
    w.tree = tree_new();
    tree_file(w.tree, "backends/x/libtriton_x.so", "");
    tree_dir(w.tree, "m/1");
    w.dir = strdup(tree_path(w.tree, "m"));
    w.backends = strdup(tree_path(w.tree, "backends"));
    w.core_config = core_config_of("backend_directories: '%s'", w.backends);
    assert_ok(inf_storage_local_open(&w.storage));
    w.options = (inf_lifecycle_options_t) {
        .plugins = &fake_ops
    };
    assert_ok(inf_backend_table_new(&fake_ops, &w.table));
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    inf_backend_table_free(w.table);
    inf_storage_close(w.storage);
    inf_core_config_unref(w.core_config);
    tree_free(w.tree);
    free(w.dir);
    free(w.backends);
    return 0;
}

static inf_err_t *
load(const char *config, inf_model_t **out)
{
    const inf_config_options_t opt = { .auto_complete = true };
    inf_model_load_t what = {
        .options = &w.options, .core_config = w.core_config,
        .backends = w.table, .storage = w.storage,
        .name = "m", .dir = w.dir, .version = 1, .ops = &ops, .owner = &w
    };

    *out = NULL;
    if (config != NULL) {
        tree_file(w.tree, "m/config.pbtxt", config);
    }
    inf_err_t *err = inf_model_config_read(w.storage, w.dir, "m", &opt,
        &what.config);
    if (err == NULL) {
        err = inf_model_load(&what, out);
        inf_model_config_free(what.config);
    }
    return err;
}

#define A "input { name: 'A' data_type: TYPE_FP32 dims: 1 } "
#define B "output { name: 'B' data_type: TYPE_FP32 dims: 1 } "

static void
a_loaded_model_has_all_its_parts(void **state)
{
    (void) state;
    inf_model_t *m;

    tree_file(w.tree, "m/labels.txt", "zero\none\n");
    assert_ok(load("backend: 'x' max_batch_size: 4 " A
        "output { name: 'B' data_type: TYPE_FP32 dims: 2"
        " label_filename: 'labels.txt' } model_transaction_policy"
        " { decoupled: true } instance_group { count: 2 kind: KIND_CPU }",
        &m));
    assert_string_equal(m->name, "m");
    assert_string_equal(m->dir, w.dir);
    assert_ptr_equal(m->owner, &w);
    assert_ptr_equal(m->ops, &ops);
    assert_int_equal(m->instance_count, 2);
    assert_ptr_equal(m->instances[1]->model, m);
    assert_string_equal(m->instances[1]->spec->name, "m_0_1");
    assert_true(inf_model_is_decoupled(m));
    assert_int_equal(inf_config_tensors_max_batch_size(m->tensors), 4);
    inf_slice_t label = inf_labels_get(m->labels, INF_SLICE("B"), 1);
    assert_memory_equal(label.data, "one", label.len);
    assert_int_equal(label.len, 3);
    assert_int_equal(m->refs, 1);

    inf_model_unload(m, &fake_ops, NULL);
    assert_int_equal(fake_count("ifini m_0_0/1"), 1);
    assert_int_equal(fake_count("ifini m_0_1/1"), 1);
    assert_int_equal(fake_count("fini m/1"), 1);
}

static const char *
environment_of(const inf_model_t *m, size_t *count)
{
    const Inference__ModelConfig *msg = m->config->msg;
    const char *value = NULL;

    *count = 0;
    for (size_t i = 0; i < msg->n_parameters; i++) {
        if (strcmp(msg->parameters[i]->key, "EXECUTION_ENV_PATH") == 0) {
            value = msg->parameters[i]->value->string_value;
            (*count)++;
        }
    }
    return value;
}

static void
a_backend_in_python_gives_runtime_and_environment(void **state)
{
    (void) state;
    inf_model_t *m;
    size_t count;

    tree_file(w.tree, "backends/python/libtriton_python.so", "");
    tree_file(w.tree, "backends/py/model.py", "");
    assert_ok(load("backend: 'py' " A B, &m));
    assert_string_equal(m->config->msg->runtime, "model.py");
    assert_string_equal(m->config->msg->backend, "py");
    assert_null(environment_of(m, &count));
    inf_model_unload(m, &fake_ops, NULL);

    tree_file(w.tree, "backends/py/pb_exec_env_model.py.tar.gz", "");
    assert_ok(load("backend: 'py' " A B, &m));
    assert_string_equal(environment_of(m, &count),
        tree_path(w.tree, "backends/py/pb_exec_env_model.py.tar.gz"));
    assert_int_equal(count, 1);
    inf_model_unload(m, &fake_ops, NULL);

    assert_ok(load("backend: 'py' parameters { key: 'EXECUTION_ENV_PATH'"
        " value { string_value: 'own' } } " A B, &m));
    assert_string_equal(environment_of(m, &count), "own");
    assert_int_equal(count, 1);
    inf_model_unload(m, &fake_ops, NULL);
}

#define STATE                                                                 \
    "sequence_batching { state { input_name: 'I' output_name: 'O'"            \
    " data_type: TYPE_INT32 dims: -1 initial_state { name: 'i'"               \
    " data_type: TYPE_INT32 dims: 2 data_file: 'first' } } } "

/* Initial states of sequences are read before there are instances. */
static void
a_sequence_model_has_its_initial_states_or_fails_its_load(void **state)
{
    (void) state;
    inf_model_t *m;

    tree_file(w.tree, "m/initial_state/first", "1234567");
    assert_error(load("backend: 'x' " A B STATE, &m), INF_ERR_INVALID_ARG,
        "initial_state setting expects 8 bytes, but the data provided from");
    assert_null(m);
    assert_int_equal(fake_count("init m/1"), 1);
    assert_int_equal(fake_count("iinit m_0/1"), 0);
    assert_int_equal(fake_count("fini m/1"), 1);

    tree_file(w.tree, "m/initial_state/first", "12345678");
    assert_ok(load("backend: 'x' " A B STATE, &m));
    assert_non_null(m->sched.sequence_inputs);
    inf_model_unload(m, &fake_ops, NULL);

    assert_ok(load("backend: 'x' " A B, &m));
    assert_null(m->sched.sequence_inputs);
    inf_model_unload(m, &fake_ops, NULL);
}

/* The schedulers share a oneof: one must not be taken for another. */
static void
dynamic_batching_is_loaded_and_runs_requests_one_by_one(void **state)
{
    (void) state;
    inf_model_t *m;

    assert_ok(load("backend: 'x' max_batch_size: 4 " A B
        "dynamic_batching { preferred_batch_size: 2 } ", &m));
    assert_non_null(m->sched.runner);
    inf_model_unload(m, &fake_ops, NULL);
}

static void
a_wrong_configuration_reaches_no_backend(void **state)
{
    (void) state;
    inf_model_t *m;

    assert_error(load("name: 'other' backend: 'x' " A B, &m),
        INF_ERR_INVALID_ARG, "other");
    assert_error(load("backend: 'x' max_batch_size: -1 " A B, &m),
        INF_ERR_INVALID_ARG, "max_batch_size");
    assert_error(load("backend: 'x' instance_group { kind: KIND_GPU } " A B,
        &m), INF_ERR_INVALID_ARG, "instance group m");
    assert_int_equal(fake_count("init m/1"), 0);
    assert_error(load("backend: 'gone' " A B, &m), INF_ERR_INVALID_ARG,
        "unable to find backend library for backend 'gone'");
    assert_int_equal(fake_count("init m/1"), 0);
}

static uint32_t
tasks(void)
{
    uint32_t n = 0;
    DIR *d = opendir("/proc/self/task");

    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        n += e->d_name[0] != '.';
    }
    closedir(d);
    return n;
}

/* m has so many threads beside the others; a joined one may linger. */
static void
assert_threads(inf_model_t *m, uint32_t others, uint32_t expect)
{
    for (int i = 0; i < 5000 && tasks() != others + expect; i++) {
        usleep(1000);
    }
    assert_int_equal(tasks(), others + expect);
    inf_model_unload(m, &fake_ops, NULL);
}

/* scheduling.md 2.5 and 2.6 */
static void
execution_policy_and_kind_decide_who_shares_a_thread(void **state)
{
    (void) state;
    static const int32_t ids[] = { 0, 1 };
    inf_model_t *m;
    uint32_t others = tasks();

    w.options.gpus = (inf_gpus_t) { .ids = ids, .count = 2,
        .min_capability = 6.0 };
    fake.execution_policy = INF_BACKEND_DEVICE_BLOCKING;
    assert_ok(load("backend: 'x' " A B "instance_group [ { count: 2"
        " kind: KIND_GPU gpus: 0 }, { count: 1 kind: KIND_GPU gpus: 1 } ]",
        &m));
    assert_int_equal(m->instance_count, 3);
    assert_string_equal(m->instances[2]->spec->host_policy, "gpu_1");
    assert_threads(m, others, 2);

    assert_ok(load("backend: 'x' " A B "instance_group { count: 3"
        " kind: KIND_CPU }", &m));
    assert_threads(m, others, 3);

    inf_backend_table_free(w.table);            /* the policy is per backend */
    assert_ok(inf_backend_table_new(&fake_ops, &w.table));
    fake.execution_policy = 0;
    assert_ok(load("backend: 'x' " A B "instance_group { count: 3"
        " kind: KIND_GPU gpus: 0 }", &m));
    assert_threads(m, others, 3);
}

/* scheduling.md 2.7: the fake backend releases requests without a response. */
static void
a_failing_warmup_fails_the_load_and_finalizes(void **state)
{
    (void) state;
    inf_model_t *m;

    assert_error(load("backend: 'x' " A B "instance_group { count: 2 kind:"
        " KIND_CPU } model_warmup { name: 'w' batch_size: 1 inputs { key: 'A'"
        " value { data_type: TYPE_FP32 dims: 1 zero_data: true } } }", &m),
        INF_ERR_INVALID_ARG,
        "failed to run warmup sample 'w'");
    assert_string_equal(fake.trace, "open x;init m/1;iinit m_0_0/1;"
        "iinit m_0_1/1;exec m_0_0/1;exec m_0_1/1;ifini m_0_0/1;"
        "ifini m_0_1/1;fini m/1;");

    fake_reset();
    assert_error(load("backend: 'x' " A B "model_warmup { name: 'w'"
        " batch_size: 1 inputs { key: 'A' value { data_type: TYPE_FP32"
        " dims: -1 zero_data: true } } }", &m), INF_ERR_INVALID_ARG,
        "warmup setting expects all variable-size");
    assert_string_equal(fake.trace,
        "init m/1;iinit m_0/1;ifini m_0/1;fini m/1;");
}

/* Neither initialised nor prepared where its policy can't be met. */
static void
a_host_policy_that_cannot_be_met_fails_the_load(void **state)
{
    (void) state;
    inf_model_t *m;

    inf_core_config_unref(w.core_config);
    w.core_config = core_config_of("backend_directories: '%s' host_policies {"
        " policy: 'far' key: 'cpu-cores' value: '8191' }", w.backends);
    assert_error(load("backend: 'x' " A B "instance_group { kind: KIND_CPU"
        " host_policy: 'far' }", &m), INF_ERR_INVALID_ARG,
        "host policy 'far': none of the cores 8191");
    assert_int_equal(fake_count("iinit m_0_0/1"), 0);
    assert_int_equal(fake_count("fini m/1"), 1);

    assert_ok(load("backend: 'x' " A B "instance_group { kind: KIND_CPU"
        " host_policy: 'near' }", &m));
    inf_model_unload(m, &fake_ops, NULL);
}

/* After ModelInitialize every failure ends in ModelFinalize. */
static void
what_fails_after_init_is_finalized(void **state)
{
    (void) state;
    inf_model_t *m;

    tree_file(w.tree, "m/../outside.txt", "x");
    assert_error(load("backend: 'x' " A "output { name: 'B' data_type:"
        " TYPE_FP32 dims: 1 label_filename: '../outside.txt' }", &m),
        INF_ERR_UNSUPPORTED, "outside.txt");
    assert_int_equal(fake_count("init m/1"), 1);
    assert_int_equal(fake_count("fini m/1"), 1);
    assert_int_equal(fake_count("iinit m_0/1"), 0);
}

int
main(void)
{
    inf_log_set_levels(false, false, false, 0);
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_loaded_model_has_all_its_parts),
        T(a_backend_in_python_gives_runtime_and_environment),
        T(a_sequence_model_has_its_initial_states_or_fails_its_load),
        T(dynamic_batching_is_loaded_and_runs_requests_one_by_one),
        T(a_wrong_configuration_reaches_no_backend),
        T(execution_policy_and_kind_decide_who_shares_a_thread),
        T(a_failing_warmup_fails_the_load_and_finalizes),
        T(a_host_policy_that_cannot_be_met_fails_the_load),
        T(what_fails_after_init_is_finalized),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
