/* onnxruntime.c - the onnxruntime backend, run by hand on small models */

#include "fakecore.h"

#include <dlfcn.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CPU TRITONSERVER_INSTANCEGROUPKIND_CPU
#define GPU TRITONSERVER_INSTANCEGROUPKIND_GPU

#define TENSOR(name, type, dims) \
    "{\"name\":\"" name "\",\"data_type\":\"" type "\",\"dims\":" dims "}"
#define CONFIG(batch, inputs, outputs, more) \
    "{\"name\":\"fake\",\"max_batch_size\":" batch ",\"input\":[" inputs "]," \
    "\"output\":[" outputs "]" more "}"
#define PARAMETER(key, value) \
    "\"" key "\":{\"string_value\":\"" value "\"}"
#define ONE_THREAD PARAMETER("intra_op_thread_count", "1")

#define ADD_INPUTS TENSOR("A", "TYPE_FP32", "[4]") "," \
    TENSOR("B", "TYPE_FP32", "[4]")
#define ADD_OUTPUTS TENSOR("SUM", "TYPE_FP32", "[4]") "," \
    TENSOR("DIFF", "TYPE_FP32", "[4]")
#define ADD CONFIG("8", ADD_INPUTS, ADD_OUTPUTS, \
    ",\"parameters\":{" ONE_THREAD "}")

#define START_CONTROL "{\"name\":\"START\",\"control\":[{\"kind\":" \
    "\"CONTROL_SEQUENCE_START\",\"fp32_false_true\":[0,1]}]}"
#define STATE(input, output, type, dims) \
    "{\"input_name\":\"" input "\",\"output_name\":\"" output "\"," \
    "\"data_type\":\"" type "\",\"dims\":" dims "}"
#define SEQUENCES(controls, states) ",\"sequence_batching\":{" \
    "\"control_input\":[" controls "],\"state\":[" states "]}"
#define RUNNING_INPUTS TENSOR("X", "TYPE_FP32", "[2]") "," \
    TENSOR("I", "TYPE_INT64", "[1]")
#define RUNNING_OUTPUTS TENSOR("Y", "TYPE_FP32", "[2]") "," \
    TENSOR("Z", "TYPE_FP32", "[1]")
#define RUNNING_STATE STATE("S", "SUM", "TYPE_FP32", "[2]")
#define RUNNING CONFIG("4", RUNNING_INPUTS, RUNNING_OUTPUTS, \
    SEQUENCES(START_CONTROL, RUNNING_STATE))
#define HISTORY CONFIG("4", TENSOR("X", "TYPE_STRING", "[1]"), \
    TENSOR("HH", "TYPE_STRING", "[-1]"), \
    SEQUENCES("", STATE("H", "HH", "TYPE_STRING", "[-1]")))

static fake_backend_t backend;

static TRITONSERVER_Error *
try_load(fake_model_t *m, const char *name, const char *config, bool complete,
    TRITONSERVER_InstanceGroupKind kind)
{
    char folder[512];

    snprintf(folder, sizeof(folder), "%s/%s", MODELS, name);
    return fake_model_load(m, &backend, folder, config, complete, kind);
}

static fake_model_t *
load(fake_model_t *m, const char *name, const char *config, bool complete)
{
    TRITONSERVER_Error *err = try_load(m, name, config, complete, CPU);

    if (err != NULL) {
        fail_msg("%s", TRITONSERVER_ErrorMessage(err));
    }
    return m;
}

static void
reject(const char *name, const char *config, bool complete,
    TRITONSERVER_InstanceGroupKind kind, const char *words)
{
    fake_model_t m;

    TRITONSERVER_Error *err = try_load(&m, name, config, complete, kind);
    if (err == NULL) {
        fail_msg("model %s loads, expected \"%s\"", name, words);
    }
    if (strstr(TRITONSERVER_ErrorMessage(err), words) == NULL) {
        fail_msg("\"%s\" lacks \"%s\"", TRITONSERVER_ErrorMessage(err),
            words);
    }
    TRITONSERVER_ErrorDelete(err);
}

static void
has(const fake_model_t *m, const char *words)
{
    if (strstr(m->config, words) == NULL) {
        fail_msg("%s lacks %s", m->config, words);
    }
}

static void
lacks(const fake_model_t *m, const char *words)
{
    if (strstr(m->config, words) != NULL) {
        fail_msg("%s has %s", m->config, words);
    }
}

static fake_request_t *
add_request(fake_model_t *m, int rows, float first)
{
    int64_t shape[] = { rows, 4 };
    float a[64];
    float b[64];

    for (int i = 0; i < rows * 4; i++) {
        a[i] = first + (float) i;
        b[i] = 100;
    }

    fake_request_t *r = fake_request_new(m);
    fake_request_input(r, "A", TRITONSERVER_TYPE_FP32, shape, 2, a,
        (uint64_t) rows * 16);
    fake_request_input(r, "B", TRITONSERVER_TYPE_FP32, shape, 2, b,
        (uint64_t) rows * 16);
    fake_request_want(r, "SUM");
    return r;
}

static void
check_sum(const fake_request_t *r, int rows, float first)
{
    const fake_tensor_t *o = fake_request_output(r, "SUM");
    const float *f = o->chunks[0];

    assert_int_equal(o->dims_count, 2);
    assert_int_equal(o->shape[0], rows);
    assert_int_equal(o->shape[1], 4);
    assert_int_equal(o->chunk_lens[0], rows * 16);
    for (int i = 0; i < rows * 4; i++) {
        assert_true(f[i] == first + (float) i + 100);
    }
}

/* An instance that has been made is ready, also while it runs. */
static void
onnx_instances_are_ready(void **state)
{
    TRITONSERVER_Error *(*ready)(TRITONBACKEND_ModelInstance *);
    fake_model_t m;

    (void) state;
    *(void **) &ready = dlsym(backend.library,
        "TRITONBACKEND_ModelInstanceReady");
    assert_non_null(ready);
    load(&m, "add", ADD, false);
    assert_null(ready((TRITONBACKEND_ModelInstance *) &m));
    fake_model_unload(&m);
}

static void
onnx_runs_one_request(void **state)
{
    fake_model_t m;

    (void) state;
    fake_request_t *r = add_request(load(&m, "add", ADD, false), 2, 1);
    fake_request_want(r, "DIFF");
    fake_execute(&m, &r, 1);
    check_sum(r, 2, 1);
    const float *diff = fake_request_output(r, "DIFF")->chunks[0];
    assert_true(diff[0] == 1 - 100);
    assert_true(r->times[1] < r->times[2]);
    assert_int_equal(m.batches, 1);
    assert_int_equal(m.rows, 2);

    fake_request_free(r);
    fake_model_unload(&m);
}

