#include "core/proto/message_reader.h"

#include <stdio.h>
#include <string.h>

#define SEEN_WORDS 4            /* fields of one message: 64 per word        */

/* A message being read, and its fields so far. */
typedef struct {
    ProtobufCMessage  *m;
    uint64_t           seen[SEEN_WORDS];
} target_t;

static inf_err_t *read_root(inf_message_reader_t *r, ProtobufCMessage *m);
static inf_err_t *read_message(inf_message_reader_t *r, ProtobufCMessage *m);
static inf_err_t *read_fields(inf_message_reader_t *r, ProtobufCMessage *m,
    char close);
static inf_err_t *read_field(inf_message_reader_t *r, target_t *t);
static const ProtobufCFieldDescriptor *find_field(
    const inf_message_reader_t *r, const ProtobufCMessageDescriptor *desc,
    inf_slice_t name);
static bool name_is_camel(const char *field, inf_slice_t name);
static inf_err_t *unknown_field(inf_message_reader_t *r,
    const ProtobufCMessageDescriptor *desc, inf_slice_t name, size_t at);
static inf_err_t *read_values(inf_message_reader_t *r, target_t *t,
    const ProtobufCFieldDescriptor *f, size_t at);
static inf_err_t *read_once(inf_message_reader_t *r, target_t *t,
    const ProtobufCFieldDescriptor *f, size_t at);
static inf_err_t *read_list(inf_message_reader_t *r, ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f);
static inf_err_t *read_map(inf_message_reader_t *r, ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f);
static inf_err_t *read_entry(inf_message_reader_t *r, ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f);
static inf_err_t *read_sought(inf_message_reader_t *r, ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f, size_t at);
static void seek_found(inf_message_seek_t *s, size_t at);
static bool seek_field(inf_message_seek_t *s,
    const ProtobufCFieldDescriptor *f, inf_slice_t *index);
static bool index_is(const ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f, size_t i, inf_slice_t index);
static bool map_key_is(const ProtobufCMessage *entry, inf_slice_t index);
static inf_err_t *read_value(inf_message_reader_t *r, ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f);
static inf_err_t *read_end(inf_message_reader_t *r, char close);
static bool at_symbol(const inf_message_reader_t *r, char c);
static bool at_null(const inf_message_reader_t *r);

inf_err_t *
inf_message_read(inf_message_reader_t *r,
    const ProtobufCMessageDescriptor *desc, ProtobufCMessage **out)
{
    inf_err_t *err = inf_message_new(desc, out);
    if (err != NULL) {
        return err;
    }

    if (r->text.len == 0) {
        r->text = INF_SLICE("");
    }
    inf_buf_init(&r->string);
    inf_reader_next(r);
    err = read_root(r, *out);
    inf_buf_fini(&r->string);

    if (err == NULL) {
        err = inf_message_fold_maps(*out);
    }
    if (err != NULL) {
        inf_message_free(*out);
    }
    return err;
}

static inf_err_t *
read_root(inf_message_reader_t *r, ProtobufCMessage *m)
{
    if (!r->syntax->json) {
        return read_fields(r, m, '\0');
    }

    inf_err_t *err = read_message(r, m);
    if (err == NULL && r->token.kind != INF_TOKEN_END) {
        err = inf_reader_expected(r, "the end of the text");
    }
    return err;
}

static inf_err_t *
read_message(inf_message_reader_t *r, ProtobufCMessage *m)
{
    size_t at = r->token.at;
    char close = '}';

    if (!inf_reader_take(r, '{')) {
        if (r->syntax->json || !inf_reader_take(r, '<')) {
            return inf_reader_expected(r, r->syntax->object);
        }
        close = '>';
    }

    if (r->depth == INF_MESSAGE_DEPTH) {
        return inf_reader_bad(r, r->syntax->json ? at : r->token.at,
            r->syntax->too_deep);
    }
    return read_fields(r, m, close);
}

