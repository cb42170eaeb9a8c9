/*
 * infer_members.c - see infer_members.h.
 */

#include <stdio.h>
#include <string.h>

#include "core/proto/infer_members.h"
#include "core/proto/infer_data.h"
#include "core/proto/json_string.h"
#include "core/proto/number.h"

#define RESERVED_PREFIX "triton_"

/* The three sources of an input's bytes; the text continues with the
   conflict. */
#define ONE_SOURCE "Input must set only one of the following fields: 'data', " \
                   "'binary_data_size' in 'parameters', "                      \
                   "'shared_memory_region' in 'parameters'. But "

typedef inf_err_t *take_fn(inf_description_t *d, const inf_member_t *m,
    const inf_member_value_t *v);

static take_fn take_text, take_name, take_datatype, take_shape, take_uint,
    take_bool, take_classification, take_region, take_sequence_id,
    take_sequence_start, take_sequence_end;
static inf_err_t *take_members(inf_description_t *d,
    const inf_object_t *object);
static inf_err_t *take_flag(inf_description_t *d, const inf_member_t *m,
    const inf_member_value_t *v, uint16_t flag);
static inf_err_t *read_text(const inf_description_t *d, const char *name,
    const inf_member_value_t *v, inf_slice_t *out);
static bool read_number(const inf_description_t *d,
    const inf_member_value_t *v, inf_number_t *out);
static bool read_uint(const inf_description_t *d, const inf_member_value_t *v,
    uint64_t *out);
static inf_err_t *read_bool(const inf_description_t *d, const char *name,
    const inf_member_value_t *v, bool *out);
static inf_err_t *count_elements(const inf_description_t *d,
    inf_tensor_t *tensor);
static inf_err_t *check_data(const inf_description_t *d,
    inf_infer_input_t *out);
static uint32_t leaf_kind(uint32_t datatype);
static inf_err_t *check_count(const inf_description_t *d,
    const inf_infer_input_t *in);
static inf_err_t *complain(const inf_description_t *d, const char *name,
    const char *why);
static inf_err_t *not_a(const inf_description_t *d, const char *name,
    const char *kind);
static inf_err_t *not_in_range(const inf_description_t *d, const char *name,
    uint64_t most);
static inf_err_t *missing(const inf_description_t *d, const char *name);

/* ---- the grammar ---- */

/* Slots of values that a rule needs; other slots are arbitrary. */
enum {
    SLOT_DATA = 4,
    SLOT_BINARY_SIZE,
    SLOT_REGION,
    SLOT_BYTE_SIZE,
    SLOT_OFFSET
};

#define NAMED(text)   .name = text, .len = sizeof(text) - 1
#define INTO(s, f)    .field = offsetof(s, f)
#define OBJECT(table) .members = table, \
                      .count = sizeof(table) / sizeof((table)[0])

/* Offset and size are ignored without a region. */
#define SHM_MEMBERS \
    { NAMED("shared_memory_region"), .slot = SLOT_REGION, \
      .take = take_region }, \
    { NAMED("shared_memory_byte_size"), .slot = SLOT_BYTE_SIZE, \
      .in_region = true, .take = take_uint, \
      INTO(inf_tensor_t, shm_byte_size) }, \
    { NAMED("shared_memory_offset"), .slot = SLOT_OFFSET, \
      .in_region = true, .take = take_uint, INTO(inf_tensor_t, shm_offset) }

static const inf_member_t input_parameter_rows[] = {
    { NAMED("binary_data_size"), .slot = SLOT_BINARY_SIZE, .take = take_uint,
      INTO(inf_tensor_t, binary_size) },
    SHM_MEMBERS
};

static const inf_object_t input_parameters = {
    OBJECT(input_parameter_rows), .parameters = true
};

static const inf_member_t input_rows[] = {
    { NAMED("name"), .slot = 0, .needed = true, .take = take_name,
      INTO(inf_tensor_t, name) },
    { NAMED("datatype"), .slot = 1, .needed = true, .take = take_datatype },
    { NAMED("shape"), .slot = 2, .needed = true, .take = take_shape,
      .kind = INF_MEMBER_SHAPE },
    { NAMED("parameters"), .slot = 3, .kind = INF_MEMBER_OBJECT, .real = true,
      .object = &input_parameters },
    { NAMED("data"), .slot = SLOT_DATA, .kind = INF_MEMBER_DATA, .real = true }
};

