#include "temp_tree.h"

#include "core/proto/config_json.h"
#include "core/proto/message.h"
#include "core/repository/code_upload.h"

#define BYTES(text) text, sizeof(text) - 1

static void
assert_data(const char *path)
{
    const char *what = inf_code_upload_is_code(path, BYTES("weights"));
    if (what != NULL) {
        fail_msg("%s: %s", path, what);
    }
}

static void
assert_code(const char *path, const char *data, size_t len)
{
    if (inf_code_upload_is_code(path, data, len) == NULL) {
        fail_msg("%s is taken for data", path);
    }
}

static void
names_of_code_are_known_wherever_the_path_leads(void **state)
{
    (void) state;
    static const char *const code[] = {
        "1/model.py", "1/MODEL.PY", "1/x/../model.py", "/./model.py",
        "lib.so", "1/libtriton_x.so", "libm.so.6", "lib.SO.1.2",
        "1/model.pt", "1/model.pt2", "a/run.sh", "k.cu", "k.ptx", "k.cubin",
        "k.fatbin", "env.tar.gz", "env.zip", "w.pkl", "model.plan", ".py"
    };
    static const char *const data[] = {
        "1/model.onnx", "1/data", "notes.txt", "config.pbtxt", "1/a.sock",
        "labels.soup", "py", "so", "1/weights.bin", "1/py.txt", "so.far/x",
        "model.py/1", "1/..x", "vocab.json"
    };

    for (size_t i = 0; i < sizeof(code) / sizeof(code[0]); i++) {
        assert_code(code[i], BYTES("weights"));
    }
    for (size_t i = 0; i < sizeof(data) / sizeof(data[0]); i++) {
        assert_data(data[i]);
    }
}

static void
first_bytes_tell_code_under_any_name(void **state)
{
    (void) state;
    char tar[512] = "file";

    memcpy(tar + 257, "ustar", 5);
    assert_code("1/data", BYTES("\177ELF\2\1\1"));
    assert_code("1/data", BYTES("\177ELF"));
    assert_code("1/data", BYTES("#!/bin/sh"));
    assert_code("1/data", BYTES("PK\3\4"));
    assert_code("1/data", BYTES("\x1f\x8b\x08"));
    assert_code("1/data", BYTES("\xfd" "7zXZ\0"));
    assert_code("1/data", BYTES("\x50\xed\x55\xba"));
    assert_code("1/data", tar, sizeof(tar));
    assert_code("1/data", tar, 262);

    assert_null(inf_code_upload_is_code("1/data", tar, 261));
    assert_null(inf_code_upload_is_code("1/data", BYTES("\177EL")));
    assert_null(inf_code_upload_is_code("1/data", BYTES("#")));
    assert_null(inf_code_upload_is_code("1/data", BYTES(" #!/bin/sh")));
    assert_null(inf_code_upload_is_code("1/data", NULL, 0));
}

static void
expect_rejected(inf_err_t *err, const char *file)
{
    assert_non_null(err);
    assert_int_equal(inf_err_code(err), INF_ERR_INVALID_ARG);
    assert_non_null(strstr(inf_err_msg(err), file));
    assert_non_null(strstr(inf_err_msg(err), "inference_code_upload"));
    inf_err_free(err);
}

static void
errors_name_the_file_and_the_directive(void **state)
{
    (void) state;
    inf_override_t *o;

    assert_ok(inf_code_upload_check_files(NULL));
    assert_ok(inf_override_new(&o));
    assert_ok(inf_code_upload_check_files(o));
    assert_ok(inf_override_add_file(o, "1/data", INF_SLICE("x")));
    assert_ok(inf_code_upload_check_files(o));
    assert_ok(inf_override_add_file(o, "1/model.py", INF_SLICE("x")));
    expect_rejected(inf_code_upload_check_files(o), "'file:1/model.py'");
    inf_override_free(o);
}

