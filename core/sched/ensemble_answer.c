/* ensemble_answer.c - a run's responses to its client, and their memory. */

#include "core/sched/ensemble_run.h"

#include <string.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/model/reshape.h"
#include "core/sched/policy.h"
#include "core/tensor/copy.h"

static inf_err_t *add_outputs(inf_ensemble_run_t *run,
    inf_response_t *response, inf_flow_item_t *item);
static inf_err_t *add_output(inf_ensemble_run_t *run,
    inf_response_t *response, inf_flow_item_t *item, uint32_t tensor,
    inf_run_value_t *value);
static bool hand_over(inf_ensemble_run_t *run, inf_output_t *to,
    inf_run_value_t *value, bool move);
static inf_err_t *copy_output(inf_output_t *to, const void *base,
    uint64_t size, inf_memory_type_t type, int64_t id);
static inf_err_t *copy_input(inf_output_t *to, const inf_input_t *from);
static inf_err_t *make_room(inf_output_t *to, uint64_t size);
static inf_err_t *add_sequence(inf_response_t *response,
    const inf_run_sequence_t *sequence);
static inf_parameter_t *add_parameter(inf_response_t *response,
    const char *name, inf_parameter_type_t type);
static bool matches(const int64_t *shape, uint32_t count, const int64_t *dims,
    uint32_t dims_count);
static void note_first(inf_ensemble_run_t *run);

inf_run_sequence_t
inf_run_sequence(const inf_request_t *req)
{
    return (inf_run_sequence_t) {
        .correlation_id = req->correlation_id,
        .correlation_text = req->correlation_text,
        .flags = req->flags
    };
}

inf_run_value_t *
inf_run_value(const inf_ensemble_run_t *run, const inf_flow_item_t *item,
    uint32_t tensor)
{
    inf_flow_value_t *value = inf_flow_value(&run->flow, item, tensor);
    return value == NULL || value == &inf_flow_empty ? NULL
        : (inf_run_value_t *) (void *) value;
}

uint64_t
inf_run_deadline(const inf_ensemble_run_t *run)
{
    const inf_request_t *req = run->request;
    uint64_t ns;

    if (req->timeout_us == 0
        || __builtin_mul_overflow(req->timeout_us, UINT64_C(1000), &ns)
        || __builtin_add_overflow(req->start_ns, ns, &ns))
    {
        return INF_NEVER;
    }
    return ns;
}

void
inf_run_tell_start(inf_ensemble_run_t *run)
{
    const inf_factory_t *client = run->factory;

    if (client->sink->start != NULL
        && !atomic_exchange(&run->start_told, true))
    {
        client->sink->start(client->userp);
    }
}

/*
 * Whether the tensor may be in the client's memory.  Not if a step still reads
 * it after the client may free or change it, nor if it belongs to several
 * responses; and if the client counts the starts of responses, only if there
 * can be just one response.
 */
bool
inf_run_may_grant(inf_ensemble_run_t *run, uint32_t tensor)
{
    const inf_plan_t *plan = run->plan;
    const inf_plan_tensor_t *t = &plan->tensors[tensor];
    const inf_sink_ops_t *sink = run->factory->sink;

    if (t->output == NULL || !run->flow.wanted[t->output->index]
        || t->domain != run->flow.emit_domain
        || (sink->start != NULL && plan->domain_count > 1))
    {
        return false;
    }
    return run->flow.uses[tensor] == 1
        || (sink->share != NULL && !run->request->uses_regions);
}

void
inf_run_answer(inf_ensemble_run_t *run, const inf_flow_action_t *emit)
{
    inf_factory_t *client = run->factory;
    inf_response_t *response;

    inf_run_tell_start(run);
    inf_err_t *err = inf_response_new_started(client, &response);
    atomic_store_explicit(&run->start_told, false, memory_order_relaxed);
    if (err == NULL) {
        err = add_outputs(run, response, emit->item);
        if (err != NULL) {
            inf_response_free(response);
        }
    }

    inf_lock(&run->lock);
    inf_flow_emitted(&run->flow, emit->item);
    bool failed = err != NULL && !emit->final;
    if (failed) {
        inf_flow_fail(&run->flow, err);
    }
    inf_run_leave(run);
    if (failed) {
        return;                     /* FINISH sends the error                */
    }

    if (err != NULL) {
        run->failed = true;
        inf_factory_send_error(client, err);
        return;
    }
    if (emit->final) {
        atomic_store_explicit(&client->final, true, memory_order_relaxed);
    }
    note_first(run);
    inf_response_send(response, emit->final ? INF_SEND_FINAL : 0, NULL);
}

/* Sends an error or FINAL; of several errors the first, with the ensemble's
   name. */
