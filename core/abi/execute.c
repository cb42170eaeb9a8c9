#include "core/abi/execute.h"

#include <stdlib.h>
#include <string.h>

#include "core/abi/executions.h"
#include "core/abi/plugin.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/points.h"
#include "core/sched/runtime.h"
#include "core/server/server.h"
#include "core/tensor/ledger.h"
#include "core/tensor/memory.h"
#include "core/tensor/response.h"

static void execute(inf_instance_t *instance, inf_request_t **requests,
    uint32_t count);
static inf_execution_t *execution_start(inf_instance_t *instance,
    inf_request_t **requests, uint32_t count);
static void fail_all(inf_instance_t *instance, inf_request_t *const *requests,
    uint32_t count, inf_err_t *err);
static inf_err_t *gpu_failure(const inf_instance_t *instance);
static int64_t gpu_of(const inf_instance_t *instance);
static void judge(const inf_model_t *model, int64_t gpu);
static void tell_of_gpu(const inf_model_t *model, bool guilty,
    const char *why);
static bool is_guilty(const inf_execution_t *e);
static void give_back(const inf_request_t *request, inf_instance_t *ran_on);
static void await_answers(const inf_request_t *request);
static void complain_released(const inf_execution_t *e);

const inf_executor_t inf_backend_executor = { .execute = execute };

static void
execute(inf_instance_t *instance, inf_request_t **requests, uint32_t count)
{
    uint32_t rows = 0;
    for (uint32_t i = 0; i < count; i++) {
        rows += requests[i]->batch_size > 0 ? requests[i]->batch_size : 1;
    }
    for (uint32_t i = 0; i < count; i++) {
        atomic_store_explicit(&requests[i]->payload_rows, rows,
            memory_order_relaxed);
        atomic_store_explicit(&requests[i]->instance, instance->spec->name,
            memory_order_relaxed);
        requests[i]->abi.runs_on = instance;
        atomic_store_explicit(&requests[i]->factory->gpu, gpu_of(instance),
            memory_order_relaxed);
    }

    inf_err_t *gone = gpu_failure(instance);
    if (gone != NULL) {
        fail_all(instance, requests, count, gone);
        return;
    }

    inf_execution_t *e = execution_start(instance, requests, count);
    if (e == NULL) {
        fail_all(instance, requests, count, inf_err_nomem());
        return;
    }

    inf_ledger_t *ledger = atomic_load_explicit(&instance->model->ledger,
        memory_order_acquire);
    for (uint32_t i = 0; ledger != NULL && i < count; i++) {
        inf_ledger_add(ledger, requests[i]);
    }

    inf_execution_running = e;
    atomic_store_explicit(&e->executing, true, memory_order_relaxed);
    INF_POINT(BACKEND_CALLED);
    inf_err_t *err = inf_plugin_execute(instance, requests, count);
    INF_POINT(BACKEND_RETURNED);
    if (err != NULL) {
        judge(instance->model, gpu_of(instance));
    }
    atomic_store_explicit(&e->executing, false, memory_order_relaxed);
    inf_execution_running = NULL;

    if (err != NULL) {
        if (e->released > 0) {
            complain_released(e);
        }
        fail_all(instance, e->requests, count, err);
    } else if (e->released < count) {
        atomic_fetch_add(&instance->kept, count - e->released);
    }
    inf_err_free(gpu_failure(instance));
}

/* The GPU of an instance; -1: none. */
static int64_t
gpu_of(const inf_instance_t *instance)
{
    return instance->spec->kind == INF_INSTANCE_GPU
        ? instance->spec->device_id : -1;
}

/* The error if the instance's GPU has failed, which the host knows. */
static inf_err_t *
gpu_failure(const inf_instance_t *instance)
{
    const char *why = inf_memory_gpu_failure(inf_memory_shared(),
        gpu_of(instance));
    if (why == NULL) {
        return NULL;
    }

    const inf_execution_t *e = instance->abi.execution;
    tell_of_gpu(instance->model, e != NULL && e->guilty, why);
    return inf_err_new(INF_ERR_UNAVAILABLE, "%s", why);
}

void
inf_execution_judge(const inf_factory_t *factory)
{
    int64_t gpu = atomic_load_explicit(&factory->gpu, memory_order_relaxed);

    if (gpu >= 0) {
        judge(factory->model, gpu);
    }
}

/* Handles a failed execution.  A guilty request is answered before the process
   ends, so that no core executes it again. */
static void
judge(const inf_model_t *model, int64_t gpu)
{
    inf_err_t *gone = inf_memory_check_gpu(inf_memory_shared(), gpu);

    inf_execution_t *e = inf_execution_running;
    if (gone != NULL && e != NULL && gpu_of(e->instance) == gpu
        && is_guilty(e))
    {
        e->guilty = true;
        if (e->requests[0] != NULL) {
            atomic_store(&e->requests[0]->factory->gpu, INF_GPU_GUILTY);
        }
    } else if (gone != NULL) {
        tell_of_gpu(model, false, inf_err_msg(gone));
    }
    inf_err_free(gone);
}

/* Reports a failed GPU; a warm-up counts as part of the load. */
static void
tell_of_gpu(const inf_model_t *model, bool guilty, const char *why)
{
    inf_server_gpu_failed(model->server, guilty ? model : NULL,
        model->load_ns == 0, why);
}

