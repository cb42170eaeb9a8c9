#include "model/config_text.h"
#include "model/memory_storage.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "core/model/warmup.h"
#include "core/tensor/response.h"

/* A model of the configuration's text, without a backend: execute() is one. */
typedef struct {
    inf_model_t         model;
    inf_instance_t      instance;
    inf_instance_spec_t spec;
    inf_warmup_t       *warmup;
} world_t;

static world_t w;

static const memory_file_t files[] = {
    { "m/warmup/ten", "0123456789" },
    { "m/warmup/eight", "01234567" },
    { "m/warmup/three", "012" },
    { "m/warmup/text", "\1\1\1\1a" },
    { "m/warmup/away", "0123456789" },
    { "m/warmup/locked", NULL },
    { NULL, NULL },
};

/* The calls of the backend, and its behaviour. */
static struct {
    char         text[4096];
    unsigned     executions;
    const char  *fail;          /* text of an error response                 */
    unsigned     fail_at;       /* execution, from 1 on                      */
    bool         silent;        /* release without a response                */
    bool         later;         /* from another thread, after Execute        */
    inf_err_t   *seen;
} backend;

static int
setup(void **state)
{
    (void) state;
    memset(&backend, 0, sizeof(backend));
    memset(&w, 0, sizeof(w));
    return 0;
}

static void
close_world(void)
{
    inf_warmup_free(w.warmup);
    inf_config_tensors_free(w.model.tensors);
    inf_message_free(&w.model.built->base);
    memset(&w, 0, sizeof(w));
}

static inf_err_t *
open_world(const char *config)
{
    memory_storage_t st = memory_storage(files);

    st.outside = "m/warmup/away";
    w.model.name = (char *) "m";
    w.model.version = 1;
    w.model.built = config_parse(config);
    assert_ok(inf_config_tensors_new(w.model.built, &w.model.tensors));
    w.spec.name = (char *) "m_0";
    w.instance.model = &w.model;
    w.instance.spec = &w.spec;
    return inf_warmup_new(&st.base, "m", &w.model, &w.warmup);
}

static void
note_input(const inf_input_t *in)
{
    size_t len = strlen(backend.text);
    char *at = backend.text + len;
    size_t room = sizeof(backend.text) - len;
    int n = snprintf(at, room, " %s:%s[", in->name,
        inf_datatype_name(in->datatype));

    for (uint32_t i = 0; i < in->model_dim_count; i++) {
        n += snprintf(at + n, room - (size_t) n, "%s%lld", i > 0 ? "," : "",
            (long long) in->model_shape[i]);
    }
    snprintf(at + n, room - (size_t) n, "]=%llu",
        (unsigned long long) in->byte_size);
}

static void
answer(inf_request_t *r)
{
    inf_response_t *response;
    inf_factory_t *f = r->factory;

    inf_factory_ref(f);
    if (!backend.silent) {
        assert_ok(inf_response_new(f, &response));
        int64_t shape[1] = { 4 };
        inf_output_t *out = inf_response_add_output(response, "B",
            INF_TYPE_UINT8, shape, 1);
        assert_non_null(out);
        assert_ok(f->sink->alloc(f->userp, out, 4));
        memset(out->base, 1, 4);

        inf_err_t *err = backend.fail != NULL
            && backend.executions == backend.fail_at
            ? inf_err_new(INF_ERR_UNAVAILABLE, "%s", backend.fail) : NULL;
        inf_response_send(response, INF_SEND_FINAL, err);
        inf_err_free(err);
    }
    inf_request_release(r, 1);
    inf_factory_unref(f);
}

static void *
answer_later(void *arg)
{
    answer(arg);
    return NULL;
}

