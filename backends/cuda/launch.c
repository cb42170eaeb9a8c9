/* launch.c - see launch.h */

#include "launch.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define TEXT_MAX 512
#define BLOCK_Z_MOST 64         /* of every GPU                              */

static TRITONSERVER_Error *launch_make(gpu_launch_t *launch,
    const gpu_kernel_t *kernel, const gpu_loaded_t *loaded,
    const gpu_shapes_t *shapes, const gpu_addresses_t *addresses);
static TRITONSERVER_Error *make_geometry(gpu_launch_t *launch,
    const gpu_kernel_t *kernel, const gpu_loaded_t *loaded,
    const gpu_shapes_t *shapes);
static TRITONSERVER_Error *extent(const gpu_expression_t *e,
    const gpu_shapes_t *shapes, const char *what, int64_t least, int64_t most,
    unsigned *out);
static TRITONSERVER_Error *make_argument(uint64_t *value,
    const gpu_argument_t *a, const gpu_shapes_t *shapes,
    const gpu_addresses_t *addresses, const char *what);

TRITONSERVER_Error *
gpu_launches_make(gpu_launch_t *launches, uint32_t *count,
    const gpu_program_t *program, const gpu_loaded_t *loaded,
    const gpu_shapes_t *shapes, const gpu_addresses_t *addresses)
{
    *count = 0;
    for (uint32_t i = 0; i < program->kernel_count; i++) {
        gpu_launch_t *launch = &launches[*count];

        memset(launch, 0, sizeof(*launch));
        launch->kernel = i;
        TRITONSERVER_Error *err = launch_make(launch, &program->kernels[i],
            loaded, shapes, addresses);
        if (err != NULL) {
            return err;
        }
        *count += launch->grid[0] > 0 && launch->grid[1] > 0
            && launch->grid[2] > 0;
    }

    return NULL;
}

TRITONSERVER_Error *
gpu_launches_run(const gpu_launch_t *launches, uint32_t count,
    const gpu_program_t *program, const gpu_loaded_t *loaded,
    gpu_stream_t stream)
{
    for (uint32_t i = 0; i < count; i++) {
        const gpu_launch_t *l = &launches[i];
        void *arguments[GPU_ARGUMENTS_MAX];

        for (int k = 0; k < GPU_ARGUMENTS_MAX; k++) {
            arguments[k] = (void *) &l->values[k];
        }

        TRITONSERVER_Error *err = gpu_check(loaded->device,
            loaded->device->f->launch(loaded->kernels[l->kernel].handle,
            l->grid[0], l->grid[1], l->grid[2], l->block[0], l->block[1],
            l->block[2], l->shared, stream, arguments, NULL),
            "cannot launch kernel \"%s\"", program->kernels[l->kernel].name);
        if (err != NULL) {
            return err;
        }
    }

    return NULL;
}

static TRITONSERVER_Error *
launch_make(gpu_launch_t *launch, const gpu_kernel_t *kernel,
    const gpu_loaded_t *loaded, const gpu_shapes_t *shapes,
    const gpu_addresses_t *addresses)
{
    char what[TEXT_MAX];

    TRITONSERVER_Error *err = make_geometry(launch, kernel, loaded, shapes);
    for (uint32_t i = 0; err == NULL && i < kernel->argument_count; i++) {
        snprintf(what, sizeof(what), "argument %u of kernel \"%s\"", i + 1,
            kernel->name);
        err = make_argument(&launch->values[i], &kernel->arguments[i],
            shapes, addresses, what);
    }
    return err;
}

static TRITONSERVER_Error *
make_geometry(gpu_launch_t *launch, const gpu_kernel_t *kernel,
    const gpu_loaded_t *loaded, const gpu_shapes_t *shapes)
{
    const gpu_loaded_kernel_t *k = &loaded->kernels[launch->kernel];
    TRITONSERVER_Error *err = NULL;
    uint64_t threads = 1;
    char what[TEXT_MAX];

    for (int i = 0; err == NULL && i < 3; i++) {
        snprintf(what, sizeof(what), "kernel \"%s\", grid.%c", kernel->name,
            'x' + i);
        err = extent(&kernel->grid[i], shapes, what, 0,
            loaded->device->grid_most[i], &launch->grid[i]);
    }
    for (int i = 0; err == NULL && i < 3; i++) {
        snprintf(what, sizeof(what), "kernel \"%s\", block.%c", kernel->name,
            'x' + i);
        err = extent(&kernel->block[i], shapes, what, 1,
            i == 2 && k->threads_most > BLOCK_Z_MOST ? BLOCK_Z_MOST
            : k->threads_most, &launch->block[i]);
        threads *= launch->block[i];
    }
    if (err == NULL && threads > (uint64_t) k->threads_most) {
        err = bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "kernel \"%s\": a"
            " block of %" PRIu64 " threads; GPU %d runs %d of it at most",
            kernel->name, threads, loaded->device->ordinal, k->threads_most);
    }
    if (err != NULL || kernel->shared.count == 0) {
        return err;
    }

    snprintf(what, sizeof(what), "kernel \"%s\", bytes of shared memory on"
        " GPU %d", kernel->name, loaded->device->ordinal);
    return extent(&kernel->shared, shapes, what, 0, k->shared_most,
        &launch->shared);
}

/* Without steps: 1. */
static TRITONSERVER_Error *
extent(const gpu_expression_t *e, const gpu_shapes_t *shapes,
    const char *what, int64_t least, int64_t most, unsigned *out)
{
    int64_t value = 1;

    TRITONSERVER_Error *err = e->count == 0 ? NULL
        : gpu_expression_value(e, shapes, what, &value);
    if (err == NULL && (value < least || value > most)) {
        err = bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "%s: %" PRId64
            " is not from %" PRId64 " to %" PRId64, what, value, least, most);
    }

    *out = (unsigned) value;
    return err;
}

static TRITONSERVER_Error *
make_argument(uint64_t *value, const gpu_argument_t *a,
    const gpu_shapes_t *shapes, const gpu_addresses_t *addresses,
    const char *what)
{
    float single = (float) a->constant;
    int64_t number = 0;
    int32_t narrow;

    if (a->kind == GPU_ARGUMENT_INT || a->kind == GPU_ARGUMENT_LONG) {
        TRITONSERVER_Error *err = gpu_expression_value(&a->value, shapes,
            what, &number);
        if (err != NULL) {
            return err;
        }
    }

    switch (a->kind) {
    case GPU_ARGUMENT_TENSOR:
        *value = addresses->tensors[a->index];
        break;
    case GPU_ARGUMENT_BUFFER:
        *value = addresses->buffers[a->index];
        break;
    case GPU_ARGUMENT_INT:
        narrow = (int32_t) number;
        if (narrow != number) {
            return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG, "%s: %" PRId64
                " is beyond 32 bits", what, number);
        }
        memcpy(value, &narrow, sizeof(narrow));
        break;
    case GPU_ARGUMENT_LONG:
        memcpy(value, &number, sizeof(number));
        break;
    case GPU_ARGUMENT_FLOAT:
        memcpy(value, &single, sizeof(single));
        break;
    case GPU_ARGUMENT_DOUBLE:
        memcpy(value, &a->constant, sizeof(a->constant));
        break;
    }

    return NULL;
}
