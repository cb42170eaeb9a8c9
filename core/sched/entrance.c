#include "core/sched/entrance.h"

#include "core/sched/gate.h"
#include "core/sched/runtime.h"

inf_err_t *
inf_entrance_submit(inf_model_t *model, inf_request_t *req, uint64_t now_ns,
    bool nonblocking, bool *queued)
{
    if (model->sched.gate != NULL) {
        return inf_gate_submit(model->sched.gate, req, now_ns, nonblocking,
            queued);
    }

    *queued = model->sched.entrance == NULL;
    return inf_entrance_execute(model, req, now_ns);
}

inf_err_t *
inf_entrance_execute(inf_model_t *model, inf_request_t *req, uint64_t now_ns)
{
    return model->sched.entrance != NULL
        ? model->sched.entrance->submit(model, req, now_ns)
        : inf_runner_submit(model->sched.runner, req, now_ns);
}

bool
inf_entrance_cancel(inf_model_t *model, inf_request_t *req,
    const inf_rejecter_t *rejecter)
{
    if (model->sched.gate != NULL && inf_gate_cancel(model->sched.gate, req)) {
        return true;
    }
    if (model->sched.entrance == NULL) {
        return model->sched.runner != NULL
            && inf_runner_cancel(model->sched.runner, req);
    }

    model->sched.entrance->cancel(model, req, rejecter);
    return false;
}

void
inf_entrance_close(inf_model_t *model)
{
    if (model->sched.entrance != NULL) {
        model->sched.entrance->close(model);

    } else {
        inf_runner_close_to_clients(model->sched.runner);
    }
}

bool
inf_entrance_is_stuck(const inf_model_t *model)
{
    if (model->sched.runner == NULL) {
        return false;
    }

    const inf_stuck_t count = inf_runner_stuck(model->sched.runner);
    return inf_stuck_all(&count);
}

void
inf_entrance_add_user(inf_model_t *model)
{
    atomic_fetch_add_explicit(&model->sched.users, 1, memory_order_relaxed);
}

void
inf_entrance_drop_user(inf_model_t *model)
{
    if (atomic_fetch_sub_explicit(&model->sched.users, 1,
            memory_order_acq_rel) == 1
        && model->sched.runner != NULL)
    {
        inf_runner_leave(model->sched.runner);
    }
}
