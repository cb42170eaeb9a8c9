/* sequence_tensors.c - see sequence_tensors.h */

#include "sequence_tensors.h"

#include "datatype.h"

#include <stdlib.h>
#include <string.h>

#define MAX_DIMS 64

static TRITONSERVER_Error *control_load(const bk_json_t *v,
    bk_control_t *control);
static TRITONSERVER_Error *state_load(const bk_json_t *v, bk_state_t *state);

TRITONSERVER_Error *
bk_sequence_tensors_load(bk_sequence_tensors_t *t, const bk_json_t *config)
{
    const bk_json_t *all = bk_json_member(config, "sequence_batching");
    const bk_json_t *controls = bk_json_member(all, "control_input");
    const bk_json_t *states = bk_json_member(all, "state");

    *t = (bk_sequence_tensors_t) {
        .controls = calloc(bk_json_count(controls) + 1,
            sizeof(*t->controls)),
        .states = calloc(bk_json_count(states) + 1, sizeof(*t->states))
    };
    if (t->controls == NULL || t->states == NULL) {
        return bk_err_nomem("sequence tensors");
    }

    for (size_t i = 0; i < bk_json_count(controls); i++) {
        TRITONSERVER_Error *err = control_load(bk_json_at(controls, i),
            &t->controls[t->control_count++]);
        if (err != NULL) {
            return err;
        }
    }

    for (size_t i = 0; i < bk_json_count(states); i++) {
        TRITONSERVER_Error *err = state_load(bk_json_at(states, i),
            &t->states[t->state_count++]);
        if (err != NULL) {
            return err;
        }
    }

    return NULL;
}

void
bk_sequence_tensors_fini(bk_sequence_tensors_t *t)
{
    for (uint32_t i = 0; i < t->state_count; i++) {
        free(t->states[i].dims);
    }
    free(t->controls);
    free(t->states);
    *t = (bk_sequence_tensors_t) { 0 };
}

bool
bk_sequence_has_input(const bk_sequence_tensors_t *t, const char *name)
{
    bool found = bk_sequence_has_control(t, name);

    for (uint32_t i = 0; !found && i < t->state_count; i++) {
        found = strcmp(t->states[i].input, name) == 0;
    }

    return found;
}

bool
bk_sequence_has_control(const bk_sequence_tensors_t *t, const char *name)
{
    bool found = false;

    for (uint32_t i = 0; !found && i < t->control_count; i++) {
        found = strcmp(t->controls[i].name, name) == 0;
    }

    return found;
}

bool
bk_sequence_has_output(const bk_sequence_tensors_t *t, const char *name)
{
    bool found = false;

    for (uint32_t i = 0; !found && i < t->state_count; i++) {
        found = strcmp(t->states[i].output, name) == 0;
    }

    return found;
}

/* The datatype follows from the list of two values (false, true); the control
 * of the correlation id has a data_type. */
static TRITONSERVER_Error *
control_load(const bk_json_t *v, bk_control_t *control)
{
    const bk_json_t *first = bk_json_at(bk_json_member(v, "control"), 0);
    const char *type = bk_json_string(bk_json_member(first, "data_type"), "");

    control->name = bk_json_string(bk_json_member(v, "name"), "");
    control->datatype = bk_datatype_of_config(type);
    if (bk_json_count(bk_json_member(first, "int32_false_true")) != 0) {
        control->datatype = TRITONSERVER_TYPE_INT32;

    } else if (bk_json_count(bk_json_member(first, "fp32_false_true")) != 0) {
        control->datatype = TRITONSERVER_TYPE_FP32;

    } else if (bk_json_count(bk_json_member(first, "bool_false_true")) != 0) {
        control->datatype = TRITONSERVER_TYPE_BOOL;
    }

    return control->datatype != TRITONSERVER_TYPE_INVALID ? NULL
        : bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
        "control input \"%s\" has no datatype", control->name);
}

static TRITONSERVER_Error *
state_load(const bk_json_t *v, bk_state_t *state)
{
    const bk_json_t *dims = bk_json_member(v, "dims");
    const char *type = bk_json_string(bk_json_member(v, "data_type"), "");
    size_t n = bk_json_count(dims);

    *state = (bk_state_t) {
        .input = bk_json_string(bk_json_member(v, "input_name"), ""),
        .output = bk_json_string(bk_json_member(v, "output_name"), ""),
        .datatype = bk_datatype_of_config(type)
    };
    if (state->datatype == TRITONSERVER_TYPE_INVALID || n > MAX_DIMS) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "state \"%s\" has data_type \"%s\" and %zu dimensions",
            state->input, type, n);
    }

    state->dims = calloc(n + 1, sizeof(*state->dims));
    if (state->dims == NULL) {
        return bk_err_nomem("dimensions of a state");
    }

    for (size_t i = 0; i < n; i++) {
        state->dims[i] = bk_json_int(bk_json_at(dims, i), 0);
    }
    state->dims_count = (uint32_t) n;
    return NULL;
}
