/* The client's side of the C API, subject by subject: what the reference says
   of each function that a program calls, beside what api.c shows. */

#include "client_fixture.h"

#define ECHO(name, type)                                                     \
    "input { name: '" name "' data_type: TYPE_" type " dims: -1 }\n"         \
    "output { name: 'OUTPUT0' data_type: TYPE_" type " dims: -1 }\n"

static char calls[256];             /* of the allocator, in their order      */

static void
note(const char *word)
{
    pthread_mutex_lock(&lock);
    strcat(calls, word);
    pthread_mutex_unlock(&lock);
}

static TRITONSERVER_ServerOptions *
options(bool strict)
{
    TRITONSERVER_ServerOptions *o = new_options("backends", strict);
    succeeds(TRITONSERVER_ServerOptionsSetServerId(o, "client-test"));
    return o;
}

static int
setup(void **state)
{
    (void) state;
    make_world();
    make_allocator();
    make_model("echo", "backend: 'identity' max_batch_size: 4\n"
        ECHO("INPUT0", "FP32")
        "parameters { key: 'echo_parameters'\n"
        "  value { string_value: 'true' } }\n");
    make_model("pair", "backend: 'identity' max_batch_size: 4\n"
        "input [ { name: 'INPUT0' data_type: TYPE_FP32 dims: [ 4 ] },\n"
        "  { name: 'INPUT1' data_type: TYPE_FP32 dims: [ -1, 2 ] } ]\n"
        "output { name: 'OUTPUT0' data_type: TYPE_FP32 dims: [ 4 ] }\n");
    make_model("words", "backend: 'identity'\n" ECHO("INPUT0", "STRING"));
    make_model("word", "backend: 'identity'\n"
        "input { name: 'INPUT0' data_type: TYPE_STRING dims: [ 1 ] }\n"
        "output { name: 'OUTPUT0' data_type: TYPE_STRING dims: [ 1 ] }\n");
    make_model("square", "backend: 'identity'\n"
        "input { name: 'INPUT0' data_type: TYPE_FP32 dims: [ -1, -1 ] }\n"
        "output { name: 'OUTPUT0' data_type: TYPE_FP32 dims: [ -1, -1 ] }\n");
    make_model("levels", "backend: 'identity' max_batch_size: 4\n"
        ECHO("INPUT0", "FP32")
        "dynamic_batching { priority_levels: 5 default_priority_level: 2 }\n");
    make_model("apart", "backend: 'identity'\n" ECHO("INPUT0", "FP32")
        "model_transaction_policy { decoupled: true }\n");

    TRITONSERVER_ServerOptions *o = options(true);
    succeeds(TRITONSERVER_ServerNew(&world.server, o));
    succeeds(TRITONSERVER_ServerOptionsDelete(o));
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    succeeds(TRITONSERVER_ServerDelete(world.server));
    succeeds(TRITONSERVER_ResponseAllocatorDelete(world.allocator));
    end_world();
    return 0;
}

/* 4 */
static void
errors_have_a_code_a_word_and_a_text(void **state)
{
    (void) state;
    static const struct {
        int         code;
        const char *word;
    } table[] = {
        { 0, "Unknown" }, { 1, "Internal" }, { 2, "Not found" },
        { 3, "Invalid argument" }, { 4, "Unavailable" }, { 5, "Unsupported" },
        { 6, "Already exists" }, { 7, "<invalid code>" }, { 8, "Unknown" },
        { 99, "Unknown" }
    };

    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        char text[] = "what went wrong";
        TRITONSERVER_Error *err = TRITONSERVER_ErrorNew(
            (TRITONSERVER_Error_Code) table[i].code, text);
        assert_non_null(err);
        text[0] = 'X';                      /* it was copied                 */
        assert_int_equal(TRITONSERVER_ErrorCode(err), table[i].code);
        assert_string_equal(TRITONSERVER_ErrorCodeString(err),
            table[i].word);
        assert_string_equal(TRITONSERVER_ErrorMessage(err),
            "what went wrong");
        TRITONSERVER_ErrorDelete(err);
    }
    TRITONSERVER_ErrorDelete(NULL);
}

/* 1 */
static void
datatypes_have_the_names_of_the_wire(void **state)
{
    (void) state;
    static const uint32_t sizes[] = {
        0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 0, 2
    };
    uint32_t major = 0, minor = 0;

    for (int i = 1; i < 15; i++) {
        const char *name = TRITONSERVER_DataTypeString(
            (TRITONSERVER_DataType) i);
        assert_int_equal(TRITONSERVER_StringToDataType(name), i);
        assert_int_equal(TRITONSERVER_DataTypeByteSize(
            (TRITONSERVER_DataType) i), sizes[i]);
    }
    assert_string_equal(TRITONSERVER_DataTypeString(99), "<invalid>");
    assert_int_equal(TRITONSERVER_StringToDataType("TYPE_FP32"), 0);
    assert_int_equal(TRITONSERVER_StringToDataType("fp32"), 0);
    assert_int_equal(TRITONSERVER_StringToDataType(""), 0);
    succeeds(TRITONSERVER_ApiVersion(&major, &minor));
    assert_int_equal(major, 1);
    assert_true(minor >= 34);
}

