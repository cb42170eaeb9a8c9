#include "core/sched/rejection.h"

#include <stdio.h>

#include "core/base/clock.h"
#include "core/model/model.h"
#include "core/tensor/response.h"

static void sequence_timed_out(inf_request_t *req);
static void reject(inf_request_t *req, inf_failure_t why, inf_err_t *err);
static void answer(inf_request_t *req, inf_err_t *err);

void
inf_reject_cancelled(inf_request_t *req)
{
    reject(req, INF_FAILURE_CANCELED, inf_err_new(INF_ERR_CANCELLED, "%s",
        ""));
}

void
inf_reject_timed_out(inf_request_t *req)
{
    reject(req, INF_FAILURE_REJECTED, inf_err_because(inf_err_new(
        INF_ERR_UNAVAILABLE, "Request timeout expired"),
        INF_CAUSE_TIMED_OUT));
}

void
inf_reject_failed(inf_request_t *req, inf_err_t *err)
{
    reject(req, INF_FAILURE_OTHER, err);
}

void
inf_reject_malformed(inf_request_t *req, inf_err_t *err)
{
    answer(req, err);
}

inf_err_t *
inf_rejection_no_start(const inf_request_t *req, const char *model)
{
    char number[24];
    const char *id = req->correlation_text;

    if (id == NULL) {
        snprintf(number, sizeof(number), "%llu",
            (unsigned long long) req->correlation_id);
        id = number;
    }

    return inf_err_new(INF_ERR_INVALID_ARG, "inference request for sequence %s"
        " to model '%s' must specify the START flag on the first request of"
        " the sequence", id, model);
}

void
inf_reject_gone(inf_link_t *gone)
{
    inf_link_t *link;

    while ((link = inf_list_pop_front(gone)) != NULL) {
        inf_request_t *req = inf_link_entry(link, inf_request_t, link);

        if (atomic_load_explicit(&req->factory->cancelled,
                memory_order_relaxed)
            || req->sched.queued.gone == INF_GONE_WITH_SEQUENCE)
        {
            inf_reject_cancelled(req);
        } else if (req->sched.queued.gone == INF_GONE_WITH_START) {
            inf_reject_malformed(req, inf_rejection_no_start(req,
                req->model->name));
        } else if (req->sched.queued.gone == INF_GONE_SEQUENCE_TIMED_OUT) {
            sequence_timed_out(req);
        } else {
            inf_reject_timed_out(req);
        }
    }
}

static void
sequence_timed_out(inf_request_t *req)
{
    reject(req, INF_FAILURE_REJECTED, inf_err_because(inf_err_new(
        INF_ERR_UNAVAILABLE, "timeout of the corresponding sequence has been"
        " expired"), INF_CAUSE_TIMED_OUT));
}

static void
reject(inf_request_t *req, inf_failure_t why, inf_err_t *err)
{
    if (!req->padding) {
        inf_statistics_failure_for(&req->model->statistics, why,
            req->start_ns, inf_clock_ns());
    }
    answer(req, err);
}

static void
answer(inf_request_t *req, inf_err_t *err)
{
    req->outcome = INF_OUTCOME_REJECTED;
    req->factory->rejected = true;
    inf_factory_send_error(req->factory, err);
    inf_request_release(req, 1);
}
