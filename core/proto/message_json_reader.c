#include "core/proto/message_json.h"

#include <float.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "core/proto/json_string.h"
#include "core/proto/json_token.h"
#include "core/proto/message_reader.h"
#include "core/proto/message_utf8.h"
#include "core/proto/number.h"

static inf_token_t next_token(inf_message_reader_t *r);
static inf_token_t bad_token(inf_message_reader_t *r,
    const inf_json_tokens_t *t);
static inf_err_t *read_key(inf_message_reader_t *r, inf_slice_t *name);
static inf_err_t *read_scalar(inf_message_reader_t *r,
    const ProtobufCFieldDescriptor *f, inf_scalar_t *v);
static inf_err_t *read_map_key(inf_message_reader_t *r,
    const ProtobufCFieldDescriptor *f, inf_slice_t name, size_t at,
    inf_scalar_t *v);
static inf_err_t *read_text(inf_message_reader_t *r, inf_slice_t *text);
static inf_err_t *unescape(inf_slice_t token, inf_buf_t *out);
static const char *scalar_of_text(inf_message_reader_t *r,
    const ProtobufCFieldDescriptor *f, inf_slice_t text, bool quoted,
    inf_scalar_t *v);

static const char *scalar_signed(inf_slice_t text, bool quoted, int64_t min,
    int64_t max, int64_t *v);
static const char *scalar_unsigned(inf_slice_t text, bool quoted,
    uint64_t max, uint64_t *v);
static const char *scalar_whole(inf_slice_t text, bool quoted, bool *negative,
    uint64_t *digits);
static const char *scalar_real(inf_slice_t text, bool single, double *v);
static const char *scalar_bool(inf_slice_t text, bool *v);
static const char *scalar_enum(inf_slice_t text, bool quoted,
    const ProtobufCEnumDescriptor *desc, int *v);
static const char *scalar_bytes(inf_slice_t text, inf_buf_t *decoded);
static int base64_digit(char c);

static const inf_message_syntax_t json_syntax = {
    .next = next_token,
    .name = read_key,
    .scalar = read_scalar,
    .key = read_map_key,
    .object = "an object",
    .verb = "given",
    .too_deep = "objects are nested too deep",
    .json = true
};

inf_err_t *
inf_message_from_json(const ProtobufCMessageDescriptor *desc,
    inf_slice_t text, ProtobufCMessage **out)
{
    inf_message_reader_t r = { .syntax = &json_syntax, .text = text };

    return inf_message_read(&r, desc, out);
}

/* ---- tokens ---- */

static inf_token_t
next_token(inf_message_reader_t *r)
{
    static const inf_token_kind_t kinds[] = {
        [INF_JSON_TOKEN_END] = INF_TOKEN_END,
        [INF_JSON_TOKEN_STRING] = INF_TOKEN_STRING,
        [INF_JSON_TOKEN_NUMBER] = INF_TOKEN_REAL,
        [INF_JSON_TOKEN_WORD] = INF_TOKEN_NAME,
        [INF_JSON_TOKEN_SYMBOL] = INF_TOKEN_SYMBOL
    };
    inf_json_tokens_t t = { .pos = r->next, .lenient = true };

    inf_json_token_t kind = inf_json_tokens_next(&t, r->text.data,
        r->text.data + r->text.len, true);
    if (kind == INF_JSON_TOKEN_BAD) {
        return bad_token(r, &t);
    }

    r->next = (size_t) t.pos;
    inf_token_t token = {
        .kind = kinds[kind],
        .text = inf_slice(r->text.data + t.start, (size_t) (t.pos - t.start)),
        .at = (size_t) t.start
    };

    if (kind == INF_JSON_TOKEN_STRING) {
        size_t valid = inf_utf8_valid_prefix(token.text);
        if (valid < token.text.len) {
            r->reason = "the string is not valid UTF-8";
            token.kind = INF_TOKEN_BAD;
            token.at += valid;
        }
    }
    return token;
}

static inf_token_t
bad_token(inf_message_reader_t *r, const inf_json_tokens_t *t)
{
    uint64_t at = t->start;

    switch (t->fault) {
    case INF_JSON_FAULT_BYTE:
        r->reason = "no JSON value begins with this byte";
        break;
    case INF_JSON_FAULT_QUOTE:
        r->reason = "the string has no end";
        break;
    case INF_JSON_FAULT_CONTROL:
        r->reason = "a control character in a string must be escaped";
        at = t->pos;
        break;
    case INF_JSON_FAULT_ESCAPE:
        r->reason = "unknown escape in string";
        at = t->escape;
        break;
    case INF_JSON_FAULT_HEX:
    case INF_JSON_FAULT_SURROGATE:
        r->reason = t->fault == INF_JSON_FAULT_HEX && t->surrogate == 0
            ? "\\u must be followed by four hexadecimal digits"
            : "half of a surrogate pair in string";
        at = t->escape;
        break;
    case INF_JSON_FAULT_NUMBER:
    case INF_JSON_FAULT_FRACTION:
    case INF_JSON_FAULT_EXPONENT:
    case INF_JSON_FAULT_LENGTH:
        r->reason = "this is not a JSON number";
        break;
    }
    return (inf_token_t) { .kind = INF_TOKEN_BAD, .at = (size_t) at };
}

