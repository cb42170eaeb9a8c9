#include "core/service/session.h"

#include <assert.h>
#include <stdlib.h>

#include "core/abi/trace.h"
#include "core/base/refs.h"

static inf_in_flight_t *in_flight_new(void);
static void in_flight_free(inf_in_flight_t *in_flight);
static void free_list(inf_in_flight_t *in_flight);

inf_err_t *
inf_session_new(inf_channel_t *channel,
    const inf_response_patience_t *patience, inf_session_t **out)
{
    uint32_t slots = inf_channel_slots(channel);
    inf_session_t *s = calloc(1, sizeof(*s));
    inf_in_flight_t **by_slot = calloc(slots, sizeof(*by_slot));
    inf_response_flow_t **flows = calloc(slots, sizeof(*flows));
    if (s == NULL || by_slot == NULL || flows == NULL) {
        free(s);
        free(by_slot);
        free(flows);
        return inf_err_nomem();
    }

    for (uint32_t i = 0; i < INF_SESSION_CALL_QUEUES; i++) {
        inf_link_init(&s->queues[i].turn);
        inf_link_init(&s->queues[i].calls);
    }
    atomic_init(&s->refs, 1);
    atomic_init(&s->returned, NULL);
    s->channel = channel;
    s->by_slot = by_slot;
    s->flows = flows;
    s->slots = slots;
    s->patience = *patience;
    *out = s;
    return NULL;
}

inf_session_t *
inf_session_ref(inf_session_t *s)
{
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

void
inf_session_unref(inf_session_t *s)
{
    if (!inf_refs_drop(&s->refs)) {
        return;
    }

    free_list(s->free);
    free_list(atomic_load(&s->returned));
    inf_channel_unref(s->channel);
    for (uint32_t i = 0; i < s->slots; i++) {
        inf_response_flow_unref(s->flows[i]);
    }
    free(s->flows);
    free(s->by_slot);
    free(s);
}

bool
inf_session_slot_taken(const inf_session_t *s, uint32_t slot)
{
    const inf_in_flight_t *in_flight = s->by_slot[slot];

    return in_flight != NULL && in_flight->slot == slot
        && atomic_load_explicit(&in_flight->state, memory_order_acquire)
            != INF_IN_FLIGHT_OVER;
}

inf_in_flight_t *
inf_session_take(inf_session_t *s, uint32_t slot, uint32_t generation)
{
    if (s->free == NULL) {
        s->free = atomic_exchange_explicit(&s->returned, NULL,
            memory_order_acquire);
    }

    inf_in_flight_t *in_flight = s->free;
    if (in_flight != NULL) {
        s->free = in_flight->next;
    } else {
        in_flight = in_flight_new();
        if (in_flight == NULL) {
            return NULL;
        }
        atomic_fetch_add_explicit(&s->made, 1, memory_order_relaxed);
    }

    in_flight->next = NULL;
    in_flight->session = inf_session_ref(s);
    in_flight->slot = slot;
    in_flight->generation = generation;
    in_flight->retry = 0;
    in_flight->record = NULL;
    in_flight->call = 0;
    in_flight->turn = NULL;
    in_flight->trace = NULL;
    in_flight->regions = NULL;
    in_flight->region_count = 0;
    in_flight->place_count = 0;
    atomic_store_explicit(&in_flight->state, INF_IN_FLIGHT_OPEN,
        memory_order_relaxed);
    atomic_store_explicit(&in_flight->reading, false, memory_order_relaxed);
    atomic_store_explicit(&in_flight->reported, false, memory_order_relaxed);
    atomic_store_explicit(&in_flight->suspect.under_way, false,
        memory_order_relaxed);
    atomic_store_explicit(&in_flight->stalled, false, memory_order_relaxed);
    in_flight->suspect.place.waits = false;
    atomic_store_explicit(&in_flight->parts, 2, memory_order_relaxed);
    s->by_slot[slot] = in_flight;
    return in_flight;
}

inf_in_flight_t *
inf_session_find(inf_session_t *s, uint32_t slot, uint32_t generation)
{
    inf_in_flight_t *in_flight = slot < s->slots ? s->by_slot[slot] : NULL;

    return in_flight != NULL && in_flight->slot == slot
        && in_flight->generation == generation
        && atomic_load_explicit(&in_flight->parts, memory_order_acquire) > 0
        ? in_flight : NULL;
}

inf_response_flow_t *
inf_session_flow(inf_session_t *s, uint32_t call)
{
    if (call == 0 || call > s->slots) {
        return inf_response_flow_new(INF_RESPONSE_FLOW_AGAIN_NS);
    }

    inf_response_flow_t **flow = &s->flows[call - 1];
    if (*flow == NULL) {
        *flow = inf_response_flow_new(INF_RESPONSE_FLOW_AGAIN_NS);
    }

    return *flow == NULL ? NULL : inf_response_flow_ref(*flow);
}

void
inf_in_flight_move(inf_in_flight_t *in_flight, inf_in_flight_state_t by)
{
    assert(by == INF_IN_FLIGHT_ANSWERED || by == INF_IN_FLIGHT_RELEASED);
    atomic_fetch_or_explicit(&in_flight->state, by, memory_order_release);
}

void
inf_in_flight_part_done(inf_in_flight_t *in_flight)
{
    if (atomic_fetch_sub_explicit(&in_flight->parts, 1, memory_order_acq_rel)
        != 1)
    {
        return;
    }

    inf_response_turn_end(in_flight->turn);
    in_flight->turn = NULL;
    inf_trace_unref(in_flight->trace);
    in_flight->trace = NULL;
    for (uint32_t i = 0; i < in_flight->region_count; i++) {
        inf_shm_region_unref(in_flight->regions[i]);
    }
    in_flight->region_count = 0;
    inf_request_reset(&in_flight->request);

    inf_session_t *s = in_flight->session;
    in_flight->next = atomic_load_explicit(&s->returned, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&s->returned,
        &in_flight->next, in_flight, memory_order_release,
        memory_order_relaxed))
    {
        continue;
    }

    inf_session_unref(s);
}

static inf_in_flight_t *
in_flight_new(void)
{
    inf_in_flight_t *in_flight = calloc(1, sizeof(*in_flight));
    if (in_flight != NULL) {
        inf_request_init(&in_flight->request);
        inf_factory_init(&in_flight->factory);
    }

    return in_flight;
}

static void
in_flight_free(inf_in_flight_t *in_flight)
{
    inf_request_fini(&in_flight->request);
    inf_factory_fini(&in_flight->factory);
    free(in_flight);
}

static void
free_list(inf_in_flight_t *in_flight)
{
    while (in_flight != NULL) {
        inf_in_flight_t *next = in_flight->next;
        in_flight_free(in_flight);
        in_flight = next;
    }
}
