/* kernel.c - see kernel.h */

#include "kernel.h"

#include <stdlib.h>
#include <string.h>

static TRITONSERVER_Error *read_extent(gpu_expression_t extent[3],
    gpu_reader_t *r, const gpu_names_t *names);
static TRITONSERVER_Error *read_arguments(gpu_kernel_t *k, gpu_reader_t *r,
    const gpu_names_t *names);
static TRITONSERVER_Error *read_argument(gpu_argument_t *a, gpu_reader_t *r,
    const gpu_names_t *names);
static TRITONSERVER_Error *read_value(gpu_argument_t *a, gpu_reader_t *r,
    const gpu_names_t *names, gpu_word_t type);
static TRITONSERVER_Error *read_address(gpu_argument_t *a, gpu_reader_t *r,
    const gpu_names_t *names, gpu_word_t name);

TRITONSERVER_Error *
gpu_kernel_read(gpu_kernel_t *k, const char *parameter, const char *text,
    const gpu_names_t *names)
{
    gpu_reader_t r = { .parameter = parameter, .text = text };
    gpu_word_t name;

    *k = (gpu_kernel_t) { 0 };
    if (!gpu_reader_word(&r, &name)) {
        return gpu_reader_error(&r, "the kernel's name is missing");
    }

    k->name = strndup(name.text, name.len);
    if (k->name == NULL) {
        return bk_err_nomem("name of a kernel");
    }

    TRITONSERVER_Error *err = gpu_reader_expect(&r, "<<<");
    if (err == NULL) {
        err = read_extent(k->grid, &r, names);
    }
    if (err == NULL) {
        err = gpu_reader_expect(&r, ",");
    }
    if (err == NULL) {
        err = read_extent(k->block, &r, names);
    }
    if (err == NULL && gpu_reader_take(&r, ",")) {
        err = gpu_expression_read(&k->shared, &r, names);
    }
    if (err == NULL) {
        err = gpu_reader_expect(&r, ">>>");
    }
    if (err == NULL) {
        err = read_arguments(k, &r, names);
    }
    if (err == NULL && !gpu_reader_at_end(&r)) {
        err = gpu_reader_error(&r, "the line goes on behind its end");
    }

    return err;
}

void
gpu_kernel_fini(gpu_kernel_t *k)
{
    for (int i = 0; i < 3; i++) {
        gpu_expression_fini(&k->grid[i]);
        gpu_expression_fini(&k->block[i]);
    }
    gpu_expression_fini(&k->shared);
    for (uint32_t i = 0; i < k->argument_count; i++) {
        gpu_expression_fini(&k->arguments[i].value);
    }
    free(k->name);
    *k = (gpu_kernel_t) { 0 };
}

uint32_t
gpu_argument_size(gpu_argument_kind_t kind)
{
    return kind == GPU_ARGUMENT_INT || kind == GPU_ARGUMENT_FLOAT ? 4 : 8;
}

static TRITONSERVER_Error *
read_extent(gpu_expression_t extent[3], gpu_reader_t *r,
    const gpu_names_t *names)
{
    gpu_reader_t ahead = *r;
    gpu_word_t word;

    if (!gpu_reader_word(&ahead, &word) || !gpu_word_is(word, "dim3")
        || !gpu_reader_take(&ahead, "("))
    {
        return gpu_expression_read(&extent[0], r, names);
    }

    *r = ahead;
    TRITONSERVER_Error *err = NULL;
    int count = 0;
    do {
        err = gpu_expression_read(&extent[count++], r, names);
    } while (err == NULL && count < 3 && gpu_reader_take(r, ","));

    return err != NULL ? err : gpu_reader_expect(r, ")");
}

static TRITONSERVER_Error *
read_arguments(gpu_kernel_t *k, gpu_reader_t *r, const gpu_names_t *names)
{
    TRITONSERVER_Error *err = gpu_reader_expect(r, "(");
    if (err != NULL || gpu_reader_take(r, ")")) {
        return err;
    }

    do {
        if (k->argument_count == GPU_ARGUMENTS_MAX) {
            return gpu_reader_error(r, "more than %d arguments",
                GPU_ARGUMENTS_MAX);
        }
        err = read_argument(&k->arguments[k->argument_count++], r, names);
    } while (err == NULL && gpu_reader_take(r, ","));

    return err != NULL ? err : gpu_reader_expect(r, ")");
}

static TRITONSERVER_Error *
read_argument(gpu_argument_t *a, gpu_reader_t *r, const gpu_names_t *names)
{
    gpu_word_t word;

    if (!gpu_reader_word(r, &word)) {
        return gpu_reader_error(r, "an argument is missing: the name of a"
            " tensor or buffer, or int(), long(), float(), double()");
    }

    if (!gpu_reader_take(r, "(")) {
        return read_address(a, r, names, word);
    }

    TRITONSERVER_Error *err = read_value(a, r, names, word);
    return err != NULL ? err : gpu_reader_expect(r, ")");
}

static TRITONSERVER_Error *
read_value(gpu_argument_t *a, gpu_reader_t *r, const gpu_names_t *names,
    gpu_word_t type)
{
    bool is_float = gpu_word_is(type, "float");

    if (gpu_word_is(type, "int") || gpu_word_is(type, "long")) {
        a->kind = gpu_word_is(type, "int") ? GPU_ARGUMENT_INT
            : GPU_ARGUMENT_LONG;
        return gpu_expression_read(&a->value, r, names);
    }

    if (is_float || gpu_word_is(type, "double")) {
        a->kind = is_float ? GPU_ARGUMENT_FLOAT : GPU_ARGUMENT_DOUBLE;
        return gpu_reader_real(r, &a->constant) ? NULL
            : gpu_reader_error(r, "a number is missing");
    }

    return gpu_reader_error(r, "there is no type \"%.*s\" of arguments; there"
        " are int, long, float and double", (int) type.len, type.text);
}

static TRITONSERVER_Error *
read_address(gpu_argument_t *a, gpu_reader_t *r, const gpu_names_t *names,
    gpu_word_t name)
{
    a->kind = GPU_ARGUMENT_TENSOR;
    a->index = gpu_tensor_find(names->tensors, names->tensor_count, name);
    if (a->index < names->tensor_count) {
        return NULL;
    }

    a->kind = GPU_ARGUMENT_BUFFER;
    a->index = gpu_buffer_find(names, name);
    return a->index < names->buffer_count ? NULL
        : gpu_reader_error(r, "there is no tensor or buffer \"%.*s\"",
            (int) name.len, name.text);
}
