/*
 * gpu_inputs.h - copies inputs, of which some lie on a GPU, to CPU memory or to
 *                memory of a GPU that an interpreter can open.
 *
 * Owner    Memory is the caller's.
 * Thread   any.
 * Units    bytes.
 * Errors   Errors of the driver, with the input's name.
 * Route    messages -> [gpu_inputs] -> gpus
 */

#ifndef PY_GPU_INPUTS_H
#define PY_GPU_INPUTS_H

#include "gpus.h"

/* Copies all buffers, in->len_bytes in total, to where to->base is. */
BK_CHECK TRITONSERVER_Error *py_input_copy(py_gpus_t *gpus,
    const bk_input_t *in, const bk_buffer_t *to);

/* The data if they are in one piece in CPU memory, otherwise NULL. */
BK_CHECK TRITONSERVER_Error *py_input_view(const bk_input_t *in,
    const void **data);

/* The GPU of the first buffer that lies on one; -1: none does. */
BK_CHECK TRITONSERVER_Error *py_input_gpu(const bk_input_t *in, int64_t *gpu);

#endif /* PY_GPU_INPUTS_H */
