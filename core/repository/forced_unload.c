#include "core/repository/forced_unload.h"

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/sched/runtime.h"
#include "core/tensor/ledger.h"

static void answer_queued(inf_model_t *model, const char *why);

void
inf_model_force_unload(inf_model_t *model, const inf_plugin_ops_t *plugins,
    inf_children_t *children, const char *why)
{
    inf_runner_close(model->sched.runner);
    answer_queued(model, why);
    inf_model_close(model);             /* no changes of instances now       */
    inf_runner_stop(model->sched.runner);
    inf_children_let_go(children, model);

    for (uint32_t i = 0; i < model->instance_count; i++) {
        plugins->instance_fini(model->instances[i]);
    }
    plugins->model_fini(model);

    inf_ledger_t *ledger = atomic_load(&model->ledger);
    uint32_t open = ledger != NULL ? inf_ledger_settle(ledger, why) : 0;
    if (open > 0) {
        inf_log(INF_LOG_WARN, "model=%s version=%lld: %u requests that were"
            " running are answered for it", model->name,
            (long long) model->version, open);
    }
    inf_leftovers_remove(inf_children_forget(children, model), false);
}

/* Answers queued requests, which only instances without their process could
   run. */
static void
answer_queued(inf_model_t *model, const char *why)
{
    inf_request_t *req;

    while ((req = inf_runner_take_queued(model->sched.runner)) != NULL) {
        inf_statistics_failure(&model->statistics, req->start_ns,
            inf_clock_ns());
        inf_factory_send_error(req->factory, inf_err_new(INF_ERR_UNAVAILABLE,
            "%s", why));
        inf_request_release(req, 1);
    }
}
