/*
 * model.h - a model of the trees backend: its forest and configuration.
 *
 * Owner    The core's model object owns it from ModelInitialize to
 *          ModelFinalize; instances borrow it.
 * Thread   written by new and free, read by anyone between.
 * Units    none.
 * Errors   as treelite, options and the kit have them, with the model's name.
 * Route    ModelInitialize -> [model] -> instance
 */

#ifndef TREES_MODEL_H
#define TREES_MODEL_H

#include "options.h"
#include "predict.h"

#include "common/tensors.h"

#include <pthread.h>

/* The kinds of outputs; their places in the tables of tensors. */
typedef enum {
    TREES_OUTPUT, TREES_RAW, TREES_LEAF_IDS, TREES_SCORES, TREES_OUTPUT_COUNT
} trees_output_t;

typedef struct {
    /* set in open, then read by anyone */
    treelite_functions_t treelite;
    int64_t              default_max_batch_size;
    bool                 fil;           /* it is called as Triton's backend  */
    char                *nvrtc;         /* NULL: the usual names             */

    pthread_mutex_t      lock;          /* guards driver and compiler        */
    gpu_driver_t        *driver;        /* NULL: not opened yet              */
    gpu_compiler_t      *compiler;      /* opened after it                   */
} trees_runtime_t;

typedef struct {
    trees_runtime_t   *runtime;
    bk_model_config_t  config;
    trees_options_t    options;
    trees_forest_t    *forest;
    trees_answer_t     answer;
    bk_tensors_t       tensors;
} trees_model_t;

/* As common/entry.h has them. */
BK_CHECK TRITONSERVER_Error *trees_runtime_open(void **out,
    TRITONBACKEND_Backend *backend);
void trees_runtime_close(void *runtime);

/* A GPU and the compiler for its kernels, opened when first asked for. */
BK_CHECK TRITONSERVER_Error *trees_runtime_gpu(trees_runtime_t *rt,
    int32_t device_id, gpu_device_t **device, const gpu_compiler_t **compiler);
BK_CHECK TRITONSERVER_Error *trees_model_new(void **out,
    TRITONBACKEND_Model *handle, void *runtime);
void trees_model_free(void *model);

#endif /* TREES_MODEL_H */
