/*
 * number_read.c - see number.h.
 *
 * Uses Clinger's exact case, then Lemire's 128-bit product; undecided numbers
 * (more than 19 digits close to the middle of two values) are passed to the C
 * library as an integer with an exponent, which is independent of the locale.
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/proto/number.h"
#include "core/proto/number_powers.h"

#define MAX_EXPONENT   100000       /* beyond it the value is 0 or infinite  */
#define SLOW_DIGITS    780          /* 767 decide any double; one digit for the
                                       rest                                  */

__extension__ typedef unsigned __int128 u128_t;

/* The parameters of an IEEE type. */
typedef struct {
    int      bits;                  /* of the fraction                       */
    int      min_exponent;
    int      infinite;              /* biased exponent of infinity           */
    int      min_even, max_even;    /* powers of ten where ties can occur    */
    int      min_ten, max_ten;      /* outside the value is 0, infinity      */
} real_format_t;

static const real_format_t double_format = {
    52, -1023, 0x7ff, -4, 23, -342, 308
};

static const real_format_t float_format = {
    23, -127, 0xff, -17, 10, -65, 38
};

/* Result of reading digits. */
typedef struct {
    const char *end;
    uint64_t    value;              /* wraps around after 19 digits          */
} digits_t;

static bool is_digit(char c);
static digits_t read_digits(const char *p, const char *end, uint64_t v);
static const char *read_exponent(const char *p, const char *end, int32_t *out);
static void reread_mantissa(inf_number_t *n, const char *digits,
    const char *end, int32_t written);
static uint64_t nearest(const real_format_t *f, uint64_t w, int32_t q);
static uint64_t nearest_or_tie(const real_format_t *f, const inf_number_t *n,
    bool *undecided);
static void product(int q, uint64_t w, int precision, uint64_t *high,
    uint64_t *low);
static double slow_double(const inf_number_t *n);
static float slow_float(const inf_number_t *n);
static void slow_text(const inf_number_t *n, char *dst, size_t cap);

/* Reads a number; loose: the syntax of inf_number_parse_double. */
static inline size_t
read_number(const char *p, const char *end, bool loose, inf_number_t *out)
{
    const char *start = p;

    if ((size_t) (end - p) > INF_NUMBER_MAX_INPUT + 1u) {
        end = p + INF_NUMBER_MAX_INPUT + 1u;
    }

    out->text = start;
    out->negative = p != end && *p == '-';
    p += out->negative;

    const char *digits = p;
    digits_t m;

    if (!loose && (p == end || !is_digit(*p))) {
        return 0;
    }

    if (!loose && *p == '0') {
        m = (digits_t) { p + 1, 0 };
    } else {
        m = read_digits(p, end, 0);
    }

    p = m.end;
    size_t count = (size_t) (p - digits);
    int32_t exponent = 0;
    int32_t written = 0;
    out->integer = true;

    if (p != end && *p == '.') {
        const char *fraction = ++p;
        m = read_digits(p, end, m.value);
        p = m.end;
        if (!loose && p == fraction) {
            return 0;
        }

        count += (size_t) (p - fraction);
        exponent = -(int32_t) (p - fraction);
        out->integer = false;
    }

    if (loose && count == 0) {
        return 0;
    }

    const char *mantissa_end = p;

    if (p != end && (*p == 'e' || *p == 'E')) {
        p = read_exponent(p + 1, end, &written);
        if (p == NULL) {
            return 0;
        }

        out->integer = false;
    }

    out->len = (uint32_t) (p - start);
    if (out->len > INF_NUMBER_MAX_INPUT) {
        return 0;
    }

    out->mantissa = m.value;
    out->exponent = exponent + written;
    out->inexact = false;
    if (count > 19) {
        reread_mantissa(out, digits, mantissa_end, written);
    }

    return out->len;
}

size_t
inf_number_read(const char *p, const char *end, inf_number_t *out)
{
    return read_number(p, end, false, out);
}

bool
inf_number_parse_double(inf_slice_t s, double *out)
{
    inf_number_t n;

    if (s.len == 0 || read_number(s.data, s.data + s.len, true, &n) != s.len) {
        return false;
    }

    *out = inf_number_double(&n);
    return true;
}

bool
inf_number_parse_digits(inf_slice_t s, unsigned base, uint64_t *out)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t v = 0;

    for (size_t i = 0; i < s.len; i++) {
        char c = s.data[i] >= 'A' && s.data[i] <= 'F'
                 ? (char) (s.data[i] | 0x20) : s.data[i];
        const char *digit = memchr(digits, c, base);

        if (digit == NULL || __builtin_mul_overflow(v, base, &v)
            || __builtin_add_overflow(v, (uint64_t) (digit - digits), &v))
        {
            return false;
        }
    }

    *out = v;
    return s.len > 0;
}

