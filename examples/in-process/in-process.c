/*
 * in-process.c - an inference server inside a program: no socket, no second
 *                process.
 *
 * It lists the models, asks `identity` for one answer, lets `repeat` stream
 * several, cancels it in the middle, and reads the metrics.
 *
 * Owner    Everything made here is deleted here, in reverse order; the memory
 *          of outputs is ours too (give_memory, take_memory).
 * Thread   main waits; the core answers on threads of its own.
 * Units    bytes; ms where a name says so.
 * Errors   printed, and the program ends with 1.
 * Route    repository -> server -> request -> [our memory] -> print
 */

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "triton/core/tritonserver.h"

/* One request and its answers, which come on the core's threads. */
typedef struct {
    pthread_mutex_t                 lock;
    pthread_cond_t                  changed;
    TRITONSERVER_InferenceRequest  *request;
    TRITONSERVER_ResponseAllocator *allocator;
    unsigned                        responses;  /* so far                    */
    bool                            ended;      /* the last one has come     */
    bool                            released;   /* inputs are ours again     */
    TRITONSERVER_Error_Code         code;       /* of the error, if failed   */
    bool                            failed;
} call_t;

static void check(TRITONSERVER_Error *err, const char *what);
static TRITONSERVER_Server *start_server(const char *repository,
    const char *backends);
static void list_models(TRITONSERVER_Server *server);
static void ask(TRITONSERVER_Server *server);
static void stream(TRITONSERVER_Server *server);
static void cancel(TRITONSERVER_Server *server);
static void print_metrics(TRITONSERVER_Server *server);
static void call_new(call_t *call, TRITONSERVER_Server *server,
    const char *model);
static void call_input(call_t *call, const char *name,
    TRITONSERVER_DataType datatype, int64_t count, const void *data,
    size_t size);
static void call_repeat(call_t *call, TRITONSERVER_Server *server,
    const int32_t *numbers, const uint32_t *delays_ms, int64_t count);
static void call_submit(call_t *call, TRITONSERVER_Server *server);
static void call_wait(call_t *call, unsigned responses);
static void call_end(call_t *call);
static void print_response(TRITONSERVER_InferenceResponse *response);
static void print_output(TRITONSERVER_InferenceResponse *response,
    uint32_t index);
static TRITONSERVER_Error *give_memory(
    TRITONSERVER_ResponseAllocator *allocator, const char *name, size_t size,
    TRITONSERVER_MemoryType wanted, int64_t wanted_id, void *userp,
    void **buffer, void **buffer_userp, TRITONSERVER_MemoryType *actual,
    int64_t *actual_id);
static TRITONSERVER_Error *take_memory(
    TRITONSERVER_ResponseAllocator *allocator, void *buffer,
    void *buffer_userp, size_t size, TRITONSERVER_MemoryType type,
    int64_t id);
static void on_response(TRITONSERVER_InferenceResponse *response,
    const uint32_t flags, void *userp);
static void on_release(TRITONSERVER_InferenceRequest *request,
    const uint32_t flags, void *userp);

int
main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: %s REPOSITORY BACKENDS\n", argv[0]);
        return 2;
    }

    TRITONSERVER_Server *server = start_server(argv[1], argv[2]);
    list_models(server);
    ask(server);
    stream(server);
    cancel(server);
    print_metrics(server);
    check(TRITONSERVER_ServerDelete(server), "stop the server");
    return 0;
}

/* Returns when every model is loaded, or has failed to. */
static TRITONSERVER_Server *
start_server(const char *repository, const char *backends)
{
    TRITONSERVER_ServerOptions *options;
    TRITONSERVER_Server *server;

    check(TRITONSERVER_ServerOptionsNew(&options), "make options");
    check(TRITONSERVER_ServerOptionsSetModelRepositoryPath(options,
        repository), "set the repository");
    check(TRITONSERVER_ServerOptionsSetBackendDirectory(options, backends),
        "set the backends");
    check(TRITONSERVER_ServerOptionsSetModelControlMode(options,
        TRITONSERVER_MODEL_CONTROL_NONE), "set the control mode");
    check(TRITONSERVER_ServerOptionsSetStrictModelConfig(options, false),
        "let backends complete configurations");
    check(TRITONSERVER_ServerOptionsSetExitOnError(options, false),
        "serve what can be loaded");

    check(TRITONSERVER_ServerNew(&server, options), "start the server");
    check(TRITONSERVER_ServerOptionsDelete(options), "delete options");
    return server;
}

static void
list_models(TRITONSERVER_Server *server)
{
    TRITONSERVER_Message *index;
    const char *json;
    size_t size;

    check(TRITONSERVER_ServerModelIndex(server, 0, &index), "list models");
    check(TRITONSERVER_MessageSerializeToJson(index, &json, &size),
        "read the index");
    printf("models: %.*s\n", (int) size, json);
    check(TRITONSERVER_MessageDelete(index), "delete the index");
}

