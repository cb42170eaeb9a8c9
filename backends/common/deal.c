/* deal.c - see deal.h */

#include "deal.h"

#include "bytes.h"

#include <inttypes.h>
#include <string.h>

/* A slot's part of an output. */
typedef struct {
    int64_t  dims[BK_MAX_DIMS];
    uint32_t dims_count;
    uint64_t elements;
} part_t;

/* Where a slot's part goes. */
typedef TRITONSERVER_Error *(*copy_t)(bk_batch_t *b, uint32_t i,
    bk_slot_t *slot, const part_t *part, uint64_t first);

static TRITONSERVER_Error *output_deal(bk_batch_t *b, uint32_t i,
    bk_slot_t *slots, uint32_t count, copy_t copy);
static TRITONSERVER_Error *output_count(bk_value_t *v);
static TRITONSERVER_Error *output_split(bk_batch_t *b, uint32_t i,
    bk_slot_t *slots, uint32_t count, copy_t copy);
static TRITONSERVER_Error *output_scatter(bk_batch_t *b, uint32_t i,
    bk_slot_t *slots, uint32_t count, copy_t copy);
static TRITONSERVER_Error *scattered_shape(const bk_batch_t *b,
    const bk_tensor_t *t, const bk_slot_t *slot, part_t *part);
static TRITONSERVER_Error *response_copy(bk_batch_t *b, uint32_t i,
    bk_slot_t *slot, const part_t *part, uint64_t first);
static TRITONSERVER_Error *state_copy(bk_batch_t *b, uint32_t i,
    bk_slot_t *slot, const part_t *part, uint64_t first);
static TRITONSERVER_Error *part_size(bk_batch_t *b, uint32_t i,
    const part_t *part, uint64_t first, uint64_t *len_bytes);
static TRITONSERVER_Error *part_write(bk_batch_t *b, uint32_t i,
    const part_t *part, uint64_t first, uint64_t len_bytes, void *to);
static TRITONSERVER_Error *text_size(bk_batch_t *b, uint32_t i,
    uint64_t first, uint64_t count, uint64_t *len_bytes);
static TRITONSERVER_Error *text_step(bk_bytes_t *text, uint64_t count,
    uint64_t *len_bytes);

TRITONSERVER_Error *
bk_outputs_deal(bk_batch_t *b, bk_slot_t *slots, uint32_t count)
{
    for (uint32_t i = 0; i < b->run.output_count; i++) {
        if (b->deals[i].in_response) {
            continue;
        }

        TRITONSERVER_Error *err = output_deal(b, i, slots, count,
            response_copy);
        if (err != NULL) {
            return err;
        }
    }

    /* what a sequence keeps is of requests that have all their outputs */
    for (uint32_t i = 0; i < b->run.output_count; i++) {
        if (!b->run.outputs[i].tensor->state) {
            continue;
        }

        b->deals[i].text_index = 0;
        b->deals[i].text_at = 0;
        TRITONSERVER_Error *err = output_deal(b, i, slots, count, state_copy);
        if (err != NULL) {
            return err;
        }
    }

    return NULL;
}

static TRITONSERVER_Error *
output_deal(bk_batch_t *b, uint32_t i, bk_slot_t *slots, uint32_t count,
    copy_t copy)
{
    bk_value_t *v = &b->run.outputs[i];

    TRITONSERVER_Error *err = output_count(v);
    if (err == NULL) {
        err = v->tensor->scattered != NULL
            ? output_scatter(b, i, slots, count, copy)
            : output_split(b, i, slots, count, copy);
    }

    return err == NULL ? NULL
        : bk_err_add(err, "output \"%s\"", v->tensor->name);
}

static TRITONSERVER_Error *
output_count(bk_value_t *v)
{
    if (v->dims_count > BK_MAX_DIMS) {
        return bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
            "%" PRIu32 " dimensions, more than %d", v->dims_count,
            BK_MAX_DIMS);
    }

    if (!bk_elements(v->dims, v->dims_count, &v->elements)) {
        return bk_err_new(TRITONSERVER_ERROR_INTERNAL,
            "more elements than can be counted");
    }

    return NULL;
}

