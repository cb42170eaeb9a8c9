#include "core/proto/message_utf8.h"

#include <string.h>

static size_t utf8_char(const unsigned char *p, size_t len);
static bool utf8_tail(const unsigned char *p, size_t n);

size_t
inf_utf8_valid_prefix(inf_slice_t s)
{
    const unsigned char *p = (const unsigned char *) s.data;
    size_t i = 0;

    while (i < s.len) {
        if (s.len - i >= 8) {
            uint64_t word;
            memcpy(&word, p + i, 8);
            if ((word & UINT64_C(0x8080808080808080)) == 0) {
                i += 8;
                continue;
            }
        }

        if (p[i] < 0x80) {
            i++;
            continue;
        }

        size_t n = utf8_char(p + i, s.len - i);
        if (n == 0) {
            break;
        }
        i += n;
    }
    return i;
}

void
inf_utf8_repair(char *text, size_t len)
{
    for (size_t at = 0; at < len; at++) {
        at += inf_utf8_valid_prefix(inf_slice(text + at, len - at));
        if (at < len) {
            text[at] = '?';
        }
    }
}

size_t
inf_utf8_put(char *dst, uint32_t code)
{
    if (code < 0x80) {
        dst[0] = (char) code;
        return 1;
    }

    if (code < 0x800) {
        dst[0] = (char) (0xc0 | (code >> 6));
        dst[1] = (char) (0x80 | (code & 0x3f));
        return 2;
    }

    if (code < 0x10000) {
        dst[0] = (char) (0xe0 | (code >> 12));
        dst[1] = (char) (0x80 | ((code >> 6) & 0x3f));
        dst[2] = (char) (0x80 | (code & 0x3f));
        return 3;
    }

    dst[0] = (char) (0xf0 | ((code >> 18) & 0x07));
    dst[1] = (char) (0x80 | ((code >> 12) & 0x3f));
    dst[2] = (char) (0x80 | ((code >> 6) & 0x3f));
    dst[3] = (char) (0x80 | (code & 0x3f));
    return 4;
}

/* The length of the character at p; 0: invalid; len > 0. */
static size_t
utf8_char(const unsigned char *p, size_t len)
{
    unsigned char c = p[0];

    if (c < 0x80) {
        return 1;
    }

    if (c >= 0xc2 && c <= 0xdf) {
        return len >= 2 && utf8_tail(p + 1, 1) ? 2 : 0;
    }

    if (c >= 0xe0 && c <= 0xef) {
        if (len < 3 || !utf8_tail(p + 1, 2) || (c == 0xe0 && p[1] < 0xa0)
            || (c == 0xed && p[1] > 0x9f))
        {
            return 0;
        }
        return 3;
    }

    if (c >= 0xf0 && c <= 0xf4) {
        if (len < 4 || !utf8_tail(p + 1, 3) || (c == 0xf0 && p[1] < 0x90)
            || (c == 0xf4 && p[1] > 0x8f))
        {
            return 0;
        }
        return 4;
    }
    return 0;
}

static bool
utf8_tail(const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return false;
        }
    }
    return true;
}
