#include "core/model/private_inputs.h"

#include <string.h>

#include "core/include/channel.h"
#include "core/model/config_parameter.h"
#include "core/model/model.h"
#include "core/tensor/copy.h"

static bool is_wanted(const inf_request_t *req, const inf_input_t *in,
    const inf_buffer_t *b, int64_t gpu);
static bool is_read_there(const inf_input_t *in, const inf_buffer_t *b,
    int64_t gpu);
static inf_err_t *count_copies(inf_request_t *req, int64_t gpu);
static inf_err_t *copy_inputs(inf_request_t *req, int64_t gpu,
    inf_copies_t *copies);
static inf_err_t *copy_buffer(inf_arena_t *arena, inf_buffer_t *b,
    inf_copies_t *copies);

/* Backends with operators that write to their input memory. */
static const char *const writing_backends[] = { "pytorch" };

/* Backends that read GPU memory only as whole tensors of their own GPU. */
static const char *const own_gpu_backends[] = {
    "onnxruntime", "trees", "fil"
};

inf_err_t *
inf_private_inputs_wanted(const Inference__ModelConfig *msg, bool *wanted)
{
    const char *text = inf_config_parameter(msg, INF_PRIVATE_INPUTS_KEY);

    *wanted = false;
    if (text == NULL) {
        for (size_t i = 0; msg->backend != NULL && i
            < sizeof(writing_backends) / sizeof(writing_backends[0]); i++)
        {
            *wanted |= strcmp(msg->backend, writing_backends[i]) == 0;
        }
        return NULL;
    }

    *wanted = strcmp(text, "true") == 0;
    if (!*wanted && strcmp(text, "false") != 0) {
        return inf_err_new(INF_ERR_INVALID_ARG, "parameter '%s' of %s must be"
            " 'true' or 'false', it is '%s'", INF_PRIVATE_INPUTS_KEY,
            msg->name, text);
    }

    return NULL;
}

bool
inf_private_inputs_own_gpu(const Inference__ModelConfig *msg)
{
    bool own = false;

    for (size_t i = 0; msg->backend != NULL && i
        < sizeof(own_gpu_backends) / sizeof(own_gpu_backends[0]); i++)
    {
        own |= strcmp(msg->backend, own_gpu_backends[i]) == 0;
    }
    return own;
}

inf_err_t *
inf_private_inputs_make(inf_request_t *req, int64_t gpu)
{
    inf_copies_t copies;

    if (req->inputs_state == INF_INPUTS_PRIVATE
        && gpu == INF_INPUTS_ANY_GPU)
    {
        return NULL;
    }
    if (req->inputs_state == INF_INPUTS_LOST) {
        return inf_err_new(INF_ERR_UNAVAILABLE, "a copy of the request's"
            " inputs has failed");
    }

    inf_err_t *none = count_copies(req, gpu);
    if (none != NULL) {
        return none;
    }

    inf_copies_init(&copies, inf_memory_shared());
    inf_err_t *err = copy_inputs(req, gpu, &copies);
    inf_err_t *late = inf_copies_finish(&copies);
    if (late != NULL) {
        inf_request_move_inputs(req, INF_INPUTS_LOST);
    }
    if (err != NULL) {
        inf_err_log(late);
        return err;
    }

    if (late == NULL) {
        inf_request_move_inputs(req, INF_INPUTS_PRIVATE);
    }
    return late;
}

/* Whether the input is to be copied.  Strings in a client's memory always are:
   their lengths are checked before a backend relies on them.  In later calls
   only inputs on a GPU are left. */
static bool
is_wanted(const inf_request_t *req, const inf_input_t *in,
    const inf_buffer_t *b, int64_t gpu)
{
    bool on_gpu = b->memory_type == INF_MEMORY_GPU;

    return (on_gpu && !is_read_there(in, b, gpu))
        || (req->inputs_state == INF_INPUTS_SHARED
        && ((in->in_region && in->datatype == INF_TYPE_BYTES)
            || (req->model->private_inputs && !on_gpu)));
}

static bool
is_read_there(const inf_input_t *in, const inf_buffer_t *b, int64_t gpu)
{
    uint32_t size = inf_datatype_size(in->datatype);

    return gpu == INF_INPUTS_ANY_GPU
        || (gpu == b->memory_id && in->buffer_count == 1 && size > 0
            && (uintptr_t) b->base % size == 0);
}

/* Counts the copies of inputs in regions, before anything is copied. */
static inf_err_t *
count_copies(inf_request_t *req, int64_t gpu)
{
    unsigned long long bytes = 0;

    if (req->copies == NULL) {
        return NULL;
    }

    for (uint32_t i = 0; i < req->input_count; i++) {
        const inf_input_t *in = &req->inputs[i];
        for (uint32_t b = 0; b < in->buffer_count; b++) {
            if (in->in_region
                && is_wanted(req, in, &in->buffers[b], gpu))
            {
                bytes += in->buffers[b].size;
            }
        }
    }

    unsigned long long bound = inf_budget_bound(req->copies);
    switch (inf_budget_take(req->copies, bytes)) {
    case INF_BUDGET_TAKEN:
        req->copied_bytes += bytes;
        break;
    case INF_BUDGET_IN_USE:
        return inf_err_because(inf_err_new(INF_ERR_UNAVAILABLE, "no room to"
            " copy the %llu bytes of inputs in shared memory: requests hold"
            " %llu of at most %llu bytes of copies (inference_shared_memory"
            " copies=)", bytes, (unsigned long long)
            inf_budget_used(req->copies), bound), INF_CAUSE_FULL);
    case INF_BUDGET_TOO_MUCH:
        return inf_err_new(INF_ERR_INVALID_ARG, "the inputs in shared memory"
            " that must be copied have %llu bytes, and copies may have %llu"
            " bytes in all (inference_shared_memory copies=)", bytes, bound);
    }

    return NULL;
}

/* Copies the inputs; the bytes are valid when all copies have ended. */
static inf_err_t *
copy_inputs(inf_request_t *req, int64_t gpu, inf_copies_t *copies)
{
    for (uint32_t i = 0; i < req->input_count; i++) {
        inf_input_t *in = &req->inputs[i];

        for (uint32_t b = 0; b < in->buffer_count; b++) {
            inf_err_t *err = is_wanted(req, in, &in->buffers[b], gpu)
                ? copy_buffer(&req->arena, &in->buffers[b], copies) : NULL;
            if (err != NULL) {
                return err;
            }
        }
    }

    return NULL;
}

/* Copies a buffer, aligned as in the worker's arena. */
static inf_err_t *
copy_buffer(inf_arena_t *arena, inf_buffer_t *b, inf_copies_t *copies)
{
    if (b->size == 0) {
        return NULL;
    }

    char *p = b->size <= SIZE_MAX - INF_ARENA_ALIGN
        ? inf_arena_alloc(arena, b->size + INF_ARENA_ALIGN) : NULL;
    if (p == NULL) {
        return inf_err_nomem();
    }

    p += -(uintptr_t) p % INF_ARENA_ALIGN;
    const inf_place_t to = { p, INF_MEMORY_CPU, 0 };
    const inf_place_t from = {
        (void *) (uintptr_t) b->base, b->memory_type, b->memory_id
    };
    inf_err_t *err = inf_copies_add(copies, &to, &from, b->size);
    if (err != NULL) {
        return err;
    }

    *b = (inf_buffer_t) {
        .base = p,
        .size = b->size,
        .memory_type = INF_MEMORY_CPU
    };
    return NULL;
}
