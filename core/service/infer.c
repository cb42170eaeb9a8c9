#include "core/service/infer.h"

#include <stdio.h>

#include "core/base/log.h"
#include "core/base/points.h"
#include "core/model/normalize.h"
#include "core/model/raw_input.h"
#include "core/sched/entrance.h"
#include "core/server/low_memory.h"
#include "core/service/infer_parts.h"
#include "core/service/request_log.h"
#include "core/service/request_regions.h"
#include "core/service/request_trace.h"
#include "core/service/response_admit.h"
#include "core/service/response_write.h"
#include "core/service/suspect_queue.h"

/* JSON of generate that the thread with the intake role reads itself: that is
   done in less time than copying a record may take. */
#define READ_AT_ONCE UINT64_C(16384)
#define MORE_TOLD    64u        /* inputs that a model does not have         */

static inf_err_t *open_submission(inf_in_flight_t *in_flight,
    inf_registry_reader_t *models, const inf_submission_t *submission,
    inf_server_t *server);
static inf_err_t *take_turn(inf_in_flight_t *in_flight, uint64_t order);
static inf_err_t *open_request(inf_in_flight_t *in_flight,
    inf_registry_reader_t *models, const inf_submission_t *submission,
    inf_server_t *restoring);
static inf_err_t *take_options(inf_request_t *req,
    const inf_infer_record_t *rec);
static inf_err_t *find_model(const inf_in_flight_t *in_flight,
    inf_registry_reader_t *models, inf_server_t *restoring,
    inf_model_t **out);
static inf_err_t *fill_request(inf_in_flight_t *in_flight);
static inf_err_t *fill_inputs(inf_in_flight_t *in_flight,
    const inf_model_t *model);
static inf_buffer_t received(const inf_channel_t *channel,
    const inf_record_input_t *in);
static inf_err_t *fill_parameters(inf_request_t *req,
    const inf_infer_record_t *rec);
static inf_err_t *fill_outputs(inf_request_t *req,
    const inf_infer_record_t *rec, const inf_model_t *model);
static char *record_text(inf_request_t *req, const inf_infer_record_t *rec,
    inf_ref_t ref);
static bool is_of_sequence(const inf_request_t *req);
static void request_released(void *userp, inf_request_t *req, uint32_t flags);
static void request_executing(void *userp, inf_request_t *req);
static inf_err_t *sink_alloc(void *userp, inf_output_t *out, size_t size);
static void sink_release(void *userp, inf_output_t *out);
static bool sink_share(void *userp, inf_output_t *out);
static void sink_complete(void *userp, inf_response_t *response,
    uint32_t flags);
static inf_channel_region_t *write_response(inf_in_flight_t *in_flight,
    inf_response_t *response, inf_completion_t *c, uint64_t *size);
static void sink_factory_free(void *userp, inf_factory_t *factory);
static void answer_for_backend(inf_in_flight_t *in_flight);

static const inf_request_ops_t in_flight_ops = {
    .released = request_released,
    .executing = request_executing
};

/* Responses to a worker's request. */
static const inf_sink_ops_t sink_ops = {
    .alloc = sink_alloc,
    .release = sink_release,
    .share = sink_share,
    .complete = sink_complete,
    .factory_free = sink_factory_free
};

inf_infer_fed_t
inf_infer_submit(inf_session_t *session, inf_registry_reader_t *models,
    const inf_submission_t *submission, inf_server_t *server, uint64_t now_ns)
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

    in_flight->call = submission->call;
    inf_factory_start(&in_flight->factory, NULL, "", &sink_ops,
        in_flight);

    inf_request_t *req = &in_flight->request;
    req->ops = &in_flight_ops;
    req->userp = in_flight;
    req->factory = &in_flight->factory;
    req->start_ns = submission->received_ns != 0
        && submission->received_ns < now_ns ? submission->received_ns : now_ns;
    req->queue_ns = now_ns;
    atomic_store_explicit(&in_flight->factory.start_ns, req->start_ns,
        memory_order_relaxed);

    inf_err_t *err = open_submission(in_flight, models, submission, server);
    if (err != NULL) {
        inf_infer_reject(in_flight, err);
        return (inf_infer_fed_t) { 0 };
    }

    if (submission->flags & INF_SUBMIT_FLAG_SUSPECT) {
        inf_channel_set_slot(session->channel, in_flight->slot,
            INF_SLOT_QUEUED | INF_SLOT_RETRYABLE);
        inf_suspect_queue_push(session->suspects, in_flight);
        return (inf_infer_fed_t) { 0 };
    }

    return inf_infer_go_on(in_flight, now_ns);
}

