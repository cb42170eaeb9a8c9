#include "core/sched/sequence_inputs.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/sched/sequence_tables.h"

#define STATE_DIRECTORY "initial_state"
#define STATE_FILE_MAX ((size_t) 4 << 30)
#define STATE_MAX      (UINT64_C(1) << 40)

/* the generated name does not fit on a line */
#define STATE_DATA_FILE                                                      \
INFERENCE__MODEL_SEQUENCE_BATCHING__INITIAL_STATE__STATE_DATA_DATA_FILE

typedef Inference__ModelSequenceBatching__Control control_config_t;
typedef Inference__ModelSequenceBatching__State state_config_t;
typedef Inference__ModelSequenceBatching__InitialState initial_config_t;

/* The source of initial states. */
typedef struct {
    const inf_storage_t *st;
    const char          *model_dir;
    const inf_model_t   *model;
} source_t;

static inf_err_t *controls_make(inf_sequence_inputs_t *inputs,
    const Inference__ModelSequenceBatching *config);
static inf_err_t *control_make(const char *name,
    const control_config_t *config, inf_sequence_control_t *out);
static inf_err_t *states_make(inf_sequence_inputs_t *inputs,
    const source_t *from, const Inference__ModelSequenceBatching *config);
static bool state_is_known(const inf_sequence_inputs_t *inputs,
    const state_config_t *config);
static inf_err_t *state_make(const source_t *from,
    const state_config_t *config, inf_sequence_state_t *out);
static inf_err_t *state_shape(const inf_model_t *model,
    const state_config_t *config, inf_state_buffer_t *out);
static inf_err_t *state_file(const source_t *from, const char *file,
    inf_state_buffer_t *out);
static inf_err_t *check_strings(const char *data, size_t len, uint64_t want);

inf_err_t *
inf_sequence_inputs_new(const inf_storage_t *st, const char *model_dir,
    const inf_model_t *model, inf_sequence_inputs_t **out)
{
    const Inference__ModelConfig *msg = model->built;
    const source_t from = { st, model_dir, model };

    *out = NULL;
    if (msg->scheduling_choice_case
        != INFERENCE__MODEL_CONFIG__SCHEDULING_CHOICE_SEQUENCE_BATCHING)
    {
        return NULL;
    }

    inf_sequence_inputs_t *inputs = calloc(1, sizeof(*inputs));
    if (inputs == NULL) {
        return inf_err_nomem();
    }
    inputs->model = model;
    inputs->dim_count =
        inf_config_tensors_max_batch_size(model->tensors) > 0 ? 2 : 1;

    inf_err_t *err = controls_make(inputs, msg->sequence_batching);
    if (err == NULL) {
        err = states_make(inputs, &from, msg->sequence_batching);
    }
    if (err != NULL) {
        inf_sequence_inputs_free(inputs);
        return err;
    }

    *out = inputs;
    return NULL;
}

void
inf_sequence_inputs_free(inf_sequence_inputs_t *inputs)
{
    if (inputs == NULL) {
        return;
    }

    for (uint32_t i = 0; i < inputs->state_count; i++) {
        free(inputs->states[i].initial.base);
        free(inputs->states[i].initial.shape);
    }
    free(inputs->states);
    free(inputs);
}

bool
inf_sequence_inputs_keep(const inf_sequence_inputs_t *inputs)
{
    return inputs->state_count > 0;
}

inf_err_t *
inf_sequence_inputs_check(const inf_sequence_inputs_t *inputs,
    const inf_request_t *req)
{
    for (uint32_t i = 0; i < inputs->control_count; i++) {
        const inf_sequence_control_t *c = &inputs->controls[i];
        bool text = req->correlation_text != NULL;

        if (c->kind == INF_CONTROL_CORRID
            && text != (c->datatype == INF_TYPE_BYTES))
        {
            return inf_err_new(INF_ERR_INVALID_ARG, "sequence batching control"
                " '%s' data-type is '%s', but model '%s' expects '%s'",
                c->name, text ? "BYTES" : "UINT64", inputs->model->name,
                inf_datatype_name(c->datatype));
        }
    }

    return NULL;
}

bool
inf_sequence_bytes(inf_datatype_t datatype, const int64_t *shape,
    uint32_t dim_count, uint64_t *out)
{
    uint64_t bytes = datatype == INF_TYPE_BYTES ? sizeof(uint32_t)
        : inf_datatype_size(datatype);

    for (uint32_t i = 0; i < dim_count; i++) {
        if (shape[i] < 0
            || __builtin_mul_overflow(bytes, (uint64_t) shape[i], &bytes)
            || bytes > STATE_MAX)
        {
            return false;
        }
    }

    *out = bytes;
    return true;
}

