#include "core/service/request_trace.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/abi/api.h"
#include "core/base/clock.h"
#include "core/proto/json_doc.h"

/* Names of a request's events outside of the core, by protocol. */
typedef struct {
    const char *receive_start;
    const char *receive_end;
    const char *send_start;
    const char *send_end;
} front_t;

static const front_t *front_of(uint64_t protocol);
static bool context_of(const inf_in_flight_t *in_flight,
    inf_trace_context_t *out, inf_slice_t *state);
static inf_err_t *make_trace(inf_in_flight_t *in_flight,
    inf_trace_record_t *record);
static inf_err_t *tell_context(inf_trace_t *trace, uint32_t number,
    const inf_trace_record_t *record);
static void note_front(inf_in_flight_t *in_flight, const char *name,
    uint64_t ns);
static void on_activity(TRITONSERVER_InferenceTrace *trace,
    TRITONSERVER_InferenceTraceActivity activity, uint64_t ns, void *userp);
static void note_who(inf_trace_record_t *record, inf_trace_t *trace);
static void note_custom(inf_trace_record_t *record, inf_trace_t *trace,
    uint64_t ns);
static uint64_t id_of(inf_trace_t *trace);
static void on_tensor(TRITONSERVER_InferenceTrace *trace,
    TRITONSERVER_InferenceTraceActivity activity, const char *name,
    TRITONSERVER_DataType datatype, const void *base, size_t byte_size,
    const int64_t *shape, uint64_t dim_count,
    TRITONSERVER_MemoryType memory_type, int64_t memory_id, void *userp);
static void on_made(void *userp);
static void on_freed(void *userp);
static void on_sent(void *userp, uint64_t protocol);

static const front_t fronts[] = {
    [INF_PROTOCOL_HTTP] = { "HTTP_RECV_START", "HTTP_RECV_END",
        "HTTP_SEND_START", "HTTP_SEND_END" },
    [INF_PROTOCOL_GRPC] = { "GRPC_WAITREAD_START", "GRPC_WAITREAD_END",
        "GRPC_SEND_START", "GRPC_SEND_END" }
};

static const inf_trace_watch_t watch = {
    .made = on_made,
    .freed = on_freed
};

bool
inf_request_trace_is_header(inf_slice_t parameter)
{
    return inf_slice_eq(parameter, INF_SLICE(INF_TRACEPARENT_PARAMETER))
        || inf_slice_eq(parameter, INF_SLICE(INF_TRACESTATE_PARAMETER));
}

void
inf_request_trace_begin(inf_in_flight_t *in_flight, inf_tracer_t *tracer,
    uint64_t now_ns)
{
    inf_trace_settings_t *settings = inf_tracer_settings(tracer);
    inf_trace_record_t *record = NULL;
    inf_request_t *req = &in_flight->request;
    inf_trace_context_t context;
    inf_slice_t state = { 0 };

    bool forced = inf_trace_is_otel(settings)
        && context_of(in_flight, &context, &state);
    inf_trace_setting_t *setting = inf_trace_settings_sample(settings,
        req->model->name, forced);
    if (setting == NULL) {
        return;
    }

    inf_err_t *err = inf_trace_record_new(tracer, setting,
        forced ? &context : NULL, state, &record);
    if (err != NULL) {
        inf_trace_setting_unref(setting);
    } else {
        err = make_trace(in_flight, record);
    }
    if (err != NULL) {
        inf_err_log(inf_err_add(err, "model=%s request=%s: no trace",
            req->model->name, req->id));
        return;
    }

    inf_trace_report(in_flight->trace, TRITONSERVER_TRACE_REQUEST_START,
        now_ns);
    const front_t *front = front_of(in_flight->record->protocol);
    note_front(in_flight, front->receive_start, req->start_ns);
    note_front(in_flight, front->receive_end, now_ns);
    inf_trace_report(in_flight->trace, TRITONSERVER_TRACE_QUEUE_START,
        req->queue_ns);
}

bool
inf_request_trace_answer(inf_in_flight_t *in_flight,
    const inf_response_t *response, inf_channel_region_t *region)
{
    inf_trace_record_t *record = in_flight->traced;
    uint64_t now = inf_clock_ns();

    if (response != NULL && response->err == NULL) {
        inf_api_trace_outputs(in_flight->trace, response);
    }
    note_front(in_flight, "INFER_RESPONSE_COMPLETE", now);
    if (region == NULL || inf_model_is_decoupled(in_flight->factory.model)) {
        return false;
    }

    uint64_t protocol = in_flight->record->protocol;
    note_front(in_flight, front_of(protocol)->send_start, now);
    inf_trace_record_ref(record);
    inf_channel_region_on_free(region, on_sent, record, protocol);
    return true;
}

