#include "core/model/generate_request.h"

#include <math.h>
#include <string.h>

#include "core/include/channel.h"
#include "core/proto/generate_members.h"
#include "core/proto/infer_data.h"
#include "core/proto/infer_members.h"
#include "core/proto/infer_request.h"
#include "core/proto/number.h"

static inf_err_t *set_id(inf_request_t *req,
    const inf_generate_members_t *list);
static inf_err_t *add_members(const inf_model_t *model, inf_request_t *req,
    const inf_generate_members_t *list, uint64_t max_bytes);
static inf_err_t *repeated(const inf_generate_member_t *m,
    const inf_config_tensor_t *t);
static inf_err_t *add_tensor(const inf_model_t *model, inf_request_t *req,
    const inf_generate_members_t *list, const inf_generate_member_t *m,
    const inf_config_tensor_t *t, uint64_t max_bytes, uint64_t *total);
static inf_err_t *check_tensor(const inf_generate_member_t *m,
    const inf_config_tensor_t *t);
static uint64_t tensor_size(const inf_generate_member_t *m,
    const inf_config_tensor_t *t);
static inf_err_t *find_shape(const inf_model_t *model,
    const inf_generate_member_t *m, const inf_config_tensor_t *t,
    int64_t *shape, uint32_t *dims);
static inf_err_t *decode(inf_request_t *req,
    const inf_generate_members_t *list, const inf_generate_member_t *m,
    const inf_config_tensor_t *t, inf_input_t *input, uint64_t size);
static inf_err_t *add_parameter(inf_request_t *req,
    const inf_generate_members_t *list, const inf_generate_member_t *m);

inf_err_t *
inf_generate_request(const inf_model_t *model, inf_request_t *req,
    inf_slice_t json, uint64_t max_bytes)
{
    inf_generate_members_t list;
    inf_arena_t scratch;

    inf_arena_init(&scratch);

    inf_err_t *err = inf_generate_members_read(&list, json, &scratch);
    if (err == NULL && list.id != NULL) {
        err = set_id(req, &list);
    }
    if (err == NULL) {
        err = add_members(model, req, &list, max_bytes);
    }

    inf_arena_fini(&scratch);
    return err;
}

static inf_err_t *
set_id(inf_request_t *req, const inf_generate_members_t *list)
{
    inf_slice_t text;

    if (list->id->kind != INF_JSON_STRING) {
        return inf_err_new(INF_ERR_INVALID_ARG, "Unable to parse 'id': attempt"
            " to access JSON non-string as string");
    }

    inf_err_t *err = inf_generate_member_text(list, list->id, &req->arena,
        &text);
    if (err == NULL && memchr(text.data, '\0', text.len) != NULL) {
        err = inf_err_new(INF_ERR_INVALID_ARG, "Unable to parse 'id': it holds"
            " a NUL character");
    }
    if (err == NULL) {
        req->id = text.data;
    }

    return err;
}

/* Adds inputs and parameters; the id is a member, too. */
static inf_err_t *
add_members(const inf_model_t *model, inf_request_t *req,
    const inf_generate_members_t *list, uint64_t max_bytes)
{
    uint64_t total = 0;

    if (list->has_parameters && inf_config_tensors_find_input(model->tensors,
            INF_SLICE(INF_GENERATE_PARAMETERS)) != NULL)
    {
        return inf_err_new(INF_ERR_INVALID_ARG, "input '%s' of model '%s' can"
            " not be set by generate: the member of that name holds the"
            " request's parameters", INF_GENERATE_PARAMETERS, model->name);
    }

    for (uint32_t i = 0; i < list->count; i++) {
        const inf_generate_member_t *m = &list->members[i];
        const inf_config_tensor_t *t = inf_config_tensors_find_input(
            model->tensors, m->name);

        inf_err_t *err = m->repeated ? repeated(m, t)
            : t != NULL ? add_tensor(model, req, list, m, t, max_bytes,
                &total)
            : add_parameter(req, list, m);
        if (err != NULL) {
            return !m->inner ? err : inf_err_add(err, "Converting keyword:"
                " '%s'", INF_GENERATE_PARAMETERS);
        }
    }

    return NULL;
}

