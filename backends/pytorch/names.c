/* names.c - see names.h */

#include "names.h"

#include "element_type.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_INDEX  UINT32_MAX
#define TEXT_MAX  1024
#define INDEX_MAX 100000u

/* The names of a table's tensors, in one of three ways. */
typedef enum {
    BY_NAME,                    /* all as the file has them                  */
    BY_INDEX,                   /* all NAME__INDEX                           */
    BY_ORDER
} convention_t;

static TRITONSERVER_Error *find_inputs(pt_places_t *p,
    const bk_model_config_t *config, const bk_tensors_t *tensors,
    const pt_signature_t *s);
static convention_t inputs_convention(const bk_model_config_t *config,
    const pt_signature_t *s);
static TRITONSERVER_Error *check_parameters(const pt_places_t *p,
    const bk_model_config_t *config, const bk_tensors_t *tensors,
    const pt_signature_t *s);
static TRITONSERVER_Error *check_parameter(const bk_model_config_t *config,
    const bk_tensor_t *t, const pt_parameter_t *parameter);
static TRITONSERVER_Error *find_outputs(pt_places_t *p,
    const bk_model_config_t *config, const bk_tensors_t *tensors,
    const pt_signature_t *s);
static bool is_package(const pt_signature_t *s);
static TRITONSERVER_Error *check_rank(const bk_model_config_t *config,
    const bk_tensor_t *t, const char *what);
static uint32_t parameter_find(const pt_signature_t *s, const char *name);
static uint32_t output_find(const pt_signature_t *s, const char *name);
static uint32_t index_of(const char *name);
static uint32_t order_of(const bk_model_config_t *config, const char *name);
static TRITONSERVER_Error *no_such(const bk_model_config_t *config,
    const char *what, const char *name, const pt_signature_t *s);

TRITONSERVER_Error *
pt_places_find(pt_places_t *p, const bk_model_config_t *config,
    const bk_tensors_t *tensors, const pt_signature_t *signature)
{
    *p = (pt_places_t) {
        .inputs = calloc((size_t) tensors->input_count + 1,
            sizeof(*p->inputs)),
        .outputs = calloc((size_t) tensors->output_count + 1,
            sizeof(*p->outputs)),
        .argument_count = signature->dict ? tensors->input_count
            : signature->parameter_count
    };
    if (p->inputs == NULL || p->outputs == NULL) {
        pt_places_fini(p);
        return bk_err_nomem("places of a model's tensors");
    }

    TRITONSERVER_Error *err = find_inputs(p, config, tensors, signature);
    if (err == NULL) {
        err = find_outputs(p, config, tensors, signature);
    }
    if (err != NULL) {
        pt_places_fini(p);
    }

    return err;
}

void
pt_places_fini(pt_places_t *p)
{
    free(p->inputs);
    free(p->outputs);
    *p = (pt_places_t) { 0 };
}

static TRITONSERVER_Error *
find_inputs(pt_places_t *p, const bk_model_config_t *config,
    const bk_tensors_t *tensors, const pt_signature_t *s)
{
    convention_t convention = inputs_convention(config, s);

    if (!s->dict && !is_package(s)
        && tensors->input_count > s->parameter_count)
    {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "unable to load model '%s', configuration expects %" PRIu32
            " inputs, model provides %" PRIu32, config->name,
            tensors->input_count, s->parameter_count);
    }

    for (uint32_t i = 0; i < tensors->input_count; i++) {
        const char *name = tensors->inputs[i].name;
        bool listed = order_of(config, name) != NO_INDEX;
        uint32_t at = s->dict ? i : convention == BY_NAME
            ? parameter_find(s, name) : NO_INDEX;

        if (at == NO_INDEX && (convention == BY_INDEX || !listed)) {
            at = index_of(name);
        }
        if (at == NO_INDEX && convention == BY_ORDER && listed) {
            at = order_of(config, name);
        }
        if (at == NO_INDEX && !is_package(s)) {
            return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
                "input '%s' does not follow <name>__<index> naming "
                "convention.", name);
        }
        if (at >= p->argument_count) {
            return no_such(config, "input", name, s);
        }
        p->inputs[i] = at;
    }

    return check_parameters(p, config, tensors, s);
}

