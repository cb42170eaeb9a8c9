/* batch.c - see batch.h */

#include "batch.h"

#include "bytes.h"
#include "device.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 64u

/* An output as the library made it, or as it is known beforehand. */
typedef struct {
    int64_t  dims[ORT_MAX_DIMS];
    uint32_t dims_count;
    uint64_t elements;
} shape_t;

static void batch_clear(ort_batch_t *b);
static TRITONSERVER_Error *inputs_make(ort_batch_t *b,
    const ort_slot_t *slots, uint32_t count);
static TRITONSERVER_Error *input_make(ort_batch_t *b, uint32_t i,
    const ort_slot_t *slots, uint32_t count, OrtValue **out);
static TRITONSERVER_Error *input_shape(const ort_batch_t *b, uint32_t i,
    const ort_slot_t *slots, uint32_t count, int64_t *shape);
static TRITONSERVER_Error *input_invent(ort_batch_t *b, uint32_t i,
    const ort_slot_t *slots, uint32_t count, OrtValue **out);
static TRITONSERVER_Error *sources_read(ort_batch_t *b, uint32_t source,
    const ort_slot_t *slots, uint32_t count);
static TRITONSERVER_Error *input_data(ort_batch_t *b, uint32_t i,
    const ort_slot_t *slots, uint32_t count, const void **data,
    uint64_t *len_bytes, const OrtMemoryInfo **memory);
static TRITONSERVER_Error *scratch_reserve(ort_scratch_t *s, uint64_t size);
static void outputs_choose(ort_batch_t *b, const ort_slot_t *slots,
    uint32_t count);
static TRITONSERVER_Error *outputs_bind(ort_batch_t *b, ort_slot_t *slot);
static TRITONSERVER_Error *output_bind(ort_batch_t *b, uint32_t i,
    ort_slot_t *slot);
static bool output_shape_known(const ort_batch_t *b, const ort_tensor_t *t,
    uint64_t rows, shape_t *shape);
static bool symbol_is_batch(const ort_batch_t *b, const char *symbol);
static void outputs_unbind(ort_batch_t *b);
static TRITONSERVER_Error *run(ort_batch_t *b, ort_slot_t *slots,
    uint32_t count, ort_times_t *times);
static TRITONSERVER_Error *run_once(ort_batch_t *b, ort_times_t *times);
static TRITONSERVER_Error *outputs_deal(ort_batch_t *b, ort_slot_t *slots,
    uint32_t count);
static TRITONSERVER_Error *output_shape(const ort_batch_t *b,
    const OrtValue *value, shape_t *shape);
static TRITONSERVER_Error *output_deal(ort_batch_t *b, uint32_t i,
    ort_slot_t *slots, uint32_t count);
static TRITONSERVER_Error *output_scatter(ort_batch_t *b, uint32_t i,
    ort_slot_t *slots, uint32_t count, const shape_t *whole);
static TRITONSERVER_Error *scattered_shape(const ort_batch_t *b,
    const ort_tensor_t *t, const ort_slot_t *slot, shape_t *shape);
static TRITONSERVER_Error *output_copy(ort_batch_t *b, uint32_t i,
    ort_slot_t *slot, const shape_t *shape, uint64_t first);

TRITONSERVER_Error *
ort_batch_init(ort_batch_t *b, const ort_session_t *session, bool batching)
{
    size_t ins = (size_t) session->input_count + 1;
    size_t outs = (size_t) session->output_count + 1;

    *b = (ort_batch_t) {
        .session = session,
        .batching = batching,
        .bind_outputs = true,
        .scratch = calloc(ins, sizeof(*b->scratch)),
        .input_names = calloc(ins, sizeof(*b->input_names)),
        .inputs = calloc(ins, sizeof(*b->inputs)),
        .output_names = calloc(outs, sizeof(*b->output_names)),
        .outputs = calloc(outs, sizeof(*b->outputs)),
        .output_index = calloc(outs, sizeof(*b->output_index)),
        .bound = calloc(outs, sizeof(*b->bound))
    };

    if (b->scratch == NULL || b->input_names == NULL || b->inputs == NULL
        || b->output_names == NULL || b->outputs == NULL
        || b->output_index == NULL || b->bound == NULL)
    {
        ort_batch_fini(b);
        return bk_err_nomem("tables of a batch");
    }

    return NULL;
}

