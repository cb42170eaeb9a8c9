#include "core/proto/message_json.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/proto/message_json_token.h"
#include "core/proto/message_number.h"
#include "core/proto/message_path.h"

#define SEEN_WORDS 4            /* fields of one message: 64 per word        */

typedef struct {
    inf_jtokens_t  tokens;
    inf_path_t     path;
    inf_buf_t      text;        /* the string or key last taken              */
    unsigned       depth;
} reader_t;

typedef struct {
    ProtobufCMessage  *m;
    uint64_t           seen[SEEN_WORDS];
} target_t;

static inf_err_t *read_message(reader_t *r, ProtobufCMessage *m);
static inf_err_t *read_member(reader_t *r, target_t *t);
static inf_err_t *read_field(reader_t *r, target_t *t,
    const ProtobufCFieldDescriptor *f, size_t at);
static inf_err_t *read_once(reader_t *r, target_t *t,
    const ProtobufCFieldDescriptor *f, size_t at);
static inf_err_t *read_list(reader_t *r, ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f);
static inf_err_t *read_map(reader_t *r, ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f);
static inf_err_t *read_entry(reader_t *r, ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f);
static inf_err_t *read_value(reader_t *r, ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f);
static inf_err_t *read_scalar(reader_t *r, const ProtobufCFieldDescriptor *f,
    inf_slice_t text, bool quoted, size_t at, inf_scalar_t *v);
static inf_err_t *read_key(reader_t *r);
static inf_err_t *read_text(reader_t *r, inf_slice_t *text, bool *quoted);
static inf_err_t *read_end(reader_t *r, char close, bool *ended);

static const char *scalar_signed(inf_slice_t text, int64_t min, int64_t max,
    int64_t *v);
static const char *scalar_unsigned(inf_slice_t text, uint64_t max,
    uint64_t *v);
static const char *scalar_whole(inf_slice_t text, bool *negative,
    uint64_t *digits);
static const char *scalar_real(inf_slice_t text, bool single, double *v);
static const char *scalar_bool(inf_slice_t text, bool *v);
static const char *scalar_enum(inf_slice_t text, bool quoted,
    const ProtobufCEnumDescriptor *desc, int *v);
static const char *scalar_bytes(inf_slice_t text, inf_buf_t *decoded);
static int base64_digit(char c);

static const ProtobufCFieldDescriptor *field_by_name(
    const ProtobufCMessageDescriptor *desc, inf_slice_t name);
static bool name_is_camel(const char *field, inf_slice_t name);
static bool take_symbol(reader_t *r, char c);
static bool at_null(const reader_t *r);
static inf_err_t *read_expected(const reader_t *r, const char *what);
static inf_err_t *read_bad(const reader_t *r, size_t at, const char *what);
static inf_err_t *read_bad_value(const reader_t *r, size_t at,
    const char *what, inf_slice_t text);

inf_err_t *
inf_message_from_json(const ProtobufCMessageDescriptor *desc,
    inf_slice_t text, ProtobufCMessage **out)
{
    ProtobufCMessage *m;
    reader_t r = { .depth = 0 };

    inf_err_t *err = inf_message_new(desc, &m);
    if (err != NULL) {
        return err;
    }

    if (text.len == 0) {
        text = INF_SLICE("");
    }
    inf_jtokens_init(&r.tokens, text);
    inf_buf_init(&r.text);
    err = read_message(&r, m);
    if (err == NULL && r.tokens.kind != INF_JTOKEN_END) {
        err = read_expected(&r, "the end of the text");
    }
    inf_buf_fini(&r.text);
    if (err != NULL) {
        goto fail;
    }

    err = inf_message_fold_maps(m);
    if (err != NULL) {
        goto fail;
    }

    *out = m;
    return NULL;

fail:

    inf_message_free(m);
    return err;
}

static inf_err_t *
read_message(reader_t *r, ProtobufCMessage *m)
{
    target_t t = { .m = m };
    bool ended = false;

    if (m->descriptor->n_fields > SEEN_WORDS * 64) {
        return inf_err_new(INF_ERR_INTERNAL,
            "message %s has more fields than JSON is built for",
            m->descriptor->name);
    }
    if (r->depth == INF_MESSAGE_DEPTH) {
        return read_bad(r, inf_jtokens_offset(&r->tokens),
            "objects are nested too deep");
    }
    if (!take_symbol(r, '{')) {
        return read_expected(r, "an object");
    }

    r->depth++;
    ended = take_symbol(r, '}');
    while (!ended) {
        inf_err_t *err = read_member(r, &t);
        if (err == NULL) {
            err = read_end(r, '}', &ended);
        }
        if (err != NULL) {
            return err;
        }
    }
    r->depth--;
    return NULL;
}

