#include "core/proto/message_json.h"

#include <math.h>
#include <string.h>

#include "core/proto/base64.h"
#include "core/proto/message_utf8.h"
#include "core/proto/number.h"

#define FIELDS_MAX 256          /* limit of one message                      */

typedef struct {
    const inf_json_options_t  *options;
    inf_buf_t                 *out;
} writer_t;

static inf_err_t *write_message(const writer_t *w, const ProtobufCMessage *m);
static inf_err_t *write_field(const writer_t *w, const ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f);
static inf_err_t *write_list(const writer_t *w, const ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f);
static inf_err_t *write_map(const writer_t *w, const ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f);
static inf_err_t *write_value(const writer_t *w,
    const ProtobufCMessageDescriptor *desc, const ProtobufCFieldDescriptor *f,
    inf_scalar_t v);
static void write_key(const writer_t *w, const ProtobufCFieldDescriptor *f,
    inf_scalar_t v);
static void write_wide(const writer_t *w,
    const ProtobufCMessageDescriptor *desc, const ProtobufCFieldDescriptor *f,
    inf_scalar_t v);
static void write_real(inf_buf_t *out, const ProtobufCFieldDescriptor *f,
    double v);
static void write_enum(inf_buf_t *out, const ProtobufCEnumDescriptor *desc,
    int v);
static size_t string_plain(inf_slice_t s);
static void string_escape(inf_buf_t *out, unsigned char c);
static bool field_is_written(const writer_t *w, const ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f);
static void field_order(const writer_t *w,
    const ProtobufCMessageDescriptor *desc,
    const ProtobufCFieldDescriptor **order);
static unsigned field_place(const ProtobufCFieldDescriptor *f,
    unsigned oneofs);

inf_err_t *
inf_message_to_json(const ProtobufCMessage *m,
    const inf_json_options_t *options, inf_buf_t *out)
{
    static const inf_json_options_t none;
    writer_t w = { options != NULL ? options : &none, out };

    inf_err_t *err = write_message(&w, m);
    return err != NULL ? err : inf_buf_status(out);
}

void
inf_json_put_string(inf_buf_t *out, inf_slice_t s)
{
    inf_buf_putc(out, '"');
    while (s.len > 0) {
        size_t n = string_plain(s);

        /* most strings are plain and valid: one scan, one copy */
        size_t valid = inf_utf8_valid_prefix(inf_slice(s.data, n));
        inf_buf_put(out, s.data, valid);
        if (valid < n) {
            inf_buf_puts(out, "\xef\xbf\xbd");
            n = valid + 1;
        } else if (n < s.len) {
            string_escape(out, (unsigned char) s.data[n]);
            n++;
        }
        s.data += n;
        s.len -= n;
    }
    inf_buf_putc(out, '"');
}

static inf_err_t *
write_message(const writer_t *w, const ProtobufCMessage *m)
{
    const ProtobufCFieldDescriptor *order[FIELDS_MAX];
    const ProtobufCMessageDescriptor *desc = m->descriptor;
    bool first = true;

    if (desc->n_fields > FIELDS_MAX) {
        return inf_err_new(INF_ERR_INTERNAL,
            "message %s has more fields than JSON is built for", desc->name);
    }
    field_order(w, desc, order);

    inf_buf_putc(w->out, '{');
    for (unsigned i = 0; i < desc->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = order[i];
        if (!field_is_written(w, m, f)) {
            continue;
        }

        inf_buf_puts(w->out, first ? "\"" : ",\"");
        inf_buf_puts(w->out, f->name);
        inf_buf_puts(w->out, "\":");
        first = false;

        inf_err_t *err = write_field(w, m, f);
        if (err != NULL) {
            return err;
        }
    }
    inf_buf_putc(w->out, '}');
    return NULL;
}