/* Reads fields up to and including close; '\0': the end of the text. */
static inf_err_t *
read_fields(inf_message_reader_t *r, ProtobufCMessage *m, char close)
{
    target_t t = { .m = m };

    if (m->descriptor->n_fields > SEEN_WORDS * 64) {
        return inf_err_new(INF_ERR_INTERNAL,
            "message %s has more fields than readers are built for",
            m->descriptor->name);
    }

    r->depth++;
    while (close == '\0' ? r->token.kind != INF_TOKEN_END
        : !inf_reader_take(r, close))
    {
        inf_err_t *err = read_field(r, &t);
        if (err == NULL) {
            err = read_end(r, close);
        }
        if (err != NULL) {
            return err;
        }
    }
    r->depth--;
    return NULL;
}

static inf_err_t *
read_field(inf_message_reader_t *r, target_t *t)
{
    const ProtobufCMessageDescriptor *desc = t->m->descriptor;
    size_t at = r->token.at;
    inf_slice_t name;

    inf_err_t *err = r->syntax->name(r, &name);
    if (err != NULL) {
        return err;
    }

    const ProtobufCFieldDescriptor *f = find_field(r, desc, name);
    if (f == NULL) {
        return unknown_field(r, desc, name, at);
    }

    size_t mark = inf_path_push(&r->path, inf_slice_str(f->name));
    err = read_values(r, t, f, at);
    inf_path_pop(&r->path, mark);
    return err;
}

static const ProtobufCFieldDescriptor *
find_field(const inf_message_reader_t *r,
    const ProtobufCMessageDescriptor *desc, inf_slice_t name)
{
    const ProtobufCFieldDescriptor *f = inf_field_find(desc, name);

    for (unsigned i = 0; r->syntax->json && f == NULL && i < desc->n_fields;
        i++)
    {
        if (name_is_camel(desc->fields[i].name, name)) {
            f = &desc->fields[i];
        }
    }
    return f;
}

/* Whether name is field in lowerCamelCase. */
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

static inf_err_t *
unknown_field(inf_message_reader_t *r, const ProtobufCMessageDescriptor *desc,
    inf_slice_t name, size_t at)
{
    const char *near = inf_field_suggest(desc, name);
    char what[200];

    snprintf(what, sizeof(what), near != NULL
        ? "unknown field of %.80s, did you mean \"%.64s\"?"
        : "unknown field of %.80s", desc->name, near);
    inf_path_push(&r->path, name);
    return inf_reader_bad(r, at, what);
}

static inf_err_t *
read_values(inf_message_reader_t *r, target_t *t,
    const ProtobufCFieldDescriptor *f, size_t at)
{
    if (r->syntax->json && at_null(r)) {
        inf_reader_next(r);
        inf_field_clear(t->m, f);
        return NULL;
    }

    inf_err_t *err = read_once(r, t, f, at);
    if (err != NULL) {
        return err;
    }

    /* in the text format a colon before a message is optional */
    if (!r->syntax->json && !inf_reader_take(r, ':')
        && f->type != PROTOBUF_C_TYPE_MESSAGE)
    {
        return inf_reader_expected(r, "\":\"");
    }
    if (r->syntax->key != NULL && inf_field_is_map(f)) {
        return read_map(r, t->m, f);
    }
    if (inf_field_is_repeated(f) && inf_reader_take(r, '[')) {
        return read_list(r, t->m, f);
    }
    return read_sought(r, t->m, f, at);
}

/* Checks that a singular field is given once, or clears it if the last value
   counts; a oneof may have one member.  In the text format a field without
   presence counts as given once its value is not the default. */
