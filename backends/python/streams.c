/* streams.c - see streams.h */

#include "streams.h"

#include <stdlib.h>
#include <string.h>

#include "bls_request.h"
#include "bls_response.h"
#include "messages.h"

/* A response of a stream; NULL: flags alone. */
typedef struct item_s {
    struct item_s                    *next;
    TRITONSERVER_InferenceResponse   *response;
    bool                              final;
} item_t;

struct py_stream_s {
    uint64_t                        id;         /* set in start()            */
    py_link_t                      *link;       /* set in new()              */
    bool                            decoupled;  /* set in start()            */
    py_bls_outputs_t                outputs;    /* set in start()            */
    py_bls_input_t                 *inputs;     /* until released            */

    pthread_mutex_t                 lock;       /* guards the rest           */
    uint32_t                        refs;
    TRITONSERVER_InferenceRequest  *request;    /* until released and ended  */
    uint32_t                        slot;       /* that waits                */
    item_t                         *first;
    item_t                         *last;
    bool                            released;
    bool                            ended;      /* the final response has
                                                   come                      */
    bool                            unwanted;
};

static TRITONSERVER_Error *stream_new(py_streams_t *t, py_link_t *link,
    py_stream_t **out);
static py_stream_t **find(py_streams_t *t, uint64_t id);
static void unref(py_stream_t *s, uint32_t count);
static void stream_give_up(py_stream_t *s);
static void cancel_locked(py_stream_t *s);
static TRITONSERVER_Error *request_read(py_stream_t *s,
    TRITONSERVER_Server *server, py_requests_t *requests, py_reader_t *r,
    TRITONSERVER_InferenceTrace **trace);
static void on_released(TRITONSERVER_InferenceRequest *request,
    const uint32_t flags, void *userp);
static void on_response(TRITONSERVER_InferenceResponse *response,
    const uint32_t flags, void *userp);
static void finish(py_stream_t *s);
static item_t *take_locked(py_stream_t *s, uint32_t *slot);
static void hand_over(py_stream_t *s, item_t *item, uint32_t slot);

void
py_streams_fini(py_streams_t *t)
{
    for (uint32_t i = 0; i < t->capacity; i++) {
        if (t->streams[i] != NULL) {
            stream_give_up(t->streams[i]);
        }
    }

    free(t->streams);
    *t = (py_streams_t) { .last = t->last };
}

TRITONSERVER_Error *
py_streams_start(py_streams_t *t, py_link_t *link,
    TRITONSERVER_Server *server, py_requests_t *requests, uint32_t slot,
    py_reader_t *r)
{
    TRITONSERVER_InferenceTrace *trace = NULL;
    py_stream_t *s = NULL;

    TRITONSERVER_Error *err = stream_new(t, link, &s);
    if (err != NULL) {
        return err;
    }

    err = request_read(s, server, requests, r, &trace);
    if (err == NULL && !s->decoupled) {
        s->slot = slot;
    }
    if (err == NULL) {
        bool decoupled = s->decoupled;
        uint64_t id = s->id;

        /* a response that comes at once is queued, or goes to the slot */
        s->refs++;
        err = TRITONSERVER_ServerInferAsync(server, s->request, trace);
        if (err == NULL) {
            if (decoupled) {
                py_writer_t w = { 0 };
                py_write_list(&w, 2);
                py_write_none(&w);
                py_write_uint(&w, id);
                py_link_reply(link, slot, &w);
                py_writer_fini(&w);
            }
            return NULL;
        }
        s->refs--;
    }

    bk_err_log(TRITONSERVER_InferenceTraceDelete(trace),
        "cannot delete a trace");
    py_stream_t **at = find(t, s->id);
    *at = NULL;
    unref(s, 1);
    return err;
}

TRITONSERVER_Error *
py_streams_next(py_streams_t *t, uint64_t id, uint32_t slot)
{
    py_stream_t **at = find(t, id);

    if (at == NULL) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "there are no more responses");
    }

    py_stream_t *s = *at;
    item_t *item = NULL;
    pthread_mutex_lock(&s->lock);
    if (s->slot != PY_NO_SLOT) {
        pthread_mutex_unlock(&s->lock);
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "another thread waits for the next response already");
    }
    if (s->first == NULL && s->ended) {
        pthread_mutex_unlock(&s->lock);
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "there are no more responses");
    }
    s->slot = slot;
    item = take_locked(s, &slot);
    pthread_mutex_unlock(&s->lock);

    if (item != NULL) {
        hand_over(s, item, slot);
    }
    return NULL;
}

