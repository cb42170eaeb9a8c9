/*
 * model_config.h - a model's configuration as backends read it.
 *
 * Owner    bk_model_config_t owns its document, with all names, dims and
 *          parameters, until bk_model_config_fini.
 * Thread   any; init and fini exclude all others.
 * Units    dims are elements; they leave out the batch dimension.
 * Errors   INVALID_ARG naming the field that is missing or wrong.
 * Route    config_json -> [model_config] -> a backend's ModelInitialize
 */

#ifndef BK_MODEL_CONFIG_H
#define BK_MODEL_CONFIG_H

#include "batch_tensors.h"
#include "datatype.h"
#include "sequence_tensors.h"

typedef struct {
    const char            *name;
    TRITONSERVER_DataType  datatype;
    int64_t               *dims;            /* as clients see them           */
    uint32_t               dims_count;
    int64_t               *model_dims;      /* reshape, or the same dims     */
    uint32_t               model_dims_count;
    bool                   optional;
    bool                   ragged;
} bk_tensor_config_t;

typedef struct {
    bk_json_t             *root;
    const char            *name;
    int64_t                max_batch_size;
    bk_tensor_config_t    *inputs;
    uint32_t               input_count;
    bk_tensor_config_t    *outputs;
    uint32_t               output_count;
    bk_batch_tensors_t     batch;
    bk_sequence_tensors_t  sequence;
} bk_model_config_t;

/* Reads the model's present configuration from the core. */
BK_CHECK TRITONSERVER_Error *bk_model_config_init(bk_model_config_t *c,
    TRITONBACKEND_Model *model);
void bk_model_config_fini(bk_model_config_t *c);

/* Hands c->root, as edited by the caller, to the core and reads it again. */
BK_CHECK TRITONSERVER_Error *bk_model_config_update(bk_model_config_t *c,
    TRITONBACKEND_Model *model);

/* The backend's settings ("default-max-batch-size" ...).  The caller frees
 * *root; *settings is NULL without settings. */
BK_CHECK TRITONSERVER_Error *bk_backend_settings(
    TRITONBACKEND_Backend *backend, bk_json_t **root,
    const bk_json_t **settings);

/* A setting as a number or a switch; *value stays as it was if none is set. */
BK_CHECK TRITONSERVER_Error *bk_backend_setting_int(const bk_json_t *settings,
    const char *key, int64_t min, int64_t max, int64_t *value);
BK_CHECK TRITONSERVER_Error *bk_backend_setting_bool(
    const bk_json_t *settings, const char *key, bool *value);

/* parameters[key].string_value, or NULL. */
const char *bk_model_config_parameter(const bk_model_config_t *c,
    const char *key);

/* A parameter as a number or a switch; *value stays as it was without the
 * parameter. */
BK_CHECK TRITONSERVER_Error *bk_model_config_parameter_int(
    const bk_model_config_t *c, const char *key, int64_t min, int64_t max,
    int64_t *value);
BK_CHECK TRITONSERVER_Error *bk_model_config_parameter_bool(
    const bk_model_config_t *c, const char *key, bool *value);

#endif /* BK_MODEL_CONFIG_H */
