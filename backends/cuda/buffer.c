/* buffer.c - see buffer.h */

#include "buffer.h"

#include <string.h>

TRITONSERVER_Error *
gpu_buffer_read(gpu_buffer_t *b, const char *parameter, const char *name,
    bool is_file, const char *text, const gpu_names_t *names)
{
    gpu_reader_t r = {
        .parameter = parameter, .text = text != NULL ? text : ""
    };
    gpu_word_t word = { name, strlen(name) };

    *b = (gpu_buffer_t) { .name = name, .file = is_file ? r.text : NULL };
    if (word.len == 0 || gpu_tensor_find(names->tensors, names->tensor_count,
        word) < names->tensor_count
        || gpu_buffer_find(names, word) < names->buffer_count)
    {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "parameter \"%s\":"
            " a buffer needs a name that no tensor or other buffer has",
            parameter);
    }
    if (is_file) {
        return NULL;
    }

    TRITONSERVER_Error *err = gpu_expression_read(&b->bytes, &r, names);
    if (err == NULL && !gpu_reader_at_end(&r)) {
        err = gpu_reader_error(&r, "the expression goes on behind its end");
        gpu_buffer_fini(b);
    }
    return err;
}

void
gpu_buffer_fini(gpu_buffer_t *b)
{
    gpu_expression_fini(&b->bytes);
}

uint32_t
gpu_buffer_find(const gpu_names_t *names, gpu_word_t name)
{
    uint32_t i = 0;

    while (i < names->buffer_count
        && !gpu_word_is(name, names->buffers[i].name))
    {
        i++;
    }
    return i;
}
