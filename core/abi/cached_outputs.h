/*
 * cached_outputs.h - an extension of Triton's interface for our backends:
 *                    whether the core reads outputs again for a response
 *                    cache, so that outputs must not lie in memory that other
 *                    programs write.
 *
 * Owner    none.
 * Thread   any; the request is the caller's.
 * Units    none.
 * Errors   none.
 * Route    backend -> [cached outputs] -> model
 *
 * A backend declares the function as a weak symbol: other servers lack it.
 */

#ifndef INF_ABI_CACHED_OUTPUTS_H
#define INF_ABI_CACHED_OUTPUTS_H

#include <stdbool.h>

#include "triton/core/tritonserver.h"

/* Whether the request's model, or one of its composing models, is cached. */
bool inf_outputs_are_cached(TRITONSERVER_InferenceRequest *request)
    __attribute__((visibility("default")));

#endif /* INF_ABI_CACHED_OUTPUTS_H */
