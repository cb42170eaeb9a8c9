/*
 * memory_kinds.c - says in REPORT where everything lies: itself, each buffer
 * of IN (and one that is not at a multiple of 64), its own output DATA (asked for in the memory that the request's
 * parameters "want" and "want_id" name), and which kinds of scratch memory it
 * can have.  DATA is IN's bytes where both lie on the host; nothing on a GPU
 * is ever touched.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "triton/core/tritonbackend.h"

typedef struct {
    char   text[1024];
    size_t len;
} report_t;

#define SAY(r, ...)                                                          \
    ((r)->len += (size_t) snprintf((r)->text + (r)->len,                     \
        sizeof((r)->text) - (r)->len, __VA_ARGS__))

static TRITONSERVER_Error *
say_where_we_are(report_t *r, TRITONBACKEND_ModelInstance *instance)
{
    TRITONSERVER_InstanceGroupKind kind;
    int32_t                        device;

    TRITONSERVER_Error *err = TRITONBACKEND_ModelInstanceKind(instance, &kind);

    if (err == NULL) {
        err = TRITONBACKEND_ModelInstanceDeviceId(instance, &device);
    }
    if (err == NULL) {
        SAY(r, "on %s %d;", TRITONSERVER_InstanceGroupKindString(kind),
            device);
    }
    return err;
}

static TRITONSERVER_Error *
say_scratch(report_t *r, TRITONBACKEND_ModelInstance *instance)
{
    TRITONBACKEND_Model         *model;
    TRITONBACKEND_Backend       *backend;
    TRITONBACKEND_MemoryManager *manager;
    int32_t                      device;
    TRITONSERVER_Error          *err;

    err = TRITONBACKEND_ModelInstanceModel(instance, &model);
    if (err == NULL) {
        err = TRITONBACKEND_ModelBackend(model, &backend);
    }
    if (err == NULL) {
        err = TRITONBACKEND_BackendMemoryManager(backend, &manager);
    }
    if (err == NULL) {
        err = TRITONBACKEND_ModelInstanceDeviceId(instance, &device);
    }
    if (err != NULL) {
        return err;
    }

    SAY(r, " scratch");
    for (int i = 0; i < 3; i++) {
        TRITONSERVER_MemoryType type = (TRITONSERVER_MemoryType) i;
        void                   *p;

        err = TRITONBACKEND_MemoryManagerAllocate(manager, &p, type, device,
                                                  4096);
        if (err == NULL) {
            SAY(r, " %s", TRITONSERVER_MemoryTypeString(type));
            err = TRITONBACKEND_MemoryManagerFree(manager, p, type, device);
            if (err != NULL) {
                return err;
            }
        }
        TRITONSERVER_ErrorDelete(err);
    }
    SAY(r, ";");
    return NULL;
}

/* *host: all of it can be read here. */
static TRITONSERVER_Error *
say_input(report_t *r, TRITONBACKEND_Input *input, uint64_t *size, bool *host)
{
    uint32_t            count;
    TRITONSERVER_Error *err;

    err = TRITONBACKEND_InputProperties(input, NULL, NULL, NULL, NULL, size,
                                        &count);
    *host = true;
    SAY(r, " in");
    for (uint32_t i = 0; err == NULL && i < count; i++) {
        TRITONSERVER_MemoryType        type;
        TRITONSERVER_BufferAttributes *attributes;
        const void                    *base, *same;
        uint64_t                       part;
        int64_t                        id;
        void                          *ipc = NULL;

        err = TRITONBACKEND_InputBuffer(input, i, &base, &part, &type, &id);
        if (err == NULL) {
            err = TRITONBACKEND_InputBufferAttributes(input, i, &same,
                                                      &attributes);
        }
        if (err == NULL) {
            err = TRITONSERVER_BufferAttributesCudaIpcHandle(attributes, &ipc);
        }
        if (err == NULL) {
            SAY(r, " %s:%lld:%llu%s%s%s", TRITONSERVER_MemoryTypeString(type),
                (long long) id, (unsigned long long) part,
                ipc != NULL ? ":ipc" : "", same != base ? ":other" : "",
                (uintptr_t) base % 64 != 0 ? ":unaligned" : "");
            *host = *host && type != TRITONSERVER_MEMORY_GPU;
        }
    }
    SAY(r, ";");
    return err;
}

static TRITONSERVER_Error *
wanted(TRITONBACKEND_Request *request, TRITONSERVER_MemoryType *type,
    int64_t *id)
{
    uint32_t            count;
    TRITONSERVER_Error *err;

    *type = TRITONSERVER_MEMORY_CPU;
    *id = 0;
    err = TRITONBACKEND_RequestParameterCount(request, &count);
    for (uint32_t i = 0; err == NULL && i < count; i++) {
        const char                *key;
        TRITONSERVER_ParameterType kind;
        const void                *value;

        err = TRITONBACKEND_RequestParameter(request, i, &key, &kind, &value);
        if (err != NULL || kind != TRITONSERVER_PARAMETER_INT) {
            continue;
        }
        if (strcmp(key, "want") == 0) {
            *type = (TRITONSERVER_MemoryType) *(const int64_t *) value;
        } else if (strcmp(key, "want_id") == 0) {
            *id = *(const int64_t *) value;
        }
    }
    return err;
}

