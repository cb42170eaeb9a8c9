/*
 * number.h - numbers as text, reading and writing, correctly rounded and
 *            without locale.
 *
 * Owner    The caller's memory.
 * Thread   any.
 * Units    none.
 * Errors   none: an invalid number has length 0, an overflow gives false.
 * Route    data decoder, response writer, text format and JSON of messages.
 */

#ifndef INF_PROTO_NUMBER_H
#define INF_PROTO_NUMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/buf.h"
#include "core/base/slice.h"

#define INF_NUMBER_MAX_TEXT  32u    /* buffer size for the writers below     */
#define INF_NUMBER_MAX_FIXED 324u   /* for inf_number_write_fixed            */
#define INF_NUMBER_MAX_INPUT 4096u  /* longer texts are not numbers          */

/* A number as read: (-1)^negative * mantissa * 10^exponent. */
typedef struct {
    uint64_t    mantissa;       /* the first 19 significant digits           */
    int32_t     exponent;
    bool        negative;
    bool        integer;        /* written without '.' and exponent          */
    bool        inexact;        /* there were more than 19 digits            */
    const char *text;           /* start of its text                         */
    uint32_t    len;
} inf_number_t;

/* Reads the JSON number at p; returns its length, 0 if there is none or it is
   longer than INF_NUMBER_MAX_INPUT. */
size_t inf_number_read(const char *p, const char *end, inf_number_t *out);

/* Reads NaN, Infinity or Inf, the last two optionally with a minus; returns the
   length, 0 if there is none. */
size_t inf_number_read_nonfinite(const char *p, const char *end, double *out);

/* Parses all of s as a decimal number: optional '-', leading zeros, and no
   digits required on one side of the point.  Overflows to infinity. */
bool inf_number_parse_double(inf_slice_t s, double *out);

/* Parses digits of base 8, 10 or 16 only; false if empty or above
   UINT64_MAX. */
bool inf_number_parse_digits(inf_slice_t s, unsigned base, uint64_t *out);

/* A fast parser for the usual case, 1 to 19 digits and nothing else; false:
   another parser must decide. */
static inline bool
inf_number_parse_short(inf_slice_t s, uint64_t *out)
{
    uint64_t v = 0;

    if (s.len - 1 >= 19) {
        return false;
    }

    for (size_t i = 0; i < s.len; i++) {
        unsigned digit = (unsigned char) s.data[i] - '0';
        if (digit > 9) {
            return false;
        }

        v = v * 10 + digit;
    }

    *out = v;
    return true;
}

/* The value, correctly rounded (ties to even), overflowing to infinity. */
double inf_number_double(const inf_number_t *n);
float inf_number_float(const inf_number_t *n);

/* False: not written as an integer, or out of range. */
bool inf_number_int64(const inf_number_t *n, int64_t *out);
bool inf_number_uint64(const inf_number_t *n, uint64_t *out);

/*
 * Write at most INF_NUMBER_MAX_TEXT bytes, no NUL, and return their number.
 * Reals have the shortest text that reads back as the same value of that type,
 * integral ones end in ".0"; NaN, Infinity, -Infinity are bare words.
 */
size_t inf_number_write_double(char *dst, double v);
size_t inf_number_write_float(char *dst, float v);
size_t inf_number_write_int64(char *dst, int64_t v);
size_t inf_number_write_uint64(char *dst, uint64_t v);

/* Writes v like printf's %f, but with a point in every locale, and a NUL, to
   INF_NUMBER_MAX_FIXED bytes; returns the length. */
size_t inf_number_write_fixed(char *dst, double v);

/* Append a number; reals are finite and formatted like printf's %g: no ".0", an
   exponent if the digits exceed the type's decimal precision. */
void inf_number_put_double(inf_buf_t *b, double v);
void inf_number_put_float(inf_buf_t *b, float v);
void inf_number_put_int(inf_buf_t *b, int64_t v);
void inf_number_put_uint(inf_buf_t *b, uint64_t v);

#endif /* INF_PROTO_NUMBER_H */