/* A repeated input is reported as Triton reports it. */
static inf_err_t *
repeated(const inf_generate_member_t *m, const inf_config_tensor_t *t)
{
    return t == NULL ? inf_generate_member_repeated(m)
        : inf_err_new(INF_ERR_INVALID_ARG, "input '%s' already exists in"
            " request", t->name.data);
}

/* ---- tensors ---- */

static inf_err_t *
add_tensor(const inf_model_t *model, inf_request_t *req,
    const inf_generate_members_t *list, const inf_generate_member_t *m,
    const inf_config_tensor_t *t, uint64_t max_bytes, uint64_t *total)
{
    int64_t shape[INF_MAX_DIMS + 1];
    uint32_t dims;

    inf_err_t *err = check_tensor(m, t);
    if (err == NULL) {
        err = find_shape(model, m, t, shape, &dims);
    }
    if (err != NULL) {
        return err;
    }

    uint64_t size = tensor_size(m, t);
    if (size > max_bytes - *total) {
        return inf_err_new(INF_ERR_INVALID_ARG, "the request's tensors take"
            " more than the limit of %llu bytes with input '%s'; "
            INF_INFER_MAX_JSON_SETTING " sets another limit",
            (unsigned long long) max_bytes, t->name.data);
    }
    *total += size;

    inf_input_t *input = inf_request_add_input(req, t->name.data, t->name.len,
        (inf_datatype_t) t->datatype, shape, dims);
    if (input == NULL) {
        return inf_err_nomem();
    }

    return size > 0 ? decode(req, list, m, t, input, size) : NULL;
}

/* Checks that the member is a scalar or an array of scalars suitable for the
   datatype, perhaps in arrays of arrays; decoding finds invalid values. */
static inf_err_t *
check_tensor(const inf_generate_member_t *m, const inf_config_tensor_t *t)
{
    uint32_t wanted = INF_JSON_KIND_NUMBER;

    if (t->datatype == INF_TYPE_FP16 || t->datatype == INF_TYPE_BF16) {
        return inf_err_new(INF_ERR_INVALID_ARG, "receiving %s data via JSON is"
            " not supported. Please use the binary data format for input %s",
            inf_datatype_name(t->datatype), t->name.data);
    }

    if (t->datatype == INF_TYPE_BYTES) {
        wanted = INF_JSON_KIND_STRING;
    } else if (t->datatype == INF_TYPE_BOOL) {
        wanted = INF_JSON_KIND_BOOL;
    }

    if (m->kind == INF_JSON_OBJECT_BEGIN || (m->tally.kinds & ~wanted) != 0) {
        return inf_err_new(INF_ERR_INVALID_ARG, "%s (input '%s' is one %s or"
            " an array of them)", inf_data_wrong_kind(t->datatype),
            t->name.data, inf_datatype_name(t->datatype));
    }

    return NULL;
}

/* The tensor's size: at most 4 times the bytes of its JSON. */
static uint64_t
tensor_size(const inf_generate_member_t *m, const inf_config_tensor_t *t)
{
    return t->datatype == INF_TYPE_BYTES
        ? m->tally.count * sizeof(uint32_t) + m->tally.string_bytes
        : m->tally.count * inf_datatype_size(t->datatype);
}

/*
 * Finds the shape from the number of elements and the model's dims.  The
 * innermost variable dimension (perhaps the batch) takes what the fixed ones
 * leave, which may be 0; other variable ones are 1.
 */
