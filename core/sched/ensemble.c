#include "core/sched/ensemble.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/lock.h"
#include "core/base/refs.h"
#include "core/sched/ensemble_run.h"

#define ENSEMBLE_RANK 23u
#define RUN_RANK      24u
#define MOST_HEIGHT   32u   /* nested ensembles                              */
#define MOST_SPARE    64u   /* spare runs                                    */

struct inf_ensemble_s {
    inf_plan_t         *plan;       /* set in new(), then constant           */
    _Atomic uint32_t    pending;    /* relaxed: requests queued or running   */
    _Atomic bool        closed;     /* relaxed: rejects new requests         */
    _Atomic bool        ends;       /* relaxed: new sequences are rejected   */

    inf_lock_t          lock;       /* rank 23; guards the next two, and the
                                       run of each request                   */
    inf_ensemble_run_t *spare;
    uint32_t            spare_count;
};

static inf_err_t *check_cache(const inf_model_t *model);
static inf_err_t *run_take(inf_model_t *model, inf_ensemble_run_t **out);
static void run_give(inf_ensemble_run_t *run);
static inf_err_t *ensemble_submit(inf_model_t *model, inf_request_t *req,
    uint64_t now_ns);
static void ensemble_cancel(inf_model_t *model, inf_request_t *req,
    const inf_rejecter_t *rejecter);
static void ensemble_close(inf_model_t *model);
static inf_err_t *run_begin(inf_ensemble_run_t *run, inf_request_t *req,
    uint64_t now_ns);
static inf_err_t *set_inputs(inf_ensemble_run_t *run, inf_request_t *req);
static inf_response_t *collect_locked(inf_ensemble_run_t *run)
    INF_NEEDS(run->lock);
static bool do_next(inf_ensemble_run_t *run);
static void announce(inf_ensemble_run_t *run);
static void release(inf_ensemble_run_t *run);
static void report(inf_ensemble_run_t *run);

static const inf_entrance_ops_t ensemble_entrance = {
    .submit = ensemble_submit,
    .cancel = ensemble_cancel,
    .close  = ensemble_close
};

inf_err_t *
inf_ensemble_new(inf_model_t *model, inf_model_t *const *composing,
    size_t count, uint32_t *at, inf_ensemble_t **out)
{
    inf_ensemble_t *e = calloc(1, sizeof(*e));
    if (e == NULL) {
        return inf_err_nomem();
    }
    inf_lock_init(&e->lock, ENSEMBLE_RANK);

    inf_err_t *err = inf_plan_new(model, composing, count, at, &e->plan);
    if (err == NULL && e->plan->height > MOST_HEIGHT) {
        err = inf_err_new(INF_ERR_INVALID_ARG, "ensemble %s contains ensembles"
            " %u deep, at most %u are possible", model->name,
            e->plan->height, MOST_HEIGHT);
    }
    if (err == NULL) {
        model->decoupled = e->plan->domain_count > 1;
        for (size_t i = 0; i < count; i++) {
            model->sequential = model->sequential || composing[i]->sequential;
        }
        err = check_cache(model);
    }
    if (err != NULL) {
        inf_ensemble_free(e);
        return err;
    }

    model->sched.entrance = &ensemble_entrance;
    *out = e;
    return NULL;
}

void
inf_ensemble_free(inf_ensemble_t *e)
{
    if (e == NULL) {
        return;
    }

    while (e->spare != NULL) {
        inf_ensemble_run_t *run = e->spare;
        e->spare = run->next;
        inf_run_free(run);
    }
    inf_plan_free(e->plan);
    inf_lock_fini(&e->lock);
    free(e);
}

uint32_t
inf_ensemble_pending(const inf_ensemble_t *e)
{
    return atomic_load_explicit(&e->pending, memory_order_relaxed);
}

void
inf_ensemble_end_sequences(inf_ensemble_t *e)
{
    atomic_store_explicit(&e->ends, true, memory_order_relaxed);
}

uint32_t
inf_ensemble_height(const inf_model_t *model)
{
    const inf_ensemble_t *e = model->sched.ensemble;
    return e != NULL ? e->plan->height : 0;
}

