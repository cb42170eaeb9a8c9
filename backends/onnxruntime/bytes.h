/*
 * bytes.h - BYTES on the wire, string tensors in the library.
 *
 * Owner    ort_bytes_new gives the value to the caller.
 * Thread   one value, one thread.
 * Units    A BYTES element is its length (4 bytes, little endian) and that
 *          many bytes; they may hold anything, zeros included.
 * Errors   INVALID_ARG: lengths don't add up to the elements of the shape.
 * Route    batch -> [bytes] -> the library, and back
 */

#ifndef ORT_BYTES_H
#define ORT_BYTES_H

#include "runtime.h"

/* A string tensor of that shape from len_bytes of wire form. */
BK_CHECK TRITONSERVER_Error *ort_bytes_new(const ort_runtime_t *rt,
    const char *name, const void *data, uint64_t len_bytes,
    const int64_t *shape, size_t dims_count, uint64_t elements,
    OrtValue **out);

/* Bytes that count elements from first on take in wire form. */
BK_CHECK TRITONSERVER_Error *ort_bytes_size(const ort_runtime_t *rt,
    const OrtValue *value, uint64_t first, uint64_t count,
    uint64_t *len_bytes);

/* Writes them to data, which has exactly that size. */
BK_CHECK TRITONSERVER_Error *ort_bytes_write(const ort_runtime_t *rt,
    const OrtValue *value, uint64_t first, uint64_t count, void *data);

#endif /* ORT_BYTES_H */
