#include "core/tensor/state.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/tensor/copy.h"

static void state_free(inf_state_t *state);
static inf_err_t *buffer_shape(inf_state_buffer_t *b, inf_datatype_t datatype,
    const int64_t *shape, uint32_t dim_count);
static inf_err_t *buffer_fit(inf_state_t *state, inf_state_buffer_t *b,
    size_t size, inf_memory_type_t type, int64_t id, bool keep);
static void buffer_move(inf_state_t *state, inf_state_buffer_t *b,
    const inf_place_t *place, size_t size);
static void buffer_give(inf_state_t *state, const inf_state_buffer_t *b);
static inf_err_t *buffer_grow(inf_state_buffer_t *b, size_t size,
    inf_growable_t *g);
static inf_err_t *buffer_place(const inf_state_buffer_t *b, size_t size,
    inf_place_t *place);
static inf_err_t *buffer_fill(const inf_state_buffer_t *b,
    const inf_place_t *to, size_t size, bool keep);
static inf_err_t *buffers_reset(const inf_state_t *state,
    const inf_state_buffer_t *initial);
static void buffer_swap(inf_state_buffer_t *a, inf_state_buffer_t *b);
static void buffer_free(inf_state_buffer_t *b);

inf_states_t *
inf_states_new(void)
{
    return calloc(1, sizeof(inf_states_t));
}

void
inf_states_free(inf_states_t *states)
{
    if (states == NULL) {
        return;
    }

    inf_state_t *state = states->first;
    while (state != NULL) {
        inf_state_t *next = state->next;
        state_free(state);
        state = next;
    }
    free(states);
}

inf_err_t *
inf_states_add(inf_states_t *states, const char *output_name,
    const char *input_name, bool same_buffer,
    const inf_state_buffer_t *initial)
{
    inf_state_t *state = calloc(1, sizeof(*state));
    if (state == NULL) {
        return inf_err_nomem();
    }

    state->output_name = strdup(output_name);
    state->input_name = strdup(input_name);
    state->same_buffer = same_buffer;

    inf_err_t *err = state->output_name == NULL || state->input_name == NULL
        ? inf_err_nomem()
        : buffer_shape(&state->input, initial->datatype, initial->shape,
            initial->dim_count);
    if (err == NULL) {
        err = buffer_shape(&state->output, initial->datatype, initial->shape,
            initial->dim_count);
    }
    if (err == NULL) {
        err = buffer_fit(state, &state->input, initial->size,
            INF_MEMORY_CPU_PINNED, 0, false);
    }
    if (err != NULL) {
        state_free(state);
        return inf_err_add(err, "state '%s'", output_name);
    }

    if (initial->base != NULL && initial->size > 0) {
        memcpy(state->input.base, initial->base, initial->size);
    }
    if (states->last == NULL) {
        states->first = state;
    } else {
        states->last->next = state;
    }
    states->last = state;
    return NULL;
}

inf_err_t *
inf_state_renew(inf_state_t *state, const inf_state_buffer_t *initial)
{
    inf_state_buffer_t *in = &state->input;

    state->read = NULL;
    inf_err_t *err = state->growable != NULL
        ? buffer_grow(in, initial->size, state->growable)
        : buffer_fit(state, in, initial->size, INF_MEMORY_CPU_PINNED, 0,
            false);
    if (err == NULL) {
        err = buffer_shape(in, initial->datatype, initial->shape,
            initial->dim_count);
    }
    if (err == NULL) {
        err = buffer_shape(&state->output, initial->datatype, initial->shape,
            initial->dim_count);
    }
    if (err == NULL) {
        err = buffers_reset(state, initial);
    }

    state->written = false;
    return inf_err_add(err, "state '%s'", state->output_name);
}

void
inf_state_begin(inf_state_t *state)
{
    buffer_free(&state->kept);
    state->kept.base = NULL;
    state->read = state->input.base;
}

inf_err_t *
inf_state_make_growable(inf_state_t *state, int64_t device)
{
    inf_state_buffer_t *b = &state->input;
    inf_growable_t *g;

    if (!state->same_buffer) {
        return inf_err_new(INF_ERR_INVALID_ARG, "state '%s': memory grows only"
            " where input and output are one buffer", state->output_name);
    }

    inf_err_t *err = inf_growable_new(inf_memory_shared(), device, &g);
    if (err == NULL) {
        err = inf_growable_fit(g, b->size);
    }
    if (err == NULL) {
        const inf_place_t place = {
            inf_growable_base(g), inf_growable_type(g), inf_growable_id(g)
        };
        err = buffer_fill(b, &place, b->size, true);
        if (err == NULL) {
            buffer_move(state, b, &place, b->size);
            state->growable = g;
            return NULL;
        }
    }

    inf_growable_free(g);
    return inf_err_add(err, "state '%s'", state->output_name);
}

