/* Ensembles through the C API, with real backends: streams, the allocator's
   callbacks, cancels. */

#include "abi/client_fixture.h"

#include "core/sched/ensemble_pause.h"

#define LONG 300                    /* responses of a stream                 */

typedef struct {
    TRITONSERVER_InferenceRequest *request;
    int32_t                        numbers[LONG];
    uint32_t                       delays[LONG];
    uint32_t                       wait;
    int32_t                        got[LONG];
    int                            count;
    int                            errors;
    int                            finals;
    int                            released;
    int                            starts;
    int                            buffers;
    int                            after_final;
    char                           error[256];
    pthread_t                      told_by;
} stream_t;

static TRITONSERVER_ResponseAllocator *stream_allocator;
static TRITONSERVER_ResponseAllocator *counting_allocator;

static const char ends[] =
    "platform: \"ensemble\"\n"
    "input [ { name: \"IN\" data_type: TYPE_INT32 dims: [ -1 ] },"
    " { name: \"DELAY\" data_type: TYPE_UINT32 dims: [ -1 ] },"
    " { name: \"WAIT\" data_type: TYPE_UINT32 dims: [ 1 ] } ]\n"
    "output [ { name: \"OUT\" data_type: TYPE_INT32 dims: [ 1 ] } ]\n";

#define STEP(model, ins, outs) " step { model_name: \"" model                 \
    "\" model_version: -1" ins outs " }"
#define FROM(key, value) " input_map { key: \"" key "\" value: \"" value      \
    "\" }"
#define TO(key, value) " output_map { key: \"" key "\" value: \"" value "\" }"
#define REPEAT STEP("repeat", FROM("IN", "IN") FROM("DELAY", "DELAY")         \
    FROM("WAIT", "WAIT"), TO("OUT", "m"))

static void
put_library(const char *model, const char *folder, const char *backend)
{
    char command[1024];
    snprintf(command, sizeof(command), "cp '%s/%s/%s/libtriton_%s.so'"
        " '%s/%s/'", world.build, folder, backend, backend, world.repository,
        model);
    assert_int_equal(system(command), 0);
}

static void
make_ensemble(const char *name, const char *config_ends, const char *rest)
{
    char config[4096];
    snprintf(config, sizeof(config), "%s ensemble_scheduling { %s }",
        config_ends, rest);
    make_model(name, config);
}

static void
identity(const char *name, const char *delay, const char *instances)
{
    char config[1024];
    snprintf(config, sizeof(config), "backend: \"identity\"\n"
        "input { name: \"IN\" data_type: TYPE_INT32 dims: [ 1 ] }\n"
        "output { name: \"OUT\" data_type: TYPE_INT32 dims: [ 1 ] }\n"
        "instance_group [ { count: %s kind: KIND_CPU } ]\n"
        "parameters { key: \"execute_delay_ms\" value { string_value: \"%s\""
        " } }", instances, delay);
    make_model(name, config);
    put_library(name, "backends", "identity");
}

/* Tensors of no elements, and who makes them: two models, and ensembles of
   them whose outputs lie in the client's memory or in the core's at first. */
static void
make_empty_models(void)
{
    static const char in[] =
        "input { name: \"IN\" data_type: TYPE_INT32 dims: [ -1 ] }\n";
    static const char out[] =
        "output { name: \"OUT\" data_type: TYPE_INT32 dims: [ -1 ] }\n";
    char config[512];

    for (int i = 0; i < 2; i++) {
        const char *backend = i == 0 ? "identity" : "unplaced";
        snprintf(config, sizeof(config), "backend: \"%s\"\n%s%s", backend,
            in, out);
        make_model(i == 0 ? "any" : "unplaced", config);
    }
    put_library("any", "backends", "identity");
    put_library("unplaced", "t-backends", "unplaced");

    snprintf(config, sizeof(config), "platform: \"ensemble\"\n%s%s", in, out);
    make_ensemble("one_step", config,
        STEP("any", FROM("IN", "IN"), TO("OUT", "OUT")));
    make_ensemble("one_unplaced", config,
        STEP("unplaced", FROM("IN", "IN"), TO("OUT", "OUT")));
    snprintf(config, sizeof(config), "platform: \"ensemble\"\n%s output ["
        " { name: \"A\" data_type: TYPE_INT32 dims: [ -1 ] },"
        " { name: \"OUT\" data_type: TYPE_INT32 dims: [ -1 ] } ]\n", in);
    make_ensemble("two_steps", config,
        STEP("any", FROM("IN", "IN"), TO("OUT", "A"))
        STEP("any", FROM("IN", "A"), TO("OUT", "OUT")));
}