/* 16 */
static void
log_lines_have_a_level_that_may_be_off(void **state)
{
    (void) state;
    TRITONSERVER_ServerOptions *o = options(true);

    fails(TRITONSERVER_LogMessage(9, "f.c", 1, "x"),
        TRITONSERVER_ERROR_INVALID_ARG, "9");
    assert_false(TRITONSERVER_LogIsEnabled(9));
    assert_false(TRITONSERVER_LogIsEnabled(TRITONSERVER_LOG_VERBOSE));
    succeeds(TRITONSERVER_ServerOptionsSetLogVerbose(o, 1));
    assert_true(TRITONSERVER_LogIsEnabled(TRITONSERVER_LOG_VERBOSE));
    succeeds(TRITONSERVER_ServerOptionsSetLogVerbose(o, 0));
    succeeds(TRITONSERVER_ServerOptionsSetLogInfo(o, false));
    assert_false(TRITONSERVER_LogIsEnabled(TRITONSERVER_LOG_INFO));
    assert_true(TRITONSERVER_LogIsEnabled(TRITONSERVER_LOG_WARN));
    succeeds(TRITONSERVER_LogMessage(TRITONSERVER_LOG_INFO, "f.c", 1,
        "this line is never seen"));
    succeeds(TRITONSERVER_ServerOptionsSetLogInfo(o, true));
    assert_true(TRITONSERVER_LogIsEnabled(TRITONSERVER_LOG_INFO));
    assert_true(TRITONSERVER_LogIsEnabled(TRITONSERVER_LOG_ERROR));
    succeeds(TRITONSERVER_ServerOptionsDelete(o));
}

/* 8: label is freed after the call */
static TRITONSERVER_Error *
metric_new(TRITONSERVER_Metric **m, TRITONSERVER_MetricFamily *f,
    TRITONSERVER_MetricArgs *args)
{
    TRITONSERVER_Parameter *label = TRITONSERVER_ParameterNew("k",
        TRITONSERVER_PARAMETER_STRING, "v");
    const TRITONSERVER_Parameter *labels[1] = { label };
    TRITONSERVER_Error *err = TRITONSERVER_MetricNewWithArgs(m, f, labels, 1,
        args);
    TRITONSERVER_ParameterDelete(label);
    return err;
}

static void
expect_metrics(const char *text, bool there)
{
    TRITONSERVER_Metrics *metrics;
    const char *base;
    size_t size;

    succeeds(TRITONSERVER_ServerMetrics(world.server, &metrics));
    succeeds(TRITONSERVER_MetricsFormatted(metrics,
        TRITONSERVER_METRIC_PROMETHEUS, &base, &size));
    assert_int_equal(strlen(base), size);
    assert_int_equal(strstr(base, text) != NULL, there);
    succeeds(TRITONSERVER_MetricsDelete(metrics));
}

static void
metrics_follow_their_kind(void **state)
{
    (void) state;
    TRITONSERVER_MetricFamily *counter, *again, *gauge;
    TRITONSERVER_Metric *one, *two, *g, *none;
    TRITONSERVER_MetricArgs *args;
    TRITONSERVER_MetricKind kind = 9;
    TRITONSERVER_Parameter *number = TRITONSERVER_ParameterNew("n",
        TRITONSERVER_PARAMETER_INT, &(int64_t) { 1 });
    const TRITONSERVER_Parameter *wrong[1] = { number };
    double value = 0;

    succeeds(TRITONSERVER_MetricFamilyNew(&counter,
        TRITONSERVER_METRIC_KIND_COUNTER, "client_counter", "a test's"));
    succeeds(TRITONSERVER_MetricFamilyNew(&again,
        TRITONSERVER_METRIC_KIND_COUNTER, "client_counter", "another text"));
    fails(TRITONSERVER_MetricFamilyNew(&gauge,
        TRITONSERVER_METRIC_KIND_GAUGE, "client_counter", "x"),
        TRITONSERVER_ERROR_INVALID_ARG, "client_counter");
    succeeds(TRITONSERVER_MetricFamilyNew(&gauge,
        TRITONSERVER_METRIC_KIND_GAUGE, "client_gauge", "a test's"));
    succeeds(TRITONSERVER_GetMetricFamilyKind(gauge, &kind));
    assert_int_equal(kind, TRITONSERVER_METRIC_KIND_GAUGE);

    fails(TRITONSERVER_MetricNew(&none, counter, wrong, 1),
        TRITONSERVER_ERROR_INVALID_ARG, "STRING");
    succeeds(TRITONSERVER_MetricArgsNew(&args));
    fails(metric_new(&none, counter, args), TRITONSERVER_ERROR_INVALID_ARG,
        "Unexpected args found in counter Metric constructor.");
    succeeds(TRITONSERVER_MetricArgsDelete(args));
    succeeds(TRITONSERVER_MetricArgsDelete(NULL));
    succeeds(metric_new(&one, counter, NULL));
    succeeds(metric_new(&two, again, NULL));
    succeeds(metric_new(&g, gauge, NULL));
    succeeds(TRITONSERVER_GetMetricKind(g, &kind));
    assert_int_equal(kind, TRITONSERVER_METRIC_KIND_GAUGE);

    succeeds(TRITONSERVER_MetricIncrement(one, 2.5));
    succeeds(TRITONSERVER_MetricIncrement(two, 1));
    succeeds(TRITONSERVER_MetricValue(one, &value));
    assert_true(value == 3.5);              /* they share it                 */
    fails(TRITONSERVER_MetricIncrement(one, -1),
        TRITONSERVER_ERROR_INVALID_ARG, "");
    fails(TRITONSERVER_MetricSet(one, 1), TRITONSERVER_ERROR_UNSUPPORTED, "");
    fails(TRITONSERVER_MetricObserve(g, 1), TRITONSERVER_ERROR_UNSUPPORTED,
        "");
    succeeds(TRITONSERVER_MetricSet(g, 7));
    succeeds(TRITONSERVER_MetricIncrement(g, -9));
    expect_metrics("client_counter{k=\"v\"} 3.5\n", true);
    expect_metrics("client_gauge{k=\"v\"} -2\n", true);

    fails(TRITONSERVER_MetricFamilyDelete(counter),
        TRITONSERVER_ERROR_INTERNAL, "client_counter");
    succeeds(TRITONSERVER_MetricIncrement(one, 1));     /* nothing is gone   */
    succeeds(TRITONSERVER_MetricDelete(one));
    expect_metrics("client_counter{k=\"v\"} 4.5\n", true);
    succeeds(TRITONSERVER_MetricDelete(two));
    expect_metrics("client_counter{", false);   /* with the last of them     */
    succeeds(TRITONSERVER_MetricDelete(g));
    succeeds(TRITONSERVER_MetricFamilyDelete(counter));
    succeeds(TRITONSERVER_MetricFamilyDelete(again));
    succeeds(TRITONSERVER_MetricFamilyDelete(gauge));
    TRITONSERVER_ParameterDelete(number);
}

