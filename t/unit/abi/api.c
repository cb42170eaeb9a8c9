/* The C API of this process: servers, requests and responses as a program
   that embeds the core sees them; the identity backend. */

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/abi/api.h"
#include "core/base/clock.h"

#define FLOATS    16
#define IN_FLIGHT 64

static struct {
    char                            repository[64];
    char                            backends[512];
    TRITONSERVER_Server            *server;
    TRITONSERVER_ResponseAllocator *allocator;
    _Atomic int                     starts;
    _Atomic int                     buffers;    /* allocated, not released   */
} world;

/* One request and what came back; waited for under the lock. */
typedef struct {
    TRITONSERVER_InferenceRequest  *request;
    TRITONSERVER_InferenceResponse *response;
    float                           data[FLOATS];
    uint32_t                        flags;
    int                             responses;
    int                             released;
    char                            outputs[64];    /* as the backend saw    */
    bool                            fail_alloc;
    void                          (*during)(void *userp);   /* on alloc      */
    const void                     *buffer;         /* for during's use      */
    uint64_t                        size;
    uint32_t                        count;
    TRITONSERVER_MemoryType         type;
    int64_t                         id;
} shot_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER;

static void
write_file(const char *dir, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void
make_model(const char *name, const char *config)
{
    char dir[256], version[300];
    snprintf(dir, sizeof(dir), "%s/%s", world.repository, name);
    assert_int_equal(mkdir(dir, 0755), 0);
    snprintf(version, sizeof(version), "%s/1", dir);
    assert_int_equal(mkdir(version, 0755), 0);
    write_file(dir, "config.pbtxt", config);
}

/* Consumes err. */
static void
fails(TRITONSERVER_Error *err, TRITONSERVER_Error_Code code, const char *text)
{
    assert_non_null(err);
    if (TRITONSERVER_ErrorCode(err) != code
        || strstr(TRITONSERVER_ErrorMessage(err), text) == NULL)
    {
        fail_msg("got %d: %s", (int) TRITONSERVER_ErrorCode(err),
            TRITONSERVER_ErrorMessage(err));
    }
    TRITONSERVER_ErrorDelete(err);
}

static void
succeeds(TRITONSERVER_Error *err)
{
    if (err != NULL) {
        fail_msg("%s", TRITONSERVER_ErrorMessage(err));
    }
}

static TRITONSERVER_Error *
on_start(TRITONSERVER_ResponseAllocator *allocator, void *userp)
{
    (void) userp;
    assert_ptr_equal(allocator, world.allocator);
    world.starts++;
    return NULL;
}

static TRITONSERVER_Error *
on_alloc(TRITONSERVER_ResponseAllocator *allocator, const char *name,
    size_t size, TRITONSERVER_MemoryType type, int64_t id, void *userp,
    void **buffer, void **buffer_userp, TRITONSERVER_MemoryType *actual,
    int64_t *actual_id)
{
    shot_t *shot = userp;
    (void) allocator;
    assert_int_equal(*actual, type);        /* as asked, unless we say so    */
    assert_int_equal(*actual_id, id);
    if (shot->during != NULL) {
        shot->during(shot);                 /* the backend has the request   */
    }

    if (shot->fail_alloc) {
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE,
            "the client has no room");
    }

    *actual = TRITONSERVER_MEMORY_CPU;
    *actual_id = 0;
    *buffer = size > 0 ? malloc(size) : NULL;
    *buffer_userp = strdup(name);
    world.buffers += *buffer != NULL;
    return NULL;
}

static TRITONSERVER_Error *
on_release_buffer(TRITONSERVER_ResponseAllocator *allocator, void *buffer,
    void *buffer_userp, size_t size, TRITONSERVER_MemoryType type, int64_t id)
{
    (void) allocator;
    assert_true(size > 0);
    assert_int_equal(type, TRITONSERVER_MEMORY_CPU);
    assert_int_equal(id, 0);
    free(buffer_userp);
    free(buffer);
    world.buffers--;
    return NULL;
}

static void
on_response(TRITONSERVER_InferenceResponse *response, const uint32_t flags,
    void *userp)
{
    shot_t *shot = userp;
    pthread_mutex_lock(&lock);
    shot->response = response;
    shot->flags |= flags;
    shot->responses++;
    pthread_cond_broadcast(&arrived);
    pthread_mutex_unlock(&lock);
}

/* The request is still what the backend had. */
static void
on_release(TRITONSERVER_InferenceRequest *request, const uint32_t flags,
    void *userp)
{
    shot_t *shot = userp;
    TRITONBACKEND_Request *seen = (void *) request;
    uint32_t count = 0;
    char names[64] = "";

    assert_int_equal(flags, TRITONSERVER_REQUEST_RELEASE_ALL);
    assert_null(TRITONBACKEND_RequestOutputCount(seen, &count));
    for (uint32_t i = 0; i < count; i++) {
        const char *name;
        assert_null(TRITONBACKEND_RequestOutputName(seen, i, &name));
        strcat(names, name);
        strcat(names, ";");
    }

    pthread_mutex_lock(&lock);
    strcpy(shot->outputs, names);
    shot->released++;
    pthread_cond_broadcast(&arrived);
    pthread_mutex_unlock(&lock);
}