static void
make_models(void)
{
    make_empty_models();
    make_model("repeat", "backend: \"repeat\"\n"
        "model_transaction_policy { decoupled: true }\n"
        "input [ { name: \"IN\" data_type: TYPE_INT32 dims: [ -1 ] },"
        " { name: \"DELAY\" data_type: TYPE_UINT32 dims: [ -1 ] },"
        " { name: \"WAIT\" data_type: TYPE_UINT32 dims: [ 1 ] } ]\n"
        "output [ { name: \"OUT\" data_type: TYPE_INT32 dims: [ 1 ] },"
        " { name: \"IDX\" data_type: TYPE_UINT32 dims: [ 1 ] } ]");
    put_library("repeat", "t-backends", "repeat");
    make_model("square", "backend: \"square\"\n"
        "model_transaction_policy { decoupled: true }\n"
        "input { name: \"IN\" data_type: TYPE_INT32 dims: [ 1 ] }\n"
        "output { name: \"OUT\" data_type: TYPE_INT32 dims: [ 1 ] }");
    put_library("square", "t-backends", "square");
    identity("id", "0", "4");
    identity("slow", "2", "1");

    make_ensemble("line", ends, REPEAT
        STEP("id", FROM("IN", "m"), TO("OUT", "OUT")));
    make_ensemble("paced", ends, "max_inflight_requests: 2" REPEAT
        STEP("slow", FROM("IN", "m"), TO("OUT", "OUT")));
    make_ensemble("nested", ends, REPEAT
        STEP("square", FROM("IN", "m"), TO("OUT", "n"))
        STEP("id", FROM("IN", "n"), TO("OUT", "OUT")));
    make_ensemble("single", "platform: \"ensemble\"\n"
        "input { name: \"IN\" data_type: TYPE_INT32 dims: [ 1 ] }\n"
        "output [ { name: \"A\" data_type: TYPE_INT32 dims: [ 1 ] },"
        " { name: \"OUT\" data_type: TYPE_INT32 dims: [ 1 ] } ]\n",
        STEP("id", FROM("IN", "IN"), TO("OUT", "A"))
        STEP("slow", FROM("IN", "A"), TO("OUT", "OUT")));
}

static TRITONSERVER_Error *
stream_start(TRITONSERVER_ResponseAllocator *a, void *userp)
{
    (void) a;
    pthread_mutex_lock(&lock);
    ((stream_t *) userp)->starts++;
    pthread_mutex_unlock(&lock);
    return NULL;
}

static TRITONSERVER_Error *
stream_alloc(TRITONSERVER_ResponseAllocator *a, const char *name, size_t size,
    TRITONSERVER_MemoryType type, int64_t id, void *userp, void **buffer,
    void **buffer_userp, TRITONSERVER_MemoryType *actual, int64_t *actual_id)
{
    (void) a;
    (void) type;
    (void) id;
    assert_true(strcmp(name, "OUT") == 0 || strcmp(name, "A") == 0);
    *buffer = malloc(size + 1);
    *buffer_userp = userp;
    *actual = TRITONSERVER_MEMORY_CPU;
    *actual_id = 0;
    pthread_mutex_lock(&lock);
    ((stream_t *) userp)->buffers++;
    pthread_mutex_unlock(&lock);
    return NULL;
}

