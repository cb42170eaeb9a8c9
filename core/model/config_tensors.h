/*
 * config_tensors.h - a model's inputs and outputs for the request path: one
 *                    constant table per configuration.
 *
 * Owner    Made once per loaded model version and freed with it; the table
 *          holds copies, so the configuration may be freed before.
 * Thread   any, after new().
 * Units    dims are elements; -1 is a size set by each request.
 * Errors   new: out of memory.  find: NULL if there is no such tensor.
 * Route    loader -> [tensor table] -> normalising a request, responses
 */

#ifndef INF_MODEL_CONFIG_TENSORS_H
#define INF_MODEL_CONFIG_TENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/base/slice.h"
#include "model_config.pb-c.h"

typedef struct {
    inf_slice_t    name;            /* also NUL-terminated                 */
    uint32_t       index;           /* in its list, without duplicates     */
    uint32_t       rank;            /* of outputs: by name, from 0         */
    uint32_t       datatype;        /* values of inf_datatype_t            */
    uint32_t       dim_count;       /* without the batch dimension         */
    uint32_t       reshape_count;
    const int64_t *dims;            /* seen by clients                     */
    const int64_t *reshape;         /* seen by the backend                 */
    bool           has_reshape;     /* these are constant                  */
    bool           optional;        /* inputs only                         */
    bool           ragged;          /* inputs only                         */
    bool           shape_tensor;
    bool           non_linear;      /* non-linear format IO                */
    bool           variable;        /* a dim is -1                         */
    int64_t        elements;        /* product of dims; -1 if variable     */
} inf_config_tensor_t;

typedef struct inf_config_tensors_s inf_config_tensors_t;

/* Makes the table; copies what it needs of msg. */
INF_CHECK inf_err_t *inf_config_tensors_new(const Inference__ModelConfig *msg,
    inf_config_tensors_t **out);

/* t may be NULL. */
void inf_config_tensors_free(inf_config_tensors_t *t);

/* The maximum batch size; 0: no batches, shapes are exactly dims. */
uint32_t inf_config_tensors_max_batch_size(const inf_config_tensors_t *t);

/* Numbers of inputs, required (not optional) inputs and outputs. */
uint32_t inf_config_tensors_input_count(const inf_config_tensors_t *t);
uint32_t inf_config_tensors_required_count(const inf_config_tensors_t *t);
uint32_t inf_config_tensors_output_count(const inf_config_tensors_t *t);

/* The tensor of that index, which is below the count. */
const inf_config_tensor_t *inf_config_tensors_input(
    const inf_config_tensors_t *t, uint32_t index);
const inf_config_tensor_t *inf_config_tensors_output(
    const inf_config_tensors_t *t, uint32_t index);

/* Names of all outputs by rank; NUL-terminated, valid as long as t. */
const char *const *inf_config_tensors_output_names(
    const inf_config_tensors_t *t);

/* The tensor of that name, or NULL. */
const inf_config_tensor_t *inf_config_tensors_find_input(
    const inf_config_tensors_t *t, inf_slice_t name);
const inf_config_tensor_t *inf_config_tensors_find_output(
    const inf_config_tensors_t *t, inf_slice_t name);

#endif /* INF_MODEL_CONFIG_TENSORS_H */
