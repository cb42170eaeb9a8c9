/*
 * batches.c - answers with what it was given and with how: OUT is IN, and
 * the response's parameters tell the execution it was part of.
 *
 *   execution   its number, from 0 on
 *   requests    in that execution
 *   rows        sum of their batch sizes
 *   place       of this request among them
 *
 * The model's parameter `gate` is a path: execution N makes the file
 * PATH.entered.N and then waits while PATH.N exists.
 */

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "triton/core/tritonbackend.h"

typedef struct {
    char        gate[512];      /* "" for none */
    _Atomic int executions;
} batches_t;

typedef struct {
    TRITONBACKEND_Input *input;
    const int64_t       *shape;
    TRITONSERVER_DataType type;
    uint32_t             dims;
    uint32_t             buffers;
    uint64_t             size;
} tensor_t;

static uint64_t
now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *model)
{
    static const char     word[] = "\"gate\":{\"string_value\":\"";
    TRITONSERVER_Message *message;
    const char           *text, *at, *end;
    size_t                size;
    batches_t           *r = calloc(1, sizeof(*r));
    TRITONSERVER_Error   *err = TRITONBACKEND_ModelConfig(model, 1, &message);

    if (err != NULL || r == NULL) {
        free(r);
        return err;
    }
    TRITONSERVER_MessageSerializeToJson(message, &text, &size);
    at = memmem(text, size, word, strlen(word));
    if (at != NULL) {
        at += strlen(word);
        end = strchr(at, '"');
        if (end != NULL && (size_t) (end - at) < sizeof(r->gate)) {
            memcpy(r->gate, at, (size_t) (end - at));
        }
    }
    TRITONSERVER_MessageDelete(message);
    return TRITONBACKEND_ModelSetState(model, r);
}

TRITONSERVER_Error *
TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *model)
{
    void *state = NULL;

    TRITONBACKEND_ModelState(model, &state);
    free(state);
    return NULL;
}

static void
pass_gate(const batches_t *r, int execution)
{
    char path[600];

    if (r->gate[0] == '\0') {
        return;
    }
    snprintf(path, sizeof(path), "%s.entered.%d", r->gate, execution);
    fclose(fopen(path, "w"));
    snprintf(path, sizeof(path), "%s.%d", r->gate, execution);
    while (access(path, F_OK) == 0) {
        usleep(2000);
    }
}

static TRITONSERVER_Error *
open_tensor(TRITONBACKEND_Request *request, tensor_t *t)
{
    TRITONSERVER_Error *err = TRITONBACKEND_RequestInput(request, "IN",
                                                         &t->input);
    return err != NULL ? err
        : TRITONBACKEND_InputProperties(t->input, NULL, &t->type, &t->shape,
                                        &t->dims, &t->size, &t->buffers);
}

static TRITONSERVER_Error *
copy_tensor(const tensor_t *t, TRITONBACKEND_Response *response)
{
    TRITONSERVER_MemoryType  kind = TRITONSERVER_MEMORY_CPU;
    TRITONBACKEND_Output    *output;
    TRITONSERVER_Error      *err;
    int64_t                  id = 0;
    void                    *to;

    err = TRITONBACKEND_ResponseOutput(response, &output, "OUT", t->type,
                                       t->shape, t->dims);
    if (err == NULL) {
        err = TRITONBACKEND_OutputBuffer(output, &to, t->size, &kind, &id);
    }
    for (uint32_t i = 0; err == NULL && i < t->buffers; i++) {
        const void *from;
        uint64_t    size;

        err = TRITONBACKEND_InputBuffer(t->input, i, &from, &size, &kind,
                                        &id);
        if (err == NULL && size > 0) {
            memcpy(to, from, size);
            to = (char *) to + size;
        }
    }
    return err;
}

static void
tell(TRITONBACKEND_Response *response, const char *name, int64_t value)
{
    TRITONSERVER_ErrorDelete(
        TRITONBACKEND_ResponseSetIntParameter(response, name, value));
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
    TRITONBACKEND_Request **requests, const uint32_t count)
{
    TRITONBACKEND_Model *model;
    tensor_t             t;
    void                *state;
    uint64_t             rows = 0, start = now();

    TRITONBACKEND_ModelInstanceModel(instance, &model);
    TRITONBACKEND_ModelState(model, &state);

    batches_t *r = state;
    int         execution = atomic_fetch_add(&r->executions, 1);

    pass_gate(r, execution);
    for (uint32_t i = 0; i < count; i++) {
        rows += open_tensor(requests[i], &t) == NULL && t.dims > 1
            ? (uint64_t) t.shape[0] : 1;
    }

    uint64_t end = now();

    TRITONBACKEND_ModelInstanceReportBatchStatistics(instance, rows, start,
                                                     start, end, end);
    for (uint32_t i = 0; i < count; i++) {
        TRITONBACKEND_Response *response;
        TRITONSERVER_Error     *err = open_tensor(requests[i], &t);

        TRITONBACKEND_ModelInstanceReportStatistics(instance, requests[i],
            err == NULL, start, start, end, end);
        if (TRITONBACKEND_ResponseNew(&response, requests[i]) == NULL) {
            if (err == NULL) {
                err = copy_tensor(&t, response);
            }
            tell(response, "execution", execution);
            tell(response, "requests", count);
            tell(response, "rows", (int64_t) rows);
            tell(response, "place", i);
            TRITONBACKEND_ResponseSend(response,
                TRITONSERVER_RESPONSE_COMPLETE_FINAL, err);
        }
        TRITONSERVER_ErrorDelete(err);
        TRITONBACKEND_RequestRelease(requests[i],
                                     TRITONSERVER_REQUEST_RELEASE_ALL);
    }
    return NULL;
}
