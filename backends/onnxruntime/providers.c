/* providers.c - see providers.h */

#include "providers.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAX_SETTINGS 64

/* Key and value strings as the library takes them. */
typedef struct {
    const char *keys[MAX_SETTINGS];
    const char *values[MAX_SETTINGS];
    size_t      count;
    char        device[16];
} settings_t;

typedef struct {
    const char *ours;
    const char *theirs;
} word_t;

static TRITONSERVER_Error *append_gpu(OrtSessionOptions *options,
    const ort_runtime_t *rt, const bk_model_config_t *config,
    const bk_json_t *list, int32_t device_id);
static TRITONSERVER_Error *append_cpu(OrtSessionOptions *options,
    const ort_runtime_t *rt, const bk_json_t *list);
static TRITONSERVER_Error *append_cuda(OrtSessionOptions *options,
    const ort_runtime_t *rt, const bk_model_config_t *config,
    const bk_json_t *parameters, int32_t device_id);
static TRITONSERVER_Error *append_tensorrt(OrtSessionOptions *options,
    const ort_runtime_t *rt, const bk_json_t *parameters, int32_t device_id);
static TRITONSERVER_Error *append_openvino(OrtSessionOptions *options,
    const ort_runtime_t *rt, const bk_json_t *parameters);
static TRITONSERVER_Error *add_available(TRITONSERVER_Error *err,
    const ort_runtime_t *rt);
static TRITONSERVER_Error *settings_start(settings_t *s, int32_t device_id);
static TRITONSERVER_Error *settings_add(settings_t *s, const char *key,
    const char *value);
static TRITONSERVER_Error *settings_add_all(settings_t *s,
    const bk_json_t *parameters);
static TRITONSERVER_Error *settings_add_old_cuda(settings_t *s,
    const bk_model_config_t *config);
static TRITONSERVER_Error *settings_add_tensorrt(settings_t *s,
    const bk_json_t *parameters);
static const char *translate(const word_t *words, const char *word);

TRITONSERVER_Error *
ort_providers_append(OrtSessionOptions *options, const ort_runtime_t *rt,
    const bk_model_config_t *config, TRITONSERVER_InstanceGroupKind kind,
    int32_t device_id)
{
    const bk_json_t *lists = bk_json_member(bk_json_member(config->root,
        "optimization"), "execution_accelerators");

    if (kind == TRITONSERVER_INSTANCEGROUPKIND_GPU) {
        return append_gpu(options, rt, config, bk_json_member(lists,
            "gpu_execution_accelerator"), device_id);
    }

    return append_cpu(options, rt, bk_json_member(lists,
        "cpu_execution_accelerator"));
}

static TRITONSERVER_Error *
append_gpu(OrtSessionOptions *options, const ort_runtime_t *rt,
    const bk_model_config_t *config, const bk_json_t *list, int32_t device_id)
{
    const bk_json_t *cuda = NULL;

    for (size_t i = 0; i < bk_json_count(list); i++) {
        const bk_json_t *one = bk_json_at(list, i);
        const char *name = bk_json_string(bk_json_member(one, "name"), "");
        const bk_json_t *parameters = bk_json_member(one, "parameters");

        if (strcmp(name, "tensorrt") == 0) {
            TRITONSERVER_Error *err = append_tensorrt(options, rt,
                parameters, device_id);
            if (err != NULL) {
                return err;
            }

        } else if (strcmp(name, "cuda") == 0) {
            cuda = parameters;

        } else {
            return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
                "unknown Execution Accelerator '%s' is requested for "
                "GPU instances; known are tensorrt and cuda", name);
        }
    }

    /* CUDA runs what the accelerators before it can't */
    return append_cuda(options, rt, config, cuda, device_id);
}

static TRITONSERVER_Error *
append_cpu(OrtSessionOptions *options, const ort_runtime_t *rt,
    const bk_json_t *list)
{
    for (size_t i = 0; i < bk_json_count(list); i++) {
        const bk_json_t *one = bk_json_at(list, i);
        const char *name = bk_json_string(bk_json_member(one, "name"), "");

        if (strcmp(name, "openvino") != 0) {
            return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
                "unknown Execution Accelerator '%s' is requested for "
                "CPU instances; known is openvino", name);
        }

        TRITONSERVER_Error *err = append_openvino(options, rt,
            bk_json_member(one, "parameters"));
        if (err != NULL) {
            return err;
        }
    }

    return NULL;
}

