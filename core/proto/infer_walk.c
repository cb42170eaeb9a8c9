/*
 * infer_walk.c - see infer_walk.h.
 */

#include <stdio.h>
#include <string.h>

#include "core/proto/infer_walk.h"

#define RESERVED_PREFIX "triton_"

/* The three ways to give an input's bytes; exactly one is allowed. */
#define SOURCES "'data', 'binary_data_size' in 'parameters', " \
                "'shared_memory_region' in 'parameters'"

/* A member to read: from where, and of which tensor for the error's sake. */
typedef struct {
    const inf_walk_t *walk;
    json_t           *object;   /* may be NULL                               */
    const char       *what;     /* "input", "output", NULL: the top level    */
    inf_slice_t       tensor;   /* its name, once known                      */
} place_t;

typedef struct {
    inf_slice_t region;
    uint64_t    offset;
    uint64_t    byte_size;
    bool        present;
} shm_t;

static inf_err_t *get_text(const place_t *at, const char *name, bool *present,
    inf_slice_t *out);
static inf_err_t *get_uint(const place_t *at, const char *name, bool *present,
    uint64_t *out);
static inf_err_t *get_bool(const place_t *at, const char *name, bool *out);
static inf_err_t *get_parameters(const place_t *at,
    json_t **out);
static inf_err_t *get_shm(const place_t *at, shm_t *out);
static inf_err_t *complain(const place_t *at, const char *name,
    const char *why);
static inf_err_t *not_a(const place_t *at, const char *name, const char *kind);
static inf_err_t *not_in_range(const place_t *at, const char *name,
    uint64_t most);
static inf_err_t *missing(const place_t *at, const char *name);
static bool value_uint(const inf_walk_t *w, json_t *v,
    uint64_t *out);
static const inf_big_number_t *value_big(const inf_walk_t *w,
    json_t *v);
static inf_err_t *copy_text(const inf_walk_t *w, inf_slice_t from,
    inf_slice_t *to);
static inf_err_t *walk_datatype(const place_t *at, inf_infer_input_t *out);
static inf_err_t *walk_shape(const place_t *at, inf_infer_input_t *out);
static inf_err_t *choose_source(const place_t *at,
    const inf_infer_span_t *span, const shm_t *shm, bool binary,
    uint64_t binary_size, inf_infer_input_t *out);
static inf_err_t *check_data(const place_t *at, const inf_infer_span_t *span,
    inf_infer_input_t *out);
static inf_err_t *walk_parameter(const place_t *at, const char *name,
    json_t *v, inf_infer_request_t *out,
    inf_infer_parameter_t *custom, bool *is_custom);
static inf_err_t *walk_sequence_id(const place_t *at,
    json_t *v, inf_infer_request_t *out);
static inf_err_t *walk_custom(const place_t *at, const char *name, json_t *v,
    inf_infer_parameter_t *out);

inf_err_t *
inf_walk_input(const inf_walk_t *w, const inf_infer_span_t *span,
    inf_infer_input_t *out)
{
    place_t at = { w, w->root, "input", { NULL, 0 } };
    place_t parameters = at;
    uint64_t binary_size = 0;
    bool present;
    bool binary;
    shm_t shm;
    inf_err_t *err;

    memset(out, 0, sizeof(*out));

    err = get_text(&at, "name", &present, &out->name);
    if (err != NULL || !present) {
        return err != NULL ? err : missing(&at, "name");
    }

    at.tensor = out->name;
    err = walk_datatype(&at, out);
    if (err != NULL) {
        return err;
    }

    err = walk_shape(&at, out);
    if (err != NULL) {
        return err;
    }

    parameters.tensor = out->name;
    err = get_parameters(&at, &parameters.object);
    if (err != NULL) {
        return err;
    }

    err = get_uint(&parameters, "binary_data_size", &binary, &binary_size);
    if (err != NULL) {
        return err;
    }

    err = get_shm(&parameters, &shm);
    if (err != NULL) {
        return err;
    }

    return choose_source(&at, span, &shm, binary, binary_size, out);
}

static inf_err_t *
walk_datatype(const place_t *at, inf_infer_input_t *out)
{
    inf_slice_t text;
    bool present;
    inf_err_t *err = get_text(at, "datatype", &present, &text);

    if (err != NULL || !present) {
        return err != NULL ? err : missing(at, "datatype");
    }

    out->datatype = inf_datatype_parse(text.data, text.len);
    if (out->datatype == INF_TYPE_INVALID) {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "invalid datatype for input %.*s",
                           (int) at->tensor.len, at->tensor.data);
    }

    return NULL;
}

