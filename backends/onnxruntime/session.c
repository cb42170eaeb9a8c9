/* session.c - see session.h */

#include "session.h"

#include "common/device.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The library's functions for one kind of tensors: inputs, inputs with a
 * default, outputs. */
typedef struct {
    OrtStatus *(ORT_API_CALL *count)(const OrtSession *s, size_t *n);
    OrtStatus *(ORT_API_CALL *name)(const OrtSession *s, size_t i,
        OrtAllocator *a, char **name);
    OrtStatus *(ORT_API_CALL *type)(const OrtSession *s, size_t i,
        OrtTypeInfo **info);
} tensor_source_t;

static TRITONSERVER_Error *session_open_device(ort_session_t *s,
    int32_t device_id);
static TRITONSERVER_Error *session_describe(ort_session_t *s);
static TRITONSERVER_Error *source_count(const ort_session_t *s,
    const tensor_source_t *from, uint32_t *count);
static TRITONSERVER_Error *source_read(const ort_session_t *s,
    const tensor_source_t *from, bk_tensor_t *list, uint32_t count);
static TRITONSERVER_Error *tensor_read(const ort_session_t *s,
    const tensor_source_t *from, size_t i, bk_tensor_t *t);
static TRITONSERVER_Error *tensor_read_type(const ort_session_t *s,
    const OrtTypeInfo *info, const char *name, bk_tensor_t *t);
static TRITONSERVER_Error *tensor_read_dims(const ort_session_t *s,
    const OrtTensorTypeAndShapeInfo *info, const char *name, bk_tensor_t *t);
static TRITONSERVER_Error *inputs_check(const ort_session_t *s);
static TRITONSERVER_DataType datatype_of(int type);

TRITONSERVER_Error *
ort_session_load(OrtSession **out, const ort_runtime_t *rt, const char *path,
    const OrtSessionOptions *options)
{
    return ort_err(rt, rt->api->CreateSession(rt->env, path, options, out),
        "cannot load \"%s\"", path);
}

TRITONSERVER_Error *
ort_session_new(ort_session_t **out, const ort_runtime_t *rt,
    const char *path, OrtSession *handle, bool borrowed,
    OrtRunOptions *run_options, int32_t device_id)
{
    ort_session_t *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return bk_err_nomem("session");
    }

    s->rt = rt;
    s->handle = handle;
    s->borrowed = true;                 /* the caller's until it succeeds    */
    TRITONSERVER_Error *err = session_describe(s);
    if (err != NULL) {
        err = bk_err_add(err, "\"%s\"", path);
        goto fail;
    }

    if (device_id != BK_NO_DEVICE) {
        err = session_open_device(s, device_id);
        if (err != NULL) {
            goto fail;
        }
    }

    s->run_options = run_options;
    s->borrowed = borrowed;
    *out = s;
    return NULL;

fail:

    ort_session_free(s);
    return err;
}

void
ort_session_free(ort_session_t *s)
{
    if (s == NULL) {
        return;
    }

    bk_tensors_fini(&s->tensors);
    if (s->binding != NULL) {
        s->rt->api->ReleaseIoBinding(s->binding);
    }
    if (s->device != NULL) {
        s->rt->api->ReleaseMemoryInfo(s->device);
    }
    if (s->run_options != NULL) {
        s->rt->api->ReleaseRunOptions(s->run_options);
    }
    if (!s->borrowed) {
        s->rt->api->ReleaseSession(s->handle);
    }
    free(s);
}

/* "Cuda" is the library's name for the memory of its CUDA provider. */
static TRITONSERVER_Error *
session_open_device(ort_session_t *s, int32_t device_id)
{
    const OrtApi *api = s->rt->api;

    s->device_id = device_id;
    TRITONSERVER_Error *err = ort_err(s->rt, api->CreateMemoryInfo("Cuda",
        OrtDeviceAllocator, device_id, OrtMemTypeDefault, &s->device),
        "memory of GPU %" PRId32, device_id);

    return err != NULL ? err : ort_err(s->rt, api->CreateIoBinding(s->handle,
        &s->binding), "I/O binding");
}

static TRITONSERVER_Error *
session_describe(ort_session_t *s)
{
    const OrtApi *api = s->rt->api;
    const tensor_source_t inputs = { api->SessionGetInputCount,
        api->SessionGetInputName, api->SessionGetInputTypeInfo };
    const tensor_source_t defaults = {
        api->SessionGetOverridableInitializerCount,
        api->SessionGetOverridableInitializerName,
        api->SessionGetOverridableInitializerTypeInfo };
    const tensor_source_t outputs = { api->SessionGetOutputCount,
        api->SessionGetOutputName, api->SessionGetOutputTypeInfo };
    bk_tensors_t *t = &s->tensors;
    uint32_t required_count = 0;
    uint32_t default_count = 0;
    uint32_t output_count = 0;

    TRITONSERVER_Error *err = source_count(s, &inputs, &required_count);
    if (err == NULL) {
        err = source_count(s, &defaults, &default_count);
    }
    if (err == NULL) {
        err = source_count(s, &outputs, &output_count);
    }
    if (err == NULL) {
        err = bk_tensors_init(t, required_count, default_count, output_count);
    }
    if (err == NULL) {
        err = source_read(s, &inputs, t->inputs, required_count);
    }
    if (err == NULL) {
        err = source_read(s, &defaults, t->inputs + required_count,
            default_count);
    }
    if (err == NULL) {
        err = source_read(s, &outputs, t->outputs, output_count);
    }

    return err != NULL ? err : inputs_check(s);
}

