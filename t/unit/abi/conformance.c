/* The conformance backend in this process: the order of a backend's life, its
   failures, and its own checks of every function it may call. */

#include "client_fixture.h"

#define CONFIG                                                               \
    "backend: 'conformance' max_batch_size: 4\n"                             \
    "input [ { name: 'A' data_type: TYPE_FP32 dims: -1 },\n"                 \
    "  { name: 'B' data_type: TYPE_INT32 dims: [ 2, 2 ]\n"                   \
    "    reshape { shape: [ 4 ] } optional: true },\n"                       \
    "  { name: 'S' data_type: TYPE_STRING dims: -1 optional: true } ]\n"     \
    "output [ { name: 'X' data_type: TYPE_FP32 dims: -1 },\n"                \
    "  { name: 'Y' data_type: TYPE_INT32 dims: [ 2, 2 ]\n"                   \
    "    reshape { shape: [ 4 ] } },\n"                                      \
    "  { name: 'Z' data_type: TYPE_STRING dims: -1 } ]\n"
#define GROUP(n) "instance_group { kind: KIND_CPU count: " #n " }\n"
#define FAIL(where)                                                          \
    "parameters { key: 'fail' value { string_value: '" where "' } }\n"

/* With what it leaves behind cleared away, also when it failed. */
#define TEST(name) cmocka_unit_test_teardown(name, clean)

static char events[128];

/* The log of the backend since the last call, freed by the caller. */
static char *
said(void)
{
    FILE *f = fopen(events, "r");
    char *text = calloc(1, 1 << 20);
    assert_non_null(text);
    if (f != NULL) {
        size_t n = fread(text, 1, (1 << 20) - 1, f);
        text[n] = '\0';
        fclose(f);
        assert_int_equal(truncate(events, 0), 0);
    }
    return text;
}

/* The whole of it. */
static void
expect_said(const char *want)
{
    char *got = said();
    assert_string_equal(got, want);
    free(got);
}

static void
expect_no_failure(void)
{
    char *got = said();
    if (strstr(got, "FAILED") != NULL) {
        fail_msg("%s", strstr(got, "FAILED"));
    }
    free(got);
}

static void
start(bool strict, const char *setting)
{
    TRITONSERVER_ServerOptions *o = new_options("t-backends", strict);
    if (setting != NULL) {
        succeeds(TRITONSERVER_ServerOptionsSetBackendConfig(o, "conformance",
            "fail", setting));
    }
    succeeds(TRITONSERVER_ServerNew(&world.server, o));
    succeeds(TRITONSERVER_ServerOptionsDelete(o));
}

static void
stop(void)
{
    succeeds(TRITONSERVER_ServerStop(world.server));
    succeeds(TRITONSERVER_ServerStop(world.server));
    succeeds(TRITONSERVER_ServerDelete(world.server));
    world.server = NULL;
}

static void
set_scenario(shot_t *shot, const char *name)
{
    succeeds(TRITONSERVER_InferenceRequestSetStringParameter(shot->request,
        "scenario", name));
}

static void
expect_reason(const char *text)
{
    TRITONSERVER_Message *m;
    succeeds(TRITONSERVER_ServerModelIndex(world.server, 0, &m));
    expect_json(m, text);
}

static int
setup(void **state)
{
    (void) state;
    make_world();
    make_allocator();
    snprintf(events, sizeof(events), "%s.events", world.repository);
    setenv("INF_CONFORMANCE_EVENTS", events, 1);
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    succeeds(TRITONSERVER_ResponseAllocatorDelete(world.allocator));
    unlink(events);
    end_world();
    return 0;
}

/* After each test, also one that failed. */
static int
clean(void **state)
{
    (void) state;
    char command[128];
    if (world.server != NULL) {
        TRITONSERVER_ErrorDelete(TRITONSERVER_ServerDelete(world.server));
        world.server = NULL;
    }
    unlink(events);
    snprintf(command, sizeof(command), "rm -rf %s/*", world.repository);
    return system(command);
}