static void
execute(inf_instance_t *instance, inf_request_t **requests, uint32_t count)
{
    assert_ptr_equal(instance, &w.instance);
    backend.executions++;
    snprintf(backend.text + strlen(backend.text),
        sizeof(backend.text) - strlen(backend.text), "(%u", count);

    const inf_request_t *first = requests[0];
    for (uint32_t i = 0; i < first->input_count; i++) {
        note_input(&first->inputs[i]);
    }
    strcat(backend.text, ")");

    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(requests[i]->state, INF_REQUEST_EXECUTING);
        assert_int_equal(requests[i]->output_count, 1);
        assert_true(requests[i]->exec_ns > 0);
        if (!backend.later) {
            answer(requests[i]);
            continue;
        }

        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, answer_later,
            requests[i]), 0);
        pthread_detach(thread);
    }
}

#define MODEL_OF(input, batch) "name: 'm' backend: 'x' max_batch_size: " batch\
    " input { name: 'A' data_type: TYPE_" input " }"                          \
    " output { name: 'B' data_type: TYPE_UINT8 dims: 4 } "
#define MODEL(batch) MODEL_OF("UINT8 dims: [ -1, 2 ]", batch)
#define SAMPLE(more, inputs)                                                  \
    "model_warmup { name: 's' " more inputs " } "
#define INPUT(name, type, data)                                               \
    "inputs { key: '" name "' value { data_type: TYPE_" type " " data " } } "

/* Runs the samples and compares what the backend saw. */
static void
assert_runs(const char *config, const char *seen)
{
    backend.text[0] = '\0';
    backend.executions = 0;
    assert_ok(open_world(config));
    assert_non_null(w.warmup);
    assert_ok(inf_warmup_run(w.warmup, &w.instance, execute, NULL));
    assert_string_equal(backend.text, seen);
    close_world();
}

static void
samples_run_batch_size_requests_count_times(void **state)
{
    (void) state;

    assert_runs(MODEL("0") SAMPLE("batch_size: 1 ", INPUT("A", "UINT8",
        "dims: [ 3, 2 ] zero_data: true")), "(1 A:UINT8[3,2]=6)");
    assert_runs(MODEL("8") SAMPLE("batch_size: 3 count: 2 ", INPUT("A",
        "UINT8", "dims: [ 3, 2 ] random_data: true")),
        "(3 A:UINT8[1,3,2]=6)(3 A:UINT8[1,3,2]=6)");
    assert_runs(MODEL("8") SAMPLE("batch_size: 0 ", INPUT("A", "UINT8",
        "dims: [ -1 ] zero_data: true")) SAMPLE("batch_size: 9 ",
        INPUT("A", "UINT8", "dims: [ 1, 2 ] zero_data: false")),
        "(9 A:UINT8[1,1,2]=2)");
}

static void
inputs_have_the_shape_that_the_backend_expects(void **state)
{
    (void) state;

    assert_runs(MODEL_OF("UINT8 dims: [ 4 ] reshape { shape: [ 2, 2 ] }", "8")
        SAMPLE("batch_size: 1 ", INPUT("A", "UINT8", "dims: 4 zero_data: true")
        ), "(1 A:UINT8[1,2,2]=4)");
}

/* A name that is no input of the configuration is a control. */
static void
other_tensors_are_attached_behind_the_inputs(void **state)
{
    (void) state;

    assert_runs(MODEL("8") SAMPLE("batch_size: 1 ", INPUT("START", "INT32",
        "dims: [ 1 ] zero_data: true") INPUT("A", "UINT8", "dims: [ 1, 2 ]"
        " zero_data: true")), "(1 A:UINT8[1,1,2]=2 START:INT32[1,1]=4)");
    assert_runs(MODEL_OF("UINT8 dims: 1 optional: true", "0")
        SAMPLE("batch_size: 1 ", INPUT("START", "INT32",
        "dims: [ 1 ] zero_data: true")), "(1 START:INT32[1]=4)");
}

