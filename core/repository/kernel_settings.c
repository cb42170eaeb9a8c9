#include "core/repository/kernel_settings.h"

#include <stdbool.h>
#include <string.h>

#include "core/model/config_parameter.h"
#include "core/proto/message.h"

static bool has_kernels(const Inference__ModelConfig *msg);
static const char *first_other(const Inference__ModelConfig *a,
    const Inference__ModelConfig *b);
static bool is_setting(const char *key);
static bool same_tensors(const Inference__ModelConfig *a,
    const Inference__ModelConfig *b);
static Inference__ModelConfig tensors_of(const Inference__ModelConfig *msg);
static inf_err_t *not_accepted(const char *what);

inf_err_t *
inf_kernel_settings_check(const Inference__ModelConfig *sent,
    const Inference__ModelConfig *own)
{
    if (!has_kernels(sent) && !has_kernels(own)) {
        return NULL;
    }

    const char *other = first_other(sent, own);
    if (other == NULL) {
        other = first_other(own, sent);
    }
    if (other != NULL) {
        return not_accepted(other);
    }

    return same_tensors(sent, own) ? NULL
        : not_accepted("input, output, max_batch_size,"
            " default_model_filename");
}

/* Whether the model is of backend cuda, which the file name may imply, too. */
static bool
has_kernels(const Inference__ModelConfig *msg)
{
    return strcmp(msg->backend, "cuda") == 0 || (msg->backend[0] == '\0'
        && inf_config_parameter(msg, "kernel_1") != NULL);
}

/* The first setting of a that differs in b; NULL: none. */
static const char *
first_other(const Inference__ModelConfig *a, const Inference__ModelConfig *b)
{
    for (size_t i = 0; i < a->n_parameters; i++) {
        const char *key = a->parameters[i]->key;
        const char *value = inf_config_parameter(a, key);
        const char *known = inf_config_parameter(b, key);

        if (is_setting(key) && (known == NULL || strcmp(value, known) != 0)) {
            return key;
        }
    }

    return NULL;
}

static bool
is_setting(const char *key)
{
    static const char *const starts[] = {
        "kernel_", "shape_", "require_", "scratch_", "weights_",
        "compile_options", "timeout", "memory", "graphs"
    };

    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
        if (strncmp(key, starts[i], strlen(starts[i])) == 0) {
            return true;
        }
    }
    return false;
}

static bool
same_tensors(const Inference__ModelConfig *a, const Inference__ModelConfig *b)
{
    Inference__ModelConfig x = tensors_of(a);
    Inference__ModelConfig y = tensors_of(b);

    return inf_message_same(&x.base, &y.base);
}

/* The tensors of msg, borrowed. */
static Inference__ModelConfig
tensors_of(const Inference__ModelConfig *msg)
{
    Inference__ModelConfig part = INFERENCE__MODEL_CONFIG__INIT;

    part.n_input = msg->n_input;
    part.input = msg->input;
    part.n_output = msg->n_output;
    part.output = msg->output;
    part.max_batch_size = msg->max_batch_size;
    part.default_model_filename = msg->default_model_filename;
    return part;
}

static inf_err_t *
not_accepted(const char *what)
{
    return inf_err_new(INF_ERR_INVALID_ARG, "%s: not accepted for a model"
        " of backend 'cuda': a load request may bring it only with"
        " \"inference_code_upload on\", or where the repository's"
        " configuration of the model says the same", what);
}