inf_state_t *
inf_states_find(const inf_states_t *states, const char *output_name)
{
    inf_state_t *state = states->first;
    while (state != NULL && strcmp(state->output_name, output_name) != 0) {
        state = state->next;
    }
    return state;
}

inf_err_t *
inf_state_describe(inf_state_t *state, inf_datatype_t datatype,
    const int64_t *shape, uint32_t dim_count)
{
    if ((unsigned) datatype >= INF_TYPE_COUNT || dim_count > INF_MAX_DIMS) {
        return inf_err_new(INF_ERR_INVALID_ARG, "state '%s': datatype %d with"
            " %u dimensions is not possible", state->output_name,
            (int) datatype, dim_count);
    }

    return buffer_shape(&state->output, datatype, shape, dim_count);
}

inf_err_t *
inf_state_reserve(inf_state_t *state, size_t size, inf_memory_type_t *type,
    int64_t *id, void **out)
{
    inf_state_buffer_t *b = state->same_buffer ? &state->input
        : &state->output;
    inf_err_t *err = state->growable != NULL
        ? buffer_grow(b, size, state->growable)
        : buffer_fit(state, b, size, *type, *id, state->same_buffer);
    if (err != NULL) {
        return inf_err_add(err, "state '%s'", state->output_name);
    }

    state->written = true;
    *type = b->memory_type;
    *id = b->memory_id;
    *out = b->base;
    return NULL;
}

inf_err_t *
inf_state_commit(inf_state_t *state)
{
    if (!state->written) {
        return inf_err_new(INF_ERR_INVALID_ARG, "state '%s' has no buffer to"
            " commit: ask for one first", state->output_name);
    }

    inf_state_buffer_t *in = &state->input;
    inf_state_buffer_t *out = &state->output;
    inf_err_t *err = state->same_buffer ? NULL
        : buffer_fit(state, in, out->size, out->memory_type, out->memory_id,
            false);
    if (err == NULL) {
        err = buffer_shape(in, out->datatype, out->shape, out->dim_count);
    }
    if (err != NULL) {
        return inf_err_add(err, "state '%s'", state->output_name);
    }

    if (!state->same_buffer) {
        buffer_swap(in, out);
    }
    return NULL;
}

static void
state_free(inf_state_t *state)
{
    free((char *) state->output_name);
    free((char *) state->input_name);
    if (state->growable != NULL) {
        state->input.base = NULL;       /* is in the growable                */
        inf_growable_free(state->growable);
    }
    buffer_free(&state->input);
    buffer_free(&state->output);
    buffer_free(&state->kept);
    free(state->abi.attributes);
    free(state);
}

static inf_err_t *
buffer_shape(inf_state_buffer_t *b, inf_datatype_t datatype,
    const int64_t *shape, uint32_t dim_count)
{
    if (b->shape == NULL || b->dim_count != dim_count) {
        int64_t *other = calloc(dim_count + (size_t) 1, sizeof(*other));
        if (other == NULL) {
            return inf_err_nomem();
        }
        free(b->shape);
        b->shape = other;
        b->dim_count = dim_count;
    }

    if (dim_count > 0) {
        memmove(b->shape, shape, dim_count * sizeof(*shape));
    }
    b->datatype = datatype;
    return NULL;
}

/* Replaces b by memory of another size or kind (GPU, else pinned, else CPU);
   keep: keeps its bytes, the rest is zero.  On error nothing has changed. */
static inf_err_t *
buffer_fit(inf_state_t *state, inf_state_buffer_t *b, size_t size,
    inf_memory_type_t type, int64_t id, bool keep)
{
    inf_memory_t *memory = inf_memory_shared();
    inf_place_t place = { NULL, type, id };

    inf_err_t *err = buffer_place(b, size, &place);
    if (err != NULL || place.base == NULL) {
        return err;
    }

    err = buffer_fill(b, &place, size, keep);
    if (err != NULL) {
        inf_err_log(inf_memory_release(memory, place.base, place.type,
            place.id));
        return err;
    }

    buffer_move(state, b, &place, size);
    return NULL;
}

/* Sets b to the place and gives its old memory back. */
static void
buffer_move(inf_state_t *state, inf_state_buffer_t *b,
    const inf_place_t *place, size_t size)
{
    buffer_give(state, b);
    b->base = place->base;
    b->size = size;
    b->memory_type = place->type;
    b->memory_id = place->id;
}

