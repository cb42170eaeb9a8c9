/*
 * infer_quick.c - see infer_quick.h.
 *
 * Texts are views until the whole object has been understood; only then is
 * anything allocated, so declining costs a look at the bytes and no more.
 */

#include <string.h>

#include "core/proto/infer_quick.h"

#define MAX_DIGITS      18u     /* fewer than any int64 may have             */
#define MAX_CUSTOM      16u     /* custom parameters                         */
#define RESERVED_PREFIX "triton_"

typedef struct {
    const char *p;
    const char *end;
} cursor_t;

/* Members seen in the objects of one description. */
enum {
    SEEN_NAME           = 1u << 0,
    SEEN_DATATYPE       = 1u << 1,
    SEEN_SHAPE          = 1u << 2,
    SEEN_PARAMETERS     = 1u << 3,
    SEEN_ID             = 1u << 4,
    SEEN_BINARY_SIZE    = 1u << 5,
    SEEN_BINARY         = 1u << 6,
    SEEN_CLASSIFICATION = 1u << 7,
    SEEN_SEQUENCE       = 1u << 8,
    SEEN_START          = 1u << 9,
    SEEN_END            = 1u << 10,
    SEEN_PRIORITY       = 1u << 11,
    SEEN_TIMEOUT        = 1u << 12
};

typedef struct {
    unsigned    seen;
    inf_slice_t name;
    uint32_t    datatype;
    uint32_t    dim_count;
    uint64_t    element_count;
    uint64_t    binary_size;
    int64_t     shape[INF_MAX_DIMS];
} input_t;

typedef struct {
    unsigned    seen;
    inf_slice_t name;
    bool        binary;
    uint64_t    classification;
} output_t;

typedef struct {
    unsigned              seen;
    inf_infer_request_t   request;
    inf_infer_parameter_t custom[MAX_CUSTOM];   /* request.parameter_count   */
} top_t;

/* Reads the value of the member called name; false: declines. */
typedef bool (*member_fn)(cursor_t *c, inf_slice_t name, void *out);

static bool read_object(cursor_t *c, member_fn member, void *out);
static bool read_text(cursor_t *c, inf_slice_t *out);
static bool read_uint(cursor_t *c, uint64_t *out);
static bool read_bool(cursor_t *c, bool *out);
static bool read_shape(cursor_t *c, input_t *in);
static bool input_member(cursor_t *c, inf_slice_t name, void *out);
static bool input_parameter(cursor_t *c, inf_slice_t name, void *out);
static bool output_member(cursor_t *c, inf_slice_t name, void *out);
static bool output_parameter(cursor_t *c, inf_slice_t name, void *out);
static bool top_member(cursor_t *c, inf_slice_t name, void *out);
static bool top_parameter(cursor_t *c, inf_slice_t name, void *out);
static bool read_flag(cursor_t *c, top_t *top, uint16_t flag);
static bool read_sequence(cursor_t *c, inf_infer_request_t *out);
static bool read_custom(cursor_t *c, inf_slice_t name, top_t *top);
static bool read_custom_int(cursor_t *c, int64_t *out);
static inf_err_t *keep_input(const inf_walk_t *w, const input_t *in,
    const inf_infer_span_t *span, inf_infer_input_t *out);
static inf_err_t *keep_top(const inf_walk_t *w, top_t *top,
    inf_infer_request_t *out);
static inf_err_t *keep_text(const inf_walk_t *w, inf_slice_t *text);

static inline bool
is(inf_slice_t name, const char *word)
{
    size_t len = strlen(word);

    return name.len == len && memcmp(name.data, word, len) == 0;
}

/* False: it stands there for the second time. */
static inline bool
first(unsigned *seen, unsigned bit)
{
    bool fresh = (*seen & bit) == 0;

    *seen |= bit;
    return fresh;
}

/* The next byte that is no white space; 0 at the end. */
static inline char
peek(cursor_t *c)
{
    while (c->p != c->end && (*c->p == ' ' || *c->p == '\n' || *c->p == '\r'
                              || *c->p == '\t'))
    {
        c->p++;
    }

    return c->p != c->end ? *c->p : '\0';
}