static TRITONSERVER_Error *
append_cuda(OrtSessionOptions *options, const ort_runtime_t *rt,
    const bk_model_config_t *config, const bk_json_t *parameters,
    int32_t device_id)
{
    OrtCUDAProviderOptionsV2 *cuda = NULL;
    settings_t s;

    TRITONSERVER_Error *err = settings_start(&s, device_id);
    if (err == NULL) {
        err = settings_add_old_cuda(&s, config);
    }
    if (err == NULL) {
        err = settings_add_all(&s, parameters);
    }
    if (err != NULL) {
        return bk_err_add(err, "execution accelerator cuda");
    }

    err = ort_err(rt, rt->api->CreateCUDAProviderOptions(&cuda),
        "this ONNX Runtime has no CUDA provider for a KIND_GPU instance");
    if (err != NULL) {
        return add_available(err, rt);
    }

    err = ort_err(rt, rt->api->UpdateCUDAProviderOptions(cuda, s.keys,
        s.values, s.count), "execution accelerator cuda");
    if (err == NULL) {
        err = ort_err(rt,
            rt->api->SessionOptionsAppendExecutionProvider_CUDA_V2(options,
            cuda), "cannot use the CUDA provider on GPU %" PRId32, device_id);
        if (err != NULL) {
            err = add_available(err, rt);
        }
    }

    rt->api->ReleaseCUDAProviderOptions(cuda);
    return err;
}

static TRITONSERVER_Error *
append_tensorrt(OrtSessionOptions *options, const ort_runtime_t *rt,
    const bk_json_t *parameters, int32_t device_id)
{
    OrtTensorRTProviderOptionsV2 *tensorrt = NULL;
    settings_t s;

    TRITONSERVER_Error *err = settings_start(&s, device_id);
    if (err == NULL) {
        err = settings_add_tensorrt(&s, parameters);
    }
    if (err != NULL) {
        return bk_err_add(err, "execution accelerator tensorrt");
    }

    err = ort_err(rt, rt->api->CreateTensorRTProviderOptions(&tensorrt),
        "this ONNX Runtime has no TensorRT provider");
    if (err != NULL) {
        return add_available(err, rt);
    }

    err = ort_err(rt, rt->api->UpdateTensorRTProviderOptions(tensorrt,
        s.keys, s.values, s.count), "execution accelerator tensorrt");
    if (err == NULL) {
        err = ort_err(rt,
            rt->api->SessionOptionsAppendExecutionProvider_TensorRT_V2(
            options, tensorrt),
            "cannot use the TensorRT provider on GPU %" PRId32, device_id);
        if (err != NULL) {
            err = add_available(err, rt);
        }
    }

    rt->api->ReleaseTensorRTProviderOptions(tensorrt);
    return err;
}

static TRITONSERVER_Error *
append_openvino(OrtSessionOptions *options, const ort_runtime_t *rt,
    const bk_json_t *parameters)
{
    settings_t s = { .count = 0 };

    TRITONSERVER_Error *err = settings_add_all(&s, parameters);
    if (err != NULL) {
        return bk_err_add(err, "execution accelerator openvino");
    }

    return ort_err(rt, rt->api->SessionOptionsAppendExecutionProvider(
        options, "OpenVINO", s.keys, s.values, s.count),
        "cannot use the OpenVINO provider");
}

/* The library's version and what it was built with; takes err. */
static TRITONSERVER_Error *
add_available(TRITONSERVER_Error *err, const ort_runtime_t *rt)
{
    char text[BK_ERR_MAX] = "";
    char **names = NULL;
    size_t len = 0;
    int count = 0;

    ort_must(rt, rt->api->GetAvailableProviders(&names, &count));
    for (int i = 0; i < count && len < sizeof(text); i++) {
        len += (size_t) snprintf(text + len, sizeof(text) - len, "%s%s",
            i == 0 ? "" : ", ", names[i]);
    }
    if (names != NULL) {
        ort_must(rt, rt->api->ReleaseAvailableProviders(names, count));
    }

    return bk_err_add(err, "ONNX Runtime %s with %s",
        OrtGetApiBase()->GetVersionString(), text);
}

