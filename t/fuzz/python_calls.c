/* Any bytes as what an interpreter of backend python writes: entries of the
   ring that lie, messages of every kind with anything in them.  The server's
   functions are our own here; they check what they get. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "triton/core/tritonbackend.h"

#define RUNNING 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A request for another model. */
typedef struct {
    TRITONSERVER_InferenceRequestReleaseFn_t   release;
    TRITONSERVER_InferenceResponseCompleteFn_t complete;
    void                                      *userp;
} asked_t;

static size_t touched;
static asked_t asked;               /* the one being made                    */
static asked_t running[RUNNING];
static size_t running_count;

static TRITONSERVER_Error *
got_text(const char *s)
{
    check(s != NULL);
    touched += strlen(s);
    return NULL;
}

static TRITONSERVER_Error *
got_shape(const char *name, const int64_t *dims, uint64_t count)
{
    check(count <= 64);
    for (uint64_t i = 0; i < count; i++) {
        check(dims[i] >= 0);
    }
    return got_text(name);
}

static TRITONSERVER_Error *
got_output(TRITONBACKEND_Output **out, const char *name, const int64_t *dims,
    uint32_t count)
{
    *out = (TRITONBACKEND_Output *) &touched;
    return got_shape(name, dims, count);
}

/* an allocator gives what is asked for, within reason */
static TRITONSERVER_Error *
got_buffer(void **to, uint64_t size)
{
    static char memory[1 << 16];

    *to = memory;
    return size <= sizeof(memory) ? NULL
        : TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE, "too much");
}

static TRITONSERVER_Error *
made(void *out)
{
    *(void **) out = &touched;
    return NULL;
}

static TRITONSERVER_Error *
got_bytes(const char *name, const void *base, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        touched += ((const uint8_t *) base)[i];
    }
    return got_text(name);
}

static TRITONSERVER_Error *
run(void)
{
    if (running_count == RUNNING) {
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNAVAILABLE,
            "too many");
    }
    running[running_count++] = asked;
    return NULL;
}

/* The last response and the request come back in either order. */
static void
run_ends(void)
{
    TRITONSERVER_InferenceRequest *request = (void *) &touched;
    asked_t a = running[--running_count];
    bool first = touched % 2 == 0;

    if (first) {
        a.release(request, TRITONSERVER_REQUEST_RELEASE_ALL, a.userp);
    }
    a.complete(NULL, TRITONSERVER_RESPONSE_COMPLETE_FINAL, a.userp);
    if (!first) {
        a.release(request, TRITONSERVER_REQUEST_RELEASE_ALL, a.userp);
    }
}

#define TRITONBACKEND_ResponseNew(out, request) made(out)
#define TRITONBACKEND_ResponseNewFromFactory(out, factory) made(out)
#define TRITONBACKEND_ResponseFactoryNew(out, request) made(out)
#define TRITONBACKEND_ResponseFactoryDelete(factory) NULL
#define TRITONBACKEND_ResponseFactorySendFlags(factory, flags) NULL
#define TRITONBACKEND_ResponseFactoryIsCancelled(factory, out) NULL
#define TRITONBACKEND_RequestIsCancelled(request, out) NULL
#define TRITONBACKEND_RequestRelease(request, flags) NULL
#define TRITONBACKEND_ResponseSend(response, flags, err) NULL
#define TRITONBACKEND_ResponseOutput(r, out, name, type, dims, n) \
    got_output(out, name, dims, n)
#define TRITONBACKEND_OutputBuffer(out, base, size, type, id) \
    got_buffer(base, size)
#define TRITONBACKEND_ResponseSetStringParameter(r, key, v) \
    (got_text(key), got_text(v))
#define TRITONBACKEND_ResponseSetIntParameter(r, key, v) got_text(key)
#define TRITONBACKEND_ResponseSetBoolParameter(r, key, v) got_text(key)
#define TRITONBACKEND_ResponseSetDoubleParameter(r, key, v) got_text(key)
#define TRITONBACKEND_RequestCorrelationId(request, out) \
    (*(out) = 0, (TRITONSERVER_Error *) NULL)
