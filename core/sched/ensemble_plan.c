#include "core/sched/ensemble_plan.h"

#include <stdlib.h>

#include "core/base/buf.h"
#include "core/include/datatype.h"
#include "core/model/config_names.h"
#include "core/sched/ensemble.h"
#include "core/sched/entrance.h"

typedef Inference__ModelEnsembling__Step step_config_t;

/* A tensor's datatype and shape, and the model that declared it first. */
typedef struct {
    const char    *by;              /* NULL: not declared yet                */
    uint32_t       datatype;
    uint32_t       dim_count;
    const int64_t *dims;            /* without the batch dimension           */
    bool           batched;
} signature_t;

/* The construction of a plan. */
typedef struct {
    inf_plan_t             *plan;
    const Inference__ModelEnsembling *config;
    inf_config_names_t      names;
    signature_t                 *signatures; /* by tensor                    */
    uint32_t               *ready;      /* steps with all inputs placed      */
    uint32_t                at;         /* the current step                  */
} making_t;

static inf_err_t *make(making_t *m, inf_model_t *const *composing);
static inf_err_t *make_room(making_t *m);
static inf_err_t *add_ends(making_t *m);
static inf_err_t *find_tensor(making_t *m, const char *name, uint32_t *out);
static inf_err_t *add_step(making_t *m, uint32_t index, inf_model_t *model);
static inf_err_t *check_batch(const making_t *m, const inf_model_t *model);
static inf_err_t *map_inputs(making_t *m, uint32_t index);
static inf_err_t *check_mapped(const making_t *m, uint32_t index);
static inf_err_t *map_outputs(making_t *m, uint32_t index);
static inf_err_t *connect_port(making_t *m, const inf_plan_step_t *step,
    const inf_config_tensor_t *t, const char *tensor, inf_plan_port_t *port);
static inf_err_t *agree(making_t *m, uint32_t tensor,
    const signature_t *signature);
static bool same_dims(const signature_t *a, const signature_t *b, bool whole);
static const char *config_type(uint32_t datatype);
static const char *put_shape(inf_buf_t *b, const signature_t *signature);
static inf_err_t *place_all(making_t *m);
static inf_err_t *link_consumers(making_t *m);
static bool is_on_gpu(const inf_model_t *model);
static inf_err_t *place_step(making_t *m, inf_plan_step_t *step);
static inf_err_t *list_domains(making_t *m);
static inf_err_t *find_needs(making_t *m);
static void need_producer(const inf_plan_t *plan, uint32_t tensor,
    uint64_t *set, uint32_t *queue, uint32_t *queued);

inf_err_t *
inf_plan_new(inf_model_t *model, inf_model_t *const *composing, size_t count,
    uint32_t *at, inf_plan_t **out)
{
    inf_plan_t *plan = calloc(1, sizeof(*plan));
    if (plan == NULL) {
        return inf_err_nomem();
    }

    inf_arena_init(&plan->arena);
    plan->model = model;
    plan->batched = inf_config_tensors_max_batch_size(model->tensors) > 0;

    making_t m = {
        .plan = plan,
        .config = model->built->ensemble_scheduling,
        .at = INF_PLAN_NONE
    };
    inf_err_t *err = count == m.config->n_step ? NULL
        : inf_err_new(INF_ERR_INTERNAL, "ensemble %s has %zu steps, but %zu"
            " models were found for it", model->name, m.config->n_step, count);

    inf_config_names_init(&m.names);
    if (err == NULL) {
        err = make(&m, composing);
    }
    inf_config_names_fini(&m.names);
    free(m.signatures);
    free(m.ready);

    if (at != NULL) {
        *at = m.at;
    }
    if (err != NULL) {
        inf_plan_free(plan);
        return err;
    }
    *out = plan;
    return NULL;
}

void
inf_plan_free(inf_plan_t *plan)
{
    if (plan == NULL) {
        return;
    }

    for (uint32_t i = 0; i < plan->step_count; i++) {
        inf_entrance_drop_user(plan->steps[i].model);
        inf_model_unref(plan->steps[i].model);
    }
    inf_arena_fini(&plan->arena);
    free(plan);
}