const inf_object_t inf_object_input = {
    OBJECT(input_rows), .what = "input", .whole = "an input"
};

static const inf_member_t output_parameter_rows[] = {
    { NAMED("binary_data"), .slot = 2, .take = take_bool,
      INTO(inf_tensor_t, binary) },
    { NAMED("classification"), .slot = 3, .take = take_classification,
      INTO(inf_tensor_t, classification) },
    SHM_MEMBERS
};

static const inf_object_t output_parameters = {
    OBJECT(output_parameter_rows), .parameters = true
};

static const inf_member_t output_rows[] = {
    { NAMED("name"), .slot = 0, .needed = true, .take = take_name,
      INTO(inf_tensor_t, name) },
    { NAMED("parameters"), .slot = 1, .kind = INF_MEMBER_OBJECT, .real = true,
      .object = &output_parameters }
};

static const inf_object_t output_object = {
    OBJECT(output_rows), .what = "output", .whole = "an output"
};

static const inf_member_t request_parameter_rows[] = {
    { NAMED("sequence_id"), .slot = 4, .take = take_sequence_id },
    { NAMED("sequence_start"), .slot = 5, .take = take_sequence_start },
    { NAMED("sequence_end"), .slot = 6, .take = take_sequence_end },
    { NAMED("priority"), .slot = 7, .take = take_uint,
      INTO(inf_infer_request_t, priority) },
    { NAMED("timeout"), .slot = 8, .take = take_uint,
      INTO(inf_infer_request_t, timeout_us) },
    { NAMED("binary_data_output"), .slot = 9, .take = take_bool,
      INTO(inf_infer_request_t, binary_data_output) }
};

static const inf_object_t request_parameters = {
    OBJECT(request_parameter_rows), .parameters = true, .at_once = true
};

static const inf_member_t request_rows[] = {
    { NAMED("inputs"), .slot = 0, .kind = INF_MEMBER_LIST, .needed = true,
      .object = &inf_object_input },
    { NAMED("outputs"), .slot = 1, .kind = INF_MEMBER_LIST,
      .object = &output_object },
    { NAMED("id"), .slot = 2, .take = take_text,
      INTO(inf_infer_request_t, id) },
    { NAMED("parameters"), .slot = 3, .kind = INF_MEMBER_OBJECT, .real = true,
      .object = &request_parameters }
};

const inf_object_t inf_object_request = {
    OBJECT(request_rows), .whole = "the request"
};

/* ---- members ---- */

inf_err_t *
inf_description_take(inf_description_t *d)
{
    return take_members(d, d->object);
}

static inf_err_t *
take_members(inf_description_t *d, const inf_object_t *object)
{
    bool region = false;

    for (size_t i = 0; i < object->count; i++) {
        const inf_member_t *m = &object->members[i];
        const inf_member_value_t *v = &d->values[m->slot];
        inf_err_t *err = NULL;

        if (!inf_description_has(d, m->slot)) {
            if (m->needed) {
                return missing(d, m->name);
            }

            continue;
        }

        if (m->kind == INF_MEMBER_OBJECT) {
            if (v->kind == INF_JSON_NULL && !m->object->at_once) {
                continue;                           /* as Triton does        */
            }

            if (v->kind != INF_JSON_OBJECT_BEGIN) {
                return m->object->at_once
                       ? inf_err_new(INF_ERR_INVALID_ARG, "failed to get "
                                     "request params.: attempt to get members "
                                     "for non-object")
                       : not_a(d, m->name, "object");
            }

            err = m->object->at_once ? NULL : take_members(d, m->object);

        } else if (m->take != NULL && (region || !m->in_region)) {
            err = m->take(d, m, v);
            region |= m->take == take_region;
        }

        if (err != NULL) {
            return err;
        }
    }

    return NULL;
}

/* ---- functions that take a member ---- */

static void *
target_of(const inf_description_t *d, const inf_member_t *m)
{
    return (char *) d->target + m->field;
}

static inf_err_t *
take_text(inf_description_t *d, const inf_member_t *m,
    const inf_member_value_t *v)
{
    return read_text(d, m->name, v, target_of(d, m));
}

