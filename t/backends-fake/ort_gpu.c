/*
 * ort_gpu.c - an ONNX Runtime with a CUDA provider and no GPU, for tests: the
 *             real library, whose tensors of device memory are those of the
 *             fake CUDA driver.
 *
 * Owner    The real library, opened once by path (ORT_GPU_REAL), owns all
 *          objects but the provider's options.
 * Thread   any; counters are atomic.
 * Units    calls.
 * Errors   Device memory that the fake driver has not given out, or of a GPU
 *          that no provider is for, is ORT_FAIL: the real library would read
 *          what is not there.
 * Route    backend -> [ort_gpu] -> libonnxruntime
 *
 * It shows that memory is bound in place, not that a GPU computes.
 */

#include "ort_gpu.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include <onnxruntime_c_api.h>

#include "fake_cuda.h"

#define EXPORT __attribute__((visibility("default")))

/* The object behind a type that the library does not define in public. */
typedef struct {
    int  device;
    char text[1024];
} options_t;

static const OrtApi *real;
static OrtApi ours;
static struct {
    _Atomic uint64_t  inputs, outputs, runs;
    _Atomic int       device;       /* of the last provider                  */
    _Atomic uint64_t  devices;      /* a bit for each of all providers       */
    char              text[1024];   /* the last provider's options           */
    _Atomic uintptr_t bytes[64];    /* of the last tensors on a GPU          */
    _Atomic uint32_t  next;
} seen = { .device = -1 };

EXPORT void
ort_gpu_seen(ort_gpu_seen_t *out)
{
    *out = (ort_gpu_seen_t) { .inputs = seen.inputs, .outputs = seen.outputs,
        .runs = seen.runs, .device = seen.device };
    memcpy(out->options, seen.text, sizeof(out->options));
}

static OrtStatusPtr ORT_API_CALL
cuda_options_new(OrtCUDAProviderOptionsV2 **out)
{
    *out = (OrtCUDAProviderOptionsV2 *) calloc(1, sizeof(options_t));
    return NULL;
}

static OrtStatusPtr ORT_API_CALL
cuda_options_update(OrtCUDAProviderOptionsV2 *options,
    const char *const *keys, const char *const *values, size_t count)
{
    options_t *o = (options_t *) options;

    for (size_t i = 0; i < count; i++) {
        size_t left = sizeof(o->text) - strlen(o->text) - 1;

        if (strlen(keys[i]) + strlen(values[i]) + 2 > left) {
            return real->CreateStatus(ORT_INVALID_ARGUMENT, "long options");
        }
        strcat(strcat(strcat(strcat(o->text, keys[i]), "="), values[i]), " ");
        if (strcmp(keys[i], "device_id") == 0) {
            o->device = atoi(values[i]);
        }
    }

    return NULL;
}

static void ORT_API_CALL
cuda_options_free(OrtCUDAProviderOptionsV2 *options)
{
    free(options);
}

static OrtStatusPtr ORT_API_CALL
append_cuda(OrtSessionOptions *session, const OrtCUDAProviderOptionsV2 *cuda)
{
    const options_t *o = (const options_t *) cuda;

    (void) session;
    seen.device = o->device;
    seen.devices |= UINT64_C(1) << o->device;
    memcpy(seen.text, o->text, sizeof(seen.text));
    return NULL;
}

static bool
is_cuda(const OrtMemoryInfo *info, int *device)
{
    const char *name = "";

    if (real->MemoryInfoGetName(info, &name) != NULL
        || real->MemoryInfoGetId(info, device) != NULL)
    {
        abort();
    }
    return strcmp(name, "Cuda") == 0;
}

/* The bytes behind the device's memory stand for it. */
static OrtStatusPtr ORT_API_CALL
tensor_over(const OrtMemoryInfo *info, void *data, size_t len,
    const int64_t *shape, size_t dims, ONNXTensorElementDataType type,
    OrtValue **out)
{
    OrtMemoryInfo *cpu = NULL;
    int device = 0;

    if (!is_cuda(info, &device)) {
        return real->CreateTensorWithDataAsOrtValue(info, data, len, shape,
            dims, type, out);
    }
    if ((seen.devices >> device & 1) == 0) {
        return real->CreateStatus(ORT_FAIL, "memory of another GPU");
    }

    char *bytes = fake_cuda_bytes(data);
    if (bytes == NULL
        || (len != 0 && fake_cuda_bytes((char *) data + len - 1) == NULL))
    {
        return real->CreateStatus(ORT_FAIL, "no memory of a GPU");
    }

    seen.bytes[seen.next++ % 64] = (uintptr_t) bytes;
    OrtStatusPtr status = real->CreateCpuMemoryInfo(OrtDeviceAllocator,
        OrtMemTypeDefault, &cpu);
    if (status == NULL) {
        status = real->CreateTensorWithDataAsOrtValue(cpu, bytes, len, shape,
            dims, type, out);
        real->ReleaseMemoryInfo(cpu);
    }
    return status;
}

static bool
on_gpu(const OrtValue *value)
{
    void *at = NULL;

    OrtStatusPtr status = real->GetTensorMutableData((OrtValue *) value, &at);
    if (status != NULL) {               /* strings have no such address      */
        real->ReleaseStatus(status);
        return false;
    }

    for (size_t i = 0; i < 64; i++) {
        if (seen.bytes[i] == (uintptr_t) at) {
            return true;
        }
    }
    return false;
}

static OrtStatusPtr ORT_API_CALL
bind_input(OrtIoBinding *binding, const char *name, const OrtValue *value)
{
    seen.inputs += on_gpu(value);
    return real->BindInput(binding, name, value);
}

static OrtStatusPtr ORT_API_CALL
bind_output(OrtIoBinding *binding, const char *name, const OrtValue *value)
{
    seen.outputs += on_gpu(value);
    return real->BindOutput(binding, name, value);
}

static OrtStatusPtr ORT_API_CALL
run_with_binding(OrtSession *session, const OrtRunOptions *options,
    const OrtIoBinding *binding)
{
    seen.runs++;
    return real->RunWithBinding(session, options, binding);
}

static const OrtApi *ORT_API_CALL
get_api(uint32_t version)
{
    return version == ORT_API_VERSION ? &ours : NULL;
}

static const char *ORT_API_CALL
get_version(void)
{
    return "fake";
}

EXPORT const OrtApiBase *ORT_API_CALL
OrtGetApiBase(void)
{
    static const OrtApiBase base = { get_api, get_version };
    const OrtApiBase *(*theirs)(void) = NULL;

    if (real != NULL) {
        return &base;
    }

    void *library = dlopen(ORT_GPU_REAL, RTLD_NOW | RTLD_LOCAL);
    if (library != NULL) {
        theirs = (const OrtApiBase *(*)(void)) dlsym(library,
            "OrtGetApiBase");
    }
    if (theirs == NULL) {
        abort();
    }

    real = theirs()->GetApi(ORT_API_VERSION);
    memcpy(&ours, real, sizeof(ours));
    ours.CreateCUDAProviderOptions = cuda_options_new;
    ours.UpdateCUDAProviderOptions = cuda_options_update;
    ours.ReleaseCUDAProviderOptions = cuda_options_free;
    ours.SessionOptionsAppendExecutionProvider_CUDA_V2 = append_cuda;
    ours.CreateTensorWithDataAsOrtValue = tensor_over;
    ours.BindInput = bind_input;
    ours.BindOutput = bind_output;
    ours.RunWithBinding = run_with_binding;
    return &base;
}
