/* Batches through the C API: what shares an execution, what statistics and
   metrics say of it, cancels and timeouts in the queue; identity backend. */

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

#define SHOTS 8
#define HELD  "4"                   /* the first batch waits for so many     */

static char repository[64];
static char backends[512];
static TRITONSERVER_Server *server;
static TRITONSERVER_ResponseAllocator *allocator;

typedef struct {
    TRITONSERVER_InferenceRequest *request;
    int32_t                        data[4];
    int                            responses, finals, released;
    TRITONSERVER_Error_Code        code;
    char                           error[128];
    int32_t                        answer[4];
    size_t                         size;
} shot_t;

static shot_t shots[SHOTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER;

static void
ok(TRITONSERVER_Error *err)
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
    shot_t *s = userp;
    (void) a, (void) name, (void) type, (void) id;
    assert_true(size <= sizeof(s->answer));
    *buffer = s->answer;
    *buffer_userp = NULL;
    *actual = TRITONSERVER_MEMORY_CPU;
    *actual_id = 0;
    s->size = size;
    return NULL;
}

static TRITONSERVER_Error *
on_free(TRITONSERVER_ResponseAllocator *a, void *buffer, void *buffer_userp,
    size_t size, TRITONSERVER_MemoryType type, int64_t id)
{
    (void) a, (void) buffer, (void) buffer_userp, (void) size, (void) type;
    (void) id;
    return NULL;
}

static void
on_response(TRITONSERVER_InferenceResponse *response, const uint32_t flags,
    void *userp)
{
    shot_t *s = userp;
    TRITONSERVER_Error *err = TRITONSERVER_InferenceResponseError(response);

    pthread_mutex_lock(&lock);
    s->responses++;
    s->finals += (flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL) != 0;
    if (err != NULL) {
        s->code = TRITONSERVER_ErrorCode(err);
        snprintf(s->error, sizeof(s->error), "%s.",
            TRITONSERVER_ErrorMessage(err));
    }
    pthread_mutex_unlock(&lock);
    TRITONSERVER_ErrorDelete(err);
    TRITONSERVER_InferenceResponseDelete(response);
}

static void
on_release(TRITONSERVER_InferenceRequest *request, const uint32_t flags,
    void *userp)
{
    shot_t *s = userp;
    (void) request, (void) flags;
    pthread_mutex_lock(&lock);
    s->released++;
    pthread_cond_broadcast(&arrived);
    pthread_mutex_unlock(&lock);
}

static shot_t *
submit(int i, const char *model, int64_t rows)
{
    shot_t *s = &shots[i];
    const int64_t shape[2] = { rows, 1 };

    *s = (shot_t) { .data = { i, i + 10, i + 20, i + 30 } };
    ok(TRITONSERVER_InferenceRequestNew(&s->request, server, model, -1));
    ok(TRITONSERVER_InferenceRequestAddInput(s->request, "INPUT0",
        TRITONSERVER_TYPE_INT32, shape, 2));
    ok(TRITONSERVER_InferenceRequestAppendInputData(s->request, "INPUT0",
        s->data, (size_t) rows * 4, TRITONSERVER_MEMORY_CPU, 0));
    ok(TRITONSERVER_InferenceRequestSetReleaseCallback(s->request,
        on_release, s));
    ok(TRITONSERVER_InferenceRequestSetResponseCallback(s->request,
        allocator, s, on_response, s));
    ok(TRITONSERVER_ServerInferAsync(server, s->request, NULL));
    return s;
}

static void
wait_for(shot_t *s)
{
    pthread_mutex_lock(&lock);
    while (s->released == 0 || s->finals == 0) {
        pthread_cond_wait(&arrived, &lock);
    }
    pthread_mutex_unlock(&lock);
    assert_int_equal(s->responses, 1);
    assert_int_equal(s->finals, 1);
    assert_int_equal(s->released, 1);
    ok(TRITONSERVER_InferenceRequestDelete(s->request));
}

static void
expect_echo(shot_t *s, size_t rows)
{
    wait_for(s);
    assert_string_equal(s->error, "");
    assert_int_equal(s->size, rows * 4);
    assert_memory_equal(s->answer, s->data, rows * 4);
}

static void
expect_statistics(const char *model, const char *text)
{
    TRITONSERVER_Message *message;
    const char *json;
    size_t len;

    ok(TRITONSERVER_ServerModelStatistics(server, model, -1, &message));
    ok(TRITONSERVER_MessageSerializeToJson(message, &json, &len));
    char *copy = strndup(json, len);
    if (strstr(copy, text) == NULL) {
        fail_msg("no %s in %s", text, copy);
    }
    free(copy);
    TRITONSERVER_MessageDelete(message);
}

static void
expect_pending(const char *model, int count)
{
    TRITONSERVER_Metrics *metrics;
    const char *text;
    size_t len;
    char line[200];

    snprintf(line, sizeof(line), "nv_inference_pending_request_count{"
        "model=\"%s\",version=\"1\"} %d", model, count);
    ok(TRITONSERVER_ServerMetrics(server, &metrics));
    ok(TRITONSERVER_MetricsFormatted(metrics, TRITONSERVER_METRIC_PROMETHEUS,
        &text, &len));
    if (memmem(text, len, line, strlen(line)) == NULL) {
        fail_msg("no %s in %.*s", line, (int) len, text);
    }
    TRITONSERVER_MetricsDelete(metrics);
}

