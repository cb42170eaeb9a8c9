/* ensemble_request.c - a run's requests to its composing models, and their
   responses. */

#include "core/sched/ensemble_run.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/model/normalize.h"
#include "core/sched/entrance.h"
#include "core/sched/rejection.h"
#include "core/tensor/memory.h"

#define MOST_SPARE 8u       /* spare requests, beyond one for each step       */

#define ANSWER_PAUSES   1000
#define ANSWER_PAUSE_NS 100000

static void cancel_request(inf_step_request_t *s,
    const inf_rejecter_t *rejecter);
static inf_step_request_t *step_take(inf_ensemble_run_t *run,
    const inf_flow_action_t *start);
static void step_part_done(inf_step_request_t *s);
static inf_err_t *build(inf_step_request_t *s);
static inf_err_t *add_input(inf_step_request_t *s, const inf_plan_port_t *port);
static inf_err_t *copy_buffers(inf_request_t *req, inf_input_t *to,
    const inf_input_t *from);
static inf_err_t *choose_sequence(inf_step_request_t *s);
static void begin_trace(inf_step_request_t *s);
static void give_up(inf_step_request_t *s, inf_err_t *err);
static bool is_cancelled(inf_ensemble_run_t *run);

static inf_err_t *step_alloc(void *userp, inf_output_t *out, size_t size);
static inf_err_t *alloc_granted(inf_step_request_t *s, inf_output_t *out,
    size_t size, uint32_t tensor);
static inf_err_t *alloc_own(inf_step_request_t *s, inf_output_t *out,
    size_t size, uint32_t tensor);
static bool stays_on_gpu(const inf_step_request_t *s,
    const inf_output_t *out, uint32_t tensor);
static void step_release(void *userp, inf_output_t *out);
static inf_err_t *step_query(void *userp, const char *name, size_t *size,
    inf_memory_type_t *memory_type, int64_t *memory_id);
static void step_complete(void *userp, inf_response_t *response,
    uint32_t flags);
static bool is_guilty(const inf_step_request_t *s);
static void await_answer(const inf_step_request_t *s);
static bool is_answered(inf_ensemble_run_t *run);
static void respond(inf_step_request_t *s, inf_response_t *response,
    uint32_t flags);
static inf_flow_value_t **make_values(inf_step_request_t *s,
    inf_response_t *response, bool *used);
static bool read_sequence(inf_run_sequence_t *sequence,
    inf_response_t *response);
static void end_locked(inf_ensemble_run_t *run, inf_step_request_t *s)
    INF_NEEDS(run->lock);
static void step_factory_free(void *userp, inf_factory_t *factory);
static void step_executing(void *userp, inf_request_t *req);
static void step_released(void *userp, inf_request_t *req, uint32_t flags);
static uint32_t tensor_of(const inf_step_request_t *s, const char *output);

static const inf_sink_ops_t step_sink = {
    .alloc = step_alloc,
    .release = step_release,
    .complete = step_complete,
    .query = step_query,
    .factory_free = step_factory_free
};

static const inf_request_ops_t step_ops = {
    .released = step_released,
    .executing = step_executing
};

void
inf_run_start(inf_ensemble_run_t *run, const inf_flow_action_t *start)
{
    inf_step_request_t *s = step_take(run, start);
    if (s == NULL) {
        return;
    }

    inf_request_t *req = &s->request;
    inf_factory_ref(&s->factory);       /* keeps s for the cancel below      */
    bool queued;
    inf_err_t *err = build(s);
    if (err == NULL) {
        begin_trace(s);
        err = inf_entrance_submit(req->model, req, req->start_ns, true,
            &queued);
    }

    if (err != NULL) {
        give_up(s, err);
    } else if (is_cancelled(run)) {
        cancel_request(s, NULL);         /* a cancel came meanwhile           */
    }
    inf_factory_unref(&s->factory);
}

/* Whether the run is cancelled.  s is in the run's list, so a cancel either
   finds it there or is seen here. */
