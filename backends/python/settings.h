/*
 * settings.h - settings of this backend in inference_backend_config and in a
 *              model's parameters.
 *
 * Owner    py_settings_t owns its document; its strings live until fini.
 * Thread   written by init, then read by any.
 * Units    _ns on the monotonic clock.
 * Errors   INVALID_ARG naming setting and value.
 * Route    TRITONBACKEND_Initialize, ModelInitialize -> [settings]
 *
 * Triton's settings of shared memory and threads are accepted; each is logged
 * once, as it has no effect here.
 */

#ifndef PY_SETTINGS_H
#define PY_SETTINGS_H

#include "common/model_config.h"

typedef struct {
    bk_json_t  *document;
    const char *interpreter;        /* "interpreter"; NULL: python3          */
    uint64_t    start_timeout_ns;   /* "stub-timeout-seconds", 30            */
    uint64_t    environment_bytes;  /* "environment-byte-size", 32 GiB       */
} py_settings_t;

typedef struct {
    const char *environment;        /* EXECUTION_ENV_PATH, or NULL           */
    bool        cpu_inputs;         /* FORCE_CPU_ONLY_INPUT_TENSORS, yes     */
    bool        zero_copy;          /* ZERO_COPY_INPUTS, no                  */
} py_model_settings_t;

/* Reads the backend's configuration, as JSON text. */
BK_CHECK TRITONSERVER_Error *py_settings_init(py_settings_t *s,
    const char *text, size_t len);
void py_settings_fini(py_settings_t *s);

/* Reads a model's parameters; strings are the configuration's. */
BK_CHECK TRITONSERVER_Error *py_model_settings_read(py_model_settings_t *s,
    const bk_model_config_t *config);

#endif /* PY_SETTINGS_H */
