#include "core/proto/text_format.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/proto/message_number.h"
#include "core/proto/message_path.h"
#include "core/proto/text_format_token.h"

#define SEEN_WORDS 4            /* fields of one message: 64 per word        */

/* The key that is looked for while a text is read. */
typedef struct {
    inf_slice_t       rest;     /* of it, from here on; data NULL: not here  */
    unsigned          fields;   /* of it, entered so far                     */
    unsigned          best;     /* as many led to the place                  */
    inf_text_place_t  place;
} seeker_t;

typedef struct {
    const char   *file;
    inf_lexer_t   lexer;
    inf_path_t    path;
    inf_buf_t     text;         /* the string literal being read             */
    unsigned      depth;
    seeker_t      seek;
} reader_t;

/* What a message is being filled with, and which fields it has had. */
typedef struct {
    ProtobufCMessage  *m;
    uint64_t           seen[SEEN_WORDS];
} target_t;

static inf_err_t *read_text(reader_t *r,
    const ProtobufCMessageDescriptor *desc, inf_slice_t text,
    ProtobufCMessage **out);
static inf_err_t *read_message(reader_t *r, ProtobufCMessage *m, char close);
static inf_err_t *read_field(reader_t *r, target_t *t);
static inf_err_t *read_name(reader_t *r, const ProtobufCMessage *m,
    const ProtobufCFieldDescriptor **f);
static inf_err_t *read_once(reader_t *r, target_t *t,
    const ProtobufCFieldDescriptor *f, const inf_token_t *name);
static inf_err_t *read_values(reader_t *r, ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f, const inf_token_t *name);
static inf_err_t *read_list(reader_t *r, ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f);
static inf_err_t *read_sought(reader_t *r, ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f, const inf_token_t *at);
static bool seek_field(seeker_t *s, const ProtobufCFieldDescriptor *f,
    inf_slice_t *index);
static bool index_is(const ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f, size_t i, inf_slice_t index);
static bool map_key_is(const ProtobufCMessage *entry, inf_slice_t index);
static inf_err_t *read_value(reader_t *r, ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f);
static inf_err_t *read_child(reader_t *r, ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f);
static inf_err_t *read_scalar(reader_t *r, const ProtobufCFieldDescriptor *f,
    inf_scalar_t *v);
static inf_err_t *read_signed(reader_t *r, int64_t min, int64_t max,
    const char *what, int64_t *v);
static inf_err_t *read_unsigned(reader_t *r, uint64_t max, uint64_t *v);
static inf_err_t *read_real(reader_t *r, double *v);
static bool real_of_token(const inf_token_t *token, double *v);
static inf_err_t *read_bool(reader_t *r, bool *v);
static inf_err_t *read_enum(reader_t *r, const ProtobufCEnumDescriptor *desc,
    int *v);
static inf_err_t *read_string(reader_t *r, inf_slice_t *v);
static bool at_symbol(const reader_t *r, char c);
static bool take_symbol(reader_t *r, char c);
static inf_err_t *read_expected(const reader_t *r, const char *what);
static inf_err_t *read_bad(const reader_t *r, const inf_token_t *at,
    const char *what);

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

inf_err_t *
inf_text_parse(const ProtobufCMessageDescriptor *desc, inf_slice_t text,
    const char *file_name, ProtobufCMessage **out)
{
    ProtobufCMessage *m;
    reader_t r = { .file = file_name };

    inf_err_t *err = read_text(&r, desc, text, &m);
    if (err != NULL) {
        return err;
    }

    err = inf_message_fold_maps(m);
    if (err != NULL) {
        inf_message_free(m);
        return err;
    }

    *out = m;
    return NULL;
}

inf_err_t *
inf_text_locate(const ProtobufCMessageDescriptor *desc, inf_slice_t text,
    inf_slice_t key, inf_text_place_t *out)
{
    ProtobufCMessage *m;
    reader_t r = {
        .file = "",
        .seek = { .rest = key, .place = { 1, 1 } }
    };

    inf_err_t *err = read_text(&r, desc, text, &m);
    if (err != NULL) {
        return err;
    }

    inf_message_free(m);
    *out = r.seek.place;
    return NULL;
}