#define TRITONBACKEND_RequestTrace(request, out) \
    (*(out) = NULL, (TRITONSERVER_Error *) NULL)
#define TRITONSERVER_InferenceRequestNew(out, server, name, version) \
    (got_text(name), made(out))
#define TRITONSERVER_InferenceRequestDelete(r) ((void) (r), NULL)
#define TRITONSERVER_InferenceRequestSetId(r, id) got_text(id)
#define TRITONSERVER_InferenceRequestSetCorrelationId(r, id) NULL
#define TRITONSERVER_InferenceRequestSetCorrelationIdString(r, id) got_text(id)
#define TRITONSERVER_InferenceRequestAddInput(r, name, type, dims, n) \
    got_shape(name, dims, n)
#define TRITONSERVER_InferenceRequestAppendInputData(r, name, base, size, \
    type, id) got_bytes(name, base, size)
#define TRITONSERVER_InferenceRequestAddRequestedOutput(r, name) got_text(name)
#define TRITONSERVER_InferenceRequestSetFlags(r, flags) NULL
#define TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(r, t) NULL
#define TRITONSERVER_InferenceRequestSetBoolParameter(r, key, v) got_text(key)
#define TRITONSERVER_InferenceRequestSetIntParameter(r, key, v) got_text(key)
#define TRITONSERVER_InferenceRequestSetDoubleParameter(r, key, v) got_text(key)
#define TRITONSERVER_InferenceRequestSetStringParameter(r, key, v) \
    (got_text(key), got_text(v))
#define TRITONSERVER_ServerModelTransactionProperties(s, name, v, out, p) \
    (*(out) = TRITONSERVER_TXN_ONE_TO_ONE, got_text(name))
#define TRITONSERVER_InferenceRequestSetReleaseCallback(r, fn, up) \
    (asked.release = (fn), asked.userp = (up), (TRITONSERVER_Error *) NULL)
#define TRITONSERVER_InferenceRequestSetResponseCallback(r, a, aup, fn, up) \
    (asked.complete = (fn), (TRITONSERVER_Error *) NULL)
#define TRITONSERVER_InferenceRequestCancel(r) NULL
#define TRITONSERVER_ServerInferAsync(server, request, trace) run()
#define TRITONSERVER_ServerLoadModelWithParameters(s, name, p, n) got_text(name)
#define TRITONSERVER_ServerUnloadModel(s, name) got_text(name)
#define TRITONSERVER_ServerUnloadModelAndDependents(s, name) got_text(name)
#define TRITONSERVER_ServerModelIsReady(s, name, version, out) got_text(name)
#define TRITONSERVER_LogMessage(level, file, line, message) \
    (got_text(file), got_text(message))

/* the macros drop what they have no use for */
#pragma clang diagnostic ignored "-Wunused-parameter"

#include "backends/common/error.c"
#include "backends/common/request.c"
#include "backends/python/value.c"
#include "backends/python/heap.c"
#include "backends/common/gpu_driver.c"
#include "backends/common/gpu_functions.c"
#include "backends/python/gpus.c"
#include "backends/python/gpu_blocks.c"
#include "backends/python/link.c"
#include "backends/python/arenas.c"
#include "backends/python/gpu_inputs.c"
#define write_outputs write_request_outputs
#include "backends/python/messages.c"
#undef write_outputs
#include "backends/python/requests.c"
#include "backends/python/metrics.c"
#define read_outputs read_bls_outputs
#define read_inputs read_bls_inputs
#include "backends/python/bls_request.c"
#undef read_outputs
#undef read_inputs
#define output_t stream_output_t
#define inf_outputs_are_cached some_are_cached
#include "backends/python/bls_response.c"
#include "backends/python/streams.c"
#define read_files read_model_files
#include "backends/python/threads.c"
#include "backends/python/control.c"
#include "backends/python/sending.c"
#include "backends/python/calls.c"

#define REQUESTS 4

bool
some_are_cached(TRITONSERVER_InferenceRequest *request)
{
    (void) request;
    return touched % 2 == 0;
}
static py_interpreter_t in;