inf_model_t *
inf_ensemble_composing_model(const inf_ensemble_t *e, uint32_t step)
{
    return step < e->plan->step_count ? e->plan->steps[step].model : NULL;
}

static inf_err_t *
ensemble_submit(inf_model_t *model, inf_request_t *req, uint64_t now_ns)
{
    inf_ensemble_t *e = model->sched.ensemble;
    inf_ensemble_run_t *run;

    if (req->whole == NULL
        && (atomic_load_explicit(&e->closed, memory_order_relaxed)
            || ((req->flags & INF_REQUEST_SEQUENCE_START)
                && atomic_load_explicit(&e->ends, memory_order_relaxed))))
    {
        return inf_err_new(INF_ERR_UNAVAILABLE, "Server is stopping, scheduler"
            " for model has stopped accepting new inference requests");
    }

    inf_err_t *err = run_take(model, &run);
    if (err != NULL) {
        return err;
    }
    err = run_begin(run, req, now_ns);
    if (err != NULL) {
        run_give(run);
        return err;
    }

    inf_factory_t *client = req->factory;
    inf_factory_ref(client);        /* keeps the model until the end         */
    inf_run_ref(run);
    if (atomic_load_explicit(&client->cancelled, memory_order_relaxed)) {
        inf_lock(&run->lock);
        inf_flow_cancel(&run->flow);
        inf_run_leave(run);
    }
    inf_run_drain(run);
    inf_run_unref(run);
    inf_factory_unref(client);
    return NULL;
}

/*
 * Cancels req: no more steps start, requests queued in composing models go to
 * rejecter, executing ones are told.  The request is answered when they have
 * ended.
 */
static void
ensemble_cancel(inf_model_t *model, inf_request_t *req,
    const inf_rejecter_t *rejecter)
{
    inf_ensemble_t *e = model->sched.ensemble;

    inf_lock(&e->lock);
    inf_ensemble_run_t *run = req->sched.run;
    if (run != NULL) {
        inf_run_ref(run);
    }
    inf_unlock(&e->lock);
    if (run == NULL) {
        return;
    }

    inf_lock(&run->lock);
    bool again = run->flow.cancelled;
    if (!again) {
        inf_flow_cancel(&run->flow);
    }
    inf_run_leave(run);
    if (!again) {
        inf_run_cancel_requests(run, rejecter);
    }
    inf_run_unref(run);
}

static void
ensemble_close(inf_model_t *model)
{
    atomic_store_explicit(&model->sched.ensemble->closed, true,
        memory_order_relaxed);
}

static inf_err_t *
check_cache(const inf_model_t *model)
{
    const Inference__ModelConfig *msg = model->built;

    return msg->response_cache == NULL || !msg->response_cache->enable
        || !model->decoupled ? NULL : inf_err_new(INF_ERR_INVALID_ARG,
        "Response Cache does not currently support model %s with 'decoupled'"
        " transaction policy. Please disable the response cache.",
        model->name);
}

/* Takes a spare run or creates one; the reference is the request's. */
static inf_err_t *
run_take(inf_model_t *model, inf_ensemble_run_t **out)
{
    inf_ensemble_t *e = model->sched.ensemble;

    inf_lock(&e->lock);
    inf_ensemble_run_t *run = e->spare;
    if (run != NULL) {
        e->spare = run->next;
        e->spare_count--;
    }
    inf_unlock(&e->lock);

    if (run == NULL) {
        inf_err_t *err = inf_run_new(e, model, e->plan, &run);
        if (err != NULL) {
            return err;
        }
    }
    atomic_store_explicit(&run->refs, 1, memory_order_relaxed);
    *out = run;
    return NULL;
}

static void
run_give(inf_ensemble_run_t *run)
{
    inf_ensemble_t *e = run->ensemble;

    inf_flow_trim(&run->flow);
    inf_lock(&e->lock);
    bool keep = e->spare_count < MOST_SPARE;
    if (keep) {
        run->next = e->spare;
        e->spare = run;
        e->spare_count++;
    }
    inf_unlock(&e->lock);

    if (!keep) {
        inf_run_free(run);
    }
}

