/* streams.c - see streams.h */

#include "streams.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "messages.h"

/* An output's block, which is the interpreter's once it was told of it. */
typedef struct {
    py_link_t  *link;
    uint64_t    offset;
    uint32_t    id;
    bool        given;
} output_t;

/* NULL: flags alone. */
typedef struct item_s {
    struct item_s                    *next;
    TRITONSERVER_InferenceResponse   *response;
    bool                              final;
} item_t;

typedef struct input_s {
    struct input_s *next;
    char            data[];
} input_t;

struct py_stream_s {
    uint64_t                        id;         /* set in start()            */
    py_link_t                      *link;
    bool                            decoupled;
    TRITONSERVER_InferenceRequest  *request;    /* until it is released      */
    input_t                        *inputs;     /* likewise                  */

    pthread_mutex_t                 lock;       /* guards the rest           */
    uint32_t                        refs;
    uint32_t                        slot;       /* that waits                */
    item_t                         *first;
    item_t                         *last;
    bool                            sent;       /* to the server             */
    bool                            released;
    bool                            ended;      /* the final response came   */
    bool                            unwanted;
};

static TRITONSERVER_Error *stream_new(py_streams_t *t, py_link_t *link,
    py_stream_t **out);
static py_stream_t **find(py_streams_t *t, uint64_t id);
static void unref(py_stream_t *s, uint32_t count);
static void stream_give_up(py_stream_t *s);
static TRITONSERVER_Error *request_read(py_stream_t *s,
    TRITONSERVER_Server *server, py_requests_t *requests, py_reader_t *r,
    TRITONSERVER_InferenceTrace **trace);
static TRITONSERVER_Error *request_make(py_stream_t *s,
    TRITONSERVER_Server *server, py_reader_t *r);
static TRITONSERVER_Error *request_new(py_stream_t *s,
    TRITONSERVER_Server *server, py_reader_t *r, const char **model,
    int64_t *version);
static TRITONSERVER_Error *read_id(py_stream_t *s, py_reader_t *r);
static TRITONSERVER_Error *read_options(py_stream_t *s, py_reader_t *r);
static TRITONSERVER_Error *check_policy(const py_stream_t *s,
    TRITONSERVER_Server *server, const char *model, int64_t version);
static TRITONSERVER_Error *not_ready(TRITONSERVER_Error *err,
    const char *model);
static TRITONSERVER_Error *read_correlation(py_stream_t *s, py_reader_t *r);
static TRITONSERVER_Error *read_inputs(py_stream_t *s, py_reader_t *r);
static TRITONSERVER_Error *read_input(py_stream_t *s, py_reader_t *r);
static TRITONSERVER_Error *read_outputs(py_stream_t *s, py_reader_t *r);
static TRITONSERVER_Error *read_parameters(py_stream_t *s, py_reader_t *r);
static TRITONSERVER_Error *set_callbacks(py_stream_t *s);
static TRITONSERVER_Error *allocator_of(
    TRITONSERVER_ResponseAllocator **out);
static TRITONSERVER_Error *output_alloc(
    TRITONSERVER_ResponseAllocator *allocator, const char *name, size_t size,
    TRITONSERVER_MemoryType type, int64_t type_id, void *userp, void **buffer,
    void **buffer_userp, TRITONSERVER_MemoryType *actual_type,
    int64_t *actual_id);
static TRITONSERVER_Error *output_release(
    TRITONSERVER_ResponseAllocator *allocator, void *buffer,
    void *buffer_userp, size_t size, TRITONSERVER_MemoryType type,
    int64_t type_id);
static void on_released(TRITONSERVER_InferenceRequest *request,
    const uint32_t flags, void *userp);
static void inputs_free(input_t *inputs);
static void on_response(TRITONSERVER_InferenceResponse *response,
    const uint32_t flags, void *userp);
static item_t *take_locked(py_stream_t *s, uint32_t *slot);
static void hand_over(py_stream_t *s, item_t *item, uint32_t slot);
static void write_response(py_writer_t *w,
    TRITONSERVER_InferenceResponse *response);
static TRITONSERVER_Error *write_outputs(py_writer_t *w,
    TRITONSERVER_InferenceResponse *response);
static TRITONSERVER_Error *write_response_parameters(py_writer_t *w,
    TRITONSERVER_InferenceResponse *response);