void
inf_run_finish(inf_ensemble_run_t *run)
{
    inf_factory_t *client = run->factory;

    inf_lock(&run->lock);
    inf_err_t *err = run->flow.failure;
    run->flow.failure = NULL;
    if (run->flow.answers_early) {      /* for a step of another ensemble    */
        atomic_store_explicit(&client->gpu, INF_GPU_GUILTY,
            memory_order_relaxed);
    }
    inf_run_leave(run);

    atomic_store_explicit(&client->final, true, memory_order_relaxed);
    if (err == NULL) {
        inf_factory_send_flags(client, INF_SEND_FINAL);
        return;
    }

    run->failed = true;
    if (inf_err_cause(err) == INF_CAUSE_STRINGS) {
        /* counts as if no step had begun */
        run->request->outcome = INF_OUTCOME_REJECTED;
        if (run->request->whole == NULL) {
            err = inf_err_because(err, INF_CAUSE_NONE);
        }
        inf_factory_send_error(client, err);
        return;
    }
    if (inf_err_code(err) != INF_ERR_CANCELLED || inf_err_msg(err)[0] != '\0')
    {
        inf_err_t *named = inf_err_new(inf_err_code(err), "in ensemble '%s',"
            " %s", run->model->name, inf_err_msg(err));
        inf_err_free(err);
        err = named;
    }
    inf_factory_send_error(client, err);
}

uint32_t
inf_run_reconcile(const int64_t *shape, uint32_t dim_count, bool batched,
    const int64_t *dims, uint32_t dims_count, bool want_batch, int64_t *out)
{
    uint32_t skip = 0;
    uint32_t lead = 0;

    if (!batched && want_batch && matches(shape, dim_count, dims, dims_count))
    {
        out[0] = 1;
        lead = 1;
    } else if (batched && !want_batch && dim_count > 0 && shape[0] == 1
        && !matches(shape, dim_count, dims, dims_count))
    {
        skip = 1;
    }

    for (uint32_t i = skip; i < dim_count; i++) {
        out[lead + i - skip] = shape[i];
    }
    return lead + dim_count - skip;
}

static bool
matches(const int64_t *shape, uint32_t count, const int64_t *dims,
    uint32_t dims_count)
{
    bool ok = count == dims_count;

    for (uint32_t i = 0; ok && i < count; i++) {
        ok = dims[i] == -1 || dims[i] == shape[i];
    }
    return ok;
}

static inf_err_t *
add_outputs(inf_ensemble_run_t *run, inf_response_t *response,
    inf_flow_item_t *item)
{
    const inf_plan_t *plan = run->plan;
    inf_run_sequence_t sequence = inf_run_sequence(run->request);

    for (uint32_t o = 0; o < run->flow.output_count; o++) {
        uint32_t tensor = plan->outputs[o];
        if (!run->flow.wanted[o]) {
            continue;
        }

        inf_run_value_t *value = inf_run_value(run, item, tensor);
        if (value == NULL) {
            inf_slice_t name = plan->tensors[tensor].output->name;
            inf_log(INF_LOG_VERBOSE, "model=%s: Composing models did not"
                " output tensor %.*s", plan->model->name, (int) name.len,
                name.data);
            continue;               /* left out by its step                  */
        }
        if (!sequence.changed && value->source != NULL) {
            sequence = value->source->sequence;
        }

        inf_err_t *err = add_output(run, response, item, tensor, value);
        if (err != NULL) {
            return err;
        }
    }
    return add_sequence(response, &sequence);
}

static inf_err_t *
add_output(inf_ensemble_run_t *run, inf_response_t *response,
    inf_flow_item_t *item, uint32_t tensor, inf_run_value_t *value)
{
    const inf_plan_tensor_t *t = &run->plan->tensors[tensor];
    const inf_input_t *in = value->input;
    inf_output_t *from = value->output;
    uint32_t dims = in != NULL ? in->model_dim_count : from->dim_count;
    int64_t shape[INF_MAX_DIMS + 1];
    int64_t undone[2 * INF_MAX_DIMS];
    const inf_config_tensor_t *config = t->output;
    if (dims > INF_MAX_DIMS) {
        return inf_err_new(INF_ERR_INVALID_ARG, "tensor '%s' has %u"
            " dimensions, at most %d are possible", t->name, dims,
            INF_MAX_DIMS);
    }

    dims = inf_run_reconcile(in != NULL ? in->model_shape : from->shape, dims,
        t->batched, config->has_reshape ? config->reshape : config->dims,
        config->has_reshape ? config->reshape_count : config->dim_count,
        run->plan->batched, shape);
    if (config->has_reshape) {
        inf_err_t *err = inf_output_undo_reshape(run->model, config, shape,
            dims, undone, &dims);
        if (err != NULL) {
            return err;
        }
    }
    inf_output_t *to = inf_response_add_output(response, t->name,
        in != NULL ? in->datatype : from->datatype, config->has_reshape
        ? undone : shape, dims);
    if (to == NULL) {
        return inf_err_nomem();
    }
    if (in != NULL) {
        return copy_input(to, in);
    }

    inf_lock(&run->lock);
    bool move = inf_flow_may_move(&run->flow, item, tensor);
    inf_unlock(&run->lock);
    return hand_over(run, to, value, move) ? NULL : copy_output(to, from->base,
        from->byte_size, from->memory_type, from->memory_id);
}

