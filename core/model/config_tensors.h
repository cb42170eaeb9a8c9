/*
 * config_tensors.h - a model's inputs and outputs as the request path reads
 *                    them: one immutable table per configuration.
 *
 * Owner    Made once per loaded model version and freed with it; it holds
 *          copies, so the configuration may go before it.
 * Thread   any, after new().
 * Units    dims are elements; -1 is a size that each request sets.
 * Errors   new: out of memory.  find: NULL when there is no such tensor.
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
    inf_slice_t    name;            /* NUL-terminated too                  */
    uint32_t       index;           /* in its list, duplicates left out    */
    uint32_t       rank;            /* outputs only: by name, from 0       */
    uint32_t       datatype;        /* inf_datatype_t's numbers            */
    uint32_t       dim_count;       /* without the batch dimension         */
    uint32_t       reshape_count;
    const int64_t *dims;            /* what clients see                    */
    const int64_t *reshape;         /* what the backend sees               */
    bool           has_reshape;     /* these are constant                  */
    bool           optional;        /* inputs only                         */
    bool           ragged;          /* inputs only                         */
    bool           shape_tensor;
    bool           non_linear;      /* non-linear format IO                */
    bool           variable;        /* some dim is -1                      */
    int64_t        elements;        /* product of dims; -1 if variable     */
} inf_config_tensor_t;

typedef struct inf_config_tensors_s inf_config_tensors_t;

/* Copies what it needs of msg. */
INF_CHECK inf_err_t *inf_config_tensors_new(const Inference__ModelConfig *msg,
    inf_config_tensors_t **out);

/* t may be NULL. */
void inf_config_tensors_free(inf_config_tensors_t *t);

/* 0: the model does not batch, a request's shape is dims exactly. */
uint32_t inf_config_tensors_max_batch_size(const inf_config_tensors_t *t);

/* required: inputs that are not optional. */
uint32_t inf_config_tensors_input_count(const inf_config_tensors_t *t);
uint32_t inf_config_tensors_required_count(const inf_config_tensors_t *t);
uint32_t inf_config_tensors_output_count(const inf_config_tensors_t *t);

/* index is below the count. */
const inf_config_tensor_t *inf_config_tensors_input(
    const inf_config_tensors_t *t, uint32_t index);
const inf_config_tensor_t *inf_config_tensors_output(
    const inf_config_tensors_t *t, uint32_t index);

/* Of all outputs, by rank; NUL-terminated, alive as long as t. */
const char *const *inf_config_tensors_output_names(
    const inf_config_tensors_t *t);

/* NULL: the model has none of that name. */
const inf_config_tensor_t *inf_config_tensors_find_input(
    const inf_config_tensors_t *t, inf_slice_t name);
const inf_config_tensor_t *inf_config_tensors_find_output(
    const inf_config_tensors_t *t, inf_slice_t name);

#endif /* INF_MODEL_CONFIG_TENSORS_H */
