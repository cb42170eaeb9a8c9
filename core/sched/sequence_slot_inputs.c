/* sequence_slot_inputs.c - adds controls and states to the requests of a slot,
   and makes padding requests for its empty rows. */

#include "core/base/refs.h"
#include "core/sched/sequence_inputs.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/sched/sequence_tables.h"
#include "core/tensor/copy.h"
#include "core/tensor/response.h"

/* A padding request.  In use from fill until its factory has ended; then
   reused. */
typedef struct padding_s {
    struct padding_s    *next;          /* in returned or idle               */
    inf_slot_inputs_t   *slot;
    inf_request_t        request;
    inf_factory_t        factory;
    inf_states_t        *states;        /* of no sequence; NULL: not needed  */
    char                *zeros;         /* shared by its inputs              */
    size_t               zero_count;
} padding_t;

struct inf_slot_inputs_s {
    _Atomic uint32_t             refs;  /* the owner, and each padding in use;
                                           up relaxed, down acq_rel          */
    const inf_sequence_inputs_t *inputs;    /* not used after close          */
    inf_instance_t              *instance;  /* not used after close          */
    inf_states_t                *states;    /* NULL: none yet                */
    padding_t                   *idle;  /* the slot's thread                 */
    _Atomic(padding_t *)         returned;  /* any thread adds: release;
                                               acquire                       */
};

static inf_err_t *states_begin(inf_slot_inputs_t *slot, bool start);
static inf_err_t *states_make(const inf_slot_inputs_t *slot,
    inf_states_t **out);
static inf_err_t *put_controls(const inf_sequence_inputs_t *inputs,
    inf_request_t *req, bool start, bool end, bool ready);
static inf_err_t *put_control(const inf_sequence_inputs_t *inputs,
    inf_request_t *req, const inf_sequence_control_t *control, bool value);
static inf_err_t *put_correlation(const inf_sequence_inputs_t *inputs,
    inf_request_t *req, const inf_sequence_control_t *control);
static void correlation_write(const inf_request_t *req,
    const inf_sequence_control_t *control, size_t size, unsigned char *out);
static inf_err_t *put_states(inf_request_t *req, inf_states_t *states);
static inf_err_t *put_input(inf_request_t *req, const char *name,
    inf_datatype_t datatype, const int64_t *shape, uint32_t dim_count,
    const inf_buffer_t *data);
static inf_input_t *find_added(const inf_request_t *req, const char *name);
static inf_err_t *put_shape(inf_request_t *req, inf_input_t *in,
    const int64_t *shape, uint32_t dim_count);
static padding_t *padding_take(inf_slot_inputs_t *slot);
static inf_err_t *padding_add_controls(padding_t *padding,
    const inf_request_t *like);
static bool is_added(const inf_sequence_inputs_t *inputs, const char *name);
static inf_err_t *padding_reserve(padding_t *padding,
    const inf_request_t *like);
static uint64_t padding_size(const inf_input_t *in);
static inf_err_t *padding_input(padding_t *padding, const inf_input_t *like);
static inf_err_t *padding_values(padding_t *padding, const inf_input_t *like,
    inf_buffer_t *out);
static inf_err_t *padding_states(padding_t *padding, const inf_states_t *like);
static void padding_free(padding_t *padding);
static void slot_unref(inf_slot_inputs_t *slot);
static void padding_released(void *userp, inf_request_t *request,
    uint32_t flags);
static void sink_complete(void *userp, inf_response_t *response,
    uint32_t flags);
static void sink_factory_free(void *userp, inf_factory_t *factory);

static const inf_sink_ops_t padding_sink = {
    .alloc = inf_output_alloc_heap,
    .release = inf_output_free_heap,
    .complete = sink_complete,
    .factory_free = sink_factory_free
};

static const inf_request_ops_t padding_ops = { .released = padding_released };

inf_err_t *
inf_slot_inputs_open(const inf_sequence_inputs_t *inputs,
    inf_instance_t *instance, inf_slot_inputs_t **out)
{
    inf_slot_inputs_t *slot = calloc(1, sizeof(*slot));
    if (slot == NULL) {
        return inf_err_nomem();
    }

    slot->refs = 1;
    slot->inputs = inputs;
    slot->instance = instance;
    *out = slot;
    return NULL;
}