static inf_err_t *
walk_shape(const place_t *at, inf_infer_input_t *out)
{
    json_t *v = json_object_get(at->object, "shape");

    if (v == NULL) {
        return missing(at, "shape");
    }

    if (!json_is_array(v)) {
        return not_a(at, "shape", "array");
    }

    size_t count = json_array_size(v);
    if (count > INF_MAX_DIMS) {
        return complain(at, "shape", "more than 64 dimensions");
    }

    int64_t *shape = inf_arena_alloc(at->walk->arena,
                                     (count + 1) * sizeof(*shape));
    if (shape == NULL) {
        return inf_err_nomem();
    }

    for (size_t i = 0; i < count; i++) {
        uint64_t dim;
        if (!value_uint(at->walk, json_array_get(v, i), &dim)) {
            return not_in_range(at, "shape", INT64_MAX);
        }

        if (dim > INT64_MAX) {
            return complain(at, "shape", "a dimension exceeds int64");
        }

        shape[i] = (int64_t) dim;
    }

    if (!inf_walk_elements(out->datatype, shape, count, &out->element_count)) {
        return complain(at, "shape", "the number of elements overflows");
    }

    out->dim_count = (uint32_t) count;
    out->shape = shape;
    return NULL;
}

bool
inf_walk_elements(uint32_t datatype, const int64_t *shape, size_t count,
    uint64_t *elements)
{
    uint64_t product = count != 0;
    bool overflow = false;
    bool empty = false;

    for (size_t i = 0; i < count; i++) {
        empty |= shape[i] == 0;
        overflow |= __builtin_mul_overflow(product, (uint64_t) shape[i],
                                           &product);
    }

    uint64_t bytes;
    overflow |= __builtin_mul_overflow(product, inf_datatype_size(datatype),
                                       &bytes);

    *elements = empty ? 0 : product;
    return empty || (!overflow && product <= INT64_MAX && bytes <= INT64_MAX);
}

inf_err_t *
inf_walk_source(const inf_walk_t *w, const inf_infer_span_t *span, bool binary,
    uint64_t binary_size, inf_infer_input_t *out)
{
    static const shm_t none;
    place_t at = { w, NULL, "input", out->name };

    return choose_source(&at, span, &none, binary, binary_size, out);
}

static inf_err_t *
choose_source(const place_t *at, const inf_infer_span_t *span,
    const shm_t *shm, bool binary, uint64_t binary_size,
    inf_infer_input_t *out)
{
    int given = span->present + binary + shm->present;

    if (given > 1) {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "Input must set only one of the following fields: "
                           SOURCES ". But input '%.*s' sets %d of them.",
                           (int) at->tensor.len, at->tensor.data, given);
    }

    if (binary) {
        out->source = INF_SOURCE_BINARY;
        out->byte_size = binary_size;
        return NULL;
    }

    if (shm->present) {
        out->source = INF_SOURCE_SHM;
        out->byte_size = shm->byte_size;
        out->shm_region = shm->region;
        out->shm_offset = shm->offset;
        return NULL;
    }

    out->source = INF_SOURCE_JSON;
    return check_data(at, span, out);
}

