/*
 * session.h - one loaded model file and what it says of its tensors.
 *
 * Owner    ort_session_new gives the session to the caller; it owns the
 *          tensor tables and the run options it was made with.
 * Thread   read-only after new but for the binding's tensors; the library
 *          allows concurrent runs without a binding.
 * Units    dims are elements, -1 where the model leaves them open.
 * Errors   NOT_FOUND: no such file; else what the library says, with the
 *          file's path.  UNSUPPORTED: an input that no tensor can fill.
 * Route    options -> [session] -> complete, fit, batch
 */

#ifndef ORT_SESSION_H
#define ORT_SESSION_H

#include "runtime.h"

#include "common/model_config.h"

#define ORT_MAX_DIMS  64
#define ORT_NO_DEVICE (-1)

typedef struct {
    char                      *name;
    TRITONSERVER_DataType      datatype;    /* INVALID: nothing we can carry */
    ONNXTensorElementDataType  element;
    int64_t                   *dims;        /* with the batch dimension      */
    uint32_t                   dims_count;
    char                      *symbol;      /* name of an open first dim, or
                                             * NULL                          */
    bool                       initializer; /* an input with a default       */

    /* as the configuration says, set by ort_config_apply */
    bool                       ragged;      /* all requests in one dimension */
    const bk_batch_input_t    *made;        /* made for the batch            */
    const bk_batch_output_t   *scattered;   /* cut up by a request's shape   */
    const bk_tensor_config_t  *shape;       /* its entry, if scattered       */
    uint32_t                   source;      /* of made and scattered: input  */
} ort_tensor_t;

typedef struct {
    const ort_runtime_t *rt;
    OrtSession          *handle;
    OrtRunOptions       *run_options;
    OrtMemoryInfo       *device;            /* NULL: it runs on the CPU      */
    int32_t              device_id;         /* GPU, where device is set      */
    OrtIoBinding        *binding;           /* instance's thread; where
                                             * device is set                 */
    ort_tensor_t        *inputs;            /* defaults last                 */
    uint32_t             input_count;
    uint32_t             required_count;    /* inputs without a default      */
    ort_tensor_t        *outputs;
    uint32_t             output_count;
} ort_session_t;

/* Takes run_options on success.  device_id: the GPU that the options are for,
 * or ORT_NO_DEVICE. */
BK_CHECK TRITONSERVER_Error *ort_session_new(ort_session_t **out,
    const ort_runtime_t *rt, const char *path,
    const OrtSessionOptions *options, OrtRunOptions *run_options,
    int32_t device_id);
void ort_session_free(ort_session_t *s);

/* The tensor of that name, or NULL. */
const ort_tensor_t *ort_session_input(const ort_session_t *s,
    const char *name);
const ort_tensor_t *ort_session_output(const ort_session_t *s,
    const char *name);

/* "[-1,3,224]" in text, cut to fit. */
const char *ort_dims_text(const int64_t *dims, uint32_t count, char *text,
    size_t size);

#endif /* ORT_SESSION_H */
