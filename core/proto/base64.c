#include "core/proto/base64.h"

static void put(inf_buf_t *out, inf_slice_t bytes, const char *digits,
    bool padded);

/* 0 to 63; 64: skipped; 65: padding; 66: not base64 */
static uint8_t
value_of(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return (uint8_t) (c - 'A');
    }
    if (c >= 'a' && c <= 'z') {
        return (uint8_t) (c - 'a' + 26);
    }
    if (c >= '0' && c <= '9') {
        return (uint8_t) (c - '0' + 52);
    }

    switch (c) {
    case '+':
        return 62;
    case '/':
        return 63;
    case ' ':
    case '\t':
    case '\r':
    case '\n':
        return 64;
    case '=':
        return 65;
    default:
        return 66;
    }
}

bool
inf_base64_decode(inf_slice_t text, uint8_t *out, size_t *len)
{
    uint32_t bits = 0;
    unsigned have = 0;          /* characters of the current group of four   */
    bool padded = false;
    size_t n = 0;

    for (size_t i = 0; i < text.len; i++) {
        uint8_t v = value_of(text.data[i]);
        if (v == 64) {
            continue;
        }
        if (v == 65) {
            padded = true;
            continue;
        }
        if (v == 66 || padded) {
            return false;
        }

        bits = bits << 6 | v;
        if (++have == 4) {
            out[n++] = (uint8_t) (bits >> 16);
            out[n++] = (uint8_t) (bits >> 8);
            out[n++] = (uint8_t) bits;
            have = 0;
        }
    }

    if (have == 1) {
        return false;           /* six bits are not a byte                   */
    }
    if (have == 3) {
        out[n++] = (uint8_t) (bits >> 10);
        out[n++] = (uint8_t) (bits >> 2);
    } else if (have == 2) {
        out[n++] = (uint8_t) (bits >> 4);
    }

    *len = n;
    return true;
}

void
inf_base64_put(inf_buf_t *out, inf_slice_t bytes)
{
    put(out, bytes, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
        "0123456789+/", true);
}

void
inf_base64_put_url(inf_buf_t *out, inf_slice_t bytes)
{
    put(out, bytes, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
        "0123456789-_", false);
}

static void
put(inf_buf_t *out, inf_slice_t bytes, const char *digits, bool padded)
{
    const unsigned char *p = (const unsigned char *) bytes.data;

    for (size_t i = 0; i < bytes.len; i += 3) {
        size_t n = bytes.len - i < 3 ? bytes.len - i : 3;
        unsigned bits = (unsigned) p[i] << 16;
        bits |= n > 1 ? (unsigned) p[i + 1] << 8 : 0;
        bits |= n > 2 ? (unsigned) p[i + 2] : 0;

        for (size_t c = 0; c < 4; c++) {
            if (c <= n) {
                inf_buf_putc(out, digits[(bits >> (18 - 6 * c)) & 0x3f]);
            } else if (padded) {
                inf_buf_putc(out, '=');
            }
        }
    }
}