/* Gives a value in the client's memory to the client, even without bytes. */
static bool
hand_over(inf_ensemble_run_t *run, inf_output_t *to, inf_run_value_t *value,
    bool move)
{
    inf_factory_t *client = run->factory;
    inf_output_t *from = value->output;

    if (!from->allocated
        || from->sched.step_request == value->source->request)
    {
        return false;
    }
    if (!move && (from->base == NULL || client->sink->share == NULL
            || !client->sink->share(client->userp, from)))
    {
        return false;
    }

    to->base = from->base;
    to->byte_size = from->byte_size;
    to->memory_type = from->memory_type;
    to->memory_id = from->memory_id;
    to->sink_userp = from->sink_userp;
    to->sched.step_request = from->sched.step_request;
    to->has_ipc_handle = from->has_ipc_handle;
    memcpy(to->ipc_handle, from->ipc_handle, sizeof(to->ipc_handle));
    to->allocated = true;
    if (move) {
        from->base = NULL;
    }
    return true;
}

static inf_err_t *
make_room(inf_output_t *to, uint64_t size)
{
    inf_err_t *err = inf_output_alloc(to, size);
    if (err == NULL && to->base == NULL && size > 0) {
        err = inf_err_new(INF_ERR_INTERNAL, "there is no buffer for the"
            " %llu bytes of output '%s'", (unsigned long long) size, to->name);
    }
    return err;
}

static inf_err_t *
copy_output(inf_output_t *to, const void *base, uint64_t size,
    inf_memory_type_t type, int64_t id)
{
    to->memory_type = type;
    to->memory_id = id;
    inf_err_t *err = make_room(to, size);
    if (err != NULL || size == 0) {
        return err;
    }
    return inf_memory_copy(inf_memory_shared(),
        &(inf_place_t) { to->base, to->memory_type, to->memory_id },
        &(inf_place_t) { (void *) (uintptr_t) base, type, id }, size);
}

/* Copies an input of the ensemble that is also an output. */
static inf_err_t *
copy_input(inf_output_t *to, const inf_input_t *from)
{
    inf_copies_t copies;

    to->memory_type = INF_MEMORY_CPU;
    inf_err_t *err = make_room(to, from->byte_size);
    if (err != NULL || from->byte_size == 0) {
        return err;
    }

    inf_copies_init(&copies, inf_memory_shared());
    err = inf_copies_gather(&copies,
        &(inf_place_t) { to->base, to->memory_type, to->memory_id },
        from->byte_size, from->buffers, from->buffer_count);
    inf_err_t *late = inf_copies_finish(&copies);
    if (err == NULL) {
        return late;
    }
    inf_err_free(late);
    return err;
}

static inf_err_t *
add_sequence(inf_response_t *response, const inf_run_sequence_t *sequence)
{
    bool text = sequence->correlation_text != NULL;
    inf_parameter_t *id = add_parameter(response, "sequence_id",
        text ? INF_PARAMETER_STRING : INF_PARAMETER_INT);
    inf_parameter_t *start = add_parameter(response, "sequence_start",
        INF_PARAMETER_BOOL);
    inf_parameter_t *end = add_parameter(response, "sequence_end",
        INF_PARAMETER_BOOL);
    if (id == NULL || start == NULL || end == NULL) {
        return inf_err_nomem();
    }

    if (text) {
        size_t len = strlen(sequence->correlation_text);
        id->text = inf_arena_strdup(&response->arena,
            sequence->correlation_text, len);
        id->text_len = len;
        if (id->text == NULL) {
            id->text = "";
            id->text_len = 0;
            return inf_err_nomem();
        }
    }
    id->i = (int64_t) sequence->correlation_id;
    start->b = sequence->flags & INF_REQUEST_SEQUENCE_START;
    end->b = sequence->flags & INF_REQUEST_SEQUENCE_END;
    return NULL;
}

static inf_parameter_t *
add_parameter(inf_response_t *response, const char *name,
    inf_parameter_type_t type)
{
    return inf_parameter_add(&response->parameters, &response->arena, name,
        strlen(name), type);
}

/* Notes the first response of the request. */
static void
note_first(inf_ensemble_run_t *run)
{
    inf_factory_t *f = run->factory;

    if (run->model->latencies != NULL && inf_factory_take_start(f) != 0) {
        inf_latencies_first_response(run->model->latencies,
            run->request->start_ns, inf_clock_ns());
    }
}