/* One request, one response. */
static void
ask(TRITONSERVER_Server *server)
{
    static const float numbers[4] = { 1, 2.5f, -3, 4 };
    call_t call;

    printf("ask identity\n");
    call_new(&call, server, "identity");
    call_input(&call, "INPUT0", TRITONSERVER_TYPE_FP32, 4, numbers,
        sizeof(numbers));
    call_submit(&call, server);
    call_end(&call);
}

/* One request, four responses, 20 ms apart: each is printed as it comes. */
static void
stream(TRITONSERVER_Server *server)
{
    static const int32_t numbers[4] = { 10, 20, 30, 40 };
    static const uint32_t delays_ms[4] = { 20, 20, 20, 20 };
    uint32_t flags;
    call_t call;

    check(TRITONSERVER_ServerModelTransactionProperties(server, "repeat", -1,
        &flags, NULL), "look at repeat");
    printf("stream from repeat, which is %s\n",
        flags & TRITONSERVER_TXN_DECOUPLED ? "decoupled" : "one to one");

    call_repeat(&call, server, numbers, delays_ms, 4);
    call_submit(&call, server);
    call_end(&call);
    printf("%u responses\n", call.responses);
}

/*
 * A minute of responses that nobody wants after the second.  Cancelling only
 * tells the backend: it ends the request when it looks, by an error with the
 * code CANCELLED.
 */
static void
cancel(TRITONSERVER_Server *server)
{
    enum { COUNT = 600 };
    static int32_t numbers[COUNT];
    static uint32_t delays_ms[COUNT];
    call_t call;

    for (int i = 0; i < COUNT; i++) {
        numbers[i] = i;
        delays_ms[i] = 100;
    }

    printf("cancel repeat after two responses\n");
    call_repeat(&call, server, numbers, delays_ms, COUNT);
    call_submit(&call, server);
    call_wait(&call, 2);
    check(TRITONSERVER_InferenceRequestCancel(call.request), "cancel");
    call_end(&call);
    printf("%s\n", call.failed && call.code == TRITONSERVER_ERROR_CANCELLED
        ? "cancelled" : "it was quicker");
}

/* The same text that a scraper gets; here only what counts inferences. */
static void
print_metrics(TRITONSERVER_Server *server)
{
    static const char name[] = "nv_inference_request_success{";
    TRITONSERVER_Metrics *metrics;
    const char *text;
    size_t size;

    check(TRITONSERVER_ServerMetrics(server, &metrics), "take metrics");
    check(TRITONSERVER_MetricsFormatted(metrics,
        TRITONSERVER_METRIC_PROMETHEUS, &text, &size), "read metrics");
    for (const char *line = text; line < text + size; ) {
        const char *end = memchr(line, '\n', (size_t) (text + size - line));
        size_t len = (size_t) ((end != NULL ? end : text + size) - line);
        if (len > sizeof(name) && memcmp(line, name, sizeof(name) - 1) == 0) {
            printf("%.*s\n", (int) len, line);
        }
        line += len + 1;
    }
    check(TRITONSERVER_MetricsDelete(metrics), "delete metrics");
}

static void
call_new(call_t *call, TRITONSERVER_Server *server, const char *model)
{
    *call = (call_t) {
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER
    };
    check(TRITONSERVER_ResponseAllocatorNew(&call->allocator, give_memory,
        take_memory, NULL), "make an allocator");
    check(TRITONSERVER_InferenceRequestNew(&call->request, server, model, -1),
        "make a request");
    check(TRITONSERVER_InferenceRequestSetReleaseCallback(call->request,
        on_release, call), "set the release callback");
    check(TRITONSERVER_InferenceRequestSetResponseCallback(call->request,
        call->allocator, NULL, on_response, call), "set the response callback");
}

/* data isn't copied: it must stay until the request is released. */
static void
call_input(call_t *call, const char *name, TRITONSERVER_DataType datatype,
    int64_t count, const void *data, size_t size)
{
    check(TRITONSERVER_InferenceRequestAddInput(call->request, name, datatype,
        &count, 1), "add an input");
    check(TRITONSERVER_InferenceRequestAppendInputData(call->request, name,
        data, size, TRITONSERVER_MEMORY_CPU, 0), "add its data");
}

static void
call_repeat(call_t *call, TRITONSERVER_Server *server, const int32_t *numbers,
    const uint32_t *delays_ms, int64_t count)
{
    static const uint32_t wait_ms = 0;
    size_t size = (size_t) count * sizeof(int32_t);

    call_new(call, server, "repeat");
    call_input(call, "IN", TRITONSERVER_TYPE_INT32, count, numbers, size);
    call_input(call, "DELAY", TRITONSERVER_TYPE_UINT32, count, delays_ms,
        size);
    call_input(call, "WAIT", TRITONSERVER_TYPE_UINT32, 1, &wait_ms,
        sizeof(wait_ms));
}