/* Takes the name, which later errors contain. */
static inf_err_t *
take_name(inf_description_t *d, const inf_member_t *m,
    const inf_member_value_t *v)
{
    inf_slice_t *name = target_of(d, m);
    inf_err_t *err = read_text(d, m->name, v, name);

    d->name = *name;
    return err;
}

static inf_err_t *
take_datatype(inf_description_t *d, const inf_member_t *m,
    const inf_member_value_t *v)
{
    inf_tensor_t *tensor = d->target;
    inf_slice_t text = inf_slice(d->json + v->offset + 1, v->length - 2);

    if (v->kind != INF_JSON_STRING || v->escaped) {
        inf_err_t *err = read_text(d, m->name, v, &text);
        if (err != NULL) {
            return err;
        }
    }

    tensor->datatype = inf_datatype_parse(text.data, text.len);
    if (tensor->datatype == INF_TYPE_INVALID) {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "invalid datatype for input %.*s",
                           (int) d->name.len, d->name.data);
    }

    return NULL;
}

static inf_err_t *
take_shape(inf_description_t *d, const inf_member_t *m,
    const inf_member_value_t *v)
{
    inf_tensor_t *tensor = d->target;

    if (v->kind != INF_JSON_ARRAY_BEGIN) {
        return not_a(d, m->name, "array");
    }

    if (d->shape->count > INF_MAX_DIMS) {
        return complain(d, m->name, "more than 64 dimensions");
    }

    switch (d->shape->state) {
    case INF_SHAPE_WRONG:
        return not_in_range(d, m->name, INT64_MAX);
    case INF_SHAPE_WIDE:
        return complain(d, m->name, "a dimension exceeds int64");
    case INF_SHAPE_GOOD:
        break;
    }

    return count_elements(d, tensor);
}

void
inf_description_add_dim(inf_description_t *d, const inf_member_value_t *v)
{
    inf_shape_t *shape = d->shape;
    uint64_t dim;

    if (shape->state == INF_SHAPE_GOOD && shape->count < INF_MAX_DIMS) {
        if (!read_uint(d, v, &dim)) {
            shape->state = INF_SHAPE_WRONG;
        } else if (dim > INT64_MAX) {
            shape->state = INF_SHAPE_WIDE;
        } else {
            shape->dims[shape->count] = (int64_t) dim;
        }
    }

    shape->count++;
}

static inf_err_t *
take_uint(inf_description_t *d, const inf_member_t *m,
    const inf_member_value_t *v)
{
    return read_uint(d, v, target_of(d, m))
           ? NULL : not_in_range(d, m->name, UINT64_MAX);
}

static inf_err_t *
take_classification(inf_description_t *d, const inf_member_t *m,
    const inf_member_value_t *v)
{
    return read_uint(d, v, target_of(d, m)) ? NULL
           : inf_err_new(INF_ERR_INVALID_ARG, "Unable to set 'classification':"
                         " attempt to access JSON non-unsigned-integer as "
                         "unsigned-integer (output '%.*s')", (int) d->name.len,
                         d->name.data);
}

static inf_err_t *
take_bool(inf_description_t *d, const inf_member_t *m,
    const inf_member_value_t *v)
{
    return read_bool(d, m->name, v, target_of(d, m));
}

static inf_err_t *
take_region(inf_description_t *d, const inf_member_t *m,
    const inf_member_value_t *v)
{
    inf_tensor_t *tensor = d->target;
    inf_err_t *err = read_text(d, m->name, v, &tensor->shm_region);

    if (err == NULL && tensor->shm_region.len == 0) {
        return complain(d, m->name, "the name is empty");
    }

    return err;
}

static inf_err_t *
take_sequence_start(inf_description_t *d, const inf_member_t *m,
    const inf_member_value_t *v)
{
    return take_flag(d, m, v, INF_REQUEST_SEQUENCE_START);
}

static inf_err_t *
take_sequence_end(inf_description_t *d, const inf_member_t *m,
    const inf_member_value_t *v)
{
    return take_flag(d, m, v, INF_REQUEST_SEQUENCE_END);
}

static inf_err_t *
take_flag(inf_description_t *d, const inf_member_t *m,
    const inf_member_value_t *v, uint16_t flag)
{
    inf_infer_request_t *request = d->target;
    bool on = false;
    inf_err_t *err = read_bool(d, m->name, v, &on);

    request->flags |= on ? flag : 0;
    return err;
}

