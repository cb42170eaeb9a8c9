/*
 * model_path.h - finds the model's file in a version's directory.
 *
 * Owner    The caller frees the path with free().
 * Thread   any.
 * Units    none.
 * Errors   NOT_FOUND with the names that were looked for; INVALID_ARG: a name
 *          leaves the directory; UNSUPPORTED: a model that keeps state
 *          between requests.
 * Route    model -> [model_path] -> network
 */

#ifndef VINO_MODEL_PATH_H
#define VINO_MODEL_PATH_H

#include "common/model_config.h"

/* Finds default_model_filename, or the first usual name that exists. */
BK_CHECK TRITONSERVER_Error *vino_model_path_find(
    TRITONBACKEND_Model *model, const bk_model_config_t *config, char **path);

/* Rejects a file of OpenVINO's own format with operators that keep state: the
 * next request would read the state of the previous one. */
BK_CHECK TRITONSERVER_Error *vino_model_path_check(const char *path);

#endif /* VINO_MODEL_PATH_H */