static bool
is_cancelled(inf_ensemble_run_t *run)
{
    inf_lock(&run->lock);
    bool cancelled = run->flow.cancelled;
    inf_unlock(&run->lock);
    return cancelled;
}

void
inf_run_cancel_requests(inf_ensemble_run_t *run,
    const inf_rejecter_t *rejecter)
{
    inf_step_request_t *s;

    do {
        s = NULL;
        inf_lock(&run->lock);
        for (inf_link_t *l = run->live.next; s == NULL && l != &run->live;
            l = l->next)
        {
            inf_step_request_t *one = inf_link_entry(l, inf_step_request_t,
                live);
            if (!atomic_load_explicit(&one->factory.cancelled,
                    memory_order_relaxed)
                && inf_factory_try_ref(&one->factory))
            {
                s = one;
                atomic_store_explicit(&s->factory.cancelled, true,
                    memory_order_relaxed);
            }
        }
        inf_unlock(&run->lock);

        if (s != NULL) {
            cancel_request(s, rejecter);
            inf_factory_unref(&s->factory);
        }
    } while (s != NULL);
}

void
inf_run_free_requests(inf_ensemble_run_t *run)
{
    while (run->spare != NULL) {
        inf_step_request_t *s = run->spare;
        run->spare = s->next;
        inf_request_fini(&s->request);
        inf_factory_fini(&s->factory);
        free(s);
    }
    run->spare_count = 0;
}

/* Cancels s; rejecter NULL: rejects it here. */
static void
cancel_request(inf_step_request_t *s, const inf_rejecter_t *rejecter)
{
    inf_request_t *req = &s->request;

    atomic_store_explicit(&s->factory.cancelled, true, memory_order_relaxed);
    if (!inf_entrance_cancel(req->model, req, rejecter)) {
        return;
    }
    if (rejecter != NULL) {
        rejecter->reject(rejecter->userp, req);
    } else {
        inf_reject_cancelled(req);
    }
}

/* Takes a step request; NULL: out of memory, the run has failed. */
static inf_step_request_t *
step_take(inf_ensemble_run_t *run, const inf_flow_action_t *start)
{
    inf_lock(&run->lock);
    inf_step_request_t *s = run->spare;
    if (s != NULL) {
        run->spare = s->next;
        run->spare_count--;
    }
    inf_unlock(&run->lock);

    if (s == NULL) {
        s = calloc(1, sizeof(*s));
        if (s == NULL) {
            inf_lock(&run->lock);
            inf_flow_fail(&run->flow, inf_err_nomem());
            inf_flow_unbind(&run->flow, start);
            inf_run_leave(run);
            return NULL;
        }
        inf_request_init(&s->request);
        inf_factory_init(&s->factory);
        inf_link_init(&s->live);
    }

    inf_model_t *model = run->plan->steps[start->step].model;
    s->run = run;
    s->client = run->factory;
    s->next = NULL;
    s->trace = NULL;
    atomic_store_explicit(&s->parts, 2, memory_order_relaxed);
    inf_run_ref(run);
    inf_factory_ref(s->client);
    inf_factory_start(&s->factory, model, "", &step_sink, s);
    s->request.factory = &s->factory;
    s->request.model = model;
    s->request.ops = &step_ops;
    s->request.userp = s;

    inf_lock(&run->lock);
    inf_flow_bind(&s->call, start);
    inf_list_push_back(&run->live, &s->live);
    run->in_use++;
    inf_unlock(&run->lock);
    return s;
}