static void
histograms_observe_and_nothing_else(void **state)
{
    (void) state;
    const double bounds[2] = { 0.5, 2 };
    TRITONSERVER_MetricFamily *family;
    TRITONSERVER_MetricArgs *args;
    TRITONSERVER_Metric *m;
    double value;

    succeeds(TRITONSERVER_MetricFamilyNew(&family,
        TRITONSERVER_METRIC_KIND_HISTOGRAM, "client_histogram", "a test's"));
    fails(TRITONSERVER_MetricNew(&m, family, NULL, 0),
        TRITONSERVER_ERROR_INVALID_ARG,
        "Bucket boundaries not found in Metric args.");
    succeeds(TRITONSERVER_MetricArgsNew(&args));
    succeeds(TRITONSERVER_MetricArgsSetHistogram(args, bounds, 2));
    succeeds(TRITONSERVER_MetricNewWithArgs(&m, family, NULL, 0, args));
    succeeds(TRITONSERVER_MetricArgsDelete(args));
    fails(TRITONSERVER_MetricValue(m, &value),
        TRITONSERVER_ERROR_UNSUPPORTED, "");
    fails(TRITONSERVER_MetricIncrement(m, 1),
        TRITONSERVER_ERROR_UNSUPPORTED, "");
    fails(TRITONSERVER_MetricSet(m, 1), TRITONSERVER_ERROR_UNSUPPORTED, "");
    succeeds(TRITONSERVER_MetricObserve(m, 0.5));
    succeeds(TRITONSERVER_MetricObserve(m, 9));
    expect_metrics("client_histogram_count 2\nclient_histogram_sum 9.5\n"
        "client_histogram_bucket{le=\"0.5\"} 1\n"
        "client_histogram_bucket{le=\"2\"} 1\n"
        "client_histogram_bucket{le=\"+Inf\"} 2\n", true);
    succeeds(TRITONSERVER_MetricDelete(m));
    succeeds(TRITONSERVER_MetricFamilyDelete(family));
}

/* 9 */
static TRITONSERVER_Error *
start_fails(TRITONSERVER_ResponseAllocator *a, void *userp)
{
    (void) a;
    (void) userp;
    note("start;");
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL,
        "only logged: an error of start on purpose");
}

static TRITONSERVER_Error *
noted_alloc(TRITONSERVER_ResponseAllocator *a, const char *name, size_t size,
    TRITONSERVER_MemoryType type, int64_t id, void *userp, void **buffer,
    void **buffer_userp, TRITONSERVER_MemoryType *actual, int64_t *actual_id)
{
    assert_int_equal(*actual, type);        /* pre-filled: as asked          */
    assert_int_equal(*actual_id, id);
    note("alloc;");
    return on_alloc(a, name, size, type, id, userp, buffer, buffer_userp,
        actual, actual_id);
}

static TRITONSERVER_Error *
noted_attributes(TRITONSERVER_ResponseAllocator *a, const char *name,
    TRITONSERVER_BufferAttributes *attributes, void *userp,
    void *buffer_userp)
{
    unsigned char handle[64] = { 1 };
    (void) a;
    assert_string_equal(name, "OUTPUT0");
    assert_ptr_equal(userp, buffer_userp);
    note("attributes;");
    return TRITONSERVER_BufferAttributesSetCudaIpcHandle(attributes, handle);
}

static TRITONSERVER_Error *
release_fails(TRITONSERVER_ResponseAllocator *a, void *buffer,
    void *buffer_userp, size_t size, TRITONSERVER_MemoryType type, int64_t id)
{
    note("release;");
    succeeds(on_release_buffer(a, buffer, buffer_userp, size, type, id));
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL,
        "only logged: an error of release on purpose");
}

static void
an_allocator_is_called_in_order(void **state)
{
    (void) state;
    TRITONSERVER_ResponseAllocator *a;
    const int64_t none[2] = { 1, 0 };
    shot_t shot;

    succeeds(TRITONSERVER_ResponseAllocatorNew(&a, noted_alloc,
        release_fails, start_fails));
    succeeds(TRITONSERVER_ResponseAllocatorSetBufferAttributesFunction(a,
        noted_attributes));
    make_shot(&shot, "echo", "INPUT0", true);
    succeeds(TRITONSERVER_InferenceRequestSetResponseCallback(shot.request,
        a, &shot, on_response, &shot));
    calls[0] = '\0';
    submit(&shot);
    wait_for(&shot);
    assert_string_equal(calls, "start;alloc;attributes;");
    drop_responses(&shot);
    assert_string_equal(calls, "start;alloc;attributes;release;");

    /* a NULL buffer is legal and is not released */
    succeeds(TRITONSERVER_InferenceRequestRemoveAllInputs(shot.request));
    succeeds(TRITONSERVER_InferenceRequestAddInput(shot.request, "INPUT0",
        TRITONSERVER_TYPE_FP32, none, 2));
    calls[0] = '\0';
    submit(&shot);
    wait_for(&shot);
    drop_responses(&shot);
    assert_string_equal(calls, "start;alloc;attributes;");
    succeeds(TRITONSERVER_InferenceRequestDelete(shot.request));
    succeeds(TRITONSERVER_ResponseAllocatorDelete(a));
}

/* 10 */
static void
delete_on_release(TRITONSERVER_InferenceRequest *request,
    const uint32_t flags, void *userp)
{
    (void) flags;
    succeeds(TRITONSERVER_InferenceRequestDelete(request));
    pthread_mutex_lock(&lock);
    ((shot_t *) userp)->released++;
    pthread_cond_broadcast(&arrived);
    pthread_mutex_unlock(&lock);
}

