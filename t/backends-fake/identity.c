/* identity.c - the identity backend, run by hand */

#include "fakecore.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define TENSOR(name, type, dims) \
    "{\"name\":\"" name "\",\"data_type\":\"" type "\",\"dims\":" dims "}"
#define CONFIG(batch, inputs, outputs, more) \
    "{\"name\":\"fake\",\"max_batch_size\":" batch ",\"input\":[" inputs "]," \
    "\"output\":[" outputs "]" more "}"
#define PARAMETER(key, value) \
    ",\"parameters\":{\"" key "\":{\"string_value\":\"" value "\"}}"

#define PLAIN CONFIG("0", TENSOR("INPUT0", "TYPE_INT32", "[-1]"), \
    TENSOR("OUTPUT0", "TYPE_INT32", "[-1]"), "")

static fake_backend_t backend;

static fake_model_t *
load(fake_model_t *m, const char *config)
{
    TRITONSERVER_Error *err = fake_model_load(m, &backend, "/nowhere",
        config, true, TRITONSERVER_INSTANCEGROUPKIND_CPU);

    if (err != NULL) {
        fail_msg("%s", TRITONSERVER_ErrorMessage(err));
    }
    return m;
}

static void
reject(const char *config, const char *words)
{
    fake_model_t m;

    TRITONSERVER_Error *err = fake_model_load(&m, &backend, "/nowhere",
        config, true, TRITONSERVER_INSTANCEGROUPKIND_CPU);
    assert_non_null(err);
    if (strstr(TRITONSERVER_ErrorMessage(err), words) == NULL) {
        fail_msg("\"%s\" lacks \"%s\"", TRITONSERVER_ErrorMessage(err),
            words);
    }
    TRITONSERVER_ErrorDelete(err);
}

static void
identity_repeats_bytes_of_several_buffers(void **state)
{
    const int64_t shape[] = { 4 };
    const int32_t data[] = { 1, -2, 3, -4 };
    fake_model_t m;

    (void) state;
    fake_request_t *r = fake_request_new(load(&m, PLAIN));
    fake_tensor_t *t = fake_request_input(r, "INPUT0", TRITONSERVER_TYPE_INT32,
        shape, 1, data, 5);
    fake_tensor_append(t, (const char *) data + 5, 0);
    fake_tensor_append(t, (const char *) data + 5, 11);
    fake_request_want(r, "OUTPUT0");
    fake_execute(&m, &r, 1);

    const fake_tensor_t *o = fake_request_output(r, "OUTPUT0");
    assert_int_equal(o->datatype, TRITONSERVER_TYPE_INT32);
    assert_int_equal(o->dims_count, 1);
    assert_int_equal(o->shape[0], 4);
    assert_int_equal(o->chunk_lens[0], sizeof(data));
    assert_memory_equal(o->chunks[0], data, sizeof(data));
    assert_int_equal(m.batches, 1);

    fake_request_free(r);
    fake_model_unload(&m);
}

static void
identity_repeats_an_empty_tensor(void **state)
{
    const int64_t shape[] = { 0 };
    fake_model_t m;

    (void) state;
    fake_request_t *r = fake_request_new(load(&m, PLAIN));
    fake_request_input(r, "INPUT0", TRITONSERVER_TYPE_INT32, shape, 1, NULL,
        0);
    fake_request_want(r, "OUTPUT0");
    fake_execute(&m, &r, 1);
    assert_int_equal(fake_request_output(r, "OUTPUT0")->chunk_lens[0], 0);

    fake_request_free(r);
    fake_model_unload(&m);
}

