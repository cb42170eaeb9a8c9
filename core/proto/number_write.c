/*
 * number_write.c - see number.h.
 *
 * Giulietti's Schubfach computes the digits; their layout is that of common
 * JSON writers: plain up to 1e21, with an exponent beyond.
 */

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/proto/number.h"
#include "core/proto/number_powers.h"

#define FIXED_MAX      21           /* integers below 1e21 are written in plain
                                       digits                                */
#define FIXED_MIN      (-6)
#define DOUBLE_KEPT    15           /* decimal digits preserved by any double */
#define FLOAT_KEPT     6
#define PLAIN_MIN      (-4)         /* least exponent of %g without 'e'      */

__extension__ typedef unsigned __int128 u128_t;

/* A decimal number: digits * 10^exponent. */
typedef struct {
    uint64_t digits;
    int      exponent;
} decimal_t;

static const char digit_pairs[] =
    "00010203040506070809101112131415161718192021222324252627282930313233343536"
    "37383940414243444546474849505152535455565758596061626364656667686970717273"
    "7475767778798081828384858687888990919293949596979899";

static decimal_t shortest_double(uint64_t fraction, uint32_t exponent);
static decimal_t shortest_float(uint32_t fraction, uint32_t exponent);
static inline decimal_t choose(uint64_t lower, uint64_t value, uint64_t upper,
    int k);
static uint64_t round_to_odd_double(inf_power_t g, uint64_t c);
static uint32_t round_to_odd_float(uint64_t g, uint32_t c);
static inf_power_t power_for_writing(int q);
static size_t write_special(char *dst, bool negative, bool nan);
static decimal_t strip_zeros(decimal_t d);
static size_t write_decimal(char *dst, bool negative, decimal_t d);
static void put_decimal(inf_buf_t *b, bool negative, decimal_t d, int kept);
static size_t write_scientific(char *dst, size_t n, int exponent);

size_t
inf_number_write_double(char *dst, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof(bits));

    bool negative = bits >> 63 != 0;
    uint32_t exponent = (uint32_t) (bits >> 52) & 0x7ff;
    uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);

    if (exponent == 0x7ff) {
        return write_special(dst, negative, fraction != 0);
    }

    return write_decimal(dst, negative, shortest_double(fraction, exponent));
}

size_t
inf_number_write_float(char *dst, float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof(bits));

    bool negative = bits >> 31 != 0;
    uint32_t exponent = (bits >> 23) & 0xff;
    uint32_t fraction = bits & ((1u << 23) - 1);

    if (exponent == 0xff) {
        return write_special(dst, negative, fraction != 0);
    }

    return write_decimal(dst, negative, shortest_float(fraction, exponent));
}

void
inf_number_put_double(inf_buf_t *b, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof(bits));

    uint32_t exponent = (uint32_t) (bits >> 52) & 0x7ff;
    uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);

    put_decimal(b, bits >> 63 != 0, shortest_double(fraction, exponent),
                DOUBLE_KEPT);
}

void
inf_number_put_float(inf_buf_t *b, float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof(bits));

    uint32_t exponent = (bits >> 23) & 0xff;
    uint32_t fraction = bits & ((1u << 23) - 1);

    put_decimal(b, bits >> 31 != 0, shortest_float(fraction, exponent),
                FLOAT_KEPT);
}

static int
floor_log2_pow10(int e)
{
    return (e * 1741647) >> 19;
}

/* floor(log10(2^q)), or of 3/4 of it if the lower neighbour is closer. */
static int
floor_log10_pow2(int q, bool closer)
{
    return (q * 1262611 - (closer ? 524031 : 0)) >> 22;
}

/*
 * The Schubfach algorithm: scales the value and the bounds of its rounding
 * interval by the power of ten that leaves one or two candidates, and takes
 * the one inside, with a digit less if possible.  All numbers are in quarters.
 */
static decimal_t
shortest_double(uint64_t fraction, uint32_t exponent)
{
    uint64_t c = fraction;
    int q = 1 - 1075;

    if (exponent == 0 && fraction == 0) {
        return (decimal_t) { 0, 0 };
    }

    if (exponent != 0) {
        c |= UINT64_C(1) << 52;
        q = (int) exponent - 1075;
        if (q <= 0 && q > -53 && (c & ((UINT64_C(1) << -q) - 1)) == 0) {
            return (decimal_t) { c >> -q, 0 };
        }
    }

    bool odd = (c & 1) != 0;
    bool closer = fraction == 0 && exponent > 1;
    int k = floor_log10_pow2(q, closer);
    int h = q + floor_log2_pow10(-k) + 1;
    inf_power_t g = power_for_writing(-k);

    return choose(round_to_odd_double(g, (4 * c - 2 + closer) << h) + odd,
                  round_to_odd_double(g, (4 * c) << h),
                  round_to_odd_double(g, (4 * c + 2) << h) - odd, k);
}

