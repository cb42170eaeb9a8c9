#include "core/service/suspect_queue.h"

void
inf_suspect_queue_init(inf_suspect_queue_t *q, void (*wake)(void *userp),
    void *userp)
{
    inf_suspects_init(&q->suspects);
    atomic_init(&q->answered, 0);
    q->wake = wake;
    q->userp = userp;
}

void
inf_suspect_queue_push(inf_suspect_queue_t *q, inf_in_flight_t *in_flight)
{
    inf_suspects_push(&q->suspects, &in_flight->suspect.place);
}

inf_in_flight_t *
inf_suspect_queue_next(inf_suspect_queue_t *q, uint64_t now_ns)
{
    for (uint32_t n = atomic_exchange_explicit(&q->answered, 0,
        memory_order_acquire); n > 0; n--)
    {
        inf_suspects_done(&q->suspects);
    }

    inf_suspect_t *suspect = inf_suspects_next(&q->suspects, now_ns);
    if (suspect == NULL) {
        return NULL;
    }

    inf_in_flight_t *in_flight = inf_link_entry(suspect, inf_in_flight_t,
        suspect.place);
    atomic_store_explicit(&in_flight->suspect.under_way, true,
        memory_order_relaxed);
    return in_flight;
}

bool
inf_suspect_queue_cancel(inf_in_flight_t *in_flight)
{
    return inf_suspects_cancel(&in_flight->suspect.place);
}

void
inf_suspect_queue_answered(inf_in_flight_t *in_flight)
{
    if (!atomic_load_explicit(&in_flight->suspect.under_way,
            memory_order_relaxed)
        || !atomic_exchange_explicit(&in_flight->suspect.under_way, false,
            memory_order_relaxed))
    {
        return;
    }

    inf_suspect_queue_t *q = in_flight->session->suspects;
    atomic_fetch_add_explicit(&q->answered, 1, memory_order_release);
    q->wake(q->userp);
}