static void
files_are_only_for_backends_that_read_data(void **state)
{
    (void) state;
    inf_override_t *o;

    assert_ok(inf_override_new(&o));
    assert_ok(inf_code_upload_check_backend(NULL, "python"));
    assert_ok(inf_code_upload_check_backend(o, "python"));  /* brings none   */
    assert_ok(inf_override_add_file(o, "1/model.txt", INF_SLICE("x")));
    assert_ok(inf_code_upload_check_backend(o, "onnxruntime"));
    assert_ok(inf_code_upload_check_backend(o, "identity"));
    assert_ok(inf_code_upload_check_backend(o, ""));        /* an ensemble   */
    expect_rejected(inf_code_upload_check_backend(o, "python"), "python");
    expect_rejected(inf_code_upload_check_backend(o, "pytorch"), "pytorch");
    expect_rejected(inf_code_upload_check_backend(o, "onnxruntime2"),
        "onnxruntime2");
    expect_rejected(inf_code_upload_check_backend(o, "openvino"), "openvino");
    inf_override_free(o);
}

/* own NULL: no repository has the model; key NULL: it passes. */
static void
check_config(const char *sent_json, const char *own_json, const char *key,
    const char *value)
{
    Inference__ModelConfig *sent;
    Inference__ModelConfig *own = NULL;

    assert_ok(inf_model_config_from_json(inf_slice_str(sent_json), &sent));
    if (own_json != NULL) {
        assert_ok(inf_model_config_from_json(inf_slice_str(own_json), &own));
    }

    inf_err_t *err = inf_code_upload_check_config(sent, own);
    if (key == NULL) {
        assert_ok(err);
    } else {
        if (err == NULL || strstr(inf_err_msg(err), key) == NULL) {
            fail_msg("%s: %s", sent_json, err == NULL ? "passes"
                : inf_err_msg(err));
        }
        expect_rejected(err, value);
    }

    inf_message_free(&sent->base);
    if (own != NULL) {
        inf_message_free(&own->base);
    }
}

#define ACCELERATOR_KEY(list, name, key, value) \
    "{\"optimization\":{\"execution_accelerators\":{\"" list "\":[{" \
    "\"name\":\"" name "\",\"parameters\":{\"" key "\":\"" value "\"}}]}}}"
#define ACCELERATOR(list, name, value) ACCELERATOR_KEY(list, name, "p", value)

static void
a_configuration_names_only_what_the_repository_names(void **state)
{
    (void) state;
    static const struct {
        const char *json;
        const char *other;              /* says something else               */
        const char *key;
        const char *value;
    } rows[] = {
        { "{\"runtime\":\"a.so\"}", "{\"runtime\":\"b.so\"}", "runtime",
          "'a.so'" },
        { "{\"model_operations\":{\"op_library_filename\":[\"a\"]}}",
          "{\"model_operations\":{\"op_library_filename\":[\"b\"]}}",
          "model_operations.op_library_filename", "'a'" },
        { "{\"model_repository_agents\":{\"agents\":[{\"name\":\"a\"}]}}",
          "{\"model_repository_agents\":{\"agents\":[{\"name\":\"a\","
          "\"parameters\":{\"x\":\"y\"}}]}}",
          "model_repository_agents", "'a'" },
        { "{\"parameters\":{\"p\":{\"string_value\":\"/a\"}}}",
          "{\"parameters\":{\"q\":{\"string_value\":\"/a\"},"
          "\"p\":{\"string_value\":\"/b\"}}}",
          "parameters[\"p\"]", "'/a'" },
        { ACCELERATOR("gpu_execution_accelerator", "n", "a/b"),
          ACCELERATOR("cpu_execution_accelerator", "n", "a/b"),
          "gpu_execution_accelerator[0].parameters[\"p\"]", "'a/b'" },
        { ACCELERATOR("cpu_execution_accelerator", "n", "/"),
          ACCELERATOR("cpu_execution_accelerator", "m", "/"),
          "cpu_execution_accelerator[0].parameters[\"p\"]", "'/'" },
        { "{\"parameters\":{\"a.b_to_file\":{\"string_value\":\"x\"}}}",
          "{\"parameters\":{\"a.b_to_file\":{\"string_value\":\"y\"}}}",
          "parameters[\"a.b_to_file\"]", "'x'" },
        { "{\"parameters\":{\"PATH\":{\"string_value\":\"x\"}}}", "{}",
          "parameters[\"PATH\"]", "'x'" },
        { ACCELERATOR_KEY("cpu_execution_accelerator", "n", "cache_dir", "x"),
          ACCELERATOR_KEY("cpu_execution_accelerator", "n", "cache", "x"),
          "cpu_execution_accelerator[0].parameters[\"cache_dir\"]", "'x'" }
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_config(rows[i].json, NULL, rows[i].key, rows[i].value);
        check_config(rows[i].json, "{}", rows[i].key, rows[i].value);
        check_config(rows[i].json, rows[i].other, rows[i].key, rows[i].value);
        check_config(rows[i].json, rows[i].json, NULL, NULL);
    }
}

