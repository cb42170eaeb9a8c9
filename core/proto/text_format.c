#include "core/proto/text_format.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/proto/message_reader.h"
#include "core/proto/number.h"
#include "core/proto/text_format_token.h"

static inf_token_t next_token(inf_message_reader_t *r);
static inf_err_t *read_name(inf_message_reader_t *r, inf_slice_t *name);
static inf_err_t *read_scalar(inf_message_reader_t *r,
    const ProtobufCFieldDescriptor *f, inf_scalar_t *v);
static inf_err_t *read_signed(inf_message_reader_t *r, int64_t min,
    int64_t max, const char *what, int64_t *v);
static inf_err_t *read_unsigned(inf_message_reader_t *r, uint64_t max,
    uint64_t *v);
static inf_err_t *expected_integer(const inf_message_reader_t *r,
    const char *more);
static inf_err_t *out_of_range(const inf_message_reader_t *r);
static inf_err_t *read_real(inf_message_reader_t *r, double *v);
static bool real_of_token(const inf_token_t *token, double *v);
static inf_err_t *read_bool(inf_message_reader_t *r, bool *v);
static const char *enum_like(const ProtobufCEnumDescriptor *desc,
    inf_slice_t text);
static inf_err_t *read_enum(inf_message_reader_t *r,
    const ProtobufCEnumDescriptor *desc, int *v);
static inf_err_t *read_string(inf_message_reader_t *r, inf_slice_t *v);

static void print_message(inf_buf_t *out, const ProtobufCMessage *m,
    unsigned indent);
static void print_field(inf_buf_t *out, const ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f, unsigned indent);
static void print_scalar(inf_buf_t *out, const ProtobufCFieldDescriptor *f,
    inf_scalar_t v);
static void print_real(inf_buf_t *out, const ProtobufCFieldDescriptor *f,
    double v);
static void print_string(inf_buf_t *out, inf_slice_t s);
static void print_indent(inf_buf_t *out, unsigned indent);

static const inf_message_syntax_t text_syntax = {
    .next = next_token,
    .name = read_name,
    .scalar = read_scalar,
    .object = "\"{\"",
    .verb = "specified",
    .too_deep = "messages are nested too deep"
};

inf_err_t *
inf_text_parse(const ProtobufCMessageDescriptor *desc, inf_slice_t text,
    const char *file_name, ProtobufCMessage **out)
{
    inf_message_reader_t r = {
        .syntax = &text_syntax, .file = file_name, .text = text
    };

    return inf_message_read(&r, desc, out);
}

inf_err_t *
inf_text_locate(const ProtobufCMessageDescriptor *desc, inf_slice_t text,
    inf_slice_t key, inf_text_place_t *out)
{
    ProtobufCMessage *m;
    inf_message_reader_t r = {
        .syntax = &text_syntax, .file = "", .text = text,
        .seek = { .rest = key }
    };

    inf_err_t *err = inf_message_read(&r, desc, &m);
    if (err != NULL) {
        return err;
    }

    inf_message_free(m);
    inf_path_position(text, r.seek.place, &out->line, &out->column);
    return NULL;
}

inf_err_t *
inf_text_print(const ProtobufCMessage *m, inf_buf_t *out)
{
    print_message(out, m, 0);
    return inf_buf_status(out);
}

static inf_token_t
next_token(inf_message_reader_t *r)
{
    return inf_text_token(r->text, &r->next, &r->reason);
}

static inf_err_t *
read_name(inf_message_reader_t *r, inf_slice_t *name)
{
    if (r->token.kind != INF_TOKEN_NAME) {
        return inf_reader_expected(r, r->depth > 1
            ? "a field name or the closing bracket" : "a field name");
    }

    *name = r->token.text;
    inf_reader_next(r);
    return NULL;
}

static inf_err_t *
read_scalar(inf_message_reader_t *r, const ProtobufCFieldDescriptor *f,
    inf_scalar_t *v)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        return read_signed(r, INT32_MIN, INT32_MAX, NULL, &v->i);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return read_signed(r, INT64_MIN, INT64_MAX, NULL, &v->i);
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        return read_unsigned(r, UINT32_MAX, &v->u);
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return read_unsigned(r, UINT64_MAX, &v->u);
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_DOUBLE:
        return read_real(r, &v->d);
    case PROTOBUF_C_TYPE_BOOL:
        return read_bool(r, &v->b);
    case PROTOBUF_C_TYPE_ENUM:
        return read_enum(r, f->descriptor, &v->e);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
        return read_string(r, &v->s);
    case PROTOBUF_C_TYPE_MESSAGE:
        break;
    }
    return inf_reader_bad(r, r->token.at, "a message is no scalar");
}