static inf_err_t *
read_once(inf_message_reader_t *r, target_t *t,
    const ProtobufCFieldDescriptor *f, size_t at)
{
    if (inf_field_is_repeated(f) && !r->syntax->json) {
        return NULL;
    }

    size_t i = inf_field_index(t->m->descriptor, f);
    uint64_t bit = UINT64_C(1) << (i % 64);
    if ((t->seen[i / 64] & bit) != 0) {
        if (!r->syntax->json && inf_field_count(t->m, f) != 0) {
            return inf_reader_bad(r, at, "specified multiple times, but the "
                "field is not repeated");
        }
        inf_field_clear(t->m, f);
    }
    t->seen[i / 64] |= bit;

    if (inf_field_is_oneof(f)) {
        const ProtobufCFieldDescriptor *other = inf_field_oneof_set(t->m, f);
        if (other != NULL) {
            char what[200];
            snprintf(what, sizeof(what),
                "only one of \"%.64s\" and \"%.64s\" may be %s",
                other->name, f->name, r->syntax->verb);
            return inf_reader_bad(r, at, what);
        }
    }
    return NULL;
}

/* Reads a list after '['. */
static inf_err_t *
read_list(inf_message_reader_t *r, ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f)
{
    bool ended = inf_reader_take(r, ']');

    for (size_t i = 0; !ended; i++) {
        size_t mark = r->path.len;
        if (r->syntax->json) {
            inf_path_push_index(&r->path, i);
        }
        inf_err_t *err = read_sought(r, m, f, r->token.at);
        inf_path_pop(&r->path, mark);
        if (err != NULL) {
            return err;
        }

        bool comma = inf_reader_take(r, ',');
        ended = (!comma || r->syntax->json) && inf_reader_take(r, ']');
        if (!comma && !ended) {
            return inf_reader_expected(r, "\",\" or \"]\"");
        }
    }
    return NULL;
}

static inf_err_t *
read_map(inf_message_reader_t *r, ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f)
{
    if (!inf_reader_take(r, '{')) {
        return inf_reader_expected(r, r->syntax->object);
    }

    while (!inf_reader_take(r, '}')) {
        inf_err_t *err = read_entry(r, m, f);
        if (err == NULL) {
            err = read_end(r, '}');
        }
        if (err != NULL) {
            return err;
        }
    }
    return NULL;
}

