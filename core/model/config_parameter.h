/*
 * config_parameter.h - gets a model's free parameters by name.
 *
 * Owner    The text is the configuration's.
 * Thread   any.
 * Units    none.
 * Errors   none.
 * Route    configuration -> [parameter] -> queue limit, private inputs,
 *          strategy search
 */

#ifndef INF_MODEL_CONFIG_PARAMETER_H
#define INF_MODEL_CONFIG_PARAMETER_H

#include "model_config.pb-c.h"

/* The value of a parameter; NULL: no such parameter; "": no value. */
const char *inf_config_parameter(const Inference__ModelConfig *msg,
    const char *name);

#endif /* INF_MODEL_CONFIG_PARAMETER_H */
