/* client_fixture.h - a program that embeds the core: repository, server,
   allocator, and a shot: one request with what came back. */

#ifndef T_UNIT_SERVICE_CLIENT_FIXTURE_H
#define T_UNIT_SERVICE_CLIENT_FIXTURE_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "triton/core/tritonbackend.h"
#include "triton/core/tritonserver.h"

#define SHOT_RESPONSES 4

typedef struct {
    TRITONSERVER_InferenceRequest  *request;
    TRITONSERVER_InferenceResponse *list[SHOT_RESPONSES];
    int                             responses;  /* not NULL                  */
    int                             calls;      /* of the callback           */
    int                             finals;
    int                             released;
    int                             starts;
    int                             buffers;    /* allocated, not released   */
    float                           data[4];
} shot_t;

static struct {
    char                            repository[64];
    char                            build[400];
    TRITONSERVER_Server            *server;
    TRITONSERVER_ResponseAllocator *allocator;
} world;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER;

static inline void
succeeds(TRITONSERVER_Error *err)
{
    if (err != NULL) {
        fail_msg("%s", TRITONSERVER_ErrorMessage(err));
    }
}

/* Consumes err. */
static inline void
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

static inline void
write_file(const char *dir, const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static inline void
make_model(const char *name, const char *config)
{
    char dir[256], version[300];
    snprintf(dir, sizeof(dir), "%s/%s", world.repository, name);
    assert_int_equal(mkdir(dir, 0755), 0);
    snprintf(version, sizeof(version), "%s/1", dir);
    assert_int_equal(mkdir(version, 0755), 0);
    write_file(dir, "config.pbtxt", config);
}

static inline void
remove_model(const char *name)
{
    char command[300];
    snprintf(command, sizeof(command), "rm -rf '%s/%s'", world.repository,
        name);
    assert_int_equal(system(command), 0);
}

static inline void
make_world(void)
{
    ssize_t n = readlink("/proc/self/exe", world.build,
        sizeof(world.build) - 1);
    assert_true(n > 0);
    world.build[n] = '\0';
    *strrchr(world.build, '/') = '\0';
    strcpy(world.repository, "/tmp/inf-unit-XXXXXX");
    assert_non_null(mkdtemp(world.repository));
}

static inline void
end_world(void)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", world.repository);
    assert_int_equal(system(command), 0);
}

/* directory: of backends, below the build. */
static inline TRITONSERVER_ServerOptions *
new_options(const char *folder, bool strict)
{
    TRITONSERVER_ServerOptions *o;
    char backends[512];
    snprintf(backends, sizeof(backends), "%s/%s", world.build, folder);
    succeeds(TRITONSERVER_ServerOptionsNew(&o));
    succeeds(TRITONSERVER_ServerOptionsSetModelRepositoryPath(o,
        world.repository));
    succeeds(TRITONSERVER_ServerOptionsSetBackendDirectory(o, backends));
    succeeds(TRITONSERVER_ServerOptionsSetModelControlMode(o,
        TRITONSERVER_MODEL_CONTROL_NONE));
    succeeds(TRITONSERVER_ServerOptionsSetStrictModelConfig(o, strict));
    succeeds(TRITONSERVER_ServerOptionsSetExitOnError(o, false));
    return o;
}

static inline TRITONSERVER_Error *
on_start(TRITONSERVER_ResponseAllocator *allocator, void *userp)
{
    (void) allocator;
    pthread_mutex_lock(&lock);
    ((shot_t *) userp)->starts++;
    pthread_mutex_unlock(&lock);
    return NULL;
}