/* Leaves' kinds and number, and with them the tensor's size. */
static inf_err_t *
check_data(const place_t *at, const inf_infer_span_t *span,
    inf_infer_input_t *out)
{
    const inf_json_tally_t *tally = &span->tally;
    const char *datatype = inf_datatype_name(out->datatype);
    uint32_t wanted = INF_JSON_KIND_NUMBER;

    if (out->element_count == 0) {
        return NULL;
    }

    if (!span->present) {
        return missing(at, "data");
    }

    if (!span->array) {
        return not_a(at, "data", "array");
    }

    if (out->datatype == INF_TYPE_FP16 || out->datatype == INF_TYPE_BF16) {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "receiving %s data via JSON is not supported. "
                           "Please use the binary data format for input %.*s",
                           datatype, (int) at->tensor.len, at->tensor.data);
    }

    if (out->datatype == INF_TYPE_BYTES) {
        wanted = INF_JSON_KIND_STRING;
    } else if (out->datatype == INF_TYPE_BOOL) {
        wanted = INF_JSON_KIND_BOOL;
    }

    if ((tally->kinds & ~wanted) != 0) {
        return not_a(at, "data", wanted == INF_JSON_KIND_STRING ? "string"
                                 : wanted == INF_JSON_KIND_BOOL ? "boolean"
                                 : "number");
    }

    if (tally->count > out->element_count) {
        return complain(at, "data",
                        "Shape does not match true shape of 'data' field");
    }

    if (tally->count < out->element_count) {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "Failed to parse 'data' field: shape does not "
                           "match true shape (input '%.*s' has %llu of %llu "
                           "elements)",
                           (int) at->tensor.len, at->tensor.data,
                           (unsigned long long) tally->count,
                           (unsigned long long) out->element_count);
    }

    out->byte_size = out->datatype == INF_TYPE_BYTES
                     ? 4 * tally->count + tally->string_bytes
                     : tally->count * inf_datatype_size(out->datatype);
    if (tally->count > INT32_MAX || out->byte_size > at->walk->max_bytes) {
        return complain(at, "data", "the tensor is larger than JSON may be");
    }

    out->json_offset = span->offset;
    out->json_length = span->length;
    return NULL;
}

inf_err_t *
inf_walk_output(const inf_walk_t *w, inf_infer_output_t *out)
{
    place_t at = { w, w->root, "output", { NULL, 0 } };
    place_t parameters = at;
    uint64_t k = 0;
    bool present;
    shm_t shm;
    inf_err_t *err;

    memset(out, 0, sizeof(*out));

    err = get_text(&at, "name", &present, &out->name);
    if (err != NULL || !present) {
        return err != NULL ? err : missing(&at, "name");
    }

    at.tensor = out->name;
    parameters.tensor = out->name;
    err = get_parameters(&at, &parameters.object);
    if (err != NULL) {
        return err;
    }

    err = get_bool(&parameters, "binary_data", &out->binary);
    if (err != NULL) {
        return err;
    }

    err = get_uint(&parameters, "classification", &present, &k);
    if (err != NULL) {
        return err;
    }

    out->classification = inf_walk_classification(k);

    err = get_shm(&parameters, &shm);
    if (err != NULL) {
        return err;
    }

    if (!shm.present) {
        return NULL;
    }

    if (out->binary || out->classification != 0) {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "output '%.*s' cannot set both "
                           "'shared_memory_region' and '%s'",
                           (int) out->name.len, out->name.data,
                           out->binary ? "binary_data" : "classification");
    }

    out->shm_region = shm.region;
    out->shm_offset = shm.offset;
    out->shm_byte_size = shm.byte_size;
    return NULL;
}

inf_err_t *
inf_walk_top(const inf_walk_t *w, inf_infer_request_t *out)
{
    place_t at = { w, w->root, NULL, { NULL, 0 } };
    place_t parameters = at;
    bool present;
    inf_err_t *err;

    err = get_text(&at, "id", &present, &out->id);
    if (err != NULL) {
        return err;
    }

    err = get_parameters(&at, &parameters.object);
    if (err != NULL || parameters.object == NULL) {
        return err;
    }

    size_t count = json_object_size(parameters.object);
    inf_infer_parameter_t *table = inf_arena_calloc(w->arena, count + 1,
                                                    sizeof(*table));
    if (table == NULL) {
        return inf_err_nomem();
    }

    out->parameters = table;

    const char *name;
    json_t *v;

    json_object_foreach(parameters.object, name, v) {
        bool custom = false;
        err = walk_parameter(&parameters, name, v, out,
                             &table[out->parameter_count], &custom);
        if (err != NULL) {
            return err;
        }

        out->parameter_count += custom;
    }

    return NULL;
}

uint32_t
inf_walk_classification(uint64_t k)
{
    /* there are never more elements than this */
    return (uint32_t) (k < UINT32_MAX ? k : UINT32_MAX);
}