/* Reads a key and its colon. */
static inf_err_t *
read_key(inf_message_reader_t *r, inf_slice_t *name)
{
    if (r->token.kind != INF_TOKEN_STRING && r->token.kind != INF_TOKEN_NAME) {
        return inf_reader_expected(r, "a key");
    }

    inf_err_t *err = read_text(r, name);
    if (err != NULL) {
        return err;
    }
    return inf_reader_take(r, ':') ? NULL : inf_reader_expected(r, "\":\"");
}

static inf_err_t *
read_scalar(inf_message_reader_t *r, const ProtobufCFieldDescriptor *f,
    inf_scalar_t *v)
{
    bool quoted = r->token.kind == INF_TOKEN_STRING;
    size_t at = r->token.at;
    inf_slice_t text;

    if (!quoted && r->token.kind != INF_TOKEN_REAL
        && r->token.kind != INF_TOKEN_NAME)
    {
        return inf_reader_expected(r, "a value");
    }

    inf_err_t *err = read_text(r, &text);
    if (err != NULL) {
        return err;
    }

    const char *bad = scalar_of_text(r, f, text, quoted, v);
    return bad != NULL ? inf_reader_bad_value(r, at, bad, text) : NULL;
}

/* Reads a map's key, a string for any type. */
static inf_err_t *
read_map_key(inf_message_reader_t *r, const ProtobufCFieldDescriptor *f,
    inf_slice_t name, size_t at, inf_scalar_t *v)
{
    const char *bad = scalar_of_text(r, f, name, true, v);

    return bad != NULL ? inf_reader_bad_value(r, at, bad, name) : NULL;
}

/* Unescapes a string to r->string; a number or word stays in place. */
static inf_err_t *
read_text(inf_message_reader_t *r, inf_slice_t *text)
{
    *text = r->token.text;
    if (r->token.kind == INF_TOKEN_STRING) {
        inf_err_t *err = unescape(r->token.text, &r->string);
        if (err != NULL) {
            return err;
        }
        *text = inf_buf_slice(&r->string);
    }
    inf_reader_next(r);
    return NULL;
}

static inf_err_t *
unescape(inf_slice_t token, inf_buf_t *out)
{
    const char *p = token.data + 1;
    const char *end = token.data + token.len - 1;

    inf_buf_reset(out);
    if (!inf_buf_reserve(out, token.len)) {
        return inf_err_nomem();
    }

    char *to = out->data;
    while (p < end) {
        (void) inf_json_unescape(&p, end, end, &to, out->data + token.len);
        if (p < end) {
            *to++ = *p++;           /* a double quote inside single quotes */
        }
    }
    *to = '\0';
    out->len = (size_t) (to - out->data);
    return NULL;
}

/* ---- scalars ---- */

/* Converts text, a number, word or unescaped string; returns NULL or the
   fault. */
static const char *
scalar_of_text(inf_message_reader_t *r, const ProtobufCFieldDescriptor *f,
    inf_slice_t text, bool quoted, inf_scalar_t *v)
{
    const char *bad = NULL;

    switch (f->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        bad = scalar_signed(text, quoted, INT32_MIN, INT32_MAX, &v->i);
        break;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        bad = scalar_signed(text, quoted, INT64_MIN, INT64_MAX, &v->i);
        break;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        bad = scalar_unsigned(text, quoted, UINT32_MAX, &v->u);
        break;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        bad = scalar_unsigned(text, quoted, UINT64_MAX, &v->u);
        break;
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_DOUBLE:
        bad = scalar_real(text, f->type == PROTOBUF_C_TYPE_FLOAT, &v->d);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        bad = scalar_bool(text, &v->b);
        break;
    case PROTOBUF_C_TYPE_ENUM:
        bad = scalar_enum(text, quoted, f->descriptor, &v->e);
        break;
    case PROTOBUF_C_TYPE_STRING:
        v->s = text;
        if (!quoted) {
            bad = "expected a string";
        } else if (text.len > 0 && memchr(text.data, '\0', text.len) != NULL) {
            bad = "a string without NUL bytes is needed";
        }
        break;
    case PROTOBUF_C_TYPE_BYTES:
        bad = quoted ? scalar_bytes(text, &r->string) : "expected base64 text";
        v->s = inf_buf_slice(&r->string);
        break;
    case PROTOBUF_C_TYPE_MESSAGE:
        bad = "a message is no scalar";
        break;
    }
    return bad;
}

