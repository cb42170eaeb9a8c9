/*
 * infer_data.c - see infer_data.h.
 *
 * The reader has checked syntax, count and kinds of the text, so only numbers
 * that do not fit remain to be rejected.  Bounds are checked nevertheless:
 * writes to the destination are bounded by the count.
 */

#include <math.h>
#include <string.h>

#include "core/proto/infer_data.h"
#include "core/proto/infer_members.h"
#include "core/proto/json_string.h"
#include "core/proto/number.h"

static inf_err_t *decode_element(inf_data_decoder_t *d, const char *p,
    const char *end, char *out, const char **next);
static inf_err_t *decode_bool(inf_data_decoder_t *d, const char *p,
    const char *end, char *out, const char **next);
static inf_err_t *decode_real(inf_data_decoder_t *d, const char *p,
    const char *end, char *out, const char **next);
static inf_err_t *decode_integer(inf_data_decoder_t *d, const char *p,
    const char *end, char *out, const char **next);
static inf_err_t *decode_string(inf_data_decoder_t *d, const char *p,
    const char *stop, const char *end, char *dst, const char **next);
static inf_err_t *too_big(const inf_data_decoder_t *d);
static inf_err_t *wrong_kind(const inf_data_decoder_t *d);
static inf_err_t *wrong_count(const inf_data_decoder_t *d);

void
inf_data_decoder_init(inf_data_decoder_t *d, const inf_infer_input_t *input)
{
    memset(d, 0, sizeof(*d));
    d->input = input;
}

static bool
is_padding(char c)
{
    return c == ',' || c == ' ' || c == '\n' || c == '\r' || c == '\t'
           || c == '[' || c == ']';
}

inf_codec_t
inf_data_decoder_run(inf_data_decoder_t *d, const char *json, void *dst,
    size_t budget, inf_err_t **err)
{
    const inf_infer_input_t *in = d->input;
    const char *span = json + in->json_offset;
    const char *end = span + in->json_length;
    const char *p = span + d->pos;
    size_t left = (size_t) (end - p);
    const char *stop = p + (budget < left ? budget : left);
    inf_err_t *e = NULL;

    while (p < stop && e == NULL) {
        if (!d->in_string && is_padding(*p)) {
            p++;
        } else if (in->datatype == INF_TYPE_BYTES) {
            e = decode_string(d, p, stop, end, dst, &p);
        } else {
            e = decode_element(d, p, end, dst, &p);
        }
    }

    d->pos = (uint64_t) (p - span);

    if (e == NULL && p == end
        && (d->in_string || d->count != in->element_count
            || d->out != in->byte_size))
    {
        e = wrong_count(d);
    }

    if (e != NULL) {
        *err = e;
        return INF_CODEC_ERROR;
    }

    return p == end ? INF_CODEC_DONE : INF_CODEC_AGAIN;
}

static inf_err_t *
decode_element(inf_data_decoder_t *d, const char *p, const char *end,
    char *dst, const char **next)
{
    uint32_t size = inf_datatype_size(d->input->datatype);
    inf_err_t *err;

    if (d->count == d->input->element_count
        || d->input->byte_size - d->out < size)
    {
        return wrong_count(d);
    }

    switch (d->input->datatype) {
    case INF_TYPE_FP32:
    case INF_TYPE_FP64:
        err = decode_real(d, p, end, dst + d->out, next);
        break;
    case INF_TYPE_BOOL:
        err = decode_bool(d, p, end, dst + d->out, next);
        break;
    default:
        err = decode_integer(d, p, end, dst + d->out, next);
        break;
    }

    d->out += size;
    d->count++;
    return err;
}

static inf_err_t *
decode_bool(inf_data_decoder_t *d, const char *p, const char *end, char *out,
    const char **next)
{
    if (end - p >= 4 && memcmp(p, "true", 4) == 0) {
        *out = 1;
        *next = p + 4;
        return NULL;
    }

    if (end - p >= 5 && memcmp(p, "false", 5) == 0) {
        *out = 0;
        *next = p + 5;
        return NULL;
    }

    return wrong_kind(d);
}

static inf_err_t *
decode_real(inf_data_decoder_t *d, const char *p, const char *end, char *out,
    const char **next)
{
    inf_number_t n;
    double v;

    if (inf_number_read(p, end, &n) == 0) {
        size_t len = inf_number_read_nonfinite(p, end, &v);
        if (len == 0) {
            return wrong_kind(d);
        }

        *next = p + len;

        if (d->input->datatype == INF_TYPE_FP32) {
            float f = (float) v;
            memcpy(out, &f, sizeof(f));
        } else {
            memcpy(out, &v, sizeof(v));
        }

        return NULL;
    }

    *next = p + n.len;

    if (d->input->datatype == INF_TYPE_FP32) {
        /* infinite: beyond FP32, which is taken, or beyond any double */
        float f = inf_number_float(&n);
        memcpy(out, &f, sizeof(f));
        return isinf(f) && isinf(inf_number_double(&n)) ? too_big(d) : NULL;
    }

    v = inf_number_double(&n);
    memcpy(out, &v, sizeof(v));
    return isinf(v) ? too_big(d) : NULL;
}