/* The reserved keys, by their first user's names. */
static inf_err_t *
walk_parameter(const place_t *at, const char *name, json_t *v,
    inf_infer_request_t *out, inf_infer_parameter_t *custom, bool *is_custom)
{
    bool present;
    bool flag;
    inf_err_t *err;

    if (strcmp(name, "sequence_id") == 0) {
        return walk_sequence_id(at, v, out);
    }

    if (strcmp(name, "sequence_start") == 0
        || strcmp(name, "sequence_end") == 0)
    {
        err = get_bool(at, name, &flag);
        if (err == NULL && flag) {
            out->flags |= name[9] == 's' ? INF_REQUEST_SEQUENCE_START
                                         : INF_REQUEST_SEQUENCE_END;
        }

        return err;
    }

    if (strcmp(name, "priority") == 0) {
        return get_uint(at, name, &present, &out->priority);
    }

    if (strcmp(name, "timeout") == 0) {
        return get_uint(at, name, &present, &out->timeout_us);
    }

    if (strcmp(name, "binary_data_output") == 0) {
        return get_bool(at, name, &out->binary_data_output);
    }

    if (strncmp(name, RESERVED_PREFIX, sizeof(RESERVED_PREFIX) - 1) == 0) {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "parameter keys starting with 'triton_' are "
                           "reserved for Triton usage and should not be "
                           "specified.");
    }

    *is_custom = true;
    return walk_custom(at, name, v, custom);
}

static inf_err_t *
walk_sequence_id(const place_t *at, json_t *v,
    inf_infer_request_t *out)
{
    if (!json_is_string(v)) {
        if (value_uint(at->walk, v, &out->correlation_id)) {
            return NULL;
        }

        return not_in_range(at, "sequence_id", UINT64_MAX);
    }

    bool present;
    inf_err_t *err = get_text(at, "sequence_id", &present,
                              &out->correlation_text);
    if (err != NULL) {
        return err;
    }

    if (out->correlation_text.len > INF_INFER_MAX_CORRELATION) {
        return inf_err_new(INF_ERR_UNSUPPORTED,
                           "string correlation ID must not be longer than "
                           "%u bytes, got %zu", INF_INFER_MAX_CORRELATION,
                           out->correlation_text.len);
    }

    if (out->correlation_text.len != 0) {
        out->flags |= INF_REQUEST_CORRELATION_STR;
    }

    return NULL;
}

static inf_err_t *
walk_custom(const place_t *at, const char *name, json_t *v,
    inf_infer_parameter_t *out)
{
    const inf_big_number_t *big;
    bool present;
    inf_err_t *err = copy_text(at->walk, inf_slice_str(name), &out->name);

    if (err != NULL) {
        return err;
    }

    switch (json_typeof(v)) {

    case JSON_STRING:
        out->type = INF_PARAMETER_STRING;
        return get_text(at, name, &present, &out->text);

    case JSON_INTEGER:
        out->type = INF_PARAMETER_INT;
        out->integer = json_integer_value(v);
        return NULL;

    case JSON_TRUE:
    case JSON_FALSE:
        out->type = INF_PARAMETER_BOOL;
        out->integer = json_is_true(v);
        return NULL;

    case JSON_REAL:
        out->type = INF_PARAMETER_DOUBLE;
        out->real = json_real_value(v);
        return NULL;

    case JSON_ARRAY:
        big = value_big(at->walk, v);
        if (big != NULL) {
            out->type = INF_PARAMETER_DOUBLE;
            out->real = big->real;
            return NULL;
        }

        break;

    case JSON_NULL:
    case JSON_OBJECT:
        break;
    }

    return inf_err_new(INF_ERR_INVALID_ARG,
                       "parameter '%s' has an invalid type. It should be a "
                       "string, an integer, a boolean or a double",
                       name);
}

/* ---- members ---- */

/* *out: a NUL-terminated copy in the arena. */
static inf_err_t *
get_text(const place_t *at, const char *name, bool *present, inf_slice_t *out)
{
    json_t *v = NULL;

    *out = inf_slice(NULL, 0);
    if (at->object != NULL) {
        v = json_object_get(at->object, name);
    }

    *present = v != NULL;
    if (v == NULL) {
        return NULL;
    }

    if (!json_is_string(v)) {
        return not_a(at, name, "string");
    }

    inf_slice_t text = inf_slice(json_string_value(v),
                                 json_string_length(v));
    if (memchr(text.data, '\0', text.len) != NULL) {
        return complain(at, name, "the text contains a NUL character");
    }

    return copy_text(at->walk, text, out);
}