static TRITONSERVER_Error *
stream_free(TRITONSERVER_ResponseAllocator *a, void *buffer, void *userp,
    size_t size, TRITONSERVER_MemoryType type, int64_t id)
{
    (void) a;
    (void) size;
    (void) type;
    (void) id;
    free(buffer);
    pthread_mutex_lock(&lock);
    ((stream_t *) userp)->buffers--;
    pthread_cond_broadcast(&arrived);
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void
stream_response(TRITONSERVER_InferenceResponse *response, const uint32_t flags,
    void *userp)
{
    stream_t *s = userp;
    TRITONSERVER_Error *err = response == NULL ? NULL
        : TRITONSERVER_InferenceResponseError(response);
    int32_t value = -1;
    uint32_t outputs = 0;

    if (response != NULL && err == NULL) {
        succeeds(TRITONSERVER_InferenceResponseOutputCount(response,
            &outputs));
        for (uint32_t i = 0; i < outputs; i++) {
            const char *name;
            TRITONSERVER_DataType datatype;
            const int64_t *shape;
            uint64_t dims;
            const void *base;
            size_t size;
            TRITONSERVER_MemoryType type;
            int64_t id;
            void *buffer;
            succeeds(TRITONSERVER_InferenceResponseOutput(response, i, &name,
                &datatype, &shape, &dims, &base, &size, &type, &id, &buffer));
            if (strcmp(name, "OUT") == 0) {
                assert_int_equal(size, 4);
                memcpy(&value, base, 4);
            }
        }
    }
    if (response != NULL) {
        TRITONSERVER_InferenceResponseDelete(response);
    }

    pthread_mutex_lock(&lock);
    s->after_final += s->finals > 0;
    if (err != NULL) {
        s->errors++;
        snprintf(s->error, sizeof(s->error), "%d %s",
            (int) TRITONSERVER_ErrorCode(err), TRITONSERVER_ErrorMessage(err));
    } else if (response != NULL && s->count < LONG) {
        s->got[s->count++] = value;
    }
    s->finals += (flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL) != 0;
    s->told_by = pthread_self();
    pthread_cond_broadcast(&arrived);
    pthread_mutex_unlock(&lock);
    TRITONSERVER_ErrorDelete(err);
}

static void
stream_release(TRITONSERVER_InferenceRequest *request, const uint32_t flags,
    void *userp)
{
    (void) request;
    (void) flags;
    pthread_mutex_lock(&lock);
    ((stream_t *) userp)->released++;
    pthread_cond_broadcast(&arrived);
    pthread_mutex_unlock(&lock);
}

static void
add(stream_t *s, const char *name, TRITONSERVER_DataType type, int64_t count,
    const void *data)
{
    succeeds(TRITONSERVER_InferenceRequestAddInput(s->request, name, type,
        &count, 1));
    succeeds(TRITONSERVER_InferenceRequestAppendInputData(s->request, name,
        data, (size_t) count * 4, TRITONSERVER_MEMORY_CPU, 0));
}

static void
ask_traced(stream_t *s, const char *model, int count,
    TRITONSERVER_ResponseAllocator *allocator,
    TRITONSERVER_InferenceTrace *trace)
{
    memset(s, 0, sizeof(*s));
    for (int i = 0; i < count; i++) {
        s->numbers[i] = i;
    }
    succeeds(TRITONSERVER_InferenceRequestNew(&s->request, world.server, model,
        -1));
    if (strcmp(model, "single") == 0) {
        s->numbers[0] = 7;
        add(s, "IN", TRITONSERVER_TYPE_INT32, 1, s->numbers);
    } else {
        add(s, "IN", TRITONSERVER_TYPE_INT32, count, s->numbers);
        add(s, "DELAY", TRITONSERVER_TYPE_UINT32, count, s->delays);
        add(s, "WAIT", TRITONSERVER_TYPE_UINT32, 1, &s->wait);
    }
    succeeds(TRITONSERVER_InferenceRequestSetReleaseCallback(s->request,
        stream_release, s));
    succeeds(TRITONSERVER_InferenceRequestSetResponseCallback(s->request,
        allocator, s, stream_response, s));
    succeeds(TRITONSERVER_ServerInferAsync(world.server, s->request, trace));
}

static void
ask(stream_t *s, const char *model, int count,
    TRITONSERVER_ResponseAllocator *allocator)
{
    ask_traced(s, model, count, allocator, NULL);
}

static void
wait_stream(stream_t *s)
{
    pthread_mutex_lock(&lock);
    while (s->finals == 0 || s->released == 0 || s->buffers > 0) {
        pthread_cond_wait(&arrived, &lock);
    }
    pthread_mutex_unlock(&lock);
    succeeds(TRITONSERVER_InferenceRequestDelete(s->request));
    assert_int_equal(s->finals, 1);
    assert_int_equal(s->released, 1);
    assert_int_equal(s->after_final, 0);
}

static void
streams_come_whole_and_in_order(void **state)
{
    (void) state;
    static stream_t s;

    for (int n = 0; n <= LONG; n += 60) {
        ask(&s, "line", n, n % 120 == 0 ? stream_allocator
            : counting_allocator);
        wait_stream(&s);
        assert_string_equal(s.error, "");
        assert_int_equal(s.count, n);
        for (int i = 0; i < n; i++) {
            assert_int_equal(s.got[i], i);
        }
    }
}

static void
paced_streams_side_by_side(void **state)
{
    (void) state;
    static stream_t s[8];

    for (int i = 0; i < 8; i++) {
        ask(&s[i], "paced", 20, stream_allocator);
    }
    for (int i = 0; i < 8; i++) {
        wait_stream(&s[i]);
        assert_string_equal(s[i].error, "");
        assert_int_equal(s[i].count, 20);
        for (int k = 0; k < 20; k++) {
            assert_int_equal(s[i].got[k], k);
        }
    }
    assert_int_equal(inf_pause_count(), 0);
}

/* 0, 1, 2 2, 3 3 3, ... */
static void
a_stream_of_streams_keeps_both_orders(void **state)
{
    (void) state;
    static stream_t s;
    int at = 0;

    ask(&s, "nested", 20, stream_allocator);
    wait_stream(&s);
    assert_string_equal(s.error, "");
    assert_int_equal(s.count, 19 * 20 / 2);
    for (int i = 0; i < 20; i++) {
        for (int k = 0; k < i; k++) {
            assert_int_equal(s.got[at++], i);
        }
    }
}

static void
the_allocator_is_told_of_each_response_once(void **state)
{
    (void) state;
    static stream_t s;

    ask(&s, "single", 1, counting_allocator);
    wait_stream(&s);
    assert_int_equal(s.starts, 1);
    assert_int_equal(s.got[0], 7);
    ask(&s, "line", 5, counting_allocator);
    wait_stream(&s);
    assert_true(s.starts == 5 || s.starts == 6);    /* FINAL may be apart    */
}

static TRITONSERVER_Error *
counted_alloc(TRITONSERVER_ResponseAllocator *a, const char *name, size_t size,
    TRITONSERVER_MemoryType type, int64_t id, void *userp, void **buffer,
    void **buffer_userp, TRITONSERVER_MemoryType *actual, int64_t *actual_id)
{
    shot_t *shot = userp;

    assert_int_equal(size, 0);
    shot->data[strcmp(name, "OUT") == 0 ? 0 : 1] += 1;
    return on_alloc(a, name, size, type, id, userp, buffer, buffer_userp,
        actual, actual_id);
}

/* Front ends count them: "response output count mismatch". */
static void
an_empty_output_is_allocated_once(void **state)
{
    (void) state;
    static const char *const models[] = { "any", "unplaced", "one_step",
        "one_unplaced", "two_steps" };
    TRITONSERVER_ResponseAllocator *a;
    const int64_t none = 0;

    succeeds(TRITONSERVER_ResponseAllocatorNew(&a, counted_alloc,
        on_release_buffer, NULL));
    for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
        shot_t shot = { 0 };
        uint32_t outputs;

        succeeds(TRITONSERVER_InferenceRequestNew(&shot.request, world.server,
            models[i], -1));
        succeeds(TRITONSERVER_InferenceRequestAddInput(shot.request, "IN",
            TRITONSERVER_TYPE_INT32, &none, 1));
        succeeds(TRITONSERVER_InferenceRequestSetReleaseCallback(shot.request,
            on_release, &shot));
        succeeds(TRITONSERVER_InferenceRequestSetResponseCallback(
            shot.request, a, &shot, on_response, &shot));
        submit(&shot);
        wait_for(&shot);

        assert_int_equal(shot.responses, 1);
        succeeds(TRITONSERVER_InferenceResponseError(shot.list[0]));
        succeeds(TRITONSERVER_InferenceResponseOutputCount(shot.list[0],
            &outputs));
        assert_int_equal(outputs, strcmp(models[i], "two_steps") == 0 ? 2 : 1);
        assert_true(shot.data[0] == 1);
        assert_true(shot.data[1] == (float) (outputs - 1));
        succeeds(TRITONSERVER_InferenceResponseDelete(shot.list[0]));
        succeeds(TRITONSERVER_InferenceRequestDelete(shot.request));
    }
    succeeds(TRITONSERVER_ResponseAllocatorDelete(a));
}