void
inf_request_trace_released(inf_in_flight_t *in_flight)
{
    inf_request_t *req = &in_flight->request;
    inf_trace_t *trace = req->abi.trace;

    req->abi.trace = NULL;
    inf_api_trace_inputs(trace, req);
    inf_trace_report(trace, TRITONSERVER_TRACE_REQUEST_END, inf_clock_ns());
    inf_trace_unref(trace);
}

static const front_t *
front_of(uint64_t protocol)
{
    return &fronts[protocol == INF_PROTOCOL_GRPC ? INF_PROTOCOL_GRPC
        : INF_PROTOCOL_HTTP];
}

/* Reads the trace context that the worker has taken from the client's
   headers. */
static bool
context_of(const inf_in_flight_t *in_flight, inf_trace_context_t *out,
    inf_slice_t *state)
{
    const inf_infer_record_t *rec = in_flight->record;
    const inf_record_parameter_t *list = inf_infer_record_parameters(rec);
    bool found = false;

    for (uint32_t i = 0; i < rec->parameter_count; i++) {
        inf_slice_t name = inf_infer_record_text(rec, list[i].name);
        inf_slice_t text = inf_infer_record_text(rec, list[i].text);
        if (list[i].type != INF_PARAMETER_STRING) {
            continue;
        }
        if (inf_slice_eq(name, INF_SLICE(INF_TRACEPARENT_PARAMETER))) {
            found = inf_trace_context_read(text, out);
        } else if (inf_slice_eq(name, INF_SLICE(INF_TRACESTATE_PARAMETER))
            && inf_trace_state_valid(text))
        {
            *state = text;
        }
    }

    if (!found) {
        *state = inf_slice(NULL, 0);
    }
    return found;
}

/* Makes the trace, which takes the record's first reference, even on failure.
   Times are always reported: the first one brings the trace's identity. */
static inf_err_t *
make_trace(inf_in_flight_t *in_flight, inf_trace_record_t *record)
{
    inf_request_t *req = &in_flight->request;
    inf_trace_t *trace;
    uint32_t level = INF_TRACE_TIMESTAMPS
        | (record->tensors ? INF_TRACE_TENSORS : 0);

    inf_err_t *err = TRITONSERVER_InferenceTraceTensorNew(&trace,
        (TRITONSERVER_InferenceTraceLevel) level, 0, on_activity, on_tensor,
        NULL, record);
    if (err != NULL) {
        inf_trace_record_unref(record);
        return err;
    }

    inf_trace_set_watch(trace, &watch);
    err = inf_trace_take(trace, req->model->name, req->model->version,
        req->id);
    if (err != NULL) {
        inf_err_log(TRITONSERVER_InferenceTraceDelete(trace));
        return err;
    }

    record->id = id_of(trace);
    in_flight->trace = trace;
    in_flight->traced = record;
    inf_trace_ref(trace);
    req->abi.trace = trace;
    req->abi.trace_ops = &inf_api_trace_ops;
    return NULL;
}

/* Passes the context on, so that a backend can join the same trace below this
   span of it. */
static inf_err_t *
tell_context(inf_trace_t *trace, uint32_t number,
    const inf_trace_record_t *record)
{
    char text[128], whole[2 * INF_TRACE_ID + 1], span[2 * INF_SPAN_ID + 1];
    uint8_t id[INF_SPAN_ID];

    if (!inf_trace_is_otel(inf_tracer_settings(record->tracer))) {
        return NULL;
    }

    inf_trace_record_span(record, number, id);
    inf_trace_hex(id, INF_SPAN_ID, span);
    inf_trace_hex(record->context.trace_id, INF_TRACE_ID, whole);
    snprintf(text, sizeof(text), "{\"traceparent\":\"00-%s-%s-01\"}", whole,
        span);
    return TRITONSERVER_InferenceTraceSetContext(trace, text);
}

static void
note_front(inf_in_flight_t *in_flight, const char *name, uint64_t ns)
{
    if (in_flight->traced->timestamps) {
        inf_trace_record_note(in_flight->traced, &(inf_trace_event_t) {
            .kind = INF_TRACE_FRONT,
            .id = in_flight->traced->id,
            .ns = ns,
            .name = name
        }, false);
    }
}

