/*
 * grpc.c - see grpc.h.
 */

#include <string.h>

#include "core/proto/grpc.h"

#define TIMEOUT_DIGITS 8u

static bool accepts(inf_slice_t accept, inf_slice_t name);
static inf_slice_t next_token(inf_slice_t *list);
static bool is_plain(unsigned char c);

inf_grpc_status_t
inf_grpc_status(inf_err_code_t code)
{
    switch (code) {
    case INF_ERR_UNKNOWN:
        return INF_GRPC_UNKNOWN;
    case INF_ERR_INTERNAL:
        return INF_GRPC_INTERNAL;
    case INF_ERR_NOT_FOUND:
        return INF_GRPC_NOT_FOUND;
    case INF_ERR_INVALID_ARG:
        return INF_GRPC_INVALID_ARGUMENT;
    case INF_ERR_UNAVAILABLE:
        return INF_GRPC_UNAVAILABLE;
    case INF_ERR_UNSUPPORTED:
        return INF_GRPC_UNIMPLEMENTED;
    case INF_ERR_ALREADY_EXISTS:
        return INF_GRPC_ALREADY_EXISTS;
    case INF_ERR_CANCELLED:
        return INF_GRPC_CANCELLED;
    }

    return INF_GRPC_UNKNOWN;
}

/* ---- a message's prefix ---- */

bool
inf_grpc_read_prefix(const void *p, inf_grpc_prefix_t *prefix)
{
    const unsigned char *bytes = p;

    prefix->compressed = bytes[0] == 1;
    prefix->len = (uint32_t) bytes[1] << 24 | (uint32_t) bytes[2] << 16
                  | (uint32_t) bytes[3] << 8 | bytes[4];
    return bytes[0] <= 1;
}

void
inf_grpc_put_prefix(void *dst, const inf_grpc_prefix_t *prefix)
{
    unsigned char *bytes = dst;

    bytes[0] = prefix->compressed;
    bytes[1] = (unsigned char) (prefix->len >> 24);
    bytes[2] = (unsigned char) (prefix->len >> 16);
    bytes[3] = (unsigned char) (prefix->len >> 8);
    bytes[4] = (unsigned char) prefix->len;
}

/* ---- headers ---- */

static bool
is_plain(unsigned char c)
{
    return c >= ' ' && c <= '~' && c != '%';
}

size_t
inf_grpc_escaped_size(inf_slice_t text)
{
    size_t size = text.len;

    for (size_t i = 0; i < text.len; i++) {
        size += is_plain((unsigned char) text.data[i]) ? 0 : 2;
    }

    return size;
}

void
inf_grpc_escape(char *dst, inf_slice_t text)
{
    static const char digits[] = "0123456789ABCDEF";

    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char) text.data[i];

        if (is_plain(c)) {
            *dst++ = (char) c;
            continue;
        }

        *dst++ = '%';
        *dst++ = digits[c >> 4];
        *dst++ = digits[c & 15];
    }
}

bool
inf_grpc_timeout(inf_slice_t value, uint64_t *timeout_ns)
{
    static const struct {
        char     unit;
        uint64_t ns;
    } units[] = {
        { 'n', 1 }, { 'u', 1000 }, { 'm', 1000000 }, { 'S', 1000000000 },
        { 'M', UINT64_C(60000000000) }, { 'H', UINT64_C(3600000000000) }
    };
    uint64_t count = 0;

    if (value.len < 2 || value.len > TIMEOUT_DIGITS + 1) {
        return false;
    }

    for (size_t i = 0; i < value.len - 1; i++) {
        if (value.data[i] < '0' || value.data[i] > '9') {
            return false;
        }

        count = count * 10 + (uint64_t) (value.data[i] - '0');
    }

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (units[i].unit == value.data[value.len - 1]) {
            if (__builtin_mul_overflow(count, units[i].ns, timeout_ns)) {
                *timeout_ns = UINT64_MAX;
            }

            return true;
        }
    }

    return false;
}

const char *
inf_grpc_encoding_name(inf_grpc_encoding_t encoding)
{
    switch (encoding) {
    case INF_GRPC_DEFLATE:
        return "deflate";
    case INF_GRPC_GZIP:
        return "gzip";
    case INF_GRPC_IDENTITY:
        break;
    }

    return "identity";
}

bool
inf_grpc_encoding(inf_slice_t value, inf_grpc_encoding_t *encoding)
{
    static const inf_grpc_encoding_t known[] = {
        INF_GRPC_IDENTITY, INF_GRPC_DEFLATE, INF_GRPC_GZIP
    };

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (inf_slice_eq(value,
                         inf_slice_str(inf_grpc_encoding_name(known[i]))))
        {
            *encoding = known[i];
            return true;
        }
    }

    return false;
}

/* gRPC's order of the accepted encodings is gzip, deflate.  A low level uses
   the first, a high one the last, medium the second of two. */
inf_grpc_encoding_t
inf_grpc_reply_encoding(inf_slice_t accept, inf_grpc_level_t level)
{
    bool gzip, deflate;

    if (level == INF_GRPC_LEVEL_NONE) {
        return INF_GRPC_IDENTITY;
    }

    gzip = accepts(accept, INF_SLICE("gzip"));
    deflate = accepts(accept, INF_SLICE("deflate"));

    if (deflate && (level != INF_GRPC_LEVEL_LOW || !gzip)) {
        return INF_GRPC_DEFLATE;
    }

    return gzip ? INF_GRPC_GZIP : INF_GRPC_IDENTITY;
}

static bool
accepts(inf_slice_t accept, inf_slice_t name)
{
    while (accept.len != 0) {
        if (inf_slice_eq(next_token(&accept), name)) {
            return true;
        }
    }

    return false;
}

/* The part up to the next comma, without blanks around it. */
static inf_slice_t
next_token(inf_slice_t *list)
{
    const char *p = list->data;
    const char *end = p + list->len;
    const char *comma = memchr(p, ',', list->len);
    const char *stop = comma != NULL ? comma : end;
    const char *next = comma != NULL ? comma + 1 : end;

    *list = inf_slice(next, (size_t) (end - next));

    while (p < stop && (*p == ' ' || *p == '\t')) {
        p++;
    }

    while (p < stop && (stop[-1] == ' ' || stop[-1] == '\t')) {
        stop--;
    }

    return inf_slice(p, (size_t) (stop - p));
}
