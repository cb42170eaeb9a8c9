#include "core/tensor/state.h"

#include <stdlib.h>
#include <string.h>

static void state_free(inf_state_t *state);
static inf_err_t *buffer_shape(inf_state_buffer_t *b, inf_datatype_t datatype,
    const int64_t *shape, uint32_t dim_count);
static inf_err_t *buffer_resize(inf_state_buffer_t *b, size_t size,
    const char *name);

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
        err = buffer_resize(&state->input, initial->size, output_name);
    }
    if (err != NULL) {
        state_free(state);
        return err;
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
inf_state_reserve(inf_state_t *state, size_t size, void **out)
{
    inf_state_buffer_t *b = state->same_buffer ? &state->input
        : &state->output;
    inf_err_t *err = b->base != NULL && b->size == size ? NULL
        : buffer_resize(b, size, state->output_name);
    if (err != NULL) {
        return err;
    }

    state->written = true;
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
    inf_err_t *err = state->same_buffer || in->size == out->size ? NULL
        : buffer_resize(in, out->size, state->output_name);
    if (err == NULL) {
        err = buffer_shape(in, out->datatype, out->shape, out->dim_count);
    }
    if (err != NULL || state->same_buffer) {
        return err;
    }

    void *written = out->base;
    out->base = in->base;
    in->base = written;
    return NULL;
}

static void
state_free(inf_state_t *state)
{
    free((char *) state->output_name);
    free((char *) state->input_name);
    free(state->input.base);
    free(state->input.shape);
    free(state->output.base);
    free(state->output.shape);
    free(state->attributes);
    free(state);
}

static inf_err_t *
buffer_shape(inf_state_buffer_t *b, inf_datatype_t datatype,
    const int64_t *shape, uint32_t dim_count)
{
    int64_t *copy = calloc(dim_count + (size_t) 1, sizeof(*copy));
    if (copy == NULL) {
        return inf_err_nomem();
    }
    if (dim_count > 0) {
        memcpy(copy, shape, dim_count * sizeof(*copy));
    }

    free(b->shape);
    b->shape = copy;
    b->dim_count = dim_count;
    b->datatype = datatype;
    return NULL;
}

/* Zeroed; keeps what fits of the old bytes. */
static inf_err_t *
buffer_resize(inf_state_buffer_t *b, size_t size, const char *name)
{
    char *base = realloc(b->base, size > 0 ? size : 1);
    if (base == NULL) {
        return inf_err_new(INF_ERR_UNAVAILABLE,
            "cannot allocate %zu bytes for state '%s'", size, name);
    }

    if (size > b->size) {
        memset(base + b->size, 0, size - b->size);
    }
    b->base = base;
    b->size = size;
    return NULL;
}