static void
onnx_joins_requests_and_deals_the_rows(void **state)
{
    const int rows[] = { 1, 3, 2 };
    fake_request_t *r[3];
    fake_model_t m;

    (void) state;
    load(&m, "add", ADD, false);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 3; i++) {
            r[i] = add_request(&m, rows[i], (float) (100 * i + round));
        }
        fake_request_want(r[1], "DIFF");
        fake_execute(&m, r, 3);
        for (int i = 0; i < 3; i++) {
            check_sum(r[i], rows[i], (float) (100 * i + round));
            assert_int_equal(r[i]->output_count, i == 1 ? 2 : 1);
            fake_request_free(r[i]);
        }
    }
    assert_int_equal(m.batches, 3);
    assert_int_equal(m.rows, 18);
    fake_model_unload(&m);
}

/* A client that gives up while the batch before runs. */
static void
onnx_runs_nothing_for_a_client_that_has_left(void **state)
{
    fake_request_t *r[3];
    fake_model_t m;

    (void) state;
    load(&m, "history", HISTORY, false);
    for (int i = 0; i < 3; i++) {
        r[i] = fake_request_new(&m);
        r[i]->has_states = true;
        const int64_t shape[] = { 1, 1 + (i > 0) };
        const int64_t one[] = { 1, 1 };
        fake_request_input(r[i], "X", TRITONSERVER_TYPE_BYTES, one, 2,
            "\0\0\0\0", 4);
        fake_request_input(r[i], "H", TRITONSERVER_TYPE_BYTES, shape, 2,
            "\0\0\0\0\0\0\0\0", (uint64_t) (4 + 4 * (i > 0)));
    }
    r[1]->cancelled_after = 1;
    fake_execute(&m, r, 3);
    assert_false(r[0]->failed);
    assert_int_equal(r[1]->error_code, TRITONSERVER_ERROR_CANCELLED);
    assert_null(fake_request_state(r[1], "HH"));
    assert_false(r[2]->failed);
    assert_int_equal(m.batches, 2);
    assert_int_equal(m.rows, 2);
    for (int i = 0; i < 3; i++) {
        fake_request_free(r[i]);
    }
    fake_model_unload(&m);
}

/* Fields of the configuration that nothing here acts on are one line of the
 * log; those that count are none. */
static void
onnx_names_fields_without_effect(void **state)
{
    fake_model_t m;

    (void) state;
    unsigned before = fake_logged(TRITONSERVER_LOG_WARN);
    load(&m, "add", CONFIG("8", ADD_INPUTS, ADD_OUTPUTS,
        ",\"optimization\":{\"graph\":{\"level\":1},\"priority\":"
        "\"PRIORITY_DEFAULT\",\"cuda\":{\"graphs\":false,\"graph_spec\":[]},"
        "\"input_pinned_memory\":{\"enable\":true},"
        "\"gather_kernel_buffer_threshold\":0}"), false);
    fake_model_unload(&m);
    assert_int_equal(fake_logged(TRITONSERVER_LOG_WARN), before);

    load(&m, "add", CONFIG("8", "{\"name\":\"A\",\"data_type\":"
        "\"TYPE_FP32\",\"dims\":[4],\"format\":\"FORMAT_NCHW\"},"
        TENSOR("B", "TYPE_FP32", "[4]"), ADD_OUTPUTS,
        ",\"optimization\":{\"priority\":\"PRIORITY_MAX\",\"cuda\":{"
        "\"graphs\":true},\"eager_batching\":true,\"output_pinned_memory\":"
        "{\"enable\":false}},\"instance_group\":[{\"kind\":\"KIND_CPU\"},"
        "{\"secondary_devices\":[{\"device_id\":\"0\"}]}]"), false);
    fake_model_unload(&m);
    assert_int_equal(fake_logged(TRITONSERVER_LOG_WARN), before + 1);
    const char *said = fake_last_log();
    assert_string_equal(said, "model \"fake\": its backend does not act on "
        "optimization.priority, optimization.cuda, "
        "optimization.eager_batching, instance_group.secondary_devices, "
        "optimization.output_pinned_memory of the configuration");
}

static fake_request_t *
running_request(fake_model_t *m, float x, float s, float start, int64_t index)
{
    const int64_t pair[] = { 1, 2 }, one[] = { 1, 1 };
    const float xs[2] = { x, -x }, ss[2] = { s, -s };

    fake_request_t *r = fake_request_new(m);
    r->has_states = true;
    fake_request_input(r, "X", TRITONSERVER_TYPE_FP32, pair, 2, xs, 8);
    fake_request_input(r, "S", TRITONSERVER_TYPE_FP32, pair, 2, ss, 8);
    fake_request_input(r, "START", TRITONSERVER_TYPE_FP32, one, 2, &start, 4);
    fake_request_input(r, "I", TRITONSERVER_TYPE_INT64, one, 2, &index, 8);
    return r;
}

static void
check_running(const fake_tensor_t *t, float sum)
{
    assert_non_null(t);
    assert_int_equal(t->datatype, TRITONSERVER_TYPE_FP32);
    assert_int_equal(t->dims_count, 2);
    assert_int_equal(t->shape[0], 1);
    assert_int_equal(t->shape[1], 2);
    assert_int_equal(t->chunk_lens[0], 8);
    assert_true(((const float *) t->chunks[0])[0] == sum);
    assert_true(((const float *) t->chunks[0])[1] == -sum);
}

static void
onnx_keeps_states_of_sequences(void **state)
{
    fake_request_t *r[3];
    fake_model_t m;

    (void) state;
    load(&m, "running", RUNNING, false);
    for (int count = 1; count <= 3; count += 2) {
        for (int i = 0; i < count; i++) {
            r[i] = running_request(&m, 1 + (float) i, 10, i == 1 ? 1 : 0, 1);
        }
        fake_request_want(r[0], "Y");
        fake_execute(&m, r, (uint32_t) count);
        check_running(fake_request_output(r[0], "Y"), 11);
        for (int i = 0; i < count; i++) {
            check_running(fake_request_state(r[i], "SUM"),
                i == 1 ? 2 : 11 + (float) i);
            assert_int_equal(r[i]->output_count, i == 0 ? 1 : 0);
            fake_request_free(r[i]);
        }
        assert_int_equal(m.batches, count == 1 ? 1 : 2);
    }

    /* a run that fails leaves no state, nor does a request whose output
     * cannot be made */
    r[0] = running_request(&m, 1, 1, 0, 99);
    fake_request_want(r[0], "Z");
    fake_execute(&m, r, 1);
    assert_true(r[0]->failed);
    assert_null(fake_request_state(r[0], "SUM"));
    fake_request_free(r[0]);

    r[0] = running_request(&m, 1, 1, 0, 1);
    r[0]->has_states = false;
    r[0]->correlation_id = 7;
    fake_execute(&m, r, 1);
    assert_non_null(strstr(r[0]->error, "unable to add state"));
    fake_request_free(r[0]);

    /* a sample of the warm-up is in no sequence */
    r[0] = running_request(&m, 1, 1, 0, 1);
    r[0]->has_states = false;
    fake_execute(&m, r, 1);
    assert_false(r[0]->failed);
    fake_request_free(r[0]);

    r[0] = running_request(&m, 1, 1, 0, 1);
    r[0]->inputs[2].shape[0] = 2;
    fake_execute(&m, r, 1);
    assert_non_null(strstr(r[0]->error, "\"START\" has 2 elements"));
    fake_request_free(r[0]);
    fake_model_unload(&m);
}