size_t
inf_number_read_nonfinite(const char *p, const char *end, double *out)
{
    size_t left = (size_t) (end - p);

    if (left >= 3 && memcmp(p, "NaN", 3) == 0) {
        *out = NAN;
        return 3;
    }

    size_t minus = left != 0 && *p == '-';
    p += minus;
    left -= minus;
    if (left < 3 || memcmp(p, "Inf", 3) != 0) {
        return 0;
    }

    *out = minus != 0 ? -INFINITY : INFINITY;
    return minus + (left >= 8 && memcmp(p, "Infinity", 8) == 0 ? 8 : 3);
}

static bool
is_digit(char c)
{
    return (unsigned char) (c - '0') <= 9;
}

/* Appends digits to those of v; with more than 19 the caller reads them
   again. */
static digits_t
read_digits(const char *p, const char *end, uint64_t v)
{
    /* eight at a time: sums of neighbours by three multiplications */
    while (end - p >= 8) {
        uint64_t c;
        memcpy(&c, p, 8);
        c -= UINT64_C(0x3030303030303030);
        if (((c + UINT64_C(0x7676767676767676)) | c)
            & UINT64_C(0x8080808080808080))
        {
            break;
        }

        c = c * 10 + (c >> 8);
        c = ((c & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x000f424000000064)
             + ((c >> 16) & UINT64_C(0x000000ff000000ff))
             * UINT64_C(0x0000271000000001)) >> 32;
        v = v * 100000000u + (uint32_t) c;
        p += 8;
    }

    while (p != end && is_digit(*p)) {
        v = v * 10 + (uint64_t) (*p - '0');
        p++;
    }

    return (digits_t) { p, v };
}

static const char *
read_exponent(const char *p, const char *end, int32_t *out)
{
    bool negative = false;
    int32_t v = 0;

    if (p != end && (*p == '-' || *p == '+')) {
        negative = *p == '-';
        p++;
    }

    if (p == end || !is_digit(*p)) {
        return NULL;
    }

    for (; p != end && is_digit(*p); p++) {
        if (v < MAX_EXPONENT) {
            v = v * 10 + (*p - '0');
        }
    }

    *out = negative ? -v : v;
    return p;
}

/* Sets the first 19 significant digits; *p is a digit or the point. */
static void
reread_mantissa(inf_number_t *n, const char *digits, const char *end,
    int32_t written)
{
    uint64_t m = 0;
    int32_t exponent = written;
    int kept = 0;
    bool after_point = false;

    for (const char *p = digits; p != end; p++) {
        if (*p == '.') {
            after_point = true;
            continue;
        }

        if (kept == 19) {
            n->inexact |= *p != '0';
            exponent += !after_point;
            continue;
        }

        m = m * 10 + (uint64_t) (*p - '0');
        kept += m != 0;
        exponent -= after_point;
    }

    n->mantissa = m;
    n->exponent = exponent;
}

double
inf_number_double(const inf_number_t *n)
{
    static const double tens[] = {
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12,
        1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22
    };

    /* both operands exact: one rounding */
    if (n->mantissa <= (UINT64_C(1) << 53) && !n->inexact
        && n->exponent >= -22 && n->exponent <= 22)
    {
        double v = (double) n->mantissa;
        v = n->exponent < 0 ? v / tens[-n->exponent] : v * tens[n->exponent];
        return n->negative ? -v : v;
    }

    bool undecided;
    uint64_t bits = nearest_or_tie(&double_format, n, &undecided);
    double v;
    memcpy(&v, &bits, sizeof(v));

    if (undecided) {
        v = slow_double(n);
    }

    return n->negative ? -v : v;
}

float
inf_number_float(const inf_number_t *n)
{
    static const float tens[] = {
        1e0f, 1e1f, 1e2f, 1e3f, 1e4f, 1e5f, 1e6f, 1e7f, 1e8f, 1e9f, 1e10f
    };

    if (n->mantissa <= (1u << 24) && !n->inexact
        && n->exponent >= -10 && n->exponent <= 10)
    {
        float v = (float) n->mantissa;
        v = n->exponent < 0 ? v / tens[-n->exponent] : v * tens[n->exponent];
        return n->negative ? -v : v;
    }

    bool undecided;
    uint32_t bits = (uint32_t) nearest_or_tie(&float_format, n, &undecided);
    float v;
    memcpy(&v, &bits, sizeof(v));

    if (undecided) {
        v = slow_float(n);
    }

    return n->negative ? -v : v;
}

/* The bits for truncated digits: the value lies between m and m + 1; if both
   round to the same bits, these are the result. */