inf_err_t *
inf_text_print(const ProtobufCMessage *m, inf_buf_t *out)
{
    print_message(out, m, 0);
    return inf_buf_status(out);
}

/* Maps are not folded yet. */
static inf_err_t *
read_text(reader_t *r, const ProtobufCMessageDescriptor *desc,
    inf_slice_t text, ProtobufCMessage **out)
{
    inf_err_t *err = inf_message_new(desc, out);
    if (err != NULL) {
        return err;
    }

    if (text.len == 0) {
        text = INF_SLICE("");
    }
    inf_lexer_init(&r->lexer, text);
    inf_buf_init(&r->text);
    err = read_message(r, *out, '\0');
    inf_buf_fini(&r->text);

    if (err != NULL) {
        inf_message_free(*out);
    }
    return err;
}

/* Up to and with close; '\0' stands for the end of the text. */
static inf_err_t *
read_message(reader_t *r, ProtobufCMessage *m, char close)
{
    target_t t = { .m = m };

    if (m->descriptor->n_fields > SEEN_WORDS * 64) {
        return inf_err_new(INF_ERR_INTERNAL,
            "message %s has more fields than the text format is built for",
            m->descriptor->name);
    }
    if (r->depth == INF_MESSAGE_DEPTH) {
        return read_bad(r, &r->lexer.token, "messages are nested too deep");
    }

    r->depth++;
    while (close == '\0' ? r->lexer.token.kind != INF_TOKEN_END
        : !take_symbol(r, close))
    {
        inf_err_t *err = read_field(r, &t);
        if (err != NULL) {
            return err;
        }
    }
    r->depth--;
    return NULL;
}

static inf_err_t *
read_field(reader_t *r, target_t *t)
{
    const ProtobufCFieldDescriptor *f = NULL;
    inf_token_t name = r->lexer.token;

    inf_err_t *err = read_name(r, t->m, &f);
    if (err != NULL) {
        return err;
    }

    size_t mark = inf_path_push(&r->path, inf_slice_str(f->name));
    err = read_once(r, t, f, &name);
    if (err == NULL) {
        err = read_values(r, t->m, f, &name);
    }
    inf_path_pop(&r->path, mark);
    if (err != NULL) {
        return err;
    }

    if (!take_symbol(r, ',')) {
        take_symbol(r, ';');
    }
    return NULL;
}

static inf_err_t *
read_name(reader_t *r, const ProtobufCMessage *m,
    const ProtobufCFieldDescriptor **f)
{
    const inf_token_t *token = &r->lexer.token;

    if (token->kind != INF_TOKEN_NAME) {
        return read_expected(r, r->depth > 1
            ? "a field name or the closing bracket" : "a field name");
    }

    *f = inf_field_find(m->descriptor, token->text);
    if (*f != NULL) {
        inf_lexer_next(&r->lexer);
        return NULL;
    }

    char what[200];
    const char *near = inf_field_suggest(m->descriptor, token->text);
    snprintf(what, sizeof(what), near != NULL
        ? "unknown field of %.80s, did you mean \"%.64s\"?"
        : "unknown field of %.80s", m->descriptor->name, near);
    inf_path_push(&r->path, token->text);
    return read_bad(r, token, what);
}

/* A field that is not repeated, and a oneof, may stand once. */
static inf_err_t *
read_once(reader_t *r, target_t *t, const ProtobufCFieldDescriptor *f,
    const inf_token_t *name)
{
    if (inf_field_is_repeated(f)) {
        return NULL;
    }

    size_t i = inf_field_index(t->m->descriptor, f);
    uint64_t bit = UINT64_C(1) << (i % 64);
    if ((t->seen[i / 64] & bit) != 0) {
        return read_bad(r, name, "specified multiple times, but the field is "
            "not repeated");
    }
    t->seen[i / 64] |= bit;

    if (inf_field_is_oneof(f)) {
        const ProtobufCFieldDescriptor *other = inf_field_oneof_set(t->m, f);
        if (other != NULL) {
            char what[200];
            snprintf(what, sizeof(what),
                "only one of \"%.64s\" and \"%.64s\" may be specified",
                other->name, f->name);
            return read_bad(r, name, what);
        }
    }
    return NULL;
}