static void
wait_for(shot_t *shot)
{
    pthread_mutex_lock(&lock);
    while (!(shot->flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        || shot->released == 0)
    {
        pthread_cond_wait(&arrived, &lock);
    }
    pthread_mutex_unlock(&lock);
}

static void
make(shot_t *shot, const char *model, bool batched)
{
    const int64_t shape[2] = { batched ? 1 : FLOATS, FLOATS };

    *shot = (shot_t) { 0 };
    for (int i = 0; i < FLOATS; i++) {
        shot->data[i] = (float) i + 0.5f;
    }
    succeeds(TRITONSERVER_InferenceRequestNew(&shot->request, world.server,
        model, -1));
    succeeds(TRITONSERVER_InferenceRequestAddInput(shot->request, "INPUT0",
        TRITONSERVER_TYPE_FP32, shape, batched ? 2 : 1));
    succeeds(TRITONSERVER_InferenceRequestAppendInputData(shot->request,
        "INPUT0", shot->data, sizeof(shot->data), TRITONSERVER_MEMORY_CPU, 0));
    succeeds(TRITONSERVER_InferenceRequestSetReleaseCallback(shot->request,
        on_release, shot));
    succeeds(TRITONSERVER_InferenceRequestSetResponseCallback(shot->request,
        world.allocator, shot, on_response, shot));
}

static void
submit(shot_t *shot)
{
    shot->response = NULL;
    shot->flags = 0;
    shot->responses = 0;
    shot->released = 0;
    succeeds(TRITONSERVER_ServerInferAsync(world.server, shot->request, NULL));
}

/* Output index of the response is the floats that were sent. */
static void
expect_echo(const shot_t *shot, uint32_t index, const char *want)
{
    const char *name;
    TRITONSERVER_DataType datatype;
    const int64_t *shape;
    uint64_t dims;
    const void *base;
    size_t size;
    TRITONSERVER_MemoryType type;
    int64_t id;
    void *userp;

    assert_null(TRITONSERVER_InferenceResponseError(shot->response));
    assert_null(TRITONSERVER_InferenceResponseOutput(shot->response, index,
        &name, &datatype, &shape, &dims, &base, &size, &type, &id, &userp));
    assert_string_equal(name, want);
    assert_int_equal(datatype, TRITONSERVER_TYPE_FP32);
    assert_int_equal(shape[dims - 1], FLOATS);
    assert_int_equal(size, sizeof(shot->data));
    assert_memory_equal(base, shot->data, size);
    assert_string_equal(userp, want);
}

static void
finish(shot_t *shot)
{
    assert_null(TRITONSERVER_InferenceResponseDelete(shot->response));
    assert_null(TRITONSERVER_InferenceRequestDelete(shot->request));
}

static TRITONSERVER_ServerOptions *
new_options(TRITONSERVER_ModelControlMode mode)
{
    TRITONSERVER_ServerOptions *o;
    succeeds(TRITONSERVER_ServerOptionsNew(&o));
    succeeds(TRITONSERVER_ServerOptionsSetModelRepositoryPath(o,
        world.repository));
    succeeds(TRITONSERVER_ServerOptionsSetBackendDirectory(o,
        world.backends));
    succeeds(TRITONSERVER_ServerOptionsSetModelControlMode(o, mode));
    succeeds(TRITONSERVER_ServerOptionsSetStrictModelConfig(o, false));
    return o;
}

static int
setup(void **state)
{
    (void) state;
    char exe[400];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
    assert_true(n > 0);
    exe[n] = '\0';
    *strrchr(exe, '/') = '\0';
    snprintf(world.backends, sizeof(world.backends), "%s/backends", exe);

    strcpy(world.repository, "/tmp/inf-unit-XXXXXX");
    assert_non_null(mkdtemp(world.repository));
    make_model("echo", "backend: 'identity' max_batch_size: 8\n"
        "input { name: 'INPUT0' data_type: TYPE_FP32 dims: -1 }\n"
        "output { name: 'OUTPUT0' data_type: TYPE_FP32 dims: -1\n"
        "  label_filename: 'labels.txt' }\n"
        "parameters { key: 'echo_parameters'\n"
        "  value { string_value: 'true' } }\n");
    char dir[128];
    snprintf(dir, sizeof(dir), "%s/echo", world.repository);
    write_file(dir, "labels.txt", "cat\ndog\n");
    make_model("pair", "backend: 'identity'\n"
        "input [ { name: 'INPUT0' data_type: TYPE_FP32 dims: -1 },\n"
        "  { name: 'INPUT1' data_type: TYPE_FP32 dims: -1 optional: true } ]\n"
        "output [ { name: 'OUTPUT1' data_type: TYPE_FP32 dims: -1 },\n"
        "  { name: 'OUTPUT0' data_type: TYPE_FP32 dims: -1 } ]\n");
    make_model("slow", "backend: 'identity'\n"
        "input { name: 'INPUT0' data_type: TYPE_FP32 dims: -1 }\n"
        "output { name: 'OUTPUT0' data_type: TYPE_FP32 dims: -1 }\n"
        "instance_group { kind: KIND_CPU count: 1 }\n"
        "parameters { key: 'execute_delay_ms'\n"
        "  value { string_value: '150' } }\n");
    make_model("broken", "backend: 'no_such_backend'\n"
        "input { name: 'A' data_type: TYPE_FP32 dims: 1 }\n"
        "output { name: 'B' data_type: TYPE_FP32 dims: 1 }\n");

    succeeds(TRITONSERVER_ResponseAllocatorNew(&world.allocator, on_alloc,
        on_release_buffer, on_start));

    TRITONSERVER_ServerOptions *o = new_options(
        TRITONSERVER_MODEL_CONTROL_NONE);
    succeeds(TRITONSERVER_ServerOptionsSetServerId(o, "embedded"));
    succeeds(TRITONSERVER_ServerOptionsSetExitOnError(o, false));
    succeeds(TRITONSERVER_ServerOptionsSetStrictReadiness(o, false));
    succeeds(TRITONSERVER_ServerNew(&world.server, o));
    succeeds(TRITONSERVER_ServerOptionsDelete(o));
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    char command[128];

    assert_int_equal(world.buffers, 0);
    succeeds(TRITONSERVER_ServerStop(world.server));
    bool live = true;
    fails(TRITONSERVER_ServerIsLive(world.server, &live),
        TRITONSERVER_ERROR_UNAVAILABLE, "Server exiting");
    succeeds(TRITONSERVER_ServerDelete(world.server));
    succeeds(TRITONSERVER_ResponseAllocatorDelete(world.allocator));
    snprintf(command, sizeof(command), "rm -rf %s", world.repository);
    return system(command);
}

static void
expect_json(TRITONSERVER_Message *message, const char *text)
{
    const char *base;
    size_t size;
    succeeds(TRITONSERVER_MessageSerializeToJson(message, &base, &size));
    assert_int_equal(strlen(base), size);
    if (strstr(base, text) == NULL) {
        fail_msg("%s is not in %s", text, base);
    }
    succeeds(TRITONSERVER_MessageDelete(message));
}

static void
a_server_says_what_it_serves(void **state)
{
    (void) state;
    bool yes = false;
    uint32_t flags = 0;
    void *voidp = &yes;
    TRITONSERVER_Message *m;

    succeeds(TRITONSERVER_ServerIsLive(world.server, &yes));
    assert_true(yes);
    yes = false;
    succeeds(TRITONSERVER_ServerIsReady(world.server, &yes));
    assert_true(yes);
    yes = false;
    succeeds(TRITONSERVER_ServerModelIsReady(world.server, "echo", 1, &yes));
    assert_true(yes);
    succeeds(TRITONSERVER_ServerModelIsReady(world.server, "ghost", -1, &yes));
    assert_false(yes);
    yes = true;
    succeeds(TRITONSERVER_ServerModelIsReady(world.server, "broken", 1, &yes));
    assert_false(yes);
    yes = true;
    succeeds(TRITONSERVER_ServerModelIsReady(world.server, "echo", 9, &yes));
    assert_false(yes);

    succeeds(TRITONSERVER_ServerModelBatchProperties(world.server, "echo", -1,
        &flags, &voidp));
    assert_int_equal(flags, TRITONSERVER_BATCH_FIRST_DIM);
    assert_null(voidp);
    succeeds(TRITONSERVER_ServerModelBatchProperties(world.server, "pair", -1,
        &flags, NULL));
    assert_int_equal(flags, TRITONSERVER_BATCH_UNKNOWN);
    succeeds(TRITONSERVER_ServerModelTransactionProperties(world.server,
        "echo", -1, &flags, NULL));
    assert_int_equal(flags, TRITONSERVER_TXN_ONE_TO_ONE);

    succeeds(TRITONSERVER_ServerMetadata(world.server, &m));
    expect_json(m, "{\"name\":\"embedded\",\"version\":\"");
    succeeds(TRITONSERVER_ServerModelMetadata(world.server, "echo", -1, &m));
    expect_json(m, "{\"name\":\"echo\",\"versions\":[\"1\"],\"platform\":"
        "\"identity\",\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"FP32\","
        "\"shape\":[-1,-1]}],\"outputs\":[{\"name\":\"OUTPUT0\",\"datatype\":"
        "\"FP32\",\"shape\":[-1,-1]}]}");
    succeeds(TRITONSERVER_ServerModelConfig(world.server, "echo", 1, 1, &m));
    expect_json(m, "\"max_batch_size\":8");
    fails(TRITONSERVER_ServerModelConfig(world.server, "echo", 1, 2, &m),
        TRITONSERVER_ERROR_INVALID_ARG, "version 2 not supported,"
        " supported versions are: 1");
    fails(TRITONSERVER_ServerModelMetadata(world.server, "echo", -2, &m),
        TRITONSERVER_ERROR_NOT_FOUND, "Request for unknown model: 'echo'"
        " version -2 is not found");
    assert_null(m);
    fails(TRITONSERVER_ServerModelStatistics(world.server, "echo", -2, &m),
        TRITONSERVER_ERROR_INVALID_ARG, "requested model version is not"
        " available for model 'echo'");
    assert_null(m);
    fails(TRITONSERVER_ServerModelStatistics(world.server, "ghost", -2, &m),
        TRITONSERVER_ERROR_INVALID_ARG,
        "requested model 'ghost' is not available");
    succeeds(TRITONSERVER_ServerModelStatistics(world.server, "", -2, &m));
    expect_json(m, "\"name\":\"echo\"");
    succeeds(TRITONSERVER_ServerModelIndex(world.server, 0, &m));
    expect_json(m, "{\"name\":\"broken\",\"version\":\"1\",\"state\":"
        "\"UNAVAILABLE\",\"reason\":\"");
    succeeds(TRITONSERVER_ServerModelIndex(world.server,
        TRITONSERVER_INDEX_FLAG_READY, &m));
    expect_json(m, "[{\"name\":\"echo\",\"version\":\"1\",\"state\":\"READY\"},"
        "{\"name\":\"pair\",\"version\":\"1\",\"state\":\"READY\"},"
        "{\"name\":\"slow\",\"version\":\"1\",\"state\":\"READY\"}]");
}

static void
a_request_is_answered_into_the_clients_memory(void **state)
{
    (void) state;
    shot_t shot;
    const char *text;
    int64_t version;
    uint32_t count;
    TRITONSERVER_ParameterType type;
    const void *value;
    TRITONSERVER_Message *m;
    int starts = world.starts;

    make(&shot, "echo", true);
    succeeds(TRITONSERVER_InferenceRequestSetId(shot.request, "r7"));
    succeeds(TRITONSERVER_InferenceRequestSetStringParameter(shot.request,
        "colour", "red"));
    succeeds(TRITONSERVER_InferenceRequestSetIntParameter(shot.request, "n",
        42));
    submit(&shot);
    wait_for(&shot);

    assert_int_equal(shot.responses, 1);
    assert_int_equal(world.starts, starts + 1);
    succeeds(TRITONSERVER_InferenceResponseOutputCount(shot.response, &count));
    assert_int_equal(count, 1);
    expect_echo(&shot, 0, "OUTPUT0");
    succeeds(TRITONSERVER_InferenceResponseModel(shot.response, &text,
        &version));
    assert_string_equal(text, "echo");
    assert_int_equal(version, 1);
    succeeds(TRITONSERVER_InferenceResponseParameterCount(shot.response,
        &count));
    assert_int_equal(count, 2);
    succeeds(TRITONSERVER_InferenceResponseParameter(shot.response, 0, &text,
        &type, &value));
    assert_string_equal(text, "colour");
    assert_int_equal(type, TRITONSERVER_PARAMETER_STRING);
    assert_string_equal(value, "red");
    fails(TRITONSERVER_InferenceResponseParameter(shot.response, 2, &text,
        &type, &value), TRITONSERVER_ERROR_INVALID_ARG, "index 2");
    succeeds(TRITONSERVER_InferenceResponseOutputClassificationLabel(
        shot.response, 0, 1, &text));
    assert_string_equal(text, "dog");
    succeeds(TRITONSERVER_InferenceResponseOutputClassificationLabel(
        shot.response, 0, 2, &text));
    assert_null(text);
    fails(TRITONSERVER_InferenceResponseOutputClassificationLabel(
        shot.response, 1, 0, &text), TRITONSERVER_ERROR_INVALID_ARG,
        "index 1");

    /* the response outlives its request */
    succeeds(TRITONSERVER_InferenceRequestDelete(shot.request));
    succeeds(TRITONSERVER_InferenceResponseId(shot.response, &text));
    assert_string_equal(text, "r7");
    succeeds(TRITONSERVER_InferenceResponseDelete(shot.response));

    succeeds(TRITONSERVER_ServerModelStatistics(world.server, "echo", -1, &m));
    expect_json(m, "{\"model_stats\":[{\"name\":\"echo\",\"version\":\"1\","
        "\"last_inference\":");
    succeeds(TRITONSERVER_ServerModelStatistics(world.server, "", -1, &m));
    expect_json(m, "},{\"name\":\"slow\",\"version\":\"1\",\"last_inference\":"
        "0,\"inference_count\":0,\"execution_count\":0,\"inference_stats\":{"
        "\"success\":{\"count\":0,\"ns\":0},\"fail\":");
    fails(TRITONSERVER_ServerModelStatistics(world.server, "ghost", -1, &m),
        TRITONSERVER_ERROR_INVALID_ARG,
        "requested model 'ghost' is not available");
    fails(TRITONSERVER_ServerModelStatistics(world.server, "echo", 9, &m),
        TRITONSERVER_ERROR_INVALID_ARG, "version is not available");
}

static void
many_in_flight_are_used_again_and_again(void **state)
{
    (void) state;
    enum { ROUNDS = 50 };
    static shot_t shots[IN_FLIGHT];
    const int64_t shape[2] = { 1, FLOATS };

    for (int i = 0; i < IN_FLIGHT; i++) {
        make(&shots[i], "echo", true);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < IN_FLIGHT; i++) {
            shots[i].data[0] = (float) (round * IN_FLIGHT + i);
            submit(&shots[i]);
        }
        for (int i = 0; i < IN_FLIGHT; i++) {
            wait_for(&shots[i]);
            expect_echo(&shots[i], 0, "OUTPUT0");
            succeeds(TRITONSERVER_InferenceResponseDelete(shots[i].response));
            succeeds(TRITONSERVER_InferenceRequestRemoveAllInputs(
                shots[i].request));
            succeeds(TRITONSERVER_InferenceRequestAddInput(shots[i].request,
                "INPUT0", TRITONSERVER_TYPE_FP32, shape, 2));
            succeeds(TRITONSERVER_InferenceRequestAppendInputData(
                shots[i].request, "INPUT0", shots[i].data, 8,
                TRITONSERVER_MEMORY_CPU, 0));
            succeeds(TRITONSERVER_InferenceRequestAppendInputData(
                shots[i].request, "INPUT0", shots[i].data + 2,
                sizeof(shots[i].data) - 8, TRITONSERVER_MEMORY_CPU, 0));
        }
    }
    for (int i = 0; i < IN_FLIGHT; i++) {
        succeeds(TRITONSERVER_InferenceRequestDelete(shots[i].request));
    }
    assert_int_equal(world.buffers, 0);
}

