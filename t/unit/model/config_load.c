#include "model/config_text.h"
#include "model/memory_storage.h"

#include <stdio.h>

#include "core/model/config_load.h"
#include "core/proto/message.h"

static const inf_config_options_t lenient = { .auto_complete = true };
static const inf_config_options_t strict = { .auto_complete = false };

static inf_err_t *
read_with(const memory_file_t *files, const char *name,
    const inf_config_options_t *opt, inf_model_config_t **out)
{
    memory_storage_t st = memory_storage(files);
    *out = NULL;
    return inf_model_config_read(&st.base, "repo/m", name, opt, out);
}

static inf_model_config_t *
read_ok(const memory_file_t *files, const inf_config_options_t *opt)
{
    inf_model_config_t *c;
    assert_ok(read_with(files, "m", opt, &c));
    return c;
}

static void
read_fails(const memory_file_t *files, const inf_config_options_t *opt,
    inf_err_code_t code, const char *part)
{
    inf_model_config_t *c;
    assert_error(read_with(files, "m", opt, &c), code, part);
    assert_null(c);
}

static void
a_file_is_read_completed_and_normalised(void **state)
{
    (void) state;
    static const memory_file_t files[] = {
        { "repo/m/config.pbtxt",
          "max_batch_size: 4\n"
          "input { name: \"I\" data_type: TYPE_FP32 dims: [ 2 ] }\n"
          "output { name: \"O\" data_type: TYPE_FP32 dims: [ 2 ] }\n"
          "dynamic_batching { }\n" },
        { "repo/m/1/model.onnx", "x" },
        { NULL, NULL },
    };

    inf_model_config_t *c = read_ok(files, &strict);
    assert_string_equal(c->msg->name, "m");
    assert_string_equal(c->msg->backend, "onnxruntime");
    assert_string_equal(c->msg->platform, "onnxruntime_onnx");
    assert_string_equal(c->msg->default_model_filename, "model.onnx");
    assert_int_equal(c->msg->dynamic_batching->preferred_batch_size[0], 4);
    assert_int_equal(c->msg->version_policy->latest->num_versions, 1);
    assert_string_equal(c->file, "repo/m/config.pbtxt");

    inf_model_config_free(c);
}

static void
a_missing_file_is_an_error_in_strict_mode_only(void **state)
{
    (void) state;
    static const memory_file_t files[] = {
        { "repo/m/1/model.py", "x" }, { NULL, NULL },
    };

    read_fails(files, &strict, INF_ERR_INTERNAL, "failed to open text file "
        "for read repo/m/config.pbtxt: No such file or directory");

    inf_model_config_t *c = read_ok(files, &lenient);
    assert_string_equal(c->msg->backend, "python");
    assert_string_equal(c->msg->platform, "");
    assert_string_equal(c->msg->default_model_filename, "model.py");
    assert_null(c->file);
    inf_model_config_free(c);
}

static void
a_syntax_error_names_file_line_column_and_key(void **state)
{
    (void) state;
    static const memory_file_t files[] = {
        { "repo/m/config.pbtxt", "backend: \"x\"\nmax_batch_size: \"1\"\n" },
        { NULL, NULL },
    };

    read_fails(files, &lenient, INF_ERR_INTERNAL,
        "failed to read text proto from repo/m/config.pbtxt: "
        "repo/m/config.pbtxt:2:17: max_batch_size: ");
}

static void
a_broken_rule_names_file_and_key(void **state)
{
    (void) state;
    static const memory_file_t files[] = {
        { "repo/m/config.pbtxt", "backend: \"x\" max_batch_size: -1" },
        { NULL, NULL },
    };

    read_fails(files, &lenient, INF_ERR_INVALID_ARG,
        "'max_batch_size' must be non-negative value for m, it is -1 "
        "(repo/m/config.pbtxt:1:14: max_batch_size)");
}

static void
tensor_rules_wait_for_the_backend_unless_strict(void **state)
{
    (void) state;
    static const memory_file_t files[] = {
        { "repo/m/config.pbtxt", "backend: \"x\" input { name: \"I\" }" },
        { NULL, NULL },
    };

    inf_model_config_free(read_ok(files, &lenient));
    read_fails(files, &strict, INF_ERR_INVALID_ARG,
        "model input 'I' must specify 'data_type' for m (repo/m/config.pbtxt:"
        "1:14: input[0].data_type)");
}

