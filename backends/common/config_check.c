/* config_check.c - see config_check.h */

#include "config_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MAX 512

static TRITONSERVER_Error *check_tensors(const bk_model_config_t *config,
    const bk_tensors_t *s, bool inputs);
static TRITONSERVER_Error *check_tensor(const bk_model_config_t *config,
    const bk_tensor_config_t *c, const bk_tensor_t *t, bool input,
    const char *what);
static TRITONSERVER_Error *check_dims(const bk_model_config_t *config,
    const bk_tensor_config_t *c, const bk_tensor_t *t);
static TRITONSERVER_Error *check_batch_tensors(
    const bk_model_config_t *config, const bk_tensors_t *s);
static TRITONSERVER_Error *check_batch_input(const bk_batch_input_t *in,
    const bk_tensors_t *s);
static TRITONSERVER_Error *check_controls(const bk_model_config_t *config,
    const bk_tensors_t *s);
static bool control_shape_matches(const bk_tensor_t *t, bool batching);
static TRITONSERVER_Error *check_states(const bk_model_config_t *config,
    const bk_tensors_t *s);
static TRITONSERVER_Error *check_required(const bk_model_config_t *config,
    const bk_tensors_t *s);
static TRITONSERVER_Error *other_count(const bk_model_config_t *config,
    const bk_tensors_t *s, const char *why, const char *name);
static TRITONSERVER_Error *unexpected_name(const char *what,
    const char *name, const bk_tensor_t *list, uint32_t count);
static TRITONSERVER_Error *unknown_name(const char *what, const char *name,
    const bk_tensor_t *list, uint32_t count);
static const char *names_of(const bk_tensor_t *list, uint32_t count,
    const char *quote, char *text, size_t size);

TRITONSERVER_Error *
bk_config_check(const bk_model_config_t *config, const bk_tensors_t *tensors)
{
    TRITONSERVER_Error *err = check_tensors(config, tensors, true);

    if (err == NULL) {
        err = check_tensors(config, tensors, false);
    }
    if (err == NULL) {
        err = check_batch_tensors(config, tensors);
    }
    if (err == NULL) {
        err = check_controls(config, tensors);
    }
    if (err == NULL) {
        err = check_states(config, tensors);
    }
    if (err == NULL) {
        err = check_required(config, tensors);
    }

    return err;
}

static TRITONSERVER_Error *
check_tensors(const bk_model_config_t *config, const bk_tensors_t *s,
    bool inputs)
{
    const bk_tensor_config_t *list = inputs ? config->inputs
        : config->outputs;
    uint32_t count = inputs ? config->input_count : config->output_count;
    const char *what = inputs ? "input" : "output";

    for (uint32_t i = 0; i < count; i++) {
        const char *name = list[i].name;
        const bk_tensor_t *t = inputs ? bk_tensors_input(s, name)
            : bk_tensors_output(s, name);

        if (t == NULL && inputs) {
            TRITONSERVER_Error *err = other_count(config, s,
                "the model has no", name);
            return err != NULL ? err
                : unexpected_name(what, name, s->inputs, s->input_count);
        }
        if (t == NULL) {
            return unexpected_name(what, name, s->outputs, s->output_count);
        }

        TRITONSERVER_Error *err = check_tensor(config, &list[i], t,
            inputs, what);
        if (err != NULL) {
            return err;
        }
    }

    return NULL;
}

static TRITONSERVER_Error *
check_tensor(const bk_model_config_t *config, const bk_tensor_config_t *c,
    const bk_tensor_t *t, bool input, const char *what)
{
    if (t->datatype == TRITONSERVER_TYPE_INVALID) {
        return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
            "%s \"%s\" of the model is not a tensor of a type that requests "
            "can carry", what, c->name);
    }

    if (t->datatype != c->datatype) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "unable to load model '%s', configuration expects datatype %s for "
            "%s '%s', model provides %s", config->name,
            bk_datatype_to_config(c->datatype), what, c->name,
            bk_datatype_to_config(t->datatype));
    }

    if (c->optional && !t->has_default) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "'optional' is set to true for input '%s' while the backend model "
            "doesn't support optional input: the model has no default for it",
            c->name);
    }

    if (!input && bk_batch_output_find(&config->batch, c->name) != NULL) {
        return NULL;                    /* split, for any shape              */
    }

    if (input && c->ragged && config->max_batch_size > 0) {
        return t->dims_count == 1 && t->dims[0] == -1 ? NULL
            : bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "input \"%s\" has allow_ragged_batch, but the model takes it in "
            "%" PRIu32 " dimensions; it needs one, open in size", c->name,
            t->dims_count);
    }

    return check_dims(config, c, t);
}

