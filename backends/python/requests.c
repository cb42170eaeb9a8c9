/* requests.c - see requests.h */

#include "requests.h"

#include <stdlib.h>
#include <string.h>

#include "messages.h"

static TRITONSERVER_Error *factory_of(py_live_t *live);
static TRITONSERVER_Error *response_new(py_live_t *live,
    TRITONBACKEND_Response **response);

void
py_requests_fini(py_requests_t *t)
{
    free(t->live);
    *t = (py_requests_t) { 0 };
}

TRITONSERVER_Error *
py_requests_add(py_requests_t *t, TRITONBACKEND_Request *request,
    uint64_t *id)
{
    uint32_t i = t->count;

    if (t->count == t->capacity) {
        uint32_t capacity = t->capacity * 2 + 32;
        py_live_t *wider = realloc(t->live, capacity * sizeof(*wider));

        if (wider == NULL) {
            return bk_err_nomem("requests of an interpreter");
        }
        memset(wider + t->capacity, 0,
            (capacity - t->capacity) * sizeof(*wider));
        t->live = wider;
        t->capacity = capacity;

    } else {
        for (i = 0; t->live[i].state != PY_LIVE_FREE; i++) {
            /* there is a free one */
        }
    }

    py_live_t *live = &t->live[i];
    *live = (py_live_t) {
        .request = request, .generation = live->generation + 1,
        .state = PY_LIVE_OPEN
    };
    t->count++;
    *id = (uint64_t) live->generation << 32 | i;
    return NULL;
}

py_live_t *
py_requests_find(py_requests_t *t, uint64_t id)
{
    uint32_t i = (uint32_t) id;

    return i < t->capacity && t->live[i].state != PY_LIVE_FREE
        && t->live[i].generation == id >> 32 ? &t->live[i] : NULL;
}

void
py_requests_remove(py_requests_t *t, py_live_t *live)
{
    if (live->factory != NULL) {
        bk_err_log(TRITONBACKEND_ResponseFactoryDelete(live->factory),
            "cannot delete a response factory");
    }

    live->factory = NULL;
    live->state = PY_LIVE_FREE;
    t->count--;
}

TRITONSERVER_Error *
py_live_respond(py_live_t *live, py_link_t *link, py_reader_t *r,
    bool final, py_outgoing_t *out)
{
    *out = (py_outgoing_t) { .final = final };
    TRITONSERVER_Error *err = response_new(live, &out->response);
    if (err != NULL) {
        return err;
    }

    live->state = final ? PY_LIVE_CLOSED : PY_LIVE_RESPONDED;
    out->wrong = py_response_fill(out->response, link, r);
    return NULL;
}

void
py_live_fail(py_live_t *live, TRITONSERVER_Error *err, py_outgoing_t *out)
{
    *out = (py_outgoing_t) { .final = true };
    if (live->state == PY_LIVE_CLOSED || live->again) {
        bk_err_drop(err);
        return;
    }

    live->state = PY_LIVE_CLOSED;
    TRITONSERVER_Error *cannot = response_new(live, &out->response);
    if (cannot != NULL) {
        out->response = NULL;
        bk_err_log(cannot, "cannot answer a request");
        bk_err_log(err, "its error was");
        return;
    }
    out->wrong = err;
}

TRITONSERVER_Error *
py_outgoing_send(py_outgoing_t *out)
{
    if (out->response == NULL) {
        return NULL;
    }

    TRITONSERVER_Error *err = TRITONBACKEND_ResponseSend(out->response,
        out->final ? TRITONSERVER_RESPONSE_COMPLETE_FINAL : 0, out->wrong);
    bk_err_drop(out->wrong);
    *out = (py_outgoing_t) { .response = NULL };
    return err;
}

TRITONSERVER_Error *
py_live_end(py_live_t *live)
{
    TRITONSERVER_Error *err = factory_of(live);

    if (err != NULL) {
        return err;
    }

    live->state = PY_LIVE_CLOSED;
    return TRITONBACKEND_ResponseFactorySendFlags(live->factory,
        TRITONSERVER_RESPONSE_COMPLETE_FINAL);
}

TRITONSERVER_Error *
py_live_take(py_live_t *live, TRITONBACKEND_Request **request)
{
    TRITONSERVER_Error *err = live->state == PY_LIVE_CLOSED ? NULL
        : factory_of(live);

    *request = live->request;
    live->request = NULL;
    return err;
}

TRITONSERVER_Error *
py_live_reschedule(py_live_t *live)
{
    TRITONSERVER_Error *err = live->dropped ? NULL : factory_of(live);

    if (err == NULL) {
        err = TRITONBACKEND_RequestRelease(live->request,
            TRITONSERVER_REQUEST_RELEASE_RESCHEDULE);
    }
    if (err == NULL) {
        live->request = NULL;
        live->again = true;
    }
    return err;
}

TRITONSERVER_Error *
py_live_is_cancelled(const py_live_t *live, bool *cancelled)
{
    *cancelled = false;
    if (live->factory != NULL) {
        return TRITONBACKEND_ResponseFactoryIsCancelled(live->factory,
            cancelled);
    }

    return live->request == NULL ? NULL
        : TRITONBACKEND_RequestIsCancelled(live->request, cancelled);
}

uint64_t
py_request_rows(TRITONBACKEND_Request *request, bool batching)
{
    bk_input_t in;
    uint32_t count = 0;

    if (!batching) {
        return 1;
    }

    bk_err_drop(TRITONBACKEND_RequestInputCount(request, &count));
    for (uint32_t i = 0; i < count; i++) {
        TRITONSERVER_Error *err = bk_input_open_at(&in, request, i);
        if (err == NULL && in.dims_count > 0 && in.shape[0] > 0) {
            return (uint64_t) in.shape[0];
        }
        bk_err_drop(err);
    }
    return 1;
}

static TRITONSERVER_Error *
factory_of(py_live_t *live)
{
    if (live->factory != NULL) {
        return NULL;
    }

    if (live->request == NULL) {
        return bk_err_new(TRITONSERVER_ERROR_INTERNAL, "the request was "
            "released before its response");
    }
    return TRITONBACKEND_ResponseFactoryNew(&live->factory, live->request);
}

static TRITONSERVER_Error *
response_new(py_live_t *live, TRITONBACKEND_Response **response)
{
    if (live->factory == NULL && live->request != NULL) {
        return TRITONBACKEND_ResponseNew(response, live->request);
    }

    TRITONSERVER_Error *err = factory_of(live);
    return err != NULL ? err
        : TRITONBACKEND_ResponseNewFromFactory(response, live->factory);
}