static void
submit_on_release(TRITONSERVER_InferenceRequest *request,
    const uint32_t flags, void *userp)
{
    shot_t *shot = userp;
    (void) flags;
    if (shot->starts < SHOT_RESPONSES) {
        succeeds(TRITONSERVER_ServerInferAsync(world.server, request, NULL));
        return;
    }
    pthread_mutex_lock(&lock);
    shot->released++;
    pthread_cond_broadcast(&arrived);
    pthread_mutex_unlock(&lock);
}

static void
a_release_callback_may_delete_or_submit_again(void **state)
{
    (void) state;
    shot_t shot;

    make_shot(&shot, "echo", "INPUT0", true);
    succeeds(TRITONSERVER_InferenceRequestSetReleaseCallback(shot.request,
        delete_on_release, &shot));
    submit(&shot);
    wait_for(&shot);
    drop_responses(&shot);

    make_shot(&shot, "echo", "INPUT0", true);
    succeeds(TRITONSERVER_InferenceRequestSetReleaseCallback(shot.request,
        submit_on_release, &shot));
    submit(&shot);
    wait_for(&shot);
    assert_int_equal(shot.finals, SHOT_RESPONSES);
    drop_responses(&shot);
    succeeds(TRITONSERVER_InferenceRequestDelete(shot.request));
}

static void
rejected(shot_t *shot, const char *text)
{
    fails(TRITONSERVER_ServerInferAsync(world.server, shot->request, NULL),
        TRITONSERVER_ERROR_INVALID_ARG, text);
    assert_int_equal(shot->calls, 0);
    assert_int_equal(shot->released, 0);
}

static void
add(shot_t *shot, const char *name, TRITONSERVER_DataType type,
    const int64_t *shape, uint64_t dims, const void *data, size_t size)
{
    succeeds(TRITONSERVER_InferenceRequestAddInput(shot->request, name, type,
        shape, dims));
    succeeds(TRITONSERVER_InferenceRequestAppendInputData(shot->request,
        name, data, size, TRITONSERVER_MEMORY_CPU, 0));
}

static void
shapes_and_batches_are_checked_at_submit(void **state)
{
    (void) state;
    static const float data[64];
    const int64_t one[2] = { 1, 4 }, two[2] = { 2, 4 }, zero[2] = { 0, 4 };
    const int64_t pair[3] = { 1, 2, 2 }, wrong[3] = { 1, 2, 3 };
    const int64_t wild[3] = { 1, -1, 2 };
    shot_t shot;

    make_shot(&shot, "pair", "INPUT0", true);
    TRITONSERVER_InferenceRequest *r = shot.request;
    rejected(&shot, "missing required input(s) ['INPUT1']");
    add(&shot, "INPUT1", TRITONSERVER_TYPE_FP32, wild, 3, data, 16);
    rejected(&shot, "All input dimensions should be specified");
    succeeds(TRITONSERVER_InferenceRequestRemoveInput(r, "INPUT1"));
    add(&shot, "INPUT1", TRITONSERVER_TYPE_FP32, wrong, 3, data, 24);
    rejected(&shot, "unexpected shape for input 'INPUT1'");
    succeeds(TRITONSERVER_InferenceRequestRemoveInput(r, "INPUT1"));
    add(&shot, "INPUT1", TRITONSERVER_TYPE_FP32, pair, 3, data, 12);
    rejected(&shot, "byte size mismatch");
    succeeds(TRITONSERVER_InferenceRequestRemoveInput(r, "INPUT1"));
    add(&shot, "INPUT1", TRITONSERVER_TYPE_FP32, pair, 3, data, 16);
    add(&shot, "INPUT2", TRITONSERVER_TYPE_FP32, pair, 3, data, 16);
    rejected(&shot, "INPUT2");
    succeeds(TRITONSERVER_InferenceRequestRemoveInput(r, "INPUT2"));

    succeeds(TRITONSERVER_InferenceRequestRemoveInput(r, "INPUT0"));
    add(&shot, "INPUT0", TRITONSERVER_TYPE_FP32, two, 2, data, 32);
    rejected(&shot, "batch size does not match");
    succeeds(TRITONSERVER_InferenceRequestRemoveInput(r, "INPUT0"));
    add(&shot, "INPUT0", TRITONSERVER_TYPE_FP32, zero, 2, data, 0);
    rejected(&shot, "batch-size must be >= 1");
    succeeds(TRITONSERVER_InferenceRequestRemoveInput(r, "INPUT0"));
    add(&shot, "INPUT0", TRITONSERVER_TYPE_FP32, one, 0, data, 0);
    rejected(&shot, "has no shape");
    succeeds(TRITONSERVER_InferenceRequestRemoveInput(r, "INPUT0"));
    add(&shot, "INPUT0", TRITONSERVER_TYPE_FP32, one, 2, data, 16);

    /* data of a host policy is not checked; zero size adds no buffer */
    succeeds(TRITONSERVER_InferenceRequestAppendInputDataWithHostPolicy(r,
        "INPUT0", data, 3, TRITONSERVER_MEMORY_CPU, 0, "elsewhere"));
    succeeds(TRITONSERVER_InferenceRequestAppendInputData(r, "INPUT0", data,
        0, TRITONSERVER_MEMORY_CPU, 0));
    submit(&shot);
    wait_for(&shot);
    drop_responses(&shot);
    succeeds(TRITONSERVER_InferenceRequestDelete(r));
}