inf_infer_fed_t
inf_infer_go_on(inf_in_flight_t *in_flight, uint64_t now_ns)
{
    inf_infer_fed_t fed = { 0 };

    if ((in_flight->record->flags & INF_REQUEST_GENERATE)
        && inf_infer_record_inputs(in_flight->record)->data_length
            > READ_AT_ONCE)
    {
        atomic_store(&in_flight->reading, true);
        fed.unread = in_flight;
        return fed;
    }

    inf_err_t *err = fill_request(in_flight);
    if (err == NULL) {
        err = inf_infer_queue(in_flight, now_ns, true, &fed);
    }
    if (err != NULL) {
        inf_infer_reject(in_flight, err);
        return (inf_infer_fed_t) { 0 };
    }

    return fed;
}

/*
 * A request on a stream keeps its place from here on: until its model is known
 * it counts as one whose responses leave in order, as its worker counts it.
 */
static inf_err_t *
open_submission(inf_in_flight_t *in_flight, inf_registry_reader_t *models,
    const inf_submission_t *submission, inf_server_t *server)
{
    bool restoring = inf_server_restoring(server);
    inf_err_t *err = submission->call == 0 || submission->order == 0 ? NULL
        : take_turn(in_flight, submission->order);
    if (err != NULL) {
        return err;
    }

    /* a model whose load it interrupts would be taken for the one that ended
       the core */
    if (restoring && (submission->flags & INF_SUBMIT_FLAG_SUSPECT)) {
        return inf_err_because(inf_err_new(INF_ERR_UNAVAILABLE, "models are"
            " being loaded"), INF_CAUSE_STARTING);
    }

    err = open_request(in_flight, models, submission,
        restoring ? server : NULL);
    if (err != NULL || !inf_model_is_decoupled(in_flight->request.model)) {
        return err;
    }

    if (in_flight->turn == NULL) {
        return take_turn(in_flight, 0);
    }
    inf_response_turn_unorder(in_flight->turn);
    return NULL;
}

static inf_err_t *
take_turn(inf_in_flight_t *in_flight, uint64_t order)
{
    inf_response_flow_t *flow = inf_session_flow(in_flight->session,
        in_flight->call);

    in_flight->turn = flow == NULL ? NULL : inf_response_turn_new(flow, order);
    return in_flight->turn == NULL ? inf_err_nomem() : NULL;
}

/* From the record in shared memory to a request of a READY model.  restoring
   (or NULL): the server, which still loads what it starts with. */
static inf_err_t *
open_request(inf_in_flight_t *in_flight, inf_registry_reader_t *models,
    const inf_submission_t *submission, inf_server_t *restoring)
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
    INF_POINT(RECORD_COPIED);

    const char *id = record_text(req, rec, rec->id);
    if (id == NULL) {
        return inf_err_nomem();
    }
    req->id = id;
    in_flight->factory.id = id;
    inf_request_log_taken(in_flight);

    inf_model_t *model;
    err = find_model(in_flight, models, restoring, &model);
    if (err != NULL) {
        return err;
    }
    req->model = model;
    in_flight->factory.model = model;       /* the reference                 */

    err = take_options(req, rec);
    if (err != NULL) {
        return err;
    }

    req->suspect = submission->flags & INF_SUBMIT_FLAG_SUSPECT
        ? INF_SUSPICION_EXECUTING : submission->flags & INF_SUBMIT_FLAG_ALONE
        ? INF_SUSPICION_QUEUED : INF_SUSPICION_NONE;

    if ((submission->flags & INF_SUBMIT_FLAG_LOST) && is_of_sequence(req)) {
        return inf_err_new(INF_ERR_UNAVAILABLE,
            "the inference core ended: sequence lost, start again");
    }

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