/* States of different sizes do not join; strings are states, too. */
static void
onnx_keeps_states_that_grow(void **state)
{
    const int64_t one[] = { 1, 1 }, two[] = { 1, 2 };
    fake_request_t *r[2];
    fake_model_t m;

    (void) state;
    load(&m, "history", HISTORY, false);
    for (int i = 0; i < 2; i++) {
        r[i] = fake_request_new(&m);
        r[i]->has_states = true;
        fake_request_input(r[i], "X", TRITONSERVER_TYPE_BYTES, one, 2,
            "\2\0\0\0hi", 6);
        fake_request_input(r[i], "H", TRITONSERVER_TYPE_BYTES,
            i == 0 ? one : two, 2, "\1\0\0\0a\0\0\0\0", i == 0 ? 5 : 9);
    }
    fake_request_want(r[1], "HH");
    fake_execute(&m, r, 2);

    const fake_tensor_t *t = fake_request_state(r[0], "HH");
    assert_int_equal(t->shape[1], 2);
    assert_int_equal(t->chunk_lens[0], 11);
    assert_memory_equal(t->chunks[0], "\1\0\0\0a\2\0\0\0hi", 11);
    t = fake_request_state(r[1], "HH");
    assert_int_equal(t->shape[1], 3);
    assert_int_equal(t->chunk_lens[0], 15);
    assert_memory_equal(t->chunks[0], "\1\0\0\0a\0\0\0\0\2\0\0\0hi", 15);
    assert_memory_equal(fake_request_output(r[1], "HH")->chunks[0],
        t->chunks[0], 15);
    assert_int_equal(m.batches, 2);
    fake_request_free(r[0]);
    fake_request_free(r[1]);
    fake_model_unload(&m);
}

static void
onnx_spoils_only_the_bad_requests_of_a_batch(void **state)
{
    const int64_t flat[] = { 4 };
    const float four[4] = { 0 };
    fake_request_t *r[6];
    fake_model_t m;

    (void) state;
    load(&m, "add", ADD, false);
    for (int i = 0; i < 6; i++) {
        r[i] = add_request(&m, 1, (float) i);
    }
    r[0]->cancelled = true;
    strcpy(r[2]->inputs[1].name, "C");
    r[3]->inputs[1].datatype = TRITONSERVER_TYPE_INT32;
    r[4]->inputs[0].shape[1] = 5;
    fake_execute(&m, r, 6);

    assert_int_equal(r[0]->error_code, TRITONSERVER_ERROR_CANCELLED);
    check_sum(r[1], 1, 1);
    assert_non_null(strstr(r[2]->error, "unknown request input"));
    assert_non_null(strstr(r[3]->error, "input \"B\" is INT32, the model "
        "takes FP32"));
    assert_non_null(strstr(r[4]->error, "shape [1,5], the model takes "
        "[-1,4]"));
    check_sum(r[5], 1, 5);
    for (int i = 0; i < 6; i++) {
        fake_request_free(r[i]);
    }

    r[0] = fake_request_new(&m);
    fake_request_input(r[0], "A", TRITONSERVER_TYPE_FP32, flat, 1, four, 16);
    fake_execute(&m, r, 1);
    assert_true(r[0]->failed);
    fake_request_free(r[0]);

    r[0] = add_request(&m, 2, 1);
    r[0]->inputs[1].chunk_lens[0] = 28;             /* four bytes short      */
    fake_execute(&m, r, 1);
    assert_non_null(strstr(r[0]->error, "28 bytes"));
    fake_request_free(r[0]);

    r[0] = add_request(&m, 2, 1);
    r[0]->inputs[1].shape[0] = 1;
    r[0]->inputs[1].chunk_lens[0] = 16;
    fake_execute(&m, r, 1);
    assert_non_null(strstr(r[0]->error, "batch of 1 rows"));
    fake_request_free(r[0]);
    fake_model_unload(&m);
}

static void
onnx_takes_several_buffers_at_odd_places(void **state)
{
    const int64_t shape[] = { 1, 4 };
    const float a[] = { 1, 2, 3, 4 };
    fake_model_t m;

    (void) state;
    fake_request_t *r = fake_request_new(load(&m, "add", ADD, false));
    fake_tensor_t *t = fake_request_input(r, "A", TRITONSERVER_TYPE_FP32,
        shape, 2, a, 7);
    fake_tensor_append(t, (const char *) a + 7, 9);

    /* one buffer that does not begin where a float may */
    char *odd = malloc(17);
    memcpy(odd + 1, a, 16);
    t = fake_request_input(r, "B", TRITONSERVER_TYPE_FP32, shape, 2, NULL, 0);
    t->chunk_count = 1;
    t->chunks[0] = odd + 1;
    t->chunk_lens[0] = 16;

    fake_request_want(r, "SUM");
    fake_execute(&m, &r, 1);
    const float *sum = fake_request_output(r, "SUM")->chunks[0];
    assert_true(sum[0] == 2 && sum[3] == 8);

    t->chunk_count = 0;
    free(odd);
    fake_request_free(r);
    fake_model_unload(&m);
}

static void
onnx_runs_without_wanted_outputs(void **state)
{
    fake_model_t m;

    (void) state;
    fake_request_t *r = add_request(load(&m, "add", ADD, false), 1, 1);
    r->wanted_count = 0;
    fake_execute(&m, &r, 1);
    assert_false(r->failed);
    assert_int_equal(r->output_count, 0);
    fake_request_free(r);
    fake_model_unload(&m);
}

