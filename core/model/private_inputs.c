#include "core/model/private_inputs.h"

#include <string.h>

#include "core/include/channel.h"
#include "core/model/config_parameter.h"

static inf_err_t *copy_buffer(inf_arena_t *arena, inf_buffer_t *b);

/* These run operators in place on the memory that they are given. */
static const char *const writing_backends[] = { "pytorch" };

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

inf_err_t *
inf_private_inputs_make(inf_request_t *req)
{
    for (uint32_t i = 0; req->inputs_uncopied && i < req->input_count; i++) {
        inf_input_t *in = &req->inputs[i];

        for (uint32_t b = 0; b < in->buffer_count; b++) {
            inf_err_t *err = copy_buffer(&req->arena, &in->buffers[b]);
            if (err != NULL) {
                return err;
            }
        }
    }

    req->inputs_uncopied = false;
    return NULL;
}

/* Aligned as in the worker's arena. */
static inf_err_t *
copy_buffer(inf_arena_t *arena, inf_buffer_t *b)
{
    if (b->memory_type == INF_MEMORY_GPU || b->size == 0) {
        return NULL;
    }

    char *p = inf_arena_alloc(arena, b->size + INF_ARENA_ALIGN);
    if (p == NULL) {
        return inf_err_nomem();
    }

    p += -(uintptr_t) p % INF_ARENA_ALIGN;
    memcpy(p, b->base, b->size);
    *b = (inf_buffer_t) {
        .base = p,
        .size = b->size,
        .memory_type = INF_MEMORY_CPU
    };
    return NULL;
}
