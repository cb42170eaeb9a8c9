/* batch.c - see batch.h */

#include "batch.h"

#include "batch_memory.h"
#include "inputs.h"
#include "outputs.h"
#include "wait.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static TRITONSERVER_Error *make_tables(gpu_batch_t *b);
static TRITONSERVER_Error *make_stream(gpu_batch_t *b);
static TRITONSERVER_Error *make_launches(gpu_batch_t *b, uint32_t *count);
static TRITONSERVER_Error *read_shapes(gpu_batch_t *b,
    const gpu_batch_request_t *reqs, uint32_t count);
static TRITONSERVER_Error *queue(gpu_batch_t *b, gpu_batch_request_t *reqs,
    uint32_t count, bk_times_t *times);
static TRITONSERVER_Error *compute(gpu_batch_t *b, uint32_t count);
static TRITONSERVER_Error *clear_outputs(gpu_batch_t *b);
static TRITONSERVER_Error *compute_by_library(gpu_batch_t *b);
static TRITONSERVER_Error *too_slow(const gpu_batch_t *b);

TRITONSERVER_Error *
gpu_batch_init(gpu_batch_t *b, gpu_device_t *device,
    const gpu_program_t *program, const gpu_loaded_t *loaded)
{
    uint32_t launches;
    bool known;

    *b = (gpu_batch_t) {
        .device = device, .program = program, .loaded = loaded
    };

    TRITONSERVER_Error *err = make_tables(b);
    if (err == NULL) {
        err = gpu_graphs_init(&b->graphs, program, loaded);
    }
    if (err == NULL) {
        err = gpu_enter(device);
    }
    if (err != NULL) {
        return err;
    }

    err = make_stream(b);
    if (err == NULL) {
        err = gpu_batch_memory_largest(b, &known);
    }
    if (err == NULL && known) {
        err = make_launches(b, &launches);
    }
    gpu_leave(device);
    return err;
}

void
gpu_batch_fini(gpu_batch_t *b)
{
    if (b->device != NULL && gpu_enter_to_free(b->device, "an instance")) {
        const gpu_functions_t *f = b->device->f;

        if (b->stream != NULL) {
            (void) f->stream_sync(b->stream);
        }
        gpu_graphs_fini(&b->graphs);
        for (uint32_t i = 0; b->allocations != NULL && i
            < b->program->tensor_count + b->program->buffer_count; i++)
        {
            if (b->allocations[i].base != 0) {
                (void) f->free(b->allocations[i].base);
            }
        }
        if (b->end != NULL) {
            (void) f->event_destroy(b->end);
        }
        if (b->stream != NULL) {
            (void) f->stream_destroy(b->stream);
        }
        gpu_leave(b->device);
    }

    gpu_graphs_forget(&b->graphs);      /* nothing, unless it stays there    */
    free(b->allocations);
    free(b->needed);
    free(b->addresses);
    free(b->shapes);
    free(b->launches);
    free(b->library_tensors);
    free(b->library_shapes);
    *b = (gpu_batch_t) { 0 };
}

TRITONSERVER_Error *
gpu_batch_run(gpu_batch_t *b, gpu_batch_request_t *reqs, uint32_t count,
    bk_times_t *times, bool *stuck)
{
    *stuck = false;
    b->queued = false;
    b->computed = false;
    b->late = false;
    TRITONSERVER_Error *err = gpu_device_state(b->device);
    if (err == NULL) {
        err = gpu_enter(b->device);
    }
    if (err != NULL) {
        return err;
    }

    /* also after an error: copies from and to the requests may be under way */
    err = queue(b, reqs, count, times);
    bool ended = false;
    TRITONSERVER_Error *fault = b->late ? NULL : gpu_wait(b->device,
        b->stream, b->end, b->program->timeout_ms, &ended);
    gpu_leave(b->device);

    times->compute_end_ns = bk_now_ns();
    *stuck = !ended;
    if (*stuck && fault == NULL && err == NULL) {
        fault = too_slow(b);
    }
    if (fault == NULL) {
        return err;
    }
    bk_err_drop(err);
    return fault;
}

bool
gpu_batch_is_done(gpu_batch_t *b)
{
    gpu_result_t rc = GPU_NOT_READY;

    TRITONSERVER_Error *err = gpu_enter(b->device);
    if (err == NULL) {
        rc = b->device->f->stream_query(b->stream);
        err = rc == GPU_NOT_READY ? NULL
            : gpu_check(b->device, rc, "kernels that were late");
        gpu_leave(b->device);
    }

    /* any other error says nothing about the work; the caller asks again */
    bk_err_drop(err);
    return rc == GPU_SUCCESS || gpu_device_has_failed(b->device);
}

static TRITONSERVER_Error *
make_tables(gpu_batch_t *b)
{
    size_t tensors = b->program->tensor_count;
    size_t all = tensors + b->program->buffer_count;

    b->allocations = calloc(all, sizeof(*b->allocations));
    b->needed = calloc(all, sizeof(*b->needed));
    b->addresses = calloc(all, sizeof(*b->addresses));
    b->shapes = calloc(tensors, sizeof(*b->shapes));
    b->launches = calloc((size_t) b->program->kernel_count + 1,
        sizeof(*b->launches));
    b->library_tensors = calloc(tensors, sizeof(*b->library_tensors));
    b->library_shapes = calloc(tensors * (GPU_DIMS_MAX + 1),
        sizeof(*b->library_shapes));
    return b->allocations != NULL && b->needed != NULL && b->addresses != NULL
        && b->shapes != NULL && b->launches != NULL
        && b->library_tensors != NULL && b->library_shapes != NULL ? NULL
        : bk_err_nomem("tables of an instance");
}