static inf_err_t *
read_member(reader_t *r, target_t *t)
{
    const ProtobufCMessageDescriptor *desc = t->m->descriptor;
    size_t at = inf_jtokens_offset(&r->tokens);

    inf_err_t *err = read_key(r);
    if (err != NULL) {
        return err;
    }

    inf_slice_t name = inf_buf_slice(&r->text);
    const ProtobufCFieldDescriptor *f = field_by_name(desc, name);
    if (f == NULL) {
        char what[200];
        const char *near = inf_field_suggest(desc, name);
        snprintf(what, sizeof(what), near != NULL
            ? "unknown field of %.80s, did you mean \"%.64s\"?"
            : "unknown field of %.80s", desc->name, near);
        inf_path_push(&r->path, name);
        return read_bad(r, at, what);
    }

    size_t mark = inf_path_push(&r->path, inf_slice_str(f->name));
    err = read_field(r, t, f, at);
    inf_path_pop(&r->path, mark);
    return err;
}

static inf_err_t *
read_field(reader_t *r, target_t *t, const ProtobufCFieldDescriptor *f,
    size_t at)
{
    if (at_null(r)) {
        inf_jtokens_next(&r->tokens);
        inf_field_clear(t->m, f);
        return NULL;
    }

    inf_err_t *err = read_once(r, t, f, at);
    if (err != NULL) {
        return err;
    }

    if (inf_field_is_map(f)) {
        return read_map(r, t->m, f);
    }
    if (inf_field_is_repeated(f) && take_symbol(r, '[')) {
        return read_list(r, t->m, f);
    }
    return read_value(r, t->m, f);
}

/* Of a key given twice the last counts; of a oneof there may be one key. */
static inf_err_t *
read_once(reader_t *r, target_t *t, const ProtobufCFieldDescriptor *f,
    size_t at)
{
    size_t i = inf_field_index(t->m->descriptor, f);
    uint64_t bit = UINT64_C(1) << (i % 64);

    if ((t->seen[i / 64] & bit) != 0) {
        inf_field_clear(t->m, f);
    }
    t->seen[i / 64] |= bit;

    if (inf_field_is_oneof(f)) {
        const ProtobufCFieldDescriptor *other = inf_field_oneof_set(t->m, f);
        if (other != NULL) {
            char what[200];
            snprintf(what, sizeof(what),
                "only one of \"%.64s\" and \"%.64s\" may be given",
                other->name, f->name);
            return read_bad(r, at, what);
        }
    }
    return NULL;
}

/* After '['. */
static inf_err_t *
read_list(reader_t *r, ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    bool ended = take_symbol(r, ']');

    for (size_t i = 0; !ended; i++) {
        size_t mark = inf_path_push_index(&r->path, i);
        inf_err_t *err = read_value(r, m, f);
        inf_path_pop(&r->path, mark);
        if (err == NULL) {
            err = read_end(r, ']', &ended);
        }
        if (err != NULL) {
            return err;
        }
    }
    return NULL;
}

static inf_err_t *
read_map(reader_t *r, ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    if (!take_symbol(r, '{')) {
        return read_expected(r, "an object");
    }

    bool ended = take_symbol(r, '}');
    while (!ended) {
        inf_err_t *err = read_entry(r, m, f);
        if (err == NULL) {
            err = read_end(r, '}', &ended);
        }
        if (err != NULL) {
            return err;
        }
    }
    return NULL;
}