static TRITONSERVER_Error *
answer_data(report_t *r, TRITONBACKEND_Request *request,
    TRITONBACKEND_Response *response)
{
    TRITONBACKEND_Input           *input;
    TRITONBACKEND_Output          *output;
    TRITONSERVER_BufferAttributes *attributes;
    TRITONSERVER_MemoryType        type, in_type;
    int64_t                        id, in_id, shape;
    uint64_t                       size, part;
    const void                    *base;
    void                          *out = NULL, *ipc = NULL;
    bool                           host;
    TRITONSERVER_Error            *err;

    err = TRITONBACKEND_RequestInput(request, "IN", &input);
    if (err == NULL) {
        err = say_input(r, input, &size, &host);
    }
    if (err == NULL) {
        err = wanted(request, &type, &id);
    }
    if (err == NULL) {
        shape = (int64_t) size;
        err = TRITONBACKEND_ResponseOutput(response, &output, "DATA",
                                           TRITONSERVER_TYPE_UINT8, &shape, 1);
    }
    if (err == NULL) {
        err = TRITONBACKEND_OutputBuffer(output, &out, size, &type, &id);
    }
    if (err == NULL) {
        err = TRITONBACKEND_OutputBufferAttributes(output, &attributes);
    }
    if (err == NULL) {
        err = TRITONSERVER_BufferAttributesCudaIpcHandle(attributes, &ipc);
    }
    if (err != NULL) {
        return err;
    }

    SAY(r, " out %s:%lld%s;", TRITONSERVER_MemoryTypeString(type),
        (long long) id, ipc != NULL ? ":ipc" : "");
    host = host && type != TRITONSERVER_MEMORY_GPU;
    for (uint32_t i = 0; host && size > 0; i++) {
        err = TRITONBACKEND_InputBuffer(input, i, &base, &part, &in_type,
                                        &in_id);
        if (err != NULL) {
            return err;
        }
        memcpy(out, base, part);
        out = (char *) out + part;
        size -= part;
    }
    return NULL;
}

static TRITONSERVER_Error *
answer(TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request *request,
    TRITONBACKEND_Response *response)
{
    TRITONBACKEND_Output   *output;
    TRITONSERVER_MemoryType type = TRITONSERVER_MEMORY_CPU;
    int64_t                 id = 0, shape = 1;
    report_t                r = { .len = 0 };
    void                   *out;
    TRITONSERVER_Error     *err;

    err = say_where_we_are(&r, instance);
    if (err == NULL) {
        err = say_scratch(&r, instance);
    }
    if (err == NULL) {
        err = answer_data(&r, request, response);
    }
    if (err == NULL) {
        err = TRITONBACKEND_ResponseOutput(response, &output, "REPORT",
                                           TRITONSERVER_TYPE_BYTES, &shape, 1);
    }
    if (err == NULL) {
        err = TRITONBACKEND_OutputBuffer(output, &out, r.len + 4, &type, &id);
    }
    if (err == NULL && type == TRITONSERVER_MEMORY_GPU) {
        err = TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNSUPPORTED,
                                    "REPORT can't be written on a GPU");
    }
    if (err == NULL) {
        uint32_t len = (uint32_t) r.len;
        memcpy(out, &len, 4);
        memcpy((char *) out + 4, r.text, r.len);
    }
    return err;
}

/* Each part took a millisecond. */
static void
report(TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request *request,
    int good)
{
    static const uint64_t ms = 1000000;
    struct timespec       t;
    uint64_t              now;

    clock_gettime(CLOCK_MONOTONIC, &t);
    now = (uint64_t) t.tv_sec * 1000 * ms + (uint64_t) t.tv_nsec;
    TRITONBACKEND_ModelInstanceReportStatistics(instance, request, good, now,
        now + ms, now + 2 * ms, now + 3 * ms);
    TRITONBACKEND_ModelInstanceReportBatchStatistics(instance, 1, now,
        now + ms, now + 2 * ms, now + 3 * ms);
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
    TRITONBACKEND_Request **requests, const uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        TRITONBACKEND_Response *response;
        TRITONSERVER_Error     *err;

        err = TRITONBACKEND_ResponseNew(&response, requests[i]);
        if (err == NULL) {
            err = answer(instance, requests[i], response);
            report(instance, requests[i], err == NULL);
            TRITONBACKEND_ResponseSend(response,
                TRITONSERVER_RESPONSE_COMPLETE_FINAL, err);
            TRITONSERVER_ErrorDelete(err);
        }
        TRITONBACKEND_RequestRelease(requests[i],
                                     TRITONSERVER_REQUEST_RELEASE_ALL);
    }
    return NULL;
}
