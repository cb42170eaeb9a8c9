/* run_responses.c - see run_responses.h */

#include "run_responses.h"

#include "bytes.h"

#include <inttypes.h>
#include <string.h>

/* A request's part of an output. */
typedef struct {
    int64_t  dims[BK_MAX_DIMS];
    uint32_t dims_count;
    uint64_t elements;
} part_t;

/* Where a request's part goes. */
typedef TRITONSERVER_Error *(*copy_t)(bk_batch_t *b, uint32_t i,
    bk_batch_request_t *req, const part_t *part, uint64_t first);

static TRITONSERVER_Error *output_distribute(bk_batch_t *b, uint32_t i,
    bk_batch_request_t *reqs, uint32_t count, copy_t copy);
static TRITONSERVER_Error *output_count(bk_value_t *v);
static TRITONSERVER_Error *output_split(bk_batch_t *b, uint32_t i,
    bk_batch_request_t *reqs, uint32_t count, copy_t copy);
static TRITONSERVER_Error *output_scatter(bk_batch_t *b, uint32_t i,
    bk_batch_request_t *reqs, uint32_t count, copy_t copy);
static TRITONSERVER_Error *scattered_shape(const bk_batch_t *b,
    const bk_tensor_t *t, const bk_batch_request_t *req, part_t *part);
static TRITONSERVER_Error *response_copy(bk_batch_t *b, uint32_t i,
    bk_batch_request_t *req, const part_t *part, uint64_t first);
static TRITONSERVER_Error *state_copy(bk_batch_t *b, uint32_t i,
    bk_batch_request_t *req, const part_t *part, uint64_t first);
static TRITONSERVER_Error *part_size(bk_batch_t *b, uint32_t i,
    const part_t *part, uint64_t first, uint64_t *len_bytes);
static TRITONSERVER_Error *part_write(bk_batch_t *b, uint32_t i,
    const part_t *part, uint64_t first, uint64_t len_bytes, void *to);
static TRITONSERVER_Error *text_size(bk_batch_t *b, uint32_t i,
    uint64_t first, uint64_t count, uint64_t *len_bytes);
static TRITONSERVER_Error *text_step(bk_bytes_t *text, uint64_t count,
    uint64_t *len_bytes);

TRITONSERVER_Error *
bk_run_responses_fill(bk_batch_t *b, bk_batch_request_t *reqs, uint32_t count)
{
    for (uint32_t i = 0; i < b->run.output_count; i++) {
        if (b->cursors[i].in_response) {
            continue;
        }

        TRITONSERVER_Error *err = output_distribute(b, i, reqs, count,
            response_copy);
        if (err != NULL) {
            return err;
        }
    }

    /* states are kept only of requests that have got all their outputs */
    for (uint32_t i = 0; i < b->run.output_count; i++) {
        if (!b->run.outputs[i].tensor->state) {
            continue;
        }

        b->cursors[i].text_index = 0;
        b->cursors[i].text_offset = 0;
        TRITONSERVER_Error *err = output_distribute(b, i, reqs, count,
            state_copy);
        if (err != NULL) {
            return err;
        }
    }

    return NULL;
}