static decimal_t
shortest_float(uint32_t fraction, uint32_t exponent)
{
    uint32_t c = fraction;
    int q = 1 - 150;

    if (exponent == 0 && fraction == 0) {
        return (decimal_t) { 0, 0 };
    }

    if (exponent != 0) {
        c |= 1u << 23;
        q = (int) exponent - 150;
        if (q <= 0 && q > -24 && (c & ((1u << -q) - 1)) == 0) {
            return (decimal_t) { c >> -q, 0 };
        }
    }

    bool odd = (c & 1) != 0;
    bool closer = fraction == 0 && exponent > 1;
    int k = floor_log10_pow2(q, closer);
    int h = q + floor_log2_pow10(-k) + 1;

    /* 64 bits of the power, rounded up unless exact */
    inf_power_t full = power_for_writing(-k);
    uint64_t g = full.high + (full.low != 0);

    return choose(round_to_odd_float(g, (4 * c - 2 + closer) << h) + odd,
                  round_to_odd_float(g, (4 * c) << h),
                  round_to_odd_float(g, (4 * c + 2) << h) - odd, k);
}

/* The candidate between the bounds that is nearest to value, with a digit less
   than k leaves if one is there; all three are in quarters. */
static inline decimal_t
choose(uint64_t lower, uint64_t value, uint64_t upper, int k)
{
    uint64_t s = value / 4;

    if (s >= 10) {
        uint64_t t = s / 10;
        bool down = lower <= 40 * t;
        bool up = 40 * t + 40 <= upper;
        if (down != up) {
            return (decimal_t) { t + up, k + 1 };
        }
    }

    bool down = lower <= 4 * s;
    bool up = 4 * s + 4 <= upper;
    if (down == up) {
        uint64_t middle = 4 * s + 2;
        up = value > middle || (value == middle && (s & 1) != 0);
    }

    return (decimal_t) { s + up, k };
}

static uint64_t
round_to_odd_double(inf_power_t g, uint64_t c)
{
    u128_t low = (u128_t) g.low * c;
    u128_t sum = (u128_t) g.high * c + (uint64_t) (low >> 64);

    return (uint64_t) (sum >> 64) | ((uint64_t) sum > 1);
}

static uint32_t
round_to_odd_float(uint64_t g, uint32_t c)
{
    u128_t p = (u128_t) g * c;

    return (uint32_t) (p >> 64) | ((uint32_t) (p >> 32) > 1);
}

/* The table rounds positive powers down; the writer needs them rounded up. */
static inf_power_t
power_for_writing(int q)
{
    inf_power_t g = inf_powers_of_ten[q - INF_POWER_MIN];

    if (q > INF_POWER_EXACT) {
        g.low++;
        g.high += g.low == 0;
    }

    return g;
}

static size_t
write_special(char *dst, bool negative, bool nan)
{
    const char *word = nan ? "NaN" : negative ? "-Infinity" : "Infinity";
    size_t len = strlen(word);

    memcpy(dst, word, len);
    return len;
}

static size_t
count_digits(uint64_t v)
{
    size_t n = 1;

    while (v >= 10000) {
        v /= 10000;
        n += 4;
    }

    return n + (v >= 10) + (v >= 100) + (v >= 1000);
}

/* Writes the n digits of v. */
static inline void
put_digits(char *dst, uint64_t v, size_t n)
{
    while (n >= 2) {
        n -= 2;
        memcpy(dst + n, digit_pairs + 2 * (v % 100), 2);
        v /= 100;
    }

    if (n != 0) {
        dst[0] = (char) ('0' + v % 10);
    }
}

/* Removes trailing zeros; d is not 0. */
static decimal_t
strip_zeros(decimal_t d)
{
    while (d.digits % 10 == 0) {
        d.digits /= 10;
        d.exponent++;
    }

    return d;
}