static void
onnx_carries_every_datatype(void **state)
{
    static const struct {
        const char            *name;
        TRITONSERVER_DataType  type;
        uint32_t               size;
    } types[] = {
        { "BOOL", TRITONSERVER_TYPE_BOOL, 1 },
        { "UINT8", TRITONSERVER_TYPE_UINT8, 1 },
        { "UINT16", TRITONSERVER_TYPE_UINT16, 2 },
        { "UINT32", TRITONSERVER_TYPE_UINT32, 4 },
        { "UINT64", TRITONSERVER_TYPE_UINT64, 8 },
        { "INT8", TRITONSERVER_TYPE_INT8, 1 },
        { "INT16", TRITONSERVER_TYPE_INT16, 2 },
        { "INT32", TRITONSERVER_TYPE_INT32, 4 },
        { "INT64", TRITONSERVER_TYPE_INT64, 8 },
        { "FP16", TRITONSERVER_TYPE_FP16, 2 },
        { "FP32", TRITONSERVER_TYPE_FP32, 4 },
        { "FP64", TRITONSERVER_TYPE_FP64, 8 },
        { "BF16", TRITONSERVER_TYPE_BF16, 2 }
    };
    const int64_t shape[] = { 1, 3 };
    const char text[] = "\0\0\0\0\3\0\0\0a\0c\1\0\0\0z";
    unsigned char bytes[24];
    char name[16];
    fake_request_t *r[2];
    fake_model_t m;

    (void) state;
    load(&m, "types", "{\"name\":\"fake\"}", true);
    has(&m, "\"name\":\"IN_BF16\",\"data_type\":\"TYPE_BF16\",\"dims\":[3]");
    has(&m, "\"name\":\"OUT_BYTES\",\"data_type\":\"TYPE_STRING\"");

    for (int i = 0; i < 24; i++) {
        bytes[i] = (unsigned char) (i * 37 + 5);
    }
    for (int k = 0; k < 2; k++) {
        r[k] = fake_request_new(&m);
        for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
            snprintf(name, sizeof(name), "IN_%s", types[i].name);
            fake_request_input(r[k], name, types[i].type, shape, 2,
                i == 0 ? (const void *) "\1\0\1" : bytes, types[i].size * 3);
            snprintf(name, sizeof(name), "OUT_%s", types[i].name);
            fake_request_want(r[k], name);
        }
        fake_request_input(r[k], "IN_BYTES", TRITONSERVER_TYPE_BYTES, shape,
            2, text, sizeof(text) - 1);
        fake_request_want(r[k], "OUT_BYTES");
    }

    /* one by itself, then two together */
    for (uint32_t n = 1; n <= 2; n++) {
        fake_execute(&m, r, n);
        for (uint32_t k = 0; k < n; k++) {
            for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
                snprintf(name, sizeof(name), "OUT_%s", types[i].name);
                const fake_tensor_t *o = fake_request_output(r[k], name);
                assert_int_equal(o->datatype, types[i].type);
                assert_int_equal(o->chunk_lens[0], types[i].size * 3);
                assert_memory_equal(o->chunks[0], i == 0
                    ? (const void *) "\1\0\1" : bytes, types[i].size * 3);
            }
            const fake_tensor_t *o = fake_request_output(r[k], "OUT_BYTES");
            assert_int_equal(o->chunk_lens[0], sizeof(text) - 1);
            assert_memory_equal(o->chunks[0], text, sizeof(text) - 1);
        }
        if (n == 1) {
            for (uint32_t i = 0; i < r[0]->output_count; i++) {
                free(r[0]->outputs[i].chunks[0]);
            }
            r[0]->output_count = 0;
            r[0]->final = r[0]->released = false;
            r[0]->reported = 0;
        }
    }

    fake_request_free(r[0]);
    fake_request_free(r[1]);
    fake_model_unload(&m);
}

static void
onnx_rejects_strings_that_do_not_add_up(void **state)
{
    static const struct {
        const char *data;
        uint64_t    len;
        const char *words;
    } bad[] = {
        { "\1\0\0\0a", 5, "too few" },
        { "\1\0\0\0a\2\0\0\0b", 10, "inside element 1" },
        { "\4\0\0\0a\0\0\0", 8, "inside element 1 of 2" },
        { "\377\377\377\377\0\0\0\0", 8, "inside element 0" },
        { "\1\0\0\0a\1\0\0\0bc", 11, "1 bytes behind" }
    };
    const int64_t shape[] = { 1, 2 };
    const int64_t huge[] = { 4611686018427387904, 2 };
    fake_model_t m;

    (void) state;
    load(&m, "strings", "{\"name\":\"fake\"}", true);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        fake_request_t *r = fake_request_new(&m);
        fake_request_input(r, "S", TRITONSERVER_TYPE_BYTES, shape, 2,
            bad[i].data, bad[i].len);
        fake_request_want(r, "T");
        fake_execute(&m, &r, 1);
        if (!r->failed || strstr(r->error, bad[i].words) == NULL) {
            fail_msg("%zu: \"%s\"", i, r->error);
        }
        assert_int_equal(r->error_code, TRITONSERVER_ERROR_INVALID_ARG);
        fake_request_free(r);
    }

    fake_request_t *r = fake_request_new(&m);
    fake_request_input(r, "S", TRITONSERVER_TYPE_BYTES, huge, 2, "1234", 4);
    fake_request_want(r, "T");
    fake_execute(&m, &r, 1);
    assert_true(r->failed);
    fake_request_free(r);
    fake_model_unload(&m);
}

/* Shapes that the core would not let through: modulo 2^64 the first have 0, 4
   and 2 elements, the last 0 bytes. */
static void
onnx_rejects_shapes_that_overflow(void **state)
{
    static const struct {
        int64_t     dims[2];
        uint64_t    len_bytes;
        const char *words;
    } bad[] = {
        { { INT64_C(1) << 62, 4 }, 0, "has shape [4611686018427387904,4]" },
        { { (INT64_C(1) << 62) + 1, 4 }, 16,
          "has shape [4611686018427387905,4]" },
        { { INT64_C(1) << 60, 4 }, 0,
          "needs 4611686018427387904 elements of 4" }
    };
    static const char data[16];
    fake_model_t m;

    (void) state;
    load(&m, "add", "{\"name\":\"fake\"}", true);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        fake_request_t *r = fake_request_new(&m);
        fake_request_input(r, "A", TRITONSERVER_TYPE_FP32, bad[i].dims, 2,
            data, bad[i].len_bytes);
        fake_request_input(r, "B", TRITONSERVER_TYPE_FP32, bad[i].dims, 2,
            data, bad[i].len_bytes);
        fake_request_want(r, "SUM");
        fake_execute(&m, &r, 1);
        if (!r->failed || strstr(r->error, bad[i].words) == NULL) {
            fail_msg("%zu: \"%s\"", i, r->error);
        }
        assert_int_equal(r->error_code, TRITONSERVER_ERROR_INVALID_ARG);
        fake_request_free(r);
    }
    fake_model_unload(&m);
}