static TRITONSERVER_Error *
check_dims(const bk_model_config_t *config, const bk_tensor_config_t *c,
    const bk_tensor_t *t)
{
    uint32_t first = config->max_batch_size > 0 ? 1 : 0;
    char configured[TEXT_MAX];
    char found[TEXT_MAX];

    bk_dims_text(t->dims, t->dims_count, found, sizeof(found));
    if (first == 1 && (t->dims_count == 0 || t->dims[0] != -1)) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "model '%s', tensor '%s': for the model to support batching the "
            "shape should have at least 1 dimension and the first dimension "
            "must be -1; but shape expected by the model is %s "
            "(max_batch_size is %" PRId64 ")", config->name, c->name, found,
            config->max_batch_size);
    }

    bool same = t->dims_count == c->model_dims_count + first;
    for (uint32_t i = 0; same && i < c->model_dims_count; i++) {
        int64_t theirs = t->dims[i + first];
        int64_t ours = c->model_dims[i];
        same = theirs == ours || theirs == -1 || ours == -1;
    }

    if (t->dims_count == 0) {           /* one element, in any dimensions    */
        uint64_t elements;

        same = c->model_dims_count > 0 && bk_elements(c->model_dims,
            c->model_dims_count, &elements) && elements == 1;
    }

    if (same) {
        return NULL;
    }

    bk_dims_text(c->model_dims, c->model_dims_count, configured,
        sizeof(configured));
    return first == 0 ? bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
        "model '%s', tensor '%s': the model expects %" PRIu32 " dimensions "
        "(shape %s) but the model configuration specifies %" PRIu32
        " dimensions (shape %s)", config->name, c->name, t->dims_count, found,
        c->model_dims_count, configured)
        : bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
        "model '%s', tensor '%s': the model expects %" PRIu32 " dimensions "
        "(shape %s) but the model configuration specifies %" PRIu32
        " dimensions (an initial batch dimension because max_batch_size > 0 "
        "followed by the explicit tensor shape, making complete shape [-1%s%s)",
        config->name, c->name, t->dims_count, found, c->model_dims_count + 1,
        c->model_dims_count > 0 ? "," : "", configured + 1);
}

static TRITONSERVER_Error *
check_batch_tensors(const bk_model_config_t *config, const bk_tensors_t *s)
{
    for (uint32_t i = 0; i < config->batch.input_count; i++) {
        TRITONSERVER_Error *err = check_batch_input(&config->batch.inputs[i],
            s);
        if (err != NULL) {
            return err;
        }
    }

    for (uint32_t i = 0; i < config->batch.output_count; i++) {
        const bk_batch_output_t *out = &config->batch.outputs[i];

        if (bk_tensors_output(s, out->target) == NULL) {
            return unknown_name("batch output", out->target, s->outputs,
                s->output_count);
        }
        if (bk_tensors_input(s, out->source) == NULL) {
            return unknown_name("source of a batch output,", out->source,
                s->inputs, s->input_count);
        }
    }

    return NULL;
}

static TRITONSERVER_Error *
check_batch_input(const bk_batch_input_t *in, const bk_tensors_t *s)
{
    const bk_tensor_t *t = bk_tensors_input(s, in->target);
    char found[TEXT_MAX];

    if (t == NULL) {
        return unknown_name("batch input", in->target, s->inputs,
            s->input_count);
    }
    if (bk_tensors_input(s, in->source) == NULL) {
        return unknown_name("source of a batch input,", in->source,
            s->inputs, s->input_count);
    }
    if (t->datatype != in->datatype) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "batch input \"%s\" is configured as %s, the model has %s",
            in->target, bk_datatype_to_config(in->datatype),
            bk_datatype_to_config(t->datatype));
    }
    if (t->dims_count != bk_batch_input_rank(in)) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "batch input \"%s\" has %" PRIu32 " dimensions, the model has "
            "shape %s", in->target, bk_batch_input_rank(in),
            bk_dims_text(t->dims, t->dims_count, found, sizeof(found)));
    }

    return NULL;
}

