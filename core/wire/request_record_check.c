#include "core/wire/request_record.h"

#include <string.h>

#include "core/include/datatype.h"
#include "core/wire/region.h"

#define RECORD_ALIGN 8u

#define RECORD_FLAGS (INF_REQUEST_SEQUENCE_START | INF_REQUEST_SEQUENCE_END \
    | INF_REQUEST_CORRELATION_STR | INF_REQUEST_RAW_INPUT                   \
    | INF_REQUEST_STREAM | INF_REQUEST_GENERATE                             \
    | INF_REQUEST_LOAD_REPORT)

static inf_err_t *record_check(const inf_infer_record_t *r,
    uint64_t length, uint64_t arena_size);
static inf_err_t *record_check_head(const inf_infer_record_t *r,
    uint64_t *left);
static inf_err_t *record_check_inputs(const inf_infer_record_t *r,
    uint64_t *left, uint64_t arena_size);
static inf_err_t *record_check_input(const inf_infer_record_t *r,
    uint64_t *left, const inf_record_input_t *input, uint64_t arena_size);
static inf_err_t *record_check_outputs(const inf_infer_record_t *r,
    uint64_t *left);
static inf_err_t *record_check_parameters(const inf_infer_record_t *r,
    uint64_t *left);
static inf_err_t *record_check_table(const inf_infer_record_t *r,
    uint64_t *left, const char *what, uint32_t offset, uint64_t count,
    uint64_t entry_size);
static inf_err_t *record_check_name(const inf_infer_record_t *r,
    uint64_t *left, const char *what, inf_ref_t ref);
static inf_err_t *record_check_text(const inf_infer_record_t *r,
    uint64_t *left, const char *what, inf_ref_t ref);
static inf_err_t *record_take(uint64_t *left, const char *what, uint64_t len);
static const void *record_at(const inf_infer_record_t *r, uint32_t offset);

inf_err_t *
inf_infer_record_copy_check(const void *arena_base, uint64_t arena_size,
    uint64_t offset, uint64_t length, inf_arena_t *mem,
    const inf_infer_record_t **out)
{
    *out = NULL;

    if (length < sizeof(inf_infer_record_t) || length > INF_RECORD_MAX) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "a request record has %llu bytes, allowed are %zu to %u",
            (unsigned long long) length, sizeof(inf_infer_record_t),
            INF_RECORD_MAX);
    }

    if (!inf_range_ok(offset, length, arena_size)) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "a request record lies outside the request arena");
    }

    inf_infer_record_t *r = inf_arena_alloc(mem, length);
    if (r == NULL) {
        return inf_err_nomem();
    }

    memcpy(r, (const unsigned char *) arena_base + offset, length);

    inf_err_t *err = record_check(r, length, arena_size);
    if (err != NULL) {
        return inf_err_add(err, "request record");
    }

    *out = r;
    return NULL;
}

const inf_record_input_t *
inf_infer_record_inputs(const inf_infer_record_t *r)
{
    return record_at(r, r->input_count > 0 ? r->input_offset : 0);
}

const inf_record_output_t *
inf_infer_record_outputs(const inf_infer_record_t *r)
{
    return record_at(r, r->output_count > 0 ? r->output_offset : 0);
}

const inf_record_parameter_t *
inf_infer_record_parameters(const inf_infer_record_t *r)
{
    return record_at(r, r->parameter_count > 0 ? r->parameter_offset : 0);
}

const int64_t *
inf_infer_record_shape(const inf_infer_record_t *r,
    const inf_record_input_t *input)
{
    return record_at(r, input->dim_count > 0 ? input->shape_offset : 0);
}

inf_slice_t
inf_infer_record_text(const inf_infer_record_t *r, inf_ref_t ref)
{
    return inf_slice(ref.len > 0 ? record_at(r, ref.offset) : "", ref.len);
}

static inf_err_t *
record_check(const inf_infer_record_t *r, uint64_t length,
    uint64_t arena_size)
{
    if (r->size < sizeof(*r) || r->size > length) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "size %u does not fit its %llu bytes", r->size,
            (unsigned long long) length);
    }

    uint64_t left = r->size - sizeof(*r);
    inf_err_t *err = record_check_head(r, &left);
    if (err == NULL) {
        err = record_check_inputs(r, &left, arena_size);
    }
    if (err == NULL) {
        err = record_check_outputs(r, &left);
    }
    if (err == NULL) {
        err = record_check_parameters(r, &left);
    }

    return err;
}