void
ort_batch_fini(ort_batch_t *b)
{
    if (b->scratch != NULL) {
        for (uint32_t i = 0; i < b->session->input_count; i++) {
            free(b->scratch[i].data);
        }
    }

    free(b->scratch);
    free(b->input_names);
    free(b->inputs);
    free(b->output_names);
    free(b->outputs);
    free(b->output_index);
    free(b->bound);
    free(b->sources);
    *b = (ort_batch_t) { 0 };
}

TRITONSERVER_Error *
ort_batch_run(ort_batch_t *b, ort_slot_t *slots, uint32_t count,
    ort_times_t *times)
{
    outputs_choose(b, slots, count);

    TRITONSERVER_Error *err = inputs_make(b, slots, count);
    if (err == NULL && count == 1 && b->bind_outputs) {
        err = outputs_bind(b, &slots[0]);
    }
    if (err == NULL) {
        err = run(b, slots, count, times);
    }
    if (err == NULL) {
        err = outputs_deal(b, slots, count);
    }

    batch_clear(b);
    return err;
}

static void
batch_clear(ort_batch_t *b)
{
    const OrtApi *api = b->session->rt->api;

    for (uint32_t i = 0; i < b->input_count; i++) {
        api->ReleaseValue(b->inputs[i]);
        b->inputs[i] = NULL;
    }
    b->input_count = 0;

    outputs_unbind(b);
    b->output_count = 0;
}

static TRITONSERVER_Error *
inputs_make(ort_batch_t *b, const ort_slot_t *slots, uint32_t count)
{
    const ort_session_t *s = b->session;

    for (uint32_t i = 0; i < s->input_count; i++) {
        OrtValue *value = NULL;

        if (slots[0].inputs[i].handle == NULL && s->inputs[i].made == NULL) {
            continue;
        }

        TRITONSERVER_Error *err = s->inputs[i].made != NULL
            ? input_invent(b, i, slots, count, &value)
            : input_make(b, i, slots, count, &value);
        if (err != NULL) {
            return err;
        }

        b->input_names[b->input_count] = s->inputs[i].name;
        b->inputs[b->input_count] = value;
        b->input_count++;
    }

    return NULL;
}

static TRITONSERVER_Error *
input_make(ort_batch_t *b, uint32_t i, const ort_slot_t *slots,
    uint32_t count, OrtValue **out)
{
    const ort_runtime_t *rt = b->session->rt;
    const ort_tensor_t *t = &b->session->inputs[i];
    int64_t shape[ORT_MAX_DIMS];
    const OrtMemoryInfo *memory = rt->cpu;
    uint64_t len_bytes = 0;
    uint64_t elements = 0;
    const void *data;

    TRITONSERVER_Error *err = input_data(b, i, slots, count, &data,
        &len_bytes, &memory);
    if (err != NULL) {
        return err;
    }

    err = input_shape(b, i, slots, count, shape);
    if (err != NULL) {
        return err;
    }

    if (t->datatype != TRITONSERVER_TYPE_BYTES) {
        return ort_err(rt, rt->api->CreateTensorWithDataAsOrtValue(memory,
            (void *) data, len_bytes, shape, t->dims_count, t->element, out),
            "input \"%s\"", t->name);
    }

    if (!ort_elements(shape, t->dims_count, &elements)) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "input \"%s\" has more elements than can be counted", t->name);
    }

    return ort_bytes_new(rt, t->name, data, len_bytes, shape,
        t->dims_count, elements, out);
}

/* rows on top of each other; of a ragged input all elements in one line */
static TRITONSERVER_Error *
input_shape(const ort_batch_t *b, uint32_t i, const ort_slot_t *slots,
    uint32_t count, int64_t *shape)
{
    const ort_tensor_t *t = &b->session->inputs[i];
    uint64_t sum = 0;

    if (!t->ragged) {
        memcpy(shape, slots[0].inputs[i].shape,
            t->dims_count * sizeof(*shape));
        for (uint32_t k = 1; k < count; k++) {
            shape[0] += slots[k].inputs[i].shape[0];
        }
        return NULL;
    }

    for (uint32_t k = 0; k < count; k++) {
        const bk_input_t *in = &slots[k].inputs[i];
        uint64_t elements;

        if (!ort_elements(in->shape, in->dims_count, &elements)
            || __builtin_add_overflow(sum, elements, &sum)
            || sum > INT64_MAX)
        {
            return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
                "input \"%s\" has more elements than can be counted",
                t->name);
        }
    }

    shape[0] = (int64_t) sum;
    return NULL;
}

