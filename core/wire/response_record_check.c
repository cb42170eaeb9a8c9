/*
 * response_record_check.c - see response_record.h.
 *
 * All sums are checked, or of 32-bit numbers in 64 bits.
 */

#include "core/base/error.h"
#include "core/include/datatype.h"
#include "core/wire/response_record.h"

typedef struct {
    const char *base;
    uint64_t    size;
    uint64_t    arena_size;
} bounds_t;

static bool texts_fit(const bounds_t *b, const inf_response_record_t *rec);
static bool ref_fits(const bounds_t *b, inf_ref_t ref);
static bool table_fits(const bounds_t *b, uint32_t offset, uint32_t count,
    size_t item_size);
static inf_err_t *check_output(const bounds_t *b,
    const inf_response_output_t *out, uint32_t index);
static bool labels_fit(const bounds_t *b, const inf_response_output_t *out);
static bool count_elements(const bounds_t *b,
    const inf_response_output_t *out, uint64_t *count);
static bool length_fits(const inf_response_output_t *out, uint64_t count);
static inf_err_t *check_parameters(const bounds_t *b,
    const inf_response_record_t *rec);
static inf_err_t *broken(const char *what, uint32_t index);

inf_err_t *
inf_response_record_check(const void *record, size_t len, uint64_t arena_size)
{
    const inf_response_record_t *rec = record;

    if (len < sizeof(*rec) || ((uintptr_t) record & 7) != 0
        || rec->size < sizeof(*rec) || rec->size > len)
    {
        return broken("its size", 0);
    }

    bounds_t b = { record, rec->size, arena_size };

    if (!texts_fit(&b, rec)) {
        return broken("a text", 0);
    }

    if (!table_fits(&b, rec->output_offset, rec->output_count,
                    sizeof(inf_response_output_t)))
    {
        return broken("the table of outputs", 0);
    }

    const void *table = b.base + rec->output_offset;
    const inf_response_output_t *outputs = table;
    for (uint32_t i = 0; i < rec->output_count; i++) {
        inf_err_t *err = check_output(&b, &outputs[i], i);
        if (err != NULL) {
            return err;
        }
    }

    return check_parameters(&b, rec);
}

static bool
texts_fit(const bounds_t *b, const inf_response_record_t *rec)
{
    return ref_fits(b, rec->error) && ref_fits(b, rec->model_name)
           && ref_fits(b, rec->id) && ref_fits(b, rec->backend)
           && ref_fits(b, rec->instance);
}

static bool
ref_fits(const bounds_t *b, inf_ref_t ref)
{
    return (uint64_t) ref.offset + ref.len <= b->size;
}

/* Whether a table lies inside; an empty one may have any offset inside. */
static bool
table_fits(const bounds_t *b, uint32_t offset, uint32_t count,
    size_t item_size)
{
    if (count == 0) {
        return offset <= b->size;
    }

    return offset % 8 == 0 && offset <= b->size
           && count <= (b->size - offset) / item_size;
}

static inf_err_t *
check_output(const bounds_t *b, const inf_response_output_t *out,
    uint32_t index)
{
    if (!ref_fits(b, out->name)) {
        return broken("the name of output", index);
    }

    if (out->datatype == INF_TYPE_INVALID || out->datatype >= INF_TYPE_COUNT) {
        return broken("the datatype of output", index);
    }

    if (out->dim_count > INF_MAX_DIMS
        || !table_fits(b, out->shape_offset, out->dim_count, sizeof(int64_t)))
    {
        return broken("the shape of output", index);
    }

    if (!labels_fit(b, out)) {
        return broken("the labels of output", index);
    }

    uint64_t count;
    if (!count_elements(b, out, &count)) {
        return broken("the shape of output", index);
    }

    if (out->data_kind == INF_DATA_SHM_REGION) {
        return NULL;
    }

    if (out->data_kind != INF_DATA_ARENA || out->data_offset > b->arena_size
        || out->data_length > b->arena_size - out->data_offset)
    {
        return broken("the data range of output", index);
    }

    return length_fits(out, count) ? NULL
                                   : broken("the data length of output",
                                            index);
}

static bool
labels_fit(const bounds_t *b, const inf_response_output_t *out)
{
    if (!table_fits(b, out->label_offset, out->label_count,
                    sizeof(inf_ref_t)))
    {
        return false;
    }

    const void *table = b->base + out->label_offset;
    const inf_ref_t *labels = table;
    for (uint32_t i = 0; i < out->label_count; i++) {
        if (!ref_fits(b, labels[i])) {
            return false;
        }
    }

    return true;
}

static bool
count_elements(const bounds_t *b, const inf_response_output_t *out,
    uint64_t *count)
{
    const void *table = b->base + out->shape_offset;
    const int64_t *shape = table;
    bool overflow = false;
    bool empty = false;

    *count = 1;
    for (uint32_t i = 0; i < out->dim_count; i++) {
        if (shape[i] < 0) {
            return false;
        }

        empty |= shape[i] == 0;
        overflow |= __builtin_mul_overflow(*count, (uint64_t) shape[i],
                                           count);
    }

    if (empty || (out->dim_count == 0 && out->data_length == 0)) {
        *count = 0;
    }

    return empty || !overflow;
}

/* Whether the length fits the count; for strings only the length prefixes are
   counted, prepare checks the rest. */
static bool
length_fits(const inf_response_output_t *out, uint64_t count)
{
    uint32_t size = inf_datatype_size(out->datatype);

    if (size != 0) {
        return out->data_length % size == 0
               && out->data_length / size == count;
    }

    return out->data_length / 4 >= count
           && (count != 0 || out->data_length == 0);
}

static inf_err_t *
check_parameters(const bounds_t *b, const inf_response_record_t *rec)
{
    if (!table_fits(b, rec->parameter_offset, rec->parameter_count,
                    sizeof(inf_record_parameter_t)))
    {
        return broken("the table of parameters", 0);
    }

    const void *table = b->base + rec->parameter_offset;
    const inf_record_parameter_t *p = table;
    for (uint32_t i = 0; i < rec->parameter_count; i++) {
        if (!ref_fits(b, p[i].name) || !ref_fits(b, p[i].text)
            || p[i].type > INF_PARAMETER_BYTES)
        {
            return broken("parameter", i);
        }
    }

    return NULL;
}

static inf_err_t *
broken(const char *what, uint32_t index)
{
    return inf_err_new(INF_ERR_INTERNAL,
                       "malformed response record: %s %u", what, index);
}