static void
end_run(inf_api_run_t *run)
{
    inf_factory_unref(&run->factory);
    inf_api_run_unref(run);
}

/* A client that submits from its release callback has two in turn. */
static void
ended_runs_are_used_again(void **state)
{
    (void) state;
    const inf_api_target_t target = { .allocator = world.allocator };
    inf_api_pool_t *pool = inf_api_pool_new();
    inf_api_run_t *made[INF_API_SPARE_RUNS + 1];
    inf_model_t *model;

    succeeds(inf_api_find_model(inf_as_server(world.server), "echo", -1,
        &model));
    for (int i = 0; i <= INF_API_SPARE_RUNS; i++) {
        made[i] = inf_api_run_take(pool, model, "id", &target);
        assert_non_null(made[i]);
    }
    for (int i = INF_API_SPARE_RUNS; i >= 0; i--) {
        end_run(made[i]);               /* the last one finds no room        */
    }
    for (int i = INF_API_SPARE_RUNS; i > 0; i--) {
        inf_api_run_t *again = inf_api_run_take(pool, model, "", &target);
        assert_ptr_equal(again, made[i]);
        made[i] = again;
    }
    for (int i = INF_API_SPARE_RUNS; i > 0; i--) {
        end_run(made[i]);
    }
    inf_api_pool_unref(pool);
    inf_model_unref(model);
}

static void
requested_outputs_are_a_sorted_set(void **state)
{
    (void) state;
    const int64_t shape[1] = { FLOATS };
    shot_t shot;

    make(&shot, "pair", false);
    succeeds(TRITONSERVER_InferenceRequestAddInput(shot.request, "INPUT1",
        TRITONSERVER_TYPE_FP32, shape, 1));
    succeeds(TRITONSERVER_InferenceRequestAppendInputData(shot.request,
        "INPUT1", shot.data, sizeof(shot.data), TRITONSERVER_MEMORY_CPU, 0));
    succeeds(TRITONSERVER_InferenceRequestAddRequestedOutput(shot.request,
        "OUTPUT1"));
    succeeds(TRITONSERVER_InferenceRequestAddRequestedOutput(shot.request,
        "OUTPUT0"));
    fails(TRITONSERVER_InferenceRequestAddRequestedOutput(shot.request,
        "OUTPUT1"), TRITONSERVER_ERROR_INVALID_ARG, "already requested");
    submit(&shot);
    wait_for(&shot);
    assert_string_equal(shot.outputs, "OUTPUT0;OUTPUT1;");
    expect_echo(&shot, 0, "OUTPUT0");
    expect_echo(&shot, 1, "OUTPUT1");
    succeeds(TRITONSERVER_InferenceResponseDelete(shot.response));

    succeeds(TRITONSERVER_InferenceRequestRemoveRequestedOutput(shot.request,
        "OUTPUT0"));
    succeeds(TRITONSERVER_InferenceRequestRemoveRequestedOutput(shot.request,
        "OUTPUT7"));
    submit(&shot);
    wait_for(&shot);
    assert_string_equal(shot.outputs, "OUTPUT1;");
    expect_echo(&shot, 0, "OUTPUT1");
    succeeds(TRITONSERVER_InferenceResponseDelete(shot.response));

    /* what the core fills in is not kept for the next run */
    succeeds(TRITONSERVER_InferenceRequestRemoveAllRequestedOutputs(
        shot.request));
    succeeds(TRITONSERVER_InferenceRequestRemoveInput(shot.request, "INPUT1"));
    submit(&shot);
    wait_for(&shot);
    assert_string_equal(shot.outputs, "OUTPUT0;OUTPUT1;");
    expect_echo(&shot, 0, "OUTPUT0");
    finish(&shot);
}