static convention_t
inputs_convention(const bk_model_config_t *config, const pt_signature_t *s)
{
    bool by_name = true;
    bool by_index = true;

    for (uint32_t i = 0; i < config->input_count; i++) {
        const char *name = config->inputs[i].name;

        by_name = by_name && parameter_find(s, name) != NO_INDEX;
        by_index = by_index && index_of(name) != NO_INDEX;
    }

    if (by_name || s->dict) {
        return BY_NAME;
    }
    if (by_index || is_package(s)) {
        return BY_INDEX;
    }

    if (config->input_count > 1) {
        bk_log(TRITONSERVER_LOG_WARN, "inputs of model '%s' are neither all "
            "arguments of its forward() nor do they all follow the "
            "<name>__<index> naming convention; they are taken in the order "
            "of the configuration", config->name);
    }
    return BY_ORDER;
}

/* Each argument has one input, or a default. */
static TRITONSERVER_Error *
check_parameters(const pt_places_t *p, const bk_model_config_t *config,
    const bk_tensors_t *tensors, const pt_signature_t *s)
{
    TRITONSERVER_Error *err = NULL;

    for (uint32_t k = 0; !s->dict && k < s->parameter_count; k++) {
        const bk_tensor_t *t = NULL;

        for (uint32_t i = 0; i < tensors->input_count; i++) {
            if (p->inputs[i] != k) {
                continue;
            }
            if (t != NULL) {
                return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
                    "inputs '%s' and '%s' are both argument %" PRIu32 " of "
                    "model '%s'", t->name, tensors->inputs[i].name, k,
                    config->name);
            }
            t = &tensors->inputs[i];
        }
        if (t == NULL && !s->parameters[k].has_default) {
            return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
                "unable to load model '%s', configuration expects %" PRIu32
                " inputs, model provides %" PRIu32 ": none is for '%s'",
                config->name, tensors->input_count, s->parameter_count,
                s->parameters[k].name);
        }
        if (t != NULL) {
            err = check_parameter(config, t, &s->parameters[k]);
        }
        if (err != NULL) {
            return err;
        }
    }

    for (uint32_t i = 0; err == NULL && i < tensors->input_count; i++) {
        const bk_tensor_t *t = &tensors->inputs[i];

        if (!bk_sequence_has_control(&config->sequence, t->name)) {
            err = check_rank(config, t, "input");
        }
        if (err == NULL && s->dict
            && t->datatype == TRITONSERVER_TYPE_BYTES)
        {
            err = bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
                "input '%s' is configured as TYPE_STRING, model '%s' takes a "
                "dict of tensors", t->name, config->name);
        }
    }
    return err;
}

static TRITONSERVER_Error *
check_parameter(const bk_model_config_t *config, const bk_tensor_t *t,
    const pt_parameter_t *parameter)
{
    bool texts = t->datatype == TRITONSERVER_TYPE_BYTES;

    if (t->has_default && !parameter->has_default) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "'optional' is set to true for input '%s' while the backend model "
            "doesn't support optional input: its argument '%s' has no default",
            t->name, parameter->name);
    }

    if (texts != parameter->texts) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "input '%s' is configured as %s, argument '%s' of model '%s' is a "
            "%s", t->name, bk_datatype_to_config(t->datatype),
            parameter->name, config->name, parameter->texts
            ? "list of strings" : "tensor");
    }

    return texts || pt_type_of(t->datatype) != PT_NO_TYPE ? NULL
        : bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
        "unsupported datatype %s for input '%s' for model '%s'",
        bk_datatype_to_config(t->datatype), t->name, config->name);
}