static inf_err_t *
record_check_head(const inf_infer_record_t *r, uint64_t *left)
{
    if (r->protocol != INF_PROTOCOL_HTTP && r->protocol != INF_PROTOCOL_GRPC)
    {
        return inf_err_new(INF_ERR_INVALID_ARG, "unknown protocol %u",
            r->protocol);
    }

    if ((r->flags & ~RECORD_FLAGS) != 0) {
        return inf_err_new(INF_ERR_INVALID_ARG, "unknown flags 0x%x",
            r->flags);
    }

    if ((r->flags & INF_REQUEST_GENERATE)
        && !(r->flags & INF_REQUEST_RAW_INPUT))
    {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "a generate request is not raw");
    }

    if ((r->flags & INF_REQUEST_RAW_INPUT) && r->input_count != 1) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "a raw request has %u inputs, expected 1", r->input_count);
    }

    if (r->model_name.len == 0) {
        return inf_err_new(INF_ERR_INVALID_ARG, "the model name is empty");
    }

    inf_err_t *err = record_check_name(r, left, "model name", r->model_name);
    if (err == NULL) {
        err = record_check_name(r, left, "request id", r->id);
    }
    if (err == NULL) {
        err = record_check_name(r, left, "correlation id", r->correlation_text);
    }

    return err;
}

static inf_err_t *
record_check_inputs(const inf_infer_record_t *r, uint64_t *left,
    uint64_t arena_size)
{
    inf_err_t *err = record_check_table(r, left, "inputs", r->input_offset,
        r->input_count, sizeof(inf_record_input_t));
    if (err != NULL) {
        return err;
    }

    const inf_record_input_t *inputs = inf_infer_record_inputs(r);
    for (uint32_t i = 0; i < r->input_count; i++) {
        err = record_check_input(r, left, &inputs[i], arena_size);
        if (err != NULL) {
            return inf_err_add(err, "input %u", i);
        }
    }

    return NULL;
}

static inf_err_t *
record_check_input(const inf_infer_record_t *r, uint64_t *left,
    const inf_record_input_t *input, uint64_t arena_size)
{
    bool raw = (r->flags & INF_REQUEST_RAW_INPUT) != 0;
    inf_err_t *err = record_check_name(r, left, "name", input->name);
    if (err != NULL) {
        return err;
    }

    if (input->datatype >= INF_TYPE_COUNT
        || (!raw && input->datatype == INF_TYPE_INVALID))
    {
        return inf_err_new(INF_ERR_INVALID_ARG, "unknown datatype %u",
            input->datatype);
    }

    if (input->dim_count > INF_MAX_DIMS) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "%u dimensions are more than %d", input->dim_count, INF_MAX_DIMS);
    }

    err = record_check_table(r, left, "shape", input->shape_offset,
        input->dim_count, sizeof(int64_t));
    if (err != NULL) {
        return err;
    }

    switch (input->data_kind) {

    case INF_DATA_ARENA:
        if (!inf_range_ok(input->data_offset, input->data_length,
                arena_size))
        {
            return inf_err_new(INF_ERR_INVALID_ARG,
                "the data lies outside the request arena");
        }

        return NULL;

    case INF_DATA_SHM_REGION:
        /* the range is checked when the region is found */
        if (raw || input->shm_region.len == 0) {
            return inf_err_new(INF_ERR_INVALID_ARG,
                "the shared-memory region has no name, or the input none");
        }

        return record_check_name(r, left, "shared-memory region",
            input->shm_region);

    default:
        return inf_err_new(INF_ERR_INVALID_ARG, "unknown kind of data %u",
            input->data_kind);
    }
}

