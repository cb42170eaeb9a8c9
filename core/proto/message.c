#include "core/proto/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/proto/message_path.h"
#include "core/proto/message_utf8.h"

#define TAG_BITS     3
#define VARINT_MAX   10
#define SEEN_WORDS   4          /* fields of one message: 64 per word        */

/* State of a check of wire bytes for rules that protobuf-c does not enforce. */
typedef struct {
    const char  *name;          /* of the outermost message                  */
    inf_path_t   path;
    unsigned     depth;
    bool         repair;        /* strings that are not UTF-8                */
    bool         bounded;       /* the limits apply                          */
    bool         bulky;         /* a limit is exceeded                       */
    size_t       fields;        /* so far, in all messages                   */
    size_t       unknown;       /* unknown ones of these                     */
} scan_t;

typedef struct {
    inf_slice_t  rest;
    uint64_t     seen[SEEN_WORDS];      /* seen singular messages, by index  */
} scan_level_t;

static inf_err_t *unpack(scan_t *s, const ProtobufCMessageDescriptor *desc,
    inf_slice_t bytes, ProtobufCMessage **out);
static inf_err_t *scan_message(scan_t *s,
    const ProtobufCMessageDescriptor *desc, inf_slice_t bytes);
static inf_err_t *scan_field(scan_t *s,
    const ProtobufCMessageDescriptor *desc, scan_level_t *level);
static inf_err_t *scan_value(scan_t *s,
    const ProtobufCFieldDescriptor *f, inf_slice_t value);
static inf_err_t *scan_string(scan_t *s, const ProtobufCFieldDescriptor *f,
    inf_slice_t value);
static inf_err_t *scan_repeat(scan_t *s, scan_level_t *level,
    const ProtobufCMessageDescriptor *desc,
    const ProtobufCFieldDescriptor *f);
static inf_err_t *scan_count(scan_t *s, const ProtobufCFieldDescriptor *f);
static inf_err_t *scan_bad(const scan_t *s, const char *what);
static bool scan_varint(inf_slice_t *in, uint64_t *out);
static bool scan_skip(inf_slice_t *in, uint64_t n);

inf_err_t *
inf_message_new(const ProtobufCMessageDescriptor *desc, ProtobufCMessage **out)
{
    ProtobufCMessage *m = calloc(1, desc->sizeof_message);
    if (m == NULL) {
        return inf_err_nomem();
    }

    protobuf_c_message_init(desc, m);
    *out = m;
    return NULL;
}

void
inf_message_free(ProtobufCMessage *m)
{
    protobuf_c_message_free_unpacked(m, NULL);
}

inf_err_t *
inf_message_clone(const ProtobufCMessage *m, ProtobufCMessage **out)
{
    inf_buf_t bytes;
    inf_buf_init(&bytes);

    inf_err_t *err = inf_message_pack(m, &bytes);
    if (err == NULL) {
        /* not inf_message_unpack: a file's string need not be UTF-8 */
        *out = protobuf_c_message_unpack(m->descriptor, NULL, bytes.len,
            (const uint8_t *) bytes.data);
        err = *out == NULL ? inf_err_nomem() : NULL;
    }

    inf_buf_fini(&bytes);
    return err;
}

size_t
inf_message_packed_len(const ProtobufCMessage *m)
{
    return protobuf_c_message_get_packed_size(m);
}

inf_err_t *
inf_message_pack(const ProtobufCMessage *m, inf_buf_t *out)
{
    size_t len = inf_message_packed_len(m);

    if (!inf_buf_reserve(out, len)) {
        return inf_err_nomem();
    }

    out->len += protobuf_c_message_pack(m, (uint8_t *) out->data + out->len);
    out->data[out->len] = '\0';
    return NULL;
}

bool
inf_message_same(const ProtobufCMessage *a, const ProtobufCMessage *b)
{
    inf_buf_t x, y;

    inf_buf_init(&x);
    inf_buf_init(&y);
    inf_err_t *err = inf_message_pack(a, &x);
    if (err == NULL) {
        err = inf_message_pack(b, &y);
    }
    bool same = err == NULL && x.len == y.len
        && (x.len == 0 || memcmp(x.data, y.data, x.len) == 0);

    inf_err_free(err);
    inf_buf_fini(&x);
    inf_buf_fini(&y);
    return same;
}

