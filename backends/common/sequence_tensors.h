/*
 * sequence_tensors.h - tensors that sequence_batching adds to the inputs and
 *                      outputs of a configuration: controls, which the core
 *                      makes, and states, which it keeps.
 *
 * Owner    The model configuration owns the lists; names point into its
 *          document.
 * Thread   read-only after loading.
 * Units    dims are elements; they leave out the batch dimension.
 * Errors   INVALID_ARG naming the entry that is wrong.
 * Route    model_config -> [sequence_tensors] -> config_check, auto_complete
 */

#ifndef BK_SEQUENCE_TENSORS_H
#define BK_SEQUENCE_TENSORS_H

#include "config_json.h"

/* One element for each row of a batch. */
typedef struct {
    const char            *name;
    TRITONSERVER_DataType  datatype;
} bk_control_t;

/* The output of a request is the input of the sequence's next one. */
typedef struct {
    const char            *input;
    const char            *output;
    TRITONSERVER_DataType  datatype;
    int64_t               *dims;
    uint32_t               dims_count;
} bk_state_t;

typedef struct {
    bk_control_t *controls;
    uint32_t      control_count;
    bk_state_t   *states;
    uint32_t      state_count;
} bk_sequence_tensors_t;

/* Reads a model's configuration. */
BK_CHECK TRITONSERVER_Error *bk_sequence_tensors_load(
    bk_sequence_tensors_t *t, const bk_json_t *config);
void bk_sequence_tensors_fini(bk_sequence_tensors_t *t);

/* Whether the name is a control or a state's input, which no client sends. */
bool bk_sequence_has_input(const bk_sequence_tensors_t *t, const char *name);
bool bk_sequence_has_control(const bk_sequence_tensors_t *t,
    const char *name);

/* Whether the name is a state's output. */
bool bk_sequence_has_output(const bk_sequence_tensors_t *t,
    const char *name);

#endif /* BK_SEQUENCE_TENSORS_H */
