/*
 * states.c - a state that the core keeps: sum adds IN to each of its elements,
 * append puts IN behind them.
 */

#include "sequences.h"

#include <stdlib.h>
#include <string.h>

/* malloc'ed, *count elements. */
static int32_t *
next_value(does_t does, const tensor_t *old, const int32_t *was,
    const tensor_t *in, const int32_t *more, size_t *count)
{
    size_t   had = old->size / 4, got = in->size / 4;
    int32_t *value = malloc((had + got + 1) * 4);

    memcpy(value, was, had * 4);
    if (does == DOES_APPEND) {
        memcpy(value + had, more, got * 4);
        *count = had + got;
        return value;
    }

    for (size_t i = 0; i < had; i++) {
        for (size_t k = 0; k < got; k++) {
            value[i] += more[k];
        }
    }
    *count = had;
    return value;
}

static TRITONSERVER_Error *
keep(const execution_t *e, TRITONBACKEND_Request *request,
    const tensor_t *old, const int32_t *value, size_t count)
{
    TRITONSERVER_MemoryType kind = TRITONSERVER_MEMORY_CPU;
    TRITONBACKEND_State    *state;
    int64_t                 id = 0, shape[16];
    void                   *to;

    shape_like(old, (int64_t) count, shape);
    TRITONSERVER_Error *err = TRITONBACKEND_StateNew(&state, request,
        "STATE_OUT", TRITONSERVER_TYPE_INT32, shape, old->dims);
    if (err == NULL) {
        err = TRITONBACKEND_StateBuffer(state, &to, count * 4, &kind, &id);
    }
    if (err == NULL) {
        memcpy(to, value, count * 4);
    }
    return err != NULL || !e->model->updates ? err
        : TRITONBACKEND_StateUpdate(state);
}

TRITONSERVER_Error *
accumulate(const execution_t *e, TRITONBACKEND_Request *request,
    TRITONBACKEND_Response *response)
{
    tensor_t in, old;
    void    *more = NULL, *was = NULL;
    int32_t *value = NULL;
    size_t   count = 0;

    TRITONSERVER_Error *err = open_tensor(request, "IN", &in);
    if (err == NULL) {
        err = open_tensor(request, "STATE_IN", &old);
    }
    if (err == NULL) {
        err = read_tensor(&in, &more);
    }
    if (err == NULL) {
        err = read_tensor(&old, &was);
    }
    if (err == NULL) {
        value = next_value(e->model->does, &old, was, &in, more, &count);
        err = keep(e, request, &old, value, count);
    }
    if (err == NULL && wants_output(request)) {
        err = write_output(response, &old, value, count);
    }
    free(value);
    free(was);
    free(more);
    return err;
}