/* each request's part has its rows; without batching it has them all */
static TRITONSERVER_Error *
output_split(bk_batch_t *b, uint32_t i, bk_slot_t *slots, uint32_t count,
    copy_t copy)
{
    const bk_value_t *v = &b->run.outputs[i];
    bool batching = b->rules->batching;
    uint64_t rows = 0;
    uint64_t first = 0;
    part_t part = { .dims_count = v->dims_count, .elements = v->elements };

    for (uint32_t k = 0; k < count; k++) {
        rows += slots[k].rows;
    }

    if (batching && (v->dims_count == 0 || (uint64_t) v->dims[0] != rows)) {
        return bk_err_new(TRITONSERVER_ERROR_INTERNAL,
            "its first dimension is %" PRId64 ", the batch has %" PRIu64
            " rows", v->dims_count == 0 ? 0 : v->dims[0], rows);
    }

    memcpy(part.dims, v->dims, v->dims_count * sizeof(*part.dims));
    for (uint32_t k = 0; k < count; k++) {
        if (batching) {
            part.dims[0] = (int64_t) slots[k].rows;
            part.elements = rows == 0 ? 0
                : v->elements / rows * slots[k].rows;
        }

        if (slots[k].err == NULL) {
            slots[k].err = copy(b, i, &slots[k], &part, first);
        }
        first += part.elements;
    }

    return NULL;
}

/* each request's part is as large as its source says */
static TRITONSERVER_Error *
output_scatter(bk_batch_t *b, uint32_t i, bk_slot_t *slots, uint32_t count,
    copy_t copy)
{
    const bk_value_t *v = &b->run.outputs[i];
    uint64_t first = 0;

    for (uint32_t k = 0; k < count; k++) {
        part_t part;

        TRITONSERVER_Error *err = scattered_shape(b, v->tensor, &slots[k],
            &part);
        if (err != NULL) {
            return err;
        }
        if (part.elements > v->elements - first) {
            return bk_err_new(TRITONSERVER_ERROR_INTERNAL,
                "it has %" PRIu64 " elements, fewer than the requests' parts",
                v->elements);
        }

        if (slots[k].err == NULL) {
            slots[k].err = copy(b, i, &slots[k], &part, first);
        }
        first += part.elements;
    }

    return first == v->elements ? NULL
        : bk_err_new(TRITONSERVER_ERROR_INTERNAL, "it has %" PRIu64
        " elements, the requests' parts %" PRIu64, v->elements, first);
}

/* The configured dims, and where they are open, the source's. */
static TRITONSERVER_Error *
scattered_shape(const bk_batch_t *b, const bk_tensor_t *t,
    const bk_slot_t *slot, part_t *part)
{
    const bk_input_t *in = &slot->inputs[t->source];
    uint32_t n = 0;
    bool fits = in->handle != NULL && t->shape->model_dims_count
        < BK_MAX_DIMS;

    if (b->rules->batching) {
        part->dims[n++] = -1;
    }
    for (uint32_t d = 0; fits && d < t->shape->model_dims_count; d++) {
        part->dims[n++] = t->shape->model_dims[d];
    }
    for (uint32_t d = 0; fits && d < n; d++) {
        if (part->dims[d] == -1) {
            fits = d < in->dims_count;
            part->dims[d] = fits ? in->shape[d] : 0;
        }
    }

    part->dims_count = n;
    if (!fits || !bk_elements(part->dims, n, &part->elements)) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "input \"%s\" has no shape that it could take",
            b->rules->tensors->inputs[t->source].name);
    }

    return NULL;
}

/* into the response of a slot that asked for it */
static TRITONSERVER_Error *
response_copy(bk_batch_t *b, uint32_t i, bk_slot_t *slot, const part_t *part,
    uint64_t first)
{
    static const int64_t one = 1;

    const bk_tensor_t *t = b->run.outputs[i].tensor;
    bool scalar = part->dims_count == 0;
    uint64_t len_bytes = 0;
    void *to;

    if (!slot->wanted[b->deals[i].index]) {
        return NULL;
    }

    TRITONSERVER_Error *err = part_size(b, i, part, first, &len_bytes);
    if (err == NULL) {
        err = bk_output_new(slot->response, t->name, t->datatype,
            scalar ? &one : part->dims, scalar ? 1 : part->dims_count,
            len_bytes, &to);
    }

    return err != NULL ? err : part_write(b, i, part, first, len_bytes, to);
}

