/* A program's server with a response cache, asked through the C API. */

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

static char repository[64];
static char backends[512];
static TRITONSERVER_Server *server;
static TRITONSERVER_ResponseAllocator *allocator;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER;

typedef struct {
    TRITONSERVER_InferenceRequest *request;
    float                          data[4];
    float                          got[4];
    int                            responses;
    int                            released;
    TRITONSERVER_Error_Code        code;
    bool                           failed;
} shot_t;

static void
succeeds(TRITONSERVER_Error *err)
{
    if (err != NULL) {
        fail_msg("%s", TRITONSERVER_ErrorMessage(err));
    }
}

static TRITONSERVER_Error *
on_alloc(TRITONSERVER_ResponseAllocator *a, const char *name, size_t size,
    TRITONSERVER_MemoryType type, int64_t id, void *userp, void **buffer,
    void **buffer_userp, TRITONSERVER_MemoryType *actual, int64_t *actual_id)
{
    (void) a;
    (void) name;
    (void) type;
    (void) id;
    (void) userp;
    (void) buffer_userp;
    *actual = TRITONSERVER_MEMORY_CPU;
    *actual_id = 0;
    *buffer = malloc(size);
    return NULL;
}

static TRITONSERVER_Error *
on_release_buffer(TRITONSERVER_ResponseAllocator *a, void *buffer,
    void *buffer_userp, size_t size, TRITONSERVER_MemoryType type, int64_t id)
{
    (void) a;
    (void) buffer_userp;
    (void) size;
    (void) type;
    (void) id;
    free(buffer);
    return NULL;
}

static void
on_response(TRITONSERVER_InferenceResponse *response, const uint32_t flags,
    void *userp)
{
    shot_t *s = userp;
    const char *name;
    TRITONSERVER_DataType datatype;
    const int64_t *shape;
    uint64_t dims;
    const void *base;
    size_t size;
    TRITONSERVER_MemoryType type;
    int64_t id;
    void *buffer_userp;

    assert_int_equal(flags, TRITONSERVER_RESPONSE_COMPLETE_FINAL);
    TRITONSERVER_Error *err = TRITONSERVER_InferenceResponseError(response);
    s->failed = err != NULL;
    if (err != NULL) {
        s->code = TRITONSERVER_ErrorCode(err);
        TRITONSERVER_ErrorDelete(err);
    } else {
        succeeds(TRITONSERVER_InferenceResponseOutput(response, 0, &name,
            &datatype, &shape, &dims, &base, &size, &type, &id,
            &buffer_userp));
        assert_int_equal(size, sizeof(s->got));
        memcpy(s->got, base, size);
    }
    succeeds(TRITONSERVER_InferenceResponseDelete(response));

    pthread_mutex_lock(&lock);
    s->responses++;
    pthread_cond_broadcast(&arrived);
    pthread_mutex_unlock(&lock);
}

static void
on_release(TRITONSERVER_InferenceRequest *request, const uint32_t flags,
    void *userp)
{
    shot_t *s = userp;
    (void) request;
    (void) flags;

    pthread_mutex_lock(&lock);
    s->released++;
    pthread_cond_broadcast(&arrived);
    pthread_mutex_unlock(&lock);
}

static void
make(shot_t *s, const char *model, float value)
{
    const int64_t shape = 4;

    *s = (shot_t) { .data = { value, 1, 2, 3 } };
    succeeds(TRITONSERVER_InferenceRequestNew(&s->request, server, model, -1));
    succeeds(TRITONSERVER_InferenceRequestAddInput(s->request, "INPUT0",
        TRITONSERVER_TYPE_FP32, &shape, 1));
    succeeds(TRITONSERVER_InferenceRequestAppendInputData(s->request,
        "INPUT0", s->data, sizeof(s->data), TRITONSERVER_MEMORY_CPU, 0));
    succeeds(TRITONSERVER_InferenceRequestSetReleaseCallback(s->request,
        on_release, s));
    succeeds(TRITONSERVER_InferenceRequestSetResponseCallback(s->request,
        allocator, NULL, on_response, s));
}

static void
submit(shot_t *s)
{
    s->responses = 0;
    s->released = 0;
    succeeds(TRITONSERVER_ServerInferAsync(server, s->request, NULL));
}

