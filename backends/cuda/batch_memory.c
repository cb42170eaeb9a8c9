/* batch_memory.c - see batch_memory.h */

#include "batch_memory.h"

#include <inttypes.h>

#define DEVICE_PART 8           /* of the device's memory, for an instance   */

static TRITONSERVER_Error *count_needs(gpu_batch_t *b);
static TRITONSERVER_Error *need_of(const gpu_batch_t *b, uint32_t i,
    int64_t *bytes);
static const char *name_of(const gpu_batch_t *b, uint32_t i);
static uint64_t drop_what_is_too_much(gpu_batch_t *b);
static TRITONSERVER_Error *grow(gpu_batch_t *b, uint32_t i, uint64_t spare);

/* A configuration that tells the sizes may take more: it is the operator's
   word, not a client's. */
TRITONSERVER_Error *
gpu_batch_memory_largest(gpu_batch_t *b, bool *known)
{
    uint32_t inputs = b->program->input_count;
    size_t left = 0, all = 0;

    *known = false;
    TRITONSERVER_Error *err = gpu_check(b->device,
        b->device->f->memory_info(&left, &all), "memory of GPU %d",
        b->device->ordinal);
    if (err != NULL) {
        return err;
    }

    b->memory_most = b->program->memory_most > 0
        ? (uint64_t) b->program->memory_most : all / DEVICE_PART;
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
    if (b->program->memory_most == 0) {
        b->memory_most = INT64_MAX;
    }
    err = gpu_program_shape(b->program, b->rows, b->shapes);
    return err != NULL ? err : gpu_batch_memory_take(b);
}

/* Before a batch queues anything.  Allocations that are larger than this batch
   needs are freed only where all together would exceed the limit. */
TRITONSERVER_Error *
gpu_batch_memory_take(gpu_batch_t *b)
{
    uint32_t tensors = b->program->tensor_count;
    uint32_t count = tensors + b->program->buffer_count;

    TRITONSERVER_Error *err = count_needs(b);
    if (err != NULL) {
        return err;
    }

    uint64_t spare = drop_what_is_too_much(b);
    for (uint32_t i = 0; i < count; i++) {
        if (b->needed[i] == 0) {
            continue;
        }

        if (b->allocations[i].size < b->needed[i]) {
            err = grow(b, i, spare);
            if (err != NULL) {
                return err;
            }
            spare -= b->allocations[i].size - b->needed[i];
        }
        b->addresses[i] = b->allocations[i].base;
    }

    for (uint32_t i = 0; i < b->program->buffer_count; i++) {
        if (b->program->buffers[i].file != NULL) {
            b->addresses[tensors + i] = b->loaded->weights[i];
        }
    }
    return NULL;
}

static TRITONSERVER_Error *
count_needs(gpu_batch_t *b)
{
    uint32_t count = b->program->tensor_count + b->program->buffer_count;
    uint64_t all = 0;

    for (uint32_t i = 0; i < count; i++) {
        int64_t bytes = 0;

        TRITONSERVER_Error *err = need_of(b, i, &bytes);
        if (err == NULL && bytes < 0) {
            err = bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
                "\"%s\" would have %" PRId64 " bytes", name_of(b, i), bytes);
        }
        if (err == NULL && (uint64_t) bytes > b->memory_most - all) {
            err = bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "\"%s\" needs %"
                PRId64 " bytes on GPU %d, %" PRIu64 " are needed before it;"
                " an instance may take %" PRIu64 " (parameter \"memory\")",
                name_of(b, i), bytes, b->device->ordinal, all,
                b->memory_most);
        }
        if (err != NULL) {
            return err;
        }

        b->needed[i] = (uint64_t) bytes;
        all += (uint64_t) bytes;
    }
    return NULL;
}

/* 0: weights, an absent input, an input that is used where it lies. */
static TRITONSERVER_Error *
need_of(const gpu_batch_t *b, uint32_t i, int64_t *bytes)
{
    const gpu_program_t *p = b->program;
    gpu_shapes_t shapes = { .batch = b->rows, .tensors = b->shapes };
    TRITONSERVER_Error *err = NULL;

    if (i < p->input_count && (b->shapes[i].absent || b->addresses[i] != 0)) {
        return NULL;
    }
    if (i < p->tensor_count) {
        *bytes = b->shapes[i].bytes;

    } else if (p->buffers[i - p->tensor_count].file != NULL) {
        return NULL;

    } else {
        err = gpu_expression_value(&p->buffers[i - p->tensor_count].bytes,
            &shapes, p->buffers[i - p->tensor_count].name, bytes);
    }

    /* an empty one has an address, too */
    *bytes = err == NULL && *bytes == 0 ? 1 : *bytes;
    return err;
}

static const char *
name_of(const gpu_batch_t *b, uint32_t i)
{
    return i < b->program->tensor_count ? b->program->tensors[i].name
        : b->program->buffers[i - b->program->tensor_count].name;
}

/* How much more than this batch needs may be taken. */
static uint64_t
drop_what_is_too_much(gpu_batch_t *b)
{
    uint32_t count = b->program->tensor_count + b->program->buffer_count;

    for (bool dropped = false; ; dropped = true) {
        uint64_t left = b->memory_most;
        bool fits = true;

        for (uint32_t i = 0; i < count; i++) {
            uint64_t size = b->allocations[i].size > b->needed[i]
                ? b->allocations[i].size : b->needed[i];
            fits = fits && size <= left;
            left -= fits ? size : 0;
        }
        if (fits) {
            return left;
        }
        if (dropped) {                  /* needs alone were counted: never   */
            return 0;
        }

        for (uint32_t i = 0; i < count; i++) {
            if (b->allocations[i].size > b->needed[i]) {
                (void) b->device->f->free(b->allocations[i].base);
                b->allocations[i] = (gpu_allocation_t) { 0 };
            }
        }
    }
}

/* A half more than needed where memory grows, so that sizes that rise little
   by little take new memory now and then, not each time.  The old memory is
   freed first only where the device cannot hold both. */
static TRITONSERVER_Error *
grow(gpu_batch_t *b, uint32_t i, uint64_t spare)
{
    const gpu_functions_t *f = b->device->f;
    gpu_allocation_t *allocation = &b->allocations[i];
    uint64_t least = b->needed[i];
    uint64_t more = allocation->base == 0 ? 0 : least / 2 < spare ? least / 2
        : spare;
    uint64_t size = least + more;
    gpu_ptr_t base = 0;

    gpu_result_t rc = f->alloc(&base, size);
    if (rc == GPU_OUT_OF_MEMORY && more > 0) {
        size = least;
        rc = f->alloc(&base, size);
    }
    if (rc != GPU_OUT_OF_MEMORY && rc != GPU_SUCCESS) {
        return gpu_check(b->device, rc, "memory for \"%s\"", name_of(b, i));
    }

    if (allocation->base != 0) {
        (void) f->free(allocation->base);
        *allocation = (gpu_allocation_t) { 0 };
    }
    if (rc == GPU_OUT_OF_MEMORY) {
        size = least;
        rc = f->alloc(&base, size);
    }
    if (rc != GPU_SUCCESS) {
        return gpu_check(b->device, rc, "GPU %d has no %" PRIu64 " bytes for"
            " \"%s\"", b->device->ordinal, least, name_of(b, i));
    }

    *allocation = (gpu_allocation_t) { .base = base, .size = size };
    return NULL;
}