static void
onnx_answers_shapes_that_depend_on_the_data(void **state)
{
    const int64_t shape[] = { 5 };
    const float x[] = { 0, 3, 0, 0, 9 };
    const float none[5] = { 0 };
    fake_model_t m;

    (void) state;
    load(&m, "nonzero", "{\"name\":\"fake\"}", true);
    has(&m, "\"dims\":[1,-1]");
    lacks(&m, "dynamic_batching");

    fake_request_t *r = fake_request_new(&m);
    fake_request_input(r, "X", TRITONSERVER_TYPE_FP32, shape, 1, x, 20);
    fake_request_want(r, "WHERE");
    fake_execute(&m, &r, 1);
    const fake_tensor_t *o = fake_request_output(r, "WHERE");
    assert_int_equal(o->shape[1], 2);
    assert_int_equal(((const int64_t *) o->chunks[0])[1], 4);
    fake_request_free(r);

    r = fake_request_new(&m);
    fake_request_input(r, "X", TRITONSERVER_TYPE_FP32, shape, 1, none, 20);
    fake_request_want(r, "WHERE");
    fake_execute(&m, &r, 1);
    assert_int_equal(fake_request_output(r, "WHERE")->chunk_lens[0], 0);
    fake_request_free(r);

    const int64_t empty[] = { 0 };
    r = fake_request_new(&m);
    fake_request_input(r, "X", TRITONSERVER_TYPE_FP32, empty, 1, NULL, 0);
    fake_request_want(r, "WHERE");
    fake_execute(&m, &r, 1);
    assert_int_equal(fake_request_output(r, "WHERE")->shape[1], 0);
    fake_request_free(r);
    fake_model_unload(&m);
}

static void
onnx_serves_a_model_that_lies_about_its_output(void **state)
{
    const int64_t shape[] = { 2, 4 };
    const int64_t two[] = { 2 };
    const int64_t to[2][2] = { { 4, 2 }, { 8, 1 } };
    const float x[] = { 0, 1, 2, 3, 4, 5, 6, 7 };
    fake_model_t m;

    (void) state;
    unsigned warnings = fake_logged(TRITONSERVER_LOG_WARN);
    load(&m, "liar", "{\"name\":\"fake\"}", true);
    for (int i = 0; i < 2; i++) {
        fake_request_t *r = fake_request_new(&m);
        fake_request_input(r, "X", TRITONSERVER_TYPE_FP32, shape, 2, x, 32);
        fake_request_input(r, "S", TRITONSERVER_TYPE_INT64, two, 1, to[i],
            16);
        fake_request_want(r, "Y");
        fake_execute(&m, &r, 1);
        const fake_tensor_t *o = fake_request_output(r, "Y");
        assert_int_equal(o->shape[0], to[i][0]);
        assert_memory_equal(o->chunks[0], x, 32);
        fake_request_free(r);
    }
    /* the runtime's own */
    assert_true(fake_logged(TRITONSERVER_LOG_WARN) > warnings + 1);
    fake_model_unload(&m);
}

static void
onnx_takes_tensors_without_dimensions(void **state)
{
    const int64_t one[] = { 1 };
    const int64_t rows[] = { 3 };
    const float x[] = { 1, 2, 3 };
    fake_model_t m;

    (void) state;
    load(&m, "scalar", "{\"name\":\"fake\"}", true);
    has(&m, "\"name\":\"X\",\"data_type\":\"TYPE_FP32\",\"dims\":[1]}");
    fake_request_t *r = fake_request_new(&m);
    fake_request_input(r, "X", TRITONSERVER_TYPE_FP32, one, 1, x, 4);
    fake_request_want(r, "Y");
    fake_execute(&m, &r, 1);
    const fake_tensor_t *o = fake_request_output(r, "Y");
    assert_int_equal(o->dims_count, 1);
    assert_int_equal(o->shape[0], 1);
    assert_true(*(const float *) o->chunks[0] == -1);
    fake_request_free(r);
    fake_model_unload(&m);

    load(&m, "word", "{\"name\":\"fake\"}", true);
    r = fake_request_new(&m);
    fake_request_input(r, "X", TRITONSERVER_TYPE_BYTES, one, 1, "\2\0\0\0hi",
        6);
    fake_request_want(r, "Y");
    fake_execute(&m, &r, 1);
    o = fake_request_output(r, "Y");
    assert_int_equal(o->dims_count, 1);
    assert_int_equal(o->shape[0], 1);
    assert_memory_equal(o->chunks[0], "\2\0\0\0hi", 6);
    fake_request_free(r);
    fake_model_unload(&m);

    load(&m, "rows", "{\"name\":\"fake\"}", true);
    has(&m, "\"dims\":[1],\"reshape\":{\"shape\":[]}");
    r = fake_request_new(&m);
    fake_request_input(r, "X", TRITONSERVER_TYPE_FP32, rows, 1, x, 12);
    fake_request_want(r, "Y");
    fake_execute(&m, &r, 1);
    assert_int_equal(fake_request_output(r, "Y")->shape[0], 3);
    fake_request_free(r);
    fake_model_unload(&m);
}

static void
onnx_notices_a_lost_batch_dimension(void **state)
{
    const int64_t shape[] = { 2, 2 };
    const float x[] = { 1, 2, 0, 0 };
    const char *config = CONFIG("4", TENSOR("X", "TYPE_FP32", "[2]"),
        TENSOR("Y", "TYPE_FP32", "[2]"), "");
    fake_model_t m;

    (void) state;
    fake_request_t *r = fake_request_new(load(&m, "shrink", config, false));
    fake_request_input(r, "X", TRITONSERVER_TYPE_FP32, shape, 2, x, 16);
    fake_request_want(r, "Y");
    fake_execute(&m, &r, 1);
    assert_non_null(strstr(r->error, "first dimension is 1, the batch has 2"));
    fake_request_free(r);
    fake_model_unload(&m);

    reject("collapse", CONFIG("4", TENSOR("X", "TYPE_FP32", "[2]"),
        TENSOR("Y", "TYPE_FP32", "[2]"), ""), false, CPU, "for the model to "
        "support batching the shape should have");
}