static void response_delete(TRITONSERVER_InferenceResponse *response);

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

        /* what comes at once is queued, or answers the slot */
        s->refs++;
        s->sent = true;
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
        s->sent = false;
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
    if ((*at)->sent && !(*at)->released) {
        bk_err_drop(TRITONSERVER_InferenceRequestCancel((*at)->request));
    }
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

    /* those whose only response was handed over have no one to close them */
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
        response_delete(item->response);
        free(item);
    }
    inputs_free(s->inputs);
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
    if (s->sent && !s->released) {
        bk_err_drop(TRITONSERVER_InferenceRequestCancel(s->request));
    }
    pthread_mutex_unlock(&s->lock);
    unref(s, 1);
}

/* [id, correlation id, inputs, outputs, model, version, flags, timeout,
   parameters, decoupled, request whose trace goes on] */
static TRITONSERVER_Error *
request_read(py_stream_t *s, TRITONSERVER_Server *server,
    py_requests_t *requests, py_reader_t *r,
    TRITONSERVER_InferenceTrace **trace)
{
    TRITONSERVER_InferenceTrace *parent = NULL;
    uint64_t id;

    TRITONSERVER_Error *err = !py_read_list_of(r, 11)
        ? py_error_message("request") : request_make(s, server, r);
    if (err != NULL || py_read_none(r)) {
        return err;
    }
    if (!py_read_uint(r, &id)) {
        return py_error_message("trace");
    }

    py_live_t *live = py_requests_find(requests, id);
    if (live == NULL || live->request == NULL) {
        return NULL;
    }

    err = TRITONBACKEND_RequestTrace(live->request, &parent);
    return err != NULL || parent == NULL ? err
        : TRITONSERVER_InferenceTraceSpawnChildTrace(parent, trace);
}

static TRITONSERVER_Error *
request_make(py_stream_t *s, TRITONSERVER_Server *server, py_reader_t *r)
{
    const char *model = NULL;
    int64_t version = 0;

    /* the model's name comes after inputs and outputs */
    py_reader_t start = *r;
    TRITONSERVER_Error *err = request_new(s, server, r, &model, &version);
    if (err == NULL) {
        err = read_id(s, &start);
    }
    if (err == NULL) {
        err = read_correlation(s, &start);
    }
    if (err == NULL) {
        err = read_inputs(s, &start);
    }
    if (err == NULL) {
        err = read_outputs(s, &start);
    }
    if (err == NULL) {
        err = read_options(s, r);
    }
    if (err == NULL) {
        err = check_policy(s, server, model, version);
    }
    return err != NULL ? err : set_callbacks(s);
}

/* Reads to the end of the version. */
static TRITONSERVER_Error *
request_new(py_stream_t *s, TRITONSERVER_Server *server, py_reader_t *r,
    const char **model, int64_t *version)
{
    bool read = true;

    for (int i = 0; i < 4 && read; i++) {
        read = py_read_skip(r);
    }
    if (!read || !py_read_text(r, model, NULL) || !py_read_int(r, version)) {
        return py_error_message("request");
    }

    TRITONSERVER_Error *err = TRITONSERVER_InferenceRequestNew(&s->request,
        server, *model, *version);

    return err == NULL ? NULL : not_ready(err, *model);
}

static TRITONSERVER_Error *
read_id(py_stream_t *s, py_reader_t *r)
{
    const char *id;

    return py_read_text(r, &id, NULL)
        ? TRITONSERVER_InferenceRequestSetId(s->request, id)
        : py_error_message("request's id");
}

/* [..., flags, timeout, parameters, decoupled, ...] */
static TRITONSERVER_Error *
read_options(py_stream_t *s, py_reader_t *r)
{
    uint64_t timeout;
    int64_t flags;

    if (!py_read_int(r, &flags) || !py_read_uint(r, &timeout)) {
        return py_error_message("request");
    }

    TRITONSERVER_Error *err = TRITONSERVER_InferenceRequestSetFlags(
        s->request, (uint32_t) flags);
    if (err == NULL) {
        err = TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(s->request,
            timeout);
    }
    if (err == NULL) {
        err = read_parameters(s, r);
    }
    if (err == NULL && !py_read_bool(r, &s->decoupled)) {
        err = py_error_message("request");
    }
    return err;
}