#define KERNEL_KEYS(backend, key, value, dim, batch) \
    "{" backend "\"max_batch_size\":" batch ",\"input\":[{\"name\":\"x\"," \
    "\"data_type\":\"TYPE_FP32\",\"dims\":[" dim "]}],\"parameters\":{" \
    "\"" key "\":{\"string_value\":\"" value "\"}}}"
#define KERNELS(key, value, dim, batch) \
    KERNEL_KEYS("\"backend\":\"cuda\",", key, value, dim, batch)

static void
kernels_run_as_the_repository_says(void **state)
{
    (void) state;
    static const char own[] = KERNELS("kernel_1", "k<<<1,1>>>(x)", "8", "4");

    check_config(own, own, NULL, NULL);
    check_config(own, NULL, "kernel_1", "inference_code_upload on");
    check_config(own, "{}", "kernel_1", "cuda");
    check_config(KERNELS("kernel_1", "k<<<2,1>>>(x)", "8", "4"), own,
        "kernel_1", "cuda");
    check_config(KERNELS("require_1", "x[0] == 1", "8", "4"), own,
        "require_1", "cuda");
    check_config("{}", KERNELS("require_1", "x[0] == 1", "8", "4"),
        "require_1", "cuda");
    check_config(KERNELS("timeout", "0", "8", "4"), KERNELS("timeout", "5",
        "8", "4"), "timeout", "cuda");
    check_config(KERNELS("memory", "0", "8", "4"), "{}", "memory", "cuda");
    check_config(KERNELS("graphs", "1024", "8", "4"), "{}", "graphs", "cuda");
    check_config(KERNELS("kernel_1", "k<<<1,1>>>(x)", "9", "4"), own, "input",
        "cuda");
    check_config(KERNELS("kernel_1", "k<<<1,1>>>(x)", "8", "5"), own, "input",
        "cuda");
    check_config(KERNEL_KEYS("", "kernel_1", "k<<<1,1>>>(x)", "8", "4"), "{}",
        "kernel_1", "cuda");
    check_config("{\"backend\":\"onnxruntime\"}", own, "kernel_1", "cuda");
    check_config(KERNELS("compile_options", "-G", "8", "4"), "{}",
        "compile_options", "cuda");
    check_config(KERNEL_KEYS("\"backend\":\"mine\",", "kernel_1", "x", "8",
        "4"), "{}", NULL, NULL);
}

#define THREADS "{\"parameters\":{\"%s\":{\"string_value\":\"%s\"}}}"

/* other NULL: the repository says nothing. */
static void
check_threads(const char *name, const char *value, const char *other,
    bool passes)
{
    char sent[256];
    char own[256] = "{}";
    char key[64];

    snprintf(sent, sizeof(sent), THREADS, name, value);
    snprintf(key, sizeof(key), "parameters[\"%s\"]", name);
    if (other != NULL) {
        snprintf(own, sizeof(own), THREADS, name, other);
    }
    check_config(sent, own, passes ? NULL : key, value);
}