static void
data_comes_from_files_zeros_and_chance(void **state)
{
    (void) state;

    assert_runs(MODEL("0") SAMPLE("batch_size: 1 ", INPUT("A", "UINT8",
        "dims: [ 4, 2 ] input_data_file: 'ten'")), "(1 A:UINT8[4,2]=8)");
    assert_runs(MODEL_OF("STRING dims: [ -1, -1 ]", "0")
        SAMPLE("batch_size: 1 ", INPUT("A", "STRING", "dims: [ 2, 3 ]"
        " random_data: true")), "(1 A:BYTES[2,3]=24)");
    assert_runs(MODEL_OF("FP32 dims: [ -1, 3 ]", "0") SAMPLE("batch_size: 1 ",
        INPUT("A", "FP32", "dims: [ 0, 3 ] zero_data: true")),
        "(1 A:FP32[0,3]=0)");
}

static void
answers_may_come_later(void **state)
{
    (void) state;
    backend.later = true;
    assert_runs(MODEL("8") SAMPLE("batch_size: 4 count: 3 ", INPUT("A",
        "UINT8", "dims: [ 1, 2 ] zero_data: true")),
        "(4 A:UINT8[1,1,2]=2)(4 A:UINT8[1,1,2]=2)(4 A:UINT8[1,1,2]=2)");
}

static void
assert_no_data(const char *inputs, inf_err_code_t code, const char *text)
{
    char config[1024];

    snprintf(config, sizeof(config), "%s model_warmup { name: 's' batch_size:"
        " 1 %s }", MODEL("8"), inputs);
    assert_error(open_world(config), code, text);
    assert_null(w.warmup);
    close_world();
}

