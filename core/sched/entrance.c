#include "core/sched/entrance.h"

#include "core/sched/gate.h"
#include "core/sched/runtime.h"

inf_err_t *
inf_entrance_submit(inf_model_t *model, inf_request_t *req, uint64_t now_ns,
    bool nonblocking, bool *queued)
{
    if (model->gate != NULL) {
        return inf_gate_submit(model->gate, req, now_ns, nonblocking, queued);
    }

    *queued = model->entrance == NULL;
    return inf_entrance_execute(model, req, now_ns);
}

inf_err_t *
inf_entrance_execute(inf_model_t *model, inf_request_t *req, uint64_t now_ns)
{
    return model->entrance != NULL
        ? model->entrance->submit(model, req, now_ns)
        : inf_runner_submit(model->runner, req, now_ns);
}

bool
inf_entrance_cancel(inf_model_t *model, inf_request_t *req,
    const inf_rejecter_t *rejecter)
{
    if (model->gate != NULL && inf_gate_cancel(model->gate, req)) {
        return true;
    }
    if (model->entrance == NULL) {
        return model->runner != NULL && inf_runner_cancel(model->runner, req);
    }

    model->entrance->cancel(model, req, rejecter);
    return false;
}

void
inf_entrance_close(inf_model_t *model)
{
    if (model->entrance != NULL) {
        model->entrance->close(model);

    } else {
        inf_runner_close_to_clients(model->runner);
    }
}

void
inf_entrance_add_user(inf_model_t *model)
{
    atomic_fetch_add_explicit(&model->users, 1, memory_order_relaxed);
}

void
inf_entrance_drop_user(inf_model_t *model)
{
    if (atomic_fetch_sub_explicit(&model->users, 1, memory_order_acq_rel) == 1
        && model->runner != NULL)
    {
        inf_runner_leave(model->runner);
    }
}