void
inf_plan_add_needs(const inf_plan_t *plan, uint32_t output,
    inf_plan_steps_t *set)
{
    const inf_plan_steps_t *needs = plan->needs + output * plan->step_words;

    for (uint32_t i = 0; i < plan->step_words; i++) {
        set[i] |= needs[i];
    }
}

static inf_err_t *
make(making_t *m, inf_model_t *const *composing)
{
    inf_plan_t *plan = m->plan;

    inf_err_t *err = make_room(m);
    if (err == NULL) {
        err = add_ends(m);
    }
    for (uint32_t i = 0; err == NULL && i < m->config->n_step; i++) {
        m->at = i;
        err = add_step(m, i, composing[i]);
    }
    if (err == NULL) {
        err = link_consumers(m);
    }
    if (err == NULL) {
        err = place_all(m);
    }
    if (err == NULL) {
        err = list_domains(m);
    }
    if (err == NULL) {
        err = find_needs(m);
    }

    plan->max_inflight = m->config->max_inflight_requests;
    return err;
}

/* Allocates all tables with their maximum size. */
static inf_err_t *
make_room(making_t *m)
{
    inf_plan_t *plan = m->plan;
    const inf_config_tensors_t *ends = plan->model->tensors;
    size_t steps = m->config->n_step;
    size_t most = inf_config_tensors_input_count(ends)
        + (size_t) inf_config_tensors_output_count(ends);

    for (size_t i = 0; i < steps; i++) {
        const step_config_t *step = m->config->step[i];
        most += step->n_input_map + step->n_output_map;
    }
    if (most >= INF_PLAN_NONE || steps >= INF_PLAN_NONE) {
        return inf_err_new(INF_ERR_INVALID_ARG, "ensemble %s has more tensors"
            " than can be counted", plan->model->name);
    }

    m->signatures = calloc(most + 1, sizeof(*m->signatures));
    m->ready = calloc(steps + 1, sizeof(*m->ready));
    plan->steps = inf_arena_calloc(&plan->arena, steps + 1,
        sizeof(*plan->steps));
    plan->tensors = inf_arena_calloc(&plan->arena, most + 1,
        sizeof(*plan->tensors));
    plan->domains = inf_arena_calloc(&plan->arena, steps + 1,
        sizeof(*plan->domains));
    return m->signatures != NULL && m->ready != NULL && plan->steps != NULL
        && plan->tensors != NULL && plan->domains != NULL ? NULL
        : inf_err_nomem();
}

/* Adds the ensemble's inputs and outputs. */
static inf_err_t *
add_ends(making_t *m)
{
    inf_plan_t *plan = m->plan;
    const inf_config_tensors_t *ends = plan->model->tensors;
    uint32_t in_count = inf_config_tensors_input_count(ends);
    uint32_t out_count = inf_config_tensors_output_count(ends);
    uint32_t *inputs = inf_arena_calloc(&plan->arena, in_count + 1,
        sizeof(*inputs));
    uint32_t *outputs = inf_arena_calloc(&plan->arena, out_count + 1,
        sizeof(*outputs));
    if (inputs == NULL || outputs == NULL) {
        return inf_err_nomem();
    }

    for (uint32_t i = 0; i < in_count + out_count; i++) {
        const inf_config_tensor_t *t = i < in_count
            ? inf_config_tensors_input(ends, i)
            : inf_config_tensors_output(ends, i - in_count);
        uint32_t *tensor = i < in_count ? &inputs[i] : &outputs[i - in_count];

        inf_err_t *err = find_tensor(m, t->name.data, tensor);
        if (err == NULL) {
            err = agree(m, *tensor, &(signature_t) {
                .by = plan->model->name,
                .datatype = t->datatype,
                .dim_count = t->has_reshape ? t->reshape_count : t->dim_count,
                .dims = t->has_reshape ? t->reshape : t->dims,
                .batched = plan->batched
            });
        }
        if (err != NULL) {
            return err;
        }

        plan->tensors[*tensor].batched = plan->batched;
        if (i >= in_count) {
            plan->tensors[*tensor].output = t;
        }
    }

    plan->inputs = inputs;
    plan->outputs = outputs;
    return NULL;
}