static void
wait_for(shot_t *s)
{
    pthread_mutex_lock(&lock);
    while (s->responses == 0 || s->released == 0) {
        pthread_cond_wait(&arrived, &lock);
    }
    pthread_mutex_unlock(&lock);
    assert_int_equal(s->responses, 1);
    assert_int_equal(s->released, 1);
}

static void
finish(shot_t *s)
{
    succeeds(TRITONSERVER_InferenceRequestDelete(s->request));
}

static void
make_model(const char *name, const char *more)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", repository, name);
    assert_int_equal(mkdir(path, 0755), 0);
    snprintf(path, sizeof(path), "%s/%s/1", repository, name);
    assert_int_equal(mkdir(path, 0755), 0);
    snprintf(path, sizeof(path), "%s/%s/config.pbtxt", repository, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "backend: 'identity'\n"
        "input { name: 'INPUT0' data_type: TYPE_FP32 dims: -1 }\n"
        "output { name: 'OUTPUT0' data_type: TYPE_FP32 dims: -1 }\n"
        "instance_group { kind: KIND_CPU count: 1 }\n%s", more);
    fclose(f);
}

static TRITONSERVER_ServerOptions *
new_options(void)
{
    TRITONSERVER_ServerOptions *o;
    succeeds(TRITONSERVER_ServerOptionsNew(&o));
    succeeds(TRITONSERVER_ServerOptionsSetModelRepositoryPath(o, repository));
    succeeds(TRITONSERVER_ServerOptionsSetBackendDirectory(o, backends));
    succeeds(TRITONSERVER_ServerOptionsSetModelControlMode(o,
        TRITONSERVER_MODEL_CONTROL_NONE));
    succeeds(TRITONSERVER_ServerOptionsSetStrictModelConfig(o, false));
    succeeds(TRITONSERVER_ServerOptionsSetCacheDirectory(o, "/nonexistent"));
    return o;
}

static int
setup(void **state)
{
    (void) state;
    ssize_t n = readlink("/proc/self/exe", backends, 400);
    assert_true(n > 0);
    backends[n] = '\0';
    strcpy(strrchr(backends, '/'), "/backends");
    strcpy(repository, "/tmp/inf-unit-XXXXXX");
    assert_non_null(mkdtemp(repository));
    make_model("cached", "response_cache { enable: true }\n");
    make_model("slow", "response_cache { enable: true }\n"
        "parameters { key: 'execute_delay_ms'"
        " value { string_value: '200' } }\n");
    make_model("plain", "");

    succeeds(TRITONSERVER_ResponseAllocatorNew(&allocator, on_alloc,
        on_release_buffer, NULL));
    TRITONSERVER_ServerOptions *o = new_options();
    succeeds(TRITONSERVER_ServerOptionsSetResponseCacheByteSize(o, 1 << 20));
    succeeds(TRITONSERVER_ServerNew(&server, o));
    succeeds(TRITONSERVER_ServerOptionsDelete(o));
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    char command[128];
    succeeds(TRITONSERVER_ServerDelete(server));
    succeeds(TRITONSERVER_ResponseAllocatorDelete(allocator));
    snprintf(command, sizeof(command), "rm -rf %s", repository);
    return system(command);
}

static void
expect_statistics(const char *model, const char *text)
{
    TRITONSERVER_Message *m;
    const char *json;
    size_t size;
    succeeds(TRITONSERVER_ServerModelStatistics(server, model, -1, &m));
    succeeds(TRITONSERVER_MessageSerializeToJson(m, &json, &size));
    if (strstr(json, text) == NULL) {
        fail_msg("%s is not in %s", text, json);
    }
    succeeds(TRITONSERVER_MessageDelete(m));
}

static void
expect_metrics(const char *text, bool there)
{
    TRITONSERVER_Metrics *m;
    const char *shown;
    size_t size;
    succeeds(TRITONSERVER_ServerMetrics(server, &m));
    succeeds(TRITONSERVER_MetricsFormatted(m, TRITONSERVER_METRIC_PROMETHEUS,
        &shown, &size));
    if ((strstr(shown, text) != NULL) != there) {
        fail_msg("%s is %sin %s", text, there ? "not " : "", shown);
    }
    succeeds(TRITONSERVER_MetricsDelete(m));
}