static void
threads_are_limited_by_the_processors(void **state)
{
    (void) state;
    static const char *const names[] = {
        "intra_op_thread_count", "inter_op_thread_count",
        "INTRA_OP_THREAD_COUNT", "INTER_OP_THREAD_COUNT"
    };
    char most[32];
    char more[32];

    snprintf(most, sizeof(most), "%ld", 4 * sysconf(_SC_NPROCESSORS_ONLN));
    snprintf(more, sizeof(more), "%ld", 4 * sysconf(_SC_NPROCESSORS_ONLN) + 1);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        check_threads(names[i], "0", NULL, true);
        check_threads(names[i], most, NULL, true);
        check_threads(names[i], more, NULL, false);
        check_threads(names[i], "99999999999999999999", NULL, false);
        check_threads(names[i], "many", NULL, true);    /* the backend's     */
        check_threads(names[i], more, more, true);
        check_threads(names[i], more, most, false);
    }
    check_threads("execute_delay_ms", more, NULL, true);
}

static void
a_configuration_may_change_all_else(void **state)
{
    (void) state;

    check_config("{}", NULL, NULL, NULL);
    check_config("{\"backend\":\"python\",\"max_batch_size\":8,"
        "\"parameters\":{\"p\":{\"string_value\":\"4\"},\"q\":{},"
        "\"profile.direct\":{\"string_value\":\"1\"},"
        "\"a_path\":{\"string_value\":\"\"}},"
        "\"model_operations\":{},\"model_repository_agents\":{},"
        "\"optimization\":{}}", NULL, NULL, NULL);
    check_config(ACCELERATOR("gpu_execution_accelerator", "tensorrt", "FP16"),
        NULL, NULL, NULL);
}

#define INPUTS(value) \
    "{\"parameters\":{\"INFERENCE_WRITABLE_INPUTS\":{\"string_value\":\"" \
    value "\"}}}"

static void
copies_of_inputs_stay_where_the_repository_has_them(void **state)
{
    (void) state;
    static const struct {
        const char *sent;
        const char *own;
        bool        passes;
    } rows[] = {
        { INPUTS("true"), INPUTS("true"), true },
        { INPUTS("true"), INPUTS("false"), true },
        { INPUTS("true"), "{}", true },
        { INPUTS("false"), INPUTS("false"), true },
        { INPUTS("false"), INPUTS("true"), false },
        { INPUTS("false"), "{}", false },       /* a backend's default       */
        { "{}", INPUTS("true"), false },
        { "{}", INPUTS("false"), true },
        { "{}", "{}", true }
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        Inference__ModelConfig *sent, *own;

        assert_ok(inf_model_config_from_json(inf_slice_str(rows[i].sent),
            &sent));
        assert_ok(inf_model_config_from_json(inf_slice_str(rows[i].own),
            &own));
        inf_err_t *err = inf_code_upload_check_inputs(sent, own);
        if (rows[i].passes) {
            assert_ok(err);
        } else {
            expect_rejected(err, "INFERENCE_WRITABLE_INPUTS");
        }
        inf_message_free(&sent->base);
        inf_message_free(&own->base);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_code_are_known_wherever_the_path_leads),
        cmocka_unit_test(first_bytes_tell_code_under_any_name),
        cmocka_unit_test(errors_name_the_file_and_the_directive),
        cmocka_unit_test(files_are_only_for_backends_that_read_data),
        cmocka_unit_test(a_configuration_names_only_what_the_repository_names),
        cmocka_unit_test(kernels_run_as_the_repository_says),
        cmocka_unit_test(threads_are_limited_by_the_processors),
        cmocka_unit_test(a_configuration_may_change_all_else),
        cmocka_unit_test(copies_of_inputs_stay_where_the_repository_has_them)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