static inf_err_t *
read_values(reader_t *r, ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f, const inf_token_t *name)
{
    bool colon = take_symbol(r, ':');

    if (!colon && f->type != PROTOBUF_C_TYPE_MESSAGE) {
        return read_expected(r, "\":\"");
    }
    if (inf_field_is_repeated(f) && take_symbol(r, '[')) {
        return read_list(r, m, f);
    }
    return read_sought(r, m, f, name);
}

/* After '['. */
static inf_err_t *
read_list(reader_t *r, ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    if (take_symbol(r, ']')) {
        return NULL;
    }

    for (;;) {
        inf_token_t at = r->lexer.token;
        inf_err_t *err = read_sought(r, m, f, &at);
        if (err != NULL) {
            return err;
        }
        if (take_symbol(r, ']')) {
            return NULL;
        }
        if (!take_symbol(r, ',')) {
            return read_expected(r, "\",\" or \"]\"");
        }
    }
}

/* Reads one value that stands at `at`, and notes the place if it is on the
   way to the key. */
static inf_err_t *
read_sought(reader_t *r, ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f, const inf_token_t *at)
{
    seeker_t *s = &r->seek;
    inf_slice_t outer = s->rest;
    inf_slice_t index = { NULL, 0 };
    size_t i = inf_field_is_repeated(f) ? inf_field_count(m, f) : 0;

    if (outer.data == NULL) {
        return read_value(r, m, f);
    }

    /* which entry of a map it is shows when it has been read */
    bool here = seek_field(s, f, &index);
    bool map = inf_field_is_map(f);
    bool enter = here && (index.data == NULL
        || (!map && index_is(m, f, i, index)));
    if (!enter) {
        s->rest = (inf_slice_t) { NULL, 0 };
    }

    s->fields++;
    if (enter && s->fields > s->best) {
        s->best = s->fields;
        s->place = (inf_text_place_t) { at->line, at->column };
    }
    inf_err_t *err = read_value(r, m, f);
    if (err == NULL && here && !enter && map && index_is(m, f, i, index)
        && s->fields > s->best)
    {
        s->best = s->fields;
        s->place = (inf_text_place_t) { at->line, at->column };
    }
    s->fields--;
    s->rest = outer;
    return err;
}

/* Whether the key goes on with f; index is what it has between brackets,
   data NULL: nothing.  s->rest is then what follows. */
static bool
seek_field(seeker_t *s, const ProtobufCFieldDescriptor *f, inf_slice_t *index)
{
    size_t len = strlen(f->name);
    inf_slice_t key = s->rest;

    if (key.len < len || memcmp(key.data, f->name, len) != 0) {
        return false;
    }
    key.data += len;
    key.len -= len;

    if (key.len > 0 && key.data[0] == '[') {
        const char *end = memchr(key.data, ']', key.len);
        if (end == NULL) {
            return false;
        }
        *index = inf_slice(key.data + 1, (size_t) (end - key.data) - 1);
        key.len -= (size_t) (end + 1 - key.data);
        key.data = end + 1;
    }

    if (key.len > 0 && key.data[0] != '.') {
        return false;
    }
    s->rest = key.len > 0 ? inf_slice(key.data + 1, key.len - 1)
        : inf_slice(key.data, 0);
    return true;
}

/* Entry i of f is the one that index names: by its place, in a map by its
   key. */
static bool
index_is(const ProtobufCMessage *m, const ProtobufCFieldDescriptor *f,
    size_t i, inf_slice_t index)
{
    char number[24];

    if (inf_field_is_map(f)) {
        return map_key_is(inf_field_get(m, f, i).m, index);
    }
    snprintf(number, sizeof(number), "%zu", i);
    return inf_slice_eq(index, inf_slice_str(number));
}