/* scheduling.md 1.1 */
static void
a_rejected_submit_calls_nobody(void **state)
{
    (void) state;
    const int64_t shape[2] = { 1, FLOATS };
    const int64_t wide[2] = { 9, FLOATS };
    TRITONSERVER_InferenceRequest *r = NULL;
    shot_t shot;

    fails(TRITONSERVER_InferenceRequestNew(&r, world.server, "ghost", -1),
        TRITONSERVER_ERROR_NOT_FOUND, "unknown model: 'ghost'");
    assert_null(r);
    fails(TRITONSERVER_InferenceRequestNew(&r, world.server, "broken", -1),
        TRITONSERVER_ERROR_NOT_FOUND, "no available versions");
    fails(TRITONSERVER_InferenceRequestNew(&r, world.server, "broken", 1),
        TRITONSERVER_ERROR_UNAVAILABLE, "not at ready state");

    make(&shot, "echo", true);
    r = shot.request;
    succeeds(TRITONSERVER_InferenceRequestSetId(r, "bad"));
    fails(TRITONSERVER_InferenceRequestAddInput(r, "INPUT0",
        TRITONSERVER_TYPE_FP32, shape, 2), TRITONSERVER_ERROR_INVALID_ARG,
        "[request id: bad] input 'INPUT0' already exists in request");
    fails(TRITONSERVER_InferenceRequestAddRawInput(r, "RAW"),
        TRITONSERVER_ERROR_INVALID_ARG, "[request id: bad] raw input 'RAW'"
        " can't be added to request with other inputs");
    fails(TRITONSERVER_InferenceRequestRemoveInput(r, "X"),
        TRITONSERVER_ERROR_INVALID_ARG,
        "[request id: bad] input 'X' does not exist in request");
    fails(TRITONSERVER_InferenceRequestAppendInputData(r, "X", shape, 8,
        TRITONSERVER_MEMORY_CPU, 0), TRITONSERVER_ERROR_INVALID_ARG,
        "[request id: bad] input 'X' does not exist in request");
    fails(TRITONSERVER_InferenceRequestRemoveAllInputData(r, "X"),
        TRITONSERVER_ERROR_INVALID_ARG,
        "[request id: bad] input 'X' does not exist in request");

    succeeds(TRITONSERVER_InferenceRequestRemoveAllInputData(r, "INPUT0"));
    fails(TRITONSERVER_ServerInferAsync(world.server, r, NULL),
        TRITONSERVER_ERROR_INVALID_ARG, "[request id: bad] input byte size"
        " mismatch for input 'INPUT0' for model 'echo'. Expected 64, got 0");

    succeeds(TRITONSERVER_InferenceRequestRemoveAllInputs(r));
    fails(TRITONSERVER_ServerInferAsync(world.server, r, NULL),
        TRITONSERVER_ERROR_INVALID_ARG, "expected 1 inputs but got 0");
    succeeds(TRITONSERVER_InferenceRequestAddInput(r, "INPUT0",
        TRITONSERVER_TYPE_FP32, wide, 2));
    fails(TRITONSERVER_ServerInferAsync(world.server, r, NULL),
        TRITONSERVER_ERROR_INVALID_ARG, "batch-size must be <= 8");
    succeeds(TRITONSERVER_InferenceRequestRemoveAllInputs(r));
    succeeds(TRITONSERVER_InferenceRequestAddInput(r, "INPUT0",
        TRITONSERVER_TYPE_INT8, shape, 2));
    fails(TRITONSERVER_ServerInferAsync(world.server, r, NULL),
        TRITONSERVER_ERROR_INVALID_ARG, "data-type is 'INT8'");
    succeeds(TRITONSERVER_InferenceRequestAddRequestedOutput(r, "NO"));
    succeeds(TRITONSERVER_InferenceRequestRemoveAllInputs(r));
    succeeds(TRITONSERVER_InferenceRequestAddInput(r, "INPUT0",
        TRITONSERVER_TYPE_FP32, shape, 2));
    succeeds(TRITONSERVER_InferenceRequestAppendInputData(r, "INPUT0",
        shot.data, sizeof(shot.data), TRITONSERVER_MEMORY_CPU, 0));
    fails(TRITONSERVER_ServerInferAsync(world.server, r, NULL),
        TRITONSERVER_ERROR_INVALID_ARG, "unexpected inference output 'NO'");

    /* the request is still the client's, and good once it is put right */
    assert_int_equal(shot.responses, 0);
    assert_int_equal(shot.released, 0);
    succeeds(TRITONSERVER_InferenceRequestRemoveAllRequestedOutputs(r));
    submit(&shot);
    wait_for(&shot);
    expect_echo(&shot, 0, "OUTPUT0");

    succeeds(TRITONSERVER_InferenceRequestSetReleaseCallback(r, NULL, NULL));
    fails(TRITONSERVER_ServerInferAsync(world.server, r, NULL),
        TRITONSERVER_ERROR_INVALID_ARG, "release callback");
    finish(&shot);
}

static void
a_clients_allocator_may_reject(void **state)
{
    (void) state;
    shot_t shot;
    uint32_t count = 0;

    make(&shot, "echo", true);
    shot.fail_alloc = true;
    submit(&shot);
    wait_for(&shot);
    /* each call gives an error of its own */
    fails(TRITONSERVER_InferenceResponseError(shot.response),
        TRITONSERVER_ERROR_UNAVAILABLE, "the client has no room");
    fails(TRITONSERVER_InferenceResponseError(shot.response),
        TRITONSERVER_ERROR_UNAVAILABLE, "the client has no room");
    succeeds(TRITONSERVER_InferenceResponseOutputCount(shot.response, &count));
    finish(&shot);
    assert_int_equal(world.buffers, 0);
}

static TRITONSERVER_Error *
on_attributes(TRITONSERVER_ResponseAllocator *allocator, const char *name,
    TRITONSERVER_BufferAttributes *attributes, void *userp,
    void *buffer_userp)
{
    size_t size = 0;
    (void) allocator;
    assert_string_equal(buffer_userp, name);
    assert_null(TRITONSERVER_BufferAttributesByteSize(attributes, &size));
    assert_int_equal(size, FLOATS * sizeof(float));

    return ((const shot_t *) userp)->data[0] < 0
        ? TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, "no attributes")
        : TRITONSERVER_BufferAttributesSetByteSize(attributes, 1);
}

static TRITONSERVER_Error *
on_query(TRITONSERVER_ResponseAllocator *allocator, void *userp,
    const char *name, size_t *size, TRITONSERVER_MemoryType *type, int64_t *id)
{
    (void) allocator;
    (void) userp;
    (void) name;
    (void) size;
    *type = TRITONSERVER_MEMORY_CPU;
    *id = 3;
    return NULL;
}

static void
attributes_are_asked_for_and_a_failure_gives_the_buffer_back(void **state)
{
    (void) state;
    TRITONSERVER_ResponseAllocator *a = NULL;
    shot_t shot;

    fails(TRITONSERVER_ResponseAllocatorNew(&a, on_alloc, NULL, NULL),
        TRITONSERVER_ERROR_INVALID_ARG, "needs");
    succeeds(TRITONSERVER_ResponseAllocatorNew(&a, on_alloc,
        on_release_buffer, NULL));
    succeeds(TRITONSERVER_ResponseAllocatorSetBufferAttributesFunction(a,
        on_attributes));
    make(&shot, "echo", true);
    succeeds(TRITONSERVER_InferenceRequestSetResponseCallback(shot.request, a,
        &shot, on_response, &shot));
    submit(&shot);
    wait_for(&shot);
    expect_echo(&shot, 0, "OUTPUT0");       /* the size stays alloc's        */
    succeeds(TRITONSERVER_InferenceResponseDelete(shot.response));

    shot.data[0] = -1;
    submit(&shot);
    wait_for(&shot);
    fails(TRITONSERVER_InferenceResponseError(shot.response),
        TRITONSERVER_ERROR_INTERNAL, "no attributes");
    assert_int_equal(world.buffers, 0);
    finish(&shot);
    succeeds(TRITONSERVER_ResponseAllocatorDelete(a));
}

static void
ask_for_properties(void *userp)
{
    shot_t *shot = userp;
    shot->type = TRITONSERVER_MEMORY_GPU;
    TRITONSERVER_Error *err = TRITONBACKEND_RequestOutputBufferProperties(
        (void *) shot->request, "OUTPUT0", NULL, &shot->type, &shot->id);
    shot->count = err != NULL ? TRITONSERVER_ErrorCode(err) : 0;
    TRITONSERVER_ErrorDelete(err);
}

static void
an_output_query_goes_to_the_client(void **state)
{
    (void) state;
    TRITONSERVER_ResponseAllocator *a;
    shot_t shot;

    succeeds(TRITONSERVER_ResponseAllocatorNew(&a, on_alloc,
        on_release_buffer, NULL));
    make(&shot, "echo", true);
    shot.during = ask_for_properties;
    succeeds(TRITONSERVER_InferenceRequestSetResponseCallback(shot.request, a,
        &shot, on_response, &shot));
    submit(&shot);
    wait_for(&shot);
    assert_int_equal(shot.count, TRITONSERVER_ERROR_UNAVAILABLE);
    succeeds(TRITONSERVER_InferenceResponseDelete(shot.response));

    succeeds(TRITONSERVER_ResponseAllocatorSetQueryFunction(a, on_query));
    submit(&shot);
    wait_for(&shot);
    assert_int_equal(shot.count, 0);
    assert_int_equal(shot.type, TRITONSERVER_MEMORY_CPU);
    assert_int_equal(shot.id, 3);
    finish(&shot);
    succeeds(TRITONSERVER_ResponseAllocatorDelete(a));
}

