#include "core/service/infer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/model/generate_request.h"
#include "core/model/normalize.h"
#include "core/sched/entrance.h"
#include "core/sched/rejection.h"
#include "core/sched/runtime.h"
#include "core/server/load_report.h"
#include "core/service/request_trace.h"
#include "core/service/response_check.h"
#include "core/service/response_labels.h"

/* JSON of generate that the thread with the intake role reads itself: that is
   done in less time than copying a record may take. */
#define READ_AT_ONCE UINT64_C(16384)

static inf_err_t *in_flight_open(inf_in_flight_t *in_flight,
    inf_registry_reader_t *models, const inf_submission_t *submission);
static inf_err_t *in_flight_fill(inf_in_flight_t *in_flight);
static inf_err_t *in_flight_generate(inf_in_flight_t *in_flight);
static inf_err_t *in_flight_submit(inf_in_flight_t *in_flight, uint64_t now_ns,
    bool nonblocking, inf_infer_fed_t *fed);
static inf_err_t *fill_places(inf_in_flight_t *in_flight,
    const inf_model_t *model);
static inf_err_t *fill_inputs(inf_in_flight_t *in_flight,
    const inf_model_t *model);
static inf_err_t *find_input(inf_in_flight_t *in_flight,
    const inf_record_input_t *in, inf_buffer_t *data);
static inf_err_t *add_region(inf_in_flight_t *in_flight, inf_ref_t name,
    uint64_t offset, uint64_t size);
static inf_err_t *fill_parameters(inf_request_t *req,
    const inf_infer_record_t *rec);
static inf_err_t *fill_outputs(inf_request_t *req,
    const inf_infer_record_t *rec, const inf_model_t *model);
static bool is_of_sequence(const inf_request_t *req);
static void in_flight_reject(inf_in_flight_t *in_flight, inf_err_t *err);
static char *record_text(inf_request_t *req, const inf_infer_record_t *rec,
    inf_ref_t ref);

static inf_err_t *sink_alloc(void *userp, inf_output_t *out, size_t size);
static const inf_in_flight_place_t *place_of(const inf_in_flight_t *in_flight,
    const char *name);
static inf_err_t *alloc_in_region(const inf_in_flight_t *in_flight,
    const inf_in_flight_place_t *place, inf_output_t *out, size_t size);
static void sink_release(void *userp, inf_output_t *out);
static bool sink_share(void *userp, inf_output_t *out);
static void sink_complete(void *userp, inf_response_t *response,
    uint32_t flags);
static inf_response_t *flow_admit(inf_in_flight_t *in_flight,
    inf_response_t *response, uint32_t flags);
static void flow_take(inf_in_flight_t *in_flight,
    const inf_response_t *response, inf_channel_region_t *region,
    uint64_t size);
static void sink_factory_free(void *userp, inf_factory_t *factory);
static inf_err_t *check_regions(const inf_in_flight_t *in_flight);
static void answer_for_backend(inf_in_flight_t *in_flight);
static void request_released(void *userp, inf_request_t *req, uint32_t flags);
static void request_executing(void *userp, inf_request_t *req);

static inf_channel_region_t *write_record(inf_in_flight_t *in_flight,
    inf_response_t *response, uint64_t *size);
static void describe_outputs(inf_in_flight_t *in_flight,
    inf_response_t *response, inf_response_output_desc_t *outputs,
    inf_channel_region_t **parts, uint32_t *part_count);
static void describe_parameters(const inf_response_t *response,
    inf_response_parameter_desc_t *list);

static const inf_sink_ops_t in_flight_sink = {
    .alloc = sink_alloc,
    .release = sink_release,
    .share = sink_share,
    .complete = sink_complete,
    .factory_free = sink_factory_free
};

static const inf_request_ops_t in_flight_ops = {
    .released = request_released,
    .executing = request_executing
};