/* from the shapes of another input in all requests */
static TRITONSERVER_Error *
input_invent(ort_batch_t *b, uint32_t i, const ort_slot_t *slots,
    uint32_t count, OrtValue **out)
{
    const ort_runtime_t *rt = b->session->rt;
    const ort_tensor_t *t = &b->session->inputs[i];
    ort_scratch_t *scratch = &b->scratch[i];
    uint64_t elements = 0;
    int64_t shape[2];

    TRITONSERVER_Error *err = sources_read(b, t->source, slots, count);
    if (err == NULL) {
        err = bk_batch_input_shape(t->made, b->sources, count, b->batching,
            shape, &elements);
    }
    if (err == NULL) {
        err = scratch_reserve(scratch, elements * 4);
    }
    if (err == NULL) {
        err = bk_batch_input_write(t->made, b->sources, count, b->batching,
            scratch->data, elements);
    }
    if (err != NULL) {
        return err;
    }

    return ort_err(rt, rt->api->CreateTensorWithDataAsOrtValue(rt->cpu,
        scratch->data, elements * 4, shape, t->dims_count, t->element, out),
        "batch input \"%s\"", t->name);
}

static TRITONSERVER_Error *
sources_read(ort_batch_t *b, uint32_t source, const ort_slot_t *slots,
    uint32_t count)
{
    if (count > b->source_cap) {
        bk_batch_source_t *wider = realloc(b->sources,
            count * sizeof(*wider));
        if (wider == NULL) {
            return bk_err_nomem("shapes of a batch");
        }
        b->sources = wider;
        b->source_cap = count;
    }

    for (uint32_t k = 0; k < count; k++) {
        const bk_input_t *in = &slots[k].inputs[source];

        b->sources[k] = (bk_batch_source_t) {
            .shape = in->shape,
            .dims_count = in->dims_count,
            .rows = slots[k].rows
        };
        if (in->handle == NULL || !ort_elements(in->shape, in->dims_count,
            &b->sources[k].elements))
        {
            return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
                "input \"%s\", which a batch tensor goes by, is not there",
                b->session->inputs[source].name);
        }
    }

    return NULL;
}

/* in place if it lies in one piece and as its type wants, else together */
static TRITONSERVER_Error *
input_data(ort_batch_t *b, uint32_t i, const ort_slot_t *slots,
    uint32_t count, const void **data, uint64_t *len_bytes,
    const OrtMemoryInfo **memory)
{
    uint32_t size = TRITONSERVER_DataTypeByteSize(
        b->session->inputs[i].datatype);
    ort_scratch_t *scratch = &b->scratch[i];
    uint64_t sum = 0;

    if (count == 1) {
        const bk_input_t *in = &slots[0].inputs[i];
        TRITONSERVER_Error *err = ort_device_input(b->session, in, data);
        if (err == NULL && *data != NULL) {
            *memory = b->session->device;
            *len_bytes = in->len_bytes;
            return NULL;
        }

        if (err == NULL) {
            err = bk_input_view(in, data);
        }
        if (err != NULL) {
            return err;
        }

        *len_bytes = in->len_bytes;
        if (*data != NULL && (size == 0 || (uintptr_t) *data % size == 0)) {
            return NULL;
        }
    }

    for (uint32_t k = 0; k < count; k++) {
        if (__builtin_add_overflow(sum, slots[k].inputs[i].len_bytes, &sum)) {
            return bk_err_nomem("inputs of a batch");
        }
    }

    TRITONSERVER_Error *err = scratch_reserve(scratch, sum);
    if (err != NULL) {
        return err;
    }

    char *to = scratch->data;
    for (uint32_t k = 0; k < count; k++) {
        err = bk_input_copy(&slots[k].inputs[i], to);
        if (err != NULL) {
            return err;
        }
        to += slots[k].inputs[i].len_bytes;
    }

    *data = scratch->data;
    *len_bytes = sum;
    return NULL;
}