static size_t
write_decimal(char *dst, bool negative, decimal_t d)
{
    char *p = dst;

    if (negative) {
        *p++ = '-';
    }

    if (d.digits == 0) {
        memcpy(p, "0.0", 3);
        return (size_t) (p + 3 - dst);
    }

    d = strip_zeros(d);

    size_t n = count_digits(d.digits);
    int point = (int) n + d.exponent;       /* digits before the point */

    if (d.exponent >= 0 && point <= FIXED_MAX) {
        put_digits(p, d.digits, n);
        memset(p + n, '0', (size_t) d.exponent);
        p += point;
        memcpy(p, ".0", 2);
        p += 2;

    } else if (point > 0 && point <= FIXED_MAX) {
        put_digits(p + 1, d.digits, n);
        memmove(p, p + 1, (size_t) point);
        p[point] = '.';
        p += n + 1;

    } else if (point > FIXED_MIN && point <= 0) {
        memcpy(p, "0.000000", 8);
        p += 2 - point;
        put_digits(p, d.digits, n);
        p += n;

    } else {
        put_digits(p + 1, d.digits, n);
        p += write_scientific(p, n, point - 1);
    }

    return (size_t) (p - dst);
}

/* Writes the form with exponent; n digits are at dst + 1. */
static size_t
write_scientific(char *dst, size_t n, int exponent)
{
    char *p = dst;

    p[0] = p[1];
    p[1] = '.';
    p += n > 1 ? n + 1 : 1;
    *p++ = 'e';
    return (size_t) (p - dst) + inf_number_write_int64(p, exponent);
}

size_t
inf_number_write_fixed(char *dst, double v)
{
    int len = snprintf(dst, INF_NUMBER_MAX_FIXED, "%f", v);
    size_t n = len > 0 ? (size_t) len : 0;
    size_t whole = strspn(dst, "-0123456789");

    if (!isfinite(v) || whole + 7 > n) {
        return n;
    }

    /* the locale's point may have several bytes */
    dst[whole] = '.';
    memmove(dst + whole + 1, dst + n - 6, 7);
    return whole + 7;
}

size_t
inf_number_write_int64(char *dst, int64_t v)
{
    if (v >= 0) {
        return inf_number_write_uint64(dst, (uint64_t) v);
    }

    *dst = '-';
    return 1 + inf_number_write_uint64(dst + 1, 0 - (uint64_t) v);
}

size_t
inf_number_write_uint64(char *dst, uint64_t v)
{
    size_t n = count_digits(v);

    put_digits(dst, v, n);
    return n;
}

/* Writes like %g with a precision of kept, or of d's digits if more. */
static void
put_decimal(inf_buf_t *b, bool negative, decimal_t d, int kept)
{
    char text[INF_NUMBER_MAX_TEXT];

    inf_buf_puts(b, negative ? "-" : "");
    if (d.digits == 0) {
        inf_buf_putc(b, '0');
        return;
    }

    d = strip_zeros(d);
    int n = (int) count_digits(d.digits);
    int ten = n - 1 + d.exponent;           /* of the first digit */

    put_digits(text, d.digits, (size_t) n);

    if (ten < PLAIN_MIN || ten >= (n > kept ? n : kept)) {
        inf_buf_put(b, text, 1);
        inf_buf_puts(b, n > 1 ? "." : "");
        inf_buf_put(b, text + 1, (size_t) n - 1);
        inf_buf_printf(b, "e%+03d", ten);

    } else if (ten < 0) {
        inf_buf_put(b, "0.0000", (size_t) (1 - ten));
        inf_buf_put(b, text, (size_t) n);

    } else if (d.exponent >= 0) {
        inf_buf_put(b, text, (size_t) n);
        inf_buf_put(b, "00000000000000000", (size_t) d.exponent);

    } else {
        inf_buf_put(b, text, (size_t) ten + 1);
        inf_buf_putc(b, '.');
        inf_buf_put(b, text + ten + 1, (size_t) (n - ten - 1));
    }
}

void
inf_number_put_int(inf_buf_t *b, int64_t v)
{
    char text[INF_NUMBER_MAX_TEXT];

    inf_buf_put(b, text, inf_number_write_int64(text, v));
}

void
inf_number_put_uint(inf_buf_t *b, uint64_t v)
{
    char text[INF_NUMBER_MAX_TEXT];

    inf_buf_put(b, text, inf_number_write_uint64(text, v));
}