static uint64_t
nearest_or_tie(const real_format_t *f, const inf_number_t *n, bool *undecided)
{
    uint64_t bits = nearest(f, n->mantissa, n->exponent);

    *undecided = n->inexact
                 && bits != nearest(f, n->mantissa + 1, n->exponent);
    return bits;
}

/* The bits of the value nearest to w * 10^q. */
static uint64_t
nearest(const real_format_t *f, uint64_t w, int32_t q)
{
    uint64_t infinity = (uint64_t) f->infinite << f->bits;

    if (w == 0 || q < f->min_ten) {
        return 0;
    }

    if (q > f->max_ten) {
        return infinity;
    }

    int lz = __builtin_clzll(w);
    uint64_t high, low;
    product(q, w << lz, f->bits + 3, &high, &low);

    int upper = (int) (high >> 63);
    int shift = upper + 64 - f->bits - 3;
    uint64_t m = high >> shift;
    int e = (((152170 + 65536) * q) >> 16) + 63 + upper - lz - f->min_exponent;

    if (e <= 0) {                           /* subnormal or zero */
        if (1 - e >= 64) {
            return 0;
        }

        m >>= 1 - e;
        m += m & 1;
        return m >> 1;      /* a carry into bit `bits` is the exponent 1 */
    }

    /* exactly half-way: round to even */
    if (low <= 1 && q >= f->min_even && q <= f->max_even && (m & 3) == 1
        && m << shift == high)
    {
        m &= ~UINT64_C(1);
    }

    m += m & 1;
    m >>= 1;
    if (m >= UINT64_C(2) << f->bits) {
        m = UINT64_C(1) << f->bits;
        e++;
    }

    if (e >= f->infinite) {
        return infinity;
    }

    m &= (UINT64_C(1) << f->bits) - 1;
    return m | (uint64_t) e << f->bits;
}

/* The top bits of w * 10^q; the low half of the power is used only if the high
   half does not decide the rounding. */
static void
product(int q, uint64_t w, int precision, uint64_t *high, uint64_t *low)
{
    const inf_power_t *power = &inf_powers_of_ten[q - INF_POWER_MIN];
    uint64_t mask = ~UINT64_C(0) >> precision;
    u128_t first = (u128_t) w * power->high;

    if (((uint64_t) (first >> 64) & mask) == mask) {
        first += (uint64_t) (((u128_t) w * power->low) >> 64);
    }

    *high = (uint64_t) (first >> 64);
    *low = (uint64_t) first;
}

static double
slow_double(const inf_number_t *n)
{
    char text[SLOW_DIGITS + 32];

    slow_text(n, text, sizeof(text));
    return strtod(text, NULL);
}

static float
slow_float(const inf_number_t *n)
{
    char text[SLOW_DIGITS + 32];

    slow_text(n, text, sizeof(text));
    return strtof(text, NULL);
}

/* Writes the number without point: digits and exponent.  Digits beyond
   SLOW_DIGITS can only break ties: one replaces them all. */
static void
slow_text(const inf_number_t *n, char *dst, size_t cap)
{
    const char *p = n->text + n->negative;
    const char *end = n->text + n->len;
    size_t len = 0;
    int32_t exponent = 0;
    int32_t written = 0;
    bool after_point = false;
    bool sticky = false;

    for (; p != end && *p != 'e' && *p != 'E'; p++) {
        if (*p == '.') {
            after_point = true;
        } else if (len == SLOW_DIGITS) {
            sticky |= *p != '0';
            exponent += !after_point;
        } else {
            exponent -= after_point;
            if (len != 0 || *p != '0') {
                dst[len++] = *p;
            }
        }
    }

    if (p != end) {
        (void) read_exponent(p + 1, end, &written);
    }

    if (sticky) {
        dst[len++] = '1';
        exponent--;
    }

    snprintf(dst + len, cap - len, "e%d", (int) (exponent + written));
}

bool
inf_number_int64(const inf_number_t *n, int64_t *out)
{
    uint64_t limit = (uint64_t) INT64_MAX + n->negative;

    if (!n->integer || n->exponent != 0 || n->mantissa > limit) {
        return false;
    }

    *out = (int64_t) (n->negative ? 0 - n->mantissa : n->mantissa);
    return true;
}

bool
inf_number_uint64(const inf_number_t *n, uint64_t *out)
{
    if (!n->integer || (n->negative && n->mantissa != 0)) {
        return false;
    }

    uint64_t v = n->mantissa;
    if (n->exponent > 1) {
        return false;
    }

    if (n->exponent == 1) {                 /* 20 digits */
        uint64_t last = (uint64_t) (n->text[n->len - 1] - '0');
        if (v > (UINT64_MAX - last) / 10) {
            return false;
        }

        v = v * 10 + last;
    }

    *out = v;
    return true;
}