static TRITONSERVER_Error *
scratch_reserve(ort_scratch_t *s, uint64_t size)
{
    if (s->data != NULL && size <= s->cap) {
        return NULL;
    }

    if (size > SIZE_MAX / 2) {
        return bk_err_nomem("inputs of a batch");
    }

    size_t cap = ((size_t) size / ALIGNMENT + 1) * ALIGNMENT;
    void *data = aligned_alloc(ALIGNMENT, cap);
    if (data == NULL) {
        return bk_err_nomem("inputs of a batch");
    }

    free(s->data);
    s->data = data;
    s->cap = cap;
    return NULL;
}

/* what at least one request asks for */
static void
outputs_choose(ort_batch_t *b, const ort_slot_t *slots, uint32_t count)
{
    for (uint32_t i = 0; i < b->session->output_count; i++) {
        bool wanted = false;

        for (uint32_t k = 0; k < count && !wanted; k++) {
            wanted = slots[k].wanted[i];
        }

        if (wanted) {
            b->output_names[b->output_count] = b->session->outputs[i].name;
            b->output_index[b->output_count] = i;
            b->outputs[b->output_count] = NULL;
            b->bound[b->output_count] = false;
            b->output_count++;
        }
    }
}

static TRITONSERVER_Error *
outputs_bind(ort_batch_t *b, ort_slot_t *slot)
{
    for (uint32_t i = 0; i < b->output_count; i++) {
        TRITONSERVER_Error *err = output_bind(b, i, slot);
        if (err != NULL) {
            return err;
        }
    }

    return NULL;
}

static TRITONSERVER_Error *
output_bind(ort_batch_t *b, uint32_t i, ort_slot_t *slot)
{
    static const int64_t one = 1;

    const ort_runtime_t *rt = b->session->rt;
    const ort_tensor_t *t = &b->session->outputs[b->output_index[i]];
    uint32_t size = TRITONSERVER_DataTypeByteSize(t->datatype);
    const OrtMemoryInfo *memory;
    uint64_t len_bytes;
    shape_t shape;
    void *data;

    if (size == 0 || t->scattered != NULL
        || !output_shape_known(b, t, slot->rows, &shape)
        || __builtin_mul_overflow(shape.elements, size, &len_bytes)
        || len_bytes == 0)
    {
        return NULL;
    }

    bool scalar = shape.dims_count == 0;
    TRITONSERVER_Error *err = ort_device_output(b->session, slot->response, t,
        scalar ? &one : shape.dims, scalar ? 1 : shape.dims_count, len_bytes,
        &data, &memory);
    if (err != NULL) {
        return err;
    }

    b->bound[i] = true;
    return ort_err(rt, rt->api->CreateTensorWithDataAsOrtValue(memory, data,
        len_bytes, shape.dims, shape.dims_count, t->element,
        &b->outputs[i]), "output \"%s\"", t->name);
}

/*
 * An open first dimension is the batch only if the model calls it by the same
 * name as an input's; "-1" alone says nothing.
 */
static bool
output_shape_known(const ort_batch_t *b, const ort_tensor_t *t,
    uint64_t rows, shape_t *shape)
{
    for (uint32_t i = 0; i < t->dims_count; i++) {
        shape->dims[i] = t->dims[i];
        if (t->dims[i] != -1) {
            continue;
        }

        if (i != 0 || !b->batching || !symbol_is_batch(b, t->symbol)) {
            return false;
        }
        shape->dims[i] = (int64_t) rows;
    }

    shape->dims_count = t->dims_count;
    return ort_elements(shape->dims, shape->dims_count, &shape->elements);
}

static bool
symbol_is_batch(const ort_batch_t *b, const char *symbol)
{
    for (uint32_t i = 0; i < b->session->required_count; i++) {
        const char *other = b->session->inputs[i].symbol;
        if (symbol != NULL && other != NULL && strcmp(symbol, other) == 0) {
            return true;
        }
    }

    return false;
}

static void
outputs_unbind(ort_batch_t *b)
{
    for (uint32_t i = 0; i < b->output_count; i++) {
        if (b->outputs[i] != NULL) {
            b->session->rt->api->ReleaseValue(b->outputs[i]);
        }
        b->outputs[i] = NULL;
        b->bound[i] = false;
    }
}

/*
 * A model may break its word on an output's shape.  Then the library rejects
 * the buffer; the run is tried once more without, and if that works outputs
 * are copied from then on.
 */