static void
entry_points_run_in_the_order_of_a_life(void **state)
{
    (void) state;
    shot_t shot;

    make_model("life", CONFIG GROUP(2));
    start(false, NULL);
    expect_said("Initialize backend\nGetBackendAttribute backend\n"
        "ModelInitialize life\nModelInstanceInitialize life_0_0\n"
        "ModelInstanceInitialize life_0_1\n");
    make_shot(&shot, "life", "A", true);
    succeeds(TRITONSERVER_InferenceRequestDelete(shot.request));
    stop();
    expect_said("ModelInstanceFinalize life_0_0\n"
        "ModelInstanceFinalize life_0_1\nModelFinalize life\n"
        "Finalize backend\n");
}

static void
without_groups_the_instance_is_named_as_the_model(void **state)
{
    (void) state;
    make_model("plain", CONFIG "instance_group { kind: KIND_CPU passive: true"
        " count: 1 name: 'idle' }\ninstance_group { kind: KIND_MODEL }\n");
    start(true, NULL);
    expect_said("Initialize backend\nGetBackendAttribute backend\n"
        "ModelInitialize plain\nModelInstanceInitialize idle_0\n"
        "ModelInstanceInitialize plain_1_0\n");
    stop();
    remove_model("plain");
    expect_no_failure();

    /* the backend prefers KIND_CPU, count 2 */
    make_model("plain", CONFIG);
    start(true, NULL);
    expect_said("Initialize backend\nGetBackendAttribute backend\n"
        "ModelInitialize plain\nModelInstanceInitialize plain_0\n"
        "ModelInstanceInitialize plain_1\n");
    stop();
    expect_no_failure();
}

static void
a_failed_initialize_is_finalized_and_tried_again(void **state)
{
    (void) state;
    make_model("one", CONFIG GROUP(1));
    make_model("two", CONFIG GROUP(1));
    start(false, "Initialize");
    expect_said("Initialize backend\nFinalize backend (no state)\n"
        "Initialize backend\nFinalize backend (no state)\n");
    expect_reason("{\"name\":\"one\",\"version\":\"1\",\"state\":"
        "\"UNAVAILABLE\",\"reason\":\"Unavailable: cannot load backend"
        " \\\"conformance\\\": failing on purpose in Initialize\"}");
    stop();
    expect_said("");
}

static void
a_failed_model_is_finalized(void **state)
{
    (void) state;
    make_model("bad", CONFIG GROUP(1) FAIL("ModelInitialize"));
    start(false, NULL);
    expect_said("Initialize backend\nGetBackendAttribute backend\n"
        "ModelInitialize bad\nModelFinalize bad\n");
    expect_reason("\"reason\":\"Unavailable: failing on purpose in"
        " ModelInitialize\"");
    stop();
    expect_said("Finalize backend\n");
}

static void
a_failed_instance_ends_its_model_after_all_were_made(void **state)
{
    (void) state;
    make_model("bad", CONFIG GROUP(2) FAIL("ModelInstanceInitialize"));
    start(false, NULL);
    expect_said("Initialize backend\nGetBackendAttribute backend\n"
        "ModelInitialize bad\nModelInstanceInitialize bad_0_0\n"
        "ModelInstanceFinalize bad_0_0\nModelInstanceInitialize bad_0_1\n"
        "ModelInstanceFinalize bad_0_1\nModelFinalize bad\n");
    stop();
}