void
inf_slot_inputs_close(inf_slot_inputs_t *slot)
{
    if (slot == NULL) {
        return;
    }

    inf_states_free(slot->states);
    slot->states = NULL;
    slot_unref(slot);
}

inf_err_t *
inf_slot_inputs_add_controls(inf_slot_inputs_t *slot, inf_request_t *req,
    bool start, bool end)
{
    const inf_sequence_inputs_t *inputs = slot->inputs;

    inf_err_t *err = inf_sequence_inputs_check(inputs, req);
    if (err == NULL) {
        err = put_controls(inputs, req, start, end, true);
    }
    if (err == NULL && inputs->state_count > 0) {
        err = states_begin(slot, start);
        if (err == NULL) {
            err = put_states(req, slot->states);
        }
    }
    return err;
}

inf_err_t *
inf_slot_inputs_fill(inf_slot_inputs_t *slot, const inf_request_t *like,
    inf_request_t **out)
{
    inf_model_t *model = slot->instance->model;

    *out = NULL;
    padding_t *padding = padding_take(slot);
    if (padding == NULL) {
        return inf_err_nomem();
    }

    inf_request_t *r = &padding->request;
    inf_request_reset(r);
    inf_factory_start(&padding->factory, model, "", &padding_sink, padding);
    padding->factory.padding = true;
    r->model = model;
    r->factory = &padding->factory;
    r->ops = &padding_ops;
    r->userp = padding;
    r->padding = true;
    r->batch_size = like->batch_size;

    inf_err_t *err = padding_add_controls(padding, like);
    if (err != NULL) {
        padding->next = slot->idle;
        slot->idle = padding;
        return err;
    }

    atomic_fetch_add_explicit(&slot->refs, 1, memory_order_relaxed);
    inf_model_ref(model);
    *out = r;
    return NULL;
}

/* The states that the sequence's last request has left, or new ones. */
static inf_err_t *
states_begin(inf_slot_inputs_t *slot, bool start)
{
    inf_err_t *err = NULL;

    if (slot->states == NULL) {
        return states_make(slot, &slot->states);
    }
    if (!start) {
        return NULL;
    }

    inf_state_t *s = slot->states->first;
    for (uint32_t i = 0; err == NULL && s != NULL; i++, s = s->next) {
        err = inf_state_renew(s, &slot->inputs->states[i].initial);
    }
    if (err != NULL) {
        inf_states_free(slot->states);
        slot->states = NULL;
    }
    return err;
}

static inf_err_t *
states_make(const inf_slot_inputs_t *slot, inf_states_t **out)
{
    const inf_sequence_inputs_t *inputs = slot->inputs;
    const inf_instance_spec_t *spec = slot->instance->spec;
    int64_t gpu = spec->kind == INF_INSTANCE_GPU ? spec->device_id
        : INF_GROWABLE_HOST;
    inf_err_t *err = NULL;

    inf_states_t *states = inf_states_new();
    if (states == NULL) {
        return inf_err_nomem();
    }

    for (uint32_t i = 0; err == NULL && i < inputs->state_count; i++) {
        const inf_sequence_state_t *s = &inputs->states[i];
        err = inf_states_add(states, s->output_name, s->input_name,
            s->same_buffer, &s->initial);
        if (err == NULL && s->growable) {
            err = inf_state_make_growable(states->last, gpu);
        }
    }
    if (err != NULL) {
        inf_states_free(states);
        return err;
    }

    *out = states;
    return NULL;
}

static inf_err_t *
put_controls(const inf_sequence_inputs_t *inputs, inf_request_t *req,
    bool start, bool end, bool ready)
{
    inf_err_t *err = NULL;

    for (uint32_t i = 0; err == NULL && i < inputs->control_count; i++) {
        const inf_sequence_control_t *c = &inputs->controls[i];

        switch (c->kind) {
        case INF_CONTROL_START:
            err = put_control(inputs, req, c, start);
            break;
        case INF_CONTROL_READY:
            err = put_control(inputs, req, c, ready);
            break;
        case INF_CONTROL_END:
            err = put_control(inputs, req, c, end);
            break;
        case INF_CONTROL_CORRID:
            err = ready ? put_correlation(inputs, req, c)
                : put_control(inputs, req, c, false);
            break;
        }
    }

    return err;
}