static void
on_activity(TRITONSERVER_InferenceTrace *trace,
    TRITONSERVER_InferenceTraceActivity activity, uint64_t ns, void *userp)
{
    inf_trace_record_t *record = userp;

    if (activity == TRITONSERVER_TRACE_REQUEST_START) {
        note_who(record, trace);
    }
    if (!record->timestamps) {
        return;
    }
    if (activity == TRITONSERVER_TRACE_CUSTOM_ACTIVITY) {
        note_custom(record, trace, ns);
        return;
    }

    inf_trace_record_note(record, &(inf_trace_event_t) {
        .kind = INF_TRACE_TIME,
        .id = id_of(trace),
        .ns = ns,
        .name = TRITONSERVER_InferenceTraceActivityString(activity)
    }, false);
}

static void
note_who(inf_trace_record_t *record, inf_trace_t *trace)
{
    inf_trace_event_t e = {
        .kind = INF_TRACE_WHO,
        .id = id_of(trace),
        .span = inf_trace_record_next_span(record)
    };

    inf_err_log(tell_context(trace, e.span, record));
    inf_err_log(TRITONSERVER_InferenceTraceParentId(trace, &e.parent_id));
    inf_err_log(TRITONSERVER_InferenceTraceModelName(trace, &e.name));
    inf_err_log(TRITONSERVER_InferenceTraceModelVersion(trace, &e.version));
    inf_err_log(TRITONSERVER_InferenceTraceRequestId(trace, &e.request_id));
    inf_trace_record_note(record, &e, true);
}

/* Notes a custom activity; its name is in the context, keyed by its time. */
static void
note_custom(inf_trace_record_t *record, inf_trace_t *trace, uint64_t ns)
{
    inf_json_doc_t doc = { 0 };
    char key[24];
    char *context = inf_trace_context_copy(trace);
    const json_t *name = NULL;

    inf_err_t *err = context == NULL ? inf_err_nomem()
        : inf_json_doc_parse(&doc, inf_slice_str(context), 0);
    if (err == NULL) {
        snprintf(key, sizeof(key), "%llu", (unsigned long long) ns);
        name = json_object_get(doc.root, key);
    }
    inf_trace_record_note(record, &(inf_trace_event_t) {
        .kind = INF_TRACE_TIME,
        .id = id_of(trace),
        .ns = ns,
        .name = json_is_string(name) ? json_string_value(name)
            : "CUSTOM_ACTIVITY"
    }, true);

    inf_json_doc_fini(&doc);
    free(context);
    inf_err_free(err);
}

static uint64_t
id_of(inf_trace_t *trace)
{
    uint64_t id = 0;

    inf_err_log(TRITONSERVER_InferenceTraceId(trace, &id));
    return id;
}

/* Notes a tensor; data in GPU memory is not fetched. */
static void
on_tensor(TRITONSERVER_InferenceTrace *trace,
    TRITONSERVER_InferenceTraceActivity activity, const char *name,
    TRITONSERVER_DataType datatype, const void *base, size_t byte_size,
    const int64_t *shape, uint64_t dim_count,
    TRITONSERVER_MemoryType memory_type, int64_t memory_id, void *userp)
{
    (void) memory_id;
    inf_trace_record_note(userp, &(inf_trace_event_t) {
        .kind = INF_TRACE_TENSOR,
        .id = id_of(trace),
        .name = TRITONSERVER_InferenceTraceActivityString(activity),
        .tensor = name,
        .datatype = (int) datatype,
        .dim_count = dim_count,
        .shape = shape,
        .data = base,
        .size = memory_type == TRITONSERVER_MEMORY_GPU || base == NULL ? 0
            : byte_size
    }, false);
}

static void
on_made(void *userp)
{
    inf_trace_record_ref(userp);
}

static void
on_freed(void *userp)
{
    inf_trace_record_unref(userp);
}

/* Called when the worker has released the answer. */
static void
on_sent(void *userp, uint64_t protocol)
{
    inf_trace_record_t *record = userp;

    if (record->timestamps) {
        inf_trace_record_note(record, &(inf_trace_event_t) {
            .kind = INF_TRACE_FRONT,
            .id = record->id,
            .ns = inf_clock_ns(),
            .name = front_of(protocol)->send_end
        }, false);
    }
    inf_trace_record_unref(record);
}
