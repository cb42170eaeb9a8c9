/* infer_cancel.c - cancels requests that their worker does not wait for. */

#include "core/sched/entrance.h"
#include "core/sched/rejection.h"
#include "core/service/infer_parts.h"
#include "core/service/request_log.h"
#include "core/service/suspect_queue.h"

static void withdraw(inf_session_t *session, const inf_in_flight_t *last);
static bool may_be_withdrawn(const inf_in_flight_t *in_flight);

void
inf_infer_cancel(inf_session_t *session, uint32_t slot, uint32_t generation)
{
    inf_in_flight_t *in_flight = inf_session_find(session, slot, generation);
    if (in_flight == NULL || !inf_factory_try_ref(&in_flight->factory)) {
        return;
    }

    inf_factory_t *factory = &in_flight->factory;
    if (!atomic_exchange(&factory->cancelled, true)) {
        inf_request_log_cancelled(in_flight);
    }
    if (in_flight->turn != NULL) {
        inf_response_turn_send(in_flight->turn, 0, 0, true);    /* nobody waits
                                                                   for it    */
    }

    if (inf_suspect_queue_cancel(in_flight)) {
        inf_reject_cancelled(&in_flight->request);
    } else if (factory->model != NULL
        && !atomic_load(&in_flight->reading)) /* otherwise in inf_infer_read */
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

uint32_t
inf_infer_withdraw(inf_session_t *session)
{
    uint32_t under_way = 0;

    for (uint32_t slot = 0; slot < session->slots; slot++) {
        if (!inf_session_slot_taken(session, slot)) {
            continue;
        }

        withdraw(session, session->by_slot[slot]);
        under_way += inf_session_slot_taken(session, slot);
    }

    return under_way;
}

static void
withdraw(inf_session_t *session, const inf_in_flight_t *last)
{
    inf_in_flight_t *in_flight = inf_session_find(session, last->slot,
        last->generation);
    if (in_flight == NULL || !inf_factory_try_ref(&in_flight->factory)) {
        return;
    }

    if (inf_suspect_queue_cancel(in_flight)) {
        inf_reject_cancelled(&in_flight->request);
    } else if (may_be_withdrawn(in_flight)) {
        inf_infer_unqueue(in_flight);
    }
    inf_factory_unref(&in_flight->factory);
}

/*
 * Whether the request may be withdrawn: not a request of an ensemble's run, nor
 * of an iterative sequence, which is queued again between executions.
 */
static bool
may_be_withdrawn(const inf_in_flight_t *in_flight)
{
    const inf_model_t *model = in_flight->factory.model;

    return !atomic_load(&in_flight->reading) && model != NULL
        && model->sched.entrance == NULL
        && (in_flight->retry == INF_SLOT_SEQUENCE || !model->sequential);
}

bool
inf_infer_is_withdrawn(const inf_in_flight_t *in_flight,
    const inf_response_t *response)
{
    return atomic_load_explicit(&in_flight->session->core_leaves,
            memory_order_relaxed)
        && response != NULL && response->err != NULL
        && inf_err_code(response->err) == INF_ERR_CANCELLED
        && atomic_load_explicit(&in_flight->request.exec_ns,
            memory_order_relaxed) == 0
        && !atomic_load_explicit(&in_flight->factory.cancelled,
            memory_order_relaxed);
}
