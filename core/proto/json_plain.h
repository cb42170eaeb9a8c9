/*
 * json_plain.h - runs of bytes in a JSON string that need no escape: no quote,
 *                backslash or control character.
 *
 * Owner    The caller's memory.
 * Thread   any.
 * Units    bytes.
 * Errors   none.
 * Route    JSON scanner, response writer -> [json plain]
 */

#ifndef INF_PROTO_JSON_PLAIN_H
#define INF_PROTO_JSON_PLAIN_H

#include <stdint.h>
#include <string.h>

/* The end of the run of plain bytes at the start of [p, end). */
static inline const char *
inf_json_plain_run(const char *p, const char *end)
{
    static const uint64_t ones = UINT64_C(0x0101010101010101);
    static const uint64_t highs = UINT64_C(0x8080808080808080);

    while (end - p >= 8) {
        uint64_t w;
        memcpy(&w, p, 8);
        uint64_t quote = w ^ ones * '"';
        uint64_t slash = w ^ ones * '\\';
        uint64_t found = ((quote - ones) & ~quote) | ((slash - ones) & ~slash)
                         | ((w - ones * 0x20) & ~w);
        found &= highs;
        if (found != 0) {
            /* little-endian: the lowest mark belongs to the first byte and is
               exact */
            return p + (__builtin_ctzll(found) >> 3);
        }

        p += 8;
    }

    while (p != end && *p != '"' && *p != '\\' && (unsigned char) *p >= 0x20) {
        p++;
    }

    return p;
}

typedef signed char inf_json_bytes_t __attribute__((vector_size(16)));

/* The end of the run of plain ASCII bytes at the start of [p, end). */
static inline const char *
inf_json_ascii_run(const char *p, const char *end)
{
    for (; end - p >= 16; p += 16) {
        inf_json_bytes_t v;
        memcpy(&v, p, sizeof(v));

        /* as signed numbers, bytes above 0x7f are below ' ' too */
        inf_json_bytes_t stops = (v == '"') | (v == '\\') | (v < ' ');
        uint64_t half[2];
        memcpy(half, &stops, sizeof(half));

        if (half[0] != 0) {
            return p + (__builtin_ctzll(half[0]) >> 3);
        }

        if (half[1] != 0) {
            return p + 8 + (__builtin_ctzll(half[1]) >> 3);
        }
    }

    while (p != end && *p != '"' && *p != '\\' && (signed char) *p >= ' ') {
        p++;
    }

    return p;
}

#endif /* INF_PROTO_JSON_PLAIN_H */