inf_err_t *
inf_run_new(inf_ensemble_t *e, inf_model_t *model, const inf_plan_t *plan,
    inf_ensemble_run_t **out)
{
    inf_ensemble_run_t *run = calloc(1, sizeof(*run));
    if (run == NULL) {
        return inf_err_nomem();
    }

    inf_err_t *err = inf_flow_init(&run->flow, plan);
    if (err != NULL) {
        free(run);
        return err;
    }

    run->ensemble = e;
    run->model = model;
    run->plan = plan;
    inf_lock_init(&run->lock, RUN_RANK);
    inf_link_init(&run->live);
    *out = run;
    return NULL;
}

void
inf_run_free(inf_ensemble_run_t *run)
{
    inf_run_free_requests(run);
    inf_flow_fini(&run->flow);
    inf_lock_fini(&run->lock);
    free(run);
}

void
inf_run_ref(inf_ensemble_run_t *run)
{
    atomic_fetch_add_explicit(&run->refs, 1, memory_order_relaxed);
}

/* The model is alive: the holder of a run, or its caller, holds the request's
   factory. */
void
inf_run_unref(inf_ensemble_run_t *run)
{
    if (inf_refs_drop(&run->refs)) {
        run_give(run);
    }
}

/* Begins a request.  On error the caller still owns both, unchanged. */
static inf_err_t *
run_begin(inf_ensemble_run_t *run, inf_request_t *req, uint64_t now_ns)
{
    inf_ensemble_t *e = run->ensemble;
    const inf_plan_t *plan = run->plan;
    bool *wanted = inf_arena_calloc(&req->arena, run->flow.output_count + 1,
        sizeof(*wanted));
    if (wanted == NULL) {
        return inf_err_nomem();
    }

    for (uint32_t o = 0; o < run->flow.output_count; o++) {
        wanted[o] = inf_request_wants_output(req,
            plan->tensors[plan->outputs[o]].name);
    }

    inf_lock(&run->lock);
    inf_err_t *err = inf_flow_begin(&run->flow, wanted);
    if (err == NULL) {
        err = set_inputs(run, req);
        if (err != NULL) {
            inf_flow_run(&run->flow);
            inf_flow_clear(&run->flow);
        }
    }
    if (err != NULL) {
        inf_unlock(&run->lock);
        return err;
    }

    run->request = req;
    run->factory = req->factory;
    run->draining = false;
    run->start_told = false;
    run->failed = false;
    run->in_use = 0;
    memset(run->compute_ns, 0, sizeof(run->compute_ns));
    atomic_store_explicit(&run->execution, INF_RUN_WAITS,
        memory_order_relaxed);
    req->queue_ns = now_ns;
    atomic_init(&req->exec_ns, now_ns);
    atomic_init(&req->payload_rows, req->batch_size > 0 ? req->batch_size : 1);
    inf_flow_run(&run->flow);
    inf_unlock(&run->lock);

    if (atomic_load_explicit(&req->state, memory_order_relaxed)
        != INF_REQUEST_EXECUTING)
    {
        inf_request_move(req, INF_REQUEST_EXECUTING);
    }
    atomic_fetch_add_explicit(&e->pending, 1, memory_order_relaxed);
    inf_lock(&e->lock);
    req->sched.run = run;
    inf_unlock(&e->lock);
    return NULL;
}

/* Passes the inputs to the flow; a missing optional input is like an output
   that a step left out. */
static inf_err_t *
set_inputs(inf_ensemble_run_t *run, inf_request_t *req)
{
    const inf_plan_t *plan = run->plan;
    uint32_t count = inf_config_tensors_input_count(run->model->tensors);
    inf_run_value_t *values = inf_arena_calloc(&req->arena, count + 1,
        sizeof(*values));
    if (values == NULL) {
        return inf_err_nomem();
    }

    for (uint32_t i = 0; i < count; i++) {
        values[i].input = inf_request_find_input(req,
            plan->tensors[plan->inputs[i]].name);
        inf_flow_set_input(&run->flow, i, values[i].input != NULL
            ? &values[i].base : &inf_flow_empty);
    }
    return NULL;
}

void
inf_run_leave(inf_ensemble_run_t *run)
{
    inf_response_t *done = collect_locked(run);
    inf_pause_t *resumed = run->flow.resumed;
    run->flow.resumed = NULL;
    inf_unlock(&run->lock);

    inf_pause_wake_all(resumed);
    while (done != NULL) {
        inf_response_t *response = done;
        done = response->next;
        inf_response_free(response);
    }
}