static TRITONSERVER_Error *
run(ort_batch_t *b, ort_slot_t *slots, uint32_t count, ort_times_t *times)
{
    bool any_bound = false;

    for (uint32_t i = 0; i < b->output_count; i++) {
        any_bound = any_bound || b->bound[i];
    }

    TRITONSERVER_Error *first = run_once(b, times);
    if (first == NULL || !any_bound) {
        return first;
    }

    outputs_unbind(b);
    for (uint32_t k = 0; k < count; k++) {
        ort_slot_restart(&slots[k]);
        if (slots[k].err != NULL) {
            return first;
        }
    }

    TRITONSERVER_Error *second = run_once(b, times);
    if (second == NULL) {
        b->bind_outputs = false;
        bk_log(TRITONSERVER_LOG_WARN, "outputs of this model are copied from "
            "now on: %s", TRITONSERVER_ErrorMessage(first));
    }

    bk_err_drop(first);
    return second;
}

static TRITONSERVER_Error *
run_once(ort_batch_t *b, ort_times_t *times)
{
    const ort_session_t *s = b->session;
    TRITONSERVER_Error *err;

    times->compute_start_ns = bk_now_ns();
    if (b->output_count == 0) {
        err = NULL;

    } else if (s->device != NULL) {
        err = ort_device_run(s, &(ort_run_t) {
            .input_names = b->input_names, .inputs = b->inputs,
            .input_count = b->input_count, .output_names = b->output_names,
            .outputs = b->outputs, .output_count = b->output_count });

    } else {
        err = ort_err(s->rt, s->rt->api->Run(s->handle, s->run_options,
            b->input_names, (const OrtValue *const *) b->inputs,
            b->input_count, b->output_names, b->output_count, b->outputs),
            "execution failed");
    }
    times->compute_end_ns = bk_now_ns();

    return err;
}

static TRITONSERVER_Error *
outputs_deal(ort_batch_t *b, ort_slot_t *slots, uint32_t count)
{
    for (uint32_t i = 0; i < b->output_count; i++) {
        if (b->bound[i]) {
            continue;
        }

        TRITONSERVER_Error *err = output_deal(b, i, slots, count);
        if (err != NULL) {
            return bk_err_add(err, "output \"%s\"", b->output_names[i]);
        }
    }

    return NULL;
}

static TRITONSERVER_Error *
output_deal(ort_batch_t *b, uint32_t i, ort_slot_t *slots, uint32_t count)
{
    uint64_t rows = 0;
    shape_t shape;

    TRITONSERVER_Error *err = output_shape(b, b->outputs[i], &shape);
    if (err != NULL) {
        return err;
    }

    if (b->session->outputs[b->output_index[i]].scattered != NULL) {
        return output_scatter(b, i, slots, count, &shape);
    }

    for (uint32_t k = 0; k < count; k++) {
        rows += slots[k].rows;
    }

    if (b->batching && (shape.dims_count == 0
        || (uint64_t) shape.dims[0] != rows))
    {
        return bk_err_new(TRITONSERVER_ERROR_INTERNAL,
            "its first dimension is %" PRId64 ", the batch has %" PRIu64
            " rows", shape.dims_count == 0 ? 0 : shape.dims[0], rows);
    }

    uint64_t first = 0;
    for (uint32_t k = 0; k < count; k++) {
        shape_t part = shape;

        if (b->batching) {
            part.dims[0] = (int64_t) slots[k].rows;
            part.elements = rows == 0 ? 0
                : shape.elements / rows * slots[k].rows;
        }

        if (slots[k].err == NULL
            && slots[k].wanted[b->output_index[i]])
        {
            slots[k].err = output_copy(b, i, &slots[k], &part, first);
        }
        first += part.elements;
    }

    return NULL;
}