static inf_err_t *
find_shape(const inf_model_t *model, const inf_generate_member_t *m,
    const inf_config_tensor_t *t, int64_t *shape, uint32_t *dims)
{
    uint64_t left = m->tally.count;
    uint32_t n = 0;
    bool fits = true;

    *dims = 0;
    if (t->dim_count > INF_MAX_DIMS) {
        return inf_err_new(INF_ERR_UNSUPPORTED, "input '%s' has too many"
            " dimensions for generate", t->name.data);
    }

    if (inf_config_tensors_max_batch_size(model->tensors) > 0) {
        shape[n++] = -1;
    }
    for (uint32_t i = 0; i < t->dim_count; i++) {
        shape[n++] = t->dims[i];
    }

    for (uint32_t i = 0; i < n; i++) {
        if (shape[i] > 0) {
            fits = fits && left % (uint64_t) shape[i] == 0;
            left /= (uint64_t) shape[i];
        }
    }
    for (uint32_t i = n; i-- > 0; ) {
        if (shape[i] < 0) {
            shape[i] = (int64_t) left;
            left = 1;
        }
    }

    if (!fits || left != 1) {
        return inf_err_new(INF_ERR_INVALID_ARG, "The schema can not convert"
            " input '%s' to tensor with proper shape", t->name.data);
    }

    *dims = n;
    return NULL;
}

/* Decodes the elements into memory padded to INF_ARENA_ALIGN bytes, as in the
   request arena, because a backend may read to the end. */
static inf_err_t *
decode(inf_request_t *req, const inf_generate_members_t *list,
    const inf_generate_member_t *m, const inf_config_tensor_t *t,
    inf_input_t *input, uint64_t size)
{
    const inf_infer_input_t source = {
        .name = t->name,
        .datatype = t->datatype,
        .element_count = m->tally.count,
        .byte_size = size,
        .json_offset = m->offset,
        .json_length = m->length
    };
    inf_data_decoder_t decoder;
    inf_codec_t rc;
    inf_err_t *err = NULL;

    char *room = inf_arena_alloc(&req->arena, (size_t) size
        + 2 * INF_ARENA_ALIGN);
    if (room == NULL) {
        return inf_err_nomem();
    }

    char *data = room + (INF_ARENA_ALIGN - (uintptr_t) room % INF_ARENA_ALIGN);
    memset(data + size, 0, INF_ARENA_ALIGN - size % INF_ARENA_ALIGN);

    inf_data_decoder_init(&decoder, &source);
    do {
        rc = inf_data_decoder_run(&decoder, list->json.data, data,
            (size_t) m->length, &err);
    } while (rc == INF_CODEC_AGAIN);

    return rc == INF_CODEC_ERROR ? err : inf_request_add_data(req, input,
        &(inf_buffer_t) { .base = data, .size = size });
}

/* ---- parameters ---- */

static inf_err_t *
add_parameter(inf_request_t *req, const inf_generate_members_t *list,
    const inf_generate_member_t *m)
{
    const char *text = list->json.data + m->offset;
    inf_slice_t string = { NULL, 0 };
    inf_parameter_type_t type = INF_PARAMETER_DOUBLE;
    inf_number_t number;
    int64_t integer = 0;
    double real = 0;

    switch (m->kind) {
    case INF_JSON_STRING:
        type = INF_PARAMETER_STRING;
        inf_err_t *err = inf_generate_member_text(list, m, &req->arena,
            &string);
        if (err != NULL) {
            return err;
        }
        break;
    case INF_JSON_TRUE:
    case INF_JSON_FALSE:
        type = INF_PARAMETER_BOOL;
        break;
    case INF_JSON_NUMBER:
        (void) inf_number_read(text, text + m->length, &number);
        real = inf_number_double(&number);
        if (inf_number_int64(&number, &integer)) {
            type = INF_PARAMETER_INT;
        } else if (isinf(real)) {
            return inf_err_new(INF_ERR_INVALID_ARG, "parameter '%s': the"
                " number is out of range", m->name.data);
        }
        break;
    case INF_JSON_NONFINITE:
        (void) inf_number_read_nonfinite(text, text + m->length, &real);
        break;
    default:
        return inf_err_new(INF_ERR_INVALID_ARG, INF_PARAMETER_WRONG_KIND,
            (int) m->name.len, m->name.data);
    }

    inf_parameter_t *p = inf_parameter_add(&req->parameters, &req->arena,
        m->name.data, m->name.len, type);
    if (p == NULL) {
        return inf_err_nomem();
    }

    p->text = string.data;
    p->text_len = string.len;
    p->i = integer;
    p->b = m->kind == INF_JSON_TRUE;
    p->d = real;
    return NULL;
}
