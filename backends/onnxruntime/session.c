/* session.c - see session.h */

#include "session.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The field for the name of an input or output differs by its kind. */
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
    const tensor_source_t *from, ort_tensor_t *list, uint32_t count);
static TRITONSERVER_Error *tensor_read(const ort_session_t *s,
    const tensor_source_t *from, size_t i, ort_tensor_t *t);
static TRITONSERVER_Error *tensor_read_type(const ort_session_t *s,
    const OrtTypeInfo *info, ort_tensor_t *t);
static TRITONSERVER_Error *tensor_read_dims(const ort_session_t *s,
    const OrtTensorTypeAndShapeInfo *info, ort_tensor_t *t);
static TRITONSERVER_Error *inputs_check(const ort_session_t *s);
static TRITONSERVER_DataType datatype_of(ONNXTensorElementDataType e);
static const ort_tensor_t *tensor_find(const ort_tensor_t *list,
    uint32_t count, const char *name);
static void tensors_free(ort_tensor_t *list, uint32_t count);

TRITONSERVER_Error *
ort_session_new(ort_session_t **out, const ort_runtime_t *rt,
    const char *path, const OrtSessionOptions *options,
    OrtRunOptions *run_options, int32_t device_id)
{
    ort_session_t *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return bk_err_nomem("session");
    }

    s->rt = rt;
    TRITONSERVER_Error *err = ort_err(rt, rt->api->CreateSession(rt->env,
        path, options, &s->handle), "cannot load \"%s\"", path);
    if (err != NULL) {
        goto fail;
    }

    err = session_describe(s);
    if (err != NULL) {
        err = bk_err_add(err, "\"%s\"", path);
        goto fail;
    }

    if (device_id != ORT_NO_DEVICE) {
        err = session_open_device(s, device_id);
        if (err != NULL) {
            goto fail;
        }
    }

    s->run_options = run_options;
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

    tensors_free(s->inputs, s->input_count);
    tensors_free(s->outputs, s->output_count);
    if (s->binding != NULL) {
        s->rt->api->ReleaseIoBinding(s->binding);
    }
    if (s->device != NULL) {
        s->rt->api->ReleaseMemoryInfo(s->device);
    }
    if (s->run_options != NULL) {
        s->rt->api->ReleaseRunOptions(s->run_options);
    }
    if (s->handle != NULL) {
        s->rt->api->ReleaseSession(s->handle);
    }
    free(s);
}

const ort_tensor_t *
ort_session_input(const ort_session_t *s, const char *name)
{
    return tensor_find(s->inputs, s->input_count, name);
}

const ort_tensor_t *
ort_session_output(const ort_session_t *s, const char *name)
{
    return tensor_find(s->outputs, s->output_count, name);
}

const char *
ort_dims_text(const int64_t *dims, uint32_t count, char *text, size_t size)
{
    size_t len = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i <= count && len < size; i++) {
        if (i < count) {
            len += (size_t) snprintf(text + len, size - len, "%s%" PRId64,
                i == 0 ? "[" : ",", dims[i]);

        } else {
            len += (size_t) snprintf(text + len, size - len, "%s",
                count == 0 ? "[]" : "]");
        }
    }

    return text;
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
    uint32_t default_count = 0;
    uint32_t output_count = 0;

    TRITONSERVER_Error *err = source_count(s, &inputs, &s->required_count);
    if (err == NULL) {
        err = source_count(s, &defaults, &default_count);
    }
    if (err == NULL) {
        err = source_count(s, &outputs, &output_count);
    }
    if (err != NULL) {
        return err;
    }

    uint32_t input_count = s->required_count + default_count;
    s->inputs = calloc((size_t) input_count + 1, sizeof(*s->inputs));
    s->outputs = calloc((size_t) output_count + 1, sizeof(*s->outputs));
    if (s->inputs == NULL || s->outputs == NULL) {
        return bk_err_nomem("table of a model's tensors");
    }

    s->input_count = input_count;
    s->output_count = output_count;
    err = source_read(s, &inputs, s->inputs, s->required_count);
    if (err == NULL) {
        err = source_read(s, &defaults, s->inputs + s->required_count,
            default_count);
    }
    if (err == NULL) {
        err = source_read(s, &outputs, s->outputs, output_count);
    }
    if (err != NULL) {
        return err;
    }

    for (uint32_t i = s->required_count; i < input_count; i++) {
        s->inputs[i].initializer = true;
    }

    return inputs_check(s);
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
    ort_tensor_t *list, uint32_t count)
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
    ort_tensor_t *t)
{
    const ort_runtime_t *rt = s->rt;
    OrtTypeInfo *info = NULL;
    char *name = NULL;

    TRITONSERVER_Error *err = ort_err(rt, from->name(s->handle, i,
        rt->allocator, &name), "name of tensor %zu", i);
    if (err != NULL) {
        return err;
    }

    t->name = strdup(name);
    rt->allocator->Free(rt->allocator, name);
    if (t->name == NULL) {
        return bk_err_nomem("name of a tensor");
    }

    err = ort_err(rt, from->type(s->handle, i, &info), "type of \"%s\"",
        t->name);
    if (err != NULL) {
        return err;
    }

    err = tensor_read_type(s, info, t);
    rt->api->ReleaseTypeInfo(info);

    return err;
}