static inf_err_t *
too_big(const inf_data_decoder_t *d)
{
    return inf_err_new(INF_ERR_INVALID_ARG, INF_INFER_PARSE_FAILED
                       "Number too big to be stored in double. (element %llu "
                       "of input '%.*s')", (unsigned long long) d->count,
                       (int) d->input->name.len, d->input->name.data);
}

/* The least and the greatest value of each integer type. */
static const struct {
    int64_t  min;
    uint64_t max;
} integer_ranges[INF_TYPE_COUNT] = {
    [INF_TYPE_UINT8]  = { 0, UINT8_MAX },
    [INF_TYPE_UINT16] = { 0, UINT16_MAX },
    [INF_TYPE_UINT32] = { 0, UINT32_MAX },
    [INF_TYPE_UINT64] = { 0, UINT64_MAX },
    [INF_TYPE_INT8]   = { INT8_MIN, INT8_MAX },
    [INF_TYPE_INT16]  = { INT16_MIN, INT16_MAX },
    [INF_TYPE_INT32]  = { INT32_MIN, INT32_MAX },
    [INF_TYPE_INT64]  = { INT64_MIN, INT64_MAX }
};

/* Writes the low bytes of the number, which come first in little-endian. */
static inf_err_t *
decode_integer(inf_data_decoder_t *d, const char *p, const char *end,
    char *out, const char **next)
{
    uint32_t type = d->input->datatype;
    inf_number_t n;
    uint64_t u;
    int64_t s = 0;
    bool fits;

    if (inf_number_read(p, end, &n) == 0 || !n.integer) {
        return wrong_kind(d);
    }

    *next = p + n.len;

    if (n.negative) {
        fits = inf_number_int64(&n, &s) && s >= integer_ranges[type].min;
        u = (uint64_t) s;
    } else {
        fits = inf_number_uint64(&n, &u) && u <= integer_ranges[type].max;
    }

    if (!fits) {
        return inf_err_new(INF_ERR_INVALID_ARG,
                           "%s: %.*s is out of range of %s (element %llu of "
                           "input '%.*s')", inf_data_wrong_kind(type),
                           (int) (n.len < 40 ? n.len : 40), n.text,
                           inf_datatype_name(type),
                           (unsigned long long) d->count,
                           (int) d->input->name.len, d->input->name.data);
    }

    memcpy(out, &u, inf_datatype_size(type));
    return NULL;
}

/* Begins, continues or ends a string; its length prefix is written last. */
static inf_err_t *
decode_string(inf_data_decoder_t *d, const char *p, const char *stop,
    const char *end, char *dst, const char **next)
{
    uint64_t room = d->input->byte_size - d->out;

    if (!d->in_string) {
        if (*p != '"') {
            return wrong_kind(d);
        }

        if (d->count == d->input->element_count || room < 4) {
            return wrong_count(d);
        }

        d->string_at = d->out;
        d->out += 4;
        d->in_string = true;
        *next = p + 1;
        return NULL;
    }

    char *out = dst + d->out;
    if (!inf_json_unescape(&p, stop, end, &out, out + room)) {
        return wrong_count(d);
    }

    d->out = (uint64_t) (out - dst);
    *next = p;

    if (p < stop) {                         /* the closing quote */
        uint64_t len = d->out - d->string_at - 4;
        if (len > UINT32_MAX) {
            return inf_err_new(INF_ERR_INVALID_ARG,
                               "Unable to parse 'data': string %llu of input "
                               "'%.*s' is longer than 4 GiB",
                               (unsigned long long) d->count,
                               (int) d->input->name.len, d->input->name.data);
        }

        uint32_t prefix = (uint32_t) len;
        memcpy(dst + d->string_at, &prefix, sizeof(prefix));
        d->in_string = false;
        d->count++;
        *next = p + 1;
    }

    return NULL;
}

static inf_err_t *
wrong_kind(const inf_data_decoder_t *d)
{
    return inf_err_new(INF_ERR_INVALID_ARG, "%s (element %llu of input '%.*s')",
                       inf_data_wrong_kind(d->input->datatype),
                       (unsigned long long) d->count,
                       (int) d->input->name.len, d->input->name.data);
}

const char *
inf_data_wrong_kind(uint32_t datatype)
{
    switch ((inf_datatype_t) datatype) {

    case INF_TYPE_BYTES:
        return "Unable to parse JSON bytes array: attempt to access JSON "
               "non-string as string";

    case INF_TYPE_BOOL:
        return "Unable to parse 'data': attempt to access JSON non-boolean as "
               "boolean";

    case INF_TYPE_FP32:
    case INF_TYPE_FP64:
        return "Unable to parse 'data': attempt to access JSON non-number as "
               "double";

    case INF_TYPE_INT8:
    case INF_TYPE_INT16:
    case INF_TYPE_INT32:
    case INF_TYPE_INT64:
        return "Unable to parse 'data': attempt to access JSON "
               "non-signed-integer as signed-integer";

    default:
        return "Unable to parse 'data': attempt to access JSON "
               "non-unsigned-integer as unsigned-integer";
    }
}

static inf_err_t *
wrong_count(const inf_data_decoder_t *d)
{
    return inf_err_new(INF_ERR_INVALID_ARG,
                       "Unable to parse 'data': Shape does not match true "
                       "shape of 'data' field (input '%.*s')",
                       (int) d->input->name.len, d->input->name.data);
}