/* Adds a control; all requests share the model's bytes. */
static inf_err_t *
put_control(const inf_sequence_inputs_t *inputs, inf_request_t *req,
    const inf_sequence_control_t *control, bool value)
{
    static const int64_t shape[2] = { 1, 1 };
    const inf_buffer_t data = {
        .base = control->values[value], .size = control->size
    };

    return put_input(req, control->name, control->datatype, shape,
        inputs->dim_count, &data);
}

/* Adds the correlation id; later steps of a request reuse the memory. */
static inf_err_t *
put_correlation(const inf_sequence_inputs_t *inputs, inf_request_t *req,
    const inf_sequence_control_t *control)
{
    static const int64_t shape[2] = { 1, 1 };
    const inf_input_t *in = find_added(req, control->name);
    size_t size = control->size;

    if (control->datatype == INF_TYPE_BYTES) {
        size += strlen(req->correlation_text);
    }

    unsigned char *base = in != NULL && in->byte_size == size
        ? (unsigned char *) (uintptr_t) in->buffers[0].base
        : inf_arena_alloc(&req->arena, size);
    if (base == NULL) {
        return inf_err_nomem();
    }

    correlation_write(req, control, size, base);
    const inf_buffer_t data = { .base = base, .size = size };
    return put_input(req, control->name, control->datatype, shape,
        inputs->dim_count, &data);
}

/* Writes the id in little-endian, truncated to size. */
static void
correlation_write(const inf_request_t *req,
    const inf_sequence_control_t *control, size_t size, unsigned char *out)
{
    bool text = control->datatype == INF_TYPE_BYTES;
    uint64_t number = text ? size - control->size : req->correlation_id;

    for (uint32_t i = 0; i < control->size; i++) {
        out[i] = (unsigned char) (number >> (8 * i));
    }
    if (text) {
        memcpy(out + control->size, req->correlation_text,
            size - control->size);
    }
}

static inf_err_t *
put_states(inf_request_t *req, inf_states_t *states)
{
    inf_err_t *err = NULL;

    for (inf_state_t *s = states->first; err == NULL && s != NULL; s = s->next)
    {
        inf_state_begin(s);
        const inf_buffer_t data = {
            .base = s->input.base,
            .size = s->input.size,
            .memory_type = s->input.memory_type,
            .memory_id = s->input.memory_id
        };
        err = put_input(req, s->input_name, s->input.datatype,
            s->input.shape, s->input.dim_count, &data);
    }

    req->states = err == NULL ? states : NULL;
    return err;
}

/* Adds an input, or changes the one of that name. */
static inf_err_t *
put_input(inf_request_t *req, const char *name, inf_datatype_t datatype,
    const int64_t *shape, uint32_t dim_count, const inf_buffer_t *data)
{
    inf_input_t *in = find_added(req, name);
    inf_err_t *err = NULL;

    if (in != NULL && in->dim_count >= dim_count) {
        memcpy((int64_t *) (uintptr_t) in->shape, shape,
            dim_count * sizeof(*shape));
        in->dim_count = dim_count;
        in->model_dim_count = dim_count;

    } else if (in != NULL
        || (in = inf_request_find_input(req, name)) != NULL)
    {
        err = put_shape(req, in, shape, dim_count);

    } else {
        in = inf_request_add_input(req, name, strlen(name), datatype, shape,
            dim_count);
        req->inputs_added += in != NULL;
        err = in == NULL ? inf_err_nomem() : NULL;
    }
    if (err != NULL) {
        return err;
    }

    in->datatype = datatype;
    in->buffers = &in->one;
    in->buffer_cap = 1;
    in->buffer_count = 0;
    in->byte_size = 0;
    in->abi.attribute_count = 0;
    in->host_data = NULL;
    return inf_request_add_data(req, in, data);
}

/* The input added by an earlier step; NULL: none. */
static inf_input_t *
find_added(const inf_request_t *req, const char *name)
{
    for (uint32_t i = 0; i < req->inputs_added; i++) {
        inf_input_t *in = &req->inputs[req->input_count - 1 - i];
        if (strcmp(in->name, name) == 0) {
            return in;
        }
    }

    return NULL;
}