/* what: what to expect in place of an integer; NULL: an integer alone. */
static inf_err_t *
read_signed(inf_message_reader_t *r, int64_t min, int64_t max, const char *what,
    int64_t *v)
{
    bool negative = inf_reader_take(r, '-');
    const inf_token_t *token = &r->token;
    uint64_t digits;

    if (token->kind != INF_TOKEN_INTEGER) {
        return what != NULL ? inf_reader_expected(r, what)
            : expected_integer(r, "");
    }

    uint64_t limit = negative ? (uint64_t) max + (min < 0) : (uint64_t) max;
    if (!inf_token_integer(token->text, &digits) || digits > limit) {
        return out_of_range(r);
    }

    *v = negative ? (int64_t) (~digits + 1) : (int64_t) digits;
    inf_reader_next(r);
    return NULL;
}

static inf_err_t *
read_unsigned(inf_message_reader_t *r, uint64_t max, uint64_t *v)
{
    const inf_token_t *token = &r->token;

    if (token->kind != INF_TOKEN_INTEGER) {
        return expected_integer(r, " (0 or more)");
    }
    if (!inf_token_integer(token->text, v) || *v > max) {
        return out_of_range(r);
    }
    inf_reader_next(r);
    return NULL;
}

/* These two have the words of protobuf's own reader, which logs are searched
   for. */
static inf_err_t *
expected_integer(const inf_message_reader_t *r, const char *more)
{
    const inf_token_t *token = &r->token;
    char shown[INF_PATH_SHOWN];
    char text[100];

    if (token->kind == INF_TOKEN_END || token->kind == INF_TOKEN_BAD) {
        return inf_reader_expected(r, "an integer");
    }
    snprintf(text, sizeof(text), "Expected integer, got: %s%s",
        inf_path_show(shown, token->text), more);
    return inf_reader_bad(r, token->at, text);
}

static inf_err_t *
out_of_range(const inf_message_reader_t *r)
{
    char shown[INF_PATH_SHOWN];
    char text[100];

    snprintf(text, sizeof(text), "Integer out of range (%s)",
        inf_path_show(shown, r->token.text));
    return inf_reader_bad(r, r->token.at, text);
}

static inf_err_t *
read_real(inf_message_reader_t *r, double *v)
{
    bool negative = inf_reader_take(r, '-');

    if (!real_of_token(&r->token, v)) {
        return inf_reader_expected(r, "a number");
    }
    if (negative) {
        *v = -*v;
    }
    inf_reader_next(r);
    return NULL;
}

static bool
real_of_token(const inf_token_t *token, double *v)
{
    inf_slice_t text = token->text;

    if (token->kind == INF_TOKEN_NAME) {
        if ((text.len == 3 && strncasecmp(text.data, "inf", 3) == 0)
            || (text.len == 8 && strncasecmp(text.data, "infinity", 8) == 0))
        {
            *v = (double) INFINITY;
            return true;
        }
        *v = (double) NAN;
        return text.len == 3 && strncasecmp(text.data, "nan", 3) == 0;
    }

    if (token->kind == INF_TOKEN_REAL) {
        if (text.data[text.len - 1] == 'f' || text.data[text.len - 1] == 'F') {
            text.len--;
        }
        return inf_number_parse_double(text, v);
    }

    /* reals are decimal: 010 and 0x10 would be ambiguous */
    return token->kind == INF_TOKEN_INTEGER
        && (text.len == 1 || text.data[0] != '0')
        && inf_number_parse_double(text, v);
}

static inf_err_t *
read_bool(inf_message_reader_t *r, bool *v)
{
    static const struct {
        const char  *name;
        bool         value;
    } names[] = {
        { "true", true }, { "True", true }, { "t", true },
        { "false", false }, { "False", false }, { "f", false },
    };
    const inf_token_t *token = &r->token;
    uint64_t digits;

    if (token->kind == INF_TOKEN_INTEGER
        && inf_token_integer(token->text, &digits) && digits <= 1)
    {
        *v = digits == 1;
        inf_reader_next(r);
        return NULL;
    }

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (token->kind == INF_TOKEN_NAME
            && inf_slice_eq(token->text, inf_slice_str(names[i].name)))
        {
            *v = names[i].value;
            inf_reader_next(r);
            return NULL;
        }
    }
    return inf_reader_expected(r, "true or false");
}

static inf_err_t *
read_enum(inf_message_reader_t *r, const ProtobufCEnumDescriptor *desc, int *v)
{
    const inf_token_t *token = &r->token;

    if (token->kind == INF_TOKEN_NAME) {
        for (unsigned i = 0; i < desc->n_value_names; i++) {
            const ProtobufCEnumValueIndex *known = &desc->values_by_name[i];
            if (inf_slice_eq(token->text, inf_slice_str(known->name))) {
                *v = desc->values[known->index].value;
                inf_reader_next(r);
                return NULL;
            }
        }
    }

    if (token->kind == INF_TOKEN_NAME || token->kind == INF_TOKEN_STRING) {
        size_t quote = token->kind == INF_TOKEN_STRING ? 1 : 0;
        const char *meant = enum_like(desc, inf_slice(token->text.data + quote,
            token->text.len - 2 * quote));
        char what[240];
        snprintf(what, sizeof(what), "a name of enum %.80s%s%.64s%s",
            desc->name, meant != NULL ? " (did you mean " : "",
            meant != NULL ? meant : "",
            meant == NULL ? "" : quote != 0 ? " without quotes?)" : "?)");
        return inf_reader_expected(r, what);
    }

    int64_t number;
    inf_err_t *err = read_signed(r, INT32_MIN, INT32_MAX,
        "an enum's name or number", &number);
    if (err == NULL) {
        *v = (int) number;
    }
    return err;
}