static void
every_check_of_the_backend_holds(void **state)
{
    (void) state;
    static const char *const modes[] = { "", "dynamic_batching { }\n" };

    for (size_t i = 0; i < 4; i++) {
        char config[2048];
        shot_t shot;
        TRITONSERVER_Message *m;

        snprintf(config, sizeof(config), "%s%s", CONFIG GROUP(1),
            modes[i % 2]);
        make_model("all", config);
        start(i < 2, NULL);
        expect_no_failure();
        make_shot(&shot, "all", "A", true);
        submit(&shot);
        wait_for(&shot);
        assert_int_equal(shot.calls, 1);
        assert_int_equal(shot.starts, 2);       /* the probe's, the answer's */
        drop_responses(&shot);
        succeeds(TRITONSERVER_InferenceRequestDelete(shot.request));
        expect_no_failure();

        succeeds(TRITONSERVER_ServerModelStatistics(world.server, "all", 1,
            &m));
        expect_json(m, "\"inference_count\":1,\"execution_count\":1,"
            "\"inference_stats\":{\"success\":{\"count\":1,");
        succeeds(TRITONSERVER_ServerModelStatistics(world.server, "all", 1,
            &m));
        expect_json(m, "\"response_stats\":{\"0\":{\"compute_infer\":{"
            "\"count\":1,\"ns\":200},\"compute_output\":{\"count\":1,"
            "\"ns\":100},\"success\":{\"count\":1,\"ns\":300},\"fail\":{"
            "\"count\":0,\"ns\":0},\"empty_response\":{\"count\":0,\"ns\":"
            "0},\"cancel\":{\"count\":0,\"ns\":0}},\"1\":{");
        succeeds(TRITONSERVER_ServerModelStatistics(world.server, "all", 1,
            &m));
        expect_json(m, "\"cancel\":{\"count\":1,\"ns\":300}}}");
        succeeds(TRITONSERVER_ServerModelStatistics(world.server, "all", 1,
            &m));
        expect_json(m, "\"batch_stats\":[{\"batch_size\":1,\"compute_input\":{"
            "\"count\":1,\"ns\":100}");
        succeeds(TRITONSERVER_ServerModelStatistics(world.server, "all", 1,
            &m));
        expect_json(m, "\"memory_usage\":[{\"type\":\"CPU\",\"id\":0,"
            "\"byte_size\":96}]");
        stop();
        expect_no_failure();
        remove_model("all");
    }
}

static void
add_more_inputs(shot_t *shot, const int32_t *numbers)
{
    static const char words[] = "\3\0\0\0one\0\0\0\0";
    const int64_t square[3] = { 1, 2, 2 };
    const int64_t two[2] = { 1, 2 };

    succeeds(TRITONSERVER_InferenceRequestAddInput(shot->request, "B",
        TRITONSERVER_TYPE_INT32, square, 3));
    for (int i = 0; i < 4; i++) {
        succeeds(TRITONSERVER_InferenceRequestAppendInputData(shot->request,
            "B", numbers + i, 4, TRITONSERVER_MEMORY_CPU, 0));
    }
    succeeds(TRITONSERVER_InferenceRequestAddInput(shot->request, "S",
        TRITONSERVER_TYPE_BYTES, two, 2));
    succeeds(TRITONSERVER_InferenceRequestAppendInputData(shot->request, "S",
        words, 11, TRITONSERVER_MEMORY_CPU, 0));
    succeeds(TRITONSERVER_InferenceRequestSetId(shot->request, "i"));
    succeeds(TRITONSERVER_InferenceRequestSetIntParameter(shot->request, "n",
        1));
    succeeds(TRITONSERVER_InferenceRequestSetBoolParameter(shot->request,
        "b", true));
    succeeds(TRITONSERVER_InferenceRequestSetDoubleParameter(shot->request,
        "d", 0.25));
    succeeds(TRITONSERVER_InferenceRequestAddRequestedOutput(shot->request,
        "Y"));
    succeeds(TRITONSERVER_InferenceRequestAddRequestedOutput(shot->request,
        "X"));
}