static TRITONSERVER_Error *
output_distribute(bk_batch_t *b, uint32_t i, bk_batch_request_t *reqs,
    uint32_t count, copy_t copy)
{
    bk_value_t *v = &b->run.outputs[i];

    TRITONSERVER_Error *err = output_count(v);
    if (err == NULL) {
        err = v->tensor->batch_output != NULL
            ? output_scatter(b, i, reqs, count, copy)
            : output_split(b, i, reqs, count, copy);
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
output_split(bk_batch_t *b, uint32_t i, bk_batch_request_t *reqs,
    uint32_t count, copy_t copy)
{
    const bk_value_t *v = &b->run.outputs[i];
    bool batching = b->config->batching;
    uint64_t rows = 0;
    uint64_t first = 0;
    part_t part = { .dims_count = v->dims_count, .elements = v->elements };

    for (uint32_t k = 0; k < count; k++) {
        rows += reqs[k].rows;
    }

    if (batching && (v->dims_count == 0 || (uint64_t) v->dims[0] != rows)) {
        return bk_err_new(TRITONSERVER_ERROR_INTERNAL,
            "its first dimension is %" PRId64 ", the batch has %" PRIu64
            " rows", v->dims_count == 0 ? 0 : v->dims[0], rows);
    }

    memcpy(part.dims, v->dims, v->dims_count * sizeof(*part.dims));
    for (uint32_t k = 0; k < count; k++) {
        if (batching) {
            part.dims[0] = (int64_t) reqs[k].rows;
            part.elements = rows == 0 ? 0
                : v->elements / rows * reqs[k].rows;
        }

        if (reqs[k].err == NULL) {
            reqs[k].err = copy(b, i, &reqs[k], &part, first);
        }
        first += part.elements;
    }

    return NULL;
}

/* each request's part is as large as its source says */
static TRITONSERVER_Error *
output_scatter(bk_batch_t *b, uint32_t i, bk_batch_request_t *reqs,
    uint32_t count, copy_t copy)
{
    const bk_value_t *v = &b->run.outputs[i];
    uint64_t first = 0;

    for (uint32_t k = 0; k < count; k++) {
        part_t part;

        TRITONSERVER_Error *err = scattered_shape(b, v->tensor, &reqs[k],
            &part);
        if (err != NULL) {
            return err;
        }
        if (part.elements > v->elements - first) {
            return bk_err_new(TRITONSERVER_ERROR_INTERNAL,
                "it has %" PRIu64 " elements, fewer than the requests' parts",
                v->elements);
        }

        if (reqs[k].err == NULL) {
            reqs[k].err = copy(b, i, &reqs[k], &part, first);
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
    const bk_batch_request_t *req, part_t *part)
{
    const bk_input_t *in = &req->inputs[t->source];
    uint32_t n = 0;
    bool known = in->handle != NULL && t->shape->model_dims_count
        < BK_MAX_DIMS;

    if (b->config->batching) {
        part->dims[n++] = -1;
    }
    for (uint32_t d = 0; known && d < t->shape->model_dims_count; d++) {
        part->dims[n++] = t->shape->model_dims[d];
    }
    for (uint32_t d = 0; known && d < n; d++) {
        if (part->dims[d] == -1) {
            known = d < in->dims_count;
            part->dims[d] = known ? in->shape[d] : 0;
        }
    }

    part->dims_count = n;
    if (!known || !bk_elements(part->dims, n, &part->elements)) {
        return bk_err_new(TRITONSERVER_ERROR_INVALID_ARG,
            "input \"%s\" has no shape that it could take",
            b->config->tensors->inputs[t->source].name);
    }

    return NULL;
}

/* into the response of a request that asked for it */
static TRITONSERVER_Error *
response_copy(bk_batch_t *b, uint32_t i, bk_batch_request_t *req,
    const part_t *part, uint64_t first)
{
    const bk_tensor_t *t = b->run.outputs[i].tensor;
    uint32_t dims_count = part->dims_count;
    const int64_t *dims = dims_count == 0 ? bk_scalar_shape(t, &dims_count)
        : part->dims;
    uint64_t len_bytes = 0;
    void *to;

    if (!req->wanted[b->cursors[i].index]) {
        return NULL;
    }

    TRITONSERVER_Error *err = part_size(b, i, part, first, &len_bytes);
    if (err == NULL) {
        err = bk_output_new(req->response, t->name, t->datatype,
            dims, dims_count, len_bytes, &to);
    }

    return err != NULL ? err : part_write(b, i, part, first, len_bytes, to);
}

/* for the next request of the request's sequence */
static TRITONSERVER_Error *
state_copy(bk_batch_t *b, uint32_t i, bk_batch_request_t *req,
    const part_t *part, uint64_t first)
{
    const bk_tensor_t *t = b->run.outputs[i].tensor;
    TRITONSERVER_MemoryType memory = TRITONSERVER_MEMORY_CPU;
    TRITONBACKEND_State *state;
    uint64_t len_bytes = 0;
    int64_t id = 0;
    void *to;

    TRITONSERVER_Error *err = part_size(b, i, part, first, &len_bytes);
    if (err == NULL) {
        err = TRITONBACKEND_StateNew(&state, req->handle, t->name,
            t->datatype, part->dims, part->dims_count);
        if (err != NULL && !bk_request_in_sequence(req->handle)) {
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

    uint64_t from = size == 0 ? b->cursors[i].text_offset : first * size;
    memcpy(to, (const char *) v->data + from, len_bytes);
    return NULL;
}

/* Of data as bytes.h has it; text_offset is where the part begins. */
static TRITONSERVER_Error *
text_size(bk_batch_t *b, uint32_t i, uint64_t first, uint64_t count,
    uint64_t *len_bytes)
{
    const bk_value_t *v = &b->run.outputs[i];
    bk_output_cursor_t *cursor = &b->cursors[i];
    uint64_t skipped = 0;
    bk_bytes_t text;

    if (b->runtime->text_size != NULL) {
        return b->runtime->text_size(b->self, v, first, count, len_bytes);
    }

    TRITONSERVER_Error *err = bk_bytes_open(&text, "output", v->tensor->name,
        (const char *) v->data + cursor->text_offset,
        v->len_bytes - cursor->text_offset,
        v->elements - cursor->text_index);
    if (err == NULL) {
        err = text_step(&text, first - cursor->text_index, &skipped);
    }
    if (err == NULL) {
        err = text_step(&text, count, len_bytes);
    }
    if (err == NULL) {
        cursor->text_index = first;
        cursor->text_offset += skipped;
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