inf_infer_fed_t
inf_infer_submit(inf_session_t *session, inf_registry_reader_t *models,
    const inf_submission_t *submission, bool restoring, uint64_t now_ns)
{
    if (inf_session_slot_taken(session, submission->slot)) {
        inf_channel_reject(session->channel, submission);
        return (inf_infer_fed_t) { 0 };
    }

    inf_in_flight_t *in_flight = inf_session_take(session, submission->slot,
        submission->generation);
    if (in_flight == NULL) {
        inf_channel_complete(session->channel, &(inf_completion_t) {
            .flags = INF_COMPLETE_RESPONSE | INF_COMPLETE_FINAL
                | INF_COMPLETE_RELEASED,
            .status = INF_STATUS(INF_ERR_UNAVAILABLE),
            .slot = submission->slot,
            .generation = submission->generation
        }, NULL, 0);
        return (inf_infer_fed_t) { 0 };
    }

    inf_factory_start(&in_flight->factory, NULL, "", &in_flight_sink,
        in_flight);

    inf_request_t *req = &in_flight->request;
    req->ops = &in_flight_ops;
    req->userp = in_flight;
    req->factory = &in_flight->factory;
    req->start_ns = submission->received_ns != 0
        && submission->received_ns < now_ns ? submission->received_ns : now_ns;
    req->queue_ns = now_ns;
    in_flight->factory.start_ns = req->start_ns;

    inf_infer_fed_t fed = { 0 };
    bool early = restoring && (submission->flags & INF_SUBMIT_FLAG_SUSPECT);
    /* a model whose load it interrupts would be taken for the one that ended
       the core */
    inf_err_t *err = early ? inf_err_new(INF_ERR_UNAVAILABLE, "models are being"
        " loaded") : in_flight_open(in_flight, models, submission);
    if (err == NULL && (in_flight->record->flags & INF_REQUEST_GENERATE)
        && inf_infer_record_inputs(in_flight->record)->data_length
            > READ_AT_ONCE)
    {
        atomic_store(&in_flight->reading, true);
        fed.unread = in_flight;
        return fed;
    }
    if (err == NULL) {
        err = in_flight_fill(in_flight);
    }
    if (err == NULL) {
        err = in_flight_submit(in_flight, now_ns, true, &fed);
    }
    if (err != NULL) {
        if (early || (restoring && req->model == NULL)) {
            err = inf_err_because(err, INF_CAUSE_STARTING);
        }
        in_flight_reject(in_flight, err);
        return (inf_infer_fed_t) { 0 };
    }

    return fed;
}

void
inf_infer_read(inf_in_flight_t *in_flight, inf_err_t *err)
{
    inf_infer_fed_t fed;

    if (err == NULL && !atomic_load(&in_flight->factory.cancelled)) {
        err = in_flight_fill(in_flight);
    }

    /* a cancel stores before it loads, too: one of the two sees the other */
    atomic_store(&in_flight->reading, false);
    if (err == NULL && atomic_load(&in_flight->factory.cancelled)) {
        inf_reject_cancelled(&in_flight->request);
        return;
    }

    if (err == NULL) {
        err = in_flight_submit(in_flight, inf_clock_ns(), false, &fed);
    }
    if (err != NULL) {
        in_flight_reject(in_flight, err);
    }
}

/* Into its model: queued, run or rejected there.  On error it is still the
   caller's. */
static inf_err_t *
in_flight_submit(inf_in_flight_t *in_flight, uint64_t now_ns, bool nonblocking,
    inf_infer_fed_t *fed)
{
    inf_channel_t *channel = in_flight->session->channel;
    inf_request_t *req = &in_flight->request;
    inf_runner_t *runner = req->model->sched.runner;
    inf_tracer_t *tracer = in_flight->session->tracer;
    bool queued;

    if (inf_model_is_decoupled(req->model)) {
        in_flight->flow = inf_response_flow_new();
        if (in_flight->flow == NULL) {
            return inf_err_nomem();
        }
    }

    req->queue_ns = now_ns;
    in_flight->retry = is_of_sequence(req) ? INF_SLOT_SEQUENCE
        : INF_SLOT_RETRYABLE;
    inf_channel_set_slot(channel, in_flight->slot,
        (uint8_t) (INF_SLOT_QUEUED | in_flight->retry));
    if (in_flight->flow != NULL) {
        inf_channel_complete(channel, &(inf_completion_t) {
            .flags = INF_COMPLETE_DECOUPLED,
            .slot = in_flight->slot,
            .generation = in_flight->generation
        }, NULL, 0);
    }

    if (tracer != NULL && inf_tracer_is_on(tracer)) {
        inf_request_trace_begin(in_flight, tracer, now_ns);
    }

    fed->quick = runner != NULL && inf_runner_is_quick(runner);
    inf_err_t *err = inf_entrance_submit(req->model, req, now_ns, nonblocking,
        &queued);
    fed->runner = err == NULL && queued ? runner : NULL;
    return err;
}

