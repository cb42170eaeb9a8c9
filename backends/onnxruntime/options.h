/*
 * options.h - makes ONNX Runtime's options from a model's configuration.
 *
 * Owner    The caller ends the options with ort_options_free; ort_session_new
 *          may have taken run before.
 * Thread   one object, one thread.
 * Units    none.
 * Errors   INVALID_ARG naming the parameter; the library's message if it lacks
 *          an execution provider.
 * Route    model_config -> [options] -> session
 */

#ifndef ORT_OPTIONS_H
#define ORT_OPTIONS_H

#include "runtime.h"

#include "common/model_config.h"

typedef struct {
    OrtSessionOptions *session;
    OrtRunOptions     *run;
} ort_options_t;

/* device_id counts for KIND_GPU only. */
BK_CHECK TRITONSERVER_Error *ort_options_new(ort_options_t *o,
    const ort_runtime_t *rt, const bk_model_config_t *config,
    TRITONSERVER_InstanceGroupKind kind, int32_t device_id);
void ort_options_free(ort_options_t *o, const ort_runtime_t *rt);

#endif /* ORT_OPTIONS_H */