static inf_err_t *
take_options(inf_request_t *req, const inf_infer_record_t *rec)
{
    req->flags = rec->flags
        & (INF_REQUEST_SEQUENCE_START | INF_REQUEST_SEQUENCE_END);
    req->priority = rec->priority;
    req->timeout_us = rec->timeout_us;
    req->correlation_id = rec->correlation_id;
    if (rec->flags & INF_REQUEST_CORRELATION_STR) {
        req->correlation_text = record_text(req, rec, rec->correlation_text);
        if (req->correlation_text == NULL) {
            return inf_err_nomem();
        }
    }

    return NULL;
}

/* A model that the start has still to load is found by another try; one that it
   has loaded meanwhile is there. */
static inf_err_t *
find_model(const inf_in_flight_t *in_flight, inf_registry_reader_t *models,
    inf_server_t *restoring, inf_model_t **out)
{
    const inf_infer_record_t *rec = in_flight->record;
    inf_slice_t name = inf_infer_record_text(rec, rec->model_name);

    inf_err_t *err = inf_registry_find(models, name, rec->model_version, out);
    if (err == NULL || restoring == NULL) {
        return err;
    }
    if (inf_server_restores(restoring, name)) {
        return inf_err_because(err, INF_CAUSE_STARTING);
    }

    inf_err_free(err);
    return inf_registry_find(models, name, rec->model_version, out);
}

