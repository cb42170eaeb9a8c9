/* config_rules_state.c - rules of implicit sequence state. */

#include "core/model/config_validate.h"

#include "core/base/path.h"
#include "core/model/config_names.h"
#include "core/model/config_storage.h"

/* the generated names do not fit on a line */
#define STATE_ZERO_DATA                                                      \
INFERENCE__MODEL_SEQUENCE_BATCHING__INITIAL_STATE__STATE_DATA_ZERO_DATA
#define STATE_DATA_FILE                                                      \
INFERENCE__MODEL_SEQUENCE_BATCHING__INITIAL_STATE__STATE_DATA_DATA_FILE

typedef Inference__ModelSequenceBatching__State state_t;
typedef Inference__ModelSequenceBatching__InitialState initial_t;

static void find_initial(const Inference__ModelConfig *msg, size_t index,
    const state_t *state, inf_findings_t *f);
static void find_initial_dims(const char *model, const char *key,
    const state_t *state, const initial_t *initial, inf_findings_t *f);
static void find_initial_data(const char *model, const char *key,
    const state_t *state, const initial_t *initial, inf_findings_t *f);

void
inf_config_find_state(const Inference__ModelConfig *msg, inf_findings_t *f)
{
    if (msg->scheduling_choice_case
        != INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_SEQUENCE_BATCHING)
    {
        return;
    }

    const Inference__ModelSequenceBatching *s = msg->sequence_batching;
    char key[INF_KEY_MAX];
    inf_config_names_t seen;            /* inputs with an initial state */

    inf_config_names_init(&seen);
    for (size_t i = 0; i < s->n_state; i++) {
        const state_t *state = s->state[i];
        if (state->n_initial_state == 0) {
            continue;
        }

        switch (inf_config_names_add(&seen,
            inf_slice_str(state->input_name), 0))
        {
        case INF_CONFIG_NAMES_ADDED:
            break;
        case INF_CONFIG_NAMES_KNOWN:
            inf_findings_add(f, INF_ERR_INVALID_ARG,
                inf_key(key, "sequence_batching.state[%zu].input_name", i),
                "State input name '%s' specified more than once.",
                state->input_name);
            break;
        case INF_CONFIG_NAMES_NOMEM:
            f->lost++;
            break;
        }

        find_initial(msg, i, state, f);
    }

    inf_config_names_fini(&seen);
}

static void
find_initial(const Inference__ModelConfig *msg, size_t index,
    const state_t *state, inf_findings_t *f)
{
    char key[INF_KEY_MAX];
    inf_key(key, "sequence_batching.state[%zu].initial_state", index);

    if (state->n_initial_state > 1) {
        inf_findings_add(f, INF_ERR_INVALID_ARG, key, "initial_state field "
            "for state input '%s' must contain exactly one or zero element. "
            "Found '%zu' elements.", state->input_name,
            state->n_initial_state);
        return;
    }

    const initial_t *initial = state->initial_state[0];

    if (initial->data_type != state->data_type) {
        inf_findings_add(f, INF_ERR_INVALID_ARG, key, "The data type used "
            "for 'initial_state' field of state '%s' does not match the state "
            "data type.", state->input_name);
    }

    if (initial->name[0] == '\0') {
        inf_findings_add(f, INF_ERR_INVALID_ARG, key, "Field 'name' must be "
            "set when using initial_state for state input '%s'.",
            state->input_name);
    }

    find_initial_dims(msg->name, key, state, initial, f);
    find_initial_data(msg->name, key, state, initial, f);
}

static void
find_initial_dims(const char *model, const char *key, const state_t *state,
    const initial_t *initial, inf_findings_t *f)
{
    if (initial->n_dims != state->n_dims) {
        inf_findings_add(f, INF_ERR_INVALID_ARG, key, "Number of "
            "dimensions in 'initial_state' doesn't match the size of 'state' "
            "dimensions for state input '%s'. %zu != %zu", state->input_name,
            initial->n_dims, state->n_dims);
        return;
    }

    int64_t elements = 1;
    for (size_t i = 0; i < initial->n_dims; i++) {
        long long dim = initial->dims[i];
        long long expected = state->dims[i];

        if (dim < 1) {
            inf_findings_add(f, INF_ERR_INVALID_ARG, key, "'initial_state' "
                "field for state input name '%s' contains variable "
                "dimensions. Dimension %zu is %lld", state->input_name, i,
                dim);
            return;
        }

        if (expected != -1 && dim != expected) {
            inf_findings_add(f, INF_ERR_INVALID_ARG, key, "'initial_state' "
                "dim for input name '%s' doesn't match 'state' dim "
                "description. %lld != %lld", state->input_name, dim,
                expected);
            return;
        }

        if (__builtin_mul_overflow(elements, dim, &elements)) {
            inf_findings_add(f, INF_ERR_INVALID_ARG, key, "element count of "
                "'initial_state' exceeds maximum size of "
                "9223372036854775807 for state input '%s' for %s",
                state->input_name, model);
            return;
        }
    }
}

static void
find_initial_data(const char *model, const char *key, const state_t *state,
    const initial_t *initial, inf_findings_t *f)
{
    switch ((unsigned) initial->state_data_case) {
    case STATE_ZERO_DATA:
        return;

    case STATE_DATA_FILE:
        if (!inf_path_is_inner(initial->data_file)) {
            inf_findings_add(f, INF_ERR_INVALID_ARG, key, "file name '%s' "
                "must stay within the initial_state directory for %s: no "
                "leading slash and no '..'", initial->data_file, model);
        }

        return;

    default:
        inf_findings_add(f, INF_ERR_INVALID_ARG, key, "initial_state setting "
            "expects state'%s' to have state_data set", state->input_name);
    }
}