/* Finds the tensor of that name, or adds it. */
static inf_err_t *
find_tensor(making_t *m, const char *name, uint32_t *out)
{
    inf_plan_t *plan = m->plan;
    inf_slice_t slice = inf_slice_str(name);

    *out = plan->tensor_count;
    switch (inf_config_names_add(&m->names, slice, plan->tensor_count)) {
    case INF_CONFIG_NAMES_ADDED:
        plan->tensors[plan->tensor_count++] = (inf_plan_tensor_t) {
            .name = name,
            .producer = INF_PLAN_NONE,
            .domain = INF_PLAN_NONE
        };
        return NULL;
    case INF_CONFIG_NAMES_KNOWN:
        *out = inf_config_names_find(&m->names, slice);
        return NULL;
    case INF_CONFIG_NAMES_NOMEM:
        break;
    }

    return inf_err_nomem();
}

static inf_err_t *
add_step(making_t *m, uint32_t index, inf_model_t *model)
{
    inf_plan_t *plan = m->plan;
    inf_plan_step_t *step = &plan->steps[index];
    const step_config_t *config = m->config->step[index];

    inf_model_ref(model);
    inf_entrance_add_user(model);
    step->model = model;
    plan->step_count++;
    step->batched = inf_config_tensors_max_batch_size(model->tensors) > 0;
    step->inputs = inf_arena_calloc(&plan->arena, config->n_input_map + 1,
        sizeof(*step->inputs));
    step->outputs = inf_arena_calloc(&plan->arena, config->n_output_map + 1,
        sizeof(*step->outputs));
    if (step->inputs == NULL || step->outputs == NULL) {
        return inf_err_nomem();
    }

    uint32_t height = inf_ensemble_height(model);
    plan->height = height + 1 > plan->height ? height + 1 : plan->height;

    inf_err_t *err = check_batch(m, model);
    if (err == NULL) {
        err = map_inputs(m, index);
    }
    if (err == NULL) {
        err = check_mapped(m, index);
    }
    return err != NULL ? err : map_outputs(m, index);
}

static inf_err_t *
check_batch(const making_t *m, const inf_model_t *model)
{
    const inf_model_t *ensemble = m->plan->model;
    uint32_t whole = inf_config_tensors_max_batch_size(ensemble->tensors);
    uint32_t part = inf_config_tensors_max_batch_size(model->tensors);

    return part == 0 || part >= whole ? NULL : inf_err_new(INF_ERR_INVALID_ARG,
        "ensemble %s allows maximum batch size %u, but it contains model %s"
        " which only allows maximum batch size to be %u", ensemble->name,
        whole, model->name, part);
}

static inf_err_t *
map_inputs(making_t *m, uint32_t index)
{
    const char *name = m->plan->model->name;
    inf_plan_step_t *step = &m->plan->steps[index];
    const step_config_t *config = m->config->step[index];

    for (size_t i = 0; i < config->n_input_map; i++) {
        const char *key = config->input_map[i]->key;
        const char *value = config->input_map[i]->value;
        const inf_config_tensor_t *t = inf_config_tensors_find_input(
            step->model->tensors, inf_slice_str(key));

        if (t == NULL) {
            return inf_err_new(INF_ERR_INVALID_ARG, "in ensemble %s, ensemble"
                " tensor %s is mapping to non-existing input %s in model %s",
                name, value, key, step->model->name);
        }
        for (uint32_t k = 0; k < step->input_count; k++) {
            if (step->inputs[k].config == t) {
                return inf_err_new(INF_ERR_INVALID_ARG, "in ensemble %s, input"
                    " %s in model %s is mapped to multiple ensemble tensors",
                    name, key, step->model->name);
            }
        }

        inf_plan_port_t *port = &step->inputs[step->input_count];
        inf_err_t *err = connect_port(m, step, t, value, port);
        if (err != NULL) {
            return err;
        }
        step->input_count++;
    }

    return NULL;
}

