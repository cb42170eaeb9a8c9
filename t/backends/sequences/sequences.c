/*
 * sequences.c - what a sequence model's backend is given, told or used.
 *
 * The model's parameters:
 *
 *   does     tell (default), sum, append: below; steps: steps.c
 *   gate     a path: execution N makes PATH.entered.N and waits while PATH.N
 *            exists
 *   record   a path: a line of JSON for each execution (record.c)
 *   delay_ms how long an execution takes
 *   update   no: states are written, but never updated
 *   later_ms steps: released so long after Execute, by another thread
 *
 * The input is IN (INT32), the output OUT.  tell answers IN; sum and append
 * have a state, in as STATE_IN and out as STATE_OUT, and answer its new value
 * (states.c).  Parameters of a response tell the execution it was part of:
 * execution (its number), requests, place and instance.
 */

#include "sequences.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t
now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

/* The parameter's text, or "". */
static void
parameter(const char *config, const char *key, char *out, size_t cap)
{
    char head[128];

    out[0] = '\0';
    snprintf(head, sizeof(head), "\"%s\":{\"string_value\":\"", key);
    const char *at = strstr(config, head);
    if (at != NULL) {
        at += strlen(head);
        snprintf(out, cap, "%.*s", (int) strcspn(at, "\""), at);
    }
}

static void
read_parameters(model_t *m, const char *config)
{
    static const char *const names[] = { "tell", "sum", "append", "steps" };
    char text[32];

    parameter(config, "gate", m->gate, sizeof(m->gate));
    parameter(config, "record", m->record, sizeof(m->record));
    parameter(config, "does", text, sizeof(text));
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(text, names[i]) == 0) {
            m->does = (does_t) i;
        }
    }
    parameter(config, "update", text, sizeof(text));
    m->updates = strcmp(text, "no") != 0;
    parameter(config, "delay_ms", text, sizeof(text));
    m->delay_ms = (unsigned) atoi(text);
    parameter(config, "later_ms", text, sizeof(text));
    m->later_ms = (unsigned) atoi(text);
    m->decoupled = strstr(config, "\"decoupled\":true") != NULL;
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *model)
{
    TRITONSERVER_Message *message;
    const char           *text;
    size_t                size;
    TRITONSERVER_Error   *err = TRITONBACKEND_ModelConfig(model, 1, &message);

    if (err != NULL) {
        return err;
    }
    TRITONSERVER_MessageSerializeToJson(message, &text, &size);

    char    *config = strndup(text, size);
    model_t *m = calloc(1, sizeof(*m));
    TRITONSERVER_MessageDelete(message);
    if (m != NULL && config != NULL) {
        read_parameters(m, config);
    }
    free(config);
    return TRITONBACKEND_ModelSetState(model, m);
}

TRITONSERVER_Error *
TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *model)
{
    void *state = NULL;

    TRITONBACKEND_ModelState(model, &state);
    free(state);
    return NULL;
}

TRITONSERVER_Error *
open_tensor(TRITONBACKEND_Request *request, const char *name, tensor_t *t)
{
    TRITONSERVER_Error *err = TRITONBACKEND_RequestInput(request, name,
                                                         &t->input);
    return err != NULL ? err
        : TRITONBACKEND_InputProperties(t->input, &t->name, &t->type,
              &t->shape, &t->dims, &t->size, &t->buffers);
}

TRITONSERVER_Error *
read_tensor(const tensor_t *t, void **data)
{
    TRITONSERVER_Error *err = NULL;
    char               *to = malloc(t->size + 1);

    *data = to;
    for (uint32_t i = 0; err == NULL && i < t->buffers; i++) {
        TRITONSERVER_MemoryType kind = TRITONSERVER_MEMORY_CPU;
        int64_t                 id = 0;
        const void             *from;
        uint64_t                size;

        err = TRITONBACKEND_InputBuffer(t->input, i, &from, &size, &kind,
                                        &id);
        if (err == NULL && size > 0) {
            memcpy(to, from, size);
            to += size;
        }
    }
    if (err == NULL && to != (char *) *data + t->size) {
        err = TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_INTERNAL,
                                    "buffers don't add up");
    }
    return err;
}

void
shape_like(const tensor_t *t, int64_t last, int64_t *out)
{
    memcpy(out, t->shape, t->dims * sizeof(*out));
    if (t->dims > 0) {
        out[t->dims - 1] = last;
    }
}