static void
a_repeated_request_is_answered_inside_the_call(void **state)
{
    (void) state;
    shot_t s;

    make(&s, "cached", 5);
    for (int i = 0; i < 4; i++) {
        submit(&s);
        if (i > 0) {
            assert_int_equal(s.released, 1);    /* by now                    */
        }
        wait_for(&s);
        assert_false(s.failed);
        assert_memory_equal(s.got, s.data, sizeof(s.got));
        memset(s.got, 0, sizeof(s.got));
    }
    s.data[3] = 9;                              /* another request           */
    submit(&s);
    wait_for(&s);
    assert_memory_equal(s.got, s.data, sizeof(s.got));
    finish(&s);

    expect_statistics("cached", "\"cache_hit\":{\"count\":3,\"ns\":");
    expect_statistics("cached", "\"cache_miss\":{\"count\":2,\"ns\":");
    expect_statistics("cached", "\"success\":{\"count\":5,");
    expect_statistics("cached", "\"inference_count\":2,\"execution_count\":2");
    expect_metrics("nv_cache_num_hits_per_model{model=\"cached\","
        "version=\"1\"} 3\n", true);
    expect_metrics("nv_cache_num_misses_per_model{model=\"cached\","
        "version=\"1\"} 2\n", true);
    expect_metrics("nv_cache_num_hits_per_model{model=\"plain\"", false);
    expect_metrics("\nnv_cache_num_hits 3\n", true);
    expect_metrics("\nnv_cache_num_entries 2\n", true);
    expect_metrics("\nnv_cache_num_lookups 5\n", true);
    expect_metrics("# TYPE nv_cache_util gauge\nnv_cache_util 0.0", true);
}

static void
one_that_waits_for_the_same_can_be_cancelled(void **state)
{
    (void) state;
    shot_t s[3];

    for (int i = 0; i < 3; i++) {
        make(&s[i], "slow", 7);
    }
    submit(&s[0]);
    submit(&s[1]);
    submit(&s[2]);
    TRITONSERVER_Error *err = TRITONSERVER_InferenceRequestDelete(
        s[1].request);
    assert_non_null(err);                       /* it is in flight           */
    TRITONSERVER_ErrorDelete(err);
    succeeds(TRITONSERVER_InferenceRequestCancel(s[1].request));
    wait_for(&s[1]);
    assert_true(s[1].failed);
    assert_int_equal(s[1].code, TRITONSERVER_ERROR_CANCELLED);
    wait_for(&s[0]);
    wait_for(&s[2]);
    assert_false(s[0].failed || s[2].failed);
    assert_memory_equal(s[2].got, s[2].data, sizeof(s[2].got));
    expect_statistics("slow", "\"inference_count\":1,\"execution_count\":1");
    for (int i = 0; i < 3; i++) {
        finish(&s[i]);
    }
}

static void
a_program_s_server_needs_its_cache(void **state)
{
    (void) state;
    TRITONSERVER_Server *s;
    TRITONSERVER_ServerOptions *o = new_options();

    succeeds(TRITONSERVER_ServerOptionsSetCacheConfig(o, "redis", "{}"));
    TRITONSERVER_Error *err = TRITONSERVER_ServerNew(&s, o);
    assert_non_null(err);
    assert_int_equal(TRITONSERVER_ErrorCode(err),
        TRITONSERVER_ERROR_INVALID_ARG);
    assert_non_null(strstr(TRITONSERVER_ErrorMessage(err),
        "redis/libtritoncache_redis.so in /nonexistent"));
    TRITONSERVER_ErrorDelete(err);
    succeeds(TRITONSERVER_ServerOptionsDelete(o));

    o = new_options();
    succeeds(TRITONSERVER_ServerOptionsSetCacheConfig(o, "local",
        "{\"size\":\"lots\"}"));
    err = TRITONSERVER_ServerNew(&s, o);
    assert_non_null(err);
    assert_non_null(strstr(TRITONSERVER_ErrorMessage(err),
        "didn't contain a valid 'size' field"));
    TRITONSERVER_ErrorDelete(err);

    err = TRITONSERVER_ServerOptionsSetCacheConfig(o, "", "{}");
    assert_non_null(err);
    assert_int_equal(TRITONSERVER_ErrorCode(err),
        TRITONSERVER_ERROR_INVALID_ARG);
    TRITONSERVER_ErrorDelete(err);
    succeeds(TRITONSERVER_ServerOptionsDelete(o));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_repeated_request_is_answered_inside_the_call),
        cmocka_unit_test(one_that_waits_for_the_same_can_be_cancelled),
        cmocka_unit_test(a_program_s_server_needs_its_cache)
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