static TRITONSERVER_Error *
source_count(const ort_session_t *s, const tensor_source_t *from,
    uint32_t *count)
{
    size_t n = 0;

    TRITONSERVER_Error *err = ort_err(s->rt, from->count(s->handle, &n),
        "number of tensors");
    if (err == NULL && n > INT32_MAX / 2) {
        err = bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED, "%zu tensors", n);
    }

    *count = (uint32_t) n;
    return err;
}

static TRITONSERVER_Error *
source_read(const ort_session_t *s, const tensor_source_t *from,
    bk_tensor_t *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        TRITONSERVER_Error *err = tensor_read(s, from, i, &list[i]);
        if (err != NULL) {
            return err;
        }
    }

    return NULL;
}

static TRITONSERVER_Error *
tensor_read(const ort_session_t *s, const tensor_source_t *from, size_t i,
    bk_tensor_t *t)
{
    const ort_runtime_t *rt = s->rt;
    OrtTypeInfo *info = NULL;
    char *name = NULL;

    TRITONSERVER_Error *err = ort_err(rt, from->name(s->handle, i,
        rt->allocator, &name), "name of tensor %zu", i);
    if (err != NULL) {
        return err;
    }

    err = ort_err(rt, from->type(s->handle, i, &info), "type of \"%s\"",
        name);
    if (err == NULL) {
        err = tensor_read_type(s, info, name, t);
        rt->api->ReleaseTypeInfo(info);
    }

    rt->allocator->Free(rt->allocator, name);
    return err;
}

static TRITONSERVER_Error *
tensor_read_type(const ort_session_t *s, const OrtTypeInfo *info,
    const char *name, bk_tensor_t *t)
{
    const OrtTensorTypeAndShapeInfo *tensor = NULL;
    const OrtApi *api = s->rt->api;
    ONNXTensorElementDataType type;

    /* sequences and maps give NULL and stay TYPE_INVALID */
    TRITONSERVER_Error *err = ort_err(s->rt,
        api->CastTypeInfoToTensorInfo(info, &tensor), "type of \"%s\"", name);
    if (err != NULL) {
        return err;
    }
    if (tensor == NULL) {
        return bk_tensor_set(t, name, TRITONSERVER_TYPE_INVALID, NULL, 0);
    }

    err = ort_err(s->rt, api->GetTensorElementType(tensor, &type),
        "element type of \"%s\"", name);
    if (err != NULL) {
        return err;
    }

    t->type = (int) type;
    return tensor_read_dims(s, tensor, name, t);
}

static TRITONSERVER_Error *
tensor_read_dims(const ort_session_t *s,
    const OrtTensorTypeAndShapeInfo *info, const char *name, bk_tensor_t *t)
{
    const char *symbols[BK_MAX_DIMS];
    int64_t dims[BK_MAX_DIMS];
    const OrtApi *api = s->rt->api;
    size_t n = 0;

    TRITONSERVER_Error *err = ort_err(s->rt,
        api->GetDimensionsCount(info, &n), "rank of \"%s\"", name);
    if (err == NULL && n > BK_MAX_DIMS) {
        err = bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
            "tensor \"%s\" has %zu dimensions, more than %d", name, n,
            BK_MAX_DIMS);
    }
    if (err == NULL) {
        err = ort_err(s->rt, api->GetDimensions(info, dims, n),
            "dimensions of \"%s\"", name);
    }
    if (err == NULL) {
        err = bk_tensor_set(t, name, datatype_of(t->type), dims,
            (uint32_t) n);
    }
    if (err != NULL || n == 0 || dims[0] != -1) {
        return err;
    }

    err = ort_err(s->rt, api->GetSymbolicDimensions(info, symbols, n),
        "dimensions of \"%s\"", name);
    if (err != NULL || symbols[0] == NULL || symbols[0][0] == '\0') {
        return err;
    }

    t->symbol = strdup(symbols[0]);
    return t->symbol == NULL ? bk_err_nomem("dimension of a tensor") : NULL;
}

static TRITONSERVER_Error *
inputs_check(const ort_session_t *s)
{
    for (uint32_t i = 0; i < s->tensors.required_count; i++) {
        const bk_tensor_t *t = &s->tensors.inputs[i];
        if (t->datatype == TRITONSERVER_TYPE_INVALID) {
            return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
                "input \"%s\" of the model is not a tensor of a type that "
                "requests can carry (ONNX element type %d)", t->name,
                t->type);
        }
    }

    return NULL;
}

static TRITONSERVER_DataType
datatype_of(int type)
{
    switch (type) {
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL:
        return TRITONSERVER_TYPE_BOOL;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8:
        return TRITONSERVER_TYPE_UINT8;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16:
        return TRITONSERVER_TYPE_UINT16;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32:
        return TRITONSERVER_TYPE_UINT32;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64:
        return TRITONSERVER_TYPE_UINT64;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8:
        return TRITONSERVER_TYPE_INT8;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16:
        return TRITONSERVER_TYPE_INT16;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32:
        return TRITONSERVER_TYPE_INT32;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64:
        return TRITONSERVER_TYPE_INT64;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16:
        return TRITONSERVER_TYPE_FP16;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16:
        return TRITONSERVER_TYPE_BF16;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT:
        return TRITONSERVER_TYPE_FP32;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE:
        return TRITONSERVER_TYPE_FP64;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING:
        return TRITONSERVER_TYPE_BYTES;
    default:
        return TRITONSERVER_TYPE_INVALID;
    }
}