static void
step_part_done(inf_step_request_t *s)
{
    if (atomic_fetch_sub_explicit(&s->parts, 1, memory_order_acq_rel) != 1) {
        return;
    }

    inf_ensemble_run_t *run = s->run;
    inf_factory_t *client = s->client;

    if (s->trace != NULL) {
        s->trace_ops->free(s->trace);
    }
    inf_request_reset(&s->request);
    inf_lock(&run->lock);
    bool keep = run->spare_count < run->plan->step_count + MOST_SPARE;
    if (keep) {
        s->next = run->spare;
        run->spare = s;
        run->spare_count++;
    }
    inf_unlock(&run->lock);

    if (!keep) {
        inf_request_fini(&s->request);
        inf_factory_fini(&s->factory);
        free(s);
    }
    inf_run_unref(run);
    inf_factory_unref(client);      /* may free the model                    */
}

static inf_err_t *
build(inf_step_request_t *s)
{
    inf_ensemble_run_t *run = s->run;
    const inf_request_t *whole = run->request;
    const inf_plan_step_t *step = &run->plan->steps[s->call.step];
    inf_request_t *req = &s->request;
    uint64_t now = inf_clock_ns();

    req->whole = whole;
    req->suspect = whole->suspect;
    req->uses_regions = whole->uses_regions;
    req->copies = whole->copies;
    req->priority = whole->priority;
    req->timeout_us = whole->timeout_us;
    req->parameters = whole->parameters;    /* they live as long             */
    req->start_ns = now;
    req->queue_ns = now;
    atomic_store_explicit(&s->factory.start_ns, now, memory_order_relaxed);

    if (whole->id[0] != '\0') {
        req->id = inf_arena_strdup(&req->arena, whole->id, strlen(whole->id));
        if (req->id == NULL) {
            req->id = "";
            return inf_err_nomem();
        }
        s->factory.id = req->id;
    }

    inf_err_t *err = choose_sequence(s);
    for (uint32_t i = 0; err == NULL && i < step->input_count; i++) {
        err = add_input(s, &step->inputs[i]);
    }
    for (uint32_t i = 0; err == NULL && i < step->output_count; i++) {
        if (run->flow.uses[step->outputs[i].tensor] > 0) {
            inf_slice_t name = step->outputs[i].config->name;
            err = inf_request_add_output(req, name.data, name.len);
        }
    }
    return err != NULL ? err : inf_request_normalize(step->model, req);
}

/* Chooses the sequence of the first input whose response had one, or that of
   the whole request. */
static inf_err_t *
choose_sequence(inf_step_request_t *s)
{
    inf_ensemble_run_t *run = s->run;
    const inf_plan_step_t *step = &run->plan->steps[s->call.step];
    inf_request_t *req = &s->request;

    s->sequence = inf_run_sequence(run->request);
    for (uint32_t i = 0; !s->sequence.changed && i < step->input_count; i++) {
        const inf_run_value_t *v = inf_run_value(run, s->call.item,
            step->inputs[i].tensor);
        if (v != NULL && v->source != NULL && v->source->sequence.changed) {
            s->sequence = v->source->sequence;
        }
    }

    const char *text = s->sequence.correlation_text;
    if (text != NULL) {
        text = inf_arena_strdup(&req->arena, text, strlen(text));
        s->sequence.correlation_text = text;
        if (text == NULL) {
            return inf_err_nomem();
        }
    }
    req->correlation_id = s->sequence.correlation_id;
    req->correlation_text = text;
    req->flags = s->sequence.flags;
    return NULL;
}