static TRITONSERVER_Error *
check_policy(const py_stream_t *s, TRITONSERVER_Server *server,
    const char *model, int64_t version)
{
    uint32_t properties;

    TRITONSERVER_Error *err = TRITONSERVER_ServerModelTransactionProperties(
        server, model, version, &properties, NULL);
    if (err != NULL || properties != TRITONSERVER_TXN_DECOUPLED
        || s->decoupled)
    {
        return err;
    }

    return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED, "Model %s is using "
        "the decoupled. The current BLS request call doesn't support "
        "models using the decoupled transaction policy. Please use "
        "'decoupled=True' argument to the 'exec' or 'async_exec' calls "
        "for decoupled models.", model);
}

/* With Triton's words in front, which models look for. */
static TRITONSERVER_Error *
not_ready(TRITONSERVER_Error *err, const char *model)
{
    TRITONSERVER_Error_Code code = TRITONSERVER_ErrorCode(err);

    if (code != TRITONSERVER_ERROR_NOT_FOUND
        && code != TRITONSERVER_ERROR_UNAVAILABLE)
    {
        return err;
    }

    TRITONSERVER_Error *longer = bk_err_new(code, "Failed for execute the "
        "inference request. Model '%s' is not ready. %s", model,
        TRITONSERVER_ErrorMessage(err));
    bk_err_drop(err);

    return longer;
}

static TRITONSERVER_Error *
read_correlation(py_stream_t *s, py_reader_t *r)
{
    const char *text;
    uint64_t number;

    if (py_read_uint(r, &number)) {
        return TRITONSERVER_InferenceRequestSetCorrelationId(s->request,
            number);
    }
    if (py_read_text(r, &text, NULL)) {
        return TRITONSERVER_InferenceRequestSetCorrelationIdString(s->request,
            text);
    }
    return py_error_message("correlation id");
}

static TRITONSERVER_Error *
read_inputs(py_stream_t *s, py_reader_t *r)
{
    TRITONSERVER_Error *err = NULL;
    uint32_t count;

    if (!py_read_list(r, &count)) {
        return py_error_message("list of inputs");
    }
    for (uint32_t i = 0; i < count && err == NULL; i++) {
        err = read_input(s, r);
    }
    return err;
}

static TRITONSERVER_Error *
read_input(py_stream_t *s, py_reader_t *r)
{
    py_tensor_t t;

    TRITONSERVER_Error *err = py_tensor_read(&t, r);
    if (err == NULL) {
        err = TRITONSERVER_InferenceRequestAddInput(s->request, t.name,
            t.datatype, t.dims, t.dims_count);
    }
    if (err != NULL || t.data.length == 0) {
        return err;
    }

    if (t.data.length > PY_COPY_MAX) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "input \"%s\" has %"
            PRIu64 " bytes; %" PRIu64 " are possible", t.name, t.data.length,
            PY_COPY_MAX);
    }

    input_t *input = malloc(sizeof(*input) + t.data.length);
    if (input == NULL) {
        return bk_err_nomem("an input for another model");
    }

    input->next = s->inputs;
    s->inputs = input;
    err = py_link_read(s->link, &t.data, input->data);
    return err != NULL ? err
        : TRITONSERVER_InferenceRequestAppendInputData(s->request, t.name,
            input->data, t.data.length, TRITONSERVER_MEMORY_CPU, 0);
}

static TRITONSERVER_Error *
read_outputs(py_stream_t *s, py_reader_t *r)
{
    TRITONSERVER_Error *err = NULL;
    const char *name;
    uint32_t count;

    if (!py_read_list(r, &count)) {
        return py_error_message("list of outputs");
    }
    for (uint32_t i = 0; i < count && err == NULL; i++) {
        err = !py_read_text(r, &name, NULL) ? py_error_message("name")
            : TRITONSERVER_InferenceRequestAddRequestedOutput(s->request,
                name);
    }
    return err;
}

