#include "core/proto/message_number.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_ROOM 40          /* any %.17g, with its NUL                   */

static void number_locale_init(void);
static locale_t number_locale(void);
static size_t number_format(char *dst, double v, int digits);
static double number_read(const char *text);
static bool number_is_decimal(inf_slice_t s);
static size_t number_digits(inf_slice_t s, size_t at);
static int number_digit(char c);

/* A backend may call setlocale(); numbers are always those of "C". */
static pthread_once_t  number_once = PTHREAD_ONCE_INIT;
static locale_t        number_c_locale;

void
inf_number_put_double(inf_buf_t *b, double v)
{
    char text[NUMBER_ROOM];
    size_t n = 0;

    /* subnormals have fewer digits than the 15 that are always good */
    for (int digits = fabs(v) < DBL_MIN ? 1 : 15; digits <= 17; digits++) {
        n = number_format(text, v, digits);
        if (number_read(text) == v) {
            break;
        }
    }
    inf_buf_put(b, text, n);
}

void
inf_number_put_float(inf_buf_t *b, float v)
{
    char text[NUMBER_ROOM];
    size_t n = 0;

    for (int digits = fabsf(v) < FLT_MIN ? 1 : 6; digits <= 9; digits++) {
        n = number_format(text, (double) v, digits);
        if (strtof_l(text, NULL, number_locale()) == v) {
            break;
        }
    }
    inf_buf_put(b, text, n);
}

void
inf_number_put_int(inf_buf_t *b, int64_t v)
{
    if (v < 0) {
        inf_buf_putc(b, '-');
        inf_number_put_uint(b, ~(uint64_t) v + 1);
        return;
    }
    inf_number_put_uint(b, (uint64_t) v);
}

void
inf_number_put_uint(inf_buf_t *b, uint64_t v)
{
    char text[20];
    size_t at = sizeof(text);

    do {
        text[--at] = (char) ('0' + v % 10);
        v /= 10;
    } while (v > 0);
    inf_buf_put(b, text + at, sizeof(text) - at);
}

bool
inf_number_parse_double(inf_slice_t s, double *out)
{
    if (!number_is_decimal(s)) {
        return false;
    }

    /* strtod wants a NUL; long texts are rare and take the heap */
    char room[64];
    char *text = s.len < sizeof(room) ? room : malloc(s.len + 1);
    if (text == NULL) {
        return false;
    }

    memcpy(text, s.data, s.len);
    text[s.len] = '\0';
    *out = number_read(text);

    if (text != room) {
        free(text);
    }
    return true;
}

bool
inf_number_parse_digits(inf_slice_t s, unsigned base, uint64_t *out)
{
    uint64_t v = 0;

    for (size_t i = 0; i < s.len; i++) {
        int digit = number_digit(s.data[i]);
        if (digit < 0 || (unsigned) digit >= base) {
            return false;
        }
        if (v > (UINT64_MAX - (uint64_t) digit) / base) {
            return false;
        }
        v = v * base + (uint64_t) digit;
    }

    *out = v;
    return s.len > 0;
}

static void
number_locale_init(void)
{
    number_c_locale = newlocale(LC_ALL_MASK, "C", (locale_t) 0);
}

/* Without memory for a locale of our own the thread's is used. */
static locale_t
number_locale(void)
{
    pthread_once(&number_once, number_locale_init);
    return number_c_locale != (locale_t) 0 ? number_c_locale
        : uselocale((locale_t) 0);
}

static size_t
number_format(char *dst, double v, int digits)
{
    locale_t before = uselocale(number_locale());
    int n = snprintf(dst, NUMBER_ROOM, "%.*g", digits, v);
    uselocale(before);
    return (size_t) n;
}

static double
number_read(const char *text)
{
    return strtod_l(text, NULL, number_locale());
}

static bool
number_is_decimal(inf_slice_t s)
{
    size_t i = 0;

    if (i < s.len && s.data[i] == '-') {
        i++;
    }

    size_t whole = number_digits(s, i);
    size_t part = 0;
    i += whole;
    if (i < s.len && s.data[i] == '.') {
        i++;
        part = number_digits(s, i);
        i += part;
    }
    if (whole + part == 0) {
        return false;
    }

    if (i < s.len && (s.data[i] == 'e' || s.data[i] == 'E')) {
        i++;
        if (i < s.len && (s.data[i] == '+' || s.data[i] == '-')) {
            i++;
        }
        size_t power = number_digits(s, i);
        if (power == 0) {
            return false;
        }
        i += power;
    }
    return i == s.len;
}

static size_t
number_digits(inf_slice_t s, size_t at)
{
    size_t n = 0;

    while (at + n < s.len && s.data[at + n] >= '0' && s.data[at + n] <= '9') {
        n++;
    }
    return n;
}

static int
number_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return -1;
}