static inf_err_t *
check_mapped(const making_t *m, uint32_t index)
{
    const inf_plan_step_t *step = &m->plan->steps[index];
    const inf_config_tensors_t *tensors = step->model->tensors;
    uint32_t count = inf_config_tensors_input_count(tensors);

    for (uint32_t i = 0; i < count; i++) {
        const inf_config_tensor_t *t = inf_config_tensors_input(tensors, i);
        bool mapped = t->optional;

        for (uint32_t k = 0; !mapped && k < step->input_count; k++) {
            mapped = step->inputs[k].config == t;
        }
        if (!mapped) {
            return inf_err_new(INF_ERR_INVALID_ARG, "in ensemble %s, input %s"
                " in model %s is not mapped to any ensemble tensors",
                m->plan->model->name, t->name.data, step->model->name);
        }
    }

    return NULL;
}

static inf_err_t *
map_outputs(making_t *m, uint32_t index)
{
    inf_plan_t *plan = m->plan;
    const char *name = plan->model->name;
    inf_plan_step_t *step = &plan->steps[index];
    const step_config_t *config = m->config->step[index];

    for (size_t i = 0; i < config->n_output_map; i++) {
        const char *key = config->output_map[i]->key;
        const char *value = config->output_map[i]->value;
        const inf_config_tensor_t *t = inf_config_tensors_find_output(
            step->model->tensors, inf_slice_str(key));

        if (t == NULL) {
            return inf_err_new(INF_ERR_INVALID_ARG, "in ensemble %s, ensemble"
                " tensor %s is mapped from non-existing output %s in model %s",
                name, value, key, step->model->name);
        }

        inf_plan_port_t *port = &step->outputs[step->output_count];
        inf_err_t *err = connect_port(m, step, t, value, port);
        if (err != NULL) {
            return err;
        }

        inf_plan_tensor_t *tensor = &plan->tensors[port->tensor];
        if (tensor->producer != INF_PLAN_NONE) {
            return inf_err_new(INF_ERR_INVALID_ARG, "in ensemble %s, ensemble"
                " tensor %s is written by more than one output, the last of"
                " them %s of model %s", name, value, key, step->model->name);
        }
        tensor->producer = index;
        tensor->batched = step->batched;
        step->output_count++;
    }

    return NULL;
}

/* Connects the model's tensor t to the ensemble's tensor of that name. */
static inf_err_t *
connect_port(making_t *m, const inf_plan_step_t *step,
    const inf_config_tensor_t *t, const char *tensor, inf_plan_port_t *port)
{
    inf_err_t *err = find_tensor(m, tensor, &port->tensor);
    if (err != NULL) {
        return err;
    }

    port->config = t;
    return agree(m, port->tensor, &(signature_t) {
        .by = step->model->name,
        .datatype = t->datatype,
        .dim_count = t->dim_count,
        .dims = t->dims,
        .batched = step->batched
    });
}

/* Compares signatures; variable sizes are compared by each request. */
static inf_err_t *
agree(making_t *m, uint32_t tensor, const signature_t *signature)
{
    signature_t *first = &m->signatures[tensor];

    if (first->by == NULL) {
        *first = *signature;
        m->plan->tensors[tensor].datatype = signature->datatype;
        return NULL;
    }

    if (first->datatype != signature->datatype) {
        return inf_err_new(INF_ERR_INVALID_ARG, "in ensemble %s, ensemble"
            " tensor %s: inconsistent data type: TYPE_%s is inferred from"
            " model %s while TYPE_%s is inferred from model %s",
            m->plan->model->name, m->plan->tensors[tensor].name,
            config_type(first->datatype), first->by,
            config_type(signature->datatype), signature->by);
    }

    if (same_dims(first, signature, false)
        || same_dims(first, signature, true))
    {
        return NULL;
    }

    inf_buf_t a, b;
    inf_buf_init(&a);
    inf_buf_init(&b);
    inf_err_t *err = inf_err_new(INF_ERR_INVALID_ARG, "in ensemble %s,"
        " ensemble tensor %s: inconsistent shape: %s is inferred from model %s"
        " while %s is inferred from model %s", m->plan->model->name,
        m->plan->tensors[tensor].name, put_shape(&a, first), first->by,
        put_shape(&b, signature), signature->by);
    inf_buf_fini(&a);
    inf_buf_fini(&b);
    return err;
}

/* The configuration's name of a datatype, without "TYPE_". */
static const char *
config_type(uint32_t datatype)
{
    return datatype == INF_TYPE_BYTES ? "STRING" : inf_datatype_name(datatype);
}

