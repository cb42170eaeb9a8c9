#include "core/sched/refusal.h"

#include "core/base/clock.h"
#include "core/model/model.h"
#include "core/tensor/response.h"

static void refuse(inf_request_t *req, inf_failure_t why, inf_err_t *err);

void
inf_refuse_cancelled(inf_request_t *req)
{
    refuse(req, INF_FAILURE_CANCELED, inf_err_new(INF_ERR_CANCELLED, "%s",
        ""));
}

void
inf_refuse_timed_out(inf_request_t *req)
{
    refuse(req, INF_FAILURE_REJECTED, inf_err_because(inf_err_new(
        INF_ERR_UNAVAILABLE, "Request timeout expired"),
        INF_CAUSE_TIMED_OUT));
}

void
inf_refuse_sequence_timed_out(inf_request_t *req)
{
    refuse(req, INF_FAILURE_REJECTED, inf_err_because(inf_err_new(
        INF_ERR_UNAVAILABLE, "timeout of the corresponding sequence has been"
        " expired"), INF_CAUSE_TIMED_OUT));
}

void
inf_refuse_failed(inf_request_t *req, inf_err_t *err)
{
    refuse(req, INF_FAILURE_OTHER, err);
}

void
inf_refuse_gone(inf_link_t *gone)
{
    inf_link_t *link;

    while ((link = inf_list_pop_front(gone)) != NULL) {
        inf_request_t *req = inf_link_entry(link, inf_request_t, link);

        if (atomic_load_explicit(&req->factory->cancelled,
                memory_order_relaxed)
            || req->queued.gone == INF_GONE_WITH_SEQUENCE)
        {
            inf_refuse_cancelled(req);
        } else if (req->queued.gone == INF_GONE_SEQUENCE_TIMED_OUT) {
            inf_refuse_sequence_timed_out(req);
        } else {
            inf_refuse_timed_out(req);
        }
    }
}

static void
refuse(inf_request_t *req, inf_failure_t why, inf_err_t *err)
{
    if (!req->filler) {
        inf_statistics_failure_for(&req->model->statistics, why,
            req->start_ns, inf_clock_ns());
    }
    req->factory->refused = true;
    inf_factory_send_error(req->factory, err);
    inf_request_release(req, 1);
}
