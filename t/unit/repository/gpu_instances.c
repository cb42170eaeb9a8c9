#include "temp_tree.h"

#include "core/model/config_load.h"
#include "core/repository/model_instances.h"
#include "core/storage/storage_local.h"
#include "core/tensor/memory.h"
#include "core_config_of.h"
#include "fake_cuda.h"
#include "repository/fake_plugin.h"

/* One load, straight, on the GPUs of the fake driver. */
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

static void
open_gpus(int count, double least)
{
    fake_cuda_reset();
    fake_cuda_set_devices(count);
    assert_ok(inf_memory_share(&(inf_memory_options_t) {
        .driver = FAKE_CUDA_LIBRARY, .min_capability = least }));
    w.options.gpus.ids = inf_memory_gpus(inf_memory_shared(),
        &w.options.gpus.count);
    w.options.gpus.min_capability = least;
}

static void
close_gpus(void)
{
    inf_memory_unshare();
    assert_int_equal(fake_cuda_live(), 0);
}

/* text: what it has beside the directory of backends. */
static void
configure(const char *text)
{
    inf_core_config_unref(w.core_config);
    w.core_config = core_config_of("backend_directories: '%s' auto_complete:"
        " false %s", w.backends, text);
}

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
    assert_ok(inf_storage_local_open(&w.storage));
    w.options = (inf_lifecycle_options_t) {
        .plugins = &fake_ops
    };
    configure("");
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

/* The model's groups in one line: "g_0 GPU 1;..." */
static inf_err_t *
load(const char *group, char *text, size_t cap)
{
    static const char *const kinds[] = { "AUTO", "CPU", "GPU", "MODEL" };
    const inf_config_options_t opt = { .auto_complete = false };
    inf_model_load_t what = {
        .options = &w.options, .core_config = w.core_config,
        .backends = w.table, .storage = w.storage,
        .name = "m", .dir = w.dir, .version = 1, .ops = &ops, .owner = &w
    };
    char config[512];
    inf_model_t *m;

    snprintf(config, sizeof(config), "backend: \"x\" "
        "input { name: \"A\" data_type: TYPE_FP32 dims: 1 } "
        "output { name: \"B\" data_type: TYPE_FP32 dims: 1 } %s", group);
    tree_file(w.tree, "m/config.pbtxt", config);
    text[0] = '\0';

    inf_err_t *err = inf_model_config_read(w.storage, w.dir, "m", &opt,
        &what.config);
    if (err == NULL) {
        err = inf_model_load(&what, &m);
        inf_model_config_free(what.config);
    }
    if (err != NULL) {
        return err;
    }
    for (uint32_t i = 0; i < m->instance_count; i++) {
        const inf_instance_spec_t *s = m->instances[i]->spec;
        size_t len = strlen(text);
        snprintf(text + len, cap - len, "%s %s %d %s;", s->name,
            kinds[s->kind], s->device_id, s->host_policy);
    }
    inf_model_unload(m, &fake_ops, NULL);
    return NULL;
}

static void
instances_go_where_the_gpus_are(void **state)
{
    (void) state;
    static const struct {
        int         devices;
        double      least;
        const char *group;
        const char *want;
    } rows[] = {
        { 2, 5.0, "", "m_0 GPU 0 gpu_0;m_0 GPU 1 gpu_1;" },
        { 2, 6.0, "", "m_0 GPU 0 gpu_0;" },
        { 2, 8.1, "", "m_0 CPU 0 cpu;" },
        { 0, 0.0, "", "m_0 CPU 0 cpu;" },
        { 4, 7.0, "", "m_0 GPU 0 gpu_0;m_0 GPU 2 gpu_2;m_0 GPU 3 gpu_3;" },
        { 2, 6.0, "instance_group { kind: KIND_GPU count: 2 }",
          "m_0_0 GPU 0 gpu_0;m_0_1 GPU 0 gpu_0;" },
        { 2, 5.0, "instance_group { kind: KIND_GPU gpus: [1] }",
          "m_0_0 GPU 1 gpu_1;" },
        { 2, 5.0, "instance_group { kind: KIND_AUTO gpus: [1] }",
          "m_0_0 GPU 1 gpu_1;" },
        { 8, 5.0, "instance_group { kind: KIND_GPU }",
          "m_0_0 GPU 0 gpu_0;m_0_0 GPU 1 gpu_1;m_0_0 GPU 2 gpu_2;"
          "m_0_0 GPU 3 gpu_3;m_0_0 GPU 4 gpu_4;m_0_0 GPU 5 gpu_5;"
          "m_0_0 GPU 6 gpu_6;m_0_0 GPU 7 gpu_7;" },
        { 8, 5.0, "instance_group { kind: KIND_GPU gpus: [7, 0] count: 2 }",
          "m_0_0 GPU 7 gpu_7;m_0_0 GPU 0 gpu_0;"
          "m_0_1 GPU 7 gpu_7;m_0_1 GPU 0 gpu_0;" },
        { 2, 5.0, "instance_group { kind: KIND_CPU }", "m_0_0 CPU 0 cpu;" }
    };
    char text[512];

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        open_gpus(rows[i].devices, rows[i].least);
        assert_ok(load(rows[i].group, text, sizeof(text)));
        assert_string_equal(text, rows[i].want);
        close_gpus();
    }
}