/* Makes the controls; the configuration has at most one of each kind
   (checked). */
static inf_err_t *
controls_make(inf_sequence_inputs_t *inputs,
    const Inference__ModelSequenceBatching *config)
{
    for (size_t i = 0; i < config->n_control_input; i++) {
        const Inference__ModelSequenceBatching__ControlInput *input =
            config->control_input[i];

        for (size_t k = 0; k < input->n_control; k++) {
            if (inputs->control_count == INF_SEQUENCE_CONTROLS) {
                return inf_err_new(INF_ERR_INVALID_ARG, "sequence batching"
                    " control '%s': there are more controls than kinds",
                    input->name);
            }

            inf_err_t *err = control_make(input->name, input->control[k],
                &inputs->controls[inputs->control_count++]);
            if (err != NULL) {
                return err;
            }
        }
    }

    return NULL;
}

static inf_err_t *
control_make(const char *name, const control_config_t *config,
    inf_sequence_control_t *out)
{
    out->name = name;
    out->kind = (inf_control_kind_t) config->kind;

    if (out->kind == INF_CONTROL_CORRID) {
        out->datatype = (inf_datatype_t) config->data_type;
        out->size = out->datatype == INF_TYPE_BYTES ? sizeof(uint32_t)
            : inf_datatype_size(out->datatype);

    } else if (config->n_int32_false_true == 2) {
        out->datatype = INF_TYPE_INT32;
        out->size = sizeof(config->int32_false_true[0]);
        memcpy(out->values[0], &config->int32_false_true[0], out->size);
        memcpy(out->values[1], &config->int32_false_true[1], out->size);

    } else if (config->n_fp32_false_true == 2) {
        out->datatype = INF_TYPE_FP32;
        out->size = sizeof(config->fp32_false_true[0]);
        memcpy(out->values[0], &config->fp32_false_true[0], out->size);
        memcpy(out->values[1], &config->fp32_false_true[1], out->size);

    } else if (config->n_bool_false_true == 2) {
        out->datatype = INF_TYPE_BOOL;
        out->size = 1;
        out->values[0][0] = config->bool_false_true[0] != 0;
        out->values[1][0] = config->bool_false_true[1] != 0;
    }

    if ((unsigned) config->kind > INF_CONTROL_CORRID || out->size == 0
        || out->size > sizeof(out->values[0]))
    {
        return inf_err_new(INF_ERR_INVALID_ARG, "sequence batching control"
            " '%s' has no kind or no values", name);
    }
    return NULL;
}

static inf_err_t *
states_make(inf_sequence_inputs_t *inputs, const source_t *from,
    const Inference__ModelSequenceBatching *config)
{
    inputs->states = calloc(config->n_state + 1, sizeof(*inputs->states));
    if (inputs->states == NULL) {
        return inf_err_nomem();
    }

    for (size_t i = 0; i < config->n_state; i++) {
        const state_config_t *state = config->state[i];
        if (state_is_known(inputs, state)) {
            inf_log(INF_LOG_WARN, "model=%s version=%lld: a state with the"
                " input '%s' or the output '%s' is configured already, this"
                " one is ignored", from->model->name,
                (long long) from->model->version, state->input_name,
                state->output_name);
            continue;
        }

        inf_err_t *err = state_make(from, state,
            &inputs->states[inputs->state_count++]);
        if (err != NULL) {
            return inf_err_note(err, "state '%s'", state->input_name);
        }
    }

    return NULL;
}

static bool
state_is_known(const inf_sequence_inputs_t *inputs,
    const state_config_t *config)
{
    for (uint32_t i = 0; i < inputs->state_count; i++) {
        const inf_sequence_state_t *s = &inputs->states[i];
        if (strcmp(s->input_name, config->input_name) == 0
            || strcmp(s->output_name, config->output_name) == 0)
        {
            return true;
        }
    }

    return false;
}