static TRITONSERVER_Error *
read_parameters(py_stream_t *s, py_reader_t *r)
{
    TRITONSERVER_Error *err = NULL;
    const char *key, *text;
    int64_t number;
    uint32_t count;
    double real;
    bool flag;

    if (!py_read_list(r, &count)) {
        return py_error_message("list of parameters");
    }
    for (uint32_t i = 0; i < count && err == NULL; i++) {
        if (!py_read_list_of(r, 2) || !py_read_text(r, &key, NULL)) {
            return py_error_message("parameter");
        }
        if (py_read_bool(r, &flag)) {
            err = TRITONSERVER_InferenceRequestSetBoolParameter(s->request,
                key, flag);
        } else if (py_read_int(r, &number)) {
            err = TRITONSERVER_InferenceRequestSetIntParameter(s->request,
                key, number);
        } else if (py_read_text(r, &text, NULL)) {
            err = TRITONSERVER_InferenceRequestSetStringParameter(s->request,
                key, text);
        } else if (py_read_double(r, &real)) {
            err = TRITONSERVER_InferenceRequestSetDoubleParameter(s->request,
                key, real);
        } else {
            err = py_error_message("parameter's value");
        }
    }
    return err;
}

static TRITONSERVER_Error *
set_callbacks(py_stream_t *s)
{
    TRITONSERVER_ResponseAllocator *allocator;

    TRITONSERVER_Error *err = allocator_of(&allocator);
    if (err == NULL) {
        err = TRITONSERVER_InferenceRequestSetReleaseCallback(s->request,
            on_released, s);
    }
    return err != NULL ? err
        : TRITONSERVER_InferenceRequestSetResponseCallback(s->request,
            allocator, s, on_response, s);
}

/* One for the process: it has no state, and outlives every response. */
static TRITONSERVER_Error *
allocator_of(TRITONSERVER_ResponseAllocator **out)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static TRITONSERVER_ResponseAllocator *allocator;
    TRITONSERVER_Error *err = NULL;

    pthread_mutex_lock(&lock);
    if (allocator == NULL) {
        err = TRITONSERVER_ResponseAllocatorNew(&allocator, output_alloc,
            output_release, NULL);
    }
    *out = allocator;
    pthread_mutex_unlock(&lock);
    return err;
}

static TRITONSERVER_Error *
output_alloc(TRITONSERVER_ResponseAllocator *allocator, const char *name,
    size_t size, TRITONSERVER_MemoryType type, int64_t type_id, void *userp,
    void **buffer, void **buffer_userp, TRITONSERVER_MemoryType *actual_type,
    int64_t *actual_id)
{
    py_stream_t *s = userp;

    (void) allocator;
    (void) type;
    (void) type_id;
    *actual_type = TRITONSERVER_MEMORY_CPU;
    *actual_id = 0;
    *buffer = NULL;
    *buffer_userp = NULL;
    if (size == 0) {
        return NULL;
    }

    output_t *out = calloc(1, sizeof(*out));
    if (out == NULL) {
        return bk_err_nomem("an output");
    }

    *buffer = py_link_alloc(s->link, size, &out->id, &out->offset);
    if (*buffer == NULL) {
        free(out);
        return bk_err_new(TRITONSERVER_ERROR_UNAVAILABLE, "no room for the %zu"
            " bytes of output \"%s\" in the memory shared with the "
            "interpreter", size, name);
    }

    out->link = py_link_ref(s->link);
    *buffer_userp = out;
    return NULL;
}

static TRITONSERVER_Error *
output_release(TRITONSERVER_ResponseAllocator *allocator, void *buffer,
    void *buffer_userp, size_t size, TRITONSERVER_MemoryType type,
    int64_t type_id)
{
    output_t *out = buffer_userp;

    (void) allocator;
    (void) buffer;
    (void) size;
    (void) type;
    (void) type_id;
    if (out != NULL) {
        if (!out->given) {
            py_link_free(out->link, out->id);
        }
        py_link_unref(out->link);
        free(out);
    }
    return NULL;
}

static void
on_released(TRITONSERVER_InferenceRequest *request, const uint32_t flags,
    void *userp)
{
    py_stream_t *s = userp;

    (void) flags;
    pthread_mutex_lock(&s->lock);
    s->released = true;
    s->request = NULL;
    input_t *inputs = s->inputs;
    s->inputs = NULL;
    bool both = s->ended;
    pthread_mutex_unlock(&s->lock);

    /* it keeps its model loaded, which a stream that lingers must not */
    bk_err_log(TRITONSERVER_InferenceRequestDelete(request),
        "cannot delete a request");
    inputs_free(inputs);
    if (both) {
        unref(s, 1);
    }
}