/* Whether e alone broke its GPU: it has a single request, and either nothing
   else executes there or the request is a suspect, which runs alone.  Other
   executions are read only if the host ends the process: otherwise they may be
   freed. */
static bool
is_guilty(const inf_execution_t *e)
{
    const inf_server_t *server = e->instance->model->server;

    if (server == NULL || server->gpu_failed == NULL) {
        return false;
    }
    if (e->count != 1
        || atomic_load_explicit(&e->suspect, memory_order_relaxed))
    {
        return e->count == 1;
    }

    const inf_execution_t *o;
    for (uint32_t at = 0; (o = inf_executions_next(&at)) != NULL; ) {
        if (o != e && gpu_of(o->instance) == gpu_of(e->instance)) {
            return false;
        }
    }
    return true;
}

void
inf_execution_free(inf_execution_t *execution)
{
    inf_executions_remove(execution);
    free(execution);
}

void
inf_execution_release(const inf_request_t *request)
{
    await_answers(request);
    give_back(request, request->abi.runs_on);
}

/* The answers are awaited when the request is finally released. */
inf_err_t *
inf_execution_reschedule(inf_request_t *request)
{
    inf_instance_t *ran_on = request->abi.runs_on;
    inf_factory_t *f = request->factory;

    inf_request_t *held = atomic_exchange_explicit(&f->request, NULL,
        memory_order_relaxed);
    inf_err_t *err = inf_runner_reschedule(request->model->sched.runner,
        request);
    if (err != NULL) {
        atomic_store_explicit(&f->request, held, memory_order_relaxed);
        return err;
    }

    give_back(request, ran_on);     /* it may already run again              */
    return NULL;
}

/* Notes that the backend has released request, which is not dereferenced.
   Backends release in order, so the search begins at the next one. */
static void
give_back(const inf_request_t *request, inf_instance_t *ran_on)
{
    inf_execution_t *e = inf_execution_running;

    for (uint32_t n = 0; e != NULL && n < e->count; n++) {
        uint32_t at = e->next + n < e->count ? e->next + n
            : e->next + n - e->count;
        if (e->requests[at] == request) {
            e->requests[at] = NULL;
            e->next = at + 1 < e->count ? at + 1 : 0;
            e->released++;
            return;
        }
    }

    if (ran_on != NULL) {           /* released after Execute                */
        atomic_fetch_add(&ran_on->returned, 1);
    }
}

/* Keeps the instance until the backend has sent its answers and released its
   handles. */
static void
await_answers(const inf_request_t *request)
{
    inf_factory_t *f = request->factory;

    if (request->abi.runs_on == NULL || f == NULL || f->awaited != NULL
        || (atomic_load_explicit(&f->final, memory_order_relaxed)
            && atomic_load_explicit(&f->handles, memory_order_relaxed) == 0))
    {
        return;
    }

    atomic_fetch_add(&request->abi.runs_on->kept, 1);
    f->awaited = &request->abi.runs_on->returned;
}

inf_err_t *
inf_execution_complain(const char *what)
{
    const inf_execution_t *e = inf_execution_running;

    inf_log(INF_LOG_ERROR, "backend \"%s\" of model=%s: %s", e != NULL
        ? e->instance->model->backend->name : "?", e != NULL
        ? e->instance->model->name : "?", what);
    return inf_err_new(INF_ERR_INVALID_ARG, "%s", what);
}

/* Reuses the instance's execution, or allocates one; NULL: out of memory. */
static inf_execution_t *
execution_start(inf_instance_t *instance, inf_request_t **requests,
    uint32_t count)
{
    inf_execution_t *e = instance->abi.execution;

    if (e == NULL || e->cap < count) {
        e = malloc(sizeof(*e) + count * sizeof(e->requests[0]));
        if (e == NULL) {
            return NULL;
        }
        e->cap = count;
        e->instance = instance;
        atomic_init(&e->executing, false);
        atomic_init(&e->suspect, false);
        inf_execution_free(instance->abi.execution);
        instance->abi.execution = e;
        inf_executions_add(e);
    }

    e->count = count;
    e->next = 0;
    e->released = 0;
    e->guilty = false;
    atomic_store_explicit(&e->suspect,
        requests[0]->suspect == INF_SUSPICION_EXECUTING, memory_order_relaxed);
    memcpy(e->requests, requests, count * sizeof(e->requests[0]));
    return e;
}

/* Answers and releases all requests with the error, except those that the
   backend has already answered or released. */
static void
fail_all(inf_instance_t *instance, inf_request_t *const *requests,
    uint32_t count, inf_err_t *err)
{
    uint64_t now = inf_clock_ns();

    for (uint32_t i = 0; i < count; i++) {
        inf_request_t *r = requests[i];
        if (r == NULL) {
            continue;
        }

        if (!r->padding) {
            inf_statistics_failure_for(&instance->statistics,
                INF_FAILURE_BACKEND, r->start_ns, now);
        }
        if (!atomic_load_explicit(&r->factory->final, memory_order_relaxed)) {
            inf_factory_send_error(r->factory, inf_err_copy(err));
        }
        inf_request_release(r, 1);
    }

    inf_err_free(err);
}

static void
complain_released(const inf_execution_t *e)
{
    inf_log(INF_LOG_ERROR, "model=%s: the backend \"%s\" failed an execution"
        " after it had released %u of its %u requests",
        e->instance->model->name, e->instance->model->backend->name,
        e->released, e->count);
}