/* scheduling.md 8.1, 8.6 and 8.7, on the default scheduler (2.3) */
static void
a_queued_request_is_cancelled_at_once(void **state)
{
    (void) state;
    shot_t running, queued;
    bool cancelled = false;

    make(&running, "slow", false);
    make(&queued, "slow", false);
    fails(TRITONSERVER_InferenceRequestCancel(queued.request),
        TRITONSERVER_ERROR_INTERNAL, "It is not possible to cancel an"
        " inference request before calling TRITONSERVER_InferAsync.");
    fails(TRITONSERVER_InferenceRequestIsCancelled(queued.request, &cancelled),
        TRITONSERVER_ERROR_INTERNAL, "It is not possible to query cancellation"
        " status before calling TRITONSERVER_InferAsync.");
    submit(&running);
    usleep(20000);
    submit(&queued);
    fails(TRITONSERVER_InferenceRequestDelete(queued.request),
        TRITONSERVER_ERROR_INTERNAL, "not been released");
    fails(TRITONSERVER_ServerInferAsync(world.server, queued.request, NULL),
        TRITONSERVER_ERROR_INTERNAL, "before it was released");

    /* a client may hold what its callbacks need */
    pthread_mutex_lock(&lock);
    succeeds(TRITONSERVER_InferenceRequestCancel(queued.request));
    pthread_mutex_unlock(&lock);
    wait_for(&queued);
    pthread_mutex_lock(&lock);
    assert_int_equal(running.responses, 0);
    pthread_mutex_unlock(&lock);
    fails(TRITONSERVER_InferenceResponseError(queued.response),
        TRITONSERVER_ERROR_CANCELLED, "");
    succeeds(TRITONSERVER_InferenceRequestIsCancelled(queued.request,
        &cancelled));
    assert_true(cancelled);
    succeeds(TRITONSERVER_InferenceResponseDelete(queued.response));

    wait_for(&running);
    expect_echo(&running, 0, "OUTPUT0");
    finish(&running);

    /* each submit starts with a clear flag */
    submit(&queued);
    succeeds(TRITONSERVER_InferenceRequestIsCancelled(queued.request,
        &cancelled));
    assert_false(cancelled);
    wait_for(&queued);
    expect_echo(&queued, 0, "OUTPUT0");
    finish(&queued);
}

/* scheduling.md 8.4: all that is outstanding is cancelled, as at the end of a
   stream, and each is answered once. */
static void
a_cancel_may_meet_the_answer(void **state)
{
    (void) state;
    enum { ROUNDS = 20 };
    static shot_t shots[IN_FLIGHT];
    int cancelled = 0;

    for (int i = 0; i < IN_FLIGHT; i++) {
        make(&shots[i], "echo", true);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < IN_FLIGHT; i++) {
            submit(&shots[i]);
        }
        for (int i = IN_FLIGHT; i-- > 0; ) {
            pthread_mutex_lock(&lock);
            if (shots[i].released == 0) {
                succeeds(TRITONSERVER_InferenceRequestCancel(
                    shots[i].request));
            }
            pthread_mutex_unlock(&lock);
        }
        for (int i = 0; i < IN_FLIGHT; i++) {
            wait_for(&shots[i]);
            TRITONSERVER_Error *err = TRITONSERVER_InferenceResponseError(
                shots[i].response);
            if (err != NULL) {
                fails(err, TRITONSERVER_ERROR_CANCELLED, "");
                cancelled++;
            } else {
                expect_echo(&shots[i], 0, "OUTPUT0");
            }
            assert_int_equal(shots[i].responses, 1);
            assert_int_equal(shots[i].released, 1);
            succeeds(TRITONSERVER_InferenceResponseDelete(
                shots[i].response));
        }
    }

    print_message("%d of %d were cancelled in the queue\n", cancelled,
        ROUNDS * IN_FLIGHT);
    for (int i = 0; i < IN_FLIGHT; i++) {
        succeeds(TRITONSERVER_InferenceRequestDelete(shots[i].request));
    }
}

static void
a_raw_input_takes_its_shape_from_the_model(void **state)
{
    (void) state;
    const int64_t shape[1] = { 1 };
    shot_t shot;

    make(&shot, "echo", true);
    succeeds(TRITONSERVER_InferenceRequestRemoveAllInputs(shot.request));
    succeeds(TRITONSERVER_InferenceRequestAddRawInput(shot.request, "body"));
    fails(TRITONSERVER_InferenceRequestAddInput(shot.request, "INPUT0",
        TRITONSERVER_TYPE_FP32, shape, 1), TRITONSERVER_ERROR_INVALID_ARG,
        "raw input");
    succeeds(TRITONSERVER_InferenceRequestAppendInputData(shot.request,
        "body", shot.data, 20, TRITONSERVER_MEMORY_CPU, 0));
    succeeds(TRITONSERVER_InferenceRequestAppendInputData(shot.request,
        "body", shot.data + 5, sizeof(shot.data) - 20,
        TRITONSERVER_MEMORY_CPU, 0));
    submit(&shot);
    wait_for(&shot);
    expect_echo(&shot, 0, "OUTPUT0");
    finish(&shot);
}

static void
look_at_host_data(void *userp)
{
    shot_t *shot = userp;
    const void *usual;
    uint64_t size = 0;
    TRITONBACKEND_Input *in;

    succeeds(TRITONBACKEND_RequestInput((void *) shot->request, "INPUT0",
        &in));
    succeeds(TRITONBACKEND_InputBufferForHostPolicy(in, "node_1", 0,
        &shot->buffer, &shot->size, &shot->type, &shot->id));
    succeeds(TRITONBACKEND_InputPropertiesForHostPolicy(in, "node_1", NULL,
        NULL, NULL, NULL, &size, &shot->count));
    assert_int_equal(size, shot->size);
    succeeds(TRITONBACKEND_InputBufferForHostPolicy(in, "node_2", 0, &usual,
        &size, &shot->type, &shot->id));
    assert_ptr_equal(usual, shot->data);
    succeeds(TRITONBACKEND_InputBufferForHostPolicy(in, "node_1", 1, &usual,
        &size, &shot->type, &shot->id));
    assert_null(usual);
}

static void
data_may_be_kept_per_host_policy(void **state)
{
    (void) state;
    shot_t shot;

    make(&shot, "echo", true);
    shot.during = look_at_host_data;
    succeeds(TRITONSERVER_InferenceRequestAppendInputDataWithHostPolicy(
        shot.request, "INPUT0", shot.data + 4, 8, TRITONSERVER_MEMORY_CPU, 0,
        "node_1"));
    submit(&shot);
    wait_for(&shot);
    assert_ptr_equal(shot.buffer, shot.data + 4);
    assert_int_equal(shot.size, 8);
    assert_int_equal(shot.count, 1);
    expect_echo(&shot, 0, "OUTPUT0");
    finish(&shot);
}

static void
what_is_set_is_read_back(void **state)
{
    (void) state;
    char longer[130];
    const char *text;
    uint64_t number = 7;
    uint32_t flags = 0;
    shot_t shot;

    make(&shot, "echo", true);
    TRITONSERVER_InferenceRequest *r = shot.request;
    succeeds(TRITONSERVER_InferenceRequestId(r, &text));
    assert_string_equal(text, "");
    succeeds(TRITONSERVER_InferenceRequestCorrelationId(r, &number));
    assert_int_equal(number, 0);
    fails(TRITONSERVER_InferenceRequestCorrelationIdString(r, &text),
        TRITONSERVER_ERROR_INVALID_ARG, "given request's correlation id is not a string");
    succeeds(TRITONSERVER_InferenceRequestSetCorrelationIdString(r, "seq"));
    succeeds(TRITONSERVER_InferenceRequestCorrelationIdString(r, &text));
    assert_string_equal(text, "seq");
    fails(TRITONSERVER_InferenceRequestCorrelationId(r, &number),
        TRITONSERVER_ERROR_INVALID_ARG, "given request's correlation id is not an"
        " unsigned int");
    memset(longer, 'x', 129);
    longer[129] = '\0';
    fails(TRITONSERVER_InferenceRequestSetCorrelationIdString(r, longer),
        TRITONSERVER_ERROR_UNSUPPORTED, "longer than 128");
    succeeds(TRITONSERVER_InferenceRequestSetFlags(r,
        TRITONSERVER_REQUEST_FLAG_SEQUENCE_END));
    succeeds(TRITONSERVER_InferenceRequestFlags(r, &flags));
    assert_int_equal(flags, TRITONSERVER_REQUEST_FLAG_SEQUENCE_END);

    /* a model without priority levels has its default only */
    succeeds(TRITONSERVER_InferenceRequestSetPriorityUInt64(r, 5));
    succeeds(TRITONSERVER_InferenceRequestPriorityUInt64(r, &number));
    assert_int_equal(number, 0);
    succeeds(TRITONSERVER_InferenceRequestPriority(r, &flags));
    assert_int_equal(flags, 0);
    succeeds(TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(r, 99));
    succeeds(TRITONSERVER_InferenceRequestTimeoutMicroseconds(r, &number));
    assert_int_equal(number, 99);
    succeeds(TRITONSERVER_InferenceRequestDelete(r));
}

static void
metrics_name_every_model_that_serves(void **state)
{
    (void) state;
    TRITONSERVER_Metrics *metrics;
    const char *text;
    size_t size;
    shot_t shot;

    make(&shot, "pair", false);
    submit(&shot);
    wait_for(&shot);
    finish(&shot);
    succeeds(TRITONSERVER_ServerMetrics(world.server, &metrics));
    fails(TRITONSERVER_MetricsFormatted(metrics, 7, &text, &size),
        TRITONSERVER_ERROR_INVALID_ARG, "format");
    succeeds(TRITONSERVER_MetricsFormatted(metrics,
        TRITONSERVER_METRIC_PROMETHEUS, &text, &size));
    assert_non_null(strstr(text, "# TYPE nv_inference_count counter\n"));
    const char *row = strstr(text,
        "nv_inference_request_success{model=\"pair\",version=\"1\"} ");
    assert_non_null(row);
    assert_true(atoi(strchr(row, ' ')) > 0);
    assert_non_null(strstr(text, "{model=\"slow\",version=\"1\"} "));
    assert_null(strstr(text, "broken"));
    succeeds(TRITONSERVER_MetricsDelete(metrics));
}

