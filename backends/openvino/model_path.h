/*
 * model_path.h - which file of a version's directory is the model.
 *
 * Owner    the path is the caller's, for free().
 * Thread   any.
 * Units    none.
 * Errors   NOT_FOUND with the names that were looked for; INVALID_ARG: a name
 *          that leads out of the directory; UNSUPPORTED: a model that keeps
 *          state between requests.
 * Route    model -> [model_path] -> network
 */

#ifndef VINO_MODEL_PATH_H
#define VINO_MODEL_PATH_H

#include "common/model_config.h"

/* default_model_filename, or the first of the usual names that is there. */
BK_CHECK TRITONSERVER_Error *vino_model_path_find(
    TRITONBACKEND_Model *model, const bk_model_config_t *config, char **path);

/* Looks for operators that remember, in a file of OpenVINO's own format by any
 * name: what one request leaves in them, the next one would read. */
BK_CHECK TRITONSERVER_Error *vino_model_path_check(const char *path);

#endif /* VINO_MODEL_PATH_H */
