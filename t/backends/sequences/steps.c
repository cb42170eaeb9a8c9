/*
 * steps.c - requests that take several executions: IN says how many.  Each
 * execution is a step; OUT is its number, in a response for each step where
 * the model is decoupled, in one after the last else.  A request without an id
 * of its own is told from others by the one that the core gives it.
 */

#include "sequences.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct taken_s {
    struct taken_s *next;
    const model_t  *model;
    char            id[160];
    int32_t         steps;
} taken_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static taken_t        *all;             /* lock; requests under way          */

static void
name_of(TRITONBACKEND_Request *request, char *out, size_t cap)
{
    uint64_t            number = 0;
    const char         *text = "";
    TRITONSERVER_Error *err = TRITONBACKEND_RequestCorrelationId(request,
                                                                 &number);

    if (err != NULL) {
        TRITONSERVER_ErrorDelete(err);
        TRITONSERVER_ErrorDelete(
            TRITONBACKEND_RequestCorrelationIdString(request, &text));
        snprintf(out, cap, "text %s", text);
    } else {
        snprintf(out, cap, "%llu", (unsigned long long) number);
    }
}

/* The number of this step; forgets the request after the last. */
static int32_t
count_step(const model_t *m, const char *id, bool start, int32_t last)
{
    taken_t **at = &all, *t;

    pthread_mutex_lock(&lock);
    while ((t = *at) != NULL
        && (t->model != m || strcmp(t->id, id) != 0))
    {
        at = &t->next;
    }
    if (t == NULL) {
        t = *at = calloc(1, sizeof(*t));
        t->model = m;
        snprintf(t->id, sizeof(t->id), "%s", id);
    }
    t->steps = start ? 1 : t->steps + 1;

    int32_t step = t->steps;
    if (step >= last) {
        *at = t->next;
        free(t);
    }
    pthread_mutex_unlock(&lock);
    return step;
}

static void
end_with(const execution_t *e, TRITONBACKEND_Request *request,
    TRITONSERVER_Error *err)
{
    TRITONBACKEND_Response *response;

    if (TRITONBACKEND_ResponseNew(&response, request) == NULL) {
        answer(e, response, TRITONSERVER_RESPONSE_COMPLETE_FINAL, err);
    }
    TRITONBACKEND_RequestRelease(request, TRITONSERVER_REQUEST_RELEASE_ALL);
}

static void
again(const execution_t *e, TRITONBACKEND_Request *request)
{
    TRITONSERVER_Error *err = TRITONBACKEND_RequestRelease(request,
        TRITONSERVER_REQUEST_RELEASE_RESCHEDULE);

    if (err != NULL) {
        end_with(e, request, err);
    }
}

typedef struct {
    execution_t            execution;
    TRITONBACKEND_Request *request;
} late_t;

static void *
again_later(void *arg)
{
    late_t *late = arg;

    usleep(late->execution.model->later_ms * 1000);
    again(&late->execution, late->request);
    free(late);
    return NULL;
}

static void
start_later(const execution_t *e, TRITONBACKEND_Request *request)
{
    late_t        *late = calloc(1, sizeof(*late));
    pthread_attr_t attr;
    pthread_t      thread;

    *late = (late_t) { *e, request };
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_create(&thread, &attr, again_later, late);
    pthread_attr_destroy(&attr);
}

static TRITONSERVER_Error *
answer_step(const execution_t *e, TRITONBACKEND_Request *request,
    const tensor_t *t, int32_t number, bool last)
{
    TRITONBACKEND_Response *response;

    if (!last && !e->model->decoupled) {
        return NULL;
    }
    TRITONSERVER_Error *err = TRITONBACKEND_ResponseNew(&response, request);
    if (err == NULL) {
        err = write_output(response, t, &number, 1);
        answer(e, response, last ? TRITONSERVER_RESPONSE_COMPLETE_FINAL : 0,
               err);
    }
    return NULL;
}

void
take_step(const execution_t *e, TRITONBACKEND_Request *request)
{
    tensor_t            t;
    void               *data = NULL;
    uint32_t            flags = 0;
    char                id[160];
    TRITONSERVER_Error *err = open_tensor(request, "IN", &t);

    if (err == NULL) {
        err = read_tensor(&t, &data);
    }
    if (err != NULL) {
        end_with(e, request, err);
        free(data);
        return;
    }

    name_of(request, id, sizeof(id));
    TRITONBACKEND_RequestFlags(request, &flags);
    int32_t last = *(int32_t *) data;
    int32_t number = count_step(e->model, id,
        flags & TRITONSERVER_REQUEST_FLAG_SEQUENCE_START, last);
    free(data);

    answer_step(e, request, &t, number, number >= last);
    if (number >= last) {
        TRITONBACKEND_RequestRelease(request,
                                     TRITONSERVER_REQUEST_RELEASE_ALL);
    } else if (e->model->later_ms > 0) {
        start_later(e, request);
    } else {
        again(e, request);
    }
}
