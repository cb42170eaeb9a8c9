#include "core/service/response_sink.h"

#include <stdio.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/points.h"
#include "core/model/model.h"
#include "core/server/low_memory.h"
#include "core/service/infer.h"
#include "core/service/intake_role.h"
#include "core/service/request_regions.h"
#include "core/service/request_trace.h"
#include "core/service/response_write.h"
#include "core/service/suspect_queue.h"

static inf_err_t *sink_alloc(void *userp, inf_output_t *out, size_t size);
static void sink_release(void *userp, inf_output_t *out);
static bool sink_share(void *userp, inf_output_t *out);
static void sink_complete(void *userp, inf_response_t *response,
    uint32_t flags);
static inf_channel_region_t *write_response(inf_in_flight_t *in_flight,
    inf_response_t *response, inf_completion_t *c, uint64_t *size);
static inf_response_t *flow_admit(inf_in_flight_t *in_flight,
    inf_response_t *response, uint32_t flags, uint64_t *admitted);
static bool may_send(const inf_in_flight_t *in_flight,
    const inf_response_t *response, uint32_t flags, uint64_t *admitted);
static void flow_send(inf_in_flight_t *in_flight,
    const inf_response_t *response, uint64_t admitted,
    inf_channel_region_t *region, uint64_t size, bool final);
static uint64_t output_bytes(const inf_response_t *response);
static void sink_factory_free(void *userp, inf_factory_t *factory);
static void answer_for_backend(inf_in_flight_t *in_flight);

const inf_sink_ops_t inf_response_sink = {
    .alloc = sink_alloc,
    .release = sink_release,
    .share = sink_share,
    .complete = sink_complete,
    .factory_free = sink_factory_free
};

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

    response = flow_admit(in_flight, response, flags, &admitted);
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
    flow_send(in_flight, response, admitted, region, size,
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

/*
 * A client that reads slower than the backend computes delays the backend; one
 * that does not read at all ends its requests: of each the first response that
 * had no room becomes the error, those after it are dropped.
 */
static inf_response_t *
flow_admit(inf_in_flight_t *in_flight, inf_response_t *response,
    uint32_t flags, uint64_t *admitted)
{
    uint64_t wait_ns = in_flight->session->patience.patience_ns;

    if (response == NULL || in_flight->turn == NULL
        || (!atomic_load_explicit(&in_flight->stalled, memory_order_relaxed)
            && may_send(in_flight, response, flags, admitted)))
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
        (unsigned) (wait_ns / 1000000)), INF_CAUSE_UNTAKEN);
    return response;
}

/* The error that ends a request is small.  The thread with the intake role
   takes the releases that others wait for: what it sends itself comes from the
   response cache or an ensemble. */
static bool
may_send(const inf_in_flight_t *in_flight, const inf_response_t *response,
    uint32_t flags, uint64_t *admitted)
{
    if (response->err != NULL && (flags & INF_SEND_FINAL)) {
        return true;
    }
    if (inf_intake_role_is_mine()) {
        return inf_response_turn_may_send(in_flight->turn);
    }

    uint64_t bytes = output_bytes(response);
    if (!inf_response_turn_admit(in_flight->turn, bytes,
        &in_flight->session->patience))
    {
        return false;
    }

    *admitted = bytes;
    return true;
}

/* A worker that is told to try again keeps the request's place. */
static void
flow_send(inf_in_flight_t *in_flight, const inf_response_t *response,
    uint64_t admitted, inf_channel_region_t *region, uint64_t size, bool final)
{
    inf_response_turn_t *turn = in_flight->turn;

    if (turn == NULL) {
        return;
    }

    uint64_t bytes = region == NULL ? 0
        : size + INF_RESPONSE_FLOW_REGION + output_bytes(response);
    bool again = response != NULL && response->err != NULL
        && inf_err_cause(response->err) == INF_CAUSE_STARTING;
    inf_response_turn_send(turn, admitted, bytes, final && !again);
    if (region != NULL) {
        inf_channel_region_on_free(region, inf_response_turn_release, turn,
            bytes);
    }
}

/* Bytes of the outputs, which lie beside the record. */
static uint64_t
output_bytes(const inf_response_t *response)
{
    uint64_t bytes = 0;

    for (const inf_output_t *out = response->err == NULL ? response->first
         : NULL; out != NULL; out = out->next)
    {
        if (out->sink_userp != NULL) {
            bytes += out->byte_size + INF_RESPONSE_FLOW_REGION;
        }
    }

    return bytes;
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
    flow_send(in_flight, NULL, 0, NULL, 0, true);
    inf_in_flight_move(in_flight, INF_IN_FLIGHT_ANSWERED);
    inf_channel_set_slot(channel, in_flight->slot,
        (uint8_t) (INF_SLOT_ANSWERED | (in_flight->retry & INF_SLOT_SEQUENCE)));
    inf_channel_complete(channel, &c, region, size);
    inf_suspect_queue_answered(in_flight);
}
