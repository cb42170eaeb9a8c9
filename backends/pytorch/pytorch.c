/*
 * pytorch.c - the functions of the pytorch backend that the core calls.
 *
 * Owner    as common/entry.h says: models and instances.
 * Thread   as the core calls; instances may load in parallel.
 * Units    none.
 * Errors   returned to the core from new and open; per request from execute.
 * Route    core -> common/entry -> [pytorch] -> runtime, model, instance
 */

#include "instance.h"
#include "runtime.h"

#include "common/entry.h"
#include "common/unused_fields.h"

/* The build sets it where PyTorch's libraries are those for CPUs. */
#ifndef PT_CPU_ONLY
#define PT_CPU_ONLY false
#endif

static const char *const used_fields[] = { BK_FIELD_STATE, NULL };

static const char *const parameters[] = {
    "INTRA_OP_THREAD_COUNT", "INTER_OP_THREAD_COUNT", "INFERENCE_MODE",
    "DISABLE_OPTIMIZED_EXECUTION", "ENABLE_WEIGHT_SHARING",
    "ENABLE_JIT_EXECUTOR", "ENABLE_JIT_PROFILING", "ENABLE_TENSOR_FUSER",
    "DISABLE_CUDNN", "ENABLE_CACHE_CLEANING", NULL
};

const bk_backend_t bk_backend = {
    .open = pt_runtime_open,
    .model_new = pt_model_new,
    .model_free = pt_model_free,
    .instance_new = pt_instance_new,
    .instance_free = pt_instance_free,
    .execute = pt_instance_execute,
    .used_fields = used_fields,
    .parameters = parameters,
    .cpu_only = PT_CPU_ONLY
};