static TRITONSERVER_Error *
settings_start(settings_t *s, int32_t device_id)
{
    s->count = 0;
    snprintf(s->device, sizeof(s->device), "%" PRId32, device_id);

    return settings_add(s, "device_id", s->device);
}

static TRITONSERVER_Error *
settings_add(settings_t *s, const char *key, const char *value)
{
    if (s->count == MAX_SETTINGS) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "more than %d parameters", MAX_SETTINGS);
    }

    s->keys[s->count] = key;
    s->values[s->count] = value;
    s->count++;
    return NULL;
}

static TRITONSERVER_Error *
settings_add_all(settings_t *s, const bk_json_t *parameters)
{
    TRITONSERVER_Error *err = NULL;
    bk_json_iter_t it = { .object = (bk_json_t *) parameters };

    while (err == NULL && bk_json_next(&it)) {
        err = settings_add(s, it.key, bk_json_string(it.value, ""));
    }

    return err;
}

/* parameters of the model that older configurations carry */
static TRITONSERVER_Error *
settings_add_old_cuda(settings_t *s, const bk_model_config_t *config)
{
    static const word_t searches[] = {
        { "0", "EXHAUSTIVE" }, { "1", "HEURISTIC" }, { "2", "DEFAULT" },
        { NULL, NULL }
    };
    static const word_t strategies[] = {
        { "0", "kNextPowerOfTwo" }, { "1", "kSameAsRequested" },
        { NULL, NULL }
    };
    static const word_t as_is[] = { { NULL, NULL } };
    static const struct {
        const char   *key;
        const word_t *values;
    } old[] = {
        { "cudnn_conv_algo_search", searches },
        { "gpu_mem_limit", as_is },
        { "arena_extend_strategy", strategies },
        { "do_copy_in_default_stream", as_is }
    };
    TRITONSERVER_Error *err = NULL;

    for (size_t i = 0; err == NULL && i < sizeof(old) / sizeof(old[0]); i++) {
        const char *value = bk_model_config_parameter(config, old[i].key);
        if (value != NULL) {
            err = settings_add(s, old[i].key, translate(old[i].values,
                value));
        }
    }

    return err;
}

static TRITONSERVER_Error *
settings_add_tensorrt(settings_t *s, const bk_json_t *parameters)
{
    static const word_t keys[] = {
        { "max_workspace_size_bytes", "trt_max_workspace_size" },
        { "int8_calibration_table_name", "trt_int8_calibration_table_name" },
        { "int8_use_native_calibration_table",
          "trt_int8_use_native_calibration_table" },
        { NULL, NULL }
    };
    static const word_t switches[] = {
        { "true", "1" }, { "false", "0" }, { NULL, NULL }
    };
    TRITONSERVER_Error *err = NULL;
    bk_json_iter_t it = { .object = (bk_json_t *) parameters };

    while (err == NULL && bk_json_next(&it)) {
        const char *value = bk_json_string(it.value, "");

        if (strcmp(it.key, "precision_mode") != 0) {
            err = settings_add(s, translate(keys, it.key),
                translate(switches, value));

        } else if (strcmp(value, "FP16") == 0) {
            err = settings_add(s, "trt_fp16_enable", "1");

        } else if (strcmp(value, "INT8") == 0) {
            err = settings_add(s, "trt_int8_enable", "1");

        } else if (strcmp(value, "FP32") != 0) {
            err = bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
                "precision_mode is \"%s\"; it must be FP32, FP16 or INT8",
                value);
        }
    }

    return err;
}

/* words ends with NULL; a word that is not in it means itself */
static const char *
translate(const word_t *words, const char *word)
{
    for (; words->ours != NULL; words++) {
        if (strcmp(words->ours, word) == 0) {
            return words->theirs;
        }
    }

    return word;
}