static inf_err_t *
take_sequence_id(inf_description_t *d, const inf_member_t *m,
    const inf_member_value_t *v)
{
    inf_infer_request_t *request = d->target;

    if (v->kind != INF_JSON_STRING) {
        return read_uint(d, v, &request->correlation_id) ? NULL
               : complain(d, m->name, "attempt to access JSON non-string as "
                          "string: it is a text or a whole number from 0 to "
                          "18446744073709551615");
    }

    inf_slice_t *text = &request->correlation_text;
    inf_err_t *err = read_text(d, m->name, v, text);
    if (err != NULL) {
        return err;
    }

    if (text->len > INF_INFER_MAX_CORRELATION) {
        return inf_err_new(INF_ERR_UNSUPPORTED,
                           "string correlation ID cannot be longer than %u "
                           "characters", INF_INFER_MAX_CORRELATION);
    }

    if (text->len != 0) {
        request->flags |= INF_REQUEST_CORRELATION_STR;
    }

    return NULL;
}

inf_err_t *
inf_description_custom(inf_description_t *d, inf_slice_t name,
    const inf_member_value_t *v, inf_infer_parameter_t *out)
{
    inf_number_t n;

    if (strncmp(name.data, RESERVED_PREFIX, sizeof(RESERVED_PREFIX) - 1)
        == 0)
    {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "parameter keys starting with 'triton_' are "
                           "reserved for Triton usage and should not be "
                           "specified.");
    }

    *out = (inf_infer_parameter_t) { .name = name };

    switch (v->kind) {

    case INF_JSON_STRING:
        out->type = INF_PARAMETER_STRING;
        return read_text(d, name.data, v, &out->text);

    case INF_JSON_TRUE:
    case INF_JSON_FALSE:
        out->type = INF_PARAMETER_BOOL;
        out->integer = v->kind == INF_JSON_TRUE;
        return NULL;

    case INF_JSON_NUMBER:
        (void) read_number(d, v, &n);
        out->type = INF_PARAMETER_INT;
        if (!inf_number_int64(&n, &out->integer)) {
            out->type = INF_PARAMETER_DOUBLE;
            out->real = inf_number_double(&n);
        }

        return NULL;

    case INF_JSON_NONFINITE:
        out->type = INF_PARAMETER_DOUBLE;
        (void) inf_number_read_nonfinite(d->json + v->offset,
                                         d->json + v->offset + v->length,
                                         &out->real);
        return NULL;

    default:
        break;
    }

    return inf_err_new(INF_ERR_INVALID_ARG,
                       INF_PARAMETER_WRONG_KIND, (int) name.len, name.data);
}

/* ---- values ---- */

inf_err_t *
inf_description_text(const inf_description_t *d, const inf_member_value_t *v,
    inf_slice_t *out)
{
    const char *from = d->json + v->offset + 1;
    const char *end = from + v->length - 2;
    char *text = inf_arena_strdup(d->arena, from, (size_t) (end - from));

    if (text == NULL) {
        return inf_err_nomem();
    }

    *out = inf_slice(text, (size_t) (end - from));
    if (v->escaped) {
        char *to = text;
        (void) inf_json_unescape(&from, end, end, &to, text + out->len);
        *to = '\0';
        out->len = (size_t) (to - text);
    }

    return NULL;
}

static inf_err_t *
read_text(const inf_description_t *d, const char *name,
    const inf_member_value_t *v, inf_slice_t *out)
{
    if (v->kind != INF_JSON_STRING) {
        return not_a(d, name, "string");
    }

    inf_err_t *err = inf_description_text(d, v, out);
    if (err == NULL && v->escaped
        && memchr(out->data, '\0', out->len) != NULL)
    {
        return complain(d, name, "the text contains a NUL character");
    }

    return err;
}

static bool
read_number(const inf_description_t *d, const inf_member_value_t *v,
    inf_number_t *out)
{
    const char *p = d->json + v->offset;

    return v->kind == INF_JSON_NUMBER
           && inf_number_read(p, p + v->length, out) != 0;
}

static bool
read_uint(const inf_description_t *d, const inf_member_value_t *v,
    uint64_t *out)
{
    inf_slice_t text = inf_slice(d->json + v->offset, v->length);
    inf_number_t n;

    if (v->kind == INF_JSON_NUMBER && inf_number_parse_short(text, out)) {
        return true;
    }

    return read_number(d, v, &n) && inf_number_uint64(&n, out);
}

