/*
 * model_file.h - the files of a model's version.
 *
 * Owner    The caller frees paths with free().
 * Thread   any.
 * Units    none.
 * Errors   INVALID_ARG: a name leaves the version's directory.
 *          NOT_FOUND: no such file, with its path.
 * Route    ModelInitialize -> [model_file] -> the runtime
 */

#ifndef BK_MODEL_FILE_H
#define BK_MODEL_FILE_H

#include "model_config.h"

/* The path <model>/<version> of a directory that exists. */
BK_CHECK TRITONSERVER_Error *bk_version_directory(TRITONBACKEND_Model *model,
    char **path);

/* The path <model>/<version>/<name> of a file or directory; the name is
 * default_model_filename of the configuration, or fallback. */
BK_CHECK TRITONSERVER_Error *bk_model_file(TRITONBACKEND_Model *model,
    const bk_model_config_t *config, const char *fallback, char **path);

/* As bk_model_file; but a file that cc_model_filenames names for the compute
 * capability of the GPU has precedence. */
BK_CHECK TRITONSERVER_Error *bk_model_file_of_gpu(TRITONBACKEND_Model *model,
    const bk_model_config_t *config, int32_t device_id, const char *fallback,
    char **path);

/* The file of that name in the version's directory. */
BK_CHECK TRITONSERVER_Error *bk_version_file(TRITONBACKEND_Model *model,
    const char *name, char **path);

#endif /* BK_MODEL_FILE_H */