static void
strings_are_counted_at_submit(void **state)
{
    (void) state;
    static const char good[] = "\3\0\0\0one\0\0\0\0";
    static const char cut[] = "\3\0\0\0on";
    const int64_t two[1] = { 2 };
    shot_t shot;

    make_shot(&shot, "words", "INPUT0", false);
    rejected(&shot, "data-type is 'FP32'");
    TRITONSERVER_InferenceRequest *r = shot.request;
    succeeds(TRITONSERVER_InferenceRequestRemoveAllInputs(r));
    add(&shot, "INPUT0", TRITONSERVER_TYPE_BYTES, two, 1, good, 7);
    rejected(&shot, "expected 2 string elements");
    succeeds(TRITONSERVER_InferenceRequestRemoveAllInputData(r, "INPUT0"));
    succeeds(TRITONSERVER_InferenceRequestAppendInputData(r, "INPUT0", cut,
        6, TRITONSERVER_MEMORY_CPU, 0));
    rejected(&shot, "incomplete string data");

    /* a length in two buffers is rejected, a text in two is not */
    succeeds(TRITONSERVER_InferenceRequestRemoveAllInputData(r, "INPUT0"));
    succeeds(TRITONSERVER_InferenceRequestAppendInputData(r, "INPUT0", good,
        9, TRITONSERVER_MEMORY_CPU, 0));
    succeeds(TRITONSERVER_InferenceRequestAppendInputData(r, "INPUT0",
        good + 9, 2, TRITONSERVER_MEMORY_CPU, 0));
    rejected(&shot, "incomplete string length");
    succeeds(TRITONSERVER_InferenceRequestRemoveAllInputData(r, "INPUT0"));
    succeeds(TRITONSERVER_InferenceRequestAppendInputData(r, "INPUT0", good,
        5, TRITONSERVER_MEMORY_CPU, 0));
    succeeds(TRITONSERVER_InferenceRequestAppendInputData(r, "INPUT0",
        good + 5, 6, TRITONSERVER_MEMORY_CPU, 0));
    submit(&shot);
    wait_for(&shot);
    drop_responses(&shot);
    succeeds(TRITONSERVER_InferenceRequestDelete(r));
}

static void
output_of(const shot_t *shot, const void **base, size_t *size,
    int64_t *first_dim)
{
    const char *name;
    TRITONSERVER_DataType type;
    const int64_t *shape;
    uint64_t dims;
    TRITONSERVER_MemoryType memory;
    int64_t id;
    void *userp;

    succeeds(TRITONSERVER_InferenceResponseOutput(shot->list[0], 0, &name,
        &type, &shape, &dims, base, size, &memory, &id, &userp));
    assert_ptr_equal(userp, shot);          /* exactly what alloc gave       */
    assert_string_equal(name, "OUTPUT0");
    *first_dim = shape[0];
}

static void
a_raw_input_needs_a_model_with_one(void **state)
{
    (void) state;
    const void *base;
    size_t size;
    int64_t dim;
    shot_t shot;

    make_shot(&shot, "word", "INPUT0", false);
    TRITONSERVER_InferenceRequest *r = shot.request;
    fails(TRITONSERVER_InferenceRequestAddRawInput(r, "raw"),
        TRITONSERVER_ERROR_INVALID_ARG, "other inputs");
    succeeds(TRITONSERVER_InferenceRequestRemoveAllInputs(r));
    succeeds(TRITONSERVER_InferenceRequestAddRawInput(r, "raw"));
    succeeds(TRITONSERVER_InferenceRequestAppendInputData(r, "raw", "hello",
        5, TRITONSERVER_MEMORY_CPU, 0));
    submit(&shot);
    wait_for(&shot);
    output_of(&shot, &base, &size, &dim);   /* its length was put before it  */
    assert_int_equal(size, 9);
    assert_memory_equal(base, "\5\0\0\0hello", 9);
    assert_int_equal(dim, 1);
    drop_responses(&shot);
    succeeds(TRITONSERVER_InferenceRequestDelete(r));

    make_shot(&shot, "square", "INPUT0", false);
    succeeds(TRITONSERVER_InferenceRequestRemoveAllInputs(shot.request));
    succeeds(TRITONSERVER_InferenceRequestAddRawInput(shot.request, "raw"));
    rejected(&shot, "more than one variable-sized dimension");
    succeeds(TRITONSERVER_InferenceRequestDelete(shot.request));
    make_shot(&shot, "pair", "INPUT0", true);
    succeeds(TRITONSERVER_InferenceRequestRemoveAllInputs(shot.request));
    succeeds(TRITONSERVER_InferenceRequestAddRawInput(shot.request, "raw"));
    rejected(&shot, "Raw request must only have 1 input");
    succeeds(TRITONSERVER_InferenceRequestDelete(shot.request));
}

static void
priorities_are_those_of_the_model(void **state)
{
    (void) state;
    static const uint64_t sent[] = { 0, 1, 5, 6, UINT64_MAX };
    static const uint64_t kept[] = { 2, 1, 5, 2, 2 };
    uint64_t priority = 0;
    uint32_t narrow = 0;
    shot_t shot;

    make_shot(&shot, "levels", "INPUT0", true);
    succeeds(TRITONSERVER_InferenceRequestPriority(shot.request, &narrow));
    assert_int_equal(narrow, 2);        /* of a request that was given none  */
    for (size_t i = 0; i < 5; i++) {
        succeeds(TRITONSERVER_InferenceRequestSetPriorityUInt64(shot.request,
            sent[i]));
        succeeds(TRITONSERVER_InferenceRequestPriorityUInt64(shot.request,
            &priority));
        assert_int_equal(priority, kept[i]);
    }
    succeeds(TRITONSERVER_InferenceRequestSetPriority(shot.request, 4));
    succeeds(TRITONSERVER_InferenceRequestPriority(shot.request, &narrow));
    assert_int_equal(narrow, 4);
    submit(&shot);
    wait_for(&shot);
    drop_responses(&shot);
    succeeds(TRITONSERVER_InferenceRequestDelete(shot.request));
}