static inf_err_t *
put_shape(inf_request_t *req, inf_input_t *in, const int64_t *shape,
    uint32_t dim_count)
{
    int64_t *copy = inf_arena_alloc(&req->arena, dim_count * sizeof(*copy));
    if (copy == NULL) {
        return inf_err_nomem();
    }

    memcpy(copy, shape, dim_count * sizeof(*copy));
    in->shape = copy;
    in->dim_count = dim_count;
    in->model_shape = copy;
    in->model_dim_count = dim_count;
    return NULL;
}

/* Takes a returned padding request or creates one; NULL: out of memory. */
static padding_t *
padding_take(inf_slot_inputs_t *slot)
{
    if (slot->idle == NULL) {
        slot->idle = atomic_exchange_explicit(&slot->returned, NULL,
            memory_order_acquire);
    }

    padding_t *padding = slot->idle;
    if (padding != NULL) {
        slot->idle = padding->next;
        return padding;
    }

    padding = calloc(1, sizeof(*padding));
    if (padding != NULL) {
        padding->slot = slot;
        inf_request_init(&padding->request);
        inf_factory_init(&padding->factory);
    }
    return padding;
}

static inf_err_t *
padding_add_controls(padding_t *padding, const inf_request_t *like)
{
    const inf_sequence_inputs_t *inputs = padding->slot->inputs;

    inf_err_t *err = padding_reserve(padding, like);
    for (uint32_t i = 0; err == NULL && i < like->input_count; i++) {
        if (!is_added(inputs, like->inputs[i].name)) {
            err = padding_input(padding, &like->inputs[i]);
        }
    }
    if (err == NULL) {
        err = put_controls(inputs, &padding->request, false, false, false);
    }
    if (err == NULL && inputs->state_count > 0) {
        err = padding_states(padding, like->states);
        if (err == NULL) {
            err = put_states(&padding->request, padding->states);
        }
    }
    return err;
}

/* Whether the input is a control input, which is not copied. */
static bool
is_added(const inf_sequence_inputs_t *inputs, const char *name)
{
    for (uint32_t i = 0; i < inputs->control_count; i++) {
        if (strcmp(inputs->controls[i].name, name) == 0) {
            return true;
        }
    }
    for (uint32_t i = 0; i < inputs->state_count; i++) {
        if (strcmp(inputs->states[i].input_name, name) == 0) {
            return true;
        }
    }

    return false;
}

/* Allocates zeros for the largest input. */
static inf_err_t *
padding_reserve(padding_t *padding, const inf_request_t *like)
{
    uint64_t most = 0;

    for (uint32_t i = 0; i < like->input_count; i++) {
        const inf_input_t *in = &like->inputs[i];
        uint64_t size = padding_size(in);
        if (size > most && !is_added(padding->slot->inputs, in->name)) {
            most = size;
        }
    }
    if (most <= padding->zero_count) {
        return NULL;
    }

    char *more = calloc(1, most);
    if (more == NULL) {
        return inf_err_nomem();
    }

    free(padding->zeros);
    padding->zeros = more;
    padding->zero_count = most;
    return NULL;
}

/* The size in zeros; strings are empty. */
static uint64_t
padding_size(const inf_input_t *in)
{
    uint64_t bytes;

    return in->datatype == INF_TYPE_BYTES
        && inf_sequence_bytes(in->datatype, in->model_shape,
            in->model_dim_count, &bytes) ? bytes : in->byte_size;
}

static inf_err_t *
padding_input(padding_t *padding, const inf_input_t *like)
{
    inf_request_t *r = &padding->request;
    inf_buffer_t data = {
        .base = padding->zeros, .size = padding_size(like)
    };
    const inf_config_tensor_t *t = inf_config_tensors_find_input(
        r->model->tensors, inf_slice_str(like->name));
    inf_err_t *err = NULL;

    if (t != NULL && t->shape_tensor && like->byte_size > 0) {
        err = padding_values(padding, like, &data);
    }

    inf_input_t *in = err != NULL ? NULL : inf_request_add_input(r, like->name,
        strlen(like->name), like->datatype, like->shape, like->dim_count);
    if (in == NULL) {
        return err != NULL ? err : inf_err_nomem();
    }

    if (like->model_shape != like->shape) {
        size_t size = like->model_dim_count * sizeof(*like->model_shape);
        int64_t *shape = inf_arena_alloc(&r->arena, size);
        if (shape == NULL) {
            return inf_err_nomem();
        }
        memcpy(shape, like->model_shape, size);
        in->model_shape = shape;
        in->model_dim_count = like->model_dim_count;
    }

    return inf_request_add_data(r, in, &data);
}

