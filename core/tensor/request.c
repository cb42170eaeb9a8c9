#include "core/tensor/request.h"

#include <assert.h>
#include <string.h>

#include "core/base/search.h"
#include "core/tensor/response.h"

#define BIT(s) (1u << (s))

static const unsigned request_may_become[] = {
    [INF_REQUEST_IDLE]      = BIT(INF_REQUEST_PENDING)
        | BIT(INF_REQUEST_PARKED) | BIT(INF_REQUEST_EXECUTING)
        | BIT(INF_REQUEST_RELEASED),
    [INF_REQUEST_PARKED]    = BIT(INF_REQUEST_EXECUTING),
    [INF_REQUEST_PENDING]   = BIT(INF_REQUEST_EXECUTING)
        | BIT(INF_REQUEST_RELEASED) | BIT(INF_REQUEST_IDLE)
        | BIT(INF_REQUEST_PENDING) | BIT(INF_REQUEST_REJECTED),
    [INF_REQUEST_EXECUTING] = BIT(INF_REQUEST_RELEASED)
        | BIT(INF_REQUEST_PENDING) | BIT(INF_REQUEST_PARKED),
    [INF_REQUEST_REJECTED]  = BIT(INF_REQUEST_RELEASED),
    [INF_REQUEST_RELEASED]  = BIT(INF_REQUEST_IDLE)
};

static int by_name(const void *name, const void *output);
static void give_copies(inf_request_t *r);

void
inf_request_init(inf_request_t *r)
{
    *r = (inf_request_t) { 0 };
    inf_link_init(&r->link);
    inf_arena_init(&r->arena);
    r->id = "";
}

void
inf_request_fini(inf_request_t *r)
{
    inf_arena_fini(&r->arena);
    give_copies(r);
}

void
inf_request_reset(inf_request_t *r)
{
    inf_arena_t arena = r->arena;
    inf_arena_reset(&arena);
    give_copies(r);
    *r = (inf_request_t) { 0 };
    inf_link_init(&r->link);
    r->arena = arena;
    r->id = "";
}

static void
give_copies(inf_request_t *r)
{
    if (r->copied_bytes != 0) {
        inf_budget_give(r->copies, r->copied_bytes);
        r->copied_bytes = 0;
    }
}

inf_input_t *
inf_request_add_input(inf_request_t *r, const char *name, size_t name_len,
    inf_datatype_t datatype, const int64_t *shape, uint32_t dim_count)
{
    if (r->input_count == r->input_cap) {
        void *inputs = inf_arena_grow(&r->arena, r->inputs, r->input_count,
            &r->input_cap, sizeof(*r->inputs));
        if (inputs == NULL) {
            return NULL;
        }

        r->inputs = inputs;
        for (uint32_t i = 0; i < r->input_count; i++) {
            inf_input_t *in = &r->inputs[i];
            if (in->buffer_cap == 1) {      /* the inline buffer was moved   */
                in->buffers = &in->one;
            }
        }
    }

    char *copy = inf_arena_strdup(&r->arena, name, name_len);
    int64_t *dims = inf_arena_alloc(&r->arena, dim_count * sizeof(*dims));
    if (copy == NULL || dims == NULL) {
        return NULL;
    }
    if (dim_count > 0) {
        memcpy(dims, shape, dim_count * sizeof(*dims));
    }

    inf_input_t *in = &r->inputs[r->input_count++];
    *in = (inf_input_t) {
        .name = copy,
        .datatype = datatype,
        .dim_count = dim_count,
        .shape = dims,
        .model_dim_count = dim_count,
        .model_shape = dims,
        .buffer_cap = 1,
        .arena = &r->arena
    };
    in->buffers = &in->one;
    return in;
}

inf_err_t *
inf_request_add_data(inf_request_t *r, inf_input_t *input,
    const inf_buffer_t *buffer)
{
    if (buffer->size == 0) {
        return NULL;
    }

    if (input->byte_size + buffer->size < input->byte_size) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "input '%s': byte size overflows", input->name);
    }

    if (input->buffer_count == input->buffer_cap) {
        void *buffers = inf_arena_grow(&r->arena, input->buffers,
            input->buffer_count, &input->buffer_cap, sizeof(inf_buffer_t));
        if (buffers == NULL) {
            return inf_err_nomem();
        }
        input->buffers = buffers;
    }

    input->buffers[input->buffer_count++] = *buffer;
    input->byte_size += buffer->size;
    return NULL;
}

inf_input_t *
inf_request_find_input(const inf_request_t *r, const char *name)
{
    for (uint32_t i = 0; i < r->input_count; i++) {
        if (strcmp(r->inputs[i].name, name) == 0) {
            return &r->inputs[i];
        }
    }

    return NULL;
}

inf_err_t *
inf_request_add_output(inf_request_t *r, const char *name, size_t name_len)
{
    char *copy = inf_arena_strdup(&r->arena, name, name_len);
    if (copy == NULL) {
        return inf_err_nomem();
    }

    const char **outputs = (const char **) r->outputs;
    if (r->output_count == r->output_cap) {
        outputs = inf_arena_grow(&r->arena, r->outputs, r->output_count,
            &r->output_cap, sizeof(*outputs));
        if (outputs == NULL) {
            return inf_err_nomem();
        }
        r->outputs = outputs;
    }

    outputs[r->output_count++] = copy;
    return NULL;
}

bool
inf_request_wants_output(const inf_request_t *r, const char *name)
{
    bool found;

    (void) inf_search(name, r->outputs, r->output_count, sizeof(*r->outputs),
        by_name, &found);
    return found;
}

static int
by_name(const void *name, const void *output)
{
    return strcmp(name, *(const char *const *) output);
}

inf_err_t *
inf_request_name_error(const inf_request_t *r, inf_err_t *err)
{
    if (inf_err_cause(err) == INF_CAUSE_UNNAMED) {
        return inf_err_because(err, INF_CAUSE_NONE);
    }

    inf_err_t *named = inf_err_because(inf_err_new(inf_err_code(err),
        "[request id: %s] %s", r->id[0] != '\0' ? r->id : "<id_unknown>",
        inf_err_msg(err)), inf_err_cause(err));

    inf_err_free(err);
    return named;
}

void
inf_request_release(inf_request_t *r, uint32_t flags)
{
    if (r->sched.leaves != NULL) {
        void (*leaves)(inf_request_t *) = r->sched.leaves;
        r->sched.leaves = NULL;
        leaves(r);
    }
    inf_request_move(r, INF_REQUEST_RELEASED);

    inf_factory_t *factory = r->factory;
    r->factory = NULL;
    if (factory != NULL && factory->ledger != NULL) {
        atomic_store_explicit(&factory->request, NULL, memory_order_relaxed);
    }

    const inf_request_ops_t *ops = r->ops;
    void *userp = r->userp;
    ops->released(userp, r, flags);

    inf_factory_unref(factory);
}

void
inf_request_move(inf_request_t *r, inf_request_state_t to)
{
    assert(request_may_become[r->state] & BIT(to));
    atomic_store_explicit(&r->state, to, memory_order_relaxed);
}