static void
checks_hold_for_all_that_a_client_may_set(void **state)
{
    (void) state;
    static const int32_t numbers[4] = { 1, 2, 3, 4 };
    shot_t shot;

    make_model("all", CONFIG GROUP(1));
    start(true, NULL);
    make_shot(&shot, "all", "A", true);
    add_more_inputs(&shot, numbers);
    submit(&shot);
    wait_for(&shot);
    drop_responses(&shot);

    /* a string for a correlation id, no bytes at all, no output named */
    const int64_t none[2] = { 1, 0 };
    succeeds(TRITONSERVER_InferenceRequestSetCorrelationIdString(
        shot.request, "seq"));
    succeeds(TRITONSERVER_InferenceRequestRemoveAllInputs(shot.request));
    succeeds(TRITONSERVER_InferenceRequestAddInput(shot.request, "A",
        TRITONSERVER_TYPE_FP32, none, 2));
    succeeds(TRITONSERVER_InferenceRequestRemoveAllRequestedOutputs(
        shot.request));
    submit(&shot);
    wait_for(&shot);
    drop_responses(&shot);
    succeeds(TRITONSERVER_InferenceRequestDelete(shot.request));
    stop();
    expect_no_failure();
}

static void
expect_text(TRITONSERVER_InferenceResponse *response, int at,
    const char *want)
{
    const char *name;
    TRITONSERVER_DataType type;
    const int64_t *shape;
    uint64_t dims;
    const void *base;
    size_t size;
    TRITONSERVER_MemoryType memory;
    int64_t id;
    void *userp;
    uint32_t len = 0;

    succeeds(TRITONSERVER_InferenceResponseOutput(response, 0, &name, &type,
        &shape, &dims, &base, &size, &memory, &id, &userp));
    const char *p = base;
    for (int i = 0; i <= at; i++) {
        p += len;
        memcpy(&len, p, sizeof(len));
        p += sizeof(len);
    }
    if (strlen(want) != len || memcmp(p, want, len) != 0) {
        fail_msg("got %.*s\nnot %s", (int) len, p, want);
    }
}

static void
texts_are_laid_out_as_backends_parse_them(void **state)
{
    (void) state;
    char want[4096], folder[512];
    shot_t shot;

    make_model("words", CONFIG GROUP(1)
        "parameters { key: 'k' value { string_value: 'v' } }\n");
    start(true, NULL);
    make_shot(&shot, "words", "A", true);
    set_scenario(&shot, "texts");
    submit(&shot);
    wait_for(&shot);

    expect_text(shot.list[0], 0, "{\"name\":\"words\",\"platform\":\"\","
        "\"backend\":\"conformance\",\"runtime\":\"\",\"version_policy\":"
        "{\"latest\":{\"num_versions\":1}},\"max_batch_size\":4,\"input\":["
        "{\"name\":\"A\",\"data_type\":\"TYPE_FP32\",\"format\":"
        "\"FORMAT_NONE\",\"dims\":[-1],\"is_shape_tensor\":false,"
        "\"allow_ragged_batch\":false,\"optional\":false,"
        "\"is_non_linear_format_io\":false},"
        "{\"name\":\"B\",\"data_type\":\"TYPE_INT32\",\"format\":"
        "\"FORMAT_NONE\",\"dims\":[2,2],\"reshape\":{\"shape\":[4]},"
        "\"is_shape_tensor\":false,\"allow_ragged_batch\":false,"
        "\"optional\":true,\"is_non_linear_format_io\":false},"
        "{\"name\":\"S\",\"data_type\":\"TYPE_STRING\",\"format\":"
        "\"FORMAT_NONE\",\"dims\":[-1],\"is_shape_tensor\":false,"
        "\"allow_ragged_batch\":false,\"optional\":true,"
        "\"is_non_linear_format_io\":false}],\"output\":["
        "{\"name\":\"X\",\"data_type\":\"TYPE_FP32\",\"dims\":[-1],"
        "\"label_filename\":\"\",\"is_shape_tensor\":false,"
        "\"is_non_linear_format_io\":false},"
        "{\"name\":\"Y\",\"data_type\":\"TYPE_INT32\",\"dims\":[2,2],"
        "\"reshape\":{\"shape\":[4]},\"label_filename\":\"\","
        "\"is_shape_tensor\":false,\"is_non_linear_format_io\":false},"
        "{\"name\":\"Z\",\"data_type\":\"TYPE_STRING\",\"dims\":[-1],"
        "\"label_filename\":\"\",\"is_shape_tensor\":false,"
        "\"is_non_linear_format_io\":false}],\"batch_input\":[],"
        "\"batch_output\":[],\"optimization\":{\"priority\":"
        "\"PRIORITY_DEFAULT\",\"input_pinned_memory\":{\"enable\":true},"
        "\"output_pinned_memory\":{\"enable\":true},"
        "\"gather_kernel_buffer_threshold\":0,\"eager_batching\":false},"
        "\"instance_group\":[{\"name\":\"words_0\",\"kind\":\"KIND_CPU\","
        "\"count\":1,\"gpus\":[],\"secondary_devices\":[],\"profile\":[],"
        "\"passive\":false,\"host_policy\":\"\"}],"
        "\"default_model_filename\":\"\",\"cc_model_filenames\":{},"
        "\"metric_tags\":{},\"parameters\":{\"k\":{\"string_value\":\"v\"}},"
        "\"model_warmup\":[]}");
    snprintf(want, sizeof(want), "{\"cmdline\":{\"auto-complete-config\":"
        "\"false\",\"backend-directory\":\"%s/t-backends\","
        "\"min-compute-capability\":\"7.500000\","
        "\"default-max-batch-size\":\"4\"}}", world.build);
    expect_text(shot.list[0], 1, want);
    expect_text(shot.list[0], 2, "{\"cpu\":{}}");
    snprintf(folder, sizeof(folder), "%s/t-backends/conformance",
        world.build);
    expect_text(shot.list[0], 3, folder);
    snprintf(folder, sizeof(folder), "%s/words", world.repository);
    expect_text(shot.list[0], 4, folder);
    expect_text(shot.list[0], 5, "words_0_0");
    drop_responses(&shot);
    succeeds(TRITONSERVER_InferenceRequestDelete(shot.request));
    stop();
    expect_no_failure();
}