static char activities[256];
static _Atomic int traces_released;

static void
on_activity(TRITONSERVER_InferenceTrace *trace,
    TRITONSERVER_InferenceTraceActivity activity, uint64_t timestamp_ns,
    void *userp)
{
    (void) trace;
    (void) userp;
    assert_true(timestamp_ns > 0);
    pthread_mutex_lock(&lock);
    strcat(activities, TRITONSERVER_InferenceTraceActivityString(activity));
    strcat(activities, ";");
    pthread_mutex_unlock(&lock);
}

static void
on_trace_release(TRITONSERVER_InferenceTrace *trace, void *userp)
{
    (void) userp;
    assert_null(TRITONSERVER_InferenceTraceDelete(trace));
    traces_released++;
}

static void
a_trace_ends_with_the_last_response(void **state)
{
    (void) state;
    TRITONSERVER_InferenceTrace *trace;
    shot_t shot;

    succeeds(TRITONSERVER_InferenceTraceNew(&trace,
        TRITONSERVER_TRACE_LEVEL_TIMESTAMPS, 0, on_activity, on_trace_release,
        NULL));
    make(&shot, "echo", true);
    succeeds(TRITONSERVER_InferenceRequestAddRequestedOutput(shot.request,
        "NO"));
    fails(TRITONSERVER_ServerInferAsync(world.server, shot.request, trace),
        TRITONSERVER_ERROR_INVALID_ARG, "'NO'");
    assert_int_equal(traces_released, 0);       /* still ours                */

    succeeds(TRITONSERVER_InferenceRequestRemoveAllRequestedOutputs(
        shot.request));
    succeeds(TRITONSERVER_ServerInferAsync(world.server, shot.request, trace));
    wait_for(&shot);
    assert_int_equal(traces_released, 0);
    succeeds(TRITONSERVER_InferenceResponseDelete(shot.response));

    for (int i = 0; traces_released == 0 && i < 1000; i++) {
        usleep(1000);           /* the backend lets go of its side           */
    }
    assert_int_equal(traces_released, 1);
    assert_string_equal(activities, "REQUEST_START;QUEUE_START;COMPUTE_START;"
        "COMPUTE_INPUT_END;COMPUTE_OUTPUT_START;COMPUTE_END;REQUEST_END;");
    succeeds(TRITONSERVER_InferenceRequestDelete(shot.request));
}

/* Another server in the same process. */
static void
a_server_is_not_deleted_under_a_response(void **state)
{
    (void) state;
    TRITONSERVER_ServerOptions *o = new_options(
        TRITONSERVER_MODEL_CONTROL_EXPLICIT);
    TRITONSERVER_Server *first = world.server;
    TRITONSERVER_Server *second;
    shot_t shot;
    bool ready = false;

    succeeds(TRITONSERVER_ServerOptionsSetStartupModel(o, "echo"));
    succeeds(TRITONSERVER_ServerOptionsSetStartupModel(o, "echo"));
    succeeds(TRITONSERVER_ServerNew(&second, o));
    succeeds(TRITONSERVER_ServerOptionsDelete(o));
    succeeds(TRITONSERVER_ServerIsReady(second, &ready));
    assert_true(ready);
    succeeds(TRITONSERVER_ServerModelIsReady(second, "pair", -1, &ready));
    assert_false(ready);

    world.server = second;
    make(&shot, "echo", true);
    submit(&shot);
    wait_for(&shot);
    world.server = first;

    succeeds(TRITONSERVER_ServerSetExitTimeout(second, 0));
    fails(TRITONSERVER_ServerDelete(second), TRITONSERVER_ERROR_INTERNAL,
        "Exit timeout expired");
    fails(TRITONSERVER_ServerIsReady(second, &ready),
        TRITONSERVER_ERROR_UNAVAILABLE, "Server exiting");
    fails(TRITONSERVER_ServerInferAsync(second, shot.request, NULL),
        TRITONSERVER_ERROR_UNAVAILABLE, "Server is stopping");
    expect_echo(&shot, 0, "OUTPUT0");
    finish(&shot);
    succeeds(TRITONSERVER_ServerSetExitTimeout(second, 10));
    succeeds(TRITONSERVER_ServerDelete(second));
}

static void
starts_fail_as_the_options_say(void **state)
{
    (void) state;
    TRITONSERVER_Server *s = NULL;
    TRITONSERVER_ServerOptions *o = new_options(
        TRITONSERVER_MODEL_CONTROL_POLL);

    fails(TRITONSERVER_ServerNew(&s, o), TRITONSERVER_ERROR_INTERNAL,
        "failed to load all models");
    assert_null(s);
    succeeds(TRITONSERVER_ServerOptionsSetModelRepositoryPath(o,
        "/no/such/place"));
    fails(TRITONSERVER_ServerNew(&s, o), TRITONSERVER_ERROR_INTERNAL,
        "/no/such/place");
    succeeds(TRITONSERVER_ServerOptionsDelete(o));

    succeeds(TRITONSERVER_ServerOptionsNew(&o));
    succeeds(TRITONSERVER_ServerOptionsSetModelRepositoryPath(o,
        "/proc/self/stat"));
    fails(TRITONSERVER_ServerNew(&s, o), TRITONSERVER_ERROR_INVALID_ARG,
        "repository path is not a valid directory");
    succeeds(TRITONSERVER_ServerOptionsDelete(o));

    succeeds(TRITONSERVER_ServerOptionsNew(&o));
    fails(TRITONSERVER_ServerNew(&s, o), TRITONSERVER_ERROR_INVALID_ARG,
        "--model-repository must be specified");
    succeeds(TRITONSERVER_ServerOptionsDelete(o));

    o = new_options(TRITONSERVER_MODEL_CONTROL_NONE);
    succeeds(TRITONSERVER_ServerOptionsSetRepoAgentDirectory(o, ""));
    fails(TRITONSERVER_ServerNew(&s, o), TRITONSERVER_ERROR_INVALID_ARG,
        "--repoagent-directory can not be empty");
    succeeds(TRITONSERVER_ServerOptionsDelete(o));

    o = new_options(TRITONSERVER_MODEL_CONTROL_NONE);
    succeeds(TRITONSERVER_ServerOptionsSetCacheDirectory(o, ""));
    fails(TRITONSERVER_ServerNew(&s, o), TRITONSERVER_ERROR_INVALID_ARG,
        "cache directory can not be empty");
    succeeds(TRITONSERVER_ServerOptionsDelete(o));

    o = new_options(TRITONSERVER_MODEL_CONTROL_EXPLICIT);
    succeeds(TRITONSERVER_ServerOptionsSetStartupModel(o, "ghost"));
    fails(TRITONSERVER_ServerNew(&s, o), TRITONSERVER_ERROR_INTERNAL,
        "failed to load all models");
    succeeds(TRITONSERVER_ServerOptionsSetStartupModel(o, "*"));
    fails(TRITONSERVER_ServerNew(&s, o), TRITONSERVER_ERROR_INVALID_ARG,
        "must be the ONLY startup model");
    succeeds(TRITONSERVER_ServerOptionsSetModelControlMode(o,
        TRITONSERVER_MODEL_CONTROL_NONE));
    fails(TRITONSERVER_ServerNew(&s, o), TRITONSERVER_ERROR_INTERNAL,
        "failed to load all models");
    succeeds(TRITONSERVER_ServerOptionsDelete(o));
}