static void
onnx_leaves_an_input_with_a_default_out(void **state)
{
    const char *config = CONFIG("0", TENSOR("X", "TYPE_FP32", "[-1,2]")
        ",{\"name\":\"BIAS\",\"data_type\":\"TYPE_FP32\",\"dims\":[2],"
        "\"optional\":true}", TENSOR("Y", "TYPE_FP32", "[-1,2]"), "");
    const int64_t shape[] = { 1, 2 };
    const int64_t two[] = { 2 };
    const float x[] = { 1, 2 };
    fake_model_t m;

    (void) state;
    load(&m, "bias", config, false);
    for (int with = 0; with < 2; with++) {
        fake_request_t *r = fake_request_new(&m);
        fake_request_input(r, "X", TRITONSERVER_TYPE_FP32, shape, 2, x, 8);
        if (with) {
            fake_request_input(r, "BIAS", TRITONSERVER_TYPE_FP32, two, 1, x,
                8);
        }
        fake_request_want(r, "Y");
        fake_execute(&m, &r, 1);
        const float *y = fake_request_output(r, "Y")->chunks[0];
        assert_true(y[1] == (with ? 4 : 22));
        fake_request_free(r);
    }
    fake_model_unload(&m);

    reject("add", CONFIG("8", TENSOR("A", "TYPE_FP32", "[4]")
        ",{\"name\":\"B\",\"data_type\":\"TYPE_FP32\",\"dims\":[4],"
        "\"optional\":true}", ADD_OUTPUTS, ""), false, CPU, "'optional'");
}

/* A batch has the input for all of its requests or for none. */
static void
onnx_joins_no_request_with_and_one_without_an_input(void **state)
{
    const char *config = CONFIG("8", TENSOR("X", "TYPE_FP32", "[2]")
        ",{\"name\":\"BIAS\",\"data_type\":\"TYPE_FP32\",\"dims\":[2],"
        "\"optional\":true}", TENSOR("Y", "TYPE_FP32", "[2]"), "");
    const int64_t shape[] = { 1, 2 };
    const float x[] = { 1, 2 };
    const float own[] = { 100, 200 };

    (void) state;
    for (unsigned with = 0; with < 8; with++) {
        fake_request_t *r[3];
        fake_model_t m;

        load(&m, "bias_rows", config, false);
        for (unsigned i = 0; i < 3; i++) {
            r[i] = fake_request_new(&m);
            fake_request_input(r[i], "X", TRITONSERVER_TYPE_FP32, shape, 2, x,
                8);
            if (with >> i & 1) {
                fake_request_input(r[i], "BIAS", TRITONSERVER_TYPE_FP32,
                    shape, 2, own, 8);
            }
            fake_request_want(r[i], "Y");
        }
        fake_execute(&m, r, 3);
        for (unsigned i = 0; i < 3; i++) {
            const float *y = fake_request_output(r[i], "Y")->chunks[0];
            assert_true(y[1] == (with >> i & 1 ? 202 : 22));
            fake_request_free(r[i]);
        }
        fake_model_unload(&m);
    }
}

static void
onnx_answers_an_execution_that_fails(void **state)
{
    const int64_t three[] = { 3 };
    const int64_t one[] = { 1 };
    const float x[] = { 1, 2, 3 };
    fake_model_t m;

    (void) state;
    load(&m, "gather", "{\"name\":\"fake\"}", true);
    for (int64_t i = 1; i < 200; i += 98) {
        fake_request_t *r = fake_request_new(&m);
        fake_request_input(r, "X", TRITONSERVER_TYPE_FP32, three, 1, x, 12);
        fake_request_input(r, "I", TRITONSERVER_TYPE_INT64, one, 1, &i, 8);
        fake_request_want(r, "Y");
        fake_execute(&m, &r, 1);
        if (i == 1) {
            assert_true(*(const float *) fake_request_output(r, "Y")
                ->chunks[0] == 2);
        } else {
            assert_non_null(strstr(r->error, "execution failed"));
        }
        fake_request_free(r);
    }
    fake_model_unload(&m);
}

static void
onnx_completes_a_configuration(void **state)
{
    fake_model_t m;

    (void) state;
    load(&m, "add", "", true);
    has(&m, "\"max_batch_size\":6");
    has(&m, "\"dynamic_batching\":{}");
    has(&m, "{\"name\":\"A\",\"data_type\":\"TYPE_FP32\",\"dims\":[4]}");
    has(&m, "{\"name\":\"SUM\",\"data_type\":\"TYPE_FP32\",\"dims\":[4]}");
    fake_request_t *r = add_request(&m, 2, 5);
    fake_execute(&m, &r, 1);
    check_sum(r, 2, 5);
    fake_request_free(r);
    fake_model_unload(&m);

    /* what is configured stays */
    load(&m, "add", CONFIG("1", ADD_INPUTS, "", ""), true);
    has(&m, "\"max_batch_size\":1");
    has(&m, "\"SUM\"");
    lacks(&m, "dynamic_batching");
    fake_model_unload(&m);

    load(&m, "add", CONFIG("3", ADD_INPUTS, TENSOR("DIFF", "TYPE_FP32",
        "[-1]"), ""), true);
    lacks(&m, "\"SUM\"");
    lacks(&m, "dynamic_batching");
    fake_model_unload(&m);

    load(&m, "running", "{\"name\":\"fake\"" SEQUENCES(START_CONTROL,
        RUNNING_STATE) "}", true);
    has(&m, "\"name\":\"X\",\"data_type\"");
    has(&m, "\"name\":\"Z\",\"data_type\"");
    lacks(&m, "\"name\":\"START\",\"data_type\"");
    lacks(&m, "\"name\":\"S\",\"data_type\"");
    lacks(&m, "\"name\":\"SUM\",\"data_type\"");
    lacks(&m, "dynamic_batching");
    fake_model_unload(&m);

    /* a tensor that the backend makes itself is no input to complete */
    load(&m, "add", CONFIG("8", TENSOR("A", "TYPE_FP32", "[4]"), "",
        ",\"batch_input\":[{\"kind\":\"BATCH_ITEM_SHAPE\",\"target_name\":"
        "[\"B\"],\"data_type\":\"TYPE_FP32\",\"source_input\":[\"A\"]}]"),
        true);
    lacks(&m, "\"name\":\"B\",\"data_type\"");
    has(&m, "\"SUM\"");
    fake_model_unload(&m);

    reject("scalar", "{\"name\":\"fake\",\"max_batch_size\":2}", true, CPU,
        "autofill failed for model 'fake': model does not support batching");
}

