/*
 * batch_tensors.h - tensors that exist for a whole batch: batch_input, which
 *                   a backend makes from the shapes of its requests, and
 *                   batch_output, which it cuts up by them.
 *
 * Owner    The model configuration that they were read from owns the lists; the
 *          caller owns the memory that bk_batch_input_write fills.
 * Thread   read-only after loading.
 * Units    elements; one row of a batch is a row of its first dimension.
 * Errors   INVALID_ARG naming the entry that is wrong, or a count that the
 *          entry's datatype can't hold.
 * Route    model_config -> [batch_tensors] -> a backend's Execute
 */

#ifndef BK_BATCH_TENSORS_H
#define BK_BATCH_TENSORS_H

#include "config_json.h"

typedef enum {
    BK_ELEMENT_COUNT,                   /* of each request                   */
    BK_ACCUMULATED_COUNT,               /* sum up to and with each request   */
    BK_ACCUMULATED_COUNT_WITH_ZERO,     /* the same with a 0 in front        */
    BK_MAX_COUNT_AS_SHAPE,              /* the tensor's shape is the value   */
    BK_ITEM_SHAPE,                      /* of each row, without the batch    */
    BK_ITEM_SHAPE_FLATTEN               /* the same in one dimension         */
} bk_batch_kind_t;

typedef struct {
    bk_batch_kind_t       kind;
    TRITONSERVER_DataType datatype;     /* INT32 or FP32                     */
    const char           *target;
    const char           *source;       /* name of an input                  */
} bk_batch_input_t;

/* Each request's part of the target has the shape of its source. */
typedef struct {
    const char *target;
    const char *source;
} bk_batch_output_t;

typedef struct {
    bk_batch_input_t  *inputs;          /* one entry a target                */
    uint32_t           input_count;
    bk_batch_output_t *outputs;
    uint32_t           output_count;
} bk_batch_tensors_t;

/* The source's shape in one request, with the batch dimension if the model
 * batches. */
typedef struct {
    const int64_t *shape;
    uint32_t       dims_count;
    uint64_t       elements;
    uint64_t       rows;                /* 1 without batching                */
} bk_batch_source_t;

/* Reads a model's configuration; names point into its document. */
BK_CHECK TRITONSERVER_Error *bk_batch_tensors_load(bk_batch_tensors_t *t,
    const bk_json_t *config);
void bk_batch_tensors_fini(bk_batch_tensors_t *t);

/* Finds the entry that makes the tensor target, or NULL. */
const bk_batch_input_t *bk_batch_input_find(const bk_batch_tensors_t *t,
    const char *target);
const bk_batch_output_t *bk_batch_output_find(const bk_batch_tensors_t *t,
    const char *target);

/* The number of dimensions: 1, or 2 for BK_ITEM_SHAPE. */
uint32_t bk_batch_input_rank(const bk_batch_input_t *in);

/* The whole tensor's shape (dims[2]) and, at 4 bytes an element, its size. */
BK_CHECK TRITONSERVER_Error *bk_batch_input_shape(const bk_batch_input_t *in,
    const bk_batch_source_t *sources, uint32_t count, bool batching,
    int64_t dims[2], uint64_t *elements);

/* Writes elements elements to the buffer; those without a value are 0. */
BK_CHECK TRITONSERVER_Error *bk_batch_input_write(const bk_batch_input_t *in,
    const bk_batch_source_t *sources, uint32_t count, bool batching,
    void *to, uint64_t elements);

#endif /* BK_BATCH_TENSORS_H */