static void
identity_answers_requested_outputs_only_and_counts_rows(void **state)
{
    const char *config = CONFIG("8",
        TENSOR("INPUT0", "TYPE_STRING", "[1]") ","
        TENSOR("INPUT1", "TYPE_UINT8", "[2]"),
        TENSOR("OUTPUT1", "TYPE_UINT8", "[2]") ","
        TENSOR("OUTPUT0", "TYPE_STRING", "[1]"), "");
    const int64_t s[] = { 2, 1 };
    const int64_t u[] = { 2, 2 };
    fake_request_t *r[2];
    fake_model_t m;

    (void) state;
    load(&m, config);
    for (int i = 0; i < 2; i++) {
        r[i] = fake_request_new(&m);
        fake_request_input(r[i], "INPUT1", TRITONSERVER_TYPE_UINT8, u, 2,
            "abcd", 4);
        fake_request_input(r[i], "INPUT0", TRITONSERVER_TYPE_BYTES, s, 2,
            "\1\0\0\0x\2\0\0\0yz", 11);
    }
    fake_request_want(r[0], "OUTPUT0");
    fake_request_want(r[1], "OUTPUT0");
    fake_request_want(r[1], "OUTPUT1");
    fake_execute(&m, r, 2);

    assert_int_equal(r[0]->output_count, 1);
    assert_int_equal(r[1]->output_count, 2);
    assert_memory_equal(fake_request_output(r[0], "OUTPUT0")->chunks[0],
        "\1\0\0\0x\2\0\0\0yz", 11);
    assert_memory_equal(fake_request_output(r[1], "OUTPUT1")->chunks[0],
        "abcd", 4);
    assert_int_equal(m.batches, 1);
    assert_int_equal(m.rows, 4);

    fake_request_free(r[0]);
    fake_request_free(r[1]);
    fake_model_unload(&m);
}

static void
identity_pairs_by_position_when_names_are_free(void **state)
{
    const char *config = CONFIG("0",
        TENSOR("b", "TYPE_UINT8", "[1]") "," TENSOR("a", "TYPE_UINT8", "[1]"),
        TENSOR("y", "TYPE_UINT8", "[1]") "," TENSOR("x", "TYPE_UINT8", "[1]"),
        "");
    const int64_t shape[] = { 1 };
    fake_model_t m;

    (void) state;
    fake_request_t *r = fake_request_new(load(&m, config));
    fake_request_input(r, "a", TRITONSERVER_TYPE_UINT8, shape, 1, "A", 1);
    fake_request_input(r, "b", TRITONSERVER_TYPE_UINT8, shape, 1, "B", 1);
    fake_request_want(r, "x");
    fake_request_want(r, "y");
    fake_execute(&m, &r, 1);
    assert_memory_equal(fake_request_output(r, "y")->chunks[0], "B", 1);
    assert_memory_equal(fake_request_output(r, "x")->chunks[0], "A", 1);

    fake_request_free(r);
    fake_model_unload(&m);
}

static void
identity_rejects_gpu_memory_for_an_output(void **state)
{
    const char *config = CONFIG("0", TENSOR("in", "TYPE_UINT8", "[1]"),
        TENSOR("GPU_out", "TYPE_UINT8", "[1]"), "");
    const int64_t shape[] = { 1 };
    fake_model_t m;

    (void) state;
    fake_request_t *r = fake_request_new(load(&m, config));
    fake_request_input(r, "in", TRITONSERVER_TYPE_UINT8, shape, 1, "A", 1);
    fake_request_want(r, "GPU_out");
    fake_execute(&m, &r, 1);
    assert_int_equal(r->error_code, TRITONSERVER_ERROR_UNSUPPORTED);
    assert_non_null(strstr(r->error, "GPU memory of device 3"));

    fake_request_free(r);
    fake_model_unload(&m);
}

static void
identity_rejects_an_input_in_gpu_memory(void **state)
{
    const int64_t shape[] = { 1 };
    fake_model_t m;

    (void) state;
    fake_request_t *r = fake_request_new(load(&m, PLAIN));
    fake_request_input(r, "INPUT0", TRITONSERVER_TYPE_INT32, shape, 1,
        "abcd", 4)->memory = TRITONSERVER_MEMORY_GPU;
    fake_request_want(r, "OUTPUT0");
    fake_execute(&m, &r, 1);
    assert_int_equal(r->error_code, TRITONSERVER_ERROR_UNSUPPORTED);
    assert_non_null(strstr(r->error, "input \"INPUT0\" lies in GPU"));

    fake_request_free(r);
    fake_model_unload(&m);
}