static void
a_cancel_ends_a_stream_at_once_and_from_elsewhere(void **state)
{
    (void) state;
    static stream_t s;

    ask(&s, "paced", LONG, stream_allocator);
    pthread_mutex_lock(&lock);
    while (s.count < 3) {
        pthread_cond_wait(&arrived, &lock);
    }
    pthread_mutex_unlock(&lock);
    succeeds(TRITONSERVER_InferenceRequestCancel(s.request));
    wait_stream(&s);
    assert_true(s.count < LONG);
    assert_int_equal(s.errors, 1);
    assert_int_equal(s.error[0], '0' + TRITONSERVER_ERROR_CANCELLED);
    assert_false(pthread_equal(s.told_by, pthread_self()));
    assert_int_equal(inf_pause_count(), 0);
}

/* Traces by id: their models and how far they came. */
static struct {
    uint64_t id, parent;
    char     model[32];
    int      starts, computes, ends, outputs, released;
} traces[8];
static int trace_count;

static void
on_activity(TRITONSERVER_InferenceTrace *trace,
    TRITONSERVER_InferenceTraceActivity activity, uint64_t timestamp_ns,
    void *userp)
{
    uint64_t id;
    int at = 0;
    (void) timestamp_ns;
    (void) userp;

    succeeds(TRITONSERVER_InferenceTraceId(trace, &id));
    pthread_mutex_lock(&lock);
    while (at < trace_count && traces[at].id != id) {
        at++;
    }
    if (at == trace_count) {
        const char *model;
        trace_count++;
        traces[at].id = id;
        succeeds(TRITONSERVER_InferenceTraceParentId(trace,
            &traces[at].parent));
        succeeds(TRITONSERVER_InferenceTraceModelName(trace, &model));
        snprintf(traces[at].model, sizeof(traces[at].model), "%s", model);
    }
    traces[at].starts += activity == TRITONSERVER_TRACE_REQUEST_START;
    traces[at].computes += activity == TRITONSERVER_TRACE_COMPUTE_END;
    traces[at].ends += activity == TRITONSERVER_TRACE_REQUEST_END;
    pthread_mutex_unlock(&lock);
}