static inf_err_t *
read_entry(reader_t *r, ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    const ProtobufCMessageDescriptor *desc = f->descriptor;
    const ProtobufCFieldDescriptor *key = &desc->fields[0];
    ProtobufCMessage *entry;
    inf_scalar_t v = { 0 };
    size_t at = inf_jtokens_offset(&r->tokens);

    inf_err_t *err = read_key(r);
    if (err != NULL) {
        return err;
    }

    inf_slice_t name = inf_buf_slice(&r->text);
    size_t mark = inf_path_push_key(&r->path, name);
    err = read_scalar(r, key, name, true, at, &v);
    if (err != NULL) {
        return err;
    }
    err = inf_field_put_message(m, f, &entry);
    if (err != NULL) {
        return err;
    }
    err = inf_field_put(entry, key, v);
    if (err != NULL) {
        return err;
    }

    err = read_value(r, entry, &desc->fields[1]);
    inf_path_pop(&r->path, mark);
    return err;
}

static inf_err_t *
read_value(reader_t *r, ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    inf_err_t *err;

    if (at_null(r)) {
        return read_expected(r, "a value");
    }

    if (f->type == PROTOBUF_C_TYPE_MESSAGE) {
        ProtobufCMessage *child;
        err = inf_field_put_message(m, f, &child);
        return err != NULL ? err : read_message(r, child);
    }

    inf_slice_t text;
    bool quoted;
    inf_scalar_t v = { 0 };
    size_t at = inf_jtokens_offset(&r->tokens);
    err = read_text(r, &text, &quoted);
    if (err != NULL) {
        return err;
    }
    err = read_scalar(r, f, text, quoted, at, &v);
    return err != NULL ? err : inf_field_put(m, f, v);
}

/* text is a number, a word, or what a string means. */
static inf_err_t *
read_scalar(reader_t *r, const ProtobufCFieldDescriptor *f, inf_slice_t text,
    bool quoted, size_t at, inf_scalar_t *v)
{
    const char *bad = NULL;

    switch (f->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        bad = scalar_signed(text, INT32_MIN, INT32_MAX, &v->i);
        break;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        bad = scalar_signed(text, INT64_MIN, INT64_MAX, &v->i);
        break;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        bad = scalar_unsigned(text, UINT32_MAX, &v->u);
        break;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        bad = scalar_unsigned(text, UINT64_MAX, &v->u);
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
        bad = quoted ? scalar_bytes(text, &r->text) : "expected base64 text";
        v->s = inf_buf_slice(&r->text);
        break;
    case PROTOBUF_C_TYPE_MESSAGE:
        bad = "a message is no scalar";
        break;
    }
    return bad != NULL ? read_bad_value(r, at, bad, text) : NULL;
}

/* Takes a key and its colon; r->text holds it. */
static inf_err_t *
read_key(reader_t *r)
{
    inf_slice_t name;
    bool quoted;

    if (r->tokens.kind != INF_JTOKEN_STRING
        && r->tokens.kind != INF_JTOKEN_WORD)
    {
        return read_expected(r, "a key");
    }

    inf_err_t *err = read_text(r, &name, &quoted);
    if (err != NULL) {
        return err;
    }
    if (!quoted) {
        inf_buf_reset(&r->text);
        inf_buf_put(&r->text, name.data, name.len);
        err = inf_buf_status(&r->text);
        if (err != NULL) {
            return err;
        }
    }
    return take_symbol(r, ':') ? NULL : read_expected(r, "\":\"");
}

/* A string's meaning goes to r->text, a number or word stays in place. */
static inf_err_t *
read_text(reader_t *r, inf_slice_t *text, bool *quoted)
{
    inf_jtoken_kind_t kind = r->tokens.kind;

    if (kind != INF_JTOKEN_STRING && kind != INF_JTOKEN_NUMBER
        && kind != INF_JTOKEN_WORD)
    {
        return read_expected(r, "a value");
    }

    *text = r->tokens.token;
    *quoted = kind == INF_JTOKEN_STRING;
    if (*quoted) {
        inf_buf_reset(&r->text);
        inf_jtoken_unescape(r->tokens.token, &r->text);
        *text = inf_buf_slice(&r->text);
    }
    inf_jtokens_next(&r->tokens);
    return inf_buf_status(&r->text);
}

/* After a member: a comma, a comma too many, or the end. */
static inf_err_t *
read_end(reader_t *r, char close, bool *ended)
{
    bool comma = take_symbol(r, ',');

    *ended = take_symbol(r, close);
    if (!comma && !*ended) {
        return read_expected(r, close == '}' ? "\",\" or \"}\""
            : "\",\" or \"]\"");
    }
    return NULL;
}