void
py_streams_cancel(py_streams_t *t, uint64_t id)
{
    py_stream_t **at = find(t, id);

    if (at == NULL) {
        return;
    }

    pthread_mutex_lock(&(*at)->lock);
    cancel_locked(*at);
    pthread_mutex_unlock(&(*at)->lock);
}

void
py_streams_close(py_streams_t *t, uint64_t id)
{
    py_stream_t **at = find(t, id);

    if (at != NULL) {
        py_stream_t *s = *at;
        *at = NULL;
        stream_give_up(s);
    }
}

static TRITONSERVER_Error *
stream_new(py_streams_t *t, py_link_t *link, py_stream_t **out)
{
    uint32_t i = 0;

    /* streams with one response, handed over, are closed by no one */
    for (uint32_t k = 0; k < t->capacity; k++) {
        py_stream_t *s = t->streams[k];
        if (s == NULL) {
            continue;
        }
        pthread_mutex_lock(&s->lock);
        bool over = !s->decoupled && s->ended && s->released
            && s->slot == PY_NO_SLOT;
        pthread_mutex_unlock(&s->lock);
        if (over) {
            t->streams[k] = NULL;
            unref(s, 1);
        }
    }

    while (i < t->capacity && t->streams[i] != NULL) {
        i++;
    }
    if (i == t->capacity) {
        uint32_t capacity = t->capacity * 2 + 16;
        py_stream_t **wider = realloc(t->streams,
            capacity * sizeof(*wider));
        if (wider == NULL) {
            return bk_err_nomem("a request for another model");
        }
        memset(wider + t->capacity, 0,
            (capacity - t->capacity) * sizeof(*wider));
        t->streams = wider;
        t->capacity = capacity;
    }

    py_stream_t *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return bk_err_nomem("a request for another model");
    }

    s->id = ++t->last;
    s->link = py_link_ref(link);
    s->refs = 1;
    s->slot = PY_NO_SLOT;
    pthread_mutex_init(&s->lock, NULL);
    t->streams[i] = s;
    *out = s;
    return NULL;
}

static py_stream_t **
find(py_streams_t *t, uint64_t id)
{
    for (uint32_t i = 0; i < t->capacity; i++) {
        if (t->streams[i] != NULL && t->streams[i]->id == id) {
            return &t->streams[i];
        }
    }

    return NULL;
}