/* From the record in shared memory to a request of a READY model. */
static inf_err_t *
in_flight_open(inf_in_flight_t *in_flight, inf_registry_reader_t *models,
    const inf_submission_t *submission)
{
    inf_channel_t *channel = in_flight->session->channel;
    inf_request_t *req = &in_flight->request;
    const inf_infer_record_t *rec;
    uint64_t arena = inf_channel_request_size(channel);

    inf_err_t *err = inf_infer_record_copy_check(
        inf_channel_request(channel, 0, arena), arena, submission->offset,
        submission->length, &req->arena, &rec);
    if (err != NULL) {
        return err;
    }
    in_flight->record = rec;

    const char *id = record_text(req, rec, rec->id);
    if (id == NULL) {
        return inf_err_nomem();
    }
    req->id = id;
    in_flight->factory.id = id;

    inf_model_t *model;
    err = inf_registry_find(models, inf_infer_record_text(rec,
        rec->model_name), rec->model_version, &model);
    if (err != NULL) {
        return err;
    }
    req->model = model;
    in_flight->factory.model = model;       /* the reference                 */

    req->flags = rec->flags
        & (INF_REQUEST_SEQUENCE_START | INF_REQUEST_SEQUENCE_END);
    req->correlation_id = rec->correlation_id;
    if (rec->flags & INF_REQUEST_CORRELATION_STR) {
        req->correlation_text = record_text(req, rec, rec->correlation_text);
        if (req->correlation_text == NULL) {
            return inf_err_nomem();
        }
    }
    req->priority = rec->priority;
    req->timeout_us = rec->timeout_us;
    req->suspect = submission->flags & INF_SUBMIT_FLAG_SUSPECT;

    if (inf_model_is_decoupled(model)
        && !(rec->flags & INF_REQUEST_STREAM))
    {
        return inf_err_new(INF_ERR_UNSUPPORTED, rec->protocol
            == INF_PROTOCOL_GRPC ? "ModelInfer RPC doesn't support models with"
            " decoupled transaction policy" : "HTTP end point doesn't support"
            " models with decoupled transaction policy");
    }

    return NULL;
}

/* The client's inputs, outputs and parameters, checked. */
static inf_err_t *
in_flight_fill(inf_in_flight_t *in_flight)
{
    const inf_infer_record_t *rec = in_flight->record;
    inf_request_t *req = &in_flight->request;
    const inf_model_t *model = req->model;

    if (rec->flags & INF_REQUEST_GENERATE) {
        return in_flight_generate(in_flight);
    }

    inf_err_t *err = fill_places(in_flight, model);
    if (err == NULL) {
        err = fill_inputs(in_flight, model);
    }
    if (err == NULL) {
        err = fill_parameters(req, rec);
    }
    if (err == NULL) {
        err = fill_outputs(req, rec, model);
    }
    if (err == NULL) {
        err = inf_request_normalize(model, req);
    }

    return err == NULL ? NULL : inf_request_name_error(req, err);
}

/* The worker could still write to the JSON: a copy is read. */
static inf_err_t *
in_flight_generate(inf_in_flight_t *in_flight)
{
    const inf_record_input_t *in = inf_infer_record_inputs(in_flight->record);
    inf_request_t *req = &in_flight->request;
    inf_buf_t copy;

    if (in->data_length > INF_INFER_MAX_JSON) {
        return inf_err_new(INF_ERR_INVALID_ARG, "request JSON is larger than"
            " the limit of %llu bytes",
            (unsigned long long) INF_INFER_MAX_JSON);
    }

    inf_buf_init(&copy);
    inf_buf_put(&copy, inf_channel_request(in_flight->session->channel,
        in->data_offset, in->data_length), in->data_length);
    inf_err_t *err = inf_buf_status(&copy);
    if (err == NULL) {
        err = inf_generate_request(req->model, req, inf_buf_slice(&copy));
        in_flight->factory.id = req->id;
    }
    inf_buf_fini(&copy);
    if (err != NULL) {
        return err;
    }

    err = inf_request_normalize(req->model, req);
    req->inputs_uncopied = false;           /* nobody else has them          */
    return err == NULL ? NULL : inf_request_name_error(req, err);
}