/* scheduling.md 1.7 */
static void
answers_may_come_later_and_several(void **state)
{
    (void) state;
    enum { SHOTS = 32 };
    static shot_t shots[SHOTS];

    make_model("apart", CONFIG GROUP(3)
        "model_transaction_policy { decoupled: true }\n");
    start(true, NULL);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < SHOTS; i++) {
            make_shot(&shots[i], "apart", "A", true);
            set_scenario(&shots[i], i % 2 == 0 ? "later" : "stream");
            submit(&shots[i]);
        }
        for (int i = 0; i < SHOTS; i++) {
            wait_for(&shots[i]);
            assert_int_equal(shots[i].responses, i % 2 == 0 ? 1 : 3);
            assert_int_equal(shots[i].calls, i % 2 == 0 ? 1 : 4);
            assert_int_equal(shots[i].finals, 1);
            assert_int_equal(shots[i].released, 1);
            drop_responses(&shots[i]);
            succeeds(TRITONSERVER_InferenceRequestDelete(shots[i].request));
        }
    }
    stop();                 /* waits for the factories that are still there  */
    expect_no_failure();
}

/* Metrics reference, section 3: the first of many is the one. */
static void
first_responses_of_streams_are_counted(void **state)
{
    (void) state;
    static const char name[] =
        "\nnv_inference_first_response_histogram_ms_count{model=\"apart\","
        "version=\"1\"} 5\n";
    TRITONSERVER_ServerOptions *o;
    TRITONSERVER_Metrics *metrics;
    const char *text;
    size_t size;
    shot_t shot;

    make_model("apart", CONFIG GROUP(2)
        "model_transaction_policy { decoupled: true }\n");
    o = new_options("t-backends", true);
    succeeds(TRITONSERVER_ServerOptionsSetMetricsConfig(o, NULL,
        "histogram_latencies", "true"));
    succeeds(TRITONSERVER_ServerNew(&world.server, o));
    succeeds(TRITONSERVER_ServerOptionsDelete(o));

    for (int i = 0; i < 5; i++) {
        make_shot(&shot, "apart", "A", true);
        set_scenario(&shot, i % 2 == 0 ? "stream" : "later");
        submit(&shot);
        wait_for(&shot);
        assert_int_equal(shot.responses, i % 2 == 0 ? 3 : 1);
        drop_responses(&shot);
        succeeds(TRITONSERVER_InferenceRequestDelete(shot.request));
    }

    succeeds(TRITONSERVER_ServerMetrics(world.server, &metrics));
    succeeds(TRITONSERVER_MetricsFormatted(metrics,
        TRITONSERVER_METRIC_PROMETHEUS, &text, &size));
    if (memmem(text, size, name, strlen(name)) == NULL) {
        fail_msg("%.*s", (int) size, text);
    }
    succeeds(TRITONSERVER_MetricsDelete(metrics));
    stop();
    expect_no_failure();
}

