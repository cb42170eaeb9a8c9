/*
 * packed_response.h - packs the outputs of a response as bytes, and unpacks
 *                     them.
 *
 * Owner    The caller's bytes.  read allocates the outputs from the sink of
 *          the response.
 * Thread   one at a time for a response; the sink's alloc is called, so no
 *          lock may be held.
 * Units    bytes.
 * Errors   INVALID_ARG: an output is in device memory.  INTERNAL: the bytes
 *          are not a response.  Otherwise the error of the sink's alloc.
 * Route    response -> [packed response] -> cache -> [packed response] ->
 *          response of a later request
 *
 * The format, in the machine's byte order and without padding: u32 number of
 * outputs; for each u64 length of the rest of it, u32 length and name, u32
 * length and datatype's name, u32 length and int64 dims, u64 length and data.
 * After the outputs, only if the response has parameters: u32 their number;
 * for each u32 length and name, u32 type, u64 length and value.
 */

#ifndef INF_CACHE_PACKED_RESPONSE_H
#define INF_CACHE_PACKED_RESPONSE_H

#include "core/tensor/response.h"

/* The number of bytes that inf_packed_response_write writes; an error if the
   response has data that cannot be stored. */
INF_CHECK inf_err_t *inf_packed_response_size(const inf_response_t *response,
    uint64_t *size);

/* Writes inf_packed_response_size bytes.  cold: the bytes are not read soon and
   bypass the processor's caches. */
void inf_packed_response_write(const inf_response_t *response, void *to,
    bool cold);

/* into has no outputs; on error it may have some: free it. */
INF_CHECK inf_err_t *inf_packed_response_read(const void *data, uint64_t size,
    inf_response_t *into);

/* Copies the outputs and parameters of from directly; both in host memory. */
INF_CHECK inf_err_t *inf_response_copy(const inf_response_t *from,
    inf_response_t *into);

#endif /* INF_CACHE_PACKED_RESPONSE_H */