static TRITONSERVER_Error *
tensor_read_type(const ort_session_t *s, const OrtTypeInfo *info,
    ort_tensor_t *t)
{
    const OrtTensorTypeAndShapeInfo *tensor = NULL;
    const OrtApi *api = s->rt->api;

    /* sequences and maps give NULL and stay TYPE_INVALID */
    TRITONSERVER_Error *err = ort_err(s->rt,
        api->CastTypeInfoToTensorInfo(info, &tensor), "type of \"%s\"",
        t->name);
    if (err != NULL || tensor == NULL) {
        return err;
    }

    err = ort_err(s->rt, api->GetTensorElementType(tensor, &t->element),
        "element type of \"%s\"", t->name);
    if (err != NULL) {
        return err;
    }

    t->datatype = datatype_of(t->element);
    return tensor_read_dims(s, tensor, t);
}

static TRITONSERVER_Error *
tensor_read_dims(const ort_session_t *s,
    const OrtTensorTypeAndShapeInfo *info, ort_tensor_t *t)
{
    const char *symbols[ORT_MAX_DIMS];
    const OrtApi *api = s->rt->api;
    size_t n = 0;

    TRITONSERVER_Error *err = ort_err(s->rt,
        api->GetDimensionsCount(info, &n), "rank of \"%s\"", t->name);
    if (err != NULL) {
        return err;
    }

    if (n > ORT_MAX_DIMS) {
        return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
            "tensor \"%s\" has %zu dimensions, more than %d", t->name, n,
            ORT_MAX_DIMS);
    }

    t->dims = calloc(n + 1, sizeof(*t->dims));
    if (t->dims == NULL) {
        return bk_err_nomem("dimensions of a tensor");
    }

    t->dims_count = (uint32_t) n;
    err = ort_err(s->rt, api->GetDimensions(info, t->dims, n),
        "dimensions of \"%s\"", t->name);
    if (err != NULL || n == 0 || t->dims[0] != -1) {
        return err;
    }

    err = ort_err(s->rt, api->GetSymbolicDimensions(info, symbols, n),
        "dimensions of \"%s\"", t->name);
    if (err != NULL || symbols[0] == NULL || symbols[0][0] == '\0') {
        return err;
    }

    t->symbol = strdup(symbols[0]);
    return t->symbol == NULL ? bk_err_nomem("dimension of a tensor") : NULL;
}

static TRITONSERVER_Error *
inputs_check(const ort_session_t *s)
{
    for (uint32_t i = 0; i < s->required_count; i++) {
        const ort_tensor_t *t = &s->inputs[i];
        if (t->datatype == TRITONSERVER_TYPE_INVALID) {
            return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
                "input \"%s\" of the model is not a tensor of a type that "
                "requests can carry (ONNX element type %d)", t->name,
                (int) t->element);
        }
    }

    return NULL;
}

static TRITONSERVER_DataType
datatype_of(ONNXTensorElementDataType e)
{
    switch (e) {
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

static const ort_tensor_t *
tensor_find(const ort_tensor_t *list, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(list[i].name, name) == 0) {
            return &list[i];
        }
    }

    return NULL;
}

static void
tensors_free(ort_tensor_t *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        free(list[i].name);
        free(list[i].dims);
        free(list[i].symbol);
    }
    free(list);
}