/* The client's inputs, outputs and parameters, checked. */
static inf_err_t *
fill_request(inf_in_flight_t *in_flight)
{
    const inf_infer_record_t *rec = in_flight->record;
    inf_request_t *req = &in_flight->request;
    const inf_model_t *model = req->model;

    if (rec->flags & INF_REQUEST_GENERATE) {
        return inf_infer_generate(in_flight);
    }

    inf_err_t *err = inf_request_regions_find(in_flight);
    if (err != NULL) {
        return err;     /* as in Triton without the request's id: what names
                           it comes later there                              */
    }

    err = fill_inputs(in_flight, model);
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

uint32_t
inf_infer_input_count(const inf_in_flight_t *in_flight)
{
    uint32_t most = inf_config_tensors_input_count(
        in_flight->request.model->tensors) + MORE_TOLD;
    uint32_t count = in_flight->record->input_count;

    return count < most ? count : most;
}

static inf_err_t *
fill_inputs(inf_in_flight_t *in_flight, const inf_model_t *model)
{
    const inf_infer_record_t *rec = in_flight->record;
    inf_request_t *req = &in_flight->request;
    const inf_record_input_t *inputs = inf_infer_record_inputs(rec);
    uint32_t count = inf_infer_input_count(in_flight);
    uint32_t regions = 0;

    for (uint32_t i = 0; i < count; i++) {
        const inf_record_input_t *in = &inputs[i];
        inf_slice_t name = inf_infer_record_text(rec, in->name);
        bool in_region = in->data_kind == INF_DATA_SHM_REGION;
        inf_buffer_t data = in_region
            ? inf_request_regions_input(in_flight, regions++, in)
            : received(in_flight->session->channel, in);

        if (rec->flags & INF_REQUEST_RAW_INPUT) {
            return inf_request_add_raw(model, req, &data);
        }

        inf_input_t *input = inf_request_add_input(req, name.data, name.len,
            (inf_datatype_t) in->datatype, inf_infer_record_shape(rec, in),
            in->dim_count);
        if (input == NULL) {
            return inf_err_nomem();
        }

        input->in_region = in_region;
        inf_err_t *err = inf_request_add_data(req, input, &data);
        if (err != NULL) {
            return err;
        }
    }

    return NULL;
}

/* Where the worker has received the bytes. */
static inf_buffer_t
received(const inf_channel_t *channel, const inf_record_input_t *in)
{
    return (inf_buffer_t) {
        .base = inf_channel_request(channel, in->data_offset,
            in->data_length),
        .size = in->data_length,
        .memory_type = inf_channel_request_pinned(channel, in->data_offset,
            in->data_length) ? INF_MEMORY_CPU_PINNED : INF_MEMORY_CPU
    };
}

/* The limit is that of inf_request_regions_find. */
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

static char *
record_text(inf_request_t *req, const inf_infer_record_t *rec, inf_ref_t ref)
{
    inf_slice_t text = inf_infer_record_text(rec, ref);
    return inf_arena_strdup(&req->arena, text.data, text.len);
}

inf_err_t *
inf_infer_queue(inf_in_flight_t *in_flight, uint64_t now_ns, bool nonblocking,
    inf_infer_fed_t *fed)
{
    inf_channel_t *channel = in_flight->session->channel;
    inf_request_t *req = &in_flight->request;
    inf_runner_t *runner = req->model->sched.runner;
    inf_tracer_t *tracer = in_flight->session->tracer;
    bool queued;

    req->queue_ns = now_ns;
    in_flight->retry = is_of_sequence(req) ? INF_SLOT_SEQUENCE
        : INF_SLOT_RETRYABLE;
    INF_POINT(REQUEST_CHECKED);
    inf_channel_set_slot(channel, in_flight->slot,
        (uint8_t) (INF_SLOT_QUEUED | in_flight->retry));
    INF_POINT(SLOT_QUEUED);
    if (inf_model_is_decoupled(req->model)) {
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
    INF_POINT(REQUEST_QUEUED);
    return err;
}

/* Earlier requests of the sequence left state in this core process. */
static bool
is_of_sequence(const inf_request_t *req)
{
    return req->model->sequential && (req->correlation_text != NULL
        ? req->correlation_text[0] != '\0' : req->correlation_id != 0);
}

static void
request_executing(void *userp, inf_request_t *req)
{
    (void) req;
    inf_in_flight_t *in_flight = userp;
    inf_channel_set_slot(in_flight->session->channel, in_flight->slot,
        (uint8_t) (INF_SLOT_EXECUTING | in_flight->retry));
    INF_POINT(SLOT_EXECUTING);
}

void
inf_infer_reject(inf_in_flight_t *in_flight, inf_err_t *err)
{
    inf_factory_send_error(&in_flight->factory, err);
    inf_request_release(&in_flight->request, 1);
}

static void
request_released(void *userp, inf_request_t *req, uint32_t flags)
{
    (void) flags;
    inf_in_flight_t *in_flight = userp;

    INF_POINT(REQUEST_RELEASED);
    if (req->abi.trace != NULL) {
        inf_request_trace_released(in_flight);
    }
    inf_in_flight_move(in_flight, INF_IN_FLIGHT_RELEASED);
    inf_channel_complete(in_flight->session->channel, &(inf_completion_t) {
        .flags = INF_COMPLETE_RELEASED,
        .slot = in_flight->slot,
        .generation = in_flight->generation
    }, NULL, 0);
    inf_in_flight_part_done(in_flight);
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
        const inf_in_flight_place_t *place =
            inf_request_regions_place(in_flight, out->name);
        inf_err_t *err = place == NULL ? NULL
            : inf_request_regions_alloc(place, preferred, out, size);
        if (err != NULL || out->base != NULL) {
            return err;
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

    /* pinned only where the backend asks for more than plain memory */
    if (preferred != INF_MEMORY_CPU && inf_channel_region_pinned(region)) {
        out->memory_type = INF_MEMORY_CPU_PINNED;
    }
    out->base = inf_channel_region_data(region);
    out->sink_userp = region;
    INF_POINT(OUTPUT_ALLOCATED);
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
    inf_completion_t c = {
        .slot = in_flight->slot,
        .generation = in_flight->generation,
        .status = INF_OK
    };
    inf_channel_region_t *region = NULL;
    uint64_t size = 0, admitted = 0;

    if (inf_infer_is_withdrawn(in_flight, response)) {
        inf_in_flight_move(in_flight, INF_IN_FLIGHT_ANSWERED);
        inf_response_free(response);
        return;
    }

    response = inf_response_admit(in_flight, response, flags, &admitted);
    if (response == NULL && !(flags & INF_SEND_FINAL)) {
        return;
    }

    if (flags & INF_SEND_FINAL) {
        c.flags |= INF_COMPLETE_FINAL;
        inf_in_flight_move(in_flight, INF_IN_FLIGHT_ANSWERED);
    }

    if (response != NULL) {
        region = write_response(in_flight, response, &c, &size);
    }

    inf_channel_set_slot(channel, in_flight->slot,
        (uint8_t) (INF_SLOT_ANSWERED | (in_flight->retry & INF_SLOT_SEQUENCE)));
    INF_POINT(SLOT_ANSWERED);
    inf_response_sent(in_flight, response, admitted, region, size,
        flags & INF_SEND_FINAL);
    if (in_flight->trace != NULL) {
        c.traced = inf_request_trace_answer(in_flight, response, region);
    }
    inf_channel_complete(channel, &c, region, size);
    inf_suspect_queue_answered(in_flight);
    inf_response_free(response);
}

/* The region of the record, and what the completion says of it. */
static inf_channel_region_t *
write_response(inf_in_flight_t *in_flight, inf_response_t *response,
    inf_completion_t *c, uint64_t *size)
{
    c->flags |= INF_COMPLETE_RESPONSE;
    if (in_flight->region_count > 0 && response->err == NULL) {
        response->err = inf_request_regions_check(in_flight);
    }
    if (in_flight->place_count > 0 && response->err == NULL) {
        response->err = inf_request_regions_fill(in_flight, response);
    }

    inf_channel_region_t *region = inf_response_write(in_flight, response,
        size);
    INF_POINT(RESPONSE_WRITTEN);
    if (response->err != NULL) {
        c->cause = (uint8_t) inf_err_cause(response->err);
        c->status = INF_STATUS(inf_err_code(response->err));
        /* the server's own lack of memory is UNAVAILABLE */
        if (c->cause == INF_CAUSE_NONE
            && inf_err_code(response->err) != INF_ERR_UNAVAILABLE
            && inf_low_memory(inf_err_msg(response->err)))
        {
            c->cause = INF_CAUSE_NO_MEMORY;
        }
    } else if (region == NULL) {
        c->cause = INF_CAUSE_FULL;
        c->status = INF_STATUS(INF_ERR_UNAVAILABLE);
    }

    inf_response_describe(in_flight, response, c);
    return region;
}

static void
sink_factory_free(void *userp, inf_factory_t *factory)
{
    inf_in_flight_t *in_flight = userp;
    inf_model_t *model = factory->model;

    if (!(atomic_load_explicit(&in_flight->state, memory_order_relaxed)
        & INF_IN_FLIGHT_ANSWERED))
    {
        answer_for_backend(in_flight);
    }

    factory->model = NULL;
    inf_in_flight_part_done(in_flight);
    inf_model_unref(model);     /* without models, a server may end          */
}

/* The backend dropped its last handle without a final response. */
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
    inf_response_sent(in_flight, NULL, 0, NULL, 0, true);
    inf_in_flight_move(in_flight, INF_IN_FLIGHT_ANSWERED);
    inf_channel_set_slot(channel, in_flight->slot,
        (uint8_t) (INF_SLOT_ANSWERED | (in_flight->retry & INF_SLOT_SEQUENCE)));
    inf_channel_complete(channel, &c, region, size);
    inf_suspect_queue_answered(in_flight);
}