static void
on_tensor(TRITONSERVER_InferenceTrace *trace,
    TRITONSERVER_InferenceTraceActivity activity, const char *name,
    TRITONSERVER_DataType datatype, const void *base, size_t byte_size,
    const int64_t *shape, uint64_t dim_count, TRITONSERVER_MemoryType type,
    int64_t type_id, void *userp)
{
    uint64_t id;
    (void) name, (void) datatype, (void) base, (void) byte_size;
    (void) shape, (void) dim_count, (void) type, (void) type_id, (void) userp;

    succeeds(TRITONSERVER_InferenceTraceId(trace, &id));
    pthread_mutex_lock(&lock);
    for (int i = 0; i < trace_count; i++) {
        traces[i].outputs += traces[i].id == id
            && activity == TRITONSERVER_TRACE_TENSOR_BACKEND_OUTPUT;
    }
    pthread_mutex_unlock(&lock);
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
steps_have_traces_below_the_requests(void **state)
{
    (void) state;
    static stream_t s;
    static int released;
    TRITONSERVER_InferenceTrace *trace;
    uint64_t whole;

    succeeds(TRITONSERVER_InferenceTraceTensorNew(&trace,
        TRITONSERVER_TRACE_LEVEL_TIMESTAMPS | TRITONSERVER_TRACE_LEVEL_TENSORS,
        0, on_activity, on_tensor, on_trace_release, &released));
    succeeds(TRITONSERVER_InferenceTraceId(trace, &whole));
    ask_traced(&s, "single", 1, stream_allocator, trace);
    wait_stream(&s);
    pthread_mutex_lock(&lock);
    while (released < 3) {
        pthread_cond_wait(&arrived, &lock);
    }
    pthread_mutex_unlock(&lock);

    assert_int_equal(trace_count, 3);
    for (int i = 0; i < 3; i++) {
        bool is_whole = traces[i].id == whole;
        assert_int_equal(traces[i].parent, is_whole ? 0 : whole);
        assert_string_equal(traces[i].model, is_whole ? "single"
            : i == 1 ? "id" : "slow");
        assert_int_equal(traces[i].starts, 1);
        assert_int_equal(traces[i].ends, 1);
        assert_int_equal(traces[i].computes, !is_whole);
        assert_int_equal(traces[i].outputs, is_whole ? 2 : 1);
    }
}

/* Its composing models decide, so any number may be given. */
static void
an_ensemble_takes_any_priority(void **state)
{
    (void) state;
    TRITONSERVER_InferenceRequest *request;
    uint64_t priority;
    uint32_t narrow;

    succeeds(TRITONSERVER_InferenceRequestNew(&request, world.server, "single",
        -1));
    succeeds(TRITONSERVER_InferenceRequestSetPriorityUInt64(request,
        UINT64_C(1) << 32));
    succeeds(TRITONSERVER_InferenceRequestPriorityUInt64(request, &priority));
    assert_true(priority == UINT64_C(1) << 32);
    fails(TRITONSERVER_InferenceRequestPriority(request, &narrow),
        TRITONSERVER_ERROR_INVALID_ARG, "request priority overflows uint32_t,"
        " use TRITONSERVER_InferenceRequestPriorityUInt64,"
        " priority=4294967296");
    succeeds(TRITONSERVER_InferenceRequestDelete(request));
}

static int
begin(void **state)
{
    (void) state;
    make_world();
    make_models();
    TRITONSERVER_ServerOptions *o = new_options("backends", true);
    succeeds(TRITONSERVER_ServerNew(&world.server, o));
    succeeds(TRITONSERVER_ServerOptionsDelete(o));
    succeeds(TRITONSERVER_ResponseAllocatorNew(&stream_allocator,
        stream_alloc, stream_free, NULL));
    succeeds(TRITONSERVER_ResponseAllocatorNew(&counting_allocator,
        stream_alloc, stream_free, stream_start));
    return 0;
}

static int
end(void **state)
{
    (void) state;
    succeeds(TRITONSERVER_ServerStop(world.server));
    succeeds(TRITONSERVER_ServerDelete(world.server));
    succeeds(TRITONSERVER_ResponseAllocatorDelete(stream_allocator));
    succeeds(TRITONSERVER_ResponseAllocatorDelete(counting_allocator));
    end_world();
    return 0;
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_come_whole_and_in_order),
        cmocka_unit_test(paced_streams_side_by_side),
        cmocka_unit_test(a_stream_of_streams_keeps_both_orders),
        cmocka_unit_test(the_allocator_is_told_of_each_response_once),
        cmocka_unit_test(an_empty_output_is_allocated_once),
        cmocka_unit_test(a_cancel_ends_a_stream_at_once_and_from_elsewhere),
        cmocka_unit_test(steps_have_traces_below_the_requests),
        cmocka_unit_test(an_ensemble_takes_any_priority),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