static inline TRITONSERVER_Error *
on_alloc(TRITONSERVER_ResponseAllocator *allocator, const char *name,
    size_t size, TRITONSERVER_MemoryType type, int64_t id, void *userp,
    void **buffer, void **buffer_userp, TRITONSERVER_MemoryType *actual,
    int64_t *actual_id)
{
    (void) allocator;
    (void) name;
    (void) type;
    (void) id;
    *actual = TRITONSERVER_MEMORY_CPU;
    *actual_id = 0;
    *buffer = size > 0 ? malloc(size) : NULL;
    *buffer_userp = userp;
    if (*buffer != NULL) {
        pthread_mutex_lock(&lock);
        ((shot_t *) userp)->buffers++;
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

static inline TRITONSERVER_Error *
on_release_buffer(TRITONSERVER_ResponseAllocator *allocator, void *buffer,
    void *buffer_userp, size_t size, TRITONSERVER_MemoryType type, int64_t id)
{
    (void) allocator;
    assert_non_null(buffer);
    assert_true(size > 0);
    assert_int_equal(type, TRITONSERVER_MEMORY_CPU);
    assert_int_equal(id, 0);
    free(buffer);
    pthread_mutex_lock(&lock);
    ((shot_t *) buffer_userp)->buffers--;
    pthread_mutex_unlock(&lock);
    return NULL;
}

static inline void
on_response(TRITONSERVER_InferenceResponse *response, const uint32_t flags,
    void *userp)
{
    shot_t *shot = userp;
    pthread_mutex_lock(&lock);
    if (response != NULL) {
        assert_true(shot->responses < SHOT_RESPONSES);
        shot->list[shot->responses++] = response;
    }
    shot->calls++;
    shot->finals += (flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL) != 0;
    pthread_cond_broadcast(&arrived);
    pthread_mutex_unlock(&lock);
}

static inline void
on_release(TRITONSERVER_InferenceRequest *request, const uint32_t flags,
    void *userp)
{
    shot_t *shot = userp;
    assert_ptr_equal(request, shot->request);
    assert_int_equal(flags, TRITONSERVER_REQUEST_RELEASE_ALL);
    pthread_mutex_lock(&lock);
    shot->released++;
    pthread_cond_broadcast(&arrived);
    pthread_mutex_unlock(&lock);
}

static inline void
make_allocator(void)
{
    succeeds(TRITONSERVER_ResponseAllocatorNew(&world.allocator, on_alloc,
        on_release_buffer, on_start));
}

/* One row of A in FP32. */
static inline void
make_shot(shot_t *shot, const char *model, const char *input, bool batched)
{
    const int64_t shape[2] = { batched ? 1 : 4, 4 };

    *shot = (shot_t) { .data = { 0.5f, 1.5f, 2.5f, 3.5f } };
    succeeds(TRITONSERVER_InferenceRequestNew(&shot->request, world.server,
        model, -1));
    succeeds(TRITONSERVER_InferenceRequestAddInput(shot->request, input,
        TRITONSERVER_TYPE_FP32, shape, batched ? 2 : 1));
    succeeds(TRITONSERVER_InferenceRequestAppendInputData(shot->request,
        input, shot->data, sizeof(shot->data), TRITONSERVER_MEMORY_CPU, 0));
    succeeds(TRITONSERVER_InferenceRequestSetReleaseCallback(shot->request,
        on_release, shot));
    succeeds(TRITONSERVER_InferenceRequestSetResponseCallback(shot->request,
        world.allocator, shot, on_response, shot));
}

static inline void
submit(shot_t *shot)
{
    shot->responses = 0;
    shot->calls = 0;
    shot->finals = 0;
    shot->released = 0;
    shot->starts = 0;
    succeeds(TRITONSERVER_ServerInferAsync(world.server, shot->request,
        NULL));
}

static inline void
wait_for(shot_t *shot)
{
    pthread_mutex_lock(&lock);
    while (shot->finals == 0 || shot->released == 0) {
        pthread_cond_wait(&arrived, &lock);
    }
    pthread_mutex_unlock(&lock);
}

/* Takes the responses; each must have come without an error. */
static inline void
drop_responses(shot_t *shot)
{
    for (int i = 0; i < shot->responses; i++) {
        succeeds(TRITONSERVER_InferenceResponseError(shot->list[i]));
        succeeds(TRITONSERVER_InferenceResponseDelete(shot->list[i]));
    }
    shot->responses = 0;
    assert_int_equal(shot->buffers, 0);
}

static inline void
expect_json(TRITONSERVER_Message *message, const char *text)
{
    const char *base;
    size_t size;
    succeeds(TRITONSERVER_MessageSerializeToJson(message, &base, &size));
    assert_int_equal(strlen(base), size);
    if (strstr(base, text) == NULL) {
        fprintf(stderr, "%s\n", base);     /* fail_msg cuts it off       */
        fail_msg("%s is not in it", text);
    }
    succeeds(TRITONSERVER_MessageDelete(message));
}

#endif /* T_UNIT_SERVICE_CLIENT_FIXTURE_H */