/* The outputs that go into regions.  As many as fill_outputs looks at. */
static inf_err_t *
fill_places(inf_in_flight_t *in_flight, const inf_model_t *model)
{
    const inf_infer_record_t *rec = in_flight->record;
    inf_request_t *req = &in_flight->request;
    const inf_record_output_t *outputs = inf_infer_record_outputs(rec);
    uint32_t most = inf_config_tensors_output_count(model->tensors) + 1;
    uint32_t count = 0;
    inf_err_t *err = NULL;

    most = rec->output_count < most ? rec->output_count : most;
    for (uint32_t i = 0; i < most; i++) {
        count += outputs[i].data_kind == INF_DATA_SHM_REGION;
    }
    if (count == 0) {
        return NULL;
    }

    in_flight->places = inf_arena_alloc(&req->arena, count
        * sizeof(*in_flight->places));
    if (in_flight->places == NULL) {
        return inf_err_nomem();
    }

    for (uint32_t i = 0; i < most && err == NULL; i++) {
        const inf_record_output_t *out = &outputs[i];
        if (out->data_kind != INF_DATA_SHM_REGION) {
            continue;
        }

        err = add_region(in_flight, out->shm_region, out->shm_offset,
            out->shm_length);
        in_flight->places[in_flight->place_count] = (inf_in_flight_place_t) {
            .name = record_text(req, rec, out->name),
            .offset = out->shm_offset,
            .size = out->shm_length
        };
        if (err == NULL
            && in_flight->places[in_flight->place_count++].name == NULL)
        {
            err = inf_err_nomem();
        }
    }

    return err;
}

/* The client says how many there are; with more than the model has, one is
   unknown or repeated, and that is found among as many. */
static inf_err_t *
fill_inputs(inf_in_flight_t *in_flight, const inf_model_t *model)
{
    const inf_infer_record_t *rec = in_flight->record;
    inf_request_t *req = &in_flight->request;
    const inf_record_input_t *inputs = inf_infer_record_inputs(rec);
    uint32_t most = inf_config_tensors_input_count(model->tensors) + 1;

    for (uint32_t i = 0; i < rec->input_count && i < most; i++) {
        const inf_record_input_t *in = &inputs[i];
        inf_slice_t name = inf_infer_record_text(rec, in->name);

        inf_buffer_t data;
        inf_err_t *err = find_input(in_flight, in, &data);
        if (err != NULL) {
            return err;
        }
        if (rec->flags & INF_REQUEST_RAW_INPUT) {
            return inf_request_add_raw(model, req, &data);
        }

        err = inf_model_knows_input(model, name);
        if (err != NULL) {
            return err;
        }

        inf_input_t *input = inf_request_add_input(req, name.data, name.len,
            (inf_datatype_t) in->datatype, inf_infer_record_shape(rec, in),
            in->dim_count);
        if (input == NULL) {
            return inf_err_nomem();
        }

        input->in_region = in->data_kind == INF_DATA_SHM_REGION;
        err = inf_request_add_data(req, input, &data);
        if (err != NULL) {
            return err;
        }
    }

    return NULL;
}

/* Where the bytes are; of a region, with a reference of the request's. */
static inf_err_t *
find_input(inf_in_flight_t *in_flight, const inf_record_input_t *in,
    inf_buffer_t *data)
{
    if (in->data_kind == INF_DATA_ARENA) {
        *data = (inf_buffer_t) {
            .base = inf_channel_request(in_flight->session->channel,
                in->data_offset, in->data_length),
            .size = in->data_length
        };
        return NULL;
    }

    inf_err_t *err = add_region(in_flight, in->shm_region, in->data_offset,
        in->data_length);
    if (err != NULL) {
        return err;
    }

    const inf_shm_region_t *region =
        in_flight->regions[in_flight->region_count - 1];
    *data = (inf_buffer_t) {
        .base = region->base + in->data_offset,
        .size = in->data_length,
        .memory_type = inf_shm_region_memory(region),
        .memory_id = region->device,
        .ipc_handle = region->kind == INF_SHM_CUDA ? region->handle : NULL
    };
    return NULL;
}

/* The first call makes room for all that the record may name. */
static inf_err_t *
add_region(inf_in_flight_t *in_flight, inf_ref_t name, uint64_t offset,
    uint64_t size)
{
    const inf_infer_record_t *rec = in_flight->record;
    inf_request_t *req = &in_flight->request;

    if (in_flight->regions == NULL) {
        in_flight->regions = inf_arena_calloc(&req->arena, (size_t)
            rec->input_count + rec->output_count, sizeof(inf_shm_region_t *));
        if (in_flight->regions == NULL) {
            return inf_err_nomem();
        }
        req->uses_regions = true;
    }

    inf_err_t *err = inf_shm_region_find(in_flight->session->regions,
        inf_infer_record_text(rec, name), offset, size,
        &in_flight->regions[in_flight->region_count]);
    if (err == NULL) {
        in_flight->region_count++;
    }
    return err;
}

