/*
 * infer_compare.h - one request read in two ways, and the first difference
 *                   between the two results.
 */

#ifndef INF_T_INFER_COMPARE_H
#define INF_T_INFER_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/proto/infer_request.h"

typedef struct {
    inf_arena_t         arena;
    inf_infer_request_t request;
    inf_err_t          *err;            /* NULL: request is good             */
} compare_t;

/* The text arrives in slices and is read in turns of budget; false: no memory
   for the reader. */
static inline bool
compare_read(compare_t *c, const char *text, size_t len, size_t slice,
    size_t budget, const inf_infer_limits_t *limits)
{
    inf_infer_reader_t *reader;
    size_t avail = slice < len ? slice : len;
    inf_codec_t rc;

    memset(c, 0, sizeof(*c));
    inf_arena_init(&c->arena);
    c->err = inf_infer_reader_new(&reader, &c->arena, limits);
    if (c->err != NULL) {
        return false;
    }

    while ((rc = inf_infer_reader_feed(reader, text, avail, avail == len,
                                       budget, &c->err)) == INF_CODEC_AGAIN)
    {
        if (inf_infer_reader_offset(reader) == avail) {
            avail = len - avail > slice ? avail + slice : len;
        }
    }

    if (rc == INF_CODEC_DONE) {
        c->request = inf_infer_reader_request(reader);
    }

    inf_infer_reader_free(reader);
    return true;
}

static inline void
compare_fini(compare_t *c)
{
    inf_err_free(c->err);
    inf_arena_fini(&c->arena);
}

/* NULL is not the empty text; what has data ends in a NUL. */
static inline bool
compare_text(inf_slice_t a, inf_slice_t b)
{
    return inf_slice_eq(a, b) && (a.data == NULL) == (b.data == NULL)
           && (a.data == NULL
               || (a.data[a.len] == '\0' && b.data[b.len] == '\0'));
}

static inline bool
compare_inputs(const inf_infer_input_t *a, const inf_infer_input_t *b)
{
    for (uint32_t i = 0; i < a->dim_count && i < b->dim_count; i++) {
        if (a->shape[i] != b->shape[i]) {
            return false;
        }
    }

    return compare_text(a->name, b->name)
           && compare_text(a->shm_region, b->shm_region)
           && a->datatype == b->datatype
           && a->dim_count == b->dim_count
           && a->element_count == b->element_count
           && a->source == b->source
           && a->byte_size == b->byte_size
           && a->raw_entry == b->raw_entry
           && a->json_offset == b->json_offset
           && a->json_length == b->json_length
           && a->binary_offset == b->binary_offset
           && a->shm_offset == b->shm_offset;
}

static inline bool
compare_outputs(const inf_infer_output_t *a, const inf_infer_output_t *b)
{
    return compare_text(a->name, b->name)
           && compare_text(a->shm_region, b->shm_region)
           && a->binary == b->binary
           && a->classification == b->classification
           && a->shm_offset == b->shm_offset
           && a->shm_byte_size == b->shm_byte_size;
}

static inline bool
compare_parameters(const inf_infer_parameter_t *a,
    const inf_infer_parameter_t *b)
{
    return compare_text(a->name, b->name) && compare_text(a->text, b->text)
           && a->type == b->type && a->integer == b->integer
           && memcmp(&a->real, &b->real, sizeof(a->real)) == 0;
}

static inline const char *
compare_requests(const inf_infer_request_t *a, const inf_infer_request_t *b)
{
    if (!compare_text(a->id, b->id)) {
        return "id";
    }

    if (a->flags != b->flags || a->correlation_id != b->correlation_id
        || !compare_text(a->correlation_text, b->correlation_text))
    {
        return "sequence";
    }

    if (a->binary_data_output != b->binary_data_output
        || a->priority != b->priority || a->timeout_us != b->timeout_us)
    {
        return "reserved parameters";
    }

    if (a->input_count != b->input_count
        || a->output_count != b->output_count
        || a->parameter_count != b->parameter_count
        || a->binary_size != b->binary_size)
    {
        return "counts";
    }

    for (uint32_t i = 0; i < a->input_count; i++) {
        if (!compare_inputs(&a->inputs[i], &b->inputs[i])) {
            return "an input";
        }
    }

    for (uint32_t i = 0; i < a->output_count; i++) {
        if (!compare_outputs(&a->outputs[i], &b->outputs[i])) {
            return "an output";
        }
    }

    for (uint32_t i = 0; i < a->parameter_count; i++) {
        if (!compare_parameters(&a->parameters[i], &b->parameters[i])) {
            return "a parameter";
        }
    }

    return NULL;
}

/* The difference; NULL: nothing. */
static inline const char *
compare_results(const compare_t *a, const compare_t *b)
{
    if ((a->err == NULL) != (b->err == NULL)) {
        return "whether there is an error";
    }

    if (a->err == NULL) {
        return compare_requests(&a->request, &b->request);
    }

    if (inf_err_code(a->err) != inf_err_code(b->err)) {
        return "the error's code";
    }

    return strcmp(inf_err_msg(a->err), inf_err_msg(b->err)) == 0
           ? NULL : "the error's text";
}

#endif /* INF_T_INFER_COMPARE_H */
