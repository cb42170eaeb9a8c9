/* runtime.c - see runtime.h */

#include "runtime.h"

#include "common/model_config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_MAX_BATCH_SIZE 4

typedef struct {
    int64_t intra_threads;
    int64_t inter_threads;
} global_pool_t;

static TRITONSERVER_Error *find_api(ort_runtime_t *rt);
static TRITONSERVER_Error *read_settings(ort_runtime_t *rt,
    global_pool_t *pool, TRITONBACKEND_Backend *backend);
static TRITONSERVER_Error *make_env(ort_runtime_t *rt,
    const global_pool_t *pool);
static TRITONSERVER_Error *make_env_with_pool(ort_runtime_t *rt,
    const global_pool_t *pool, OrtLoggingLevel level);
static void ORT_API_CALL take_log_record(void *param, OrtLoggingLevel level,
    const char *category, const char *logid, const char *place,
    const char *message);

TRITONSERVER_Error *
ort_runtime_open(void **out, TRITONBACKEND_Backend *backend)
{
    global_pool_t pool = { 0 };

    ort_runtime_t *rt = calloc(1, sizeof(*rt));
    if (rt == NULL) {
        return bk_err_nomem("state of the onnxruntime backend");
    }

    TRITONSERVER_Error *err = find_api(rt);
    if (err != NULL) {
        goto fail;
    }

    err = read_settings(rt, &pool, backend);
    if (err != NULL) {
        goto fail;
    }

    err = make_env(rt, &pool);
    if (err != NULL) {
        goto fail;
    }

    err = ort_err(rt, rt->api->GetAllocatorWithDefaultOptions(&rt->allocator),
        "allocator");
    if (err != NULL) {
        goto fail;
    }

    err = ort_err(rt, rt->api->CreateCpuMemoryInfo(OrtDeviceAllocator,
        OrtMemTypeDefault, &rt->cpu), "CPU memory");
    if (err != NULL) {
        goto fail;
    }

    *out = rt;
    return NULL;

fail:

    ort_runtime_close(rt);
    return bk_err_add(err, "cannot start ONNX Runtime");
}

void
ort_runtime_close(void *runtime)
{
    ort_runtime_t *rt = runtime;

    if (rt->cpu != NULL) {
        rt->api->ReleaseMemoryInfo(rt->cpu);
    }
    if (rt->env != NULL) {
        rt->api->ReleaseEnv(rt->env);
    }
    free(rt);
}

TRITONSERVER_Error *
ort_err(const ort_runtime_t *rt, OrtStatus *status, const char *fmt, ...)
{
    char what[BK_ERR_MAX];
    va_list args;

    if (status == NULL) {
        return NULL;
    }

    va_start(args, fmt);
    vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);

    TRITONSERVER_Error_Code code = TRITONSERVER_ERROR_INTERNAL;
    OrtErrorCode number = rt->api->GetErrorCode(status);
    switch (number) {

    case ORT_INVALID_ARGUMENT:
        code = TRITONSERVER_ERROR_INVALID_ARG;
        break;

    case ORT_NO_SUCHFILE:
        code = TRITONSERVER_ERROR_NOT_FOUND;
        break;

    case ORT_NOT_IMPLEMENTED:
        code = TRITONSERVER_ERROR_UNSUPPORTED;
        break;

    default:
        break;
    }

    const char *why = rt->api->GetErrorMessage(status);
    size_t len = strlen(why);

    while (len > 0 && why[len - 1] == '\n') {
        len--;
    }

    TRITONSERVER_Error *err = bk_err_new(code, "onnx runtime error %d: %.*s"
        " (%s)", (int) number, (int) len, why, what);
    rt->api->ReleaseStatus(status);

    return err;
}

void
ort_must(const ort_runtime_t *rt, OrtStatus *status)
{
    bk_err_log(ort_err(rt, status, "unexpected"), "ONNX Runtime");
}