static inf_err_t *
add_input(inf_step_request_t *s, const inf_plan_port_t *port)
{
    inf_ensemble_run_t *run = s->run;
    const inf_plan_step_t *step = &run->plan->steps[s->call.step];
    const inf_run_value_t *v = inf_run_value(run, s->call.item, port->tensor);
    inf_request_t *req = &s->request;
    int64_t shape[INF_MAX_DIMS + 1];
    if (v == NULL) {
        return NULL;                /* left out                              */
    }

    const inf_output_t *out = v->output;
    const inf_input_t *in = v->input;
    uint32_t dims = in != NULL ? in->model_dim_count : out->dim_count;
    if (dims > INF_MAX_DIMS) {
        return inf_err_new(INF_ERR_INVALID_ARG, "tensor '%s' has %u"
            " dimensions, at most %d are possible",
            run->plan->tensors[port->tensor].name, dims, INF_MAX_DIMS);
    }
    dims = inf_run_reconcile(in != NULL ? in->model_shape : out->shape, dims,
        run->plan->tensors[port->tensor].batched, port->config->dims,
        port->config->dim_count, step->batched, shape);

    inf_input_t *to = inf_request_add_input(req, port->config->name.data,
        port->config->name.len, in != NULL ? in->datatype : out->datatype,
        shape, dims);
    if (to == NULL) {
        return inf_err_nomem();
    }
    return in != NULL ? copy_buffers(req, to, in)
        : inf_request_add_data(req, to, &(inf_buffer_t) {
            .base = out->base,
            .size = out->byte_size,
            .memory_type = out->memory_type,
            .memory_id = out->memory_id,
            .ipc_handle = out->has_ipc_handle ? out->ipc_handle : NULL
        });
}

static inf_err_t *
copy_buffers(inf_request_t *req, inf_input_t *to, const inf_input_t *from)
{
    to->host_data = from->host_data;
    to->in_region = from->in_region;
    for (uint32_t i = 0; i < from->buffer_count; i++) {
        inf_err_t *err = inf_request_add_data(req, to, &from->buffers[i]);
        if (err != NULL) {
            return err;
        }
    }
    return NULL;
}

/* Begins the step's trace, if the whole request has one. */
static void
begin_trace(inf_step_request_t *s)
{
    const inf_request_t *whole = s->run->request;

    if (whole->abi.trace != NULL) {
        s->trace_ops = whole->abi.trace_ops;
        s->trace = s->trace_ops->part(whole->abi.trace, &s->request);
        s->request.abi.trace = s->trace;
        s->request.abi.trace_ops = s->trace_ops;
    }
}

/* Fails a step request that did not reach its model.  Takes err. */
static void
give_up(inf_step_request_t *s, inf_err_t *err)
{
    inf_ensemble_run_t *run = s->run;

    inf_lock(&run->lock);
    inf_flow_fail(&run->flow, err);
    end_locked(run, s);
    inf_flow_release(&run->flow, &s->call);
    inf_link_remove(&s->live);
    run->in_use--;
    inf_run_leave(run);

    if (s->trace != NULL) {
        s->trace_ops->end(s->trace);
    }
    s->request.factory = NULL;
    inf_factory_unref(&s->factory);
    step_part_done(s);
}

static inf_err_t *
step_alloc(void *userp, inf_output_t *out, size_t size)
{
    inf_step_request_t *s = userp;
    uint32_t tensor = tensor_of(s, out->name);

    return tensor != INF_PLAN_NONE && inf_run_may_grant(s->run, tensor)
        && !stays_on_gpu(s, out, tensor)
        ? alloc_granted(s, out, size, tensor)
        : alloc_own(s, out, size, tensor);
}

/* Whether a GPU output, which the client and a step on a GPU read, stays on the
   GPU: one copy to the client instead of two through the host. */
static bool
stays_on_gpu(const inf_step_request_t *s, const inf_output_t *out,
    uint32_t tensor)
{
    return out->memory_type == INF_MEMORY_GPU
        && s->run->plan->tensors[tensor].to_gpu;
}

/* Allocates an output of the ensemble in the client's memory. */
static inf_err_t *
alloc_granted(inf_step_request_t *s, inf_output_t *out, size_t size,
    uint32_t tensor)
{
    inf_factory_t *client = s->client;
    inf_output_t asked = *out;
    asked.name = s->run->plan->tensors[tensor].name;

    inf_run_tell_start(s->run);
    inf_err_t *err = client->sink->alloc(client->userp, &asked, size);
    if (err != NULL) {
        return err;
    }

    out->base = asked.base;
    out->memory_type = asked.memory_type;
    out->memory_id = asked.memory_id;
    out->sink_userp = asked.sink_userp;
    out->sched.step_request = asked.sched.step_request;
    out->has_ipc_handle = asked.has_ipc_handle;
    memcpy(out->ipc_handle, asked.ipc_handle, sizeof(out->ipc_handle));
    return NULL;
}