/* Compares dims; whole: including the batch dimension. */
static bool
same_dims(const signature_t *a, const signature_t *b, bool whole)
{
    uint32_t a_skip = whole && a->batched;
    uint32_t b_skip = whole && b->batched;
    uint32_t count = a->dim_count + a_skip;

    if (count != b->dim_count + b_skip) {
        return false;
    }

    for (uint32_t i = 0; i < count; i++) {
        int64_t x = i < a_skip ? -1 : a->dims[i - a_skip];
        int64_t y = i < b_skip ? -1 : b->dims[i - b_skip];
        if (x != y && x != -1 && y != -1) {
            return false;
        }
    }
    return true;
}

static const char *
put_shape(inf_buf_t *b, const signature_t *signature)
{
    inf_buf_puts(b, signature->batched ? "[-1" : "[");
    for (uint32_t i = 0; i < signature->dim_count; i++) {
        inf_buf_printf(b, "%s%lld", i > 0 || signature->batched ? "," : "",
            (long long) signature->dims[i]);
    }
    inf_buf_putc(b, ']');
    return inf_buf_slice(b).data;
}

static inf_err_t *
link_consumers(making_t *m)
{
    inf_plan_t *plan = m->plan;

    for (uint32_t s = 0; s < plan->step_count; s++) {
        const inf_plan_step_t *step = &plan->steps[s];
        for (uint32_t i = 0; i < step->input_count; i++) {
            plan->tensors[step->inputs[i].tensor].consumer_count++;
        }
    }

    for (uint32_t t = 0; t < plan->tensor_count; t++) {
        inf_plan_tensor_t *tensor = &plan->tensors[t];
        tensor->consumers = inf_arena_calloc(&plan->arena,
            tensor->consumer_count + 1, sizeof(*tensor->consumers));
        if (tensor->consumers == NULL) {
            return inf_err_nomem();
        }
        tensor->consumer_count = 0;
    }

    for (uint32_t s = 0; s < plan->step_count; s++) {
        const inf_plan_step_t *step = &plan->steps[s];
        for (uint32_t i = 0; i < step->input_count; i++) {
            inf_plan_tensor_t *t = &plan->tensors[step->inputs[i].tensor];
            uint32_t *list = (uint32_t *) (uintptr_t) t->consumers;
            if (t->consumer_count == 0 || list[t->consumer_count - 1] != s) {
                list[t->consumer_count++] = s;
            }
            t->to_gpu |= is_on_gpu(step->model);
        }
    }

    return NULL;
}

static bool
is_on_gpu(const inf_model_t *model)
{
    const Inference__ModelConfig *msg = model->built;

    for (size_t i = 0; i < msg->n_instance_group; i++) {
        if (msg->instance_group[i]->kind
            == INFERENCE__MODEL_INSTANCE_GROUP__KIND__KIND_GPU)
        {
            return true;
        }
    }

    return false;
}

/* Sets the domains, beginning with the inputs: a step has one when all its
   inputs do. */
static inf_err_t *
place_all(making_t *m)
{
    inf_plan_t *plan = m->plan;
    uint32_t ends = inf_config_tensors_input_count(plan->model->tensors);
    uint32_t placed = 0;

    plan->domain_count = 1;
    plan->domains[0].parent = INF_PLAN_NONE;
    for (uint32_t i = 0; i < ends; i++) {
        plan->tensors[plan->inputs[i]].domain = 0;
    }
    for (uint32_t s = 0; s < plan->step_count; s++) {
        plan->steps[s].out_domain = INF_PLAN_NONE;
    }

    for (bool more = true; more; ) {
        more = false;
        for (uint32_t s = 0; s < plan->step_count; s++) {
            inf_plan_step_t *step = &plan->steps[s];
            bool ready = step->out_domain == INF_PLAN_NONE;

            for (uint32_t i = 0; ready && i < step->input_count; i++) {
                ready = plan->tensors[step->inputs[i].tensor].domain
                    != INF_PLAN_NONE;
            }
            if (!ready) {
                continue;
            }

            m->at = s;
            inf_err_t *err = place_step(m, step);
            if (err != NULL) {
                return err;
            }
            placed++;
            more = true;
        }
    }

    m->at = INF_PLAN_NONE;
    return placed == plan->step_count ? NULL
        : inf_err_new(INF_ERR_INVALID_ARG, "ensemble %s has a step that can"
            " never start: what it reads depends on itself, or is not"
            " connected", plan->model->name);
}

