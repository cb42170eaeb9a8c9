/* infer_cancel.c - requests that their worker does not wait for any more. */

#include "core/sched/entrance.h"
#include "core/sched/rejection.h"
#include "core/service/infer.h"

void
inf_infer_cancel(inf_session_t *session, uint32_t slot, uint32_t generation)
{
    inf_flight_t *flight = inf_session_find(session, slot, generation);
    if (flight == NULL || !inf_factory_try_ref(&flight->factory)) {
        return;
    }

    inf_factory_t *factory = &flight->factory;
    atomic_store_explicit(&factory->cancelled, true, memory_order_relaxed);

    inf_request_t *req = &flight->request;
    if (factory->model != NULL
        && inf_entrance_cancel(factory->model, req, NULL))
    {
        inf_reject_cancelled(req);
    }

    inf_factory_unref(factory);
}

void
inf_infer_cancel_all(inf_session_t *session)
{
    for (uint32_t slot = 0; slot < session->slots; slot++) {
        inf_flight_t *flight = session->by_slot[slot];
        if (flight != NULL) {
            inf_infer_cancel(session, flight->slot, flight->generation);
        }
    }
}