static inf_err_t *
read_entry(inf_message_reader_t *r, ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f)
{
    const ProtobufCMessageDescriptor *desc = f->descriptor;
    const ProtobufCFieldDescriptor *key = &desc->fields[0];
    ProtobufCMessage *entry;
    inf_scalar_t v = { 0 };
    inf_slice_t name;
    size_t at = r->token.at;

    inf_err_t *err = r->syntax->name(r, &name);
    if (err != NULL) {
        return err;
    }

    size_t mark = inf_path_push_key(&r->path, name);
    err = r->syntax->key(r, key, name, at, &v);
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

/* ---- the searched key ---- */

/* Reads one value at `at`, and notes its position if it is on the path to the
   key. */
static inf_err_t *
read_sought(inf_message_reader_t *r, ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f, size_t at)
{
    inf_message_seek_t *s = &r->seek;
    inf_slice_t outer = s->rest;
    inf_slice_t index = { NULL, 0 };

    if (outer.data == NULL) {
        return read_value(r, m, f);
    }

    /* the key of a map's entry is known after reading it */
    size_t i = inf_field_is_repeated(f) ? inf_field_count(m, f) : 0;
    bool here = seek_field(s, f, &index);
    bool map = inf_field_is_map(f);
    bool enter = here && (index.data == NULL
        || (!map && index_is(m, f, i, index)));
    if (!enter) {
        s->rest = (inf_slice_t) { NULL, 0 };
    }

    s->fields++;
    if (enter) {
        seek_found(s, at);
    }
    inf_err_t *err = read_value(r, m, f);
    if (err == NULL && here && !enter && map && index_is(m, f, i, index)) {
        seek_found(s, at);
    }
    s->fields--;
    s->rest = outer;
    return err;
}

static void
seek_found(inf_message_seek_t *s, size_t at)
{
    if (s->fields > s->best) {
        s->best = s->fields;
        s->place = at;
    }
}

/* Whether the key continues with f; index is its text between brackets, data
   NULL: none.  s->rest becomes the rest. */
static bool
seek_field(inf_message_seek_t *s, const ProtobufCFieldDescriptor *f,
    inf_slice_t *index)
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

/* Whether index names entry i of f: by its number, in a map by its key. */
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

/* ---- values and tokens ---- */

static inf_err_t *
read_value(inf_message_reader_t *r, ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f)
{
    inf_err_t *err;

    if (r->syntax->json && at_null(r)) {
        return inf_reader_expected(r, "a value");
    }

    if (f->type == PROTOBUF_C_TYPE_MESSAGE) {
        ProtobufCMessage *child;
        err = inf_field_put_message(m, f, &child);
        return err != NULL ? err : read_message(r, child);
    }

    inf_scalar_t v = { 0 };
    size_t at = r->token.at;
    err = r->syntax->scalar(r, f, &v);
    if (err != NULL) {
        return err;
    }

    err = inf_field_put(m, f, v);
    if (err != NULL && inf_err_code(err) == INF_ERR_INVALID_ARG) {
        inf_err_t *placed = inf_reader_bad(r, at, inf_err_msg(err));
        inf_err_free(err);
        return placed;
    }
    return err;
}

/* Reads the separator after a field or entry.  JSON requires commas between
   them; the text format allows a comma or semicolon after each. */
static inf_err_t *
read_end(inf_message_reader_t *r, char close)
{
    bool comma = inf_reader_take(r, ',');

    if (!r->syntax->json) {
        if (!comma) {
            inf_reader_take(r, ';');
        }
        return NULL;
    }
    return comma || at_symbol(r, close) ? NULL
        : inf_reader_expected(r, "\",\" or \"}\"");
}

void
inf_reader_next(inf_message_reader_t *r)
{
    if (r->token.kind != INF_TOKEN_BAD) {
        r->token = r->syntax->next(r);
    }
}

static bool
at_symbol(const inf_message_reader_t *r, char c)
{
    return r->token.kind == INF_TOKEN_SYMBOL && r->token.text.data[0] == c;
}

static bool
at_null(const inf_message_reader_t *r)
{
    return r->token.kind == INF_TOKEN_NAME
        && inf_slice_eq(r->token.text, INF_SLICE("null"));
}

bool
inf_reader_take(inf_message_reader_t *r, char c)
{
    if (!at_symbol(r, c)) {
        return false;
    }
    inf_reader_next(r);
    return true;
}

/* ---- errors ---- */

inf_err_t *
inf_reader_expected(const inf_message_reader_t *r, const char *what)
{
    const inf_token_t *token = &r->token;
    const char *quote = token->kind == INF_TOKEN_STRING ? "" : "\"";
    char shown[INF_PATH_SHOWN];
    char text[300];

    if (token->kind == INF_TOKEN_BAD) {
        return inf_reader_bad(r, token->at, r->reason);
    }
    if (token->kind == INF_TOKEN_END) {
        snprintf(text, sizeof(text), "expected %s, got the end of the text",
            what);
    } else {
        snprintf(text, sizeof(text), "expected %s, got %s%s%s", what, quote,
            inf_path_show(shown, token->text), quote);
    }
    return inf_reader_bad(r, token->at, text);
}

inf_err_t *
inf_reader_bad_value(const inf_message_reader_t *r, size_t at,
    const char *what, inf_slice_t value)
{
    char shown[INF_PATH_SHOWN];
    char text[200];

    snprintf(text, sizeof(text), "%s, got \"%s\"", what,
        inf_path_show(shown, value));
    return inf_reader_bad(r, at, text);
}

inf_err_t *
inf_reader_bad(const inf_message_reader_t *r, size_t at, const char *what)
{
    size_t line;
    size_t column;

    if (r->file == NULL) {
        return inf_err_new(INF_ERR_INVALID_ARG, "%s%s%s at byte %zu",
            inf_path_text(&r->path), inf_path_colon(&r->path), what, at);
    }

    inf_path_position(r->text, at, &line, &column);
    return inf_err_new(INF_ERR_INVALID_ARG, "%s:%zu:%zu: %s%s%s", r->file,
        line, column, inf_path_text(&r->path), inf_path_colon(&r->path), what);
}
