/*
 * text.h - converts between BYTES and the library's string tensors.
 *
 * Owner    ort_text_new gives the value to the caller.
 * Thread   one value, one thread.
 * Units    elements and bytes as common/bytes.h has them.
 * Errors   INVALID_ARG: lengths don't add up to the elements of the shape.
 * Route    run -> [text] -> the library, and back
 */

#ifndef ORT_TEXT_H
#define ORT_TEXT_H

#include "runtime.h"

#include "common/runtime.h"

/* A string tensor with the input's elements. */
BK_CHECK TRITONSERVER_Error *ort_text_new(const ort_runtime_t *rt,
    const bk_value_t *v, OrtValue **out);

/* Computes the size of count elements from first on in a response. */
BK_CHECK TRITONSERVER_Error *ort_text_size(const ort_runtime_t *rt,
    const OrtValue *value, uint64_t first, uint64_t count,
    uint64_t *len_bytes);

/* Writes these elements to data, which has exactly that size. */
BK_CHECK TRITONSERVER_Error *ort_text_write(const ort_runtime_t *rt,
    const OrtValue *value, uint64_t first, uint64_t count, void *data);

#endif /* ORT_TEXT_H */