/* Collects responses without needed tensors. */
static inf_response_t *
collect_locked(inf_ensemble_run_t *run)
{
    inf_response_t *list = NULL;

    while (run->flow.dropped != NULL) {
        inf_run_value_t *value = (inf_run_value_t *) (void *)
            run->flow.dropped;
        inf_run_source_t *source = value->source;

        run->flow.dropped = value->base.next;
        if (source != NULL && --source->values == 0) {
            source->response->next = list;
            list = source->response;
        }
    }
    return list;
}

void
inf_run_drain(inf_ensemble_run_t *run)
{
    inf_lock(&run->lock);
    if (run->draining) {
        inf_unlock(&run->lock);
        return;
    }
    run->draining = true;
    inf_unlock(&run->lock);

    while (do_next(run)) {
        continue;
    }
}

/* Carries out one action; false: none, the draining role is given up. */
static bool
do_next(inf_ensemble_run_t *run)
{
    inf_lock(&run->lock);
    bool tell = atomic_load(&run->execution) == INF_RUN_BEGUN;
    bool answered = run->flow.answer == INF_FLOW_ANSWERED;
    bool over = answered && run->in_use == 0 && run->flow.open == 0
        && run->request != NULL;
    inf_flow_action_t next = { .what = INF_FLOW_NOTHING };
    if (tell) {
        atomic_store(&run->execution, INF_RUN_TOLD);
    } else if (!answered) {
        next = inf_flow_next(&run->flow);
    }

    if (!tell && !over && next.what == INF_FLOW_NOTHING) {
        run->draining = false;
        inf_run_leave(run);
        return false;
    }
    inf_run_leave(run);

    if (tell) {
        announce(run);
        return true;
    }
    if (over) {
        release(run);
        return true;
    }

    switch (next.what) {
    case INF_FLOW_START:
        inf_run_start(run, &next);
        break;
    case INF_FLOW_EMIT:
        inf_run_answer(run, &next);
        break;
    case INF_FLOW_FINISH:
        inf_run_finish(run);
        break;
    case INF_FLOW_NOTHING:
        break;
    }
    return true;
}

static void
announce(inf_ensemble_run_t *run)
{
    inf_request_t *req = run->request;
    if (req->ops->executing != NULL) {
        req->ops->executing(req->userp, req);
    }
}

/* Releases the request, whose inputs are no longer read. */
static void
release(inf_ensemble_run_t *run)
{
    inf_ensemble_t *e = run->ensemble;
    inf_request_t *req = run->request;

    report(run);
    inf_lock(&run->lock);
    inf_flow_clear(&run->flow);
    run->request = NULL;
    run->factory = NULL;
    inf_run_leave(run);

    inf_lock(&e->lock);
    req->sched.run = NULL;
    inf_unlock(&e->lock);
    atomic_fetch_sub_explicit(&e->pending, 1, memory_order_relaxed);

    inf_run_unref(run);             /* the request's; drain has its own      */
    inf_request_release(req, 1);
}

/* Reports statistics: the sums of the steps' times. */
static void
report(inf_ensemble_run_t *run)
{
    inf_request_t *req = run->request;
    inf_model_t *model = run->model;
    inf_statistics_t *s = &model->statistics;
    uint64_t now = inf_clock_ns();

    if (req->outcome == INF_OUTCOME_REJECTED) {
        return;
    }
    if (run->failed) {
        inf_statistics_failure(s, req->start_ns, now);
        return;
    }

    uint64_t *stamps = req->backend_ns;
    stamps[0] = req->queue_ns;
    for (int i = 0; i < 3; i++) {
        stamps[i + 1] = stamps[i] + run->compute_ns[i];
    }
    req->outcome = INF_OUTCOME_REPORTED;
    inf_statistics_success(s, req->payload_rows, req->start_ns, req->queue_ns,
        stamps, now);
    inf_statistics_batch(s, req->payload_rows, stamps, inf_clock_wall_ms());
    if (model->latencies != NULL) {
        inf_latencies_success(model->latencies, req->start_ns, req->queue_ns,
            stamps, now);
    }
}
