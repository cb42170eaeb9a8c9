/*
 * infer_string.c - see infer_string.h.
 */

#include <stdint.h>
#include <string.h>

#include "core/proto/infer_string.h"

static const char *unescape_one(const char *p, const char *end, char *out,
    unsigned *len);
static const char *unescape_unicode(const char *p, const char *end,
    char *out, unsigned *len);
static bool read_hex4(const char *p, const char *end, uint32_t *out);

bool
inf_string_unescape(const char **src, const char *stop, const char *end,
    char **dst, const char *dst_end)
{
    const char *p = *src;
    char *out = *dst;
    bool ok = true;

    while (p < stop && *p != '"') {
        const char *q = p;
        while (q < stop && *q != '"' && *q != '\\') {
            q++;
        }

        if (q != p) {
            size_t n = (size_t) (q - p);
            if ((size_t) (dst_end - out) < n) {
                ok = false;
                break;
            }

            memcpy(out, p, n);
            out += n;
            p = q;
            continue;
        }

        char bytes[4];
        unsigned len;
        q = unescape_one(p, end, bytes, &len);
        if (q == NULL || (size_t) (dst_end - out) < len) {
            ok = false;
            break;
        }

        memcpy(out, bytes, len);
        out += len;
        p = q;
    }

    *src = p;
    *dst = out;
    return ok;
}

/* p stands at the backslash; gives where the escape ends. */
static const char *
unescape_one(const char *p, const char *end, char *out, unsigned *len)
{
    if (end - p < 2) {
        return NULL;
    }

    *len = 1;

    switch (p[1]) {
    case '"':
    case '\\':
    case '/':
        out[0] = p[1];
        return p + 2;
    case 'b':
        out[0] = '\b';
        return p + 2;
    case 'f':
        out[0] = '\f';
        return p + 2;
    case 'n':
        out[0] = '\n';
        return p + 2;
    case 'r':
        out[0] = '\r';
        return p + 2;
    case 't':
        out[0] = '\t';
        return p + 2;
    case 'u':
        return unescape_unicode(p + 2, end, out, len);
    default:
        return NULL;
    }
}

static const char *
unescape_unicode(const char *p, const char *end, char *out, unsigned *len)
{
    uint32_t c;
    uint32_t low;

    if (!read_hex4(p, end, &c) || (c >= 0xdc00 && c <= 0xdfff)) {
        return NULL;
    }

    p += 4;

    if (c >= 0xd800 && c <= 0xdbff) {
        if (end - p < 2 || p[0] != '\\' || p[1] != 'u'
            || !read_hex4(p + 2, end, &low) || low < 0xdc00 || low > 0xdfff)
        {
            return NULL;
        }

        p += 6;
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        out[0] = (char) (0xf0 | c >> 18);
        out[1] = (char) (0x80 | (c >> 12 & 0x3f));
        out[2] = (char) (0x80 | (c >> 6 & 0x3f));
        out[3] = (char) (0x80 | (c & 0x3f));
        *len = 4;

    } else if (c >= 0x800) {
        out[0] = (char) (0xe0 | c >> 12);
        out[1] = (char) (0x80 | (c >> 6 & 0x3f));
        out[2] = (char) (0x80 | (c & 0x3f));
        *len = 3;

    } else if (c >= 0x80) {
        out[0] = (char) (0xc0 | c >> 6);
        out[1] = (char) (0x80 | (c & 0x3f));
        *len = 2;

    } else {
        out[0] = (char) c;
        *len = 1;
    }

    return p;
}

static bool
read_hex4(const char *p, const char *end, uint32_t *out)
{
    uint32_t v = 0;

    if (end - p < 4) {
        return false;
    }

    for (int i = 0; i < 4; i++) {
        uint32_t digit = (uint32_t) (unsigned char) p[i] - '0';
        if (digit > 9) {
            digit = ((unsigned char) p[i] | 0x20u) - 'a';
            if (digit > 5) {
                return false;
            }

            digit += 10;
        }

        v = v << 4 | digit;
    }

    *out = v;
    return true;
}
