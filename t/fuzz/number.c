/*
 * number.c - any text as a number, against the C library; any bits as a
 *            number, written and read back.
 */

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/proto/number.h"
#include "t/fuzz/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
read_text(const char *text, size_t len)
{
    inf_number_t n;
    size_t used = inf_number_read(text, text + len, &n);

    check(used <= len);
    if (used == 0) {
        return;
    }

    char *copy = malloc(used + 1);
    check(copy != NULL);
    memcpy(copy, text, used);
    copy[used] = '\0';

    double d = inf_number_double(&n);
    double want_d = strtod(copy, NULL);
    float f = inf_number_float(&n);
    float want_f = strtof(copy, NULL);
    check(memcmp(&d, &want_d, sizeof(d)) == 0);
    check(memcmp(&f, &want_f, sizeof(f)) == 0);

    int64_t s;
    uint64_t u;
    if (inf_number_int64(&n, &s)) {
        check(s == strtoll(copy, NULL, 10));
    }

    if (inf_number_uint64(&n, &u)) {
        check(u == (n.negative ? 0 : strtoull(copy, NULL, 10)));
    }

    free(copy);
}

/* A text that is a number as a whole: the C library reads all of it too. */
static void
parse_text(const char *text, size_t len)
{
    double d;
    uint64_t u;
    char *copy = malloc(len + 1);
    char *end;

    check(copy != NULL);
    memcpy(copy, text, len);
    copy[len] = '\0';

    if (inf_number_parse_double(inf_slice(text, len), &d)) {
        double want = strtod(copy, &end);
        check(end == copy + len && memcmp(&d, &want, sizeof(d)) == 0);
    }

    for (unsigned base = 8; base <= 16; base += base == 8 ? 2 : 6) {
        if (inf_number_parse_digits(inf_slice(text, len), base, &u)) {
            check(u == strtoull(copy, &end, (int) base)
                   && end == copy + len);
        }
    }

    free(copy);
}

static void
put_bits(double d, float f)
{
    inf_buf_t text;

    inf_buf_init(&text);
    if (isfinite(d)) {
        inf_number_put_double(&text, d);
        check(text.len <= INF_NUMBER_MAX_TEXT && strtod(text.data, NULL) == d);
    }

    inf_buf_reset(&text);
    if (isfinite(f)) {
        inf_number_put_float(&text, f);
        check(text.len <= INF_NUMBER_MAX_TEXT && strtof(text.data, NULL) == f);
    }

    inf_buf_fini(&text);
}

static void
write_bits(uint64_t bits)
{
    char text[INF_NUMBER_MAX_TEXT];
    inf_number_t n;
    double d, d2;
    float f, f2;

    memcpy(&d, &bits, sizeof(d));
    size_t len = inf_number_write_double(text, d);
    check(len != 0 && len <= sizeof(text));
    if (isfinite(d)) {
        check(inf_number_read(text, text + len, &n) == len);
        d2 = inf_number_double(&n);
        check(memcmp(&d, &d2, sizeof(d)) == 0);
    }

    memcpy(&f, &bits, sizeof(f));
    len = inf_number_write_float(text, f);
    check(len != 0 && len <= sizeof(text));
    if (isfinite(f)) {
        check(inf_number_read(text, text + len, &n) == len);
        f2 = inf_number_float(&n);
        check(memcmp(&f, &f2, sizeof(f)) == 0);
    }

    put_bits(d, f);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + (size == 0));

    check(text != NULL);
    memcpy(text, data, size);
    read_text(text, size);
    parse_text(text, size);
    free(text);

    for (size_t i = 0; i + 8 <= size; i += 8) {
        uint64_t bits;
        memcpy(&bits, data + i, sizeof(bits));
        write_bits(bits);
    }

    return 0;
}