/* 6, 11: an ordered list; the same name twice keeps both */
static void
parameters_come_back_in_their_order(void **state)
{
    (void) state;
    static const char *const names[] = { "a", "n", "b", "d", "a" };
    TRITONSERVER_ParameterType type;
    const char *name;
    const void *value;
    uint32_t count = 0;
    shot_t shot;

    make_shot(&shot, "echo", "INPUT0", true);
    TRITONSERVER_InferenceRequest *r = shot.request;
    succeeds(TRITONSERVER_InferenceRequestSetStringParameter(r, "a", "x"));
    succeeds(TRITONSERVER_InferenceRequestSetIntParameter(r, "n", -7));
    succeeds(TRITONSERVER_InferenceRequestSetBoolParameter(r, "b", true));
    succeeds(TRITONSERVER_InferenceRequestSetDoubleParameter(r, "d", 1.5));
    succeeds(TRITONSERVER_InferenceRequestSetStringParameter(r, "a", ""));
    fails(TRITONSERVER_InferenceRequestSetStringParameter(r, "s", NULL),
        TRITONSERVER_ERROR_INVALID_ARG, "string parameter 's' has no value");
    fails(TRITONSERVER_InferenceRequestSetIntParameter(r, NULL, 1),
        TRITONSERVER_ERROR_INVALID_ARG, "no name");
    fails(TRITONSERVER_InferenceRequestSetCorrelationIdString(r, NULL),
        TRITONSERVER_ERROR_INVALID_ARG, "NULL");
    for (int round = 0; round < 2; round++) {       /* they persist          */
        submit(&shot);
        wait_for(&shot);
        succeeds(TRITONSERVER_InferenceResponseParameterCount(shot.list[0],
            &count));
        assert_int_equal(count, 5);
        for (uint32_t i = 0; i < 5; i++) {
            succeeds(TRITONSERVER_InferenceResponseParameter(shot.list[0], i,
                &name, &type, &value));
            assert_string_equal(name, names[i]);
        }
        assert_string_equal(value, "");
        succeeds(TRITONSERVER_InferenceResponseParameter(shot.list[0], 1,
            &name, &type, &value));
        assert_int_equal(type, TRITONSERVER_PARAMETER_INT);
        assert_int_equal(*(const int64_t *) value, -7);
        drop_responses(&shot);
    }
    succeeds(TRITONSERVER_InferenceRequestDelete(r));
}

/* 11 */
static void
responses_say_whose_they_are(void **state)
{
    (void) state;
    const char *text = NULL;
    int64_t version = 0, id, *shape;
    TRITONSERVER_DataType datatype;
    TRITONSERVER_MemoryType memory;
    uint64_t dims;
    size_t size;
    void *userp;
    shot_t shot;

    make_shot(&shot, "echo", "INPUT0", true);
    submit(&shot);
    wait_for(&shot);
    succeeds(TRITONSERVER_InferenceResponseId(shot.list[0], &text));
    assert_string_equal(text, "");
    succeeds(TRITONSERVER_InferenceResponseModel(shot.list[0], &text,
        &version));
    assert_string_equal(text, "echo");
    assert_int_equal(version, 1);
    fails(TRITONSERVER_InferenceResponseOutput(shot.list[0], 1, &text,
        &datatype, (const int64_t **) &shape, &dims, (const void **) &userp,
        &size, &memory, &id, &userp), TRITONSERVER_ERROR_INVALID_ARG,
        "index 1");
    succeeds(TRITONSERVER_InferenceResponseOutputClassificationLabel(
        shot.list[0], 0, 0, &text));
    assert_null(text);                      /* the model has none            */
    drop_responses(&shot);

    /* what is set now counts for the next run, not for the last response */
    submit(&shot);
    wait_for(&shot);
    succeeds(TRITONSERVER_InferenceRequestSetId(shot.request, "later"));
    succeeds(TRITONSERVER_InferenceResponseId(shot.list[0], &text));
    assert_string_equal(text, "");
    drop_responses(&shot);
    succeeds(TRITONSERVER_InferenceRequestDelete(shot.request));
}

/* 15 */
static void
messages_have_the_shapes_that_front_ends_read(void **state)
{
    (void) state;
    TRITONSERVER_Message *m;
    uint32_t flags = 0;
    void *voidp = &flags;
    shot_t shot;

    succeeds(TRITONSERVER_ServerMetadata(world.server, &m));
    expect_json(m, "{\"name\":\"client-test\",\"version\":\"");
    succeeds(TRITONSERVER_ServerMetadata(world.server, &m));
    expect_json(m, ",\"extensions\":[\"");
    succeeds(TRITONSERVER_ServerModelMetadata(world.server, "pair", 1, &m));
    expect_json(m, "{\"name\":\"pair\",\"versions\":[\"1\"],\"platform\":"
        "\"identity\",\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"FP32\","
        "\"shape\":[-1,4]},{\"name\":\"INPUT1\",\"datatype\":\"FP32\","
        "\"shape\":[-1,-1,2]}],\"outputs\":[{\"name\":\"OUTPUT0\","
        "\"datatype\":\"FP32\",\"shape\":[-1,4]}]}");
    fails(TRITONSERVER_ServerModelMetadata(world.server, "pair", 2, &m),
        TRITONSERVER_ERROR_NOT_FOUND, "version 2");
    succeeds(TRITONSERVER_ServerModelIndex(world.server, 0, &m));
    expect_json(m, "[{\"name\":\"apart\",\"version\":\"1\",\"state\":"
        "\"READY\"},{\"name\":\"echo\",\"version\":\"1\",\"state\":\"READY\""
        "},");
    succeeds(TRITONSERVER_ServerModelTransactionProperties(world.server,
        "apart", -1, &flags, &voidp));
    assert_int_equal(flags, TRITONSERVER_TXN_DECOUPLED);
    assert_null(voidp);

    make_shot(&shot, "square", "INPUT0", false);
    succeeds(TRITONSERVER_InferenceRequestRemoveAllInputs(shot.request));
    const int64_t square[2] = { 2, 2 };
    add(&shot, "INPUT0", TRITONSERVER_TYPE_FP32, square, 2, shot.data, 16);
    submit(&shot);
    wait_for(&shot);
    drop_responses(&shot);
    succeeds(TRITONSERVER_InferenceRequestDelete(shot.request));
    succeeds(TRITONSERVER_ServerModelStatistics(world.server, "square", -1,
        &m));
    expect_json(m, "\"inference_count\":1,\"execution_count\":1,"
        "\"inference_stats\":{\"success\":{\"count\":1,\"ns\":");
    succeeds(TRITONSERVER_ServerModelStatistics(world.server, "square", -1,
        &m));
    expect_json(m, "},\"cache_miss\":{\"count\":0,\"ns\":0}},"
        "\"batch_stats\":[{\"batch_size\":1,"
        "\"compute_input\":{\"count\":1,");
    succeeds(TRITONSERVER_ServerModelStatistics(world.server, "square", -1,
        &m));
    expect_json(m, "}}],\"memory_usage\":[],\"response_stats\":{}}]}");
}

