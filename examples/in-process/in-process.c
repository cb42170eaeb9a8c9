/*
 * in-process.c - an inference server inside a program: no socket, no second
 *                process.
 *
 * Owner    Everything made here is deleted here, in reverse order; the memory
 *          of outputs is ours too (give_memory, take_memory).
 * Thread   main waits; the core answers on a thread of its own.
 * Units    bytes.
 * Errors   printed, and the program ends with 1.
 * Route    repository -> server -> request -> [our memory] -> print
 */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "triton/core/tritonserver.h"

/* Where a request's answer is waited for. */
typedef struct {
    pthread_mutex_t                 lock;
    pthread_cond_t                  changed;
    TRITONSERVER_InferenceResponse *response;
    int                             answered;
    int                             released;
} answer_t;

static void check(TRITONSERVER_Error *err, const char *what);
static TRITONSERVER_Server *start_server(const char *repository,
    const char *backends);
static void list_models(TRITONSERVER_Server *server);
static void ask(TRITONSERVER_Server *server, const char *model);
static void print_outputs(TRITONSERVER_InferenceResponse *response);
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
    if (argc != 4) {
        fprintf(stderr, "usage: %s REPOSITORY BACKENDS MODEL\n", argv[0]);
        return 2;
    }

    TRITONSERVER_Server *server = start_server(argv[1], argv[2]);
    list_models(server);
    ask(server, argv[3]);
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

/* Four numbers for the input INPUT0. */
static void
ask(TRITONSERVER_Server *server, const char *model)
{
    static const float numbers[4] = { 1, 2.5f, -3, 4 };
    static const int64_t shape[1] = { 4 };
    answer_t answer = {
        .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER
    };
    TRITONSERVER_ResponseAllocator *allocator;
    TRITONSERVER_InferenceRequest *request;

    check(TRITONSERVER_ResponseAllocatorNew(&allocator, give_memory,
        take_memory, NULL), "make an allocator");
    check(TRITONSERVER_InferenceRequestNew(&request, server, model, -1),
        "make a request");
    check(TRITONSERVER_InferenceRequestAddInput(request, "INPUT0",
        TRITONSERVER_TYPE_FP32, shape, 1), "add the input");
    check(TRITONSERVER_InferenceRequestAppendInputData(request, "INPUT0",
        numbers, sizeof(numbers), TRITONSERVER_MEMORY_CPU, 0), "add its data");
    check(TRITONSERVER_InferenceRequestSetReleaseCallback(request, on_release,
        &answer), "set the release callback");
    check(TRITONSERVER_InferenceRequestSetResponseCallback(request, allocator,
        NULL, on_response, &answer), "set the response callback");
    check(TRITONSERVER_ServerInferAsync(server, request, NULL), "infer");

    pthread_mutex_lock(&answer.lock);
    while (!answer.answered || !answer.released) {
        pthread_cond_wait(&answer.changed, &answer.lock);
    }
    pthread_mutex_unlock(&answer.lock);

    if (answer.response != NULL) {
        check(TRITONSERVER_InferenceResponseError(answer.response), "infer");
        print_outputs(answer.response);
        check(TRITONSERVER_InferenceResponseDelete(answer.response),
            "delete the response");
    }
    check(TRITONSERVER_InferenceRequestDelete(request), "delete the request");
    check(TRITONSERVER_ResponseAllocatorDelete(allocator),
        "delete the allocator");
}

static void
print_outputs(TRITONSERVER_InferenceResponse *response)
{
    uint32_t count;
    check(TRITONSERVER_InferenceResponseOutputCount(response, &count),
        "count outputs");

    for (uint32_t i = 0; i < count; i++) {
        const char *name;
        TRITONSERVER_DataType datatype;
        const int64_t *shape;
        uint64_t dims;
        const void *base;
        size_t size;
        TRITONSERVER_MemoryType type;
        int64_t id;
        void *userp;

        check(TRITONSERVER_InferenceResponseOutput(response, i, &name,
            &datatype, &shape, &dims, &base, &size, &type, &id, &userp),
            "read an output");

        printf("%s: %s [", name, TRITONSERVER_DataTypeString(datatype));
        for (uint64_t d = 0; d < dims; d++) {
            printf("%s%lld", d > 0 ? "," : "", (long long) shape[d]);
        }
        printf("], %zu bytes", size);
        if (datatype == TRITONSERVER_TYPE_FP32) {
            const float *numbers = base;
            printf(":");
            for (size_t n = 0; n < size / sizeof(float); n++) {
                printf(" %g", (double) numbers[n]);
            }
        }
        printf("\n");
    }
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

/* The response is ours now. */
static void
on_response(TRITONSERVER_InferenceResponse *response, const uint32_t flags,
    void *userp)
{
    answer_t *answer = userp;

    pthread_mutex_lock(&answer->lock);
    if (response != NULL) {
        answer->response = response;
    }
    if (flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL) {
        answer->answered = 1;
    }
    pthread_cond_signal(&answer->changed);
    pthread_mutex_unlock(&answer->lock);
}

/* The request, and the memory of its inputs, is ours again. */
static void
on_release(TRITONSERVER_InferenceRequest *request, const uint32_t flags,
    void *userp)
{
    answer_t *answer = userp;
    (void) request;
    (void) flags;

    pthread_mutex_lock(&answer->lock);
    answer->released = 1;
    pthread_cond_signal(&answer->changed);
    pthread_mutex_unlock(&answer->lock);
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