static void
identity_echoes_parameters_of_every_type(void **state)
{
    const char *config = CONFIG("0", TENSOR("INPUT0", "TYPE_UINT8", "[1]"),
        TENSOR("OUTPUT0", "TYPE_UINT8", "[1]"),
        PARAMETER("echo_parameters", "true"));
    fake_model_t m;

    (void) state;
    fake_request_t *r = fake_request_new(load(&m, config));
    strcpy(fake_request_parameter(r, "s", TRITONSERVER_PARAMETER_STRING)->text,
        "text");
    fake_request_parameter(r, "i", TRITONSERVER_PARAMETER_INT)->number = -7;
    fake_request_parameter(r, "b", TRITONSERVER_PARAMETER_BOOL)->flag = true;
    fake_request_parameter(r, "d", TRITONSERVER_PARAMETER_DOUBLE)->real = 0.5;
    fake_execute(&m, &r, 1);

    assert_int_equal(r->answered_count, 4);
    assert_string_equal(r->answered[0].text, "text");
    assert_int_equal(r->answered[1].number, -7);
    assert_true(r->answered[2].flag);
    assert_true(r->answered[3].real == 0.5);
    fake_request_free(r);

    r = fake_request_new(&m);
    fake_request_parameter(r, "raw", TRITONSERVER_PARAMETER_BYTES);
    fake_execute(&m, &r, 1);
    assert_int_equal(r->error_code, TRITONSERVER_ERROR_UNSUPPORTED);
    fake_request_free(r);
    fake_model_unload(&m);
}

static void
identity_fails_when_told_to(void **state)
{
    const char *config = CONFIG("0", TENSOR("INPUT0", "TYPE_UINT8", "[1]"),
        TENSOR("OUTPUT0", "TYPE_UINT8", "[1]"),
        PARAMETER("fail_execute", "as you wish"));
    fake_model_t m;

    (void) state;
    fake_request_t *r = fake_request_new(load(&m, config));
    fake_request_want(r, "OUTPUT0");
    fake_execute(&m, &r, 1);
    assert_string_equal(r->error, "as you wish");
    fake_request_free(r);
    fake_model_unload(&m);

    reject(CONFIG("0", TENSOR("INPUT0", "TYPE_UINT8", "[1]"),
        TENSOR("OUTPUT0", "TYPE_UINT8", "[1]"),
        PARAMETER("fail_initialize", "not today")), "not today");
}

static void
identity_waits_as_long_as_configured(void **state)
{
    const char *config = CONFIG("0", TENSOR("INPUT0", "TYPE_UINT8", "[1]"),
        TENSOR("OUTPUT0", "TYPE_UINT8", "[1]"),
        PARAMETER("execute_delay_ms", "20"));
    fake_model_t m;

    (void) state;
    fake_request_t *r = fake_request_new(load(&m, config));
    fake_execute(&m, &r, 1);
    assert_true(r->times[2] - r->times[1] >= 20000000u);
    fake_request_free(r);
    fake_model_unload(&m);
}

static void
identity_waits_for_each_row_of_a_batch(void **state)
{
    const char *config = CONFIG("8", TENSOR("INPUT0", "TYPE_UINT8", "[1]"),
        TENSOR("OUTPUT0", "TYPE_UINT8", "[1]"),
        PARAMETER("row_delay_us", "4000"));
    const int64_t shape[] = { 3, 1 };
    fake_request_t *r[2];
    fake_model_t m;

    (void) state;
    load(&m, config);
    for (int i = 0; i < 2; i++) {
        r[i] = fake_request_new(&m);
        fake_request_input(r[i], "INPUT0", TRITONSERVER_TYPE_UINT8, shape, 2,
            "abc", 3);
    }
    fake_execute(&m, r, 2);
    assert_int_equal(m.rows, 6);
    assert_true(r[0]->times[2] - r[0]->times[1] >= 24000000u);
    fake_request_free(r[0]);
    fake_request_free(r[1]);
    fake_model_unload(&m);
}