static inf_err_t *
read_bool(const inf_description_t *d, const char *name,
    const inf_member_value_t *v, bool *out)
{
    if (v->kind != INF_JSON_TRUE && v->kind != INF_JSON_FALSE) {
        return not_a(d, name, "boolean");
    }

    *out = v->kind == INF_JSON_TRUE;
    return NULL;
}

/* ---- rows of tensors ---- */

/* Rejects more elements or bytes than fit int64. */
static inf_err_t *
count_elements(const inf_description_t *d, inf_tensor_t *tensor)
{
    const inf_shape_t *shape = d->shape;
    uint64_t product = shape->count != 0;
    bool overflow = false;
    bool empty = false;

    for (uint32_t i = 0; i < shape->count; i++) {
        empty |= shape->dims[i] == 0;
        overflow |= __builtin_mul_overflow(product,
                                           (uint64_t) shape->dims[i],
                                           &product);
    }

    tensor->element_count = empty ? 0 : product;
    if (empty) {
        return NULL;
    }

    if (overflow || product > INT64_MAX) {
        return inf_err_new(INF_ERR_INVALID_ARG, "shape of input '%.*s' causes"
                           " total element count to exceed maximum size of "
                           "%lld", (int) d->name.len, d->name.data,
                           (long long) INT64_MAX);
    }

    uint64_t bytes;
    overflow = __builtin_mul_overflow(product,
                                      inf_datatype_size(tensor->datatype),
                                      &bytes);

    return !overflow && bytes <= INT64_MAX ? NULL
           : inf_err_new(INF_ERR_INVALID_ARG, "byte size overflow for input "
                         "'%.*s'", (int) d->name.len, d->name.data);
}

inf_err_t *
inf_description_input(const inf_description_t *d, inf_infer_input_t *out)
{
    const inf_tensor_t *tensor = d->target;
    size_t shape_size = d->shape->count * sizeof(*d->shape->dims);
    bool binary = inf_description_has(d, SLOT_BINARY_SIZE);
    bool shm = inf_description_has(d, SLOT_REGION);
    bool json = inf_description_has(d, SLOT_DATA);

    if (json + binary + shm > 1) {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           ONE_SOURCE "set%s%s%s (input '%.*s')",
                           json ? " 'data'" : "",
                           binary ? " 'binary_data_size'" : "",
                           shm ? " 'shared_memory_region'" : "",
                           (int) d->name.len, d->name.data);
    }

    int64_t *dims = inf_arena_alloc(d->arena, shape_size + sizeof(*dims));
    if (dims == NULL) {
        return inf_err_nomem();
    }

    memcpy(dims, d->shape->dims, shape_size);
    *out = (inf_infer_input_t) {
        .name = tensor->name,
        .datatype = tensor->datatype,
        .dim_count = d->shape->count,
        .shape = dims,
        .element_count = tensor->element_count
    };

    if (binary) {
        out->source = INF_SOURCE_BINARY;
        out->byte_size = tensor->binary_size;
        return NULL;
    }

    if (shm) {
        out->source = INF_SOURCE_SHM;
        out->byte_size = tensor->shm_byte_size;
        out->shm_region = tensor->shm_region;
        out->shm_offset = tensor->shm_offset;
        return NULL;
    }

    out->source = INF_SOURCE_JSON;
    return check_data(d, out);
}