/* As many as fill_inputs. */
static inf_err_t *
fill_outputs(inf_request_t *req, const inf_infer_record_t *rec,
    const inf_model_t *model)
{
    const inf_record_output_t *outputs = inf_infer_record_outputs(rec);
    uint32_t most = inf_config_tensors_output_count(model->tensors) + 1;

    for (uint32_t i = 0; i < rec->output_count && i < most; i++) {
        inf_slice_t name = inf_infer_record_text(rec, outputs[i].name);
        inf_err_t *err = inf_model_knows_output(model, name);
        if (err == NULL) {
            err = inf_request_add_output(req, name.data, name.len);
        }
        if (err != NULL) {
            return err;
        }
    }

    return NULL;
}

static inf_err_t *
fill_parameters(inf_request_t *req, const inf_infer_record_t *rec)
{
    const inf_record_parameter_t *list = inf_infer_record_parameters(rec);

    for (uint32_t i = 0; i < rec->parameter_count; i++) {
        const inf_record_parameter_t *from = &list[i];
        inf_slice_t name = inf_infer_record_text(rec, from->name);
        if (inf_request_trace_is_header(name)) {
            continue;
        }
        inf_parameter_t *p = inf_parameter_add(&req->parameters, &req->arena,
            name.data, name.len, (inf_parameter_type_t) from->type);
        if (p == NULL) {
            return inf_err_nomem();
        }

        switch (p->type) {
        case INF_PARAMETER_STRING:
        case INF_PARAMETER_BYTES:
            p->text = record_text(req, rec, from->text);
            p->text_len = from->text.len;
            if (p->text == NULL) {
                return inf_err_nomem();
            }
            break;
        case INF_PARAMETER_INT:
            p->i = from->number.i;
            break;
        case INF_PARAMETER_BOOL:
            p->b = from->number.i != 0;
            break;
        case INF_PARAMETER_DOUBLE:
            p->d = from->number.d;
            break;
        }
    }

    return NULL;
}

/* Those before it left something in the core that another core hasn't. */
static bool
is_of_sequence(const inf_request_t *req)
{
    return req->model->sequential && (req->correlation_text != NULL
        ? req->correlation_text[0] != '\0' : req->correlation_id != 0);
}

/* The request never reached a queue: answer and let go of it. */
static void
in_flight_reject(inf_in_flight_t *in_flight, inf_err_t *err)
{
    inf_factory_send_error(&in_flight->factory, err);
    inf_request_release(&in_flight->request, 1);
}

static char *
record_text(inf_request_t *req, const inf_infer_record_t *rec, inf_ref_t ref)
{
    inf_slice_t text = inf_infer_record_text(rec, ref);
    return inf_arena_strdup(&req->arena, text.data, text.len);
}

static inf_err_t *
sink_alloc(void *userp, inf_output_t *out, size_t size)
{
    inf_in_flight_t *in_flight = userp;
    inf_memory_type_t preferred = out->memory_type;

    out->memory_type = INF_MEMORY_CPU;
    out->memory_id = 0;
    out->base = NULL;

    if (in_flight->place_count > 0) {
        const inf_in_flight_place_t *place = place_of(in_flight, out->name);
        if (place != NULL) {
            return alloc_in_region(in_flight, place, out, size);
        }
    }

    if (size == 0) {
        return NULL;
    }

    inf_channel_region_t *region = inf_channel_alloc(
        in_flight->session->channel, size);
    if (region == NULL) {
        return inf_err_because(inf_err_new(INF_ERR_UNAVAILABLE, "no room for"
            " the %zu bytes of output '%s': the response arena is full", size,
            out->name), INF_CAUSE_FULL);
    }

    /* pinned only for who asks for more than plain memory */
    if (preferred != INF_MEMORY_CPU && inf_channel_region_pinned(region)) {
        out->memory_type = INF_MEMORY_CPU_PINNED;
    }
    out->base = inf_channel_region_data(region);
    out->sink_userp = region;
    return NULL;
}

/* NULL: it goes into the response arena. */
static const inf_in_flight_place_t *
place_of(const inf_in_flight_t *in_flight, const char *name)
{
    for (uint32_t i = 0; i < in_flight->place_count; i++) {
        if (strcmp(in_flight->places[i].name, name) == 0) {
            return &in_flight->places[i];
        }
    }

    return NULL;
}

