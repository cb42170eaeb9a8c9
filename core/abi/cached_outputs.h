/*
 * cached_outputs.h - what a backend of ours may ask beyond Triton's interface:
 *                    whether the core reads outputs once more for a response
 *                    cache, so that memory which others write must not be
 *                    given for them.
 *
 * Owner    Nothing is given away.
 * Thread   any; the request is the caller's.
 * Units    none.
 * Errors   none.
 * Route    backend -> [cached outputs] -> model
 *
 * A backend declares it itself, as a weak symbol: other servers have none.
 */

#ifndef INF_ABI_CACHED_OUTPUTS_H
#define INF_ABI_CACHED_OUTPUTS_H

#include <stdbool.h>

#include "triton/core/tritonserver.h"

/* Of the request's model, or a model that it is composed of. */
bool inf_outputs_are_cached(TRITONSERVER_InferenceRequest *request)
    __attribute__((visibility("default")));

#endif /* INF_ABI_CACHED_OUTPUTS_H */
