/*
 * expression.h - whole numbers that depend on the shapes of a batch.
 *
 * Owner    the caller's struct owns its steps until gpu_expression_fini.
 * Thread   read-only after parsing.
 * Units    int64_t; dimensions leave out the batch dimension, elements and
 *          bytes are the whole batch's.
 * Errors   INVALID_ARG: a text that is no expression, an unknown tensor, a
 *          division by zero, a result that int64_t can't hold.
 * Route    program -> [expression] -> launch
 *
 *   sum      product { (+|-) product }
 *   product  factor { (*|/|%) factor }
 *   factor   number | -factor | (sum) | batch | TENSOR[number]
 *          | elements(TENSOR) | bytes(TENSOR) | bytes(WEIGHTS)
 *          | ceildiv(sum, sum) | min(sum, ...) | max(sum, ...)
 */

#ifndef GPU_EXPRESSION_H
#define GPU_EXPRESSION_H

#include "reader.h"

#define GPU_DIMS_MAX  16
#define GPU_STEPS_MAX 128

/* An input or output of the model, inputs first. */
typedef struct {
    const char            *name;
    const int64_t         *dims;        /* as configured; -1: open           */
    uint32_t               dims_count;
    TRITONSERVER_DataType  datatype;
    uint32_t               size;        /* of an element, in bytes           */
    bool                   optional;
    bool                   state;       /* an output that the core keeps for
                                         * the sequence's next request       */
} gpu_tensor_t;

/* A tensor of one batch. */
typedef struct {
    int64_t dims[GPU_DIMS_MAX];         /* without the batch dimension       */
    int64_t elements;
    int64_t bytes;
    bool    absent;                     /* left out: all numbers are 0       */
} gpu_shape_t;

typedef struct {
    int64_t            batch;           /* rows; 1 without batching          */
    const gpu_shape_t *tensors;         /* as the model's                    */
} gpu_shapes_t;

typedef enum {
    GPU_STEP_NUMBER, GPU_STEP_BATCH, GPU_STEP_DIM, GPU_STEP_ELEMENTS,
    GPU_STEP_BYTES, GPU_STEP_NEGATE, GPU_STEP_ADD, GPU_STEP_SUBTRACT,
    GPU_STEP_MULTIPLY, GPU_STEP_DIVIDE, GPU_STEP_REST, GPU_STEP_CEILDIV,
    GPU_STEP_MIN, GPU_STEP_MAX
} gpu_step_kind_t;

typedef struct {
    gpu_step_kind_t kind;
    uint32_t        tensor;
    uint32_t        dim;
    int64_t         number;
} gpu_step_t;

/* Steps of a stack machine. */
typedef struct {
    gpu_step_t *steps;
    uint32_t    count;
} gpu_expression_t;

/* The names that a text may use; buffer.h has the buffers. */
typedef struct {
    const gpu_tensor_t        *tensors;
    uint32_t                   tensor_count;
    const struct gpu_buffer_s *buffers;
    uint32_t                   buffer_count;
} gpu_names_t;

/* Reads one expression, as long as it goes on. */
BK_CHECK TRITONSERVER_Error *gpu_expression_read(gpu_expression_t *e,
    gpu_reader_t *r, const gpu_names_t *names);

/* TENSOR[dim] */
BK_CHECK TRITONSERVER_Error *gpu_expression_of_dim(gpu_expression_t *e,
    uint32_t tensor, uint32_t dim);
void gpu_expression_fini(gpu_expression_t *e);

/* what names the value in an error. */
BK_CHECK TRITONSERVER_Error *gpu_expression_value(const gpu_expression_t *e,
    const gpu_shapes_t *shapes, const char *what, int64_t *value);

/* Whether the value is the same for all requests: nothing in it depends on the
 * batch, or on a dimension that is open. */
bool gpu_expression_is_certain(const gpu_expression_t *e,
    const gpu_tensor_t *tensors);

/* The tensor of that name, or count. */
uint32_t gpu_tensor_find(const gpu_tensor_t *tensors, uint32_t count,
    gpu_word_t name);

/* Fills in elements and bytes by dims; false: more than int64_t. */
bool gpu_shape_count(gpu_shape_t *shape, const gpu_tensor_t *tensor,
    int64_t batch);

#endif /* GPU_EXPRESSION_H */
