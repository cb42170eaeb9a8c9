#include "core/service/response_admit.h"

#include "core/service/intake_role.h"

static bool may_send(const inf_in_flight_t *in_flight,
    const inf_response_t *response, uint32_t flags, uint64_t *admitted);
static uint64_t output_bytes(const inf_response_t *response);

/*
 * A client that reads slower than the backend computes delays the backend; one
 * that does not read at all ends its requests: of each the first response that
 * had no room becomes the error, those after it are dropped.
 */
inf_response_t *
inf_response_admit(inf_in_flight_t *in_flight, inf_response_t *response,
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
   takes the releases that others wait for; its own responses come from the
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

void
inf_response_sent(inf_in_flight_t *in_flight, const inf_response_t *response,
    uint64_t admitted, inf_channel_region_t *region, uint64_t size, bool final)
{
    inf_response_turn_t *turn = in_flight->turn;

    if (turn == NULL) {
        return;
    }

    uint64_t bytes = region == NULL ? 0
        : size + INF_RESPONSE_FLOW_REGION + output_bytes(response);
    /* a worker that is told to try again keeps the request's place */
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
