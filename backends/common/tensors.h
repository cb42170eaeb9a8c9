/*
 * tensors.h - the tensors of a model, as its file and its configuration have
 *             them.
 *
 * Owner    A backend fills the tables in after it has read the model's file;
 *          it owns them, and names and dims in them, until tensors_fini.  The
 *          pointers of apply_config lead into the configuration, which must
 *          outlive the tables and must not be updated any more.
 * Thread   read-only after apply_config, but for symbols, which are set before
 *          the first run.
 * Units    dims are elements, with the batch dimension, -1 where open.
 * Errors   NULL or false where a table has no such tensor or no memory.
 * Route    the model's file -> [tensors] -> config_check, auto_complete, batch
 */

#ifndef BK_TENSORS_H
#define BK_TENSORS_H

#include "model_config.h"

#define BK_MAX_DIMS 64

typedef struct {
    char                     *name;
    TRITONSERVER_DataType     datatype; /* INVALID: nothing we can carry     */
    int                       type;     /* the runtime's own name for it     */
    int64_t                  *dims;
    uint32_t                  dims_count;
    char                     *symbol;   /* name of an open first dim, or NULL;
                                         * an output whose symbol an input
                                         * has, too, has as many rows        */
    bool                      has_default;  /* an input: may be left out     */

    /* as the configuration says, set in bk_tensors_apply_config() */
    bool                      ragged;   /* all requests in one dimension     */
    const bk_batch_input_t   *batch_input;  /* the configuration's entry that
                                             * makes this input, or NULL     */
    const bk_batch_output_t  *batch_output; /* likewise of an output         */
    const bk_tensor_config_t *shape;    /* the tensor's entry, or NULL       */
    uint32_t                  source;   /* of these two: index of the input
                                         * whose shapes count                */
    bool                      control;  /* of sequences: an element a row    */
    bool                      state;    /* an output that the core keeps     */
    bool                      passthrough;  /* an output that is an input, too:
                                             * no run writes it              */
} bk_tensor_t;

typedef struct {
    bk_tensor_t *inputs;                /* those with a default last         */
    uint32_t     input_count;
    uint32_t     required_count;        /* inputs without a default          */
    bk_tensor_t *outputs;
    uint32_t     output_count;
} bk_tensors_t;

/* Empty tables; has_default is set for the inputs behind the required ones. */
BK_CHECK TRITONSERVER_Error *bk_tensors_init(bk_tensors_t *t,
    uint32_t required_count, uint32_t default_count, uint32_t output_count);
void bk_tensors_fini(bk_tensors_t *t);

/* Copies of name and dims; the other fields are set directly. */
BK_CHECK TRITONSERVER_Error *bk_tensor_set(bk_tensor_t *t, const char *name,
    TRITONSERVER_DataType datatype, const int64_t *dims, uint32_t dims_count);

/* The same of an entry of the configuration, for a model whose file has no
 * tensors: with an open first dimension if it batches. */
BK_CHECK TRITONSERVER_Error *bk_tensor_set_configured(bk_tensor_t *t,
    const bk_tensor_config_t *config, bool batching);

/* Marks the tensors that are ragged, batch inputs or outputs, controls or
 * states.  bk_config_check has passed; config must outlive t, which points into
 * it afterwards. */
void bk_tensors_apply_config(bk_tensors_t *t, const bk_model_config_t *config);

/* The tensor of that name, or NULL. */
const bk_tensor_t *bk_tensors_input(const bk_tensors_t *t, const char *name);
const bk_tensor_t *bk_tensors_output(const bk_tensors_t *t,
    const char *name);

/* A request's shape (batch dimension included) against the model's; a tensor
 * without dimensions has the configured ones to clients. */
bool bk_shape_matches(const bk_tensor_t *t, const int64_t *shape,
    uint32_t dims_count);

/* The shape to clients of a tensor without dimensions, which an output may be
 * though the file or the configuration has open ones. */
const int64_t *bk_scalar_shape(const bk_tensor_t *t, uint32_t *dims_count);

/* Product of dims; false when one is negative or it overflows. */
bool bk_elements(const int64_t *shape, uint32_t dims_count,
    uint64_t *elements);

/* "[-1,3,224]" in text, cut to fit. */
const char *bk_dims_text(const int64_t *dims, uint32_t count, char *text,
    size_t size);

#endif /* BK_TENSORS_H */
