/*
 * providers.h - chooses the execution providers of a session.
 *
 * Owner    The caller owns the session options.
 * Thread   one session options object, one thread.
 * Units    none.
 * Errors   INVALID_ARG: an unknown accelerator.  The library's error, if it
 *          lacks the provider.
 * Route    options -> [providers] -> session
 */

#ifndef ORT_PROVIDERS_H
#define ORT_PROVIDERS_H

#include "runtime.h"

#include "common/model_config.h"

/* Appends the configured accelerators: tensorrt and cuda for KIND_GPU, which
 * always has CUDA, openvino for other kinds.  The CPU is always the last. */
BK_CHECK TRITONSERVER_Error *ort_providers_append(OrtSessionOptions *options,
    const ort_runtime_t *rt, const bk_model_config_t *config,
    TRITONSERVER_InstanceGroupKind kind, int32_t device_id);

#endif /* ORT_PROVIDERS_H */
