/*
 * openvino.c - backend openvino as the kit's table of functions.
 *
 * Owner    The backend's object is a runtime, a model's a model, an
 *          instance's an instance.
 * Thread   as the core calls; instances may load in parallel.
 * Units    none.
 * Errors   returned to the core from open and new; per request from execute.
 * Route    core -> entry -> [openvino] -> runtime, model, instance
 */

#include "instance.h"

#include "common/entry.h"
#include "common/unused_fields.h"

static TRITONSERVER_Error *runtime_open(void **runtime,
    TRITONBACKEND_Backend *backend);
static void runtime_close(void *runtime);

static const char *const used_fields[] = { BK_FIELD_STATE, NULL };

static const char *const parameters[] = {
    "TARGET_DEVICE", "PERFORMANCE_HINT", "NUM_STREAMS",
    "INFERENCE_NUM_THREADS", "COMPILATION_NUM_THREADS", "HINT_BF16",
    "CPU_EXTENSION_PATH", "SKIP_OV_DYNAMIC_BATCHSIZE", "ENABLE_BATCH_PADDING",
    "RESHAPE_IO_LAYERS", NULL
};

const bk_backend_t bk_backend = {
    .open = runtime_open,
    .close = runtime_close,
    .model_new = vino_model_new,
    .model_free = vino_model_free,
    .instance_new = vino_instance_new,
    .instance_free = vino_instance_free,
    .execute = vino_instance_execute,
    .used_fields = used_fields,
    .parameters = parameters,
    .cpu_only = true
};

static TRITONSERVER_Error *
runtime_open(void **runtime, TRITONBACKEND_Backend *backend)
{
    vino_runtime_t *rt = NULL;

    TRITONSERVER_Error *err = vino_runtime_open(&rt, backend);
    *runtime = rt;
    return err;
}

static void
runtime_close(void *runtime)
{
    vino_runtime_close(runtime);
}
