/*
 * core.c - the time of one small request inside the core: a program that
 *          embeds it, one request after the other.
 *
 * Prints one JSON object: medians in microseconds from ServerInferAsync until
 * the final response, as seen by the caller's thread.
 *
 *   gpu_core REPOSITORY BACKENDS MODEL BYTES COUNT
 *
 * The model has input IN and output OUT, both UINT8.
 */

#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "triton/core/tritonserver.h"

#define WARM_UP 500

typedef struct {
    sem_t       done;           /* posted twice: response, release           */
    char       *in;
    char       *out;
    size_t      size;
    bool        failed;
} shot_t;

static void check(TRITONSERVER_Error *err, const char *what);
static TRITONSERVER_Server *start(const char *repository,
    const char *backends);
static TRITONSERVER_InferenceRequest *prepare(TRITONSERVER_Server *server,
    const char *model, shot_t *shot, TRITONSERVER_ResponseAllocator *a);
static TRITONSERVER_Error *on_alloc(TRITONSERVER_ResponseAllocator *allocator,
    const char *name, size_t size, TRITONSERVER_MemoryType type, int64_t id,
    void *userp, void **buffer, void **buffer_userp,
    TRITONSERVER_MemoryType *actual, int64_t *actual_id);
static TRITONSERVER_Error *on_free(TRITONSERVER_ResponseAllocator *allocator,
    void *buffer, void *buffer_userp, size_t size,
    TRITONSERVER_MemoryType type, int64_t id);
static void on_response(TRITONSERVER_InferenceResponse *response,
    const uint32_t flags, void *userp);
static void on_release(TRITONSERVER_InferenceRequest *request,
    const uint32_t flags, void *userp);
static double now_us(void);
static int by_value(const void *a, const void *b);

int
main(int argc, char **argv)
{
    TRITONSERVER_ResponseAllocator *allocator;
    shot_t shot = { 0 };

    if (argc != 6) {
        fprintf(stderr, "usage: %s REPOSITORY BACKENDS MODEL BYTES COUNT\n",
            argv[0]);
        return 2;
    }

    int count = atoi(argv[5]);
    shot.size = strtoull(argv[4], NULL, 10);
    shot.in = calloc(1, shot.size);
    shot.out = calloc(1, shot.size);
    double *all = calloc((size_t) count, sizeof(*all));
    if (count < 1 || shot.size == 0 || shot.in == NULL || shot.out == NULL
        || all == NULL || sem_init(&shot.done, 0, 0) != 0)
    {
        fprintf(stderr, "cannot begin\n");
        return 2;
    }

    TRITONSERVER_Server *server = start(argv[1], argv[2]);
    check(TRITONSERVER_ResponseAllocatorNew(&allocator, on_alloc, on_free,
        NULL), "allocator");
    TRITONSERVER_InferenceRequest *request = prepare(server, argv[3], &shot,
        allocator);

    for (int i = -WARM_UP; i < count && !shot.failed; i++) {
        double began = now_us();
        check(TRITONSERVER_ServerInferAsync(server, request, NULL), "infer");
        sem_wait(&shot.done);
        sem_wait(&shot.done);
        if (i >= 0) {
            all[i] = now_us() - began;
        }
    }

    check(TRITONSERVER_InferenceRequestDelete(request), "request");
    check(TRITONSERVER_ServerStop(server), "stop");
    check(TRITONSERVER_ServerDelete(server), "server");
    check(TRITONSERVER_ResponseAllocatorDelete(allocator), "allocator");
    if (shot.failed) {
        return 1;
    }

    qsort(all, (size_t) count, sizeof(*all), by_value);
    printf("{\"p50_us\": %.2f, \"p99_us\": %.2f}\n", all[count / 2],
        all[count * 99 / 100]);
    free(all);
    free(shot.in);
    free(shot.out);
    return 0;
}

