/*
 * gpu_inputs.h - copies inputs to CPU memory, including those on a GPU.
 *
 * Owner    The backend has the driver, which is opened for the first input on a
 *          GPU.
 * Thread   any.
 * Units    bytes.
 * Errors   Errors of the driver, with the input's name.
 * Route    messages -> [gpu_inputs] -> driver
 */

#ifndef PY_GPU_INPUTS_H
#define PY_GPU_INPUTS_H

#include "../common/request.h"

typedef struct py_gpus_s py_gpus_t;

BK_CHECK TRITONSERVER_Error *py_gpus_new(py_gpus_t **out);
void py_gpus_free(py_gpus_t *gpus);         /* NULL does nothing             */

/* Copies all buffers, in->len_bytes in total, to dst. */
BK_CHECK TRITONSERVER_Error *py_input_copy(py_gpus_t *gpus,
    const bk_input_t *in, void *dst);

/* The data if they are in one piece in CPU memory, otherwise NULL. */
BK_CHECK TRITONSERVER_Error *py_input_view(const bk_input_t *in,
    const void **data);

#endif /* PY_GPU_INPUTS_H */