static void
onnx_rejects_configurations_that_do_not_fit(void **state)
{
    (void) state;
    reject("add", "{\"name\":\"fake\"}", false, CPU, "configuration "
        "expects 0 inputs, model provides 2: none is for 'A'");
    reject("add", CONFIG("8", ADD_INPUTS "," TENSOR("C", "TYPE_FP32", "[4]"),
        ADD_OUTPUTS, ""), false, CPU, "configuration expects 3 inputs, model "
        "provides 2: the model has no 'C'");
    reject("add", CONFIG("8", ADD_INPUTS, TENSOR("sum", "TYPE_FP32", "[4]"),
        ""), false, CPU, "unexpected inference output 'sum', allowed "
        "outputs are: SUM");
    reject("add", CONFIG("8", TENSOR("A", "TYPE_FP64", "[4]"), ADD_OUTPUTS,
        ""), false, CPU, "configuration expects datatype TYPE_FP64 for input "
        "'A', model provides TYPE_FP32");
    reject("add", CONFIG("8", TENSOR("A", "TYPE_FP32", "[5]"), ADD_OUTPUTS,
        ""), false, CPU, "the model expects 2 dimensions (shape [-1,4]) but "
        "the model configuration specifies 2 dimensions (an initial batch");
    reject("add", CONFIG("0", TENSOR("A", "TYPE_FP32", "[4]"), ADD_OUTPUTS,
        ""), false, CPU, "the model expects 2 dimensions (shape [-1,4]) but "
        "the model configuration specifies 1 dimensions (shape [4])");
    reject("scalar", CONFIG("1", TENSOR("X", "TYPE_FP32", "[1]"),
        TENSOR("Y", "TYPE_FP32", "[1]"), ""), false, CPU, "for the model to "
        "support batching");
    reject("add", CONFIG("8", ADD_INPUTS, ADD_OUTPUTS, ",\"batch_input\":"
        "[{\"kind\":\"BATCH_ELEMENT_COUNT\"}]"), false, CPU, "batch_input");
    reject("running", CONFIG("4", RUNNING_INPUTS, RUNNING_OUTPUTS, SEQUENCES(
        START_CONTROL, STATE("T", "SUM", "TYPE_FP32", "[2]"))), false, CPU,
        "state input \"T\" of the configuration is not in the model");
    reject("running", CONFIG("4", RUNNING_INPUTS, RUNNING_OUTPUTS, SEQUENCES(
        START_CONTROL, STATE("S", "T", "TYPE_FP32", "[2]"))), false, CPU,
        "state output \"T\" of the configuration is not in the model");
    reject("running", CONFIG("4", RUNNING_INPUTS, RUNNING_OUTPUTS, SEQUENCES(
        START_CONTROL, STATE("S", "SUM", "TYPE_FP64", "[2]"))), false, CPU,
        "TYPE_FP64 for state input 'S', model provides TYPE_FP32");
    reject("running", CONFIG("4", RUNNING_INPUTS, RUNNING_OUTPUTS, SEQUENCES(
        START_CONTROL, STATE("S", "Z", "TYPE_FP32", "[2]"))), false, CPU,
        "tensor 'Z': the model expects ");
    reject("running", CONFIG("4", RUNNING_INPUTS, RUNNING_OUTPUTS, SEQUENCES(
        "", RUNNING_STATE)), false, CPU, "configuration expects 3 inputs, model "
        "provides 4: none is for 'START'");
    reject("running", CONFIG("4", RUNNING_INPUTS, RUNNING_OUTPUTS, SEQUENCES(
        "{\"name\":\"START\",\"control\":[{\"int32_false_true\":[0,1]}]}",
        RUNNING_STATE)), false, CPU,
        "\"START\" is configured as TYPE_INT32, the model has TYPE_FP32");
    reject("running", CONFIG("4", TENSOR("X", "TYPE_FP32", "[2]"),
        RUNNING_OUTPUTS, SEQUENCES(START_CONTROL ",{\"name\":\"S\","
        "\"control\":[{\"fp32_false_true\":[0,1]}]}", "")), false, CPU,
        "\"S\" has one element for each row of a batch, the model has shape "
        "[-1,2]");
    reject("add", CONFIG("8", "{\"name\":\"A\",\"data_type\":\"TYPE_FP32\","
        "\"dims\":[4],\"allow_ragged_batch\":true}", ADD_OUTPUTS, ""), false,
        CPU, "allow_ragged_batch");
}

static void
onnx_finds_model_files(void **state)
{
    fake_model_t m;

    (void) state;
    load(&m, "folder", "{\"name\":\"fake\"}", true);
    fake_model_unload(&m);
    load(&m, "add", "{\"name\":\"fake\",\"default_model_filename\":"
        "\"model.onnx\"}", true);
    fake_model_unload(&m);

    reject("add", "{\"name\":\"fake\",\"default_model_filename\":"
        "\"other.onnx\"}", true, CPU, "/add/1/other.onnx'");
    reject("missing", "{\"name\":\"fake\"}", true, CPU, "/missing/1/model");
    reject("broken", "{\"name\":\"fake\"}", true, CPU, "/broken/1/model");
    reject("sequence", "{\"name\":\"fake\"}", true, CPU, "input \"X\"");
}

static void
onnx_serves_the_tensors_of_a_model_with_other_outputs(void **state)
{
    const int64_t shape[] = { 1 };
    const float x = 7;
    fake_model_t m;

    (void) state;
    fake_request_t *r = fake_request_new(load(&m, "two", CONFIG("0",
        TENSOR("X", "TYPE_FP32", "[1]"), TENSOR("Y", "TYPE_FP32", "[1]"), ""),
        true));
    fake_request_input(r, "X", TRITONSERVER_TYPE_FP32, shape, 1, &x, 4);
    fake_request_want(r, "Y");
    fake_execute(&m, &r, 1);
    assert_true(*(const float *) fake_request_output(r, "Y")->chunks[0] == -7);
    fake_request_free(r);
    fake_model_unload(&m);

    reject("two", "{\"name\":\"fake\"}", true, CPU, "\"LIST\" of the model");
    reject("two", CONFIG("0", TENSOR("X", "TYPE_FP32", "[1]"),
        TENSOR("LIST", "TYPE_FP32", "[1]"), ""), true, CPU,
        "\"LIST\" of the model is not a tensor");
}