/* The scalar functions give NULL or what is wrong. */
static const char *
scalar_signed(inf_slice_t text, int64_t min, int64_t max, int64_t *v)
{
    bool negative;
    uint64_t digits;

    const char *bad = scalar_whole(text, &negative, &digits);
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
scalar_unsigned(inf_slice_t text, uint64_t max, uint64_t *v)
{
    bool negative;

    const char *bad = scalar_whole(text, &negative, v);
    if (bad != NULL) {
        return bad;
    }
    if (*v > max || (negative && *v > 0)) {
        return "the integer is out of range";
    }
    return NULL;
}

/* An integer as digits, or a real that is one. */
static const char *
scalar_whole(inf_slice_t text, bool *negative, uint64_t *digits)
{
    double real;

    *negative = text.len > 0 && text.data[0] == '-';
    inf_slice_t plain = inf_slice(text.data + *negative,
        text.len - *negative);
    if (inf_number_parse_digits(plain, 10, digits)) {
        return NULL;
    }
    if (!inf_number_parse_double(plain, &real) || plain.data[0] == '-') {
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

    if (scalar_signed(text, INT32_MIN, INT32_MAX, &number) != NULL) {
        return "expected an enum's name or number";
    }
    *v = (int) number;
    return NULL;
}

/* Standard or URL alphabet, padding optional; decoded may hold text itself,
   because what is written never overtakes what is read. */
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

static const ProtobufCFieldDescriptor *
field_by_name(const ProtobufCMessageDescriptor *desc, inf_slice_t name)
{
    const ProtobufCFieldDescriptor *f = inf_field_find(desc, name);

    for (unsigned i = 0; f == NULL && i < desc->n_fields; i++) {
        if (name_is_camel(desc->fields[i].name, name)) {
            f = &desc->fields[i];
        }
    }
    return f;
}

/* "max_batch_size" is "maxBatchSize". */
static bool
name_is_camel(const char *field, inf_slice_t name)
{
    size_t n = 0;
    bool upper = false;

    for (; *field != '\0'; field++) {
        char c = *field;
        if (c == '_') {
            upper = true;
            continue;
        }
        if (upper && c >= 'a' && c <= 'z') {
            c = (char) (c - 'a' + 'A');
        }
        upper = false;
        if (n == name.len || name.data[n++] != c) {
            return false;
        }
    }
    return n == name.len;
}

static bool
take_symbol(reader_t *r, char c)
{
    if (r->tokens.kind != INF_JTOKEN_SYMBOL || r->tokens.token.data[0] != c) {
        return false;
    }
    inf_jtokens_next(&r->tokens);
    return true;
}

static bool
at_null(const reader_t *r)
{
    return r->tokens.kind == INF_JTOKEN_WORD
        && inf_slice_eq(r->tokens.token, INF_SLICE("null"));
}

static inf_err_t *
read_expected(const reader_t *r, const char *what)
{
    size_t at = inf_jtokens_offset(&r->tokens);
    char shown[INF_PATH_SHOWN];
    char text[200];

    if (r->tokens.kind == INF_JTOKEN_BAD) {
        return read_bad(r, at, r->tokens.reason);
    }
    if (r->tokens.kind == INF_JTOKEN_END) {
        snprintf(text, sizeof(text), "expected %s, got the end of the text",
            what);
    } else if (r->tokens.kind == INF_JTOKEN_STRING) {
        snprintf(text, sizeof(text), "expected %s, got %s", what,
            inf_path_show(shown, r->tokens.token));
    } else {
        snprintf(text, sizeof(text), "expected %s, got \"%s\"", what,
            inf_path_show(shown, r->tokens.token));
    }
    return read_bad(r, at, text);
}

static inf_err_t *
read_bad(const reader_t *r, size_t at, const char *what)
{
    return inf_err_new(INF_ERR_INVALID_ARG, "%s%s%s at byte %zu",
        inf_path_text(&r->path), inf_path_colon(&r->path), what, at);
}

static inf_err_t *
read_bad_value(const reader_t *r, size_t at, const char *what,
    inf_slice_t text)
{
    char shown[INF_PATH_SHOWN];

    return inf_err_new(INF_ERR_INVALID_ARG, "%s%s%s, got \"%s\" at byte %zu",
        inf_path_text(&r->path), inf_path_colon(&r->path), what,
        inf_path_show(shown, text), at);
}
