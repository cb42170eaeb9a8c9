/*
 * counting.c - a backend that says how often it was executed.
 *
 * Output COUNT (INT64 [1]) is the number of executions of the model so far,
 * OUT repeats the request's first input.  Parameters of the model: so many
 * first executions `fail_first`, each takes `delay_ms`.
 */

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "triton/core/tritonbackend.h"

typedef struct {
    _Atomic int64_t executed;
    long            fail_first;
    long            delay_ms;
} counting_t;

/* Errors that cannot be meant: out of memory and the like. */
static void
must(TRITONSERVER_Error *err)
{
    if (err != NULL) {
        fprintf(stderr, "counting: %s\n", TRITONSERVER_ErrorMessage(err));
        abort();
    }
}

static uint64_t
now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

static long
parameter(const char *config, const char *name)
{
    char mark[64];

    snprintf(mark, sizeof(mark), "\"%s\":{\"string_value\":\"", name);

    const char *at = strstr(config, mark);

    return at != NULL ? atol(at + strlen(mark)) : 0;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *model)
{
    TRITONSERVER_Message *message;
    const char           *text;
    size_t                size;
    counting_t           *c = calloc(1, sizeof(*c));

    must(TRITONBACKEND_ModelConfig(model, 1, &message));
    must(TRITONSERVER_MessageSerializeToJson(message, &text, &size));
    c->fail_first = parameter(text, "fail_first");
    c->delay_ms = parameter(text, "delay_ms");
    must(TRITONSERVER_MessageDelete(message));
    return TRITONBACKEND_ModelSetState(model, c);
}

TRITONSERVER_Error *
TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *model)
{
    void *c;

    must(TRITONBACKEND_ModelState(model, &c));
    free(c);
    return NULL;
}

static void *
output(TRITONBACKEND_Response *response, const char *name,
       TRITONSERVER_DataType type, const int64_t *shape, uint32_t dims,
       uint64_t size, TRITONSERVER_Error **err)
{
    TRITONBACKEND_Output   *out;
    void                   *base = NULL;
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
    int64_t                 id = 0;

    must(TRITONBACKEND_ResponseOutput(response, &out, name, type, shape,
                                      dims));
    *err = TRITONBACKEND_OutputBuffer(out, &base, size, &memory, &id);
    return base;
}

static TRITONSERVER_Error *
repeat(TRITONBACKEND_Request *request, TRITONBACKEND_Response *response)
{
    TRITONBACKEND_Input    *input;
    TRITONSERVER_DataType   type;
    const int64_t          *shape;
    uint32_t                dims, buffers;
    uint64_t                size;
    TRITONSERVER_Error     *err;

    must(TRITONBACKEND_RequestInputByIndex(request, 0, &input));
    must(TRITONBACKEND_InputProperties(input, NULL, &type, &shape, &dims,
                                       &size, &buffers));

    char *to = output(response, "OUT", type, shape, dims, size, &err);

    for (uint32_t i = 0; err == NULL && i < buffers; i++) {
        const void             *from;
        uint64_t                n;
        TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
        int64_t                 id = 0;

        must(TRITONBACKEND_InputBuffer(input, i, &from, &n, &memory, &id));
        memcpy(to, from, n);
        to += n;
    }
    return err;
}

static void
run(TRITONBACKEND_ModelInstance *instance, counting_t *c,
    TRITONBACKEND_Request *request)
{
    TRITONBACKEND_Response *response;
    TRITONSERVER_Error     *err = NULL;
    uint32_t                outputs;
    int64_t                 count = ++c->executed;
    uint64_t                start = now_ns();
    const int64_t           one = 1;

    nanosleep(&(struct timespec) { c->delay_ms / 1000,
                                   c->delay_ms % 1000 * 1000000 }, NULL);
    must(TRITONBACKEND_ResponseNew(&response, request));
    if (count <= c->fail_first) {
        err = TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL,
                                    "the model fails at first");
    }

    must(TRITONBACKEND_RequestOutputCount(request, &outputs));
    for (uint32_t i = 0; err == NULL && i < outputs; i++) {
        const char *name;

        must(TRITONBACKEND_RequestOutputName(request, i, &name));
        if (strcmp(name, "COUNT") == 0) {
            int64_t *to = output(response, "COUNT", TRITONSERVER_TYPE_INT64,
                                 &one, 1, sizeof(count), &err);
            if (err == NULL) {
                *to = count;
            }
        } else {
            err = repeat(request, response);
        }
    }

    uint64_t end = now_ns();

    must(TRITONBACKEND_ResponseSend(
        response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, err));
    must(TRITONBACKEND_ModelInstanceReportStatistics(
        instance, request, err == NULL, start, start, end, end));
    must(TRITONBACKEND_ModelInstanceReportBatchStatistics(
        instance, 1, start, start, end, end));
    TRITONSERVER_ErrorDelete(err);
    must(TRITONBACKEND_RequestRelease(request,
                                      TRITONSERVER_REQUEST_RELEASE_ALL));
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
                                   TRITONBACKEND_Request **requests,
                                   const uint32_t count)
{
    TRITONBACKEND_Model *model;
    void                *c;

    must(TRITONBACKEND_ModelInstanceModel(instance, &model));
    must(TRITONBACKEND_ModelState(model, &c));
    for (uint32_t i = 0; i < count; i++) {
        run(instance, c, requests[i]);
    }
    return NULL;
}