static inline bool
take(cursor_t *c, char wanted)
{
    if (peek(c) != wanted) {
        return false;
    }

    c->p++;
    return true;
}

/* ---- inputs ---- */

bool
inf_quick_input(const inf_walk_t *w, inf_slice_t text,
    const inf_infer_span_t *span, inf_infer_input_t *out, size_t *used,
    inf_err_t **err)
{
    cursor_t c = { text.data, text.data + text.len };
    const unsigned needed = SEEN_NAME | SEEN_DATATYPE | SEEN_SHAPE;
    input_t in;

    in.seen = 0;
    if (!read_object(&c, input_member, &in) || (in.seen & needed) != needed
        || !inf_walk_elements(in.datatype, in.shape, in.dim_count,
                              &in.element_count))
    {
        return false;
    }

    *used = (size_t) (c.p - text.data);
    *err = keep_input(w, &in, span, out);
    return true;
}

static bool
input_member(cursor_t *c, inf_slice_t name, void *out)
{
    input_t *in = out;
    inf_slice_t text;

    if (is(name, "name")) {
        return first(&in->seen, SEEN_NAME) && read_text(c, &in->name);
    }

    if (is(name, "shape")) {
        return first(&in->seen, SEEN_SHAPE) && read_shape(c, in);
    }

    if (is(name, "datatype")) {
        if (!first(&in->seen, SEEN_DATATYPE) || !read_text(c, &text)) {
            return false;
        }

        in->datatype = inf_datatype_parse(text.data, text.len);
        return in->datatype != INF_TYPE_INVALID;
    }

    return is(name, "parameters") && first(&in->seen, SEEN_PARAMETERS)
           && take(c, '{') && read_object(c, input_parameter, in)
           && take(c, '}');
}

static bool
input_parameter(cursor_t *c, inf_slice_t name, void *out)
{
    input_t *in = out;

    return is(name, "binary_data_size") && first(&in->seen, SEEN_BINARY_SIZE)
           && read_uint(c, &in->binary_size);
}

static bool
read_shape(cursor_t *c, input_t *in)
{
    in->dim_count = 0;
    if (!take(c, '[')) {
        return false;
    }

    if (take(c, ']')) {
        return true;
    }

    do {
        uint64_t dim;
        if (in->dim_count == INF_MAX_DIMS || !read_uint(c, &dim)) {
            return false;
        }

        in->shape[in->dim_count++] = (int64_t) dim;
    } while (take(c, ','));

    return take(c, ']');
}

static inf_err_t *
keep_input(const inf_walk_t *w, const input_t *in,
    const inf_infer_span_t *span, inf_infer_input_t *out)
{
    size_t count = in->dim_count;
    int64_t *shape = inf_arena_alloc(w->arena, (count + 1) * sizeof(*shape));

    if (shape == NULL) {
        return inf_err_nomem();
    }

    for (size_t i = 0; i < count; i++) {
        shape[i] = in->shape[i];
    }

    *out = (inf_infer_input_t) {
        .name = in->name,
        .datatype = in->datatype,
        .dim_count = in->dim_count,
        .shape = shape,
        .element_count = in->element_count
    };

    inf_err_t *err = keep_text(w, &out->name);
    if (err != NULL) {
        return err;
    }

    bool binary = (in->seen & SEEN_BINARY_SIZE) != 0;
    return inf_walk_source(w, span, binary, binary ? in->binary_size : 0,
                           out);
}

/* ---- outputs ---- */

bool
inf_quick_output(const inf_walk_t *w, inf_slice_t text,
    inf_infer_output_t *out, size_t *used, inf_err_t **err)
{
    cursor_t c = { text.data, text.data + text.len };
    output_t o = { .seen = 0 };

    if (!read_object(&c, output_member, &o) || (o.seen & SEEN_NAME) == 0) {
        return false;
    }

    *used = (size_t) (c.p - text.data);
    *out = (inf_infer_output_t) {
        .name = o.name,
        .binary = o.binary,
        .classification = inf_walk_classification(o.classification)
    };
    *err = keep_text(w, &out->name);
    return true;
}