static bool
map_key_is(const ProtobufCMessage *entry, inf_slice_t index)
{
    const ProtobufCFieldDescriptor *f = inf_field_find(entry->descriptor,
        INF_SLICE("key"));
    inf_scalar_t v = inf_field_get(entry, f, 0);
    char number[24];

    if (f->type == PROTOBUF_C_TYPE_STRING) {
        return index.len == v.s.len + 2
            && memcmp(index.data + 1, v.s.data, v.s.len) == 0;
    }

    bool is_signed = f->type == PROTOBUF_C_TYPE_INT32
        || f->type == PROTOBUF_C_TYPE_INT64;
    if (is_signed) {
        snprintf(number, sizeof(number), "%lld", (long long) v.i);
    } else {
        snprintf(number, sizeof(number), "%llu", (unsigned long long) v.u);
    }
    return inf_slice_eq(index, inf_slice_str(number));
}

static inf_err_t *
read_value(reader_t *r, ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    if (f->type == PROTOBUF_C_TYPE_MESSAGE) {
        return read_child(r, m, f);
    }

    inf_scalar_t v = { 0 };
    inf_token_t at = r->lexer.token;
    inf_err_t *err = read_scalar(r, f, &v);
    if (err != NULL) {
        return err;
    }

    err = inf_field_put(m, f, v);
    if (err != NULL && inf_err_code(err) == INF_ERR_INVALID_ARG) {
        inf_err_t *placed = read_bad(r, &at, inf_err_msg(err));
        inf_err_free(err);
        return placed;
    }
    return err;
}

static inf_err_t *
read_child(reader_t *r, ProtobufCMessage *m, const ProtobufCFieldDescriptor *f)
{
    ProtobufCMessage *child;
    char close;

    if (take_symbol(r, '{')) {
        close = '}';
    } else if (take_symbol(r, '<')) {
        close = '>';
    } else {
        return read_expected(r, "\"{\"");
    }

    inf_err_t *err = inf_field_put_message(m, f, &child);
    return err != NULL ? err : read_message(r, child, close);
}

static inf_err_t *
read_scalar(reader_t *r, const ProtobufCFieldDescriptor *f, inf_scalar_t *v)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        return read_signed(r, INT32_MIN, INT32_MAX, "an integer", &v->i);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return read_signed(r, INT64_MIN, INT64_MAX, "an integer", &v->i);
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
    return read_bad(r, &r->lexer.token, "a message is no scalar");
}

static inf_err_t *
read_signed(reader_t *r, int64_t min, int64_t max, const char *what,
    int64_t *v)
{
    bool negative = take_symbol(r, '-');
    const inf_token_t *token = &r->lexer.token;
    uint64_t digits;

    if (token->kind != INF_TOKEN_INTEGER) {
        return read_expected(r, what);
    }

    uint64_t limit = negative ? (uint64_t) max + (min < 0) : (uint64_t) max;
    if (!inf_token_integer(token->text, &digits) || digits > limit) {
        return read_bad(r, token, "the integer is out of range");
    }

    *v = negative ? (int64_t) (~digits + 1) : (int64_t) digits;
    inf_lexer_next(&r->lexer);
    return NULL;
}

static inf_err_t *
read_unsigned(reader_t *r, uint64_t max, uint64_t *v)
{
    const inf_token_t *token = &r->lexer.token;

    if (token->kind != INF_TOKEN_INTEGER) {
        return read_expected(r, "an integer that is not negative");
    }
    if (!inf_token_integer(token->text, v) || *v > max) {
        return read_bad(r, token, "the integer is out of range");
    }
    inf_lexer_next(&r->lexer);
    return NULL;
}

static inf_err_t *
read_real(reader_t *r, double *v)
{
    bool negative = take_symbol(r, '-');

    if (!real_of_token(&r->lexer.token, v)) {
        return read_expected(r, "a number");
    }
    if (negative) {
        *v = -*v;
    }
    inf_lexer_next(&r->lexer);
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

    if (token->kind == INF_TOKEN_FLOAT) {
        if (text.data[text.len - 1] == 'f' || text.data[text.len - 1] == 'F') {
            text.len--;
        }
        return inf_number_parse_double(text, v);
    }

    /* reals are decimal: 010 and 0x10 could be misread */
    return token->kind == INF_TOKEN_INTEGER
        && (text.len == 1 || text.data[0] != '0')
        && inf_number_parse_double(text, v);
}