static TRITONSERVER_Error *
make_stream(gpu_batch_t *b)
{
    TRITONSERVER_Error *err = gpu_check(b->device,
        b->device->f->stream_create(&b->stream, GPU_STREAM_NON_BLOCKING),
        "stream of an instance");

    return err != NULL ? err : gpu_check(b->device,
        b->device->f->event_create(&b->end, GPU_EVENT_BLOCKING
        | GPU_EVENT_NO_TIMING), "event of an instance");
}

static TRITONSERVER_Error *
make_launches(gpu_batch_t *b, uint32_t *count)
{
    gpu_shapes_t shapes = { .batch = b->rows, .tensors = b->shapes };
    gpu_addresses_t addresses = {
        .tensors = b->addresses,
        .buffers = b->addresses + b->program->tensor_count
    };

    return gpu_launches_make(b->launches, count, b->program, b->loaded,
        &shapes, &addresses);
}

static TRITONSERVER_Error *
read_shapes(gpu_batch_t *b, const gpu_batch_request_t *reqs, uint32_t count)
{
    bool batching = b->program->rows_most > 0;

    b->rows = 0;
    for (uint32_t k = 0; k < count; k++) {
        b->rows += reqs[k].rows;
    }

    for (uint32_t i = 0; i < b->program->input_count; i++) {
        const bk_input_t *in = &reqs[0].inputs[i];

        b->shapes[i].absent = in->handle == NULL;
        if (in->handle != NULL) {
            memcpy(b->shapes[i].dims, in->shape + batching,
                b->program->tensors[i].dims_count * sizeof(*in->shape));
        }
    }

    return gpu_program_shape(b->program, b->rows, b->shapes);
}

/* Copies in, work, copies out: all in the stream, nothing is waited for. */
static TRITONSERVER_Error *
queue(gpu_batch_t *b, gpu_batch_request_t *reqs, uint32_t count,
    bk_times_t *times)
{
    uint32_t launches = 0;

    TRITONSERVER_Error *err = read_shapes(b, reqs, count);
    if (err == NULL) {
        err = gpu_inputs_find(b, reqs, count);
    }
    if (err == NULL) {
        err = gpu_batch_memory_take(b);
    }
    if (err == NULL && b->library == NULL) {
        err = make_launches(b, &launches);
    }
    if (err != NULL) {
        return err;
    }

    b->queued = true;
    err = gpu_inputs_copy(b, reqs, count);
    if (err != NULL) {
        return err;
    }

    times->compute_start_ns = bk_now_ns();
    err = b->library != NULL ? compute_by_library(b) : compute(b, launches);
    return err != NULL ? err : gpu_outputs_take(b, reqs, count);
}

static TRITONSERVER_Error *
compute(gpu_batch_t *b, uint32_t count)
{
    TRITONSERVER_Error *err = count < b->program->kernel_count
        ? clear_outputs(b) : NULL;

    return err != NULL ? err
        : gpu_graphs_run(&b->graphs, b->launches, count, b->stream);
}

/* A kernel that is not launched writes nothing, and the memory holds what an
   earlier batch left: other clients' tensors. */
static TRITONSERVER_Error *
clear_outputs(gpu_batch_t *b)
{
    const gpu_program_t *p = b->program;
    TRITONSERVER_Error *err = NULL;

    for (uint32_t i = p->input_count; err == NULL && i < p->tensor_count; i++)
    {
        size_t bytes = (size_t) b->shapes[i].bytes;
        err = bytes == 0 ? NULL : gpu_check(b->device,
            b->device->f->fill(b->addresses[i], 0, bytes, b->stream),
            "cannot clear output \"%s\"", p->tensors[i].name);
    }
    return err;
}

static TRITONSERVER_Error *
compute_by_library(gpu_batch_t *b)
{
    const gpu_program_t *p = b->program;
    bool batching = p->rows_most > 0;

    for (uint32_t i = 0; i < p->tensor_count; i++) {
        const gpu_tensor_t *t = &p->tensors[i];
        int64_t *shape = b->library_shapes + i * (GPU_DIMS_MAX + 1);

        shape[0] = b->rows;
        memcpy(shape + batching, b->shapes[i].dims,
            t->dims_count * sizeof(*shape));
        b->library_tensors[i] = (gpu_model_tensor_t) {
            .name = t->name,
            .datatype = TRITONSERVER_DataTypeString(t->datatype),
            .shape = shape, .dims_count = t->dims_count + batching,
            .bytes = (uint64_t) b->shapes[i].bytes,
            .data = (void *) (uintptr_t) b->addresses[i]
        };
    }

    return gpu_library_execute(b->library, b->library_state, b->library_tensors,
        p->input_count, b->library_tensors + p->input_count,
        p->tensor_count - p->input_count, b->stream);
}

static TRITONSERVER_Error *
too_slow(const gpu_batch_t *b)
{
    return bk_err_new(TRITONSERVER_ERROR_UNAVAILABLE, "the kernels have not"
        " ended on GPU %d within the timeout of %" PRId64 " ms; this instance"
        " runs nothing until they do", b->device->ordinal,
        b->program->timeout_ms);
}