static bool
output_member(cursor_t *c, inf_slice_t name, void *out)
{
    output_t *o = out;

    if (is(name, "name")) {
        return first(&o->seen, SEEN_NAME) && read_text(c, &o->name);
    }

    return is(name, "parameters") && first(&o->seen, SEEN_PARAMETERS)
           && take(c, '{') && read_object(c, output_parameter, o)
           && take(c, '}');
}

static bool
output_parameter(cursor_t *c, inf_slice_t name, void *out)
{
    output_t *o = out;

    if (is(name, "binary_data")) {
        return first(&o->seen, SEEN_BINARY) && read_bool(c, &o->binary);
    }

    return is(name, "classification")
           && first(&o->seen, SEEN_CLASSIFICATION)
           && read_uint(c, &o->classification);
}

/* ---- the top level ---- */

bool
inf_quick_top(const inf_walk_t *w, inf_slice_t text, inf_infer_request_t *out,
    size_t *used, inf_err_t **err)
{
    cursor_t c = { text.data, text.data + text.len };
    top_t top;

    top.seen = 0;
    top.request = *out;
    top.request.parameter_count = 0;
    if (!read_object(&c, top_member, &top)) {
        return false;
    }

    *used = (size_t) (c.p - text.data);
    *err = keep_top(w, &top, out);
    return true;
}

static bool
top_member(cursor_t *c, inf_slice_t name, void *out)
{
    top_t *top = out;

    if (is(name, "id")) {
        return first(&top->seen, SEEN_ID) && read_text(c, &top->request.id);
    }

    return is(name, "parameters") && first(&top->seen, SEEN_PARAMETERS)
           && take(c, '{') && read_object(c, top_parameter, top)
           && take(c, '}');
}

static bool
top_parameter(cursor_t *c, inf_slice_t name, void *out)
{
    top_t *top = out;
    inf_infer_request_t *q = &top->request;

    if (is(name, "binary_data_output")) {
        return first(&top->seen, SEEN_BINARY)
               && read_bool(c, &q->binary_data_output);
    }

    if (is(name, "sequence_id")) {
        return first(&top->seen, SEEN_SEQUENCE) && read_sequence(c, q);
    }

    if (is(name, "sequence_start")) {
        return first(&top->seen, SEEN_START)
               && read_flag(c, top, INF_REQUEST_SEQUENCE_START);
    }

    if (is(name, "sequence_end")) {
        return first(&top->seen, SEEN_END)
               && read_flag(c, top, INF_REQUEST_SEQUENCE_END);
    }

    if (is(name, "priority")) {
        return first(&top->seen, SEEN_PRIORITY) && read_uint(c, &q->priority);
    }

    if (is(name, "timeout")) {
        return first(&top->seen, SEEN_TIMEOUT) && read_uint(c, &q->timeout_us);
    }

    return read_custom(c, name, top);
}

static bool
read_flag(cursor_t *c, top_t *top, uint16_t flag)
{
    bool on;

    if (!read_bool(c, &on)) {
        return false;
    }

    top->request.flags |= on ? flag : 0;
    return true;
}

static bool
read_sequence(cursor_t *c, inf_infer_request_t *out)
{
    if (peek(c) != '"') {
        return read_uint(c, &out->correlation_id);
    }

    if (!read_text(c, &out->correlation_text)
        || out->correlation_text.len > INF_INFER_MAX_CORRELATION)
    {
        return false;
    }

    if (out->correlation_text.len != 0) {
        out->flags |= INF_REQUEST_CORRELATION_STR;
    }

    return true;
}

static bool
read_custom(cursor_t *c, inf_slice_t name, top_t *top)
{
    const size_t reserved = sizeof(RESERVED_PREFIX) - 1;
    uint32_t count = top->request.parameter_count;
    inf_infer_parameter_t *p = &top->custom[count];

    if (count == MAX_CUSTOM
        || (name.len >= reserved
            && memcmp(name.data, RESERVED_PREFIX, reserved) == 0))
    {
        return false;
    }

    for (uint32_t i = 0; i < count; i++) {
        if (inf_slice_eq(top->custom[i].name, name)) {
            return false;
        }
    }

    *p = (inf_infer_parameter_t) { .name = name };
    top->request.parameter_count++;

    char begin = peek(c);
    if (begin == '"') {
        p->type = INF_PARAMETER_STRING;
        return read_text(c, &p->text);
    }

    if (begin == 't' || begin == 'f') {
        bool on;
        p->type = INF_PARAMETER_BOOL;
        if (!read_bool(c, &on)) {
            return false;
        }

        p->integer = on;
        return true;
    }

    p->type = INF_PARAMETER_INT;
    return read_custom_int(c, &p->integer);
}