static void
onnx_takes_parameters(void **state)
{
    const char *good = CONFIG("8", ADD_INPUTS, ADD_OUTPUTS,
        ",\"optimization\":{\"graph\":{\"level\":-1}},\"parameters\":{"
        ONE_THREAD "," PARAMETER("inter_op_thread_count", "1") ","
        PARAMETER("execution_mode", "1") ","
        PARAMETER("enable_mem_arena", "0") ","
        PARAMETER("enable_mem_pattern", "0") ","
        PARAMETER("memory.enable_memory_arena_shrinkage", "") ","
        PARAMETER("session.intra_op.allow_spinning", "0") "}");
    static const struct {
        const char *more;
        const char *words;
    } bad[] = {
        { ",\"parameters\":{" PARAMETER("intra_op_thread_count", "two") "}",
          "intra_op_thread_count" },
        { ",\"parameters\":{" PARAMETER("execution_mode", "2") "}",
          "execution_mode" },
        { ",\"optimization\":{\"graph\":{\"level\":3}}", "graph.level" },
        { ",\"model_operations\":{\"op_library_filename\":[\"/no/such.so\"]}",
          "op_library_filename \"/no/such.so\"" },
        { ",\"optimization\":{\"execution_accelerators\":{"
          "\"cpu_execution_accelerator\":[{\"name\":\"magic\"}]}}",
          "unknown Execution Accelerator 'magic' is requested" },
        { ",\"optimization\":{\"execution_accelerators\":{"
          "\"cpu_execution_accelerator\":[{\"name\":\"openvino\"}]}}",
          "OpenVINO" }
    };
    char config[2048];
    fake_model_t m;

    (void) state;
    fake_request_t *r = add_request(load(&m, "add", good, false), 2, 1);
    fake_execute(&m, &r, 1);
    check_sum(r, 2, 1);
    fake_request_free(r);
    fake_model_unload(&m);

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        snprintf(config, sizeof(config), "{\"name\":\"fake\","
            "\"max_batch_size\":8,\"input\":[%s],\"output\":[%s]%s}",
            ADD_INPUTS, ADD_OUTPUTS, bad[i].more);
        reject("add", config, false, CPU, bad[i].words);
    }
}

/* the library of the tests has no GPU providers: each must say so */
static void
onnx_says_that_a_provider_is_missing(void **state)
{
    (void) state;
    reject("add", ADD, false, GPU, "this ONNX Runtime has no CUDA provider");
    reject("add", ADD, false, GPU, "CPUExecutionProvider: onnx runtime error ");
    reject("add", CONFIG("8", ADD_INPUTS, ADD_OUTPUTS,
        ",\"optimization\":{\"execution_accelerators\":{"
        "\"gpu_execution_accelerator\":[{\"name\":\"tensorrt\",\"parameters\":"
        "{\"precision_mode\":\"FP16\",\"max_workspace_size_bytes\":\"1024\"}}]"
        "}}"), false, GPU, "TensorRT");
    reject("add", CONFIG("8", ADD_INPUTS, ADD_OUTPUTS,
        ",\"optimization\":{\"execution_accelerators\":{"
        "\"gpu_execution_accelerator\":[{\"name\":\"tensorrt\",\"parameters\":"
        "{\"precision_mode\":\"FP8\"}}]}}"), false, GPU, "precision_mode");
    reject("add", CONFIG("8", ADD_INPUTS, ADD_OUTPUTS,
        ",\"optimization\":{\"execution_accelerators\":{"
        "\"gpu_execution_accelerator\":[{\"name\":\"abacus\"}]}}"), false,
        GPU, "known are tensorrt and cuda");
}

/* Zero under a sanitizer, which finds leaks itself. */
static size_t
memory_in_use(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

static void
onnx_gives_back_what_its_models_hold(void **state)
{
    size_t before = 0;
    fake_model_t m;

    (void) state;
    for (int i = 0; i < 60; i++) {
        load(&m, "add", "{\"name\":\"fake\"}", true);
        fake_model_unload(&m);
        if (i == 20) {
            before = memory_in_use();
        }
    }
    assert_in_range(memory_in_use(), 0, before + 40 * 256);
}

static void
onnx_leaves_nothing_behind(void **state)
{
    (void) state;
    assert_true(backend.parallel);
    assert_int_equal(fake_leftovers(), 0);
}

int
main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(onnx_instances_are_ready),
        cmocka_unit_test(onnx_runs_one_request),
        cmocka_unit_test(onnx_joins_requests_and_deals_the_rows),
        cmocka_unit_test(onnx_runs_nothing_for_a_client_that_has_left),
        cmocka_unit_test(onnx_names_fields_without_effect),
        cmocka_unit_test(onnx_keeps_states_of_sequences),
        cmocka_unit_test(onnx_keeps_states_that_grow),
        cmocka_unit_test(onnx_spoils_only_the_bad_requests_of_a_batch),
        cmocka_unit_test(onnx_takes_several_buffers_at_odd_places),
        cmocka_unit_test(onnx_runs_without_wanted_outputs),
        cmocka_unit_test(onnx_carries_every_datatype),
        cmocka_unit_test(onnx_rejects_strings_that_do_not_add_up),
        cmocka_unit_test(onnx_rejects_shapes_that_overflow),
        cmocka_unit_test(onnx_answers_shapes_that_depend_on_the_data),
        cmocka_unit_test(onnx_serves_a_model_that_lies_about_its_output),
        cmocka_unit_test(onnx_takes_tensors_without_dimensions),
        cmocka_unit_test(onnx_notices_a_lost_batch_dimension),
        cmocka_unit_test(onnx_leaves_an_input_with_a_default_out),
        cmocka_unit_test(onnx_joins_no_request_with_and_one_without_an_input),
        cmocka_unit_test(onnx_answers_an_execution_that_fails),
        cmocka_unit_test(onnx_completes_a_configuration),
        cmocka_unit_test(onnx_rejects_configurations_that_do_not_fit),
        cmocka_unit_test(onnx_finds_model_files),
        cmocka_unit_test(
            onnx_serves_the_tensors_of_a_model_with_other_outputs),
        cmocka_unit_test(onnx_takes_parameters),
        cmocka_unit_test(onnx_says_that_a_provider_is_missing),
        cmocka_unit_test(onnx_gives_back_what_its_models_hold),
        cmocka_unit_test(onnx_leaves_nothing_behind)
    };
    static const char *const settings[] = {
        "{\"cmdline\":{\"default-max-batch-size\":\"6\"}}",
        "{\"cmdline\":{\"default-max-batch-size\":\"6\","
        "\"enable-global-threadpool\":\"1\","
        "\"intra_op_thread_count\":\"2\"}}"
    };

    if (argc != 2) {
        fprintf(stderr, "usage: %s libtriton_onnxruntime.so\n", argv[0]);
        return 2;
    }

    TRITONSERVER_Error *err = fake_backend_open(&backend, argv[1],
        "{\"cmdline\":{\"intra_op_thread_count\":\"-1\"}}");
    if (err == NULL) {
        fprintf(stderr, "bad settings were taken\n");
        return 1;
    }
    TRITONSERVER_ErrorDelete(err);

    /* with a thread pool for each session, then with one for all */
    int failed = 0;
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        err = fake_backend_open(&backend, argv[1], settings[i]);
        if (err != NULL) {
            fprintf(stderr, "%s\n", TRITONSERVER_ErrorMessage(err));
            return 1;
        }
        failed += cmocka_run_group_tests(tests, NULL, NULL);
        fake_backend_close(&backend);
    }

    return failed;
}