/* Copies the values of a shape tensor, which zeros would make inconsistent. */
static inf_err_t *
padding_values(padding_t *padding, const inf_input_t *like, inf_buffer_t *out)
{
    const inf_place_t to = {
        inf_arena_alloc(&padding->request.arena, like->byte_size),
        INF_MEMORY_CPU, 0
    };
    inf_copies_t c;

    if (to.base == NULL) {
        return inf_err_nomem();
    }

    inf_copies_init(&c, inf_memory_shared());
    inf_err_t *err = inf_copies_gather(&c, &to, like->byte_size,
        like->buffers, like->buffer_count);
    inf_err_t *late = inf_copies_finish(&c);
    if (err == NULL) {
        err = late;
    } else {
        inf_err_free(late);
    }

    out->base = to.base;
    out->size = like->byte_size;
    return err;
}

/* Makes states of like's shapes, zeroed each time because a backend may write
   to them. */
static inf_err_t *
padding_states(padding_t *padding, const inf_states_t *like)
{
    const inf_sequence_inputs_t *inputs = padding->slot->inputs;
    const inf_state_t *model = like != NULL ? like->first : NULL;
    bool made = padding->states != NULL;
    inf_err_t *err = NULL;

    if (!made) {
        padding->states = inf_states_new();
        err = padding->states == NULL ? inf_err_nomem() : NULL;
    }

    inf_state_t *own = made ? padding->states->first : NULL;
    for (uint32_t i = 0; err == NULL && i < inputs->state_count; i++) {
        const inf_sequence_state_t *s = &inputs->states[i];
        inf_state_buffer_t b = model != NULL ? model->input : s->initial;
        uint64_t bytes;

        b.base = NULL;
        if (b.datatype == INF_TYPE_BYTES
            && inf_sequence_bytes(b.datatype, b.shape, b.dim_count, &bytes))
        {
            b.size = bytes;
        }
        err = made ? inf_state_renew(own, &b)
            : inf_states_add(padding->states, s->output_name, s->input_name,
                s->same_buffer, &b);
        own = own != NULL ? own->next : NULL;
        model = model != NULL ? model->next : NULL;
    }

    if (err != NULL) {
        inf_states_free(padding->states);
        padding->states = NULL;
    }
    return err;
}

static void
padding_free(padding_t *padding)
{
    while (padding != NULL) {
        padding_t *next = padding->next;

        inf_request_fini(&padding->request);
        inf_factory_fini(&padding->factory);
        inf_states_free(padding->states);
        free(padding->zeros);
        free(padding);
        padding = next;
    }
}

static void
slot_unref(inf_slot_inputs_t *slot)
{
    if (!inf_refs_drop(&slot->refs)) {
        return;
    }

    padding_free(slot->idle);
    padding_free(atomic_load_explicit(&slot->returned, memory_order_acquire));
    free(slot);
}

/* Does nothing: the backend may still hold the factory of a released padding
   request. */
static void
padding_released(void *userp, inf_request_t *request, uint32_t flags)
{
    (void) userp;
    (void) request;
    (void) flags;
}

static void
sink_complete(void *userp, inf_response_t *response, uint32_t flags)
{
    (void) userp;
    (void) flags;
    inf_response_free(response);
}

/* Gives a padding request back to its slot, which may be closed. */
static void
sink_factory_free(void *userp, inf_factory_t *factory)
{
    padding_t *padding = userp;
    inf_slot_inputs_t *slot = padding->slot;
    inf_model_t *model = factory->model;

    padding_t *first = atomic_load_explicit(&slot->returned,
        memory_order_relaxed);
    do {
        padding->next = first;
    } while (!atomic_compare_exchange_weak_explicit(&slot->returned, &first,
        padding, memory_order_release, memory_order_relaxed));

    slot_unref(slot);
    inf_model_unref(model);
}