static inf_err_t *
state_make(const source_t *from, const state_config_t *config,
    inf_sequence_state_t *out)
{
    inf_state_buffer_t *b = &out->initial;

    out->input_name = config->input_name;
    out->output_name = config->output_name;
    out->same_buffer = config->use_same_buffer_for_input_output;
    out->growable = config->use_growable_memory;
    b->datatype = (inf_datatype_t) config->data_type;

    if (config->input_name[0] == '\0' || config->output_name[0] == '\0') {
        return inf_err_new(INF_ERR_INVALID_ARG, "a state must have an"
            " input_name and an output_name");
    }
    if ((unsigned) config->data_type >= INF_TYPE_COUNT
        || b->datatype == INF_TYPE_INVALID)
    {
        return inf_err_new(INF_ERR_INVALID_ARG, "a state must have a"
            " data_type");
    }

    if (config->use_growable_memory && !out->same_buffer) {
        return inf_err_new(INF_ERR_INVALID_ARG, "use_growable_memory requires"
            " use_same_buffer_for_input_output");
    }

    inf_err_t *err = state_shape(from->model, config, b);
    if (err == NULL && config->n_initial_state > 0
        && config->initial_state[0]->state_data_case == STATE_DATA_FILE)
    {
        err = state_file(from, config->initial_state[0]->data_file, b);
    }
    return err;
}

/* The shape of a state of one batch item; a variable dimension is that of the
   initial state, or 1. */
static inf_err_t *
state_shape(const inf_model_t *model, const state_config_t *config,
    inf_state_buffer_t *out)
{
    const initial_config_t *initial = config->n_initial_state > 0
        ? config->initial_state[0] : NULL;
    uint32_t batched = inf_config_tensors_max_batch_size(model->tensors) > 0;
    size_t count = config->n_dims;
    uint64_t bytes;

    if (count + batched > INF_MAX_DIMS
        || (initial != NULL && initial->n_dims != count))
    {
        return inf_err_new(INF_ERR_INVALID_ARG, "%zu dims are not possible",
            initial != NULL ? initial->n_dims : count);
    }

    out->shape = calloc(count + 1, sizeof(*out->shape));
    if (out->shape == NULL) {
        return inf_err_nomem();
    }
    out->dim_count = (uint32_t) count + batched;
    out->shape[0] = 1;
    for (size_t i = 0; i < count; i++) {
        int64_t dim = initial != NULL ? initial->dims[i] : config->dims[i];
        out->shape[i + batched] = dim == -1 ? 1 : dim;
    }

    if (!inf_sequence_bytes(out->datatype, out->shape, out->dim_count, &bytes))
    {
        return inf_err_new(INF_ERR_INVALID_ARG, "its dims are negative or"
            " make it larger than %llu bytes", (unsigned long long) STATE_MAX);
    }
    out->size = bytes;
    return NULL;
}

static inf_err_t *
state_file(const source_t *from, const char *file, inf_state_buffer_t *out)
{
    char *data = NULL;
    size_t len = 0;

    inf_err_t *err = inf_storage_read_in(from->st, from->model_dir,
        STATE_DIRECTORY, file, STATE_FILE_MAX, &data, &len);
    out->base = data;
    if (err != NULL) {
        return inf_err_recode(err, INF_ERR_INTERNAL);
    }

    if (out->datatype == INF_TYPE_BYTES) {
        err = check_strings(data, len, out->size / sizeof(uint32_t));
        out->size = len;
        return inf_err_add(err, "initial_state: %s/%s/%s", from->model_dir,
            STATE_DIRECTORY, file);
    }

    return len >= out->size ? NULL : inf_err_new(INF_ERR_INVALID_ARG,
        "initial_state setting expects %zu bytes, but the data provided from"
        " %sonly has %zu bytes.", out->size, file, len);
}

/* Checks that data holds strings, each behind its length. */
static inf_err_t *
check_strings(const char *data, size_t len, uint64_t want)
{
    uint64_t seen = 0;
    size_t at = 0;

    while (at < len) {
        uint32_t size;

        if (len - at < sizeof(size)) {
            return inf_err_new(INF_ERR_INVALID_ARG, "the length of string"
                " element %llu is cut off", (unsigned long long) seen);
        }
        memcpy(&size, data + at, sizeof(size));
        at += sizeof(size);

        if (len - at < size) {
            return inf_err_new(INF_ERR_INVALID_ARG, "string element %llu has"
                " %u bytes, %zu are there", (unsigned long long) seen, size,
                len - at);
        }
        at += size;
        seen++;
    }

    return seen == want ? NULL : inf_err_new(INF_ERR_INVALID_ARG, "expected"
        " %llu string elements, got %llu", (unsigned long long) want,
        (unsigned long long) seen);
}