static void
identity_answers_a_cancelled_request_so(void **state)
{
    fake_model_t m;

    (void) state;
    fake_request_t *r = fake_request_new(load(&m, PLAIN));
    r->cancelled = true;
    fake_request_want(r, "OUTPUT0");
    fake_execute(&m, &r, 1);
    assert_int_equal(r->error_code, TRITONSERVER_ERROR_CANCELLED);
    fake_request_free(r);
    fake_model_unload(&m);
}

/* priority_levels is a uint64; digits in a string are none. */
static void
identity_reads_integers_beyond_int64(void **state)
{
    fake_model_t m;

    (void) state;
    load(&m, CONFIG("0", TENSOR("INPUT0", "TYPE_UINT8", "[1]"),
        TENSOR("OUTPUT0", "TYPE_UINT8", "[1]"),
        PARAMETER("note", "a,12345678901234567890:12345678901234567890")
        ",\"dynamic_batching\":{\"priority_levels\":18446744073709551615}"));
    fake_model_unload(&m);
}

static void
identity_passes_on_why_there_is_no_output(void **state)
{
    static const struct {
        const char *config;
        const char *output;
        int         code;
        const char *text;
    } rows[] = {
        { CONFIG("0", TENSOR("INPUT0", "TYPE_UINT8", "[1]"),
              TENSOR("REJECTED0", "TYPE_UINT8", "[1]"), ""), "REJECTED0",
          TRITONSERVER_ERROR_INVALID_ARG, "the model has no such output" },
        { CONFIG("0", TENSOR("INPUT0", "TYPE_UINT8", "[1]"),
              TENSOR("FULL0", "TYPE_UINT8", "[1]"), ""), "FULL0",
          TRITONSERVER_ERROR_UNAVAILABLE, "the arena is full" }
    };
    const int64_t one = 1;

    (void) state;
    for (size_t i = 0; i < 2; i++) {
        fake_model_t m;
        fake_request_t *r = fake_request_new(load(&m, rows[i].config));
        fake_request_input(r, "INPUT0", TRITONSERVER_TYPE_UINT8, &one, 1, "x",
            1);
        fake_request_want(r, rows[i].output);
        fake_execute(&m, &r, 1);
        assert_true(r->failed);
        assert_int_equal(r->error_code, rows[i].code);
        assert_non_null(strstr(r->error, rows[i].text));
        fake_request_free(r);
        fake_model_unload(&m);
    }
}

#define ONES "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"

static void
identity_rejects_configurations_that_do_not_fit(void **state)
{
    (void) state;
    reject("{\"name\":\"fake\"}", "0 outputs and 0 inputs");
    reject("", "0 outputs and 0 inputs");
    reject("{\"name\":", "line 1");
    reject(CONFIG("0", TENSOR("INPUT0", "TYPE_UINT8", "[1]"),
        TENSOR("OUTPUT0", "TYPE_INT8", "[1]"), ""), "TYPE_INT8");
    reject(CONFIG("0", TENSOR("INPUT0", "TYPE_UINT8", "[1]"),
        TENSOR("OUTPUT0", "TYPE_UINT8", "[1,1]"), ""), "2 dimensions");
    reject(CONFIG("0", TENSOR("INPUT0", "TYPE_UINT8", "[3]"),
        TENSOR("OUTPUT0", "TYPE_UINT8", "[4]"), ""), "is 4");
    reject(CONFIG("0", TENSOR("INPUT0", "TYPE_UINT8", "[3]"),
        TENSOR("OUTPUT0", "TYPE_WRONG", "[3]"), ""), "TYPE_WRONG");
    reject(CONFIG("0", TENSOR("INPUT0", "TYPE_UINT8", "[1]"),
        TENSOR("OUTPUT0", "TYPE_UINT8", "[1]"),
        PARAMETER("execute_delay_ms", "-1")), "execute_delay_ms");
    reject(CONFIG("0", "{\"name\":\"INPUT0\",\"data_type\":\"TYPE_UINT8\","
        "\"dims\":[" ONES ONES ONES ONES "1],\"reshape\":{\"shape\":[1]}}",
        TENSOR("OUTPUT0", "TYPE_UINT8", "[1]"), ""), "\"INPUT0\" has 65"
        " dimensions");
    reject(CONFIG("0", TENSOR("INPUT0", "TYPE_UINT8", "[1]"),
        TENSOR("OUTPUT0", "TYPE_UINT8", "[1]"),
        PARAMETER("row_delay_us", "1000001")), "row_delay_us");
    reject(CONFIG("0", TENSOR("INPUT0", "TYPE_UINT8", "[1]"),
        TENSOR("OUTPUT0", "TYPE_UINT8", "[1]"),
        PARAMETER("echo_parameters", "maybe")), "echo_parameters");
}

