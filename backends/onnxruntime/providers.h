/*
 * providers.h - which execution providers a session gets.
 *
 * Owner    the session options stay the caller's.
 * Thread   one session options object, one thread.
 * Units    none.
 * Errors   INVALID_ARG: a name that is no accelerator.  The library's own
 *          error: the provider is not part of it.
 * Route    options -> [providers] -> session
 */

#ifndef ORT_PROVIDERS_H
#define ORT_PROVIDERS_H

#include "runtime.h"

#include "common/model_config.h"

/* KIND_GPU: the configured accelerators (tensorrt, cuda), CUDA in any case;
 * other kinds: the configured ones (openvino).  The CPU comes last always. */
BK_CHECK TRITONSERVER_Error *ort_providers_append(OrtSessionOptions *options,
    const ort_runtime_t *rt, const bk_model_config_t *config,
    TRITONSERVER_InstanceGroupKind kind, int32_t device_id);

#endif /* ORT_PROVIDERS_H */
