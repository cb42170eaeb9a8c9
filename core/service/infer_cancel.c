/* infer_cancel.c - requests that their worker does not wait for any more. */

#include "core/sched/entrance.h"
#include "core/sched/rejection.h"
#include "core/service/infer_parts.h"

void
inf_infer_cancel(inf_session_t *session, uint32_t slot, uint32_t generation)
{
    inf_in_flight_t *in_flight = inf_session_find(session, slot, generation);
    if (in_flight == NULL || !inf_factory_try_ref(&in_flight->factory)) {
        return;
    }

    inf_factory_t *factory = &in_flight->factory;
    atomic_store(&factory->cancelled, true);

    if (factory->model != NULL
        && !atomic_load(&in_flight->reading)) /* else inf_infer_read does it */
    {
        inf_infer_unqueue(in_flight);
    }

    inf_factory_unref(factory);
}

void
inf_infer_unqueue(inf_in_flight_t *in_flight)
{
    inf_request_t *req = &in_flight->request;

    if (inf_entrance_cancel(in_flight->factory.model, req, NULL)) {
        inf_reject_cancelled(req);
    }
}

void
inf_infer_cancel_all(inf_session_t *session)
{
    for (uint32_t slot = 0; slot < session->slots; slot++) {
        inf_in_flight_t *in_flight = session->by_slot[slot];
        if (in_flight != NULL) {
            inf_infer_cancel(session, in_flight->slot, in_flight->generation);
        }
    }
}
