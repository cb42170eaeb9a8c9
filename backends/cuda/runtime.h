/*
 * runtime.h - the state that all models of the backend share.
 *
 * Owner    The core's backend object owns it from Initialize to Finalize.
 * Thread   open and close: one; then any.
 * Units    none.
 * Errors   A missing driver or compiler is an error of the models that need
 *          it, not of the backend.
 * Route    cuda -> [runtime] -> driver, compiler, cache
 */

#ifndef GPU_RUNTIME_H
#define GPU_RUNTIME_H

#include "cache.h"
#include "common/gpu_compiler.h"
#include "common/gpu_driver.h"

typedef struct gpu_runtime_s gpu_runtime_t;

/* Reads the backend's settings. */
BK_CHECK TRITONSERVER_Error *gpu_runtime_open(void **out,
    TRITONBACKEND_Backend *backend);
void gpu_runtime_close(void *runtime);

/* The driver, which the backend opened with its start, or the error of
 * that. */
BK_CHECK TRITONSERVER_Error *gpu_runtime_driver(const gpu_runtime_t *rt,
    gpu_driver_t **out);

/* Opens the compiler and the cache, unless an earlier call has. */
BK_CHECK TRITONSERVER_Error *gpu_runtime_compiler(gpu_runtime_t *rt,
    gpu_compiler_t **compiler, gpu_cache_t **cache);

#endif /* GPU_RUNTIME_H */