/* 13 */
static void
on_activity(TRITONSERVER_InferenceTrace *trace,
    TRITONSERVER_InferenceTraceActivity activity, uint64_t timestamp_ns,
    void *userp)
{
    (void) trace;
    (void) timestamp_ns;
    (void) userp;
    note(TRITONSERVER_InferenceTraceActivityString(activity));
    note(";");
}

static void
on_trace_release(TRITONSERVER_InferenceTrace *trace, void *userp)
{
    succeeds(TRITONSERVER_InferenceTraceDelete(trace));
    pthread_mutex_lock(&lock);
    (*(int *) userp)++;
    pthread_cond_broadcast(&arrived);
    pthread_mutex_unlock(&lock);
}

static void
a_trace_is_taken_only_by_a_submit(void **state)
{
    (void) state;
    TRITONSERVER_InferenceTrace *trace, *child;
    uint64_t id = 0, parent = 0;
    const char *text;
    int released = 0;
    shot_t shot;

    succeeds(TRITONSERVER_InferenceTraceNew(&trace,
        TRITONSERVER_TRACE_LEVEL_MAX, 0, on_activity, on_trace_release,
        &released));
    succeeds(TRITONSERVER_InferenceTraceParentId(trace, &parent));
    assert_int_equal(parent, 0);
    succeeds(TRITONSERVER_InferenceTraceContext(trace, &text));
    assert_string_equal(text, "");
    succeeds(TRITONSERVER_InferenceTraceSpawnChildTrace(trace, &child));
    succeeds(TRITONSERVER_InferenceTraceId(trace, &id));
    succeeds(TRITONSERVER_InferenceTraceParentId(child, &parent));
    assert_int_equal(parent, id);

    make_shot(&shot, "echo", "INPUT0", true);
    calls[0] = '\0';
    succeeds(TRITONSERVER_ServerInferAsync(world.server, shot.request,
        child));
    wait_for(&shot);
    drop_responses(&shot);
    pthread_mutex_lock(&lock);
    while (released == 0) {
        pthread_cond_wait(&arrived, &lock);
    }
    pthread_mutex_unlock(&lock);
    assert_string_equal(calls, "REQUEST_START;QUEUE_START;COMPUTE_START;"
        "COMPUTE_INPUT_END;COMPUTE_OUTPUT_START;COMPUTE_END;REQUEST_END;");
    assert_int_equal(released, 1);
    succeeds(TRITONSERVER_InferenceTraceDelete(trace));     /* still ours    */
    assert_int_equal(released, 1);
    succeeds(TRITONSERVER_InferenceRequestDelete(shot.request));
}

/* 12, 14, 15: another server in this process */
static void
a_stopped_server_takes_nothing_more(void **state)
{
    (void) state;
    TRITONSERVER_ServerOptions *o = options(true);
    TRITONSERVER_Server *first = world.server, *second;
    TRITONSERVER_InferenceTrace *trace;
    TRITONSERVER_InferenceRequest *none = NULL;
    TRITONSERVER_Metrics *metrics;
    TRITONSERVER_Message *m;
    const char *text;
    size_t size;
    bool yes = true;
    int released = 0;
    shot_t shot;

    succeeds(TRITONSERVER_ServerNew(&second, o));
    succeeds(TRITONSERVER_ServerOptionsDelete(o));
    world.server = second;
    make_shot(&shot, "echo", "INPUT0", true);
    submit(&shot);
    wait_for(&shot);
    succeeds(TRITONSERVER_ServerSetExitTimeout(second, 0));
    fails(TRITONSERVER_ServerStop(second), TRITONSERVER_ERROR_INTERNAL,
        "Exit timeout expired");
    fails(TRITONSERVER_ServerIsLive(second, &yes),
        TRITONSERVER_ERROR_UNAVAILABLE, "Server exiting");
    fails(TRITONSERVER_ServerIsReady(second, &yes),
        TRITONSERVER_ERROR_UNAVAILABLE, "Server exiting");
    assert_false(yes);
    fails(TRITONSERVER_ServerModelIsReady(second, "echo", -1, &yes),
        TRITONSERVER_ERROR_UNAVAILABLE, "Server not ready");
    fails(TRITONSERVER_ServerModelIndex(second, 0, &m),
        TRITONSERVER_ERROR_UNAVAILABLE, "Server not ready");
    fails(TRITONSERVER_ServerModelStatistics(second, "", -1, &m),
        TRITONSERVER_ERROR_UNAVAILABLE, "Server not ready");
    fails(TRITONSERVER_ServerLoadModel(second, "echo"),
        TRITONSERVER_ERROR_UNAVAILABLE, "Server not ready");
    fails(TRITONSERVER_ServerUnloadModel(second, "echo"),
        TRITONSERVER_ERROR_UNAVAILABLE, "Server not ready");

    /* the checks have passed: from there the core owns the trace */
    succeeds(TRITONSERVER_InferenceTraceNew(&trace,
        TRITONSERVER_TRACE_LEVEL_TIMESTAMPS, 0, on_activity,
        on_trace_release, &released));
    fails(TRITONSERVER_ServerInferAsync(second, shot.request, trace),
        TRITONSERVER_ERROR_UNAVAILABLE, "stop");
    assert_int_equal(released, 1);
    assert_int_equal(shot.finals, 1);

    TRITONSERVER_Error *err = TRITONSERVER_InferenceRequestNew(&none, second,
        "echo", -1);
    assert_non_null(err);
    assert_null(none);
    TRITONSERVER_ErrorDelete(err);
    drop_responses(&shot);
    succeeds(TRITONSERVER_InferenceRequestDelete(shot.request));
    succeeds(TRITONSERVER_ServerSetExitTimeout(second, 10));
    succeeds(TRITONSERVER_ServerStop(second));
    succeeds(TRITONSERVER_ServerStop(second));
    succeeds(TRITONSERVER_ServerMetrics(second, &metrics));
    succeeds(TRITONSERVER_ServerDelete(second));
    world.server = first;

    succeeds(TRITONSERVER_MetricsFormatted(metrics,
        TRITONSERVER_METRIC_PROMETHEUS, &text, &size));
    assert_null(strstr(text, "nv_pinned_memory_pool_total_bytes"));
    succeeds(TRITONSERVER_MetricsDelete(metrics));
}