/* The name that text abbreviates: FP32, fp32 or type_fp32 for TYPE_FP32; NULL:
   none. */
static const char *
enum_like(const ProtobufCEnumDescriptor *desc, inf_slice_t text)
{
    for (unsigned i = 0; text.len > 0 && i < desc->n_values; i++) {
        const char *name = desc->values[i].name;
        size_t len = strlen(name);

        if (len >= text.len
            && (len == text.len || name[len - text.len - 1] == '_')
            && strncasecmp(name + len - text.len, text.data, text.len) == 0)
        {
            return name;
        }
    }

    return NULL;
}

/* Joins adjacent literals to one string; v is a view of r->string. */
static inf_err_t *
read_string(inf_message_reader_t *r, inf_slice_t *v)
{
    if (r->token.kind != INF_TOKEN_STRING) {
        return inf_reader_expected(r, "a string");
    }

    inf_buf_reset(&r->string);
    while (r->token.kind == INF_TOKEN_STRING) {
        inf_token_unescape(r->token.text, &r->string);
        inf_reader_next(r);
    }
    *v = inf_buf_slice(&r->string);
    return inf_buf_status(&r->string);
}

static void
print_message(inf_buf_t *out, const ProtobufCMessage *m, unsigned indent)
{
    for (unsigned i = 0; i < m->descriptor->n_fields; i++) {
        print_field(out, m, &m->descriptor->fields[i], indent);
    }
}

static void
print_field(inf_buf_t *out, const ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f, unsigned indent)
{
    size_t n = inf_field_count(m, f);

    for (size_t i = 0; i < n; i++) {
        inf_scalar_t v = inf_field_get(m, f, i);

        print_indent(out, indent);
        inf_buf_puts(out, f->name);
        if (f->type == PROTOBUF_C_TYPE_MESSAGE) {
            inf_buf_puts(out, " {\n");
            print_message(out, v.m, indent + 1);
            print_indent(out, indent);
            inf_buf_puts(out, "}\n");
        } else {
            inf_buf_puts(out, ": ");
            print_scalar(out, f, v);
            inf_buf_putc(out, '\n');
        }
    }
}

static void
print_scalar(inf_buf_t *out, const ProtobufCFieldDescriptor *f,
    inf_scalar_t v)
{
    const ProtobufCEnumValue *name;

    switch (f->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        inf_number_put_int(out, v.i);
        break;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        inf_number_put_uint(out, v.u);
        break;
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_DOUBLE:
        print_real(out, f, v.d);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        inf_buf_puts(out, v.b ? "true" : "false");
        break;
    case PROTOBUF_C_TYPE_ENUM:
        name = protobuf_c_enum_descriptor_get_value(f->descriptor, v.e);
        if (name != NULL) {
            inf_buf_puts(out, name->name);
        } else {
            inf_number_put_int(out, v.e);
        }
        break;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
        print_string(out, v.s);
        break;
    case PROTOBUF_C_TYPE_MESSAGE:
        break;
    }
}

static void
print_real(inf_buf_t *out, const ProtobufCFieldDescriptor *f, double v)
{
    if (isnan(v)) {
        inf_buf_puts(out, "nan");
    } else if (isinf(v)) {
        inf_buf_puts(out, v < 0 ? "-inf" : "inf");
    } else if (f->type == PROTOBUF_C_TYPE_FLOAT) {
        inf_number_put_float(out, (float) v);
    } else {
        inf_number_put_double(out, v);
    }
}

static void
print_string(inf_buf_t *out, inf_slice_t s)
{
    inf_buf_putc(out, '"');
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char) s.data[i];

        if (c == '"' || c == '\\') {
            inf_buf_putc(out, '\\');
            inf_buf_putc(out, (char) c);
        } else if (c == '\n') {
            inf_buf_puts(out, "\\n");
        } else if (c < 0x20 || c >= 0x7f) {
            inf_buf_printf(out, "\\%03o", (unsigned) c);
        } else {
            inf_buf_putc(out, (char) c);
        }
    }
    inf_buf_putc(out, '"');
}

static void
print_indent(inf_buf_t *out, unsigned indent)
{
    for (unsigned i = 0; i < indent; i++) {
        inf_buf_puts(out, "  ");
    }
}
