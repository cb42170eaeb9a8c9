/*
 * library.h - a model.so, and the state that it keeps for an instance.
 *
 * Owner    open gives the library to the model, new gives a state to an
 *          instance.
 * Thread   open and close: one; then any.  A state: its instance's.
 * Units    as gpu_model.h.
 * Errors   INVALID_ARG: not such a library.  INTERNAL: the library's message.
 * Route    model, instance -> [library] -> model.so
 */

#ifndef GPU_LIBRARY_H
#define GPU_LIBRARY_H

#include "common/error.h"
#include "gpu_model.h"

typedef struct {
    void *handle;
    int (*init)(void **state, const gpu_model_options_t *options, char *error,
        size_t error_size);
    int (*execute)(void *state, const gpu_model_tensor_t *inputs,
        uint32_t input_count, const gpu_model_tensor_t *outputs,
        uint32_t output_count, void *stream, char *error, size_t error_size);
    void (*fini)(void *state);
} gpu_library_t;

/* Loads the library at path, after its checks, and finds its functions. */
BK_CHECK TRITONSERVER_Error *gpu_library_open(gpu_library_t *l,
    const char *path);
void gpu_library_close(gpu_library_t *l);

/* The device is entered. */
BK_CHECK TRITONSERVER_Error *gpu_library_init(const gpu_library_t *l,
    void **state, const gpu_model_options_t *options);
BK_CHECK TRITONSERVER_Error *gpu_library_execute(const gpu_library_t *l,
    void *state, const gpu_model_tensor_t *inputs, uint32_t input_count,
    const gpu_model_tensor_t *outputs, uint32_t output_count, void *stream);

#endif /* GPU_LIBRARY_H */