static TRITONSERVER_Error *
check_controls(const bk_model_config_t *config, const bk_tensors_t *s)
{
    char found[TEXT_MAX];

    for (uint32_t i = 0; i < config->sequence.control_count; i++) {
        const bk_control_t *c = &config->sequence.controls[i];
        const bk_tensor_t *t = bk_tensors_input(s, c->name);

        if (t == NULL) {
            return unknown_name("control input", c->name, s->inputs,
                s->input_count);
        }

        if (t->datatype != c->datatype) {
            return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
                "control input \"%s\" is configured as %s, the model has %s",
                c->name, bk_datatype_to_config(c->datatype),
                bk_datatype_to_config(t->datatype));
        }

        if (!control_shape_matches(t, config->max_batch_size > 0)) {
            return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
                "control input \"%s\" has one element for each row of a "
                "batch, the model has shape %s", c->name, bk_dims_text(
                t->dims, t->dims_count, found, sizeof(found)));
        }
    }

    return NULL;
}

/* [N] or [N,1] with batches, without them any shape of one element. */
static bool
control_shape_matches(const bk_tensor_t *t, bool batching)
{
    bool same = !batching || (t->dims_count > 0 && t->dims[0] == -1);

    for (uint32_t i = batching ? 1 : 0; same && i < t->dims_count; i++) {
        same = t->dims[i] == 1 || t->dims[i] == -1;
    }

    return same;
}

static TRITONSERVER_Error *
check_states(const bk_model_config_t *config, const bk_tensors_t *s)
{
    for (uint32_t i = 0; i < config->sequence.state_count; i++) {
        const bk_state_t *state = &config->sequence.states[i];
        const bk_tensor_t *in = bk_tensors_input(s, state->input);
        const bk_tensor_t *out = bk_tensors_output(s, state->output);
        bk_tensor_config_t c = {
            .name = state->input, .datatype = state->datatype,
            .model_dims = state->dims, .model_dims_count = state->dims_count
        };

        if (in == NULL) {
            return unknown_name("state input", state->input, s->inputs,
                s->input_count);
        }
        if (out == NULL) {
            return unknown_name("state output", state->output, s->outputs,
                s->output_count);
        }

        TRITONSERVER_Error *err = check_tensor(config, &c, in, true,
            "state input");
        if (err == NULL) {
            c.name = state->output;
            err = check_tensor(config, &c, out, false, "state output");
        }
        if (err != NULL) {
            return err;
        }
    }

    return NULL;
}

static TRITONSERVER_Error *
check_required(const bk_model_config_t *config, const bk_tensors_t *s)
{
    for (uint32_t i = 0; i < s->required_count; i++) {
        const char *name = s->inputs[i].name;
        bool found = bk_sequence_has_input(&config->sequence, name)
            || bk_batch_input_find(&config->batch, name) != NULL;

        for (uint32_t k = 0; !found && k < config->input_count; k++) {
            found = strcmp(config->inputs[k].name, name) == 0;
        }

        if (!found) {
            TRITONSERVER_Error *err = other_count(config, s, "none is for",
                name);
            return err != NULL ? err
                : bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
                "input \"%s\" of the model is not in the configuration",
                name);
        }
    }

    return NULL;
}

/* NULL where the configuration has as many inputs as the model. */
static TRITONSERVER_Error *
other_count(const bk_model_config_t *config, const bk_tensors_t *s,
    const char *why, const char *name)
{
    uint32_t expected = config->input_count + config->batch.input_count
        + config->sequence.control_count + config->sequence.state_count;

    return expected == s->required_count ? NULL
        : bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
        "unable to load model '%s', configuration expects %" PRIu32
        " inputs, model provides %" PRIu32 ": %s '%s'", config->name,
        expected, s->required_count, why, name);
}

static TRITONSERVER_Error *
unexpected_name(const char *what, const char *name, const bk_tensor_t *list,
    uint32_t count)
{
    char names[TEXT_MAX];

    return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
        "unexpected inference %s '%s', allowed %ss are: %s", what, name, what,
        names_of(list, count, "", names, sizeof(names)));
}

static TRITONSERVER_Error *
unknown_name(const char *what, const char *name, const bk_tensor_t *list,
    uint32_t count)
{
    char names[TEXT_MAX];

    return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
        "%s \"%s\" of the configuration is not in the model, which has %s",
        what, name, names_of(list, count, "\"", names, sizeof(names)));
}

static const char *
names_of(const bk_tensor_t *list, uint32_t count, const char *quote,
    char *text, size_t size)
{
    size_t len = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < count && len < size; i++) {
        len += (size_t) snprintf(text + len, size - len, "%s%s%s%s",
            i == 0 ? "" : ", ", quote, list[i].name, quote);
    }

    return text;
}