/* Allocates an output between steps: in the memory that the backend prefers, or
   that the next step reads; host memory for a GPU is pinned. */
static inf_err_t *
alloc_own(inf_step_request_t *s, inf_output_t *out, size_t size,
    uint32_t tensor)
{
    bool to_gpu = tensor != INF_PLAN_NONE
        && s->run->plan->tensors[tensor].to_gpu;
    inf_memory_t *memory = inf_memory_shared();
    inf_err_t *err = NULL;

    out->base = NULL;
    out->sched.step_request = s;
    if (size == 0) {
        out->memory_type = INF_MEMORY_CPU;
        out->memory_id = 0;
        return NULL;
    }

    if (out->memory_type == INF_MEMORY_GPU) {
        err = inf_memory_alloc(memory, INF_MEMORY_GPU, out->memory_id, size,
            &out->base);
        if (err == NULL) {
            return NULL;
        }
        inf_err_free(err);
    }
    if (out->memory_type != INF_MEMORY_CPU || to_gpu) {
        out->memory_type = INF_MEMORY_CPU_PINNED;
        out->memory_id = 0;
        err = inf_memory_alloc(memory, INF_MEMORY_CPU_PINNED, 0, size,
            &out->base);
        if (err == NULL) {
            return NULL;
        }
        inf_err_free(err);
    }
    out->memory_type = INF_MEMORY_CPU;
    out->memory_id = 0;
    return inf_memory_alloc(memory, INF_MEMORY_CPU, 0, size, &out->base);
}

static void
step_release(void *userp, inf_output_t *out)
{
    inf_step_request_t *s = userp;

    if (out->sched.step_request != s) {
        s->client->sink->release(s->client->userp, out);
        return;
    }
    inf_err_log(inf_memory_release(inf_memory_shared(), out->base,
        out->memory_type, out->memory_id));
}

static inf_err_t *
step_query(void *userp, const char *name, size_t *size,
    inf_memory_type_t *memory_type, int64_t *memory_id)
{
    inf_step_request_t *s = userp;
    uint32_t tensor = tensor_of(s, name);
    const inf_factory_t *client = s->client;

    if (tensor == INF_PLAN_NONE || client->sink->query == NULL
        || !inf_run_may_grant(s->run, tensor))
    {
        return inf_err_new(INF_ERR_UNAVAILABLE,
            "Output properties are not available");
    }
    return client->sink->query(client->userp,
        s->run->plan->tensors[tensor].name, size, memory_type, memory_id);
}

static void
step_complete(void *userp, inf_response_t *response, uint32_t flags)
{
    inf_step_request_t *s = userp;
    inf_ensemble_run_t *run = s->run;
    bool sent = response != NULL && response->sent
        && run->plan->max_inflight > 0;

    inf_factory_ref(&s->factory);       /* keeps the run                     */
    if (s->trace != NULL && response != NULL) {
        s->trace_ops->answer(s->trace, response);
    }
    if (sent) {
        inf_pause_enter(s->request.model, inf_run_deadline(run));
    }
    respond(s, response, flags);
    inf_run_drain(run);
    if (is_guilty(s) && atomic_load_explicit(&s->request.instance,
            memory_order_relaxed) != NULL)
    {
        await_answer(s);
    }
    if (sent) {
        inf_pause_leave();
    }
    inf_factory_unref(&s->factory);
}

/* Whether the process ends as soon as the thread that executes the step, or a
   step of it, returns to the backend. */
static bool
is_guilty(const inf_step_request_t *s)
{
    return atomic_load_explicit(&s->factory.gpu, memory_order_relaxed)
        == INF_GPU_GUILTY;
}