/* for the next request of the slot's sequence */
static TRITONSERVER_Error *
state_copy(bk_batch_t *b, uint32_t i, bk_slot_t *slot, const part_t *part,
    uint64_t first)
{
    const bk_tensor_t *t = b->run.outputs[i].tensor;
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
    TRITONBACKEND_State *state;
    uint64_t len_bytes = 0;
    int64_t id = 0;
    void *to;

    TRITONSERVER_Error *err = part_size(b, i, part, first, &len_bytes);
    if (err == NULL) {
        err = TRITONBACKEND_StateNew(&state, slot->request, t->name,
            t->datatype, part->dims, part->dims_count);
        if (err != NULL && !bk_request_in_sequence(slot->request)) {
            bk_err_drop(err);
            return NULL;
        }
    }
    if (err == NULL) {
        err = TRITONBACKEND_StateBuffer(state, &to, len_bytes, &memory, &id);
    }
    if (err == NULL && len_bytes != 0 && memory == TRITONSERVER_MEMORY_GPU) {
        err = bk_err_new(TRITONSERVER_ERROR_UNSUPPORTED,
            "state \"%s\" was given memory of GPU %" PRId64
            "; this backend writes CPU memory", t->name, id);
    }
    if (err == NULL) {
        err = part_write(b, i, part, first, len_bytes, to);
    }

    return err != NULL ? err : TRITONBACKEND_StateUpdate(state);
}

static TRITONSERVER_Error *
part_size(bk_batch_t *b, uint32_t i, const part_t *part, uint64_t first,
    uint64_t *len_bytes)
{
    uint32_t size = TRITONSERVER_DataTypeByteSize(
        b->run.outputs[i].tensor->datatype);

    if (size == 0) {
        return text_size(b, i, first, part->elements, len_bytes);
    }

    return __builtin_mul_overflow(part->elements, size, len_bytes)
        ? bk_err_nomem("an output") : NULL;
}

static TRITONSERVER_Error *
part_write(bk_batch_t *b, uint32_t i, const part_t *part, uint64_t first,
    uint64_t len_bytes, void *to)
{
    const bk_value_t *v = &b->run.outputs[i];
    uint32_t size = TRITONSERVER_DataTypeByteSize(v->tensor->datatype);

    if (len_bytes == 0) {
        return NULL;
    }
    if (size == 0 && b->runtime->text_write != NULL) {
        return b->runtime->text_write(b->self, v, first, part->elements, to);
    }

    uint64_t from = size == 0 ? b->deals[i].text_at : first * size;
    memcpy(to, (const char *) v->data + from, len_bytes);
    return NULL;
}

/* Of data as bytes.h has it; text_at is where the part begins. */
static TRITONSERVER_Error *
text_size(bk_batch_t *b, uint32_t i, uint64_t first, uint64_t count,
    uint64_t *len_bytes)
{
    const bk_value_t *v = &b->run.outputs[i];
    bk_deal_t *deal = &b->deals[i];
    uint64_t skipped = 0;
    bk_bytes_t text;

    if (b->runtime->text_size != NULL) {
        return b->runtime->text_size(b->self, v, first, count, len_bytes);
    }

    TRITONSERVER_Error *err = bk_bytes_open(&text, "output", v->tensor->name,
        (const char *) v->data + deal->text_at, v->len_bytes - deal->text_at,
        v->elements - deal->text_index);
    if (err == NULL) {
        err = text_step(&text, first - deal->text_index, &skipped);
    }
    if (err == NULL) {
        err = text_step(&text, count, len_bytes);
    }
    if (err == NULL) {
        deal->text_index = first;
        deal->text_at += skipped;
    }

    return err;
}

static TRITONSERVER_Error *
text_step(bk_bytes_t *text, uint64_t count, uint64_t *len_bytes)
{
    uint64_t before = text->left;

    for (uint64_t k = 0; k < count; k++) {
        const char *element;
        uint32_t len;

        TRITONSERVER_Error *err = bk_bytes_next(text, &element, &len);
        if (err != NULL) {
            return err;
        }
    }

    *len_bytes = before - text->left;
    return NULL;
}