static void
begin(void)
{
    static py_model_t model;
    uint64_t id;

    if (in.link == NULL) {
        in.model = &model;
        in.name = "fuzz_0";
        pthread_mutex_init(&in.lock, NULL);
        pthread_cond_init(&in.changed, NULL);
        check(py_link_new(&in.link) == NULL);
        in.link->pid = getpid();
    }

    in.task = 7;
    in.done = false;
    for (int i = 0; i < REQUESTS; i++) {
        TRITONBACKEND_Request *request = (TRITONBACKEND_Request *) &touched;
        check(py_requests_add(&in.requests, request, &id) == NULL);
        if (i % 2 == 1) {           /* its execution is over                 */
            check(py_live_take(py_requests_find(&in.requests, id), &request)
                == NULL);
        }
    }
}

static void
end(void)
{
    py_streams_fini(&in.streams);
    while (running_count > 0) {
        run_ends();
    }
    py_metrics_fini(&in.metrics);
    py_threads_end(10);
    for (uint32_t i = 0; i < in.requests.capacity; i++) {
        if (in.requests.live[i].state != PY_LIVE_FREE) {
            py_outgoing_t out;
            py_live_fail(&in.requests.live[i], py_error_message("end"), &out);
            check(py_outgoing_send(&out) == NULL);
            py_requests_remove(&in.requests, &in.requests.live[i]);
        }
    }
    py_requests_fini(&in.requests);

    /* pages that were only looked at */
    check(fallocate(in.link->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
        (off_t) PY_HEAPS_AT, (off_t) (2 * PY_HEAP_BYTES)) == 0);
}

/* Requests and metrics have a generation in the upper half of their id. */
static uint64_t
entry_id(uint8_t kind, uint8_t id)
{
    switch (kind) {
    case PY_UP_SEND:
    case PY_UP_CANCELLED:
    case PY_UP_CLOSE:
        return id < REQUESTS
            ? id | (uint64_t) in.requests.live[id].generation << 32 : id;
    case PY_UP_METRIC_DELETE:
    case PY_UP_METRIC_SET:
    case PY_UP_METRIC_VALUE:
        return id % 16u | (uint64_t) (id / 16u) << 32;
    default:
        return id;
    }
}

/* [kind, id, slot, length of the message, message] of each; a kind beyond
   all is an entry as it is, or another model's answer */
static size_t
entry_put(const uint8_t *data, size_t size)
{
    py_header_t *h = in.link->header;
    py_ring_t *ring = &h->back;
    uint32_t tail = atomic_load(&ring->tail);
    py_entry_t *e = &ring->entries[tail % PY_RING_ENTRIES];

    if (data[0] == UINT8_MAX && size > sizeof(*e)) {
        memcpy(e, data + 1, sizeof(*e));
        if (e->length <= PY_MESSAGE_MAX) {      /* or it only copies         */
            e->length %= 1 << 16;
        }
        atomic_store(&ring->tail, tail + 1);
        return 1 + sizeof(*e);
    }
    if (data[0] == UINT8_MAX - 2) {
        if (running_count > 0) {
            run_ends();
        }
        return 1;
    }
    if (data[0] == UINT8_MAX - 1) {
        atomic_store(&ring->tail, tail + 2 + 10u * data[1]);
        return 4;
    }

    size_t len = data[3] < size - 4 ? data[3] : size - 4;
    memcpy((uint8_t *) h + h->up, data + 4, len);
    *e = (py_entry_t) {
        .kind = data[0] % 28, .id = entry_id(data[0] % 28, data[1]),
        .slot = data[2], .offset = PY_HEAPS_AT + PY_HEAP_BYTES, .length = len
    };
    atomic_store(&ring->tail, tail + 1);
    return 4 + len;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    py_entry_t e;

    begin();
    while (size >= 4) {
        size_t used = entry_put(data, size);
        data += used;
        size -= used;

        py_pop_t pop;
        while ((pop = py_link_pop(in.link, &e)) == PY_POP_ENTRY) {
            check(in.link->message.len <= PY_MESSAGE_MAX);
            py_call(&in, &e);
        }
        if (pop == PY_POP_BROKEN) {     /* the interpreter would be ended    */
            in.link->head = atomic_load(&in.link->header->back.tail);
        }
    }
    end();
    return 0;
}