static void
data_that_cannot_be_made_is_an_error_with_the_samples_name(void **state)
{
    (void) state;
    static const struct {
        const char     *inputs;
        inf_err_code_t  code;
        const char     *text;
    } rows[] = {
        { INPUT("A", "UINT8", "dims: [ -1, 2 ] zero_data: true"),
          INF_ERR_INVALID_ARG, "warmup setting expects all variable-size"
          " dimensions are specified for input 'A' (warmup sample 's')" },
        { INPUT("A", "UINT8", "dims: [ 2, 2 ] input_data_file: 'three'"),
          INF_ERR_INVALID_ARG, "warmup setting expects 4 bytes, but the data"
          " provided from threeonly has 3 bytes" },
        { INPUT("A", "UINT8", "dims: [ 2, 2 ]"), INF_ERR_INVALID_ARG,
          "warmup setting expects input 'A' to have input_data_type set" },
        { INPUT("A", "UINT8", "input_data_file: 'gone'"), INF_ERR_INTERNAL,
          "m/warmup/gone" },
        { INPUT("A", "UINT8", "input_data_file: 'away'"), INF_ERR_INTERNAL,
          "outside" },
        { INPUT("A", "UINT8", "input_data_file: 'locked'"), INF_ERR_INTERNAL,
          "failed to open text file for read" },
        { "inputs { key: 'A' }", INF_ERR_INVALID_ARG,
          "warmup setting expects input 'A' to have input_data_type set" },
        { "inputs { key: 'A' value { zero_data: true } }",
          INF_ERR_INVALID_ARG, "data_type for input 'A'" },
        { INPUT("A", "UINT8", "dims: [ 4294967296, 4294967296, 16 ]"
          " zero_data: true"), INF_ERR_INVALID_ARG, "make it larger than" },
        { INPUT("A", "FP64", "dims: [ 1099511627776 ] zero_data: true"),
          INF_ERR_INVALID_ARG, "make it larger than" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_no_data(rows[i].inputs, rows[i].code, rows[i].text);
    }
    assert_error(open_world(MODEL("8") "model_warmup { name: 's' batch_size:"
        " 65537 }"), INF_ERR_INVALID_ARG, "batch_size 65537");
    close_world();
}

static void
inputs_that_the_model_rejects_are_an_error_before_the_run(void **state)
{
    (void) state;
    static const char *const rows[][3] = {
        { "UINT8 dims: 2", "", "[request id: <id_unknown>] expected 1 inputs but got 0 inputs"
          " for model 'm'. Got input(s) [], but missing required input(s)"
          " ['A']. Please provide all required input(s). (warmup sample 's')"
        },
        { "UINT8 dims: 2", INPUT("A", "INT32", "dims: 2 zero_data: true"),
          "[request id: <id_unknown>] inference input 'A' data-type is 'INT32',"
          " but model 'm' expects 'UINT8'" },
        { "UINT8 dims: [ -1, 2 ]",
          INPUT("A", "UINT8", "dims: [ 1, 3 ] zero_data: true"),
          "[request id: <id_unknown>] unexpected shape for input 'A' for model"
          " 'm'. Expected [-1,-1,2], got [1,1,3]." },
        { "STRING dims: 1",
          INPUT("A", "STRING", "dims: 1 input_data_file: 'text'"),
          "[request id: <id_unknown>] incomplete string data for inference"
          " input 'A'" },
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char config[1024];

        snprintf(config, sizeof(config), MODEL_OF("%s", "8") "model_warmup {"
            " name: 's' batch_size: 1 %s }", rows[i][0], rows[i][1]);
        assert_ok(open_world(config));
        assert_error(inf_warmup_run(w.warmup, &w.instance, execute, NULL),
            INF_ERR_INVALID_ARG, rows[i][2]);
        assert_int_equal(backend.executions, 0);
        close_world();
    }
}

static void
an_error_response_ends_the_warmup(void **state)
{
    (void) state;
    backend.fail = "too cold";
    backend.fail_at = 2;
    assert_ok(open_world(MODEL("8") SAMPLE("batch_size: 2 count: 3 ",
        INPUT("A", "UINT8", "dims: [ 1, 2 ] zero_data: true"))
        "model_warmup { name: 'next' batch_size: 1 }"));

    assert_error(inf_warmup_run(w.warmup, &w.instance, execute, NULL),
        INF_ERR_INVALID_ARG, "failed to run warmup sample 's': too cold");
    assert_int_equal(backend.executions, 2);

    backend.silent = true;
    backend.fail = NULL;
    assert_error(inf_warmup_run(w.warmup, &w.instance, execute, NULL),
        INF_ERR_INVALID_ARG, "without a final response");
    close_world();
}

static void
a_model_without_samples_has_no_warmup(void **state)
{
    (void) state;
    assert_ok(open_world(MODEL("8")));
    assert_null(w.warmup);
    close_world();
}

static _Atomic bool stopping;

static void
execute_until_the_third(inf_instance_t *instance, inf_request_t **requests,
    uint32_t count)
{
    execute(instance, requests, count);
    stopping = backend.executions == 3;
}

/* The last count that a configuration can say. */
static void
a_stop_ends_it_between_two_runs(void **state)
{
    (void) state;
    assert_ok(open_world(MODEL("4") SAMPLE("batch_size: 1 count: 4294967295 ",
        INPUT("A", "UINT8", "dims: [ 1, 2 ] zero_data: true"))));
    assert_error(inf_warmup_run(w.warmup, &w.instance, execute_until_the_third,
        &stopping), INF_ERR_UNAVAILABLE, "warmup sample 's' is given up: the"
        " server is stopping");
    assert_int_equal(backend.executions, 3);
    close_world();
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup(f, setup)
    const struct CMUnitTest tests[] = {
        T(samples_run_batch_size_requests_count_times),
        T(inputs_have_the_shape_that_the_backend_expects),
        T(other_tensors_are_attached_behind_the_inputs),
        T(data_comes_from_files_zeros_and_chance),
        T(answers_may_come_later),
        T(data_that_cannot_be_made_is_an_error_with_the_samples_name),
        T(inputs_that_the_model_rejects_are_an_error_before_the_run),
        T(an_error_response_ends_the_warmup),
        T(a_stop_ends_it_between_two_runs),
        T(a_model_without_samples_has_no_warmup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