/* Without a mark of the sink's: the request in flight has the reference. */
static inf_err_t *
alloc_in_region(const inf_in_flight_t *in_flight,
    const inf_in_flight_place_t *place, inf_output_t *out, size_t size)
{
    const inf_shm_region_t *region =
        in_flight->regions[place - in_flight->places];

    if (size > place->size) {
        return inf_err_new(INF_ERR_INTERNAL, "shared memory size specified"
            " with the request for output '%s' (%llu bytes) should be at least"
            " %zu bytes to hold the results", out->name,
            (unsigned long long) place->size, size);
    }

    out->base = region->base + place->offset;
    out->memory_type = inf_shm_region_memory(region);
    out->memory_id = region->device;
    out->sink_userp = NULL;
    if (region->kind == INF_SHM_CUDA) {
        memcpy(out->ipc_handle, region->handle, sizeof(out->ipc_handle));
        out->has_ipc_handle = true;
    }
    return NULL;
}

static void
sink_release(void *userp, inf_output_t *out)
{
    (void) userp;
    if (out->sink_userp != NULL) {
        inf_channel_region_unref(out->sink_userp);
        out->sink_userp = NULL;
    }
}

static bool
sink_share(void *userp, inf_output_t *out)
{
    (void) userp;
    if (out->sink_userp != NULL) {
        inf_channel_region_ref(out->sink_userp);
    }
    return true;
}

static void
sink_complete(void *userp, inf_response_t *response, uint32_t flags)
{
    inf_in_flight_t *in_flight = userp;
    inf_channel_t *channel = in_flight->session->channel;
    const inf_request_t *req = &in_flight->request;
    inf_completion_t c = {
        .slot = in_flight->slot,
        .generation = in_flight->generation,
        .status = INF_OK
    };
    inf_channel_region_t *region = NULL;
    uint64_t size = 0;

    response = flow_admit(in_flight, response, flags);
    if (response == NULL && !(flags & INF_SEND_FINAL)) {
        return;
    }

    if (flags & INF_SEND_FINAL) {
        c.flags |= INF_COMPLETE_FINAL;
        atomic_store_explicit(&in_flight->answered, true, memory_order_release);
    }

    if (response != NULL) {
        c.flags |= INF_COMPLETE_RESPONSE;
        if (in_flight->region_count > 0 && response->err == NULL) {
            response->err = check_regions(in_flight);
        }
        region = write_record(in_flight, response, &size);
        if (response->err != NULL) {
            c.cause = (uint8_t) inf_err_cause(response->err);
            c.status = INF_STATUS(inf_err_code(response->err));
        } else if (region == NULL) {
            c.cause = INF_CAUSE_FULL;
            c.status = INF_STATUS(INF_ERR_UNAVAILABLE);
        }

        if (c.cause == INF_CAUSE_TIMED_OUT && req->exec_ns == 0) {
            c.queue_ns = inf_clock_ns() - req->queue_ns;
        } else if (req->exec_ns != 0) {
            c.queue_ns = req->exec_ns - req->queue_ns;
            uint64_t now = response->sent_ns != 0 ? response->sent_ns
                : inf_clock_ns();
            c.compute_ns = now > req->exec_ns ? now - req->exec_ns : 0;
            c.batch_size = req->payload_rows;
        }
    }

    inf_channel_set_slot(channel, in_flight->slot,
        (uint8_t) (INF_SLOT_ANSWERED | (in_flight->retry & INF_SLOT_SEQUENCE)));
    flow_take(in_flight, response, region, size);
    if (in_flight->trace != NULL) {
        inf_request_trace_answer(in_flight, response, region);
    }
    inf_channel_complete(channel, &c, region, size);
    inf_response_free(response);
}

/*
 * A client that reads slower than the backend computes delays the backend; one
 * that does not read at all ends its request: the first response that had no
 * room becomes the error, those after it are dropped.
 */
static inf_response_t *
flow_admit(inf_in_flight_t *in_flight, inf_response_t *response, uint32_t flags)
{
    uint64_t wait_ns = in_flight->session->response_wait_ns;

    if (response == NULL || in_flight->flow == NULL) {
        return response;
    }

    if (atomic_load_explicit(&in_flight->stalled, memory_order_relaxed)) {
        inf_response_free(response);
        return NULL;
    }

    if ((flags & INF_SEND_FINAL)
        || inf_response_flow_wait(in_flight->flow, wait_ns))
    {
        return response;
    }

    if (atomic_exchange_explicit(&in_flight->stalled, true,
        memory_order_relaxed))
    {
        inf_response_free(response);
        return NULL;
    }

    atomic_store_explicit(&in_flight->factory.cancelled, true,
        memory_order_relaxed);
    inf_err_free(response->err);
    response->err = inf_err_because(inf_err_new(INF_ERR_UNAVAILABLE, "the"
        " client has not taken its responses for %u ms: the request is"
        " cancelled; inference_response_wait sets another time",
        (unsigned) (wait_ns / 1000000)), INF_CAUSE_FULL);
    return response;
}