TRITONSERVER_Error *
write_output(TRITONBACKEND_Response *response, const tensor_t *t,
    const int32_t *values, size_t count)
{
    TRITONSERVER_MemoryType kind = TRITONSERVER_MEMORY_CPU;
    TRITONBACKEND_Output   *output;
    int64_t                 id = 0, shape[16];
    void                   *to;

    shape_like(t, (int64_t) count, shape);
    TRITONSERVER_Error *err = TRITONBACKEND_ResponseOutput(response, &output,
        "OUT", TRITONSERVER_TYPE_INT32, shape, t->dims);
    if (err == NULL) {
        err = TRITONBACKEND_OutputBuffer(output, &to, count * 4, &kind, &id);
    }
    if (err == NULL && count > 0) {
        memcpy(to, values, count * 4);
    }
    return err;
}

bool
wants_output(TRITONBACKEND_Request *request)
{
    uint32_t count = 0;

    TRITONBACKEND_RequestOutputCount(request, &count);
    return count > 0;
}

static void
tell(TRITONBACKEND_Response *response, const char *name, int64_t value)
{
    TRITONSERVER_ErrorDelete(
        TRITONBACKEND_ResponseSetIntParameter(response, name, value));
}

void
answer(const execution_t *e, TRITONBACKEND_Response *response, uint32_t flags,
    TRITONSERVER_Error *err)
{
    tell(response, "execution", e->number);
    tell(response, "requests", e->requests);
    tell(response, "place", e->place);
    TRITONSERVER_ErrorDelete(TRITONBACKEND_ResponseSetStringParameter(
        response, "instance", e->name));
    TRITONBACKEND_ResponseSend(response, flags, err);
    TRITONSERVER_ErrorDelete(err);
}

static TRITONSERVER_Error *
copy(TRITONBACKEND_Request *request, TRITONBACKEND_Response *response)
{
    tensor_t            t;
    void               *data = NULL;
    TRITONSERVER_Error *err = open_tensor(request, "IN", &t);

    if (err == NULL) {
        err = read_tensor(&t, &data);
    }
    if (err == NULL && wants_output(request)) {
        err = write_output(response, &t, data, t.size / 4);
    }
    free(data);
    return err;
}

static void
pass_gate(const model_t *m, int execution)
{
    char path[600];

    if (m->gate[0] == '\0') {
        return;
    }
    snprintf(path, sizeof(path), "%s.entered.%d", m->gate, execution);
    fclose(fopen(path, "w"));
    snprintf(path, sizeof(path), "%s.%d", m->gate, execution);
    while (access(path, F_OK) == 0) {
        usleep(2000);
    }
}

TRITONSERVER_Error *
TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance,
    TRITONBACKEND_Request **requests, const uint32_t count)
{
    TRITONBACKEND_Model *model;
    void                *state;
    uint64_t             start = now();

    TRITONBACKEND_ModelInstanceModel(instance, &model);
    TRITONBACKEND_ModelState(model, &state);

    model_t    *m = state;
    execution_t e = { m, instance, "", atomic_fetch_add(&m->executions, 1),
                      count, 0 };

    TRITONBACKEND_ModelInstanceName(instance, &e.name);
    record(&e, requests);
    pass_gate(m, e.number);
    if (m->delay_ms > 0) {
        usleep(m->delay_ms * 1000);
    }

    uint64_t end = now();

    TRITONBACKEND_ModelInstanceReportBatchStatistics(instance, count, start,
                                                     start, end, end);
    for (uint32_t i = 0; i < count; i++) {
        TRITONBACKEND_Response *response;

        e.place = i;
        TRITONBACKEND_ModelInstanceReportStatistics(instance, requests[i],
            true, start, start, end, end);
        if (m->does == DOES_STEPS && wants_output(requests[i])) {
            take_step(&e, requests[i]);
            continue;
        }
        if (TRITONBACKEND_ResponseNew(&response, requests[i]) == NULL) {
            TRITONSERVER_Error *err = m->does == DOES_SUM
                || m->does == DOES_APPEND
                ? accumulate(&e, requests[i], response)
                : copy(requests[i], response);
            answer(&e, response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, err);
        }
        TRITONBACKEND_RequestRelease(requests[i],
                                     TRITONSERVER_REQUEST_RELEASE_ALL);
    }
    return NULL;
}
