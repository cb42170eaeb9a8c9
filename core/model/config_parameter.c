#include "core/model/config_parameter.h"

#include <string.h>

const char *
inf_config_parameter(const Inference__ModelConfig *msg, const char *name)
{
    for (size_t i = 0; i < msg->n_parameters; i++) {
        const Inference__ModelParameter *value = msg->parameters[i]->value;
        if (strcmp(msg->parameters[i]->key, name) == 0) {
            return value != NULL && value->string_value != NULL
                ? value->string_value : "";
        }
    }

    return NULL;
}