static void
the_name_must_be_that_of_the_directory(void **state)
{
    (void) state;
    static const memory_file_t files[] = {
        { "repo/m/config.pbtxt", "name: \"other\" backend: \"x\"" },
        { NULL, NULL },
    };

    read_fails(files, &lenient, INF_ERR_INVALID_ARG, "unexpected "
        "directory name 'm' for model 'other', directory name must equal "
        "model name (repo/m/config.pbtxt:1:1: name)");
}

static void
an_unreadable_file_is_an_error(void **state)
{
    (void) state;
    static const memory_file_t files[] = {
        { "repo/m/config.pbtxt", NULL }, { NULL, NULL },
    };

    read_fails(files, &lenient, INF_ERR_INTERNAL, "failed to open text file "
        "for read repo/m/config.pbtxt: ");
}

static void
a_named_configuration_goes_before_the_plain_one(void **state)
{
    (void) state;
    static const memory_file_t files[] = {
        { "repo/m/config.pbtxt", "backend: \"plain\"" },
        { "repo/m/configs/big.pbtxt", "backend: \"big\"" },
        { "repo/m/configs/config.pbtxt", "backend: \"twin\"" },
        { "repo/m/configs/c.pbtxt", "backend: \"short\"" },
        { NULL, NULL },
    };
    static const struct {
        const char *name;
        const char *backend;
    } rows[] = {
        { "big", "big" }, { "absent", "plain" }, { "config", "twin" },
        { "c", "short" }, { "", "plain" }, { NULL, "plain" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        inf_config_options_t opt = {
            .auto_complete = true, .config_name = rows[i].name
        };
        inf_model_config_t *c = read_ok(files, &opt);
        assert_string_equal(c->msg->backend, rows[i].backend);
        inf_model_config_free(c);
    }

    inf_config_options_t bad = {
        .auto_complete = true, .config_name = "../../etc/x"
    };
    read_fails(files, &bad, INF_ERR_INVALID_ARG, "must not contain a slash");
}

static void
a_fallback_is_read_where_there_is_no_file(void **state)
{
    (void) state;
    static const memory_file_t before[] = {
        { "old/config.pbtxt", "backend: \"old\"" },
        { "old/configs/big.pbtxt", "backend: \"big\"" },
        { NULL, NULL },
    };
    static const memory_file_t without[] = {
        { "repo/m/1/x", "" }, { NULL, NULL },
    };
    static const memory_file_t with[] = {
        { "repo/m/config.pbtxt", "backend: \"new\"" }, { NULL, NULL },
    };
    memory_storage_t st = memory_storage(before);
    inf_config_options_t opt = {
        .auto_complete = true, .fallback = &st.base, .fallback_dir = "old"
    };

    inf_model_config_t *c = read_ok(without, &opt);
    assert_string_equal(c->msg->backend, "old");
    assert_string_equal(c->file, "old/config.pbtxt");
    inf_model_config_free(c);

    c = read_ok(with, &opt);
    assert_string_equal(c->msg->backend, "new");
    inf_model_config_free(c);

    opt.config_name = "big";
    c = read_ok(without, &opt);
    assert_string_equal(c->msg->backend, "big");
    inf_model_config_free(c);

    opt.fallback_dir = "gone";
    read_fails(without, &opt, INF_ERR_INVALID_ARG, "(repo/m: backend)");
}

static void
parsing_neither_completes_nor_checks(void **state)
{
    (void) state;
    static const memory_file_t files[] = {
        { "repo/m/config.pbtxt", "max_batch_size: -1" },
        { "repo/m/1/model.onnx", "x" },
        { "none/x", "" },
        { "bad/config.pbtxt", "rubbish {" },
        { NULL, NULL },
    };
    memory_storage_t st = memory_storage(files);
    const inf_config_options_t json = {
        .override_json = INF_SLICE("{\"backend\":\"json\"}")
    };
    const inf_config_options_t wrong = { .override_json = INF_SLICE("{") };
    Inference__ModelConfig *msg;
    char *file;

    assert_ok(inf_model_config_parse(&st.base, "repo/m", &strict, &file,
        &msg));
    assert_string_equal(file, "repo/m/config.pbtxt");
    free(file);
    assert_int_equal(msg->max_batch_size, -1);
    assert_string_equal(msg->backend, "");
    assert_string_equal(msg->name, "");
    inf_message_free(&msg->base);

    assert_ok(inf_model_config_parse(&st.base, "repo/m", &json, &file, &msg));
    assert_null(file);
    assert_string_equal(msg->backend, "json");
    inf_message_free(&msg->base);

    assert_ok(inf_model_config_parse(&st.base, "none", &strict, &file,
        &msg));
    assert_null(msg);
    assert_null(file);
    assert_error(inf_model_config_parse(&st.base, "bad", &lenient, &file,
        &msg),
        INF_ERR_INTERNAL, "bad/config.pbtxt:1");
    assert_null(msg);
    assert_error(inf_model_config_parse(&st.base, "repo/m", &wrong, NULL,
        &msg),
        INF_ERR_INVALID_ARG, "Invalid config override");
    assert_null(msg);
}

static void
an_override_replaces_the_file(void **state)
{
    (void) state;
    static const memory_file_t files[] = {
        { "repo/m/config.pbtxt", "backend: \"file\" max_batch_size: 3" },
        { "repo/m/1/model.onnx", "x" },
        { NULL, NULL },
    };
    static const struct {
        const char *json;
        const char *part;       /* NULL: loads */
    } rows[] = {
        { "{}", NULL },
        { "{\"backend\":\"onnxruntime\",\"maxBatchSize\":2}", NULL },
        { "{\"name\":\"m\"}", NULL },
        { "{\"name\":\"n\"}", "unexpected directory name 'm' for model "
          "'n'" },
        { "{\"inputs\":[]}", "Invalid config override: " },
        { "", "Invalid config override: " },
        { "{\"max_batch_size\":-2}", "(config override: max_batch_size)" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        inf_config_options_t opt = {
            .auto_complete = true,
            .override_json = inf_slice_str(rows[i].json)
        };
        if (rows[i].part != NULL) {
            read_fails(files, &opt, INF_ERR_INVALID_ARG, rows[i].part);
            continue;
        }

        inf_model_config_t *c = read_ok(files, &opt);
        assert_string_equal(c->msg->backend, "onnxruntime");
        assert_true(c->msg->max_batch_size != 3);
        assert_null(c->file);
        inf_model_config_free(c);
    }
}

static void
a_check_lists_all_findings(void **state)
{
    (void) state;
    static const memory_file_t files[] = {
        { "repo/m/config.pbtxt", "name: \"n\" backend: \"x\" "
          "max_batch_size: -1 input { name: \"I\" }" },
        { NULL, NULL },
    };
    memory_storage_t st = memory_storage(files);
    inf_model_config_t *c;
    inf_findings_t f;

    inf_findings_init(&f);
    inf_model_config_check(&st.base, "repo/m", "m", &strict, &f, &c);
    assert_non_null(c);
    assert_int_equal(f.count, 4);
    assert_string_equal(f.items[0].key, "max_batch_size");
    assert_int_equal(f.items[0].line, 1);
    assert_int_equal(f.items[0].column, 24);
    assert_string_equal(f.items[3].key, "name");
    inf_findings_fini(&f);
    inf_model_config_free(c);

    static const memory_file_t broken[] = {
        { "repo/m/config.pbtxt", "}" }, { NULL, NULL },
    };

    st = memory_storage(broken);
    inf_model_config_check(&st.base, "repo/m", "m", &strict, &f, &c);
    assert_null(c);
    assert_int_equal(f.count, 1);
    assert_non_null(strstr(f.items[0].text, "repo/m/config.pbtxt:1:1"));
    inf_findings_fini(&f);
}

/* A directory: version files, the configuration, and the result. */
typedef struct {
    const char *file;           /* "1/model.onnx"; "1/dir/" a directory    */
    const char *second;         /* another, or NULL                        */
    const char *config;
    const char *backend;
    const char *platform;
    const char *filename;
} infer_row_t;

static void
backend_platform_and_file_are_inferred(void **state)
{
    (void) state;
    static const infer_row_t rows[] = {
        { "1/model.savedmodel/", NULL, "", "tensorflow",
          "tensorflow_savedmodel", "model.savedmodel" },
        { "1/model.savedmodel", NULL, "backend: \"z\"", "z", "", "" },
        { "1/model.graphdef", NULL, "", "tensorflow", "tensorflow_graphdef",
          "model.graphdef" },
        { "1/x", NULL, "platform: \"tensorflow_graphdef\"", "tensorflow",
          "tensorflow_graphdef", "model.graphdef" },
        { "1/x", NULL, "default_model_filename: \"model.savedmodel\"",
          "tensorflow", "tensorflow_savedmodel", "model.savedmodel" },
        { "1/model.plan", NULL, "", "tensorrt", "tensorrt_plan", "model.plan" },
        { "1/x", NULL, "backend: \"tensorrt\"", "tensorrt", "tensorrt_plan",
          "model.plan" },
        { "1/x", NULL, "platform: \"tensorrt_plan\"", "tensorrt",
          "tensorrt_plan", "model.plan" },
        { "1/x", NULL, "default_model_filename: \"model.plan\"", "tensorrt",
          "tensorrt_plan", "model.plan" },
        { "1/model.onnx", NULL, "", "onnxruntime", "onnxruntime_onnx",
          "model.onnx" },
        { "1/model.onnx/model.onnx", NULL, "", "onnxruntime",
          "onnxruntime_onnx", "model.onnx" },
        { "1/model.onnx/weights", "1/model.xml", "", "openvino", "",
          "model.xml" },
        { "1/x", NULL, "backend: \"onnxruntime\"", "onnxruntime",
          "onnxruntime_onnx", "model.onnx" },
        { "1/x", NULL, "backend: \"onnxruntime\" default_model_filename: \"a\"",
          "onnxruntime", "onnxruntime_onnx", "a" },
        { "1/model.xml", NULL, "", "openvino", "", "model.xml" },
        { "1/x", NULL, "backend: \"openvino\"", "openvino", "", "model.xml" },
        { "1/model.pt", NULL, "", "pytorch", "pytorch_libtorch", "" },
        { "1/model.pt2", NULL, "", "pytorch", "torch_aoti", "" },
        { "1/x", NULL, "backend: \"pytorch\"", "pytorch", "pytorch_libtorch",
          "model.pt" },
        { "1/x", NULL, "platform: \"pytorch_libtorch\"", "pytorch",
          "pytorch_libtorch", "" },
        { "1/x", NULL, "default_model_filename: \"model.pt2\"", "pytorch",
          "pytorch_libtorch", "model.pt2" },
        { "1/x", NULL, "platform: \"torch_aoti\"", "pytorch", "torch_aoti",
          "" },
        { "1/model.py", NULL, "", "python", "", "model.py" },
        { "1/x", NULL, "default_model_filename: \"model.py\"", "python", "",
          "model.py" },
        { "1/model.cu", NULL, "", "cuda", "", "" },
        { "1/model.cubin", "1/weights.bin", "", "cuda", "", "" },
        { "1/x", NULL, "default_model_filename: \"model.ptx\"", "cuda", "",
          "model.ptx" },
        { "1/model.cu", NULL, "backend: \"cuda\"", "cuda", "", "" },
        { "1/model.so", NULL, "backend: \"cuda\"", "cuda", "", "" },
        { "1/model.cu/", "1/model.py", "", "python", "", "model.py" },
        /* the first in the list settles it */
        { "1/model.py", "1/model.onnx", "", "onnxruntime",
          "onnxruntime_onnx", "model.onnx" },
        { "1/model.graphdef", "1/model.savedmodel/", "", "tensorflow",
          "tensorflow_graphdef", "model.graphdef" },
        /* "10" sorts before "9", and only versions count */
        { "9/model.onnx", "10/model.py", "", "python", "", "model.py" },
        { ".ipynb_checkpoints/model.py", "1/model.onnx", "", "onnxruntime",
          "onnxruntime_onnx", "model.onnx" },
        { "1.bak/model.py", "2/model.plan", "", "tensorrt",
          "tensorrt_plan", "model.plan" },
        { "1/x", NULL, "backend: \"mine\"", "mine", "", "" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const infer_row_t *row = &rows[i];
        char paths[2][64];
        memory_file_t files[] = {
            { "repo/m/config.pbtxt", row->config },
            { paths[0], "" },
            { row->second != NULL ? paths[1] : NULL, "" },
            { NULL, NULL },
        };

        snprintf(paths[0], sizeof(paths[0]), "repo/m/%s", row->file);
        if (row->second != NULL) {
            snprintf(paths[1], sizeof(paths[1]), "repo/m/%s", row->second);
        }

        inf_model_config_t *c = read_ok(files, &lenient);
        assert_string_equal(c->msg->backend, row->backend);
        assert_string_equal(c->msg->platform, row->platform);
        assert_string_equal(c->msg->default_model_filename, row->filename);
        inf_model_config_free(c);
    }
}

static void
the_backend_may_follow_the_dot_in_the_model_name(void **state)
{
    (void) state;
    static const memory_file_t files[] = {
        { "repo/m/1/x", "" }, { NULL, NULL },
    };
    inf_model_config_t *c;

    assert_ok(read_with(files, "a.b.c", &lenient, &c));
    assert_string_equal(c->msg->backend, "b.c");
    assert_string_equal(c->msg->default_model_filename, "model.b.c");
    inf_model_config_free(c);

    assert_error(read_with(files, "plain", &lenient, &c),
        INF_ERR_INVALID_ARG, "Invalid model name: Could not determine "
        "backend for model 'plain' with no backend in model configuration. "
        "Expected model name of the form 'model.<backend_name>'.");
    assert_error(read_with(files, "dot.", &lenient, &c),
        INF_ERR_INVALID_ARG, "Could not determine backend");
}

static void
a_file_name_alone_infers_nothing(void **state)
{
    (void) state;
    static const memory_file_t files[] = {
        { "repo/m/config.pbtxt", "default_model_filename: \"foo.onnx\"" },
        { "repo/m/1/foo.onnx", "" },
        { NULL, NULL },
    };

    read_fails(files, &lenient, INF_ERR_INVALID_ARG,
        "unexpected platform type '' for m");
}

static void
the_alias_libtorch_fails_the_pair_check(void **state)
{
    (void) state;
    static const memory_file_t files[] = {
        { "repo/m/config.pbtxt", "platform: \"libtorch\"" },
        { "repo/m/1/model.pt", "" },
        { NULL, NULL },
    };

    read_fails(files, &lenient, INF_ERR_INVALID_ARG, "unexpected 'platform' "
        "and 'backend' pair, got:libtorch, pytorch");
}

static void
an_ensemble_needs_no_version_content(void **state)
{
    (void) state;
    static const memory_file_t files[] = {
        { "repo/m/config.pbtxt", "platform: \"ensemble\" "
          "input { name: \"A\" data_type: TYPE_FP32 dims: 1 } "
          "output { name: \"B\" data_type: TYPE_FP32 dims: 1 } "
          "ensemble_scheduling { step { model_name: \"x\" model_version: -1 "
          "input_map { key: \"I\" value: \"A\" } "
          "output_map { key: \"O\" value: \"B\" } } }" },
        { NULL, NULL },
    };

    inf_model_config_t *c = read_ok(files, &strict);
    assert_true(inf_config_is_ensemble(c->msg));
    assert_null(c->msg->optimization);
    assert_string_equal(c->msg->backend, "");
    inf_model_config_free(c);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_read_completed_and_normalised),
        cmocka_unit_test(a_missing_file_is_an_error_in_strict_mode_only),
        cmocka_unit_test(a_syntax_error_names_file_line_column_and_key),
        cmocka_unit_test(a_broken_rule_names_file_and_key),
        cmocka_unit_test(tensor_rules_wait_for_the_backend_unless_strict),
        cmocka_unit_test(the_name_must_be_that_of_the_directory),
        cmocka_unit_test(an_unreadable_file_is_an_error),
        cmocka_unit_test(a_named_configuration_goes_before_the_plain_one),
        cmocka_unit_test(a_fallback_is_read_where_there_is_no_file),
        cmocka_unit_test(parsing_neither_completes_nor_checks),
        cmocka_unit_test(an_override_replaces_the_file),
        cmocka_unit_test(a_check_lists_all_findings),
        cmocka_unit_test(backend_platform_and_file_are_inferred),
        cmocka_unit_test(the_backend_may_follow_the_dot_in_the_model_name),
        cmocka_unit_test(a_file_name_alone_infers_nothing),
        cmocka_unit_test(the_alias_libtorch_fails_the_pair_check),
        cmocka_unit_test(an_ensemble_needs_no_version_content),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