/* scheduling.md 8.3 */
static void
an_executing_request_hears_of_its_cancel(void **state)
{
    (void) state;
    shot_t shot;
    bool cancelled = false;

    make_model("patient", CONFIG GROUP(1));
    start(true, NULL);
    make_shot(&shot, "patient", "A", true);
    set_scenario(&shot, "cancel");
    submit(&shot);
    usleep(20000);
    succeeds(TRITONSERVER_InferenceRequestCancel(shot.request));
    wait_for(&shot);
    fails(TRITONSERVER_InferenceResponseError(shot.list[0]),
        TRITONSERVER_ERROR_CANCELLED, "as the client wished");
    succeeds(TRITONSERVER_InferenceRequestIsCancelled(shot.request,
        &cancelled));
    assert_true(cancelled);
    succeeds(TRITONSERVER_InferenceResponseDelete(shot.list[0]));
    succeeds(TRITONSERVER_InferenceRequestDelete(shot.request));
    stop();
    expect_no_failure();
}

static void
errors_come_as_they_were_sent(void **state)
{
    (void) state;
    shot_t shot;

    make_model("sad", CONFIG GROUP(1));
    make_model("sadder", CONFIG GROUP(1) FAIL("ModelInstanceExecute"));
    make_model("shy", CONFIG GROUP(1) FAIL("unready"));
    start(true, NULL);
    make_shot(&shot, "sad", "A", true);
    set_scenario(&shot, "error");
    submit(&shot);
    wait_for(&shot);
    fails(TRITONSERVER_InferenceResponseError(shot.list[0]),
        TRITONSERVER_ERROR_ALREADY_EXISTS, "an error on purpose");
    succeeds(TRITONSERVER_InferenceResponseDelete(shot.list[0]));
    succeeds(TRITONSERVER_InferenceRequestDelete(shot.request));

    make_shot(&shot, "sadder", "A", true);
    submit(&shot);
    wait_for(&shot);
    assert_int_equal(shot.starts, 1);
    fails(TRITONSERVER_InferenceResponseError(shot.list[0]),
        TRITONSERVER_ERROR_UNAVAILABLE, "on purpose in ModelInstanceExecute");
    succeeds(TRITONSERVER_InferenceResponseDelete(shot.list[0]));
    succeeds(TRITONSERVER_InferenceRequestDelete(shot.request));

    bool ready = true;
    succeeds(TRITONSERVER_ServerModelIsReady(world.server, "shy", -1,
        &ready));
    assert_false(ready);
    ready = true;
    succeeds(TRITONSERVER_ServerIsReady(world.server, &ready));
    assert_false(ready);
    stop();
    expect_no_failure();
}