static void
options_begin_as_documented(void **state)
{
    (void) state;
    TRITONSERVER_ServerOptions *o;
    TRITONSERVER_Server *s = NULL;
    TRITONSERVER_Message *m;
    char backends[512];

    snprintf(backends, sizeof(backends), "%s/backends", world.build);
    succeeds(TRITONSERVER_ServerOptionsNew(&o));
    succeeds(TRITONSERVER_ServerOptionsSetModelRepositoryPath(o,
        world.repository));
    succeeds(TRITONSERVER_ServerOptionsSetModelRepositoryPath(o,
        world.repository));             /* a set                             */
    succeeds(TRITONSERVER_ServerOptionsSetBackendDirectory(o, backends));
    succeeds(TRITONSERVER_ServerNew(&s, o));
    succeeds(TRITONSERVER_ServerOptionsDelete(o));  /* no longer needed      */
    succeeds(TRITONSERVER_ServerMetadata(s, &m));
    expect_json(m, "{\"name\":\"triton\",");
    fails(TRITONSERVER_ServerLoadModel(s, "echo"),
        TRITONSERVER_ERROR_UNAVAILABLE, "polling is enabled");
    succeeds(TRITONSERVER_ServerDelete(s));

    /* exit_on_error */
    make_model("broken", "backend: 'nobody'\n" ECHO("INPUT0", "FP32"));
    o = options(true);
    succeeds(TRITONSERVER_ServerOptionsSetExitOnError(o, true));
    s = (void *) o;
    fails(TRITONSERVER_ServerNew(&s, o), TRITONSERVER_ERROR_INTERNAL,
        "failed to load all models");
    assert_null(s);
    succeeds(TRITONSERVER_ServerOptionsSetExitOnError(o, false));
    succeeds(TRITONSERVER_ServerNew(&s, o));
    bool ready = true;
    succeeds(TRITONSERVER_ServerIsReady(s, &ready));
    assert_false(ready);                    /* strict readiness              */
    succeeds(TRITONSERVER_ServerIsLive(s, &ready));
    assert_true(ready);
    succeeds(TRITONSERVER_ServerDelete(s));
    succeeds(TRITONSERVER_ServerOptionsDelete(o));
    remove_model("broken");

    /* a repository that is not there */
    o = options(true);
    succeeds(TRITONSERVER_ServerOptionsSetModelRepositoryPath(o,
        "/nowhere/at/all"));
    succeeds(TRITONSERVER_ServerOptionsSetExitOnError(o, true));
    s = (void *) o;
    fails(TRITONSERVER_ServerNew(&s, o), TRITONSERVER_ERROR_INTERNAL,
        "model repository '/nowhere/at/all': failed to open directory");
    assert_null(s);
    succeeds(TRITONSERVER_ServerOptionsSetExitOnError(o, false));
    succeeds(TRITONSERVER_ServerNew(&s, o));
    succeeds(TRITONSERVER_ServerIsReady(s, &ready));
    assert_false(ready);
    succeeds(TRITONSERVER_ServerModelIsReady(s, "echo", -1, &ready));
    assert_true(ready);                     /* of the other repository       */
    succeeds(TRITONSERVER_ServerDelete(s));
    succeeds(TRITONSERVER_ServerOptionsDelete(o));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_have_a_code_a_word_and_a_text),
        cmocka_unit_test(datatypes_have_the_names_of_the_wire),
        cmocka_unit_test(log_lines_have_a_level_that_may_be_off),
        cmocka_unit_test(metrics_follow_their_kind),
        cmocka_unit_test(histograms_observe_and_nothing_else),
        cmocka_unit_test(an_allocator_is_called_in_order),
        cmocka_unit_test(a_release_callback_may_delete_or_submit_again),
        cmocka_unit_test(shapes_and_batches_are_checked_at_submit),
        cmocka_unit_test(strings_are_counted_at_submit),
        cmocka_unit_test(a_raw_input_needs_a_model_with_one),
        cmocka_unit_test(priorities_are_those_of_the_model),
        cmocka_unit_test(parameters_come_back_in_their_order),
        cmocka_unit_test(responses_say_whose_they_are),
        cmocka_unit_test(messages_have_the_shapes_that_front_ends_read),
        cmocka_unit_test(a_trace_is_taken_only_by_a_submit),
        cmocka_unit_test(a_stopped_server_takes_nothing_more),
        cmocka_unit_test(options_begin_as_documented),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
