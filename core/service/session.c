#include "core/service/session.h"

#include <stdlib.h>

#include "core/base/refs.h"

static inf_flight_t *flight_new(void);
static void flight_free(inf_flight_t *flight);
static void free_list(inf_flight_t *flight);

inf_err_t *
inf_session_new(inf_channel_t *channel, inf_session_t **out)
{
    uint32_t slots = inf_channel_slots(channel);
    inf_session_t *s = calloc(1, sizeof(*s));
    inf_flight_t **by_slot = calloc(slots, sizeof(*by_slot));
    if (s == NULL || by_slot == NULL) {
        free(s);
        free(by_slot);
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
    s->slots = slots;
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
    free(s->by_slot);
    free(s);
}

bool
inf_session_slot_taken(const inf_session_t *s, uint32_t slot)
{
    const inf_flight_t *flight = s->by_slot[slot];

    return flight != NULL && flight->slot == slot
        && (!atomic_load_explicit(&flight->answered, memory_order_acquire)
            || !atomic_load_explicit(&flight->released,
                memory_order_acquire));
}

inf_flight_t *
inf_session_take(inf_session_t *s, uint32_t slot, uint32_t generation)
{
    if (s->free == NULL) {
        s->free = atomic_exchange_explicit(&s->returned, NULL,
            memory_order_acquire);
    }

    inf_flight_t *flight = s->free;
    if (flight != NULL) {
        s->free = flight->next;
        inf_request_reset(&flight->request);
    } else {
        flight = flight_new();
        if (flight == NULL) {
            return NULL;
        }
        atomic_fetch_add_explicit(&s->flights, 1, memory_order_relaxed);
    }

    flight->next = NULL;
    flight->session = inf_session_ref(s);
    flight->slot = slot;
    flight->generation = generation;
    flight->retry = 0;
    flight->record = NULL;
    flight->flow = NULL;
    atomic_store_explicit(&flight->answered, false, memory_order_relaxed);
    atomic_store_explicit(&flight->released, false, memory_order_relaxed);
    atomic_store_explicit(&flight->stalled, false, memory_order_relaxed);
    atomic_store_explicit(&flight->parts, 2, memory_order_relaxed);
    s->by_slot[slot] = flight;
    return flight;
}

inf_flight_t *
inf_session_find(inf_session_t *s, uint32_t slot, uint32_t generation)
{
    inf_flight_t *flight = slot < s->slots ? s->by_slot[slot] : NULL;

    return flight != NULL && flight->slot == slot
        && flight->generation == generation
        && atomic_load_explicit(&flight->parts, memory_order_acquire) > 0
        ? flight : NULL;
}

void
inf_flight_part_done(inf_flight_t *flight)
{
    if (atomic_fetch_sub_explicit(&flight->parts, 1, memory_order_acq_rel)
        != 1)
    {
        return;
    }

    inf_response_flow_unref(flight->flow);
    flight->flow = NULL;

    inf_session_t *s = flight->session;
    flight->next = atomic_load_explicit(&s->returned, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&s->returned, &flight->next,
        flight, memory_order_release, memory_order_relaxed))
    {
        continue;
    }

    inf_session_unref(s);
}

static inf_flight_t *
flight_new(void)
{
    inf_flight_t *flight = calloc(1, sizeof(*flight));
    if (flight != NULL) {
        inf_request_init(&flight->request);
        inf_factory_init(&flight->factory);
    }

    return flight;
}

static void
flight_free(inf_flight_t *flight)
{
    inf_request_fini(&flight->request);
    inf_factory_fini(&flight->factory);
    free(flight);
}

static void
free_list(inf_flight_t *flight)
{
    while (flight != NULL) {
        inf_flight_t *next = flight->next;
        flight_free(flight);
        flight = next;
    }
}
