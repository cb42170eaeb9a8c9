/*
 * gpu_inputs.h - inputs as an interpreter gets them: in the CPU's memory, also
 *                those that lie on a GPU.
 *
 * Owner    The backend has the driver, which is opened for the first input of
 *          a GPU.
 * Thread   any.
 * Units    bytes.
 * Errors   those of the driver, with the input's name.
 * Route    messages -> [gpu_inputs] -> driver
 */

#ifndef PY_GPU_INPUTS_H
#define PY_GPU_INPUTS_H

#include "../common/request.h"

typedef struct py_gpus_s py_gpus_t;

BK_CHECK TRITONSERVER_Error *py_gpus_new(py_gpus_t **out);
void py_gpus_free(py_gpus_t *gpus);         /* NULL does nothing             */

/* Copies all buffers to dst, in->len_bytes in all. */
BK_CHECK TRITONSERVER_Error *py_input_copy(py_gpus_t *gpus,
    const bk_input_t *in, void *dst);

/* The data where they lie in one piece of the CPU's memory, else NULL. */
BK_CHECK TRITONSERVER_Error *py_input_view(const bk_input_t *in,
    const void **data);

#endif /* PY_GPU_INPUTS_H */
