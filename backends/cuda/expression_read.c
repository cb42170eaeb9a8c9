/* expression_read.c - the parser of expression.h */

#include "buffer.h"

#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 32

typedef struct {
    gpu_reader_t       *r;
    const gpu_names_t  *names;
    gpu_step_t          steps[GPU_STEPS_MAX];
    uint32_t            count;
    uint32_t            depth;
} parser_t;

static TRITONSERVER_Error *read_sum(parser_t *p);
static TRITONSERVER_Error *read_product(parser_t *p);
static TRITONSERVER_Error *read_factor(parser_t *p);
static TRITONSERVER_Error *read_inner(parser_t *p);
static TRITONSERVER_Error *read_named(parser_t *p, gpu_word_t word);
static TRITONSERVER_Error *read_calls(parser_t *p, gpu_word_t word);
static TRITONSERVER_Error *read_count(parser_t *p, gpu_step_kind_t kind);
static TRITONSERVER_Error *read_dim(parser_t *p, gpu_word_t word);
static TRITONSERVER_Error *find_tensor(parser_t *p, gpu_word_t word,
    uint32_t *tensor);
static TRITONSERVER_Error *put(parser_t *p, gpu_step_t step);

TRITONSERVER_Error *
gpu_expression_read(gpu_expression_t *e, gpu_reader_t *r,
    const gpu_names_t *names)
{
    parser_t p = { .r = r, .names = names };

    *e = (gpu_expression_t) { 0 };
    TRITONSERVER_Error *err = read_sum(&p);
    if (err != NULL) {
        return err;
    }

    e->steps = malloc(p.count * sizeof(*e->steps));
    if (e->steps == NULL) {
        return bk_err_nomem("an expression");
    }
    memcpy(e->steps, p.steps, p.count * sizeof(*e->steps));
    e->count = p.count;
    return NULL;
}

static TRITONSERVER_Error *
read_sum(parser_t *p)
{
    TRITONSERVER_Error *err = read_product(p);

    while (err == NULL) {
        gpu_step_t step = { .kind = GPU_STEP_ADD };

        if (gpu_reader_take(p->r, "-")) {
            step.kind = GPU_STEP_SUBTRACT;
        } else if (!gpu_reader_take(p->r, "+")) {
            return NULL;
        }

        err = read_product(p);
        if (err == NULL) {
            err = put(p, step);
        }
    }

    return err;
}

static TRITONSERVER_Error *
read_product(parser_t *p)
{
    TRITONSERVER_Error *err = read_factor(p);

    while (err == NULL) {
        gpu_step_t step = { .kind = GPU_STEP_MULTIPLY };

        if (gpu_reader_take(p->r, "/")) {
            step.kind = GPU_STEP_DIVIDE;
        } else if (gpu_reader_take(p->r, "%")) {
            step.kind = GPU_STEP_REST;
        } else if (!gpu_reader_take(p->r, "*")) {
            return NULL;
        }

        err = read_factor(p);
        if (err == NULL) {
            err = put(p, step);
        }
    }

    return err;
}

static TRITONSERVER_Error *
read_factor(parser_t *p)
{
    if (p->depth == DEPTH_MAX) {
        return gpu_reader_error(p->r, "more than %d expressions within each"
            " other", DEPTH_MAX);
    }

    p->depth++;
    TRITONSERVER_Error *err = read_inner(p);
    p->depth--;
    return err;
}

static TRITONSERVER_Error *
read_inner(parser_t *p)
{
    gpu_step_t step = { .kind = GPU_STEP_NUMBER };
    gpu_word_t word;
    bool fits;

    if (gpu_reader_take(p->r, "-")) {
        TRITONSERVER_Error *err = read_factor(p);
        step.kind = GPU_STEP_NEGATE;
        return err != NULL ? err : put(p, step);
    }

    if (gpu_reader_take(p->r, "(")) {
        TRITONSERVER_Error *err = read_sum(p);
        return err != NULL ? err : gpu_reader_expect(p->r, ")");
    }

    if (gpu_reader_number(p->r, &step.number, &fits)) {
        return fits ? put(p, step)
            : gpu_reader_error(p->r, "the number before it is beyond 64 bits");
    }

    if (gpu_reader_word(p->r, &word)) {
        return read_named(p, word);
    }

    return gpu_reader_error(p->r, "an expression is missing");
}

