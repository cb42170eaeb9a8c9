#include "digest.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

struct digest_kind_s {
    const char *name;
    uint32_t    start[8];
    size_t      words;                  /* of the result                     */
    bool        big_endian;
    void      (*mix)(uint32_t *state, const uint8_t *block);
};

static void digest_pad(digest_t *d);
static void md5_mix(uint32_t *state, const uint8_t *block);
static void sha256_mix(uint32_t *state, const uint8_t *block);
static uint32_t rotate_left(uint32_t x, uint32_t n);
static uint32_t rotate_right(uint32_t x, uint32_t n);

static const digest_kind_t kinds[] = {
    { "MD5", { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476 }, 4, false,
      md5_mix },
    { "SHA256", { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 }, 8, true,
      sha256_mix }
};

/* floor(2^32 * abs(sin(i + 1))) */
static const uint32_t md5_sines[64] = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a,
    0xa8304613, 0xfd469501, 0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be,
    0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821, 0xf61e2562, 0xc040b340,
    0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8,
    0x676f02d9, 0x8d2a4c8a, 0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c,
    0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70, 0x289b7ec6, 0xeaa127fa,
    0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92,
    0xffeff47d, 0x85845dd1, 0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1,
    0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391
};

static const uint8_t md5_shifts[4][4] = {
    { 7, 12, 17, 22 }, { 5, 9, 14, 20 }, { 4, 11, 16, 23 }, { 6, 10, 15, 21 }
};

/* The first 32 bits of the fractions of the cube roots of the first primes. */
static const uint32_t sha256_roots[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2
};

bool
digest_init(digest_t *d, const char *name, size_t name_len)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strlen(kinds[i].name) == name_len
            && strncasecmp(kinds[i].name, name, name_len) == 0)
        {
            d->kind = &kinds[i];
            d->total = 0;
            memcpy(d->state, kinds[i].start, sizeof(d->state));
            return true;
        }
    }

    return false;
}

const char *
digest_name(const digest_t *d)
{
    return d->kind->name;
}

void
digest_add(digest_t *d, const void *bytes, size_t len)
{
    const uint8_t *p = bytes;

    while (len > 0) {
        size_t used = d->total % 64;
        size_t n = 64 - used < len ? 64 - used : len;

        memcpy(d->block + used, p, n);
        d->total += n;
        p += n;
        len -= n;
        if (used + n == 64) {
            d->kind->mix(d->state, d->block);
        }
    }
}

void
digest_text(digest_t *d, char text[DIGEST_TEXT_MAX])
{
    digest_pad(d);

    for (size_t i = 0; i < d->kind->words; i++) {
        uint32_t word = d->kind->big_endian ? d->state[i]
            : __builtin_bswap32(d->state[i]);
        snprintf(text + 8 * i, 9, "%08x", word);
    }
}

/* A one bit, zeros, and how many bits there were. */
static void
digest_pad(digest_t *d)
{
    static const uint8_t pad[64] = { 0x80 };
    uint64_t bits = d->total * 8;
    uint8_t length[8];

    for (unsigned i = 0; i < 8; i++) {
        unsigned shift = d->kind->big_endian ? 56 - 8 * i : 8 * i;
        length[i] = (uint8_t) (bits >> shift);
    }

    size_t used = d->total % 64;
    digest_add(d, pad, used < 56 ? 56 - used : 120 - used);
    digest_add(d, length, sizeof(length));
}

static void
md5_mix(uint32_t *state, const uint8_t *block)
{
    uint32_t x[16];
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];

    for (unsigned i = 0; i < 16; i++) {
        x[i] = (uint32_t) block[4 * i] | (uint32_t) block[4 * i + 1] << 8
            | (uint32_t) block[4 * i + 2] << 16
            | (uint32_t) block[4 * i + 3] << 24;
    }

    for (unsigned i = 0; i < 64; i++) {
        uint32_t f;
        unsigned k;

        if (i < 16) {
            f = (b & c) | (~b & d);
            k = i;
        } else if (i < 32) {
            f = (b & d) | (c & ~d);
            k = (5 * i + 1) % 16;
        } else if (i < 48) {
            f = b ^ c ^ d;
            k = (3 * i + 5) % 16;
        } else {
            f = c ^ (b | ~d);
            k = 7 * i % 16;
        }

        uint32_t sum = a + f + x[k] + md5_sines[i];
        a = d;
        d = c;
        c = b;
        b += rotate_left(sum, md5_shifts[i / 16][i % 4]);
    }

    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
}

static void
sha256_mix(uint32_t *state, const uint8_t *block)
{
    uint32_t w[64], v[8];

    for (unsigned i = 0; i < 16; i++) {
        w[i] = (uint32_t) block[4 * i] << 24
            | (uint32_t) block[4 * i + 1] << 16
            | (uint32_t) block[4 * i + 2] << 8 | (uint32_t) block[4 * i + 3];
    }
    for (unsigned i = 16; i < 64; i++) {
        uint32_t s0 = rotate_right(w[i - 15], 7) ^ rotate_right(w[i - 15], 18)
            ^ w[i - 15] >> 3;
        uint32_t s1 = rotate_right(w[i - 2], 17) ^ rotate_right(w[i - 2], 19)
            ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }

    memcpy(v, state, sizeof(v));
    for (unsigned i = 0; i < 64; i++) {
        uint32_t s1 = rotate_right(v[4], 6) ^ rotate_right(v[4], 11)
            ^ rotate_right(v[4], 25);
        uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
        uint32_t t1 = v[7] + s1 + choice + sha256_roots[i] + w[i];
        uint32_t s0 = rotate_right(v[0], 2) ^ rotate_right(v[0], 13)
            ^ rotate_right(v[0], 22);
        uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);

        memmove(v + 1, v, 7 * sizeof(v[0]));
        v[4] += t1;
        v[0] = t1 + s0 + majority;
    }

    for (unsigned i = 0; i < 8; i++) {
        state[i] += v[i];
    }
}

static uint32_t
rotate_left(uint32_t x, uint32_t n)
{
    return x << n | x >> (32 - n);
}

static uint32_t
rotate_right(uint32_t x, uint32_t n)
{
    return x >> n | x << (32 - n);
}
