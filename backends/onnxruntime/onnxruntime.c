/*
 * onnxruntime.c - the functions of the onnxruntime backend that the core
 *                 calls.
 *
 * Owner    as common/entry.h says: a runtime, models and instances.
 * Thread   as the core calls; instances may load in parallel.
 * Units    none.
 * Errors   returned to the core from new and open; per request from execute.
 * Route    core -> common/entry -> [onnxruntime] -> runtime, model, instance
 */

#include "instance.h"

#include "common/entry.h"
#include "common/unused_fields.h"

static const char *const used_fields[] = {
    BK_FIELD_GRAPH, BK_FIELD_ACCELERATORS, BK_FIELD_CC_FILENAMES,
    BK_FIELD_OPERATIONS, BK_FIELD_STATE, NULL
};

static const char *const parameters[] = {
    "intra_op_thread_count", "inter_op_thread_count", "execution_mode",
    "enable_mem_arena", "enable_mem_pattern", "memory.*", "session.*",
    "cudnn_conv_algo_search", "gpu_mem_limit", "arena_extend_strategy",
    "do_copy_in_default_stream", "share_session_between_instances", NULL
};

const bk_backend_t bk_backend = {
    .open = ort_runtime_open,
    .close = ort_runtime_close,
    .model_new = ort_model_new,
    .model_free = ort_model_free,
    .instance_new = ort_instance_new,
    .instance_free = ort_instance_free,
    .execute = ort_instance_execute,
    .used_fields = used_fields,
    .parameters = parameters
};