static void
inputs_free(input_t *inputs)
{
    while (inputs != NULL) {
        input_t *input = inputs;
        inputs = input->next;
        free(input);
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
        response_delete(response);
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

        /* without memory for it the last response is lost: who waits for it
           is told */
        if (next == NULL && s->slot != PY_NO_SLOT) {
            lost = s->slot;
            s->slot = PY_NO_SLOT;
        }
    }
    s->refs++;                          /* this call's                       */
    pthread_mutex_unlock(&s->lock);

    if (item != NULL) {
        response_delete(item->response);
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
    unref(s, both ? 2 : 1);
}

/* The response for the slot that waits, if there are both. */
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

/* [none, response] or, of a stream, [none, [response, final]] */
static void
hand_over(py_stream_t *s, item_t *item, uint32_t slot)
{
    py_writer_t w = { 0 };

    py_write_list(&w, 2);
    py_write_none(&w);
    if (s->decoupled) {
        py_write_list(&w, 2);
        write_response(&w, item->response);
        py_write_bool(&w, item->final);
    } else {
        write_response(&w, item->response);
    }

    py_link_reply(s->link, slot, &w);
    py_writer_fini(&w);
    response_delete(item->response);
    free(item);
}

/* [error or none, outputs, parameters]; NULL: one without outputs */
static void
write_response(py_writer_t *w, TRITONSERVER_InferenceResponse *response)
{
    size_t begin = w->len;

    TRITONSERVER_Error *err = response == NULL ? NULL
        : TRITONSERVER_InferenceResponseError(response);
    py_write_list(w, 3);
    if (err == NULL && response != NULL) {
        py_write_none(w);
        err = write_outputs(w, response);
        if (err == NULL) {
            err = write_response_parameters(w, response);
        }
        if (err == NULL) {
            return;
        }

        w->len = begin;
        py_write_list(w, 3);
    }

    py_error_write(w, err);
    py_write_list(w, 0);
    py_write_list(w, 0);
    bk_err_drop(err);
}

static TRITONSERVER_Error *
write_outputs(py_writer_t *w, TRITONSERVER_InferenceResponse *response)
{
    uint32_t count = 0;

    TRITONSERVER_Error *err = TRITONSERVER_InferenceResponseOutputCount(
        response, &count);
    py_write_list(w, count);
    for (uint32_t i = 0; i < count && err == NULL; i++) {
        TRITONSERVER_DataType datatype;
        TRITONSERVER_MemoryType type;
        const int64_t *shape;
        const char *name;
        const void *base;
        uint64_t dims;
        int64_t type_id;
        size_t size;
        void *userp;

        err = TRITONSERVER_InferenceResponseOutput(response, i, &name,
            &datatype, &shape, &dims, &base, &size, &type, &type_id, &userp);
        if (err != NULL) {
            break;
        }

        py_write_list(w, 4);
        py_write_string(w, name);
        py_write_int(w, datatype);
        py_write_list(w, (uint32_t) dims);
        for (uint64_t k = 0; k < dims; k++) {
            py_write_int(w, shape[k]);
        }

        output_t *out = userp;
        if (out == NULL || size <= PY_INLINE_MAX) {
            py_write_bytes(w, base, base == NULL ? 0 : size);
        } else {
            py_write_block(w, out->id, out->offset, size);
            out->given = !w->failed;
        }
    }
    return err;
}

static TRITONSERVER_Error *
write_response_parameters(py_writer_t *w,
    TRITONSERVER_InferenceResponse *response)
{
    uint32_t count = 0;

    TRITONSERVER_Error *err = TRITONSERVER_InferenceResponseParameterCount(
        response, &count);
    py_write_list(w, count);
    for (uint32_t i = 0; i < count && err == NULL; i++) {
        TRITONSERVER_ParameterType type;
        const void *value;
        const char *key;

        err = TRITONSERVER_InferenceResponseParameter(response, i, &key,
            &type, &value);
        if (err != NULL) {
            break;
        }

        py_write_list(w, 2);
        py_write_string(w, key);
        py_parameter_write(w, type, value);
    }
    return err;
}

static void
response_delete(TRITONSERVER_InferenceResponse *response)
{
    if (response != NULL) {
        bk_err_log(TRITONSERVER_InferenceResponseDelete(response),
            "cannot delete a response");
    }
}