static inf_err_t *
read_bool(reader_t *r, bool *v)
{
    static const struct {
        const char  *name;
        bool         value;
    } names[] = {
        { "true", true }, { "True", true }, { "t", true },
        { "false", false }, { "False", false }, { "f", false },
    };
    const inf_token_t *token = &r->lexer.token;
    uint64_t digits;

    if (token->kind == INF_TOKEN_INTEGER
        && inf_token_integer(token->text, &digits) && digits <= 1)
    {
        *v = digits == 1;
        inf_lexer_next(&r->lexer);
        return NULL;
    }

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (token->kind == INF_TOKEN_NAME
            && inf_slice_eq(token->text, inf_slice_str(names[i].name)))
        {
            *v = names[i].value;
            inf_lexer_next(&r->lexer);
            return NULL;
        }
    }
    return read_expected(r, "true or false");
}

static inf_err_t *
read_enum(reader_t *r, const ProtobufCEnumDescriptor *desc, int *v)
{
    const inf_token_t *token = &r->lexer.token;

    if (token->kind == INF_TOKEN_NAME) {
        for (unsigned i = 0; i < desc->n_value_names; i++) {
            const ProtobufCEnumValueIndex *known = &desc->values_by_name[i];
            if (inf_slice_eq(token->text, inf_slice_str(known->name))) {
                *v = desc->values[known->index].value;
                inf_lexer_next(&r->lexer);
                return NULL;
            }
        }

        char what[160];
        snprintf(what, sizeof(what), "a name of enum %.80s, such as \"%.64s\"",
            desc->name, desc->n_values > 0 ? desc->values[0].name : "");
        return read_expected(r, what);
    }

    int64_t number;
    inf_err_t *err = read_signed(r, INT32_MIN, INT32_MAX,
        "an enum's name or number", &number);
    if (err == NULL) {
        *v = (int) number;
    }
    return err;
}

/* Literals side by side are one string; v is a view of r->text. */
static inf_err_t *
read_string(reader_t *r, inf_slice_t *v)
{
    if (r->lexer.token.kind != INF_TOKEN_STRING) {
        return read_expected(r, "a string");
    }

    inf_buf_reset(&r->text);
    while (r->lexer.token.kind == INF_TOKEN_STRING) {
        inf_token_unescape(r->lexer.token.text, &r->text);
        inf_lexer_next(&r->lexer);
    }
    *v = inf_buf_slice(&r->text);
    return inf_buf_status(&r->text);
}

static bool
at_symbol(const reader_t *r, char c)
{
    return r->lexer.token.kind == INF_TOKEN_SYMBOL
        && r->lexer.token.text.data[0] == c;
}

static bool
take_symbol(reader_t *r, char c)
{
    if (!at_symbol(r, c)) {
        return false;
    }
    inf_lexer_next(&r->lexer);
    return true;
}

static inf_err_t *
read_expected(const reader_t *r, const char *what)
{
    const inf_token_t *token = &r->lexer.token;
    char shown[INF_PATH_SHOWN];
    char text[300];

    if (token->kind == INF_TOKEN_BAD) {
        return read_bad(r, token, r->lexer.reason);
    }
    if (token->kind == INF_TOKEN_END) {
        snprintf(text, sizeof(text), "expected %s, got the end of the text",
            what);
    } else if (token->kind == INF_TOKEN_STRING) {
        snprintf(text, sizeof(text), "expected %s, got %s", what,
            inf_path_show(shown, token->text));
    } else {
        snprintf(text, sizeof(text), "expected %s, got \"%s\"", what,
            inf_path_show(shown, token->text));
    }
    return read_bad(r, token, text);
}

static inf_err_t *
read_bad(const reader_t *r, const inf_token_t *at, const char *what)
{
    return inf_err_new(INF_ERR_INVALID_ARG, "%s:%zu:%zu: %s%s%s", r->file,
        at->line, at->column, inf_path_text(&r->path),
        inf_path_colon(&r->path), what);
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