static void
flow_take(inf_in_flight_t *in_flight, const inf_response_t *response,
    inf_channel_region_t *region, uint64_t size)
{
    if (in_flight->flow == NULL || region == NULL) {
        return;
    }

    for (const inf_output_t *out = response->err == NULL ? response->first
         : NULL; out != NULL; out = out->next)
    {
        size += out->sink_userp != NULL ? out->byte_size : 0;
    }

    inf_response_flow_take(in_flight->flow, size);
    inf_channel_region_on_free(region, inf_response_flow_give, in_flight->flow,
        size);
}

static void
sink_factory_free(void *userp, inf_factory_t *factory)
{
    inf_in_flight_t *in_flight = userp;
    inf_model_t *model = factory->model;

    if (!atomic_load_explicit(&in_flight->answered, memory_order_relaxed)) {
        answer_for_backend(in_flight);
    }

    factory->model = NULL;
    inf_model_unref(model);
    inf_in_flight_part_done(in_flight);
}

/* The bytes of a broken region are not those that the client sees. */
static inf_err_t *
check_regions(const inf_in_flight_t *in_flight)
{
    inf_err_t *err = NULL;

    for (uint32_t i = 0; i < in_flight->region_count && err == NULL; i++) {
        err = inf_shm_region_check(in_flight->regions[i]);
    }

    return err;
}

/* Nobody can answer any more: the backend forgot to. */
static void
answer_for_backend(inf_in_flight_t *in_flight)
{
    const inf_model_t *model = in_flight->factory.model;
    inf_channel_t *channel = in_flight->session->channel;
    char text[512];
    int n = snprintf(text, sizeof(text), "backend '%s' of model '%s' released"
        " the request without a final response",
        inf_model_backend_name(model),
        model != NULL ? model->name : "");
    const inf_response_builder_t b = {
        .status = INF_STATUS(INF_ERR_INTERNAL),
        .error = inf_slice(text, n < (int) sizeof(text) ? (size_t) n
            : sizeof(text) - 1),
        .model_version = -1
    };
    inf_completion_t c = {
        .flags = INF_COMPLETE_RESPONSE | INF_COMPLETE_FINAL,
        .status = INF_STATUS(INF_ERR_INTERNAL),
        .slot = in_flight->slot,
        .generation = in_flight->generation
    };
    inf_channel_region_t *region = NULL;
    uint64_t size = 0;

    inf_err_t *err = inf_response_builder_size(&b, &size);
    if (err == NULL) {
        region = inf_channel_alloc(channel, size);
    }
    inf_err_free(err);
    if (region != NULL) {
        inf_response_builder_write(&b, inf_channel_region_data(region), size);
    }

    inf_log(INF_LOG_WARN, "model=%s request=%s: %s",
        model != NULL ? model->name : "", in_flight->factory.id, text);
    atomic_store_explicit(&in_flight->answered, true, memory_order_release);
    inf_channel_set_slot(channel, in_flight->slot,
        (uint8_t) (INF_SLOT_ANSWERED | (in_flight->retry & INF_SLOT_SEQUENCE)));
    inf_channel_complete(channel, &c, region, size);
}

static void
request_released(void *userp, inf_request_t *req, uint32_t flags)
{
    (void) flags;
    inf_in_flight_t *in_flight = userp;

    if (req->abi.trace != NULL) {
        inf_request_trace_released(in_flight);
    }
    atomic_store_explicit(&in_flight->released, true, memory_order_release);
    inf_channel_complete(in_flight->session->channel, &(inf_completion_t) {
        .flags = INF_COMPLETE_RELEASED,
        .slot = in_flight->slot,
        .generation = in_flight->generation
    }, NULL, 0);
    inf_in_flight_part_done(in_flight);
}

static void
request_executing(void *userp, inf_request_t *req)
{
    (void) req;
    inf_in_flight_t *in_flight = userp;
    inf_channel_set_slot(in_flight->session->channel, in_flight->slot,
        (uint8_t) (INF_SLOT_EXECUTING | in_flight->retry));
}