static void
unref(py_stream_t *s, uint32_t count)
{
    pthread_mutex_lock(&s->lock);
    s->refs -= count;
    bool last = s->refs == 0;
    pthread_mutex_unlock(&s->lock);
    if (!last) {
        return;
    }

    while (s->first != NULL) {
        item_t *item = s->first;
        s->first = item->next;
        py_bls_response_delete(item->response);
        free(item);
    }
    py_bls_inputs_free(s->inputs);
    if (s->request != NULL) {
        bk_err_log(TRITONSERVER_InferenceRequestDelete(s->request),
            "cannot delete a request");
    }
    py_link_unref(s->link);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static void
stream_give_up(py_stream_t *s)
{
    pthread_mutex_lock(&s->lock);
    s->unwanted = true;
    s->slot = PY_NO_SLOT;
    cancel_locked(s);
    pthread_mutex_unlock(&s->lock);
    unref(s, 1);
}

/* Cancels the request, also one that is released: a decoupled model may still
   be at work on its responses. */
static void
cancel_locked(py_stream_t *s)
{
    if (s->request != NULL) {
        bk_err_drop(TRITONSERVER_InferenceRequestCancel(s->request));
    }
}

static TRITONSERVER_Error *
request_read(py_stream_t *s, TRITONSERVER_Server *server,
    py_requests_t *requests, py_reader_t *r,
    TRITONSERVER_InferenceTrace **trace)
{
    py_bls_request_t q = { .link = s->link };

    TRITONSERVER_Error *err = py_bls_request_read(&q, server, requests, r);
    s->request = q.request;
    s->inputs = q.inputs;
    s->decoupled = q.decoupled;
    *trace = q.trace;
    if (err == NULL) {
        err = TRITONSERVER_InferenceRequestSetReleaseCallback(s->request,
            on_released, s);
    }
    if (err == NULL) {
        s->outputs.link = s->link;
        s->outputs.gpu = q.gpu;
        err = py_bls_outputs_set(&s->outputs, s->request, on_response, s);
    }
    return err;
}

static void
on_released(TRITONSERVER_InferenceRequest *request, const uint32_t flags,
    void *userp)
{
    py_stream_t *s = userp;

    (void) request;
    (void) flags;
    pthread_mutex_lock(&s->lock);
    s->released = true;
    py_bls_input_t *inputs = s->inputs;
    s->inputs = NULL;
    bool both = s->ended;
    pthread_mutex_unlock(&s->lock);

    py_bls_inputs_free(inputs);
    if (both) {
        finish(s);
    }
}

static void
on_response(TRITONSERVER_InferenceResponse *response, const uint32_t flags,
    void *userp)
{
    py_stream_t *s = userp;
    bool final = (flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL) != 0;
    uint32_t slot = PY_NO_SLOT;
    uint32_t lost = PY_NO_SLOT;
    item_t *next = NULL;
    bool both = false;

    item_t *item = response == NULL && !final ? NULL
        : calloc(1, sizeof(*item));
    if (item != NULL) {
        item->response = response;
        item->final = final;
    } else {
        py_bls_response_delete(response);
    }

    pthread_mutex_lock(&s->lock);
    if (item != NULL && !s->unwanted) {
        if (s->last != NULL) {
            s->last->next = item;
        } else {
            s->first = item;
        }
        s->last = item;
        item = NULL;
    }
    next = take_locked(s, &slot);
    if (final) {
        s->ended = true;
        both = s->released;

        /* out of memory: the last response is lost, and a waiting slot is
           told */
        if (next == NULL && s->slot != PY_NO_SLOT) {
            lost = s->slot;
            s->slot = PY_NO_SLOT;
        }
    }
    s->refs++;                          /* of this call                      */
    pthread_mutex_unlock(&s->lock);

    if (item != NULL) {
        py_bls_response_delete(item->response);
        free(item);
    }
    if (next != NULL) {
        hand_over(s, next, slot);
    }
    if (lost != PY_NO_SLOT) {
        TRITONSERVER_Error *err = bk_err_nomem("a response");
        py_reply(s->link, lost, err, NULL);
        bk_err_drop(err);
    }
    if (both) {
        finish(s);
    }
    unref(s, 1);
}

/* Ends the server's use of a stream.  A request keeps its model loaded, so it
   is deleted although the stream may linger. */
static void
finish(py_stream_t *s)
{
    pthread_mutex_lock(&s->lock);
    TRITONSERVER_InferenceRequest *request = s->request;
    s->request = NULL;
    pthread_mutex_unlock(&s->lock);

    bk_err_log(TRITONSERVER_InferenceRequestDelete(request),
        "cannot delete a request");
    unref(s, 1);
}

/* Takes a response for the waiting slot, if there are both. */
static item_t *
take_locked(py_stream_t *s, uint32_t *slot)
{
    item_t *item = s->first;

    if (s->slot == PY_NO_SLOT || item == NULL) {
        return NULL;
    }

    *slot = s->slot;
    s->slot = PY_NO_SLOT;
    s->first = item->next;
    if (s->first == NULL) {
        s->last = NULL;
    }
    return item;
}

/* Sends [none, response] or, for a stream, [none, [response, final]]. */
static void
hand_over(py_stream_t *s, item_t *item, uint32_t slot)
{
    py_writer_t w = { 0 };

    py_write_list(&w, 2);
    py_write_none(&w);
    if (s->decoupled) {
        py_write_list(&w, 2);
        py_bls_response_write(&s->outputs, &w, item->response);
        py_write_bool(&w, item->final);
    } else {
        py_bls_response_write(&s->outputs, &w, item->response);
    }

    py_link_reply(s->link, slot, &w);
    py_writer_fini(&w);
    py_bls_response_delete(item->response);
    free(item);
}