static void
a_backend_that_forgets_final_is_answered_for(void **state)
{
    (void) state;
    shot_t shot;

    make_model("mute", CONFIG GROUP(1));
    start(true, NULL);
    for (int half = 0; half < 2; half++) {
        make_shot(&shot, "mute", "A", true);
        set_scenario(&shot, half ? "half" : "silent");
        for (int round = 0; round < 3; round++) {
            submit(&shot);
            if (half) {                 /* the answer keeps its factory      */
                pthread_mutex_lock(&lock);
                while (shot.responses == 0) {
                    pthread_cond_wait(&arrived, &lock);
                }
                TRITONSERVER_InferenceResponse *first = shot.list[0];
                shot.responses = 0;
                pthread_mutex_unlock(&lock);
                succeeds(TRITONSERVER_InferenceResponseDelete(first));
            }
            wait_for(&shot);
            assert_int_equal(shot.finals, 1);
            fails(TRITONSERVER_InferenceResponseError(shot.list[0]),
                TRITONSERVER_ERROR_INTERNAL, "backend 'conformance' of model"
                " 'mute' released the request without a final response");
            succeeds(TRITONSERVER_InferenceResponseDelete(shot.list[0]));
        }
        succeeds(TRITONSERVER_InferenceRequestDelete(shot.request));
    }
    stop();
    expect_no_failure();
}

static void
a_late_configuration_changes_only_what_is_said(void **state)
{
    (void) state;
    TRITONSERVER_Message *m;
    shot_t shot;

    make_model("late", CONFIG GROUP(1));
    start(true, NULL);
    make_shot(&shot, "late", "A", true);
    set_scenario(&shot, "set-config");
    submit(&shot);
    wait_for(&shot);
    drop_responses(&shot);
    submit(&shot);                      /* A and X are still what they were  */
    wait_for(&shot);
    drop_responses(&shot);
    succeeds(TRITONSERVER_ServerModelConfig(world.server, "late", -1, 1,
        &m));
    expect_json(m, "\"max_batch_size\":2,\"input\":[]");
    succeeds(TRITONSERVER_InferenceRequestDelete(shot.request));
    stop();
    expect_no_failure();
}

static void *
server_main(void *arg)
{
    TRITONSERVER_Server **s = arg;
    TRITONSERVER_ServerOptions *o = new_options("t-backends", true);
    succeeds(TRITONSERVER_ServerNew(s, o));
    succeeds(TRITONSERVER_ServerOptionsDelete(o));
    return NULL;
}

static void
servers_of_one_process_initialize_in_turn(void **state)
{
    (void) state;
    enum { SERVERS = 6 };
    TRITONSERVER_Server *servers[SERVERS];
    pthread_t threads[SERVERS];
    bool ready = false;

    make_model("each", CONFIG GROUP(1));
    for (int i = 0; i < SERVERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, server_main,
            &servers[i]), 0);
    }
    for (int i = 0; i < SERVERS; i++) {
        pthread_join(threads[i], NULL);
        succeeds(TRITONSERVER_ServerModelIsReady(servers[i], "each", -1,
            &ready));
        assert_true(ready);
        succeeds(TRITONSERVER_ServerDelete(servers[i]));
    }
    expect_no_failure();
}

typedef struct {
    pthread_t thread;
    int       number;
} client_t;

static void *
client_main(void *arg)
{
    static const char *const names[] = { "", "later", "error", "texts" };
    const client_t *c = arg;
    shot_t shot;

    for (int i = 0; i < 40; i++) {
        make_shot(&shot, "crowd", "A", true);
        set_scenario(&shot, names[(i + c->number) % 4]);
        submit(&shot);
        wait_for(&shot);
        assert_int_equal(shot.responses, 1);
        TRITONSERVER_ErrorDelete(TRITONSERVER_InferenceResponseError(
            shot.list[0]));
        succeeds(TRITONSERVER_InferenceResponseDelete(shot.list[0]));
        assert_int_equal(shot.buffers, 0);
        succeeds(TRITONSERVER_InferenceRequestDelete(shot.request));
    }
    return NULL;
}

static void
checks_hold_with_several_instances_and_clients(void **state)
{
    (void) state;
    client_t clients[8];

    make_model("crowd", CONFIG GROUP(4));
    start(true, NULL);
    for (int i = 0; i < 8; i++) {
        clients[i].number = i;
        assert_int_equal(pthread_create(&clients[i].thread, NULL,
            client_main, &clients[i]), 0);
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(clients[i].thread, NULL);
    }
    stop();
    expect_no_failure();
}

