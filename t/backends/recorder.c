/*
 * recorder.c - a backend that writes down what is done to its instances.
 *
 * Where to is in the model's parameter `record`, a path; a line each:
 *
 *   init NAME CORES POLICY   the thread's cores (a count), the policy message
 *   side NAME KIND ID        a secondary device
 *   exec NAME CORES ROWS
 *   done NAME                with the parameter `lasts`: so many ms later; or
 *                            `later`: after Execute, by a thread which answers
 *                            and releases, or only answers, with `early`
 *   fini NAME
 *
 * and, with the parameter `whole`, `load MODEL` and `free MODEL`.
 *
 * With the parameter `together` set to a number the initialisers wait for each
 * other: each until so many are inside at once.  `fail` holds the names of
 * instances whose initialiser fails, or "exec": then each request is answered
 * with an error.  ModelInstanceReady fails while a file `unready` lies in the
 * model's directory, and doesn't return while a file `hangs` does.
 */

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answer.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t  came = PTHREAD_COND_INITIALIZER;
static int             inside;          /* lock; initialisers, at the most   */

static TRITONBACKEND_Model *
model_of(TRITONBACKEND_ModelInstance *instance)
{
    TRITONBACKEND_Model *model = NULL;
    TRITONBACKEND_ModelInstanceModel(instance, &model);
    return model;
}

static const char *
name_of(TRITONBACKEND_ModelInstance *instance)
{
    const char *name = "";
    TRITONBACKEND_ModelInstanceName(instance, &name);
    return name;
}

/* The parameter's text into out, or "". */
static void
parameter(TRITONBACKEND_Model *model, const char *key, char *out, size_t cap)
{
    TRITONSERVER_Message *message;
    const char           *text;
    size_t                size;
    char                  head[128];

    out[0] = '\0';
    if (TRITONBACKEND_ModelConfig(model, 1, &message) != NULL) {
        return;
    }
    TRITONSERVER_MessageSerializeToJson(message, &text, &size);
    snprintf(head, sizeof(head), "\"%s\":{\"string_value\":\"", key);

    const char *at = strstr(text, head);
    if (at != NULL) {
        at += strlen(head);
        snprintf(out, cap, "%.*s", (int) strcspn(at, "\""), at);
    }
    TRITONSERVER_MessageDelete(message);
}

static int
cores(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 0;
}

static void
record_of(TRITONBACKEND_Model *model, const char *line)
{
    char path[512];

    parameter(model, "record", path, sizeof(path));
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (fd >= 0) {
        if (write(fd, line, strlen(line)) < 0) {
            perror(path);
        }
        close(fd);
    }
}

static void
record(TRITONBACKEND_ModelInstance *instance, const char *line)
{
    record_of(model_of(instance), line);
}

static void
record_model(TRITONBACKEND_Model *model, const char *verb)
{
    const char *name = "";
    char        line[256], whole[16];

    parameter(model, "whole", whole, sizeof(whole));
    TRITONBACKEND_ModelName(model, &name);
    snprintf(line, sizeof(line), "%s %s\n", verb, name);
    if (whole[0] != '\0') {
        record_of(model, line);
    }
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *model)
{
    record_model(model, "load");
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *model)
{
    record_model(model, "free");
    return NULL;
}

static void
record_devices(TRITONBACKEND_ModelInstance *instance)
{
    uint32_t count = 0;

    TRITONBACKEND_ModelInstanceSecondaryDeviceCount(instance, &count);
    for (uint32_t i = 0; i < count; i++) {
        const char *kind = "";
        int64_t     id = -1;
        char        line[256];

        TRITONBACKEND_ModelInstanceSecondaryDeviceProperties(instance, i,
            &kind, &id);
        snprintf(line, sizeof(line), "side %s %s %lld\n", name_of(instance),
                 kind, (long long) id);
        record(instance, line);
    }
}

