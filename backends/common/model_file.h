/*
 * model_file.h - the files of a model's version.
 *
 * Owner    paths are the caller's, for free().
 * Thread   any.
 * Units    none.
 * Errors   INVALID_ARG: a name that leads out of the version's directory.
 *          NOT_FOUND: no such file, with its path.
 * Route    ModelInitialize -> [model_file] -> the runtime
 */

#ifndef BK_MODEL_FILE_H
#define BK_MODEL_FILE_H

#include "model_config.h"

/* <model>/<version>, which exists. */
BK_CHECK TRITONSERVER_Error *bk_version_directory(TRITONBACKEND_Model *model,
    char **path);

/* <model>/<version>/<name>: default_model_filename of the configuration, or
 * fallback where none is configured.  It may be a directory. */
BK_CHECK TRITONSERVER_Error *bk_model_file(TRITONBACKEND_Model *model,
    const bk_model_config_t *config, const char *fallback, char **path);

/* The same for an instance on a GPU: the file that cc_model_filenames has for
 * its compute capability comes first. */
BK_CHECK TRITONSERVER_Error *bk_model_file_of_gpu(TRITONBACKEND_Model *model,
    const bk_model_config_t *config, int32_t device_id, const char *fallback,
    char **path);

/* The file of that name in the version's directory. */
BK_CHECK TRITONSERVER_Error *bk_version_file(TRITONBACKEND_Model *model,
    const char *name, char **path);

#endif /* BK_MODEL_FILE_H */