static TRITONSERVER_Error *
read_named(parser_t *p, gpu_word_t word)
{
    if (gpu_reader_take(p->r, "[")) {
        return read_dim(p, word);
    }

    if (gpu_reader_take(p->r, "(")) {
        if (gpu_word_is(word, "elements")) {
            return read_count(p, GPU_STEP_ELEMENTS);
        }
        if (gpu_word_is(word, "bytes")) {
            return read_count(p, GPU_STEP_BYTES);
        }
        return read_calls(p, word);
    }

    if (gpu_word_is(word, "batch")) {
        return put(p, (gpu_step_t) { .kind = GPU_STEP_BATCH });
    }

    return gpu_reader_error(p->r, "\"%.*s\" before it is no number: write"
        " batch, TENSOR[DIMENSION], elements(TENSOR) or bytes(TENSOR)",
        (int) word.len, word.text);
}

/* The parenthesis has been read. */
static TRITONSERVER_Error *
read_calls(parser_t *p, gpu_word_t word)
{
    gpu_step_t step = { .kind = GPU_STEP_CEILDIV };

    if (gpu_word_is(word, "min")) {
        step.kind = GPU_STEP_MIN;
    } else if (gpu_word_is(word, "max")) {
        step.kind = GPU_STEP_MAX;
    } else if (!gpu_word_is(word, "ceildiv")) {
        return gpu_reader_error(p->r, "there is no function \"%.*s\"; there"
            " are elements, bytes, ceildiv, min and max", (int) word.len,
            word.text);
    }

    TRITONSERVER_Error *err = read_sum(p);
    if (err == NULL) {
        err = gpu_reader_expect(p->r, ",");
    }

    do {
        if (err == NULL) {
            err = read_sum(p);
        }
        if (err == NULL) {
            err = put(p, step);
        }
    } while (err == NULL && step.kind != GPU_STEP_CEILDIV
        && gpu_reader_take(p->r, ","));

    return err != NULL ? err : gpu_reader_expect(p->r, ")");
}

static TRITONSERVER_Error *
read_count(parser_t *p, gpu_step_kind_t kind)
{
    gpu_step_t step = { .kind = kind };
    gpu_word_t word;

    if (!gpu_reader_word(p->r, &word)) {
        return gpu_reader_error(p->r, "a tensor's name is missing");
    }

    TRITONSERVER_Error *err = NULL;
    uint32_t i = gpu_buffer_find(p->names, word);
    if (kind == GPU_STEP_BYTES && i < p->names->buffer_count
        && p->names->buffers[i].file != NULL)
    {
        step.kind = GPU_STEP_NUMBER;
        step.number = p->names->buffers[i].file_bytes;
    } else {
        err = find_tensor(p, word, &step.tensor);
    }
    if (err == NULL) {
        err = put(p, step);
    }
    return err != NULL ? err : gpu_reader_expect(p->r, ")");
}

static TRITONSERVER_Error *
read_dim(parser_t *p, gpu_word_t word)
{
    gpu_step_t step = { .kind = GPU_STEP_DIM };
    int64_t dim;
    bool fits;

    TRITONSERVER_Error *err = find_tensor(p, word, &step.tensor);
    if (err != NULL) {
        return err;
    }

    uint32_t count = p->names->tensors[step.tensor].dims_count;
    if (!gpu_reader_number(p->r, &dim, &fits) || !fits || dim >= count) {
        return gpu_reader_error(p->r, "\"%.*s\" has %u dimensions, numbered"
            " from 0, besides the batch", (int) word.len, word.text, count);
    }

    step.dim = (uint32_t) dim;
    err = put(p, step);
    return err != NULL ? err : gpu_reader_expect(p->r, "]");
}

static TRITONSERVER_Error *
find_tensor(parser_t *p, gpu_word_t word, uint32_t *tensor)
{
    *tensor = gpu_tensor_find(p->names->tensors, p->names->tensor_count,
        word);
    return *tensor < p->names->tensor_count ? NULL
        : gpu_reader_error(p->r, "the model has no tensor \"%.*s\"",
            (int) word.len, word.text);
}

static TRITONSERVER_Error *
put(parser_t *p, gpu_step_t step)
{
    if (p->count == GPU_STEPS_MAX) {
        return gpu_reader_error(p->r, "the expression has more than %d parts",
            GPU_STEPS_MAX);
    }

    p->steps[p->count++] = step;
    return NULL;
}