/* Like the following, returns NULL or the fault. */
static const char *
scalar_signed(inf_slice_t text, bool quoted, int64_t min, int64_t max,
    int64_t *v)
{
    bool negative;
    uint64_t digits;

    const char *bad = scalar_whole(text, quoted, &negative, &digits);
    if (bad != NULL) {
        return bad;
    }
    if (digits > (uint64_t) max + (negative && min < 0)) {
        return "the integer is out of range";
    }
    *v = negative ? (int64_t) (~digits + 1) : (int64_t) digits;
    return NULL;
}

static const char *
scalar_unsigned(inf_slice_t text, bool quoted, uint64_t max, uint64_t *v)
{
    bool negative;

    const char *bad = scalar_whole(text, quoted, &negative, v);
    if (bad != NULL) {
        return bad;
    }
    if (*v > max || (negative && *v > 0)) {
        return "the integer is out of range";
    }
    return NULL;
}

/* Reads an integer as digits or, outside of a string, a real with an integral
   value. */
static const char *
scalar_whole(inf_slice_t text, bool quoted, bool *negative, uint64_t *digits)
{
    double real;

    *negative = text.len > 0 && text.data[0] == '-';
    inf_slice_t plain = inf_slice(text.data + *negative,
        text.len - *negative);
    if (inf_number_parse_digits(plain, 10, digits)) {
        return NULL;
    }
    if (quoted || !inf_number_parse_double(plain, &real)
        || plain.data[0] == '-')
    {
        return "expected an integer";
    }
    if (real != floor(real)) {
        return isinf(real) ? "the integer is out of range"
            : "expected an integer";
    }
    if (real >= 18446744073709551616.0) {
        return "the integer is out of range";
    }
    *digits = (uint64_t) real;
    return NULL;
}

static const char *
scalar_real(inf_slice_t text, bool single, double *v)
{
    if (inf_number_parse_double(text, v)) {
        double limit = single ? (double) FLT_MAX : DBL_MAX;
        bool over = fabs(*v) > limit && (!single || isinf((float) *v));
        return over ? "the number is out of range" : NULL;
    }

    if (inf_slice_eq(text, INF_SLICE("NaN"))) {
        *v = (double) NAN;
    } else if (inf_slice_eq(text, INF_SLICE("Infinity"))) {
        *v = (double) INFINITY;
    } else if (inf_slice_eq(text, INF_SLICE("-Infinity"))) {
        *v = -(double) INFINITY;
    } else {
        return "expected a number";
    }
    return NULL;
}

static const char *
scalar_bool(inf_slice_t text, bool *v)
{
    *v = inf_slice_eq(text, INF_SLICE("true"));

    return *v || inf_slice_eq(text, INF_SLICE("false")) ? NULL
        : "expected true or false";
}

static const char *
scalar_enum(inf_slice_t text, bool quoted, const ProtobufCEnumDescriptor *desc,
    int *v)
{
    int64_t number;

    for (unsigned i = 0; quoted && i < desc->n_value_names; i++) {
        const ProtobufCEnumValueIndex *known = &desc->values_by_name[i];
        if (strlen(known->name) == text.len
            && strncasecmp(known->name, text.data, text.len) == 0)
        {
            *v = desc->values[known->index].value;
            return NULL;
        }
    }

    if (scalar_signed(text, quoted, INT32_MIN, INT32_MAX, &number) != NULL) {
        return "expected an enum's name or number";
    }
    *v = (int) number;
    return NULL;
}

/* Decodes the standard or URL alphabet, padding optional; decoded may be text's
   buffer, since the output never overtakes the input. */
static const char *
scalar_bytes(inf_slice_t text, inf_buf_t *decoded)
{
    size_t len = text.len;
    while (len > 0 && text.len - len < 2 && text.data[len - 1] == '=') {
        len--;
    }
    if (len % 4 == 1 || (len < text.len && text.len % 4 != 0)) {
        return "expected base64 text";
    }

    uint32_t bits = 0;
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        int digit = base64_digit(text.data[i]);
        if (digit < 0) {
            return "expected base64 text";
        }
        bits = (bits << 6 | (uint32_t) digit) & 0xffffff;
        if (i % 4 > 0) {
            decoded->data[n++] = (char) (bits >> (6 - 2 * (i % 4)));
        }
    }
    decoded->len = n;
    return NULL;
}

static int
base64_digit(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    if (c == '+' || c == '-') {
        return 62;
    }
    return c == '/' || c == '_' ? 63 : -1;
}
