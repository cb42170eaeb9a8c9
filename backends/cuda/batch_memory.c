/* batch_memory.c - see batch_memory.h */

#include "batch_memory.h"

#include <inttypes.h>

TRITONSERVER_Error *
gpu_batch_memory_largest(gpu_batch_t *b, bool *known)
{
    uint32_t inputs = b->program->input_count;

    *known = false;
    for (uint32_t i = 0; i < inputs; i++) {
        const gpu_tensor_t *t = &b->program->tensors[i];

        for (uint32_t d = 0; d < t->dims_count; d++) {
            b->shapes[i].dims[d] = t->dims[d];
            if (t->dims[d] < 0) {
                return NULL;
            }
        }
    }

    *known = true;
    b->rows = b->program->rows_most > 0 ? b->program->rows_most : 1;
    TRITONSERVER_Error *err = gpu_program_shape(b->program, b->rows,
        b->shapes);
    for (uint32_t i = 0; err == NULL && i < inputs; i++) {
        err = gpu_batch_memory_reserve(b, i, b->shapes[i].bytes);
        b->places[i] = b->rooms[i].base;
    }
    return err != NULL ? err : gpu_batch_memory_rest(b);
}

TRITONSERVER_Error *
gpu_batch_memory_rest(gpu_batch_t *b)
{
    const gpu_program_t *p = b->program;
    gpu_shapes_t shapes = { .batch = b->rows, .tensors = b->shapes };
    TRITONSERVER_Error *err = NULL;

    for (uint32_t i = p->input_count; err == NULL && i < p->tensor_count; i++)
    {
        err = gpu_batch_memory_reserve(b, i, b->shapes[i].bytes);
        b->places[i] = b->rooms[i].base;
    }

    for (uint32_t i = 0; err == NULL && i < p->buffer_count; i++) {
        const gpu_buffer_t *buffer = &p->buffers[i];
        int64_t bytes;

        if (buffer->file != NULL) {
            b->places[p->tensor_count + i] = b->loaded->weights[i];
            continue;
        }

        err = gpu_expression_value(&buffer->bytes, &shapes, buffer->name,
            &bytes);
        if (err == NULL) {
            err = gpu_batch_memory_reserve(b, p->tensor_count + i, bytes);
        }
        b->places[p->tensor_count + i] = b->rooms[p->tensor_count + i].base;
    }

    return err;
}

/* A half more than asked for where it grows, so that sizes that rise little by
   little take new memory now and then, not each time.  A room of 0 bytes has
   an address, too. */
TRITONSERVER_Error *
gpu_batch_memory_reserve(gpu_batch_t *b, uint32_t i, int64_t bytes)
{
    gpu_room_t *room = &b->rooms[i];
    const char *name = i < b->program->tensor_count
        ? b->program->tensors[i].name
        : b->program->buffers[i - b->program->tensor_count].name;

    if (bytes < 0) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "\"%s\" would have %" PRId64 " bytes", name, bytes);
    }
    if (room->base != 0 && (uint64_t) bytes <= room->size) {
        return NULL;
    }

    uint64_t least = bytes > 0 ? (uint64_t) bytes : 1;
    uint64_t size = room->base != 0 ? least + least / 2 : least;
    if (room->base != 0) {
        (void) b->device->f->free(room->base);
        *room = (gpu_room_t) { 0 };
    }

    gpu_result_t rc = b->device->f->alloc(&room->base, size);
    if (rc == GPU_OUT_OF_MEMORY && size > least) {
        size = least;
        rc = b->device->f->alloc(&room->base, size);
    }
    if (rc != GPU_SUCCESS) {
        room->base = 0;
        return gpu_check(b->device, rc, "GPU %d has no %" PRIu64 " bytes for"
            " \"%s\"", b->device->ordinal, least, name);
    }
    room->size = size;
    return NULL;
}