static inf_err_t *
write_field(const writer_t *w, const ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f)
{
    if (inf_field_is_map(f)) {
        return write_map(w, m, f);
    }
    if (inf_field_is_repeated(f)) {
        return write_list(w, m, f);
    }
    return write_value(w, m->descriptor, f, inf_field_get(m, f, 0));
}

static inf_err_t *
write_list(const writer_t *w, const ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f)
{
    size_t n = inf_field_count(m, f);

    inf_buf_putc(w->out, '[');
    for (size_t i = 0; i < n; i++) {
        if (i > 0) {
            inf_buf_putc(w->out, ',');
        }
        inf_err_t *err = write_value(w, m->descriptor, f,
            inf_field_get(m, f, i));
        if (err != NULL) {
            return err;
        }
    }
    inf_buf_putc(w->out, ']');
    return NULL;
}

static inf_err_t *
write_map(const writer_t *w, const ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f)
{
    const ProtobufCMessageDescriptor *desc = f->descriptor;
    const ProtobufCFieldDescriptor *key = &desc->fields[0];
    const ProtobufCFieldDescriptor *value = &desc->fields[1];
    size_t n = inf_field_count(m, f);

    inf_buf_putc(w->out, '{');
    for (size_t i = 0; i < n; i++) {
        const ProtobufCMessage *entry = inf_field_get(m, f, i).m;
        inf_scalar_t v = inf_field_get(entry, value, 0);

        if (i > 0) {
            inf_buf_putc(w->out, ',');
        }
        write_key(w, key, inf_field_get(entry, key, 0));
        inf_buf_putc(w->out, ':');
        if (value->type == PROTOBUF_C_TYPE_MESSAGE && v.m == NULL) {
            inf_buf_puts(w->out, "{}");
            continue;
        }
        inf_err_t *err = write_value(w, desc, value, v);
        if (err != NULL) {
            return err;
        }
    }
    inf_buf_putc(w->out, '}');
    return NULL;
}

static inf_err_t *
write_value(const writer_t *w, const ProtobufCMessageDescriptor *desc,
    const ProtobufCFieldDescriptor *f, inf_scalar_t v)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        inf_number_put_int(w->out, v.i);
        break;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        inf_number_put_uint(w->out, v.u);
        break;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        write_wide(w, desc, f, v);
        break;
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_DOUBLE:
        write_real(w->out, f, v.d);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        inf_buf_puts(w->out, v.b ? "true" : "false");
        break;
    case PROTOBUF_C_TYPE_ENUM:
        write_enum(w->out, f->descriptor, v.e);
        break;
    case PROTOBUF_C_TYPE_STRING:
        inf_json_put_string(w->out, v.s);
        break;
    case PROTOBUF_C_TYPE_BYTES:
        inf_buf_putc(w->out, '"');
        inf_base64_put(w->out, v.s);
        inf_buf_putc(w->out, '"');
        break;
    case PROTOBUF_C_TYPE_MESSAGE:
        return write_message(w, v.m);
    }
    return NULL;
}

/* Writes a key; keys of any type are strings. */
static void
write_key(const writer_t *w, const ProtobufCFieldDescriptor *f,
    inf_scalar_t v)
{
    if (f->type == PROTOBUF_C_TYPE_STRING) {
        inf_json_put_string(w->out, v.s);
        return;
    }

    inf_buf_putc(w->out, '"');
    switch (f->type) {
    case PROTOBUF_C_TYPE_BOOL:
        inf_buf_puts(w->out, v.b ? "true" : "false");
        break;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        inf_number_put_uint(w->out, v.u);
        break;
    default:
        inf_number_put_int(w->out, v.i);
        break;
    }
    inf_buf_putc(w->out, '"');
}