/* From here on the callbacks may come, even before this has returned. */
static void
call_submit(call_t *call, TRITONSERVER_Server *server)
{
    check(TRITONSERVER_ServerInferAsync(server, call->request, NULL),
        "infer");
}

static void
call_wait(call_t *call, unsigned responses)
{
    pthread_mutex_lock(&call->lock);
    while (call->responses < responses && !call->ended) {
        pthread_cond_wait(&call->changed, &call->lock);
    }
    pthread_mutex_unlock(&call->lock);
}

/* Waits for both ends of it, which come in any order. */
static void
call_end(call_t *call)
{
    pthread_mutex_lock(&call->lock);
    while (!call->ended || !call->released) {
        pthread_cond_wait(&call->changed, &call->lock);
    }
    pthread_mutex_unlock(&call->lock);

    check(TRITONSERVER_InferenceRequestDelete(call->request),
        "delete the request");
    check(TRITONSERVER_ResponseAllocatorDelete(call->allocator),
        "delete the allocator");
}

static void
print_response(TRITONSERVER_InferenceResponse *response)
{
    uint32_t count;
    check(TRITONSERVER_InferenceResponseOutputCount(response, &count),
        "count outputs");

    for (uint32_t i = 0; i < count; i++) {
        print_output(response, i);
    }
}

static void
print_output(TRITONSERVER_InferenceResponse *response, uint32_t index)
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

    check(TRITONSERVER_InferenceResponseOutput(response, index, &name,
        &datatype, &shape, &dims, &base, &size, &type, &id, &userp),
        "read an output");

    printf("  %s: %s [", name, TRITONSERVER_DataTypeString(datatype));
    for (uint64_t d = 0; d < dims; d++) {
        printf("%s%" PRId64, d > 0 ? "," : "", shape[d]);
    }
    printf("]:");
    for (size_t n = 0; n < size / 4; n++) {
        if (datatype == TRITONSERVER_TYPE_FP32) {
            printf(" %g", (double) ((const float *) base)[n]);
        } else {
            printf(" %" PRId32, ((const int32_t *) base)[n]);
        }
    }
    printf("\n");
}

/* The core asks for CPU memory or something else; it gets CPU memory. */
static TRITONSERVER_Error *
give_memory(TRITONSERVER_ResponseAllocator *allocator, const char *name,
    size_t size, TRITONSERVER_MemoryType wanted, int64_t wanted_id,
    void *userp, void **buffer, void **buffer_userp,
    TRITONSERVER_MemoryType *actual, int64_t *actual_id)
{
    (void) allocator;
    (void) wanted;
    (void) wanted_id;
    (void) userp;

    *actual = TRITONSERVER_MEMORY_CPU;
    *actual_id = 0;
    *buffer_userp = NULL;
    *buffer = size > 0 ? malloc(size) : NULL;
    if (size > 0 && *buffer == NULL) {
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, name);
    }

    return NULL;
}

static TRITONSERVER_Error *
take_memory(TRITONSERVER_ResponseAllocator *allocator, void *buffer,
    void *buffer_userp, size_t size, TRITONSERVER_MemoryType type, int64_t id)
{
    (void) allocator;
    (void) buffer_userp;
    (void) size;
    (void) type;
    (void) id;
    free(buffer);
    return NULL;
}

/* The response is ours now.  NULL: only the end is told. */
static void
on_response(TRITONSERVER_InferenceResponse *response, const uint32_t flags,
    void *userp)
{
    call_t *call = userp;
    TRITONSERVER_Error *err = NULL;

    if (response != NULL) {
        err = TRITONSERVER_InferenceResponseError(response);
        if (err == NULL) {
            print_response(response);
        }
        check(TRITONSERVER_InferenceResponseDelete(response),
            "delete the response");
    }

    pthread_mutex_lock(&call->lock);
    if (err != NULL) {
        call->failed = true;
        call->code = TRITONSERVER_ErrorCode(err);
    } else if (response != NULL) {
        call->responses++;
    }
    call->ended |= (flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL) != 0;
    pthread_cond_signal(&call->changed);
    pthread_mutex_unlock(&call->lock);
    TRITONSERVER_ErrorDelete(err);
}

/* The request, and the memory of its inputs, is ours again. */
static void
on_release(TRITONSERVER_InferenceRequest *request, const uint32_t flags,
    void *userp)
{
    call_t *call = userp;
    (void) request;
    (void) flags;

    pthread_mutex_lock(&call->lock);
    call->released = true;
    pthread_cond_signal(&call->changed);
    pthread_mutex_unlock(&call->lock);
}

static void
check(TRITONSERVER_Error *err, const char *what)
{
    if (err != NULL) {
        fprintf(stderr, "cannot %s: %s: %s\n", what,
            TRITONSERVER_ErrorCodeString(err),
            TRITONSERVER_ErrorMessage(err));
        TRITONSERVER_ErrorDelete(err);
        exit(1);
    }
}