static TRITONSERVER_Error *
find_outputs(pt_places_t *p, const bk_model_config_t *config,
    const bk_tensors_t *tensors, const pt_signature_t *s)
{
    bool by_index = true;

    for (uint32_t i = 0; i < tensors->output_count; i++) {
        by_index = by_index && index_of(tensors->outputs[i].name) != NO_INDEX;
    }
    if (!by_index && !is_package(s) && tensors->output_count > 1) {
        bk_log(TRITONSERVER_LOG_WARN, "outputs of model '%s' do not all "
            "follow the <name>__<index> naming convention; they are taken in "
            "the order of the configuration", config->name);
    }

    for (uint32_t i = 0; i < tensors->output_count; i++) {
        const char *name = tensors->outputs[i].name;
        uint32_t at = output_find(s, name);

        if (at == NO_INDEX) {
            at = by_index || is_package(s) ? index_of(name) : i;
        }
        if (at >= s->output_count) {
            return is_package(s) ? no_such(config, "output", name, s)
                : bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
                "The output %s in the model configuration refers to an output "
                "index which doesn't exist. This model has %" PRIu32
                " outputs", name, s->output_count);
        }
        p->outputs[i] = at;

        TRITONSERVER_Error *err = check_rank(config, &tensors->outputs[i],
            "output");
        if (err != NULL) {
            return err;
        }
    }

    return NULL;
}

static bool
is_package(const pt_signature_t *s)
{
    return s->output_count > 0 && s->outputs[0] != NULL;
}

/* a list of strings has one dimension, that of the batch where there is one */
static TRITONSERVER_Error *
check_rank(const bk_model_config_t *config, const bk_tensor_t *t,
    const char *what)
{
    return t->datatype != TRITONSERVER_TYPE_BYTES || t->dims_count == 1
        ? NULL : bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
        "Triton only supports 1 dimensional List of String as %s for '%s' for "
        "model '%s'", what, t->name, config->name);
}

static uint32_t
parameter_find(const pt_signature_t *s, const char *name)
{
    for (uint32_t i = 0; i < s->parameter_count; i++) {
        if (strcmp(s->parameters[i].name, name) == 0) {
            return i;
        }
    }

    return NO_INDEX;
}

static uint32_t
output_find(const pt_signature_t *s, const char *name)
{
    for (uint32_t i = 0; i < s->output_count; i++) {
        if (s->outputs[i] != NULL && strcmp(s->outputs[i], name) == 0) {
            return i;
        }
    }

    return NO_INDEX;
}

/* "INPUT__2": 2 */
static uint32_t
index_of(const char *name)
{
    const char *at = strstr(name, "__");
    uint32_t index = 0;

    if (at == NULL || at[2] == '\0') {
        return NO_INDEX;
    }

    for (at += 2; *at != '\0'; at++) {
        if (*at < '0' || *at > '9') {
            return NO_INDEX;
        }
        index = index * 10 + (uint32_t) (*at - '0');
        if (index > INDEX_MAX) {
            return INDEX_MAX;
        }
    }

    return index;
}

/* place in the configuration's list of inputs, batch inputs behind it */
static uint32_t
order_of(const bk_model_config_t *config, const char *name)
{
    for (uint32_t i = 0; i < config->input_count; i++) {
        if (strcmp(config->inputs[i].name, name) == 0) {
            return i;
        }
    }
    for (uint32_t i = 0; i < config->batch.input_count; i++) {
        if (strcmp(config->batch.inputs[i].target, name) == 0) {
            return config->input_count + i;
        }
    }

    return NO_INDEX;
}

static TRITONSERVER_Error *
no_such(const bk_model_config_t *config, const char *what, const char *name,
    const pt_signature_t *s)
{
    bool inputs = strcmp(what, "input") == 0;
    uint32_t count = inputs ? s->parameter_count : s->output_count;
    char names[TEXT_MAX] = "";
    size_t len = 0;

    for (uint32_t i = 0; i < count && len < sizeof(names); i++) {
        len += (size_t) snprintf(names + len, sizeof(names) - len, "%s%s",
            i == 0 ? "" : ", ", inputs ? s->parameters[i].name
            : s->outputs[i]);
    }

    return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
        "%s \"%s\" of model '%s' is not in its file, which has %" PRIu32
        ": %s", what, name, config->name, count, names);
}
