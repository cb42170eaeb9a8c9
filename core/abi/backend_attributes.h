/*
 * backend_attributes.h - what a tensor's buffers are like, as objects that
 *                        belong to the tensor.
 *
 * Owner    The arena of the request or response the tensor belongs to; made
 *          when a backend asks, so that nobody else pays for them.
 * Thread   inputs: any; outputs: the thread that builds the response.
 * Units    bytes.
 * Errors   out of memory.
 * Route    backend -> InputBufferAttributes, OutputBufferAttributes.
 */

#ifndef INF_ABI_BACKEND_ATTRIBUTES_H
#define INF_ABI_BACKEND_ATTRIBUTES_H

#include "core/abi/objects.h"

/* Brings out->abi.attributes (not NULL) up to date with the output's buffer. */
void inf_output_attributes_fill(inf_output_t *out);

#endif /* INF_ABI_BACKEND_ATTRIBUTES_H */