static void
options_reject_what_cannot_be(void **state)
{
    (void) state;
    TRITONSERVER_Server *s;
    TRITONSERVER_ServerOptions *o = new_options(
        TRITONSERVER_MODEL_CONTROL_NONE);

    fails(TRITONSERVER_ServerOptionsSetModelControlMode(o, 9),
        TRITONSERVER_ERROR_INVALID_ARG, "control mode");
    fails(TRITONSERVER_ServerOptionsSetRateLimiterMode(o, 9),
        TRITONSERVER_ERROR_INVALID_ARG, "rate limit mode");
    fails(TRITONSERVER_ServerOptionsSetHostPolicy(o, "p", "colour", "red"),
        TRITONSERVER_ERROR_UNSUPPORTED, "'numa-node', 'cpu-cores'");
    fails(TRITONSERVER_ServerOptionsSetModelLoadDeviceLimit(o,
        TRITONSERVER_INSTANCEGROUPKIND_CPU, 0, 0.5),
        TRITONSERVER_ERROR_INVALID_ARG, "got: CPU");
    fails(TRITONSERVER_ServerOptionsSetModelLoadDeviceLimit(o,
        TRITONSERVER_INSTANCEGROUPKIND_GPU, -1, 0.5),
        TRITONSERVER_ERROR_INVALID_ARG, "device ID");
    fails(TRITONSERVER_ServerOptionsSetModelLoadDeviceLimit(o,
        TRITONSERVER_INSTANCEGROUPKIND_CPU, -1, 0.5),
        TRITONSERVER_ERROR_INVALID_ARG, "expects device ID >= 0, got -1");
    fails(TRITONSERVER_ServerOptionsSetModelLoadDeviceLimit(o,
        TRITONSERVER_INSTANCEGROUPKIND_GPU, 0, 1.5),
        TRITONSERVER_ERROR_INVALID_ARG,
        "expects limit fraction to be in range [0.0, 1.0], got 1.5");
    succeeds(TRITONSERVER_ServerOptionsSetResponseCacheByteSize(o, 0));
    assert_string_equal(o->config->values->cache_name, "");
    succeeds(TRITONSERVER_ServerOptionsSetResponseCacheByteSize(o, 4096));
    assert_string_equal(o->config->values->cache_config, "{\"size\":4096}");
    succeeds(TRITONSERVER_ServerOptionsSetCacheConfig(o, "local", "{}"));
    assert_string_equal(o->config->values->cache_config, "{}");
    succeeds(TRITONSERVER_ServerOptionsSetCacheConfig(o, "other", "{}"));
    fails(TRITONSERVER_ServerNew(&s, o), TRITONSERVER_ERROR_INVALID_ARG,
        "found multiple cache configurations, but only a single cache is"
        " currently supported");
    succeeds(TRITONSERVER_ServerOptionsSetCudaMemoryPoolByteSize(o, 0, 1));
    succeeds(TRITONSERVER_ServerOptionsSetCudaMemoryPoolByteSize(o, 0, 2));
    assert_int_equal(o->config->values->n_cuda_pools, 1);
    succeeds(TRITONSERVER_ServerOptionsSetBackendConfig(o, "identity", "a",
        "b"));
    assert_string_equal(o->config->values->agent_directories[0],
        "/opt/tritonserver/repoagents");
    succeeds(TRITONSERVER_ServerOptionsSetRepoAgentDirectory(o, "/a"));
    assert_string_equal(o->config->values->agent_directories[0], "/a");
    assert_int_equal(o->config->values->n_agent_directories, 1);
    succeeds(TRITONSERVER_ServerOptionsDelete(o));
}

static void
each_control_mode_has_its_errors(void **state)
{
    (void) state;
    TRITONSERVER_Server *s;
    TRITONSERVER_Message *m;

    fails(TRITONSERVER_ServerLoadModel(world.server, "echo"),
        TRITONSERVER_ERROR_UNAVAILABLE, "explicit model load / unload is not"
        " allowed if polling is enabled; inference_model_control is none, not"
        " explicit (inference-server: --model-control-mode=explicit)");
    fails(TRITONSERVER_ServerUnloadModel(world.server, "echo"),
        TRITONSERVER_ERROR_UNAVAILABLE, "explicit model load / unload");
    fails(TRITONSERVER_ServerPollModelRepository(world.server),
        TRITONSERVER_ERROR_UNAVAILABLE, "polling is disabled");
    fails(TRITONSERVER_ServerRegisterModelRepository(world.server, "/x", NULL,
        0), TRITONSERVER_ERROR_UNSUPPORTED, "not EXPLICIT");
    fails(TRITONSERVER_ServerUnregisterModelRepository(world.server, "/x"),
        TRITONSERVER_ERROR_UNSUPPORTED, "not EXPLICIT");

    TRITONSERVER_ServerOptions *o = new_options(
        TRITONSERVER_MODEL_CONTROL_EXPLICIT);
    succeeds(TRITONSERVER_ServerNew(&s, o));
    succeeds(TRITONSERVER_ServerOptionsDelete(o));
    succeeds(TRITONSERVER_ServerModelIndex(s, 0, &m));
    expect_json(m, "[{\"name\":\"broken\"},{\"name\":\"echo\"},"
        "{\"name\":\"pair\"},{\"name\":\"slow\"}]");
    succeeds(TRITONSERVER_ServerModelIndex(s, TRITONSERVER_INDEX_FLAG_READY,
        &m));
    expect_json(m, "[]");
    fails(TRITONSERVER_ServerLoadModel(s, " "), TRITONSERVER_ERROR_INVALID_ARG,
        "Model name cannot be empty.");
    fails(TRITONSERVER_ServerLoadModel(s, "a/b"),
        TRITONSERVER_ERROR_INVALID_ARG, "path traversal");
    TRITONSERVER_Parameter *p = TRITONSERVER_ParameterNew("speed",
        TRITONSERVER_PARAMETER_STRING, "high");
    const TRITONSERVER_Parameter *list[1] = { p };
    fails(TRITONSERVER_ServerLoadModelWithParameters(s, "echo", list, 1),
        TRITONSERVER_ERROR_INVALID_ARG, "Unrecognized load parameter 'speed'");
    TRITONSERVER_ParameterDelete(p);
    p = TRITONSERVER_ParameterBytesNew("file:1/m", "x", 1);
    list[0] = p;
    fails(TRITONSERVER_ServerLoadModelWithParameters(s, "echo", list, 1),
        TRITONSERVER_ERROR_INTERNAL, "failed to load 'echo', failed to poll"
        " from model repository");
    TRITONSERVER_ParameterDelete(p);
    p = TRITONSERVER_ParameterNew("file:1/m", TRITONSERVER_PARAMETER_STRING,
        "x");
    list[0] = p;
    fails(TRITONSERVER_ServerLoadModelWithParameters(s, "echo", list, 1),
        TRITONSERVER_ERROR_INVALID_ARG, "must be bytes");
    TRITONSERVER_ParameterDelete(p);
    fails(TRITONSERVER_ServerPollModelRepository(s),
        TRITONSERVER_ERROR_UNAVAILABLE, "polling is disabled");
    succeeds(TRITONSERVER_ServerDelete(s));
}

/* One inference on a server of its own. */
static void
echo_once(TRITONSERVER_Server *s, const char *model)
{
    TRITONSERVER_Server *other = world.server;
    shot_t shot;

    world.server = s;
    make(&shot, model, true);
    submit(&shot);
    wait_for(&shot);
    expect_echo(&shot, 0, "OUTPUT0");
    finish(&shot);
    world.server = other;
}

static void
index_becomes(TRITONSERVER_Server *s, uint32_t flags, const char *text)
{
    TRITONSERVER_Message *m;
    const char *base = "";
    size_t size;

    for (int i = 0; i < 60000; i++) {
        succeeds(TRITONSERVER_ServerModelIndex(s, flags, &m));
        succeeds(TRITONSERVER_MessageSerializeToJson(m, &base, &size));
        bool there = strstr(base, text) != NULL;
        succeeds(TRITONSERVER_MessageDelete(m));
        if (there) {
            return;
        }
        usleep(1000);
    }
    fail_msg("the index never has %s", text);
}

static void
models_come_and_go_while_the_server_runs(void **state)
{
    (void) state;
    TRITONSERVER_Server *s;
    bool ready = true;
    TRITONSERVER_ServerOptions *o = new_options(
        TRITONSERVER_MODEL_CONTROL_EXPLICIT);

    succeeds(TRITONSERVER_ServerOptionsSetStartupModel(o, "pair"));
    succeeds(TRITONSERVER_ServerOptionsSetModelLoadRetryCount(o, 1));
    succeeds(TRITONSERVER_ServerOptionsSetModelLoadThreadCount(o, 1));
    succeeds(TRITONSERVER_ServerNew(&s, o));
    succeeds(TRITONSERVER_ServerOptionsDelete(o));
    index_becomes(s, TRITONSERVER_INDEX_FLAG_READY,
        "[{\"name\":\"pair\",\"version\":\"1\",\"state\":\"READY\"}]");

    succeeds(TRITONSERVER_ServerLoadModel(s, "echo"));
    echo_once(s, "echo");
    succeeds(TRITONSERVER_ServerUnloadModel(s, "echo"));
    succeeds(TRITONSERVER_ServerModelIsReady(s, "echo", 1, &ready));
    assert_false(ready);
    index_becomes(s, 0, "{\"name\":\"echo\",\"version\":\"1\",\"state\":"
        "\"UNAVAILABLE\",\"reason\":\"unloaded\"}");
    succeeds(TRITONSERVER_ServerUnloadModelAndDependents(s, "echo"));
    succeeds(TRITONSERVER_ServerUnloadModel(s, "nobody"));
    succeeds(TRITONSERVER_ServerIsReady(s, &ready));
    assert_true(ready);

    fails(TRITONSERVER_ServerLoadModel(s, "missing"),
        TRITONSERVER_ERROR_INTERNAL, "failed to load 'missing', failed to poll"
        " from model repository");
    fails(TRITONSERVER_ServerLoadModel(s, "broken"),
        TRITONSERVER_ERROR_INVALID_ARG, "load failed for model 'broken':"
        " version 1 is at UNAVAILABLE state: Invalid argument: unable to find"
        " backend library for backend 'no_such_backend'");
    succeeds(TRITONSERVER_ServerIsReady(s, &ready));
    assert_false(ready);
    succeeds(TRITONSERVER_ServerDelete(s));
}