static bool
read_custom_int(cursor_t *c, int64_t *out)
{
    bool negative = take(c, '-');
    uint64_t v;

    /* a minus stands right before its digits */
    if ((negative && (c->p == c->end || *c->p < '0')) || !read_uint(c, &v)) {
        return false;
    }

    *out = negative ? -(int64_t) v : (int64_t) v;
    return true;
}

static inf_err_t *
keep_top(const inf_walk_t *w, top_t *top, inf_infer_request_t *out)
{
    inf_infer_request_t *q = &top->request;
    uint32_t count = q->parameter_count;
    inf_err_t *err = NULL;

    if ((top->seen & SEEN_ID) != 0) {
        err = keep_text(w, &q->id);
    }

    if (err == NULL && (q->correlation_text.data != NULL)) {
        err = keep_text(w, &q->correlation_text);
    }

    for (uint32_t i = 0; i < count && err == NULL; i++) {
        inf_infer_parameter_t *p = &top->custom[i];
        err = keep_text(w, &p->name);
        if (err == NULL && p->type == INF_PARAMETER_STRING) {
            err = keep_text(w, &p->text);
        }
    }

    if (err == NULL && count != 0) {
        void *table = inf_arena_alloc(w->arena, count * sizeof(*top->custom));
        if (table == NULL) {
            return inf_err_nomem();
        }

        memcpy(table, top->custom, count * sizeof(*top->custom));
        q->parameters = table;
    }

    if (err == NULL) {
        *out = *q;
    }

    return err;
}

/* ---- values ---- */

/* Members up to the closing brace, which stays. */
static bool
read_object(cursor_t *c, member_fn member, void *out)
{
    inf_slice_t name;

    if (peek(c) == '}') {
        return true;
    }

    do {
        if (!read_text(c, &name) || !take(c, ':') || !member(c, name, out)) {
            return false;
        }
    } while (take(c, ','));

    return peek(c) == '}';
}

static bool
read_text(cursor_t *c, inf_slice_t *out)
{
    if (!take(c, '"')) {
        return false;
    }

    const char *p = c->p;
    const char *end = c->end;

    while (p != end && *p != '"') {
        if (*p == '\\' || (unsigned char) (*p - ' ') > '~' - ' ') {
            return false;
        }

        p++;
    }

    if (p == end) {
        return false;
    }

    *out = inf_slice(c->p, (size_t) (p - c->p));
    c->p = p + 1;
    return true;
}

/* A byte that may not follow the digits is rejected by the next reader. */
static bool
read_uint(cursor_t *c, uint64_t *out)
{
    char begin = peek(c);
    const char *start = c->p;
    uint64_t v = 0;

    while (c->p != c->end && (unsigned char) (*c->p - '0') <= 9) {
        v = v * 10 + (unsigned char) (*c->p - '0');
        c->p++;
    }

    size_t digits = (size_t) (c->p - start);
    *out = v;
    return digits != 0 && digits <= MAX_DIGITS
           && (begin != '0' || digits == 1);
}

static bool
read_bool(cursor_t *c, bool *out)
{
    *out = peek(c) == 't';

    const char *word = *out ? "true" : "false";
    size_t len = *out ? 4 : 5;

    if ((size_t) (c->end - c->p) < len || memcmp(c->p, word, len) != 0) {
        return false;
    }

    c->p += len;
    return true;
}

/* A NUL-terminated copy, as the walk makes it. */
static inf_err_t *
keep_text(const inf_walk_t *w, inf_slice_t *text)
{
    text->data = inf_arena_strdup(w->arena, text->data, text->len);
    return text->data != NULL ? NULL : inf_err_nomem();
}