static inf_err_t *
record_check_outputs(const inf_infer_record_t *r, uint64_t *left)
{
    inf_err_t *err = record_check_table(r, left, "outputs", r->output_offset,
        r->output_count, sizeof(inf_record_output_t));
    if (err != NULL) {
        return err;
    }

    const inf_record_output_t *outputs = inf_infer_record_outputs(r);
    for (uint32_t i = 0; i < r->output_count; i++) {
        const inf_record_output_t *o = &outputs[i];

        if (o->data_kind > INF_DATA_SHM_REGION
            || (o->data_kind == INF_DATA_SHM_REGION
                && (o->shm_region.len == 0 || o->classification != 0)))
        {
            return inf_err_new(INF_ERR_INVALID_ARG,
                "output %u: no place to write to (kind %u)", i,
                o->data_kind);
        }

        err = record_check_name(r, left, "name", o->name);
        if (err == NULL) {
            err = record_check_name(r, left, "shared-memory region",
                o->shm_region);
        }
        if (err != NULL) {
            return inf_err_add(err, "output %u", i);
        }
    }

    return NULL;
}

static inf_err_t *
record_check_parameters(const inf_infer_record_t *r, uint64_t *left)
{
    inf_err_t *err = record_check_table(r, left, "parameters",
        r->parameter_offset, r->parameter_count,
        sizeof(inf_record_parameter_t));
    if (err != NULL) {
        return err;
    }

    const inf_record_parameter_t *parameters = inf_infer_record_parameters(r);
    for (uint32_t i = 0; i < r->parameter_count; i++) {
        const inf_record_parameter_t *p = &parameters[i];

        if (p->type > INF_PARAMETER_BYTES
            || (p->type == INF_PARAMETER_BOOL && p->number.i != 0
                && p->number.i != 1))
        {
            return inf_err_new(INF_ERR_INVALID_ARG,
                "parameter %u: type %u with an impossible value", i,
                p->type);
        }

        err = record_check_name(r, left, "name", p->name);
        if (err == NULL) {
            err = record_check_text(r, left, "text", p->text);
        }
        if (err != NULL) {
            return inf_err_add(err, "parameter %u", i);
        }
    }

    return NULL;
}

/* Checks a table; the offset of an empty one is not used. */
static inf_err_t *
record_check_table(const inf_infer_record_t *r, uint64_t *left,
    const char *what, uint32_t offset, uint64_t count, uint64_t entry_size)
{
    if (count == 0) {
        return NULL;
    }

    /* count has 32 bits and entries are small, so this cannot overflow. */
    if (offset % RECORD_ALIGN != 0 || offset < sizeof(*r)
        || !inf_range_ok(offset, count * entry_size, r->size))
    {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "%s: %llu entries at offset %u do not fit into %u bytes", what,
            (unsigned long long) count, offset, r->size);
    }

    return record_take(left, what, count * entry_size);
}

/* Checks a name, which becomes a C string later: it must not contain NUL. */
static inf_err_t *
record_check_name(const inf_infer_record_t *r, uint64_t *left,
    const char *what, inf_ref_t ref)
{
    inf_err_t *err = record_check_text(r, left, what, ref);
    if (err != NULL) {
        return err;
    }

    if (ref.len > 0 && memchr(record_at(r, ref.offset), 0, ref.len) != NULL) {
        return inf_err_new(INF_ERR_INVALID_ARG, "%s: holds a NUL byte", what);
    }

    return NULL;
}

static inf_err_t *
record_check_text(const inf_infer_record_t *r, uint64_t *left,
    const char *what, inf_ref_t ref)
{
    if (ref.len > 0 && !inf_range_ok(ref.offset, ref.len, r->size)) {
        return inf_err_new(INF_ERR_INVALID_ARG,
            "%s: %u bytes at offset %u do not fit into %u bytes", what,
            ref.len, ref.offset, r->size);
    }

    return record_take(left, what, ref.len);
}

/* Counts the bytes of tables and texts, which must not overlap: otherwise a
   small record could refer to one long text many times and cost the core much
   time and memory. */
static inf_err_t *
record_take(uint64_t *left, const char *what, uint64_t len)
{
    if (len > *left) {
        return inf_err_new(INF_ERR_INVALID_ARG, "%s: tables and texts are"
            " longer than the record: some of them overlap", what);
    }

    *left -= len;
    return NULL;
}

static const void *
record_at(const inf_infer_record_t *r, uint32_t offset)
{
    return (const unsigned char *) r + offset;
}
