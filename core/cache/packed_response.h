/*
 * packed_response.h - the outputs of a response as bytes, and back.
 *
 * Owner    The caller's bytes.  Reading allocates the outputs from the sink of
 *          the response that is filled.
 * Thread   one at a time a response; the sink's alloc is called, so no lock
 *          may be held.
 * Units    bytes.
 * Errors   INVALID_ARG: an output is in device memory.  INTERNAL: the bytes
 *          are no response.  Else what the sink's alloc said.
 * Route    response -> [packed response] -> cache -> [packed response] ->
 *          response of a later request
 *
 * The format, in the machine's byte order and without padding: u32 number of
 * outputs; for each u64 length of the rest of it, u32 length and name, u32
 * length and datatype's name, u32 length and int64 dims, u64 length and data.
 * Behind the outputs, only where the response has parameters: u32 their
 * number; for each u32 length and name, u32 type, u64 length and value.
 */

#ifndef INF_CACHE_PACKED_RESPONSE_H
#define INF_CACHE_PACKED_RESPONSE_H

#include "core/tensor/response.h"

/* The bytes that inf_packed_response_write will fill; an error if the
   response has data that cannot be stored. */
INF_CHECK inf_err_t *inf_packed_response_size(const inf_response_t *response,
    uint64_t *size);

/* As many bytes as inf_packed_response_size said.  cold: nobody reads them
   soon, so they had better not take the place of what is in the processor's
   caches. */
void inf_packed_response_write(const inf_response_t *response, void *to,
    bool cold);

/* into has no outputs yet; on error it has some of them: free it. */
INF_CHECK inf_err_t *inf_packed_response_read(const void *data, uint64_t size,
    inf_response_t *into);

/* The outputs and parameters of from without the detour; both in memory of
   the host. */
INF_CHECK inf_err_t *inf_response_copy(const inf_response_t *from,
    inf_response_t *into);

#endif /* INF_CACHE_PACKED_RESPONSE_H */
