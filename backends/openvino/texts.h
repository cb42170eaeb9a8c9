/*
 * texts.h - BYTES in requests, string tensors in the library.
 *
 * Owner    vino_texts_new gives the tensor to the caller.
 * Thread   one tensor, one thread.
 * Units    elements; bytes.h of the kit has their form in requests.
 * Errors   INVALID_ARG: lengths don't add up to the elements of the shape.
 * Route    instance -> [texts] -> std_string -> the library, and back
 */

#ifndef VINO_TEXTS_H
#define VINO_TEXTS_H

#include "runtime.h"

#include "common/runtime.h"

/* A tensor of shape dims, which has room for v's elements; empty texts fill
 * the rest. */
BK_CHECK TRITONSERVER_Error *vino_texts_new(const vino_runtime_t *rt,
    const bk_value_t *v, int64_t *dims, ov_tensor_t **out);

/* Of bk_runtime_t. */
BK_CHECK TRITONSERVER_Error *vino_texts_size(void *self, const bk_value_t *v,
    uint64_t first, uint64_t count, uint64_t *len_bytes);
BK_CHECK TRITONSERVER_Error *vino_texts_write(void *self,
    const bk_value_t *v, uint64_t first, uint64_t count, void *to);

#endif /* VINO_TEXTS_H */
