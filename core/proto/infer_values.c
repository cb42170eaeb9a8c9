/*
 * infer_values.c - see infer_values.h.
 *
 * With enough room an element is written to the buffer; near the end of the
 * buffer it is written to `pending`, which the next calls drain.
 */

#include <string.h>

#include "core/include/datatype.h"
#include "core/proto/infer_values.h"
#include "core/proto/json_plain.h"
#include "core/proto/number.h"

typedef struct {
    char *p;
    char *end;
} room_t;

static bool drain(inf_values_t *v, room_t *r);
static void write_numbers(inf_values_t *v, room_t *r);
static size_t write_number(const inf_values_t *v, char *dst);
static size_t write_integer(uint32_t datatype, uint64_t bits, char *dst);
static inf_err_t *open_string(inf_values_t *v);
static void write_string(inf_values_t *v, room_t *r);
static void queue(inf_values_t *v, const char *text, size_t len);

void
inf_values_init(inf_values_t *v, uint32_t datatype, const void *data,
    uint64_t len)
{
    memset(v, 0, sizeof(*v));
    v->datatype = datatype;
    v->data = data;
    v->len = len;
}

inf_codec_t
inf_values_write(inf_values_t *v, char *buf, size_t cap, size_t *written,
    inf_err_t **err)
{
    room_t r = { buf, buf + cap };
    bool more = true;

    while (drain(v, &r)) {
        if (v->in_string) {
            if (r.p == r.end) {
                break;
            }

            write_string(v, &r);

        } else if (v->pos == v->len) {
            more = false;
            break;

        } else if (v->datatype == INF_TYPE_BYTES) {
            *err = open_string(v);
            if (*err != NULL) {
                *written = (size_t) (r.p - buf);
                return INF_CODEC_ERROR;
            }

        } else {
            write_numbers(v, &r);
        }
    }

    *written = (size_t) (r.p - buf);
    return more ? INF_CODEC_AGAIN : INF_CODEC_DONE;
}

/* Writes pending text; true: none is left. */
static bool
drain(inf_values_t *v, room_t *r)
{
    size_t n = (size_t) v->pending_len - v->pending_pos;
    size_t room = (size_t) (r->end - r->p);

    if (n == 0) {
        return true;
    }

    n = n < room ? n : room;
    memcpy(r->p, v->pending + v->pending_pos, n);
    r->p += n;
    v->pending_pos = (uint8_t) (v->pending_pos + n);
    return v->pending_pos == v->pending_len;
}

static void
queue(inf_values_t *v, const char *text, size_t len)
{
    memcpy(v->pending, text, len);
    v->pending_pos = 0;
    v->pending_len = (uint8_t) len;
}

static void
write_numbers(inf_values_t *v, room_t *r)
{
    uint32_t size = inf_datatype_size(v->datatype);

    while (v->len - v->pos >= size
           && (size_t) (r->end - r->p) >= INF_VALUES_PENDING)
    {
        r->p += write_number(v, r->p);
        v->pos += size;
    }

    if (v->len - v->pos < size) {           /* the check left no remainder */
        v->pos = v->len;
        return;
    }

    v->pending_pos = 0;
    v->pending_len = (uint8_t) write_number(v, v->pending);
    v->pos += size;
}

/* Writes a comma, unless it is the first, and the next number. */
static size_t
write_number(const inf_values_t *v, char *dst)
{
    const char *from = v->data + v->pos;
    size_t n = 0;

    if (v->pos != 0) {
        dst[n++] = ',';
    }

    if (v->datatype == INF_TYPE_FP32) {
        float f;
        memcpy(&f, from, sizeof(f));
        return n + inf_number_write_float(dst + n, f);
    }

    if (v->datatype == INF_TYPE_FP64) {
        double d;
        memcpy(&d, from, sizeof(d));
        return n + inf_number_write_double(dst + n, d);
    }

    uint64_t bits = 0;
    memcpy(&bits, from, inf_datatype_size(v->datatype));
    return n + write_integer(v->datatype, bits, dst + n);
}

static size_t
write_integer(uint32_t datatype, uint64_t bits, char *dst)
{
    switch (datatype) {
    case INF_TYPE_BOOL:
        memcpy(dst, bits != 0 ? "true" : "false", bits != 0 ? 4 : 5);
        return bits != 0 ? 4 : 5;
    case INF_TYPE_INT8:
        return inf_number_write_int64(dst, (int8_t) bits);
    case INF_TYPE_INT16:
        return inf_number_write_int64(dst, (int16_t) bits);
    case INF_TYPE_INT32:
        return inf_number_write_int64(dst, (int32_t) bits);
    case INF_TYPE_INT64:
        return inf_number_write_int64(dst, (int64_t) bits);
    default:
        return inf_number_write_uint64(dst, bits);
    }
}

/* Reads a string's length, which is checked since shared memory may change. */
static inf_err_t *
open_string(inf_values_t *v)
{
    uint64_t left = v->len - v->pos;
    uint32_t len = 0;

    if (left >= 4) {
        memcpy(&len, v->data + v->pos, 4);
    }

    if (left < 4 || len > left - 4) {
        return inf_err_new(INF_ERR_INTERNAL,
                           "a string leads out of its tensor");
    }

    if (v->pos == 0) {
        queue(v, "\"", 1);
    } else {
        queue(v, ",\"", 2);
    }

    v->pos += 4;
    v->string_left = len;
    v->in_string = true;
    return NULL;
}

static void
write_string(inf_values_t *v, room_t *r)
{
    const char *p = v->data + v->pos;
    size_t room = (size_t) (r->end - r->p);
    size_t n = v->string_left < room ? v->string_left : room;
    const char *q = inf_json_plain_run(p, p + n);

    n = (size_t) (q - p);
    memcpy(r->p, p, n);
    r->p += n;
    v->pos += n;
    v->string_left -= (uint32_t) n;

    if (v->string_left == 0) {
        queue(v, "\"", 1);
        v->in_string = false;
    } else if (r->p != r->end) {
        v->pending_pos = 0;
        v->pending_len = (uint8_t) inf_values_escape(*q, v->pending);
        v->pos++;
        v->string_left--;
    }
}

uint64_t
inf_values_count(uint32_t dim_count, const int64_t *shape, uint64_t data_len)
{
    uint64_t count = 1;

    if (dim_count == 0) {
        return data_len != 0;
    }

    for (uint32_t i = 0; i < dim_count; i++) {
        count *= (uint64_t) shape[i];
    }

    return count;
}

size_t
inf_values_escape(char c, char *dst)
{
    static const char hex[] = "0123456789ABCDEF";
    static const char letters[] = "btn?fr";     /* from 0x08; no \v */
    unsigned u = (unsigned char) c;

    dst[0] = '\\';
    if (u >= 0x20) {
        dst[1] = c;
        return 2;
    }

    if (u >= 0x08 && u <= 0x0d && u != 0x0b) {
        dst[1] = letters[u - 0x08];
        return 2;
    }

    memcpy(dst + 1, "u00", 3);
    dst[4] = hex[u >> 4];
    dst[5] = hex[u & 15];
    return 6;
}
