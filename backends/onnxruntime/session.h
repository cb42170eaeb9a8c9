/*
 * session.h - a loaded model file and its tensors.
 *
 * Owner    The caller frees the session, which owns the tensor tables, its run
 *          options, and the library's session unless that is borrowed.
 * Thread   read-only after new but for the binding's tensors; the library
 *          allows concurrent runs of its session, each with a binding of its
 *          own or without one.
 * Units    dims are elements, -1 where the model leaves them open.
 * Errors   NOT_FOUND: no such file.  UNSUPPORTED: no tensor can fill an input.
 *          Otherwise the library's messages, with the file's path.
 * Route    options -> [session] -> common: complete, fit, runner
 */

#ifndef ORT_SESSION_H
#define ORT_SESSION_H

#include "runtime.h"

#include "common/tensors.h"

typedef struct {
    const ort_runtime_t *rt;
    OrtSession          *handle;
    bool                 borrowed;          /* handle is the model's         */
    OrtRunOptions       *run_options;
    OrtMemoryInfo       *device;            /* NULL: it runs on the CPU      */
    int32_t              device_id;         /* GPU, where device is set      */
    OrtIoBinding        *binding;           /* instance's thread; where
                                             * device is set                 */
    bk_tensors_t         tensors;           /* type: its ONNX element type   */
} ort_session_t;

/* Loads a session of the library, which a function of the library releases. */
BK_CHECK TRITONSERVER_Error *ort_session_load(OrtSession **out,
    const ort_runtime_t *rt, const char *path,
    const OrtSessionOptions *options);

/* Takes run_options on success, and handle unless it is borrowed.  device_id:
 * the GPU that the handle was loaded for, or BK_NO_DEVICE. */
BK_CHECK TRITONSERVER_Error *ort_session_new(ort_session_t **out,
    const ort_runtime_t *rt, const char *path, OrtSession *handle,
    bool borrowed, OrtRunOptions *run_options, int32_t device_id);
void ort_session_free(ort_session_t *s);

#endif /* ORT_SESSION_H */