static void
check(TRITONSERVER_Error *err, const char *what)
{
    if (err != NULL) {
        fprintf(stderr, "%s: %s\n", what, TRITONSERVER_ErrorMessage(err));
        exit(1);
    }
}

static TRITONSERVER_Server *
start(const char *repository, const char *backends)
{
    TRITONSERVER_ServerOptions *o;
    TRITONSERVER_Server *server;

    check(TRITONSERVER_ServerOptionsNew(&o), "options");
    check(TRITONSERVER_ServerOptionsSetModelRepositoryPath(o, repository),
        "repository");
    check(TRITONSERVER_ServerOptionsSetBackendDirectory(o, backends),
        "backends");
    check(TRITONSERVER_ServerOptionsSetModelControlMode(o,
        TRITONSERVER_MODEL_CONTROL_NONE), "control");
    check(TRITONSERVER_ServerOptionsSetLogInfo(o, false), "log");
    check(TRITONSERVER_ServerNew(&server, o), "start");
    check(TRITONSERVER_ServerOptionsDelete(o), "options");
    return server;
}

static TRITONSERVER_InferenceRequest *
prepare(TRITONSERVER_Server *server, const char *model, shot_t *shot,
    TRITONSERVER_ResponseAllocator *a)
{
    const int64_t shape[1] = { (int64_t) shot->size };
    TRITONSERVER_InferenceRequest *request;

    check(TRITONSERVER_InferenceRequestNew(&request, server, model, -1),
        "request");
    check(TRITONSERVER_InferenceRequestAddInput(request, "IN",
        TRITONSERVER_TYPE_UINT8, shape, 1), "input");
    check(TRITONSERVER_InferenceRequestAppendInputData(request, "IN",
        shot->in, shot->size, TRITONSERVER_MEMORY_CPU, 0), "data");
    check(TRITONSERVER_InferenceRequestSetReleaseCallback(request,
        on_release, shot), "callback");
    check(TRITONSERVER_InferenceRequestSetResponseCallback(request, a, shot,
        on_response, shot), "callback");
    return request;
}

static TRITONSERVER_Error *
on_alloc(TRITONSERVER_ResponseAllocator *allocator, const char *name,
    size_t size, TRITONSERVER_MemoryType type, int64_t id, void *userp,
    void **buffer, void **buffer_userp, TRITONSERVER_MemoryType *actual,
    int64_t *actual_id)
{
    shot_t *shot = userp;
    (void) allocator;
    (void) name;
    (void) type;
    (void) id;

    *actual = TRITONSERVER_MEMORY_CPU;
    *actual_id = 0;
    *buffer_userp = shot;
    *buffer = size <= shot->size ? shot->out : NULL;
    return NULL;
}

static TRITONSERVER_Error *
on_free(TRITONSERVER_ResponseAllocator *allocator, void *buffer,
    void *buffer_userp, size_t size, TRITONSERVER_MemoryType type, int64_t id)
{
    (void) allocator;
    (void) buffer;
    (void) buffer_userp;
    (void) size;
    (void) type;
    (void) id;
    return NULL;
}

static void
on_response(TRITONSERVER_InferenceResponse *response, const uint32_t flags,
    void *userp)
{
    shot_t *shot = userp;

    if (response != NULL) {
        TRITONSERVER_Error *err = TRITONSERVER_InferenceResponseError(
            response);
        if (err != NULL) {
            fprintf(stderr, "answer: %s\n",
                TRITONSERVER_ErrorMessage(err));
            TRITONSERVER_ErrorDelete(err);
            shot->failed = true;
        }
        check(TRITONSERVER_InferenceResponseDelete(response), "response");
    }
    if (flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL) {
        sem_post(&shot->done);
    }
}

static void
on_release(TRITONSERVER_InferenceRequest *request, const uint32_t flags,
    void *userp)
{
    shot_t *shot = userp;
    (void) request;
    (void) flags;

    sem_post(&shot->done);
}

static double
now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec * 1e6 + (double) t.tv_nsec / 1e3;
}

static int
by_value(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}
