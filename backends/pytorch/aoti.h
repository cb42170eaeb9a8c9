/*
 * aoti.h - a compiled model of an AOTInductor package.
 *
 * Owner    pt_aoti_open gives the engine to the caller; the package outlives
 *          it.
 * Thread   any; as many runs at a time as it has been opened for.
 * Units    none.
 * Errors   INVALID_ARG: package and instance are for different devices.
 *          INTERNAL: messages of the loader and of the model.
 * Route    model -> [aoti] -> shim
 */

#ifndef PT_AOTI_H
#define PT_AOTI_H

#include "engine.h"
#include "package.h"

/* device: a GPU's number or PT_CPU; batching: the first dimension of each
 * tensor is that of the batch; runs: how many at a time. */
BK_CHECK TRITONSERVER_Error *pt_aoti_open(pt_engine_t **out,
    const pt_package_t *package, int device, bool batching,
    uint32_t runs);

#endif /* PT_AOTI_H */