static TRITONSERVER_Error *
find_api(ort_runtime_t *rt)
{
    const OrtApiBase *base = OrtGetApiBase();

    rt->api = base->GetApi(ORT_API_VERSION);
    if (rt->api == NULL) {
        return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
            "the library is version %s and too old: this backend was "
            "compiled against version 1.%d", base->GetVersionString(),
            ORT_API_VERSION);
    }

    return NULL;
}

static TRITONSERVER_Error *
read_settings(ort_runtime_t *rt, global_pool_t *pool,
    TRITONBACKEND_Backend *backend)
{
    const bk_json_t *line;
    bk_json_t *root;

    TRITONSERVER_Error *err = bk_backend_settings(backend, &root, &line);
    if (err != NULL) {
        return err;
    }

    rt->default_max_batch_size = DEFAULT_MAX_BATCH_SIZE;
    err = bk_backend_setting_int(line, "default-max-batch-size", INT32_MIN,
        INT32_MAX, &rt->default_max_batch_size);
    if (err == NULL) {
        err = bk_backend_setting_bool(line, "enable-global-threadpool",
            &rt->global_threads);
    }
    if (err == NULL) {
        err = bk_backend_setting_int(line, "intra_op_thread_count", 0,
            ORT_THREADS_MAX, &pool->intra_threads);
    }
    if (err == NULL) {
        err = bk_backend_setting_int(line, "inter_op_thread_count", 0,
            ORT_THREADS_MAX, &pool->inter_threads);
    }
    bk_json_free(root);
    return err;
}

static TRITONSERVER_Error *
make_env(ort_runtime_t *rt, const global_pool_t *pool)
{
    OrtLoggingLevel level = TRITONSERVER_LogIsEnabled(
        TRITONSERVER_LOG_VERBOSE) ? ORT_LOGGING_LEVEL_INFO
        : ORT_LOGGING_LEVEL_WARNING;

    if (rt->global_threads) {
        return make_env_with_pool(rt, pool, level);
    }

    return ort_err(rt, rt->api->CreateEnvWithCustomLogger(take_log_record,
        NULL, level, "onnxruntime", &rt->env), "environment");
}

static TRITONSERVER_Error *
make_env_with_pool(ort_runtime_t *rt, const global_pool_t *pool,
    OrtLoggingLevel level)
{
    OrtThreadingOptions *threads = NULL;

    TRITONSERVER_Error *err = ort_err(rt,
        rt->api->CreateThreadingOptions(&threads), "thread options");
    if (err != NULL) {
        return err;
    }

    ort_must(rt, rt->api->SetGlobalIntraOpNumThreads(threads,
        (int) pool->intra_threads));
    ort_must(rt, rt->api->SetGlobalInterOpNumThreads(threads,
        (int) pool->inter_threads));
    err = ort_err(rt, rt->api->CreateEnvWithCustomLoggerAndGlobalThreadPools(
        take_log_record, NULL, level, "onnxruntime", threads, &rt->env),
        "environment");
    rt->api->ReleaseThreadingOptions(threads);

    return err;
}

static void ORT_API_CALL
take_log_record(void *param, OrtLoggingLevel level, const char *category,
    const char *logid, const char *place, const char *message)
{
    static const TRITONSERVER_LogLevel levels[] = {
        [ORT_LOGGING_LEVEL_VERBOSE] = TRITONSERVER_LOG_VERBOSE,
        [ORT_LOGGING_LEVEL_INFO] = TRITONSERVER_LOG_VERBOSE,
        [ORT_LOGGING_LEVEL_WARNING] = TRITONSERVER_LOG_WARN,
        [ORT_LOGGING_LEVEL_ERROR] = TRITONSERVER_LOG_ERROR,
        [ORT_LOGGING_LEVEL_FATAL] = TRITONSERVER_LOG_ERROR
    };

    (void) param;
    (void) category;
    (void) logid;
    bk_log(levels[level], "onnxruntime: %s (%s)", message, place);
}
