/*
 * backend_attributes.h - attributes of a tensor's buffers as objects of the
 *                        tensor.
 *
 * Owner    The arena of the tensor's request or response; created at a
 *          backend's first call.
 * Thread   inputs: any; outputs: the thread that builds the response.
 * Units    bytes.
 * Errors   out of memory.
 * Route    backend -> InputBufferAttributes, OutputBufferAttributes.
 */

#ifndef INF_ABI_BACKEND_ATTRIBUTES_H
#define INF_ABI_BACKEND_ATTRIBUTES_H

#include "core/abi/objects.h"

/* Sets out->abi.attributes (not NULL) from the output's buffer. */
void inf_output_attributes_fill(inf_output_t *out);

#endif /* INF_ABI_BACKEND_ATTRIBUTES_H */
