/*
 * model_config.h - what backends read of a model's configuration.
 *
 * Owner    bk_model_config_t owns its document; every name, dims array and
 *          parameter seen through it lives until bk_model_config_fini.
 * Thread   written by init and fini, read by anyone between.
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
    int64_t               *dims;            /* what clients see              */
    uint32_t               dims_count;
    int64_t               *model_dims;      /* reshape, else the same dims   */
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

/* The backend's settings from the command line, "default-max-batch-size" and
 * others; a document for bk_json_free, NULL members where none are set. */
BK_CHECK TRITONSERVER_Error *bk_backend_settings(
    TRITONBACKEND_Backend *backend, bk_json_t **root,
    const bk_json_t **settings);

/* One of them as a number or a switch; untouched when not set. */
BK_CHECK TRITONSERVER_Error *bk_backend_setting_int(const bk_json_t *settings,
    const char *key, int64_t min, int64_t max, int64_t *value);
BK_CHECK TRITONSERVER_Error *bk_backend_setting_bool(
    const bk_json_t *settings, const char *key, bool *value);

/* parameters[key].string_value; NULL when not configured. */
const char *bk_model_config_parameter(const bk_model_config_t *c,
    const char *key);

/* The same as a number or a switch; untouched when not configured. */
BK_CHECK TRITONSERVER_Error *bk_model_config_parameter_int(
    const bk_model_config_t *c, const char *key, int64_t min, int64_t max,
    int64_t *value);
BK_CHECK TRITONSERVER_Error *bk_model_config_parameter_bool(
    const bk_model_config_t *c, const char *key, bool *value);

#endif /* BK_MODEL_CONFIG_H */