static void
identity_has_zeros_for_an_optional_input(void **state)
{
    const char *config = CONFIG("0", TENSOR("INPUT0", "TYPE_UINT8", "[1]")
        ",{\"name\":\"INPUT1\",\"data_type\":\"TYPE_UINT8\",\"dims\":[1],"
        "\"optional\":true}", TENSOR("OUTPUT0", "TYPE_UINT8", "[1]") ","
        TENSOR("OUTPUT1", "TYPE_UINT8", "[1]"), "");
    const int64_t shape[] = { 1 };
    fake_model_t m;

    (void) state;
    fake_request_t *r = fake_request_new(load(&m, config));
    fake_request_input(r, "INPUT0", TRITONSERVER_TYPE_UINT8, shape, 1, "A", 1);
    fake_request_want(r, "OUTPUT0");
    fake_request_want(r, "OUTPUT1");
    fake_execute(&m, &r, 1);
    assert_int_equal(r->output_count, 2);
    assert_int_equal(fake_request_output(r, "OUTPUT1")->chunk_lens[0], 1);
    assert_memory_equal(fake_request_output(r, "OUTPUT1")->chunks[0], "", 1);
    fake_request_free(r);

    r = fake_request_new(&m);
    fake_request_input(r, "INPUT1", TRITONSERVER_TYPE_UINT8, shape, 1, "A", 1);
    fake_request_want(r, "OUTPUT0");
    fake_execute(&m, &r, 1);
    assert_non_null(strstr(r->error, "OUTPUT0"));
    fake_request_free(r);
    fake_model_unload(&m);
}

static void
identity_leaves_nothing_behind(void **state)
{
    (void) state;
    assert_true(backend.parallel);
    assert_int_equal(fake_leftovers(), 0);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(identity_repeats_bytes_of_several_buffers),
        cmocka_unit_test(identity_repeats_an_empty_tensor),
        cmocka_unit_test(
            identity_answers_requested_outputs_only_and_counts_rows),
        cmocka_unit_test(identity_pairs_by_position_when_names_are_free),
        cmocka_unit_test(identity_rejects_gpu_memory_for_an_output),
        cmocka_unit_test(identity_rejects_an_input_in_gpu_memory),
        cmocka_unit_test(identity_echoes_parameters_of_every_type),
        cmocka_unit_test(identity_fails_when_told_to),
        cmocka_unit_test(identity_waits_as_long_as_configured),
        cmocka_unit_test(identity_waits_for_each_row_of_a_batch),
        cmocka_unit_test(identity_answers_a_cancelled_request_so),
        cmocka_unit_test(identity_reads_integers_beyond_int64),
        cmocka_unit_test(identity_passes_on_why_there_is_no_output),
        cmocka_unit_test(identity_rejects_configurations_that_do_not_fit),
        cmocka_unit_test(identity_has_zeros_for_an_optional_input),
        cmocka_unit_test(identity_leaves_nothing_behind)
    };

    if (argc != 2 || fake_backend_open(&backend, argv[1], NULL) != NULL) {
        fprintf(stderr, "usage: %s libtriton_identity.so\n", argv[0]);
        return 2;
    }

    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fake_backend_close(&backend);
    return failed;
}
