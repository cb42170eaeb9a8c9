/*
 * model_file.h - finds the file of a model, and reads the files beside it.
 *
 * Owner    The caller's struct owns its texts until gpu_model_file_fini; the
 *          caller frees file contents with free().
 * Thread   any.
 * Units    bytes.
 * Errors   NOT_FOUND: no such file.  INVALID_ARG: a name leaves the
 *          version's directory, or the extension is unknown.
 * Route    model -> [model file] -> image, library
 */

#ifndef GPU_MODEL_FILE_H
#define GPU_MODEL_FILE_H

#include "common/model_config.h"

typedef enum {
    GPU_FILE_LIBRARY,                   /* model.so, the first that counts   */
    GPU_FILE_SOURCE,                    /* model.cu                          */
    GPU_FILE_FATBIN,
    GPU_FILE_CUBIN,
    GPU_FILE_PTX
} gpu_file_kind_t;

typedef struct {
    char           *directory;          /* of the version                    */
    char           *path;
    gpu_file_kind_t kind;
} gpu_model_file_t;

/* default_model_filename, or the first of model.so, model.cu, model.fatbin,
 * model.cubin and model.ptx that is there. */
BK_CHECK TRITONSERVER_Error *gpu_model_file_find(gpu_model_file_t *f,
    TRITONBACKEND_Model *model, const bk_model_config_t *config);
void gpu_model_file_fini(gpu_model_file_t *f);

/* The path of a file of the version's directory, for free(). */
BK_CHECK TRITONSERVER_Error *gpu_model_file_beside(const gpu_model_file_t *f,
    const char *name, char **path);

/* The size of a regular file in the version's directory. */
BK_CHECK TRITONSERVER_Error *gpu_model_file_size(const gpu_model_file_t *f,
    const char *name, int64_t *len);

/* Reads a regular file, and adds a zero byte, which *len does not count. */
BK_CHECK TRITONSERVER_Error *gpu_file_read(const char *path, char **data,
    size_t *len);

#endif /* GPU_MODEL_FILE_H */