static void
write_wide(const writer_t *w, const ProtobufCMessageDescriptor *desc,
    const ProtobufCFieldDescriptor *f, inf_scalar_t v)
{
    bool number = w->options->int64_numbers
        || (w->options->is_number != NULL && w->options->is_number(desc, f));

    if (!number) {
        inf_buf_putc(w->out, '"');
    }
    if (f->type == PROTOBUF_C_TYPE_UINT64
        || f->type == PROTOBUF_C_TYPE_FIXED64)
    {
        inf_number_put_uint(w->out, v.u);
    } else {
        inf_number_put_int(w->out, v.i);
    }
    if (!number) {
        inf_buf_putc(w->out, '"');
    }
}

static void
write_real(inf_buf_t *out, const ProtobufCFieldDescriptor *f, double v)
{
    if (isnan(v)) {
        inf_buf_puts(out, "\"NaN\"");
    } else if (isinf(v)) {
        inf_buf_puts(out, v < 0 ? "\"-Infinity\"" : "\"Infinity\"");
    } else if (f->type == PROTOBUF_C_TYPE_FLOAT) {
        inf_number_put_float(out, (float) v);
    } else {
        inf_number_put_double(out, v);
    }
}

static void
write_enum(inf_buf_t *out, const ProtobufCEnumDescriptor *desc, int v)
{
    const ProtobufCEnumValue *name =
        protobuf_c_enum_descriptor_get_value(desc, v);

    if (name == NULL) {
        inf_number_put_int(out, v);
        return;
    }
    inf_buf_putc(out, '"');
    inf_buf_puts(out, name->name);
    inf_buf_putc(out, '"');
}

/* The length of the prefix that needs no escape, UTF-8 or not. */
static size_t
string_plain(inf_slice_t s)
{
    size_t n = 0;

    while (n < s.len) {
        unsigned char c = (unsigned char) s.data[n];
        if (c < 0x20 || c == '"' || c == '\\' || c == 0x7f) {
            break;
        }
        n++;
    }
    return n;
}

static void
string_escape(inf_buf_t *out, unsigned char c)
{
    static const char letters[] = "\b\f\n\r\t\"\\";
    static const char names[] = "bfnrt\"\\";
    const char *letter = c == '\0' ? NULL : strchr(letters, c);

    if (letter != NULL) {
        inf_buf_putc(out, '\\');
        inf_buf_putc(out, names[letter - letters]);
    } else {
        inf_buf_printf(out, "\\u%04x", (unsigned) c);
    }
}

static bool
field_is_written(const writer_t *w, const ProtobufCMessage *m,
    const ProtobufCFieldDescriptor *f)
{
    if (inf_field_count(m, f) > 0) {
        return true;
    }
    if (w->options->omit_defaults || inf_field_is_oneof(f)) {
        return false;
    }
    return inf_field_is_repeated(f) || f->type != PROTOBUF_C_TYPE_MESSAGE;
}

/* Orders the fields as in the .proto file, which is the struct's order except
   for oneofs: these come last, or at their place in the options. */
static void
field_order(const writer_t *w, const ProtobufCMessageDescriptor *desc,
    const ProtobufCFieldDescriptor **order)
{
    unsigned oneofs = (unsigned) desc->sizeof_message;

    for (size_t i = 0; i < w->options->n_places; i++) {
        const inf_json_oneof_place_t *place = &w->options->places[i];
        if (strcmp(place->message, desc->name) == 0) {
            const ProtobufCFieldDescriptor *f = inf_field_find(desc,
                inf_slice_str(place->before));
            oneofs = f != NULL ? f->offset - 1 : oneofs;
        }
    }

    /* insertion sort: nearly sorted already */
    for (unsigned i = 0; i < desc->n_fields; i++) {
        const ProtobufCFieldDescriptor *f = &desc->fields[i];
        unsigned place = field_place(f, oneofs);
        unsigned k = i;

        while (k > 0 && field_place(order[k - 1], oneofs) > place) {
            order[k] = order[k - 1];
            k--;
        }
        order[k] = f;
    }
}

static unsigned
field_place(const ProtobufCFieldDescriptor *f, unsigned oneofs)
{
    return inf_field_is_oneof(f) ? oneofs : f->offset;
}