static inf_err_t *
place_step(making_t *m, inf_plan_step_t *step)
{
    inf_plan_t *plan = m->plan;

    step->domain = plan->tensors[step->inputs[0].tensor].domain;
    for (uint32_t i = 1; i < step->input_count; i++) {
        if (plan->tensors[step->inputs[i].tensor].domain != step->domain) {
            return inf_err_new(INF_ERR_INVALID_ARG, "in ensemble %s, step of"
                " model '%s' receives inputs originated from different"
                " decoupled models", plan->model->name, step->model->name);
        }
    }

    step->out_domain = step->domain;
    if (inf_model_is_decoupled(step->model)) {
        step->out_domain = plan->domain_count++;
        plan->domains[step->out_domain] = (inf_plan_domain_t) {
            .parent = step->domain,
            .depth = plan->domains[step->domain].depth + 1
        };
    }
    for (uint32_t i = 0; i < step->output_count; i++) {
        plan->tensors[step->outputs[i].tensor].domain = step->out_domain;
    }
    return NULL;
}

static inf_err_t *
list_domains(making_t *m)
{
    inf_plan_t *plan = m->plan;

    for (uint32_t t = 0; t < plan->tensor_count; t++) {
        inf_plan_tensor_t *tensor = &plan->tensors[t];
        if (tensor->domain == INF_PLAN_NONE) {
            return inf_err_new(INF_ERR_INVALID_ARG, "in ensemble %s, ensemble"
                " tensor %s is not written", plan->model->name, tensor->name);
        }
        tensor->place = plan->domains[tensor->domain].tensor_count++;
    }

    for (uint32_t d = 0; d < plan->domain_count; d++) {
        inf_plan_domain_t *domain = &plan->domains[d];
        uint32_t *list = inf_arena_calloc(&plan->arena,
            domain->tensor_count + 1, sizeof(*list));
        if (list == NULL) {
            return inf_err_nomem();
        }
        for (uint32_t t = 0; t < plan->tensor_count; t++) {
            if (plan->tensors[t].domain == d) {
                list[plan->tensors[t].place] = t;
            }
        }
        domain->tensors = list;
        if (domain->tensor_count > plan->most_tensors) {
            plan->most_tensors = domain->tensor_count;
        }
    }
    return NULL;
}

/* Finds the steps that each output needs, going backwards. */
static inf_err_t *
find_needs(making_t *m)
{
    inf_plan_t *plan = m->plan;
    uint32_t outputs = inf_config_tensors_output_count(plan->model->tensors);
    plan->step_words = (plan->step_count + 63) / 64;

    uint64_t *needs = inf_arena_calloc(&plan->arena,
        (size_t) outputs * plan->step_words + 1, sizeof(*needs));
    if (needs == NULL) {
        return inf_err_nomem();
    }

    for (uint32_t o = 0; o < outputs; o++) {
        uint64_t *set = needs + (size_t) o * plan->step_words;
        uint32_t queued = 0;

        need_producer(plan, plan->outputs[o], set, m->ready, &queued);
        for (uint32_t i = 0; i < queued; i++) {
            const inf_plan_step_t *step = &plan->steps[m->ready[i]];
            for (uint32_t k = 0; k < step->input_count; k++) {
                need_producer(plan, step->inputs[k].tensor, set, m->ready,
                    &queued);
            }
        }
    }

    plan->needs = needs;
    return NULL;
}

static void
need_producer(const inf_plan_t *plan, uint32_t tensor, uint64_t *set,
    uint32_t *queue, uint32_t *queued)
{
    uint32_t step = plan->tensors[tensor].producer;

    if (step != INF_PLAN_NONE && !inf_plan_steps_has(set, step)) {
        set[step / 64] |= UINT64_C(1) << (step % 64);
        queue[(*queued)++] = step;
    }
}