/* Checks kind and number of the leaves, and sets the tensor's size. */
static inf_err_t *
check_data(const inf_description_t *d, inf_infer_input_t *out)
{
    const inf_member_value_t *data = &d->values[SLOT_DATA];
    const inf_json_tally_t *tally = &d->leaves;

    if (out->element_count == 0) {
        return NULL;
    }

    if (!inf_description_has(d, SLOT_DATA)) {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           ONE_SOURCE "no field is set (input '%.*s')",
                           (int) d->name.len, d->name.data);
    }

    if (data->kind != INF_JSON_ARRAY_BEGIN) {
        return not_a(d, "data", "array");
    }

    if (out->datatype == INF_TYPE_FP16 || out->datatype == INF_TYPE_BF16) {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "receiving %s data via JSON is not supported. "
                           "Please use the binary data format for input %.*s",
                           inf_datatype_name(out->datatype),
                           (int) d->name.len, d->name.data);
    }

    if ((tally->kinds & ~leaf_kind(out->datatype)) != 0) {
        return inf_err_new(INF_ERR_INVALID_ARG, "%s (input '%.*s')",
                           inf_data_wrong_kind(out->datatype),
                           (int) d->name.len, d->name.data);
    }

    inf_err_t *err = check_count(d, out);
    if (err != NULL) {
        return err;
    }

    out->byte_size = out->datatype == INF_TYPE_BYTES
                     ? 4 * tally->count + tally->string_bytes
                     : tally->count * inf_datatype_size(out->datatype);
    if (tally->count > INT32_MAX) {
        return complain(d, "data", "more than 2147483647 elements");
    }

    if (out->byte_size > d->max_bytes) {
        return complain(d, "data", "the tensor is larger than JSON may be; "
                        INF_INFER_MAX_JSON_SETTING " sets another limit");
    }

    out->json_offset = data->offset;
    out->json_length = data->length;
    return NULL;
}

/* The kind of the leaves of a datatype's data, INF_JSON_KIND_*. */
static uint32_t
leaf_kind(uint32_t datatype)
{
    return datatype == INF_TYPE_BYTES ? INF_JSON_KIND_STRING
           : datatype == INF_TYPE_BOOL ? INF_JSON_KIND_BOOL
           : INF_JSON_KIND_NUMBER;
}

static inf_err_t *
check_count(const inf_description_t *d, const inf_infer_input_t *in)
{
    if (d->leaves.count > in->element_count) {
        return complain(d, "data",
                        "Shape does not match true shape of 'data' field");
    }

    if (d->leaves.count < in->element_count) {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "Failed to parse 'data' field: shape does not "
                           "match true shape (input '%.*s' has %llu of %llu "
                           "elements)",
                           (int) d->name.len, d->name.data,
                           (unsigned long long) d->leaves.count,
                           (unsigned long long) in->element_count);
    }

    return NULL;
}

inf_err_t *
inf_description_output(const inf_description_t *d, inf_infer_output_t *out)
{
    const inf_tensor_t *tensor = d->target;
    uint64_t k = tensor->classification;

    *out = (inf_infer_output_t) {
        .name = tensor->name,
        .binary = tensor->binary,

        /* no tensor has more elements */
        .classification = (uint32_t) (k < UINT32_MAX ? k : UINT32_MAX),
        .shm_region = tensor->shm_region,
        .shm_offset = tensor->shm_offset,
        .shm_byte_size = tensor->shm_byte_size
    };

    if (inf_description_has(d, SLOT_REGION)
        && (out->binary || out->classification != 0))
    {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "Output can't set both 'shared_memory_region' and "
                           "'%s' (output '%.*s')",
                           out->binary ? "binary_data" : "classification",
                           (int) out->name.len, out->name.data);
    }

    return NULL;
}

/* ---- errors ---- */

static inf_err_t *
complain(const inf_description_t *d, const char *name, const char *why)
{
    const char *what = d->object->what;

    if (what == NULL) {
        return inf_err_new(INF_ERR_INVALID_ARG, "Unable to parse '%s': %s",
                           name, why);
    }

    if (d->name.data == NULL) {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "Unable to parse '%s': %s (%s %u)",
                           name, why, what, d->index);
    }

    return inf_err_new(INF_ERR_INVALID_ARG,
                       "Unable to parse '%s': %s (%s '%.*s')", name, why,
                       what, (int) d->name.len, d->name.data);
}

static inf_err_t *
not_a(const inf_description_t *d, const char *name, const char *kind)
{
    char why[96];

    snprintf(why, sizeof(why), "attempt to access JSON non-%s as %s", kind,
             kind);
    return complain(d, name, why);
}

/* Triton's text, extended by the bounds. */
static inf_err_t *
not_in_range(const inf_description_t *d, const char *name, uint64_t most)
{
    char why[160];

    snprintf(why, sizeof(why), "attempt to access JSON non-unsigned-integer as"
             " unsigned-integer: it is a whole number from 0 to %llu",
             (unsigned long long) most);
    return complain(d, name, why);
}

static inf_err_t *
missing(const inf_description_t *d, const char *name)
{
    char why[96];

    snprintf(why, sizeof(why),
             "attempt to access non-existing object member '%s'", name);
    return complain(d, name, why);
}