/* each request's part is as large as its source says */
static TRITONSERVER_Error *
output_scatter(ort_batch_t *b, uint32_t i, ort_slot_t *slots, uint32_t count,
    const shape_t *whole)
{
    const ort_tensor_t *t = &b->session->outputs[b->output_index[i]];
    uint64_t first = 0;

    for (uint32_t k = 0; k < count; k++) {
        shape_t part;

        TRITONSERVER_Error *err = scattered_shape(b, t, &slots[k], &part);
        if (err != NULL) {
            return err;
        }
        if (part.elements > whole->elements - first) {
            return bk_err_new(TRITONSERVER_ERROR_INTERNAL,
                "it has %" PRIu64 " elements, fewer than the requests' parts",
                whole->elements);
        }

        if (slots[k].err == NULL && slots[k].wanted[b->output_index[i]]) {
            slots[k].err = output_copy(b, i, &slots[k], &part, first);
        }
        first += part.elements;
    }

    return first == whole->elements ? NULL
        : bk_err_new(TRITONSERVER_ERROR_INTERNAL, "it has %" PRIu64
        " elements, the requests' parts %" PRIu64, whole->elements, first);
}

/* The configured dims, and where they are open, the source's. */
static TRITONSERVER_Error *
scattered_shape(const ort_batch_t *b, const ort_tensor_t *t,
    const ort_slot_t *slot, shape_t *shape)
{
    const bk_input_t *in = &slot->inputs[t->source];
    uint32_t n = 0;
    bool fits = in->handle != NULL && t->shape->model_dims_count
        < ORT_MAX_DIMS;

    if (b->batching) {
        shape->dims[n++] = -1;
    }
    for (uint32_t d = 0; fits && d < t->shape->model_dims_count; d++) {
        shape->dims[n++] = t->shape->model_dims[d];
    }
    for (uint32_t d = 0; fits && d < n; d++) {
        if (shape->dims[d] == -1) {
            fits = d < in->dims_count;
            shape->dims[d] = fits ? in->shape[d] : 0;
        }
    }

    shape->dims_count = n;
    if (!fits || !ort_elements(shape->dims, n, &shape->elements)) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "input \"%s\" has no shape that it could take",
            b->session->inputs[t->source].name);
    }

    return NULL;
}

static TRITONSERVER_Error *
output_shape(const ort_batch_t *b, const OrtValue *value, shape_t *shape)
{
    const ort_runtime_t *rt = b->session->rt;
    OrtTensorTypeAndShapeInfo *info = NULL;
    size_t n = 0;

    TRITONSERVER_Error *err = ort_err(rt,
        rt->api->GetTensorTypeAndShape(value, &info), "shape");
    if (err != NULL) {
        return err;
    }

    err = ort_err(rt, rt->api->GetDimensionsCount(info, &n), "rank");
    if (err == NULL && n > ORT_MAX_DIMS) {
        err = bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
            "%zu dimensions, more than %d", n, ORT_MAX_DIMS);
    }
    if (err == NULL) {
        err = ort_err(rt, rt->api->GetDimensions(info, shape->dims, n),
            "dimensions");
    }

    rt->api->ReleaseTensorTypeAndShapeInfo(info);
    if (err != NULL) {
        return err;
    }

    shape->dims_count = (uint32_t) n;
    if (!ort_elements(shape->dims, shape->dims_count, &shape->elements)) {
        return bk_err_new(TRITONSERVER_ERROR_INTERNAL,
            "more elements than can be counted");
    }

    return NULL;
}

static TRITONSERVER_Error *
output_copy(ort_batch_t *b, uint32_t i, ort_slot_t *slot,
    const shape_t *shape, uint64_t first)
{
    static const int64_t one = 1;

    const ort_runtime_t *rt = b->session->rt;
    const ort_tensor_t *t = &b->session->outputs[b->output_index[i]];
    uint32_t size = TRITONSERVER_DataTypeByteSize(t->datatype);
    bool scalar = shape->dims_count == 0;
    uint64_t len_bytes = shape->elements * size;
    void *from = NULL;
    void *to;

    TRITONSERVER_Error *err = size == 0
        ? ort_bytes_size(rt, b->outputs[i], first, shape->elements,
        &len_bytes)
        : ort_err(rt, rt->api->GetTensorMutableData(b->outputs[i], &from),
        "data");
    if (err != NULL) {
        return err;
    }

    err = bk_output_new(slot->response, t->name, t->datatype,
        scalar ? &one : shape->dims, scalar ? 1 : shape->dims_count,
        len_bytes, &to);
    if (err != NULL) {
        return err;
    }

    if (size == 0) {
        return ort_bytes_write(rt, b->outputs[i], first, shape->elements,
            to);
    }

    if (len_bytes != 0) {
        memcpy(to, (const char *) from + first * size, len_bytes);
    }

    return NULL;
}