/* scheduling.md 1.2, 1.3 and 1.4 */
static void
requests_of_one_batch_are_counted_as_one_execution(void **state)
{
    (void) state;
    for (int i = 0; i < 3; i++) {
        submit(i, "held", 1);
    }
    expect_pending("held", 3);
    submit(3, "held", 4);
    for (int i = 0; i < 4; i++) {
        expect_echo(&shots[i], i == 3 ? 4 : 1);
    }
    expect_pending("held", 0);
    expect_statistics("held", "\"inference_count\":7,\"execution_count\":1,");
    expect_statistics("held", "\"success\":{\"count\":4,");
    expect_statistics("held", "\"batch_stats\":[{\"batch_size\":7,"
        "\"compute_input\":{\"count\":1,");

    submit(0, "held", 4);                   /* held once                     */
    expect_echo(&shots[0], 4);
    expect_statistics("held", "\"inference_count\":11,"
        "\"execution_count\":2,");
}

/* scheduling.md 1.6 */
static void
a_backends_error_goes_to_each_of_the_batch(void **state)
{
    (void) state;
    for (int i = 0; i < 4; i++) {
        submit(i, "fails", 1);
    }
    for (int i = 0; i < 4; i++) {
        wait_for(&shots[i]);
        assert_string_equal(shots[i].error, "on purpose.");
    }
    expect_statistics("fails", "\"fail\":{\"count\":4,");
    expect_statistics("fails", "\"success\":{\"count\":0,");
}

/* scheduling.md 8.1 and 8.7 */
static void
a_queued_request_is_cancelled_once_however_often(void **state)
{
    (void) state;
    for (int i = 0; i < 3; i++) {
        submit(i, "cancels", 1);
    }
    for (int i = 0; i < 20; i++) {
        ok(TRITONSERVER_InferenceRequestCancel(shots[1].request));
    }
    wait_for(&shots[1]);
    assert_int_equal(shots[1].code, TRITONSERVER_ERROR_CANCELLED);
    assert_string_equal(shots[1].error, ".");
    expect_pending("cancels", 2);
    submit(1, "cancels", 1);
    submit(3, "cancels", 1);
    for (int i = 0; i < 4; i++) {
        expect_echo(&shots[i], 1);
    }
    expect_statistics("cancels", "\"inference_count\":4,"
        "\"execution_count\":1,");
    expect_statistics("cancels", "\"fail\":{\"count\":1,");
}

/* Nobody is idle, nobody comes: the timekeeper answers. */
static void
a_held_request_times_out(void **state)
{
    (void) state;
    shot_t *s = submit(0, "expires", 1);
    wait_for(s);
    assert_int_equal(s->code, TRITONSERVER_ERROR_UNAVAILABLE);
    assert_string_equal(s->error, "Request timeout expired.");
    expect_statistics("expires", "\"fail\":{\"count\":1,");
    expect_statistics("expires", "\"execution_count\":0,");
}

static void
make_model(const char *name, const char *batching, const char *parameters)
{
    char path[256];
    snprintf(path, sizeof(path), "%s/%s", repository, name);
    assert_int_equal(mkdir(path, 0755), 0);
    snprintf(path, sizeof(path), "%s/%s/1", repository, name);
    assert_int_equal(mkdir(path, 0755), 0);
    snprintf(path, sizeof(path), "%s/%s/config.pbtxt", repository, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "backend: 'identity' max_batch_size: 8\n"
        "input { name: 'INPUT0' data_type: TYPE_INT32 dims: 1 }\n"
        "output { name: 'OUTPUT0' data_type: TYPE_INT32 dims: 1 }\n"
        "instance_group { kind: KIND_CPU count: 1 }\n"
        "dynamic_batching { %s }\n%s", batching, parameters);
    fclose(f);
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
    snprintf(backends, sizeof(backends), "%s/backends", exe);

    strcpy(repository, "/tmp/inf-unit-XXXXXX");
    assert_non_null(mkdtemp(repository));
    make_model("held", "", "");
    make_model("fails", "", "parameters { key: 'fail_execute'"
        " value { string_value: 'on purpose' } }\n");
    make_model("cancels", "", "");
    make_model("expires", "default_queue_policy {"
        " default_timeout_microseconds: 20000 }", "");

    setenv("TRITONSERVER_DELAY_SCHEDULER", HELD, 1);
    TRITONSERVER_ServerOptions *o;
    ok(TRITONSERVER_ServerOptionsNew(&o));
    ok(TRITONSERVER_ServerOptionsSetModelRepositoryPath(o, repository));
    ok(TRITONSERVER_ServerOptionsSetBackendDirectory(o, backends));
    ok(TRITONSERVER_ServerNew(&server, o));
    ok(TRITONSERVER_ServerOptionsDelete(o));
    unsetenv("TRITONSERVER_DELAY_SCHEDULER");
    ok(TRITONSERVER_ResponseAllocatorNew(&allocator, on_alloc, on_free,
        NULL));
    return 0;
}

static int
teardown(void **state)
{
    (void) state;
    char command[128];

    ok(TRITONSERVER_ServerDelete(server));
    ok(TRITONSERVER_ResponseAllocatorDelete(allocator));
    snprintf(command, sizeof(command), "rm -rf %s", repository);
    return system(command);
}

int
main(void)
{
    alarm(300);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_of_one_batch_are_counted_as_one_execution),
        cmocka_unit_test(a_backends_error_goes_to_each_of_the_batch),
        cmocka_unit_test(a_queued_request_is_cancelled_once_however_often),
        cmocka_unit_test(a_held_request_times_out),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