inf_err_t *
inf_message_unpack(const ProtobufCMessageDescriptor *desc, inf_slice_t bytes,
    ProtobufCMessage **out)
{
    scan_t scan = { .name = desc->name };

    return unpack(&scan, desc, bytes, out);
}

static inf_err_t *
unpack(scan_t *s, const ProtobufCMessageDescriptor *desc, inf_slice_t bytes,
    ProtobufCMessage **out)
{
    inf_err_t *err = scan_message(s, desc, bytes);
    if (err != NULL) {
        return err;
    }

    /* protobuf-c returns NULL for both; only malloc sets errno */
    errno = 0;
    ProtobufCMessage *m = protobuf_c_message_unpack(desc, NULL, bytes.len,
        bytes.len > 0 ? (const uint8_t *) bytes.data : (const uint8_t *) "");
    if (m == NULL) {
        return errno == ENOMEM ? inf_err_nomem()
            : inf_err_new(INF_ERR_INVALID_ARG, "%s: %zu bytes that are not"
                " this message", desc->name, bytes.len);
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
inf_message_unpack_request(const ProtobufCMessageDescriptor *desc,
    inf_slice_t bytes, ProtobufCMessage **out)
{
    scan_t scan = { .name = desc->name, .bounded = true };

    inf_err_t *err = unpack(&scan, desc, bytes, out);
    if (err == NULL || inf_err_code(err) != INF_ERR_INVALID_ARG
        || scan.bulky)
    {
        return err;
    }

    return inf_err_add(inf_err_recode(err, INF_ERR_INTERNAL),
        "Unable to parse request");
}

inf_err_t *
inf_message_repair(const ProtobufCMessageDescriptor *desc, char *bytes,
    size_t len)
{
    scan_t scan = { .name = desc->name, .repair = true };

    return scan_message(&scan, desc, inf_slice(bytes, len));
}

static inf_err_t *
scan_message(scan_t *s, const ProtobufCMessageDescriptor *desc,
    inf_slice_t bytes)
{
    scan_level_t level = { .rest = bytes };

    if (s->depth == INF_MESSAGE_DEPTH) {
        return scan_bad(s, "messages are nested too deep");
    }

    s->depth++;
    while (level.rest.len > 0) {
        inf_err_t *err = scan_field(s, desc, &level);
        if (err != NULL) {
            return err;
        }
    }
    s->depth--;
    return NULL;
}

static inf_err_t *
scan_field(scan_t *s, const ProtobufCMessageDescriptor *desc,
    scan_level_t *level)
{
    uint64_t tag;
    uint64_t value;
    inf_slice_t *in = &level->rest;

    if (!scan_varint(in, &tag)) {
        return scan_bad(s, "a field's tag is cut short");
    }
    if (tag > UINT32_MAX || tag >> TAG_BITS == 0) {
        return scan_bad(s, "a field's number is out of range");
    }

    const ProtobufCFieldDescriptor *f =
        protobuf_c_message_descriptor_get_field(desc,
            (unsigned) (tag >> TAG_BITS));

    inf_err_t *err = scan_count(s, f);
    if (err != NULL) {
        return err;
    }

    switch (tag & ((1u << TAG_BITS) - 1)) {
    case PROTOBUF_C_WIRE_TYPE_VARINT:
        return scan_varint(in, &value) ? NULL
            : scan_bad(s, "an integer is cut short");
    case PROTOBUF_C_WIRE_TYPE_64BIT:
        return scan_skip(in, 8) ? NULL : scan_bad(s, "a value is cut short");
    case PROTOBUF_C_WIRE_TYPE_32BIT:
        return scan_skip(in, 4) ? NULL : scan_bad(s, "a value is cut short");
    case PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED:
        break;
    default:
        return scan_bad(s, "a field has an unknown wire type");
    }

    if (!scan_varint(in, &value)) {
        return scan_bad(s, "a length is cut short");
    }
    inf_slice_t bytes = inf_slice(in->data, (size_t) value);
    if (!scan_skip(in, value)) {
        return scan_bad(s, "a value is longer than its message");
    }
    if (f == NULL) {
        return NULL;
    }

    err = scan_repeat(s, level, desc, f);
    return err != NULL ? err : scan_value(s, f, bytes);
}

static inf_err_t *
scan_value(scan_t *s, const ProtobufCFieldDescriptor *f, inf_slice_t value)
{
    if (f->type == PROTOBUF_C_TYPE_STRING) {
        return scan_string(s, f, value);
    }
    if (f->type != PROTOBUF_C_TYPE_MESSAGE) {
        return NULL;
    }

    size_t mark = inf_path_push(&s->path, inf_slice_str(f->name));
    inf_err_t *err = scan_message(s, f->descriptor, value);
    inf_path_pop(&s->path, mark);
    return err;
}

static inf_err_t *
scan_string(scan_t *s, const ProtobufCFieldDescriptor *f, inf_slice_t value)
{
    const char *what = NULL;

    if (value.len > 0 && memchr(value.data, '\0', value.len) != NULL) {
        what = "the string holds a NUL byte";
    } else if (!inf_utf8_valid(value)) {
        what = "the string is not valid UTF-8";
    }
    if (what == NULL) {
        return NULL;
    }
    if (s->repair) {
        inf_utf8_repair((char *) (uintptr_t) value.data, value.len);
        return NULL;
    }

    inf_path_push(&s->path, inf_slice_str(f->name));
    return scan_bad(s, what);
}

/* Rejects a repeated singular message.  The format merges them, but protobuf-c
   1.4 loses fields doing so and copies all earlier ones, which is quadratic in
   the number of repeats; no encoder writes them. */
static inf_err_t *
scan_repeat(scan_t *s, scan_level_t *level,
    const ProtobufCMessageDescriptor *desc, const ProtobufCFieldDescriptor *f)
{
    size_t i = inf_field_index(desc, f);

    if (f->type != PROTOBUF_C_TYPE_MESSAGE || inf_field_is_repeated(f)) {
        return NULL;
    }

    uint64_t bit = UINT64_C(1) << (i % 64);
    if (i / 64 < SEEN_WORDS && (level->seen[i / 64] & bit) == 0) {
        level->seen[i / 64] |= bit;
        return NULL;
    }
    inf_path_push(&s->path, inf_slice_str(f->name));
    return scan_bad(s, "the message is given twice, and is not merged here");
}

/* Counts a field: protobuf-c allocates about 50 bytes for each while unpacking,
   and keeps unknown ones. */
static inf_err_t *
scan_count(scan_t *s, const ProtobufCFieldDescriptor *f)
{
    s->fields++;
    s->unknown += f == NULL;

    s->bulky = s->bounded && (s->fields > INF_MESSAGE_FIELDS
                              || s->unknown > INF_MESSAGE_UNKNOWN);
    return !s->bulky ? NULL
        : scan_bad(s, s->unknown > INF_MESSAGE_UNKNOWN
            ? "the message has too many unknown fields"
            : "the message has too many fields");
}

static inf_err_t *
scan_bad(const scan_t *s, const char *what)
{
    return inf_err_new(INF_ERR_INVALID_ARG, "%s: %s%s%s", s->name,
        inf_path_text(&s->path), inf_path_colon(&s->path), what);
}

static bool
scan_varint(inf_slice_t *in, uint64_t *out)
{
    uint64_t v = 0;

    for (size_t i = 0; i < VARINT_MAX && i < in->len; i++) {
        unsigned char c = (unsigned char) in->data[i];
        v |= (uint64_t) (c & 0x7f) << (7 * i);
        if ((c & 0x80) == 0) {
            *out = v;
            return scan_skip(in, i + 1);
        }
    }
    return false;
}

static bool
scan_skip(inf_slice_t *in, uint64_t n)
{
    if (n > in->len) {
        return false;
    }
    in->data += n;
    in->len -= (size_t) n;
    return true;
}