/* Waits for the answers of the step's ensemble and of those around it, which
   other threads may send.  Only the thread that executes waits: the others may
   be the ones that send. */
static void
await_answer(const inf_step_request_t *s)
{
    const struct timespec pause = { .tv_nsec = ANSWER_PAUSE_NS };
    int pauses = 0;

    while (s != NULL && pauses < ANSWER_PAUSES) {
        if (is_answered(s->run)) {
            s = s->client->sink == &step_sink ? s->client->userp : NULL;
        } else {
            (void) nanosleep(&pause, NULL);
            pauses++;
        }
    }
}

static bool
is_answered(inf_ensemble_run_t *run)
{
    inf_lock(&run->lock);
    bool answered = run->flow.answer == INF_FLOW_ANSWERED && !run->draining;
    inf_unlock(&run->lock);
    return answered;
}

static void
respond(inf_step_request_t *s, inf_response_t *response, uint32_t flags)
{
    inf_ensemble_run_t *run = s->run;
    const inf_plan_step_t *step = &run->plan->steps[s->call.step];
    inf_flow_value_t **values = NULL;
    inf_err_t *err = NULL;
    bool used = false;
    bool legal = true;

    if (response != NULL && response->err != NULL) {
        err = response->err;
        response->err = NULL;
    } else if (response != NULL) {
        values = make_values(s, response, &used);
        err = values != NULL ? NULL : inf_err_nomem();
    }

    inf_lock(&run->lock);
    if (response != NULL && s->call.ended) {
        legal = false;
        used = false;
        inf_err_free(err);
    } else if (err != NULL) {
        inf_flow_fail(&run->flow, err);
        if (is_guilty(s)) {
            inf_flow_answer_early(&run->flow);
        }
    } else if (response != NULL) {
        inf_flow_respond(&run->flow, &s->call, values,
            inf_pause_get);
    }
    if ((flags & INF_SEND_FINAL) || (response != NULL
            && step->out_domain == step->domain))
    {
        end_locked(run, s);
    }
    inf_run_leave(run);

    if (!legal) {
        inf_log(INF_LOG_WARN, "model=%s request=%s: the model sent too many"
            " responses to the ensemble '%s'; this one is dropped",
            step->model->name, s->factory.id, run->model->name);
    }
    if (!used) {
        inf_response_free(response);
    }
}

/* Makes a value for each output of the step; NULL: not given.  *used: there are
   values, and the last one frees the response.  Returns NULL: out of memory. */
static inf_flow_value_t **
make_values(inf_step_request_t *s, inf_response_t *response, bool *used)
{
    const inf_plan_step_t *step = &s->run->plan->steps[s->call.step];
    inf_arena_t *arena = &response->arena;
    inf_flow_value_t **list = inf_arena_calloc(arena, step->output_count + 1,
        sizeof(*list));
    inf_run_value_t *values = inf_arena_calloc(arena, step->output_count + 1,
        sizeof(*values));
    inf_run_source_t *source = inf_arena_calloc(arena, 1, sizeof(*source));
    if (list == NULL || values == NULL || source == NULL) {
        return NULL;
    }

    source->response = response;
    source->request = s;
    source->sequence = s->sequence;
    if (!read_sequence(&source->sequence, response)) {
        return NULL;
    }
    for (inf_output_t *out = response->first; out != NULL; out = out->next) {
        for (uint32_t i = 0; i < step->output_count; i++) {
            if (list[i] == NULL
                && strcmp(step->outputs[i].config->name.data, out->name) == 0)
            {
                values[i] = (inf_run_value_t) {
                    .source = source,
                    .output = out
                };
                list[i] = &values[i].base;
                source->values++;
                break;
            }
        }
    }
    *used = source->values > 0;
    return list;
}

/* Reads the sequence from the response's parameters, which replace the
   request's. false: out of memory. */