static void
wait_together(int count)
{
    pthread_mutex_lock(&lock);
    inside++;
    pthread_cond_broadcast(&came);
    while (inside < count) {
        pthread_cond_wait(&came, &lock);
    }
    pthread_mutex_unlock(&lock);
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *instance)
{
    TRITONSERVER_Message *policy;
    const char           *text = "";
    size_t                size;
    char                  line[1024], value[256];

    if (TRITONBACKEND_ModelInstanceHostPolicy(instance, &policy) == NULL) {
        TRITONSERVER_MessageSerializeToJson(policy, &text, &size);
    }
    snprintf(line, sizeof(line), "init %s %d %s\n", name_of(instance), cores(),
             text);
    record(instance, line);
    record_devices(instance);

    parameter(model_of(instance), "together", value, sizeof(value));
    if (value[0] != '\0') {
        wait_together(atoi(value));
    }

    parameter(model_of(instance), "fail", value, sizeof(value));
    return strstr(value, name_of(instance)) == NULL ? NULL
        : TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, "no room");
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *instance)
{
    char line[256];
    snprintf(line, sizeof(line), "fini %s\n", name_of(instance));
    record(instance, line);
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceReady(TRITONBACKEND_ModelInstance *instance)
{
    TRITONBACKEND_ArtifactType type;
    const char                *folder = "";
    char                       path[600];

    TRITONBACKEND_ModelRepository(model_of(instance), &type, &folder);
    do {
        snprintf(path, sizeof(path), "%s/hangs", folder);
    } while (access(path, F_OK) == 0 && usleep(10000) == 0);
    snprintf(path, sizeof(path), "%s/unready", folder);
    return access(path, F_OK) != 0 ? NULL
        : TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, "asleep");
}

/* One request that outlives its Execute. */
typedef struct {
    TRITONBACKEND_ModelInstance *instance;
    TRITONBACKEND_Request       *request;       /* NULL: released already    */
    TRITONBACKEND_Response      *response;
    int                          ms;
} late_t;

static void *
answer_later(void *arg)
{
    late_t *late = arg;
    char    line[256];

    usleep((useconds_t) late->ms * 1000);
    snprintf(line, sizeof(line), "done %s\n", name_of(late->instance));
    record(late->instance, line);
    TRITONBACKEND_ResponseSend(late->response,
                               TRITONSERVER_RESPONSE_COMPLETE_FINAL, NULL);
    if (late->request != NULL) {
        TRITONBACKEND_RequestRelease(late->request,
                                     TRITONSERVER_REQUEST_RELEASE_ALL);
    }
    free(late);
    return NULL;
}

static void
keep(TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request *request,
     int ms, int early)
{
    late_t        *late = calloc(1, sizeof(*late));
    pthread_attr_t attr;
    pthread_t      thread;

    *late = (late_t) { instance, early ? NULL : request, NULL, ms };
    TRITONBACKEND_ResponseNew(&late->response, request);
    if (early) {
        TRITONBACKEND_RequestRelease(request,
                                     TRITONSERVER_REQUEST_RELEASE_ALL);
    }
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_create(&thread, &attr, answer_later, late);
    pthread_attr_destroy(&attr);
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
    TRITONBACKEND_Request **requests, const uint32_t count)
{
    char line[256], fail[256], lasts[16], later[16], early[16];

    parameter(model_of(instance), "fail", fail, sizeof(fail));
    snprintf(line, sizeof(line), "exec %s %d %u\n", name_of(instance), cores(),
             count);
    record(instance, line);
    parameter(model_of(instance), "lasts", lasts, sizeof(lasts));
    parameter(model_of(instance), "later", later, sizeof(later));
    parameter(model_of(instance), "early", early, sizeof(early));
    if (lasts[0] != '\0') {
        usleep((useconds_t) atoi(lasts) * 1000);
    }
    if (lasts[0] != '\0' && later[0] == '\0') {
        snprintf(line, sizeof(line), "done %s\n", name_of(instance));
        record(instance, line);
    }

    for (uint32_t i = 0; i < count && later[0] != '\0'; i++) {
        keep(instance, requests[i], atoi(later), early[0] != '\0');
    }
    if (later[0] != '\0') {
        return NULL;
    }

    for (uint32_t i = 0; i < count; i++) {
        answer_one(requests[i], strcmp(fail, "exec") == 0
            ? TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, "too cold")
            : NULL, NULL, NULL);
    }
    return NULL;
}