static void
a_load_may_bring_configuration_and_files(void **state)
{
    (void) state;
    TRITONSERVER_Server *s;
    TRITONSERVER_Message *m;
    TRITONSERVER_Parameter *p[3];
    TRITONSERVER_ServerOptions *o = new_options(
        TRITONSERVER_MODEL_CONTROL_EXPLICIT);
    static const char config[] = "{\"backend\":\"identity\","
        "\"max_batch_size\":3,\"input\":[{\"name\":\"INPUT0\",\"data_type\":"
        "\"TYPE_FP32\",\"dims\":[-1]}],\"output\":[{\"name\":\"OUTPUT0\","
        "\"data_type\":\"TYPE_FP32\",\"dims\":[-1],\"label_filename\":"
        "\"names.txt\"}]}";

    succeeds(TRITONSERVER_ServerNew(&s, o));
    succeeds(TRITONSERVER_ServerOptionsDelete(o));
    p[0] = TRITONSERVER_ParameterNew("config", TRITONSERVER_PARAMETER_STRING,
        config);
    p[1] = TRITONSERVER_ParameterBytesNew("file:5/data", "\0\1", 2);
    p[2] = TRITONSERVER_ParameterBytesNew("file:names.txt", "cat\n", 4);
    succeeds(TRITONSERVER_ServerLoadModelWithParameters(s, "sent",
        (const TRITONSERVER_Parameter **) p, 3));
    echo_once(s, "sent");
    succeeds(TRITONSERVER_ServerModelConfig(s, "sent", 5, 1, &m));
    expect_json(m, "\"max_batch_size\":3");
    succeeds(TRITONSERVER_ServerUnloadModel(s, "sent"));

    fails(TRITONSERVER_ServerLoadModelWithParameters(s, "echo",
        (const TRITONSERVER_Parameter **) p, 1),
        TRITONSERVER_ERROR_INVALID_ARG, "names.txt");   /* echo has none     */
    fails(TRITONSERVER_ServerLoadModelWithParameters(s, "echo", NULL, 1),
        TRITONSERVER_ERROR_INVALID_ARG, "load parameters are not provided"
        " while parameter count is non-zero");
    for (int i = 0; i < 3; i++) {
        TRITONSERVER_ParameterDelete(p[i]);
    }
    succeeds(TRITONSERVER_ServerDelete(s));
}

static TRITONSERVER_Server *controlled;

#define SLOW_CONFIG(count)                                                   \
    "{\"name\":\"slow\",\"backend\":\"identity\",\"input\":[{\"name\":"           \
    "\"INPUT0\",\"data_type\":\"TYPE_FP32\",\"dims\":[-1]}],\"output\":[{"      \
    "\"name\":\"OUTPUT0\",\"data_type\":\"TYPE_FP32\",\"dims\":[-1]}],"         \
    "\"parameters\":{\"execute_delay_ms\":{\"string_value\":\"150\"}},"        \
    "\"instance_group\":[{\"kind\":\"KIND_CPU\",\"count\":" #count "}]}"

static void
load_slow(const char *config)
{
    TRITONSERVER_Parameter *p = TRITONSERVER_ParameterNew("config",
        TRITONSERVER_PARAMETER_STRING, config);
    const TRITONSERVER_Parameter *list[] = { p };

    succeeds(TRITONSERVER_ServerLoadModelWithParameters(controlled, "slow",
        list, 1));
    TRITONSERVER_ParameterDelete(p);
}

/* Running requests, statistics and the model itself stay. */
static void
instances_change_while_a_request_runs(void **state)
{
    (void) state;
    static const char *const counts[] = {
        "\"count\":3,", "\"count\":1,", "\"count\":2,"
    };
    static const char *const configs[] = {
        SLOW_CONFIG(3), SLOW_CONFIG(1), SLOW_CONFIG(2)
    };
    TRITONSERVER_Message *m;
    shot_t shot;
    TRITONSERVER_Server *other = world.server;
    TRITONSERVER_ServerOptions *o = new_options(
        TRITONSERVER_MODEL_CONTROL_EXPLICIT);

    succeeds(TRITONSERVER_ServerOptionsSetStartupModel(o, "slow"));
    succeeds(TRITONSERVER_ServerNew(&controlled, o));
    succeeds(TRITONSERVER_ServerOptionsDelete(o));
    world.server = controlled;
    for (int i = 0; i < 3; i++) {
        char counted[64];

        make(&shot, "slow", false);
        submit(&shot);
        load_slow(configs[i]);
        succeeds(TRITONSERVER_ServerModelConfig(controlled, "slow", -1, 1,
            &m));
        expect_json(m, counts[i]);
        wait_for(&shot);
        expect_echo(&shot, 0, "OUTPUT0");
        finish(&shot);
        snprintf(counted, sizeof(counted), "\"inference_count\":%d,", i + 1);
        succeeds(TRITONSERVER_ServerModelStatistics(controlled, "slow", -1,
            &m));
        expect_json(m, counted);
    }
    world.server = other;
    succeeds(TRITONSERVER_ServerDelete(controlled));
}

/* On the instance's own thread, while its backend executes. */
static void
change_models(void *userp)
{
    (void) userp;
    succeeds(TRITONSERVER_ServerLoadModel(controlled, "pair"));
    succeeds(TRITONSERVER_ServerUnloadModel(controlled, "echo"));
    succeeds(TRITONSERVER_ServerLoadModel(controlled, "echo"));
    succeeds(TRITONSERVER_ServerUnloadModel(controlled, "pair"));
}

static void
backends_may_change_models_while_they_execute(void **state)
{
    (void) state;
    shot_t shot;
    TRITONSERVER_Server *other = world.server;
    TRITONSERVER_ServerOptions *o = new_options(
        TRITONSERVER_MODEL_CONTROL_EXPLICIT);

    succeeds(TRITONSERVER_ServerOptionsSetStartupModel(o, "echo"));
    succeeds(TRITONSERVER_ServerOptionsSetModelLoadThreadCount(o, 1));
    succeeds(TRITONSERVER_ServerNew(&controlled, o));
    succeeds(TRITONSERVER_ServerOptionsDelete(o));
    world.server = controlled;
    make(&shot, "echo", true);
    shot.during = change_models;
    submit(&shot);
    wait_for(&shot);
    expect_echo(&shot, 0, "OUTPUT0");
    finish(&shot);
    echo_once(controlled, "echo");
    world.server = other;
    succeeds(TRITONSERVER_ServerDelete(controlled));
}

static void
null_is_tolerated_where_backends_pass_it(void **state)
{
    (void) state;
    assert_null(TRITONSERVER_InferenceRequestDelete(NULL));
    assert_null(TRITONSERVER_InferenceResponseDelete(NULL));
    assert_null(TRITONSERVER_ServerStop(NULL));
    assert_null(TRITONSERVER_ServerDelete(NULL));
    assert_null(TRITONSERVER_ServerSetExitTimeout(NULL, 1));
    assert_null(TRITONSERVER_ServerOptionsDelete(NULL));
    TRITONSERVER_ErrorDelete(NULL);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_says_what_it_serves),
        cmocka_unit_test(a_request_is_answered_into_the_clients_memory),
        cmocka_unit_test(many_in_flight_are_used_again_and_again),
        cmocka_unit_test(ended_runs_are_used_again),
        cmocka_unit_test(requested_outputs_are_a_sorted_set),
        cmocka_unit_test(a_rejected_submit_calls_nobody),
        cmocka_unit_test(a_clients_allocator_may_reject),
        cmocka_unit_test(
            attributes_are_asked_for_and_a_failure_gives_the_buffer_back),
        cmocka_unit_test(an_output_query_goes_to_the_client),
        cmocka_unit_test(a_queued_request_is_cancelled_at_once),
        cmocka_unit_test(a_cancel_may_meet_the_answer),
        cmocka_unit_test(a_raw_input_takes_its_shape_from_the_model),
        cmocka_unit_test(data_may_be_kept_per_host_policy),
        cmocka_unit_test(what_is_set_is_read_back),
        cmocka_unit_test(metrics_name_every_model_that_serves),
        cmocka_unit_test(a_trace_ends_with_the_last_response),
        cmocka_unit_test(a_server_is_not_deleted_under_a_response),
        cmocka_unit_test(starts_fail_as_the_options_say),
        cmocka_unit_test(options_reject_what_cannot_be),
        cmocka_unit_test(each_control_mode_has_its_errors),
        cmocka_unit_test(models_come_and_go_while_the_server_runs),
        cmocka_unit_test(a_load_may_bring_configuration_and_files),
        cmocka_unit_test(instances_change_while_a_request_runs),
        cmocka_unit_test(backends_may_change_models_while_they_execute),
        cmocka_unit_test(null_is_tolerated_where_backends_pass_it),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
