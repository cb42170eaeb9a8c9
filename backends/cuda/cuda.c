/*
 * cuda.c - the table of the cuda backend.
 *
 * Owner    as common/entry.h has it.
 * Thread   as the core calls; instances may load in parallel.
 * Units    none.
 * Errors   returned to the core from initialize; per request from execute.
 * Route    core -> entry -> [cuda] -> runtime, model, instance
 */

#include "instance.h"

#include "common/entry.h"
#include "common/unused_fields.h"

static const char *const used_fields[] = { BK_FIELD_STATE, NULL };

const bk_backend_t bk_backend = {
    .open = gpu_runtime_open,
    .close = gpu_runtime_close,
    .model_new = gpu_model_new,
    .model_free = gpu_model_free,
    .instance_new = gpu_instance_new,
    .instance_free = gpu_instance_free,
    .execute = gpu_instance_execute,
    .ready = gpu_instance_ready,
    .used_fields = used_fields
};