static bool
read_sequence(inf_run_sequence_t *sequence, inf_response_t *response)
{
    for (uint32_t i = 0; i < response->parameters.count; i++) {
        const inf_parameter_t *p = response->parameters.items[i];
        bool id = strcmp(p->name, "sequence_id") == 0;
        uint32_t flag = strcmp(p->name, "sequence_start") == 0
            ? INF_REQUEST_SEQUENCE_START
            : strcmp(p->name, "sequence_end") == 0
            ? INF_REQUEST_SEQUENCE_END : 0;

        if (id && p->type == INF_PARAMETER_INT) {
            sequence->correlation_id = (uint64_t) p->i;
            sequence->correlation_text = NULL;
            sequence->changed = true;
        } else if (id && p->type == INF_PARAMETER_STRING) {
            sequence->correlation_text = p->text;
            sequence->changed = true;
        } else if (flag != 0 && p->type == INF_PARAMETER_BOOL) {
            sequence->flags = p->b ? sequence->flags | flag
                : sequence->flags & ~flag;
            sequence->changed = true;
        }
    }

    const char *text = sequence->correlation_text;
    if (text != NULL) {
        sequence->correlation_text = inf_arena_strdup(&response->arena, text,
            strlen(text));
    }
    return text == NULL || sequence->correlation_text != NULL;
}

static void
end_locked(inf_ensemble_run_t *run, inf_step_request_t *s)
{
    if (!s->call.ended) {
        inf_flow_end(&run->flow, &s->call);
    }
}

static void
step_factory_free(void *userp, inf_factory_t *factory)
{
    inf_step_request_t *s = userp;
    inf_ensemble_run_t *run = s->run;

    inf_lock(&run->lock);
    bool forgotten = !s->call.ended;
    if (forgotten) {
        inf_flow_fail(&run->flow, inf_err_new(INF_ERR_INTERNAL, "backend '%s'"
            " of model '%s' released the request without a final response",
            inf_model_backend_name(factory->model), factory->model->name));
        end_locked(run, s);
    }
    inf_run_leave(run);

    if (forgotten) {
        inf_run_drain(run);
    }
    step_part_done(s);
}

/* Called when an instance executes the step: the whole request is executing. */
static void
step_executing(void *userp, inf_request_t *req)
{
    inf_step_request_t *s = userp;
    inf_ensemble_run_t *run = s->run;
    (void) req;

    inf_run_execution_t waits = INF_RUN_WAITS;
    if (atomic_load_explicit(&run->execution, memory_order_relaxed) == waits
        && atomic_compare_exchange_strong(&run->execution, &waits,
            INF_RUN_BEGUN))
    {
        inf_run_drain(run);
    }
}

static void
step_released(void *userp, inf_request_t *req, uint32_t flags)
{
    inf_step_request_t *s = userp;
    inf_ensemble_run_t *run = s->run;
    (void) flags;

    if (s->trace != NULL) {
        s->trace_ops->end(s->trace);
    }
    inf_lock(&run->lock);
    for (int i = 0; req->outcome == INF_OUTCOME_REPORTED && i < 3; i++) {
        if (req->backend_ns[i + 1] > req->backend_ns[i]) {
            run->compute_ns[i] += req->backend_ns[i + 1] - req->backend_ns[i];
        }
    }
    inf_flow_release(&run->flow, &s->call);
    inf_link_remove(&s->live);
    run->in_use--;
    inf_run_leave(run);

    inf_run_drain(run);
    step_part_done(s);        /* the releaser holds the factory            */
}

/* The tensor of an output; NONE: not mapped by the ensemble. */
static uint32_t
tensor_of(const inf_step_request_t *s, const char *output)
{
    const inf_plan_step_t *step = &s->run->plan->steps[s->call.step];

    for (uint32_t i = 0; i < step->output_count; i++) {
        if (strcmp(step->outputs[i].config->name.data, output) == 0) {
            return step->outputs[i].tensor;
        }
    }
    return INF_PLAN_NONE;
}
