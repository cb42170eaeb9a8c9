/*
 * square.c - a decoupled backend without delays: IN (INT32, one number n)
 * gives n responses with OUT = n, sent by a detached thread; n < 0 gives an
 * error after -n responses.  The last one carries FINAL itself; only a request
 * without responses ends with a flag alone.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "answer.h"

typedef struct {
    TRITONBACKEND_ResponseFactory *factory;
    int32_t                        number;
} job_t;

static _Atomic int jobs;        /* threads of all instances */

static TRITONSERVER_Error *
read_number(TRITONBACKEND_Request *request, int32_t *number)
{
    const void         *data;
    uint64_t            size;
    TRITONSERVER_Error *err = answer_read(request, "IN", &data, &size);

    if (err == NULL && size != sizeof(*number)) {
        err = TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INVALID_ARG,
                                    "IN is one number");
    }
    if (err == NULL) {
        memcpy(number, data, sizeof(*number));
    }
    return err;
}

static void
send_one(TRITONBACKEND_ResponseFactory *factory, int32_t number,
    uint32_t flags, const char *error)
{
    TRITONBACKEND_Response *response;
    TRITONBACKEND_Output   *output;
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
    TRITONSERVER_Error     *err;
    int64_t                 id = 0, shape = 1;
    void                   *out;

    err = TRITONBACKEND_ResponseNewFromFactory(&response, factory);
    if (err != NULL) {
        TRITONSERVER_ErrorDelete(err);
        TRITONBACKEND_ResponseFactorySendFlags(factory, flags);
        return;
    }
    if (error != NULL) {
        err = TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL, error);
    } else {
        err = TRITONBACKEND_ResponseOutput(response, &output, "OUT",
                                           TRITONSERVER_TYPE_INT32, &shape,
                                           1);
        if (err == NULL) {
            err = TRITONBACKEND_OutputBuffer(output, &out, sizeof(number),
                                             &type, &id);
        }
        if (err == NULL) {
            memcpy(out, &number, sizeof(number));
        }
    }
    TRITONBACKEND_ResponseSend(response, flags, err);
    TRITONSERVER_ErrorDelete(err);
}

static void *
job_main(void *arg)
{
    job_t   *job = arg;
    int32_t  count = job->number < 0 ? -job->number : job->number;

    for (int32_t i = 0; i < count; i++) {
        send_one(job->factory, job->number,
                 i + 1 == job->number ? TRITONSERVER_RESPONSE_COMPLETE_FINAL
                                      : 0, NULL);
    }
    if (job->number < 0) {
        send_one(job->factory, 0, TRITONSERVER_RESPONSE_COMPLETE_FINAL,
                 "a negative number ends like this");
    }
    if (count == 0) {
        TRITONBACKEND_ResponseFactorySendFlags(job->factory,
            TRITONSERVER_RESPONSE_COMPLETE_FINAL);
    }

    TRITONBACKEND_ResponseFactoryDelete(job->factory);
    free(job);
    atomic_fetch_sub(&jobs, 1);
    return NULL;
}

static TRITONSERVER_Error *
start(TRITONBACKEND_Request *request)
{
    TRITONSERVER_Error *err;
    pthread_t           thread;
    job_t              *job = calloc(1, sizeof(*job));

    if (job == NULL) {
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE,
                                     "out of memory");
    }
    err = read_number(request, &job->number);
    if (err == NULL) {
        err = TRITONBACKEND_ResponseFactoryNew(&job->factory, request);
    }
    if (err != NULL) {
        free(job);
        return err;
    }

    atomic_fetch_add(&jobs, 1);
    if (pthread_create(&thread, NULL, job_main, job) == 0) {
        pthread_detach(thread);
        return NULL;
    }
    atomic_fetch_sub(&jobs, 1);
    TRITONBACKEND_ResponseFactoryDelete(job->factory);
    free(job);
    return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE,
                                 "no thread can be started");
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *instance)
{
    (void) instance;

    while (atomic_load(&jobs) > 0) {
        usleep(1000);
    }
    return NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
    TRITONBACKEND_Request **requests, const uint32_t count)
{
    (void) instance;

    for (uint32_t i = 0; i < count; i++) {
        TRITONSERVER_Error *err = start(requests[i]);

        if (err != NULL) {
            answer_one(requests[i], err, NULL, NULL);
        } else {
            TRITONBACKEND_RequestRelease(requests[i],
                                         TRITONSERVER_REQUEST_RELEASE_ALL);
        }
    }
    return NULL;
}