/* NULL: the arena is full, or out of memory; logged by the caller's status. */
static inf_channel_region_t *
write_record(inf_in_flight_t *in_flight, inf_response_t *response,
    uint64_t *size)
{
    const inf_model_t *model = in_flight->factory.model;
    const char *instance = in_flight->request.instance;
    inf_arena_t *arena = &response->arena;
    inf_channel_region_t *region = NULL;
    uint32_t n = response->err == NULL ? response->output_count : 0;
    uint32_t part_count = 0;

    inf_response_output_desc_t *outputs = inf_arena_calloc(arena, n + 1,
        sizeof(*outputs));
    inf_response_parameter_desc_t *parameters = inf_arena_calloc(arena,
        response->parameters.count + 1, sizeof(*parameters));
    inf_channel_region_t **parts = inf_arena_calloc(arena, n + 1,
        sizeof(inf_channel_region_t *));
    if (outputs == NULL || parameters == NULL || parts == NULL) {
        return NULL;
    }

    if (response->err == NULL) {
        response->err = inf_response_check(model, response);
    }
    if (response->err == NULL) {
        describe_outputs(in_flight, response, outputs, parts, &part_count);
        describe_parameters(response, parameters);
    } else {
        n = 0;
    }

    inf_response_builder_t b = {
        .status = response->err != NULL
            ? INF_STATUS(inf_err_code(response->err)) : INF_OK,
        .error = response->err != NULL ? inf_response_readable(arena,
            inf_err_msg(response->err)) : inf_slice_str(""),
        .model_name = inf_slice_str(model != NULL ? model->name : ""),
        .model_version = model != NULL ? model->version : -1,
        .id = inf_slice_str(in_flight->factory.id),
        .backend = inf_slice_str(inf_model_backend_name(model)),
        .instance = inf_slice_str(instance != NULL ? instance : ""),
        .batch_dim = model != NULL
            && inf_config_tensors_max_batch_size(model->tensors) > 0,
        .ranked = 1,
        .output_count = n,
        .outputs = outputs,
        .parameter_count = response->err == NULL
            ? response->parameters.count : 0,
        .parameters = parameters
    };
    if (in_flight->record != NULL
        && (in_flight->record->flags & INF_REQUEST_LOAD_REPORT)
        && !atomic_exchange_explicit(&in_flight->reported, true,
            memory_order_relaxed))
    {
        b.kv_reported = inf_load_report(&b.kv_utilization, &b.kv_max_tokens);
    }

    inf_err_t *err = inf_response_builder_size(&b, size);
    if (err == NULL) {
        region = inf_channel_alloc(in_flight->session->channel, *size);
        if (region == NULL) {
            return NULL;
        }

        inf_response_builder_write(&b, inf_channel_region_data(region), *size);
        if (part_count > 0) {
            err = inf_channel_region_attach(region, parts, part_count);
        }
    }

    if (err != NULL) {
        inf_err_log(inf_err_add(err, "response to request \"%s\" is lost",
            in_flight->factory.id));
        if (region != NULL) {
            inf_channel_region_unref(region);
        }
        return NULL;
    }

    return region;
}

static void
describe_outputs(inf_in_flight_t *in_flight, inf_response_t *response,
    inf_response_output_desc_t *outputs, inf_channel_region_t **parts,
    uint32_t *part_count)
{
    const inf_model_t *model = in_flight->factory.model;
    uint32_t i = 0;

    for (inf_output_t *out = response->first; out != NULL; out = out->next) {
        inf_response_output_desc_t *d = &outputs[i++];
        d->name = inf_slice_str(out->name);
        d->datatype = out->datatype;
        d->dim_count = out->dim_count;
        d->shape = out->shape;
        d->data_kind = in_flight->place_count > 0
            && place_of(in_flight, out->name) != NULL ? INF_DATA_SHM_REGION
            : INF_DATA_ARENA;

        if (out->base != NULL && d->data_kind == INF_DATA_ARENA) {
            inf_channel_region_t *region = out->sink_userp;
            d->data_offset = inf_channel_region_offset(region);
            d->data_length = out->byte_size;
            parts[(*part_count)++] = region;
        }

        inf_response_labels(model, in_flight->record, response, out, d);
    }
}

static void
describe_parameters(const inf_response_t *response,
    inf_response_parameter_desc_t *list)
{
    for (uint32_t i = 0; i < response->parameters.count; i++) {
        const inf_parameter_t *p = response->parameters.items[i];
        *list++ = (inf_response_parameter_desc_t) {
            .name = inf_slice_str(p->name),
            .type = p->type,
            .text = inf_slice(p->text, p->text_len),
            .i = p->type == INF_PARAMETER_BOOL ? p->b : p->i,
            .d = p->d
        };
    }
}
