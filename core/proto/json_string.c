/*
 * json_string.c - see json_string.h.
 */

#include <stdint.h>
#include <string.h>

#include "core/proto/json_string.h"
#include "core/proto/message_utf8.h"
#include "core/proto/number.h"

static const char *unescape_one(const char *p, const char *end, char *out,
    unsigned *len);
static const char *unescape_unicode(const char *p, const char *end,
    char *out, unsigned *len);
static bool read_hex4(const char *p, const char *end, uint64_t *out);

bool
inf_json_unescape(const char **src, const char *stop, const char *end,
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

/* Decodes the escape at p and returns its end. */
static const char *
unescape_one(const char *p, const char *end, char *out, unsigned *len)
{
    static const char letters[] = "bfnrt\"\\/'";
    static const char meant[] = "\b\f\n\r\t\"\\/'";

    if (end - p < 2) {
        return NULL;
    }

    if (p[1] == 'u') {
        return unescape_unicode(p + 2, end, out, len);
    }

    const char *letter = memchr(letters, p[1], sizeof(letters) - 1);
    if (letter == NULL) {
        return NULL;
    }

    *len = 1;
    out[0] = meant[letter - letters];
    return p + 2;
}

static const char *
unescape_unicode(const char *p, const char *end, char *out, unsigned *len)
{
    uint64_t c;
    uint64_t low;

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
    }

    *len = (unsigned) inf_utf8_put(out, (uint32_t) c);
    return p;
}

static bool
read_hex4(const char *p, const char *end, uint64_t *out)
{
    return end - p >= 4 && inf_number_parse_digits(inf_slice(p, 4), 16, out);
}
