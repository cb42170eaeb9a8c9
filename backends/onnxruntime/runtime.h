/*
 * runtime.h - the ONNX Runtime library: its table of functions and the one
 *             environment that all sessions of this process share.
 *
 * Owner    The backend object owns the runtime from Initialize to Finalize;
 *          models and instances borrow it.
 * Thread   written by open and close, read by anyone between.
 * Units    none.
 * Errors   ort_err turns a status into an error: INVALID_ARG, NOT_FOUND,
 *          UNSUPPORTED where the library says so, else INTERNAL.
 * Route    Initialize -> [runtime] -> options, session, batch
 */

#ifndef ORT_RUNTIME_H
#define ORT_RUNTIME_H

#include <onnxruntime_c_api.h>

#include "common/error.h"

#define ORT_THREADS_MAX 1024            /* the library starts them at once   */

typedef struct {
    const OrtApi  *api;
    OrtEnv        *env;
    OrtAllocator  *allocator;           /* the library's own, never freed    */
    OrtMemoryInfo *cpu;
    int64_t        default_max_batch_size;
    bool           global_threads;      /* sessions share one thread pool    */
} ort_runtime_t;

/* Reads the backend's settings, makes the environment: an ort_runtime_t. */
BK_CHECK TRITONSERVER_Error *ort_runtime_open(void **out,
    TRITONBACKEND_Backend *backend);
void ort_runtime_close(void *runtime);

/* NULL for a NULL status; takes the status.  The text is Triton's,
   "onnx runtime error <number>: <why> (<what>)". */
BK_CHECK TRITONSERVER_Error *ort_err(const ort_runtime_t *rt,
    OrtStatus *status, const char *fmt, ...) BK_PRINTF(3, 4);

/* For calls that cannot fail with the arguments given: a failure is logged. */
void ort_must(const ort_runtime_t *rt, OrtStatus *status);

#endif /* ORT_RUNTIME_H */