/* Frees memory of b; a buffer that the running request reads is kept until the
   next one begins. */
static void
buffer_give(inf_state_t *state, const inf_state_buffer_t *b)
{
    if (b->base != NULL && b->base == state->read) {
        state->kept = *b;
        state->kept.shape = NULL;

    } else if (b->base != NULL) {
        inf_err_log(inf_memory_release(inf_memory_shared(), b->base,
            b->memory_type, b->memory_id));
    }
}

/* Changes the size in place; added bytes are zero. */
static inf_err_t *
buffer_grow(inf_state_buffer_t *b, size_t size, inf_growable_t *g)
{
    if (size > b->size) {
        const inf_place_t more = {
            (char *) b->base + b->size, b->memory_type, b->memory_id
        };
        inf_copies_t c;

        inf_err_t *err = inf_growable_fit(g, size);
        if (err != NULL) {
            return err;
        }

        inf_copies_init(&c, inf_memory_shared());
        err = inf_copies_zero(&c, &more, size - b->size);
        inf_err_t *late = inf_copies_finish(&c);
        if (err != NULL || late != NULL) {
            inf_err_free(err != NULL ? late : NULL);
            return err != NULL ? err : late;
        }
    }

    b->size = size;
    return NULL;
}

/* Allocates memory of the best kind from place's on; nothing if b has that kind
   and size. */
static inf_err_t *
buffer_place(const inf_state_buffer_t *b, size_t size, inf_place_t *place)
{
    inf_memory_t *memory = inf_memory_shared();

    for (;;) {
        inf_err_t *err = NULL;

        if (b->base != NULL && b->size == size
            && b->memory_type == place->type
            && (b->memory_id == place->id || place->type != INF_MEMORY_GPU))
        {
            return NULL;
        }
        if (inf_memory_has(memory, place->type, place->id)) {
            err = inf_memory_alloc(memory, place->type, place->id, size,
                &place->base);
        }
        if (place->base != NULL || place->type == INF_MEMORY_CPU) {
            return err;
        }

        inf_err_free(err);
        place->type = place->type == INF_MEMORY_GPU ? INF_MEMORY_CPU_PINNED
            : INF_MEMORY_CPU;
        place->id = 0;
    }
}

static inf_err_t *
buffer_fill(const inf_state_buffer_t *b, const inf_place_t *to, size_t size,
    bool keep)
{
    size_t kept = !keep || b->base == NULL ? 0 : b->size < size ? b->size
        : size;
    const inf_place_t from = { b->base, b->memory_type, b->memory_id };
    const inf_place_t rest = { (char *) to->base + kept, to->type, to->id };
    inf_copies_t c;

    inf_copies_init(&c, inf_memory_shared());
    inf_err_t *err = inf_copies_add(&c, to, &from, kept);
    if (err == NULL) {
        err = inf_copies_zero(&c, &rest, size - kept);
    }

    inf_err_t *late = inf_copies_finish(&c);
    if (err == NULL) {
        return late;
    }
    inf_err_log(late);
    return err;
}

/* Sets the initial bytes, and zeros the buffer to write. */
static inf_err_t *
buffers_reset(const inf_state_t *state, const inf_state_buffer_t *initial)
{
    const inf_state_buffer_t *in = &state->input;
    const inf_state_buffer_t *out = &state->output;
    const inf_place_t to = { in->base, in->memory_type, in->memory_id };
    const inf_place_t from = { initial->base, INF_MEMORY_CPU, 0 };
    inf_copies_t c;

    inf_copies_init(&c, inf_memory_shared());
    inf_err_t *err = initial->base != NULL
        ? inf_copies_add(&c, &to, &from, initial->size)
        : inf_copies_zero(&c, &to, initial->size);
    if (err == NULL && out->base != NULL) {
        const inf_place_t spare = {
            out->base, out->memory_type, out->memory_id
        };
        err = inf_copies_zero(&c, &spare, out->size);
    }

    inf_err_t *late = inf_copies_finish(&c);
    if (err == NULL) {
        return late;
    }
    inf_err_log(late);
    return err;
}

static void
buffer_swap(inf_state_buffer_t *a, inf_state_buffer_t *b)
{
    void *base = a->base;
    a->base = b->base;
    b->base = base;
}

static void
buffer_free(inf_state_buffer_t *b)
{
    if (b->base != NULL) {
        inf_err_log(inf_memory_release(inf_memory_shared(), b->base,
            b->memory_type, b->memory_id));
    }
    free(b->shape);
}