static void
a_gpu_that_has_failed_takes_no_instance(void **state)
{
    (void) state;
    char text[512];

    open_gpus(8, 5.0);
    fake_cuda_break(5, 719);
    assert_ok(load("instance_group { kind: KIND_GPU gpus: [5] }", text,
        sizeof(text)));                 /* nobody knows yet                  */
    assert_error(inf_memory_check_gpu(inf_memory_shared(), 5),
        INF_ERR_UNAVAILABLE, "GPU 5 has failed");
    assert_error(load("instance_group { kind: KIND_GPU gpus: [5] }", text,
        sizeof(text)), INF_ERR_UNAVAILABLE, "GPU 5 has failed, and answers"
        " every call by CUDA_ERROR_LAUNCH_FAILED (719)");
    assert_ok(load("instance_group { kind: KIND_GPU gpus: [4] }", text,
        sizeof(text)));
    fake_cuda_break(5, 0);
    close_gpus();
}

static void
gpus_that_are_not_there_are_rejected(void **state)
{
    (void) state;
    char text[512];

    open_gpus(2, 6.0);
    assert_error(load("instance_group { kind: KIND_GPU gpus: [0, 1] }", text,
        sizeof(text)), INF_ERR_INVALID_ARG, "specifies invalid or unsupported"
        " gpu id 1. GPUs with at least the minimum required CUDA compute"
        " compatibility of 6.000000 are: 0");
    assert_error(load("instance_group { kind: KIND_AUTO gpus: [1] }", text,
        sizeof(text)), INF_ERR_INVALID_ARG, "KIND_CPU but specifies one or"
        " more GPUs");
    close_gpus();

    open_gpus(0, 0);
    assert_error(load("instance_group { kind: KIND_GPU }", text,
        sizeof(text)), INF_ERR_INVALID_ARG, "no GPUs are available");
    close_gpus();
}

static void
a_gpu_that_is_too_full_gets_no_more(void **state)
{
    (void) state;
    char text[512];

    /* one of a backend says nothing, of the others the last one counts */
    configure("backend_settings { key: '" INF_DEVICE_LIMIT_KEY "0' value:"
        " '0.9' } backend_settings { backend: 'x' key: '" INF_DEVICE_LIMIT_KEY
        "1' value: '0.0' } backend_settings { key: '" INF_DEVICE_LIMIT_KEY
        "0' value: '0.5' }");
    open_gpus(2, 5.0);

    fake_cuda_occupy(0, FAKE_CUDA_MEMORY / 4);
    assert_ok(load("", text, sizeof(text)));
    fake_cuda_occupy(0, FAKE_CUDA_MEMORY / 4 * 3);
    fake_cuda_occupy(1, FAKE_CUDA_MEMORY / 4 * 3);
    assert_ok(load("instance_group { kind: KIND_GPU gpus: [1] }", text,
        sizeof(text)));
    assert_ok(load("instance_group { kind: KIND_CPU }", text, sizeof(text)));

    fake_reset();
    assert_error(load("instance_group { kind: KIND_GPU }", text,
        sizeof(text)), INF_ERR_UNAVAILABLE, "can not create model 'm_0_0':"
        " memory limit set for GPU 0 has exceeded, model loading is"
        " rejected.");
    assert_int_equal(fake_count("iinit m_0_0/1"), 2);
    assert_int_equal(fake_count("ifini m_0_0/1"), 2);
    assert_int_equal(fake_count("fini m/1"), 1);

    fake_cuda_fail("cuMemGetInfo_v2", 999);
    assert_error(load("", text, sizeof(text)), INF_ERR_INTERNAL,
        "CUDA_ERROR_UNKNOWN");
    fake_cuda_fail(NULL, 0);
    close_gpus();
}

static void
a_limit_is_a_fraction(void **state)
{
    (void) state;
    static const char *const values[] = {
        "", "half", "0.5x", "-0.1", "1.1", "nan", "inf"
    };
    char text[512];
    char setting[128];

    open_gpus(1, 0);
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        snprintf(setting, sizeof(setting), "backend_settings { key: '"
            INF_DEVICE_LIMIT_KEY "0' value: '%s' }", values[i]);
        configure(setting);
        assert_error(load("", text, sizeof(text)), INF_ERR_INVALID_ARG,
            "model-load-gpu-limit-device-0 expects limit fraction to be in"
            " range [0.0, 1.0]");
    }
    close_gpus();
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(instances_go_where_the_gpus_are),
        T(a_gpu_that_has_failed_takes_no_instance),
        T(gpus_that_are_not_there_are_rejected),
        T(a_gpu_that_is_too_full_gets_no_more),
        T(a_limit_is_a_fraction)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