static void
on_activity(TRITONSERVER_InferenceTrace *trace,
    TRITONSERVER_InferenceTraceActivity activity, uint64_t timestamp_ns,
    void *userp)
{
    (void) trace;
    (void) timestamp_ns;
    pthread_mutex_lock(&lock);
    ((int *) userp)[activity]++;
    pthread_mutex_unlock(&lock);
}

static void
on_tensor(TRITONSERVER_InferenceTrace *trace,
    TRITONSERVER_InferenceTraceActivity activity, const char *name,
    TRITONSERVER_DataType datatype, const void *base, size_t byte_size,
    const int64_t *shape, uint64_t dim_count,
    TRITONSERVER_MemoryType memory_type, int64_t memory_type_id, void *userp)
{
    (void) memory_type;
    (void) memory_type_id;
    assert_string_equal(name, activity == TRITONSERVER_TRACE_TENSOR_QUEUE_INPUT
        ? "A" : "X");
    assert_int_equal(datatype, TRITONSERVER_TYPE_FP32);
    assert_int_equal(byte_size, 16);
    assert_int_equal(dim_count, 2);
    assert_int_equal(shape[1], 4);
    assert_non_null(base);
    on_activity(trace, activity, 1, userp);
}

static void
on_trace_release(TRITONSERVER_InferenceTrace *trace, void *userp)
{
    pthread_mutex_lock(&lock);
    ((int *) userp)[15]++;
    pthread_cond_broadcast(&arrived);
    pthread_mutex_unlock(&lock);
    succeeds(TRITONSERVER_InferenceTraceDelete(trace));
}

static void
a_backend_sees_the_trace_of_its_request(void **state)
{
    (void) state;
    TRITONSERVER_InferenceTrace *trace;
    int counts[16] = { 0 };
    shot_t shot;

    make_model("traced", CONFIG GROUP(1));
    start(true, NULL);
    succeeds(TRITONSERVER_InferenceTraceTensorNew(&trace,
        TRITONSERVER_TRACE_LEVEL_TIMESTAMPS | TRITONSERVER_TRACE_LEVEL_TENSORS,
        0, on_activity, on_tensor, on_trace_release, counts));
    make_shot(&shot, "traced", "A", true);
    succeeds(TRITONSERVER_ServerInferAsync(world.server, shot.request,
        trace));
    wait_for(&shot);
    drop_responses(&shot);
    pthread_mutex_lock(&lock);
    while (counts[15] == 0) {
        pthread_cond_wait(&arrived, &lock);
    }
    pthread_mutex_unlock(&lock);
    for (int i = 0; i <= TRITONSERVER_TRACE_CUSTOM_ACTIVITY; i++) {
        assert_int_equal(counts[i],
            i != TRITONSERVER_TRACE_TENSOR_BACKEND_INPUT);
    }
    assert_int_equal(counts[15], 1);
    succeeds(TRITONSERVER_InferenceRequestDelete(shot.request));
    stop();
    expect_no_failure();
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(entry_points_run_in_the_order_of_a_life),
        TEST(without_groups_the_instance_is_named_as_the_model),
        TEST(a_failed_initialize_is_finalized_and_tried_again),
        TEST(a_failed_model_is_finalized),
        TEST(servers_of_one_process_initialize_in_turn),
        TEST(a_failed_instance_ends_its_model_after_all_were_made),
        TEST(every_check_of_the_backend_holds),
        TEST(checks_hold_for_all_that_a_client_may_set),
        TEST(texts_are_laid_out_as_backends_parse_them),
        TEST(answers_may_come_later_and_several),
        TEST(first_responses_of_streams_are_counted),
        TEST(an_executing_request_hears_of_its_cancel),
        TEST(errors_come_as_they_were_sent),
        TEST(a_backend_that_forgets_final_is_answered_for),
        TEST(a_late_configuration_changes_only_what_is_said),
        TEST(checks_hold_with_several_instances_and_clients),
        TEST(a_backend_sees_the_trace_of_its_request),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