static inf_err_t *
get_uint(const place_t *at, const char *name, bool *present, uint64_t *out)
{
    json_t *v = NULL;

    *out = 0;
    if (at->object != NULL) {
        v = json_object_get(at->object, name);
    }

    *present = v != NULL;
    if (v == NULL || value_uint(at->walk, v, out)) {
        return NULL;
    }

    return not_in_range(at, name, UINT64_MAX);
}

/* *out stays as it is when the member is not there. */
static inf_err_t *
get_bool(const place_t *at, const char *name, bool *out)
{
    json_t *v = NULL;

    if (at->object != NULL) {
        v = json_object_get(at->object, name);
    }

    if (v == NULL) {
        return NULL;
    }

    if (!json_is_boolean(v)) {
        return not_a(at, name, "boolean");
    }

    *out = json_is_true(v);
    return NULL;
}

/* *out: NULL when there are none. */
static inf_err_t *
get_parameters(const place_t *at, json_t **out)
{
    json_t *v = json_object_get(at->object,
                                                        "parameters");

    *out = v;
    if (v != NULL && !json_is_object(v)) {
        return not_a(at, "parameters", "object");
    }

    return NULL;
}

/* Offset and size mean nothing without a region. */
static inf_err_t *
get_shm(const place_t *at, shm_t *out)
{
    bool present;
    inf_err_t *err;

    memset(out, 0, sizeof(*out));

    err = get_text(at, "shared_memory_region", &out->present, &out->region);
    if (err != NULL || !out->present) {
        return err;
    }

    if (out->region.len == 0) {
        return complain(at, "shared_memory_region", "the name is empty");
    }

    err = get_uint(at, "shared_memory_byte_size", &present, &out->byte_size);
    if (err != NULL) {
        return err;
    }

    return get_uint(at, "shared_memory_offset", &present, &out->offset);
}

static bool
value_uint(const inf_walk_t *w, json_t *v, uint64_t *out)
{
    if (json_is_integer(v)) {
        int64_t i = json_integer_value(v);
        *out = (uint64_t) i;
        return i >= 0;
    }

    const inf_big_number_t *big = value_big(w, v);
    if (big == NULL || !big->fits) {
        return false;
    }

    *out = big->integer;
    return true;
}

static const inf_big_number_t *
value_big(const inf_walk_t *w, json_t *v)
{
    if (!json_is_array(v)
        || json_array_size(v) != 1)
    {
        return NULL;
    }

    json_t *index = json_array_get(v, 0);
    if (!json_is_integer(index)
        || (uint64_t) json_integer_value(index) >= w->big_count)
    {
        return NULL;
    }

    return &w->bigs[json_integer_value(index)];
}

static inf_err_t *
copy_text(const inf_walk_t *w, inf_slice_t from, inf_slice_t *to)
{
    to->data = inf_arena_strdup(w->arena, from.data, from.len);
    to->len = from.len;
    return to->data != NULL ? NULL : inf_err_nomem();
}

/* ---- complaints ---- */

static inf_err_t *
complain(const place_t *at, const char *name, const char *why)
{
    if (at->what == NULL) {
        return inf_err_new(INF_ERR_INVALID_ARG, "Unable to parse '%s': %s",
                           name, why);
    }

    if (at->tensor.data == NULL) {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "Unable to parse '%s': %s (%s %u)",
                           name, why, at->what, at->walk->index);
    }

    return inf_err_new(INF_ERR_INVALID_ARG,
                       "Unable to parse '%s': %s (%s '%.*s')", name, why,
                       at->what, (int) at->tensor.len, at->tensor.data);
}

static inf_err_t *
not_a(const place_t *at, const char *name, const char *kind)
{
    char why[96];

    snprintf(why, sizeof(why), "attempt to access JSON non-%s as %s", kind,
             kind);
    return complain(at, name, why);
}

/* What the original says, and what it leaves to the reader. */
static inf_err_t *
not_in_range(const place_t *at, const char *name, uint64_t most)
{
    char why[160];

    snprintf(why, sizeof(why), "attempt to access JSON non-unsigned-integer as"
             " unsigned-integer: it is a whole number from 0 to %llu",
             (unsigned long long) most);
    return complain(at, name, why);
}

static inf_err_t *
missing(const place_t *at, const char *name)
{
    char why[96];

    snprintf(why, sizeof(why),
             "attempt to access non-existing object member '%s'", name);
    return complain(at, name, why);
}
